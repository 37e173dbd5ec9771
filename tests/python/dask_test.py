#!/usr/bin/env python3
"""The samples for Dask: volumes and videos by several workers, some of which die, give the bytes of one.

tests/python/dask_test.py path/to/libtrivelet.so.1 path/to/trivelet [unittest's arguments]

Without library and program, of an installed package, and volumes only.
"""

import hashlib
import logging
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = None
FOUND = [str(ROOT / "samples"), str(ROOT / "tests")]
if len(sys.argv) > 2 and not sys.argv[1].startswith("-"):
    library, PROGRAM = Path(sys.argv.pop(1)).resolve(), Path(sys.argv.pop(1)).resolve()
    if not library.exists() or not PROGRAM.exists():
        print(f"skipped: {library} or {PROGRAM} was not built")
        sys.exit(77)
    os.environ["TRIVELET_LIBRARY"] = str(library)
    FOUND.append(str(ROOT / "python"))
sys.path[:0] = FOUND
os.environ["PYTHONPATH"] = os.pathsep.join(FOUND)  # of the workers
os.environ["DASK_LOGGING__DISTRIBUTED"] = "critical"  # workers that die are what is tested
try:
    import distributed
    import numpy as np
    import zarr
    from distributed import Client, LocalCluster
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)
import dask_video
import dask_volume
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
from dask_tasks import copy_box_or_die, encode_part_or_die, peak_memory  # noqa: E402
from trivelet.zarr import TriveletCodec


def cluster(workers):
    return Client(
        LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=":0", silence_logs=logging.CRITICAL)
    )


def digest(folder):
    """Of the names and contents of all files."""
    whole = hashlib.sha256()
    for path in sorted(Path(folder).rglob("*")):
        if path.is_file():
            whole.update(str(path.relative_to(folder)).encode() + b"\0" + path.read_bytes())
    return whole.hexdigest()


class Dask(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)
        cls.one, cls.three = cluster(1), cluster(3)
        for client in (cls.one, cls.three):
            cls.addClassCleanup(client.cluster.close)
            cls.addClassCleanup(client.close)

    def test_workers_and_retries(self) -> None:
        array = np.random.default_rng(1).integers(0, 60, (40, 90, 100), np.int16) + np.arange(100, dtype=np.int16) * 9
        source = self.folder / "a.npy"
        np.save(source, array)
        for name, codec, shards in (
            ("exact", TriveletCodec(), None),
            ("bounded", TriveletCodec(mode="max_error", value=3, transform="wavelet", effort="fast"), None),
            ("shards", TriveletCodec(effort="fast"), (32, 64, 64)),
        ):
            made = []
            for client, task in (
                (self.one, dask_volume.copy_box),
                (self.three, dask_volume.copy_box),
                (self.three, copy_box_or_die),
            ):
                target = self.folder / f"{name}{len(made)}.zarr"
                if task is copy_box_or_die:
                    (self.folder / "die").write_text("")
                dask_volume.convert(client, str(source), str(target), codec, (16, 32, 32), shards, task)
                made.append(digest(target))
                back = zarr.open_array(target, mode="r")[...]
                self.assertLessEqual(int(np.abs(back.astype(int) - array).max()), 3 if name == "bounded" else 0)
            self.assertFalse((self.folder / "die").exists(), "no worker died")
            self.assertEqual(len(set(made)), 1, name)

    def test_volume_larger_than_a_worker(self) -> None:
        shape, chunks = (320, 1024, 1024), (64, 256, 256)
        source, target = self.folder / "large.npy", self.folder / "large.zarr"
        out = np.lib.format.open_memmap(source, "w+", np.uint8, shape)
        for z in range(0, shape[0], 64):
            out[z : z + 64] = (np.add.outer(np.arange(64) * 3, np.arange(1024)) // 4 % 200)[:, None].astype(np.uint8)
        del out
        before = max(self.three.run(peak_memory).values())
        codec = TriveletCodec(transform="wavelet", effort="fast", profile="fast")
        dask_volume.convert(self.three, str(source), str(target), codec, chunks)
        grown = max(self.three.run(peak_memory).values()) - before
        # What is mapped of the input counts, too.
        self.assertLess(grown, source.stat().st_size / 2, "bytes that a worker took")
        z = zarr.open_array(target, mode="r")
        for index in (np.s_[100:102], np.s_[:, 17, 1000:], np.s_[319, :, 5]):
            np.testing.assert_array_equal(z[index], np.load(source, mmap_mode="r")[index])
        source.unlink()

    def test_programs(self) -> None:
        """As from a command line."""
        np.save(self.folder / "b.npy", np.arange(20 * 30 * 40, dtype=np.float32).reshape(20, 30, 40))
        command = [sys.executable, ROOT / "samples/dask_volume.py", self.folder / "b.npy", self.folder / "b.zarr"]
        done = subprocess.run(
            [*map(str, command), "--chunk", "10,30,20", "--workers", "1", "--max-error", "0.5"], capture_output=True, text=True
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("(20, 30, 40) float32, 96000 bytes in ", done.stdout)
        back = zarr.open_array(self.folder / "b.zarr", mode="r")[...]
        self.assertLessEqual(np.abs(back - np.load(self.folder / "b.npy")).max(), 0.5)

    def test_video(self) -> None:
        if not PROGRAM:
            self.skipTest("no program")
        frames, width, height = 40, 96, 64
        source = self.folder / "a.y4m"
        with open(source, "wb") as file:
            file.write(f"YUV4MPEG2 W{width} H{height} F25:1 C420jpeg\n".encode())
            noise = np.random.default_rng(2)
            for t in range(frames):
                picture = np.add.outer(np.arange(height) * 2 + 3 * t, np.arange(width)) % 200 + noise.integers(0, 4, (height, width))
                file.write(b"FRAME\n" + picture.astype(np.uint8).tobytes() + bytes([128]) * (width * height // 2))
        options = ["--gop", "8", "--preset", "slow", "--motion", "off"]
        whole = self.folder / "whole.tvl"
        dask_video.run(PROGRAM, "encode", source, whole, "--joinable", *options)
        (self.folder / "die").write_text("")
        for number, (client, part, task) in enumerate(
            ((self.one, 16, dask_video.encode_part), (self.three, 8, dask_video.encode_part), (self.three, 16, encode_part_or_die))
        ):
            target = self.folder / f"video{number}.tvl"
            dask_video.encode(client, PROGRAM, source, target, frames, part, None, options, task)
            self.assertEqual(target.read_bytes(), whole.read_bytes(), number)
        self.assertFalse((self.folder / "die").exists(), "no worker died")
        size = whole.stat().st_size // 2
        small, expected = self.folder / "small.tvl", self.folder / "expected.tvl"
        dask_video.encode(self.three, PROGRAM, source, small, frames, 16, size, options)
        dask_video.run(PROGRAM, "truncate", whole, expected, "--size", size)
        self.assertLessEqual(small.stat().st_size, size)
        self.assertEqual(small.read_bytes(), expected.read_bytes())
        if shutil.which("ffprobe"):
            command = [sys.executable, ROOT / "samples/dask_video.py", source, self.folder / "p.tvl", "--program", PROGRAM]
            command += ["--part", 16, "--workers", 1, "--", *options]
            done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual((self.folder / "p.tvl").read_bytes(), whole.read_bytes())
            done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
            self.assertIn("-y replaces it", done.stderr)


if __name__ == "__main__":
    unittest.main()
