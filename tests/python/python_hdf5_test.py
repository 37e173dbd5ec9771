#!/usr/bin/env python3
"""The HDF5 filter and the Python package's support for it, checked with h5py, h5dump and h5repack.

tests/python/python_hdf5_test.py [path/to/libtrivelet.so.1 path/to/libh5trivelet.so] [unittest's arguments]

Without paths, of an installed package.
"""

import logging
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest
from pathlib import Path

plugin = None
if len(sys.argv) > 2 and not sys.argv[1].startswith("-"):
    library, plugin = Path(sys.argv.pop(1)).resolve(), Path(sys.argv.pop(1)).resolve()
    if not library.exists() or not plugin.exists():
        print(f"skipped: {library} or {plugin} was not built")
        sys.exit(77)
    os.environ["TRIVELET_LIBRARY"] = str(library)
    os.environ["HDF5_PLUGIN_PATH"] = str(plugin.parent)
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))
try:
    import h5py
    import numpy as np
except ImportError:
    print("skipped: no h5py")
    sys.exit(77)

import trivelet
import trivelet.hdf5

logging.getLogger("trivelet").addHandler(logging.NullHandler())
RANDOM = np.random.default_rng(3)


def blob(shape, dtype="i2"):
    grid = np.meshgrid(*[np.linspace(0, 3, n) for n in shape], indexing="ij")
    return (sum(np.sin(g * (i + 1)) for i, g in enumerate(grid)) * 90 + 300 + RANDOM.normal(0, 2, shape)).astype(dtype)


def tool(*command):
    """An HDF5 program of the system, which finds the filter by its environment."""
    environment = {**os.environ, "HDF5_PLUGIN_PATH": str(plugin.parent if plugin else trivelet.hdf5.plugin_path())}
    return subprocess.run([str(c) for c in command], env=environment, capture_output=True, text=True)


class Hdf5(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.path = self.folder / "a.h5"

    def chunks_of(self, name):
        with h5py.File(self.path) as file:
            d = file[name]
            return [d.id.read_direct_chunk(d.id.get_chunk_info(i).chunk_offset) for i in range(d.id.get_num_chunks())]

    def test_types_and_shapes(self) -> None:
        for number, (shape, chunks, dtype) in enumerate(
            (
                ((20, 30, 40), (7, 30, 16), "<i2"),
                ((20, 30), (20, 8), ">u4"),
                ((50,), (20,), "<f8"),
                ((3, 1, 9, 30, 20), (2, 1, 9, 16, 20), "u1"),
                ((3, 4, 20, 20), (1, 4, 10, 20), ">f4"),
                ((5, 5), (1, 1), "<i8"),
            )
        ):
            array = blob(shape, dtype)
            with h5py.File(self.path, "w") as file:
                file.create_dataset("filtered", data=array, chunks=chunks, **trivelet.hdf5.filter())
                direct = file.create_dataset("direct", shape, dtype, chunks=chunks, **trivelet.hdf5.filter())
                trivelet.hdf5.write(direct, array, workers=1 + number % 3)
                self.assertEqual(file["filtered"].dtype, array.dtype)
            self.assertEqual(self.chunks_of("filtered"), self.chunks_of("direct"), (shape, dtype))
            with h5py.File(self.path) as file:
                for name in ("filtered", "direct"):
                    np.testing.assert_array_equal(file[name][...], array)
                    np.testing.assert_array_equal(trivelet.hdf5.read(file[name]), array)
                for _ in range(12):
                    index = tuple(
                        (
                            int(RANDOM.integers(0, n))
                            if RANDOM.integers(0, 4) == 0
                            else slice(*sorted(map(int, RANDOM.integers(0, n + 1, 2))), int(RANDOM.integers(1, 3)))
                        )
                        for n in shape
                    )
                    np.testing.assert_array_equal(trivelet.hdf5.read(file["direct"], index), array[index], str(index))

    def test_modes(self) -> None:
        array = blob((16, 64, 64))
        sizes = {}
        for mode, value in (("lossless", None), ("max_error", 3), ("quality", 50), ("psnr", 50), ("bpp", 2), ("ratio", 10)):
            options = {"mode": mode, "value": value, "transform": "wavelet", "effort": "fast", "layers": 3}
            with h5py.File(self.path, "w") as file:
                file.create_dataset("d", data=array, chunks=array.shape, **trivelet.hdf5.filter(**options))
                made = file.create_dataset("e", array.shape, "i2", chunks=array.shape, **trivelet.hdf5.filter(**options))
                trivelet.hdf5.write(made, array)
                back = file["d"][...]
                self.assertEqual(np.array_equal(back, array), mode == "lossless")
                if mode == "max_error":
                    self.assertLessEqual(int(np.abs(back.astype(int) - array).max()), 3)
                fewer = trivelet.hdf5.read(file["d"], layers=1)
                self.assertFalse(np.array_equal(fewer, back))
            self.assertEqual(self.chunks_of("d"), self.chunks_of("e"))
            sizes[mode] = len(self.chunks_of("d")[0][1])
        self.assertLessEqual(sizes["bpp"], array.size * 2 / 8)
        self.assertLessEqual(sizes["ratio"], array.nbytes / 10)

    def test_parts_and_fill_values(self) -> None:
        array = blob((30, 40, 50))
        with h5py.File(self.path, "w") as file:
            d = file.create_dataset(
                "d", array.shape, "i2", chunks=(10, 16, 50), fillvalue=-7, maxshape=(None,) * 3, **trivelet.hdf5.filter()
            )
            trivelet.hdf5.write(d, array[10:20, 16:], (10, 16, 0))
            expected = np.full_like(array, -7)
            expected[10:20, 16:] = array[10:20, 16:]
            np.testing.assert_array_equal(d[...], expected)
            np.testing.assert_array_equal(trivelet.hdf5.read(d), expected)
            np.testing.assert_array_equal(trivelet.hdf5.read(d, np.s_[5:, ::7, -1]), expected[5:, ::7, -1])
            d.resize((30, 48, 50))  # what was outside is filled
            self.assertTrue((d[:, 40:] == -7).all())
            for wrong in (
                lambda: trivelet.hdf5.write(d, array[:10, :16], (5, 0, 0)),
                lambda: trivelet.hdf5.write(d, array[:9, :16]),
                lambda: trivelet.hdf5.write(d, array[:10, :16].astype(float)),
                lambda: trivelet.hdf5.write(d, array[0]),
                lambda: trivelet.hdf5.read(file.create_dataset("plain", data=array)),
                lambda: trivelet.hdf5.read(d, workers=-1),
            ):
                self.assertRaises(trivelet.ArgumentError, wrong)
            # A chunk that was written without the filter, as HDF5's mask says.
            d.id.write_direct_chunk((0, 0, 0), expected[:10, :16].tobytes(), filter_mask=1)
            np.testing.assert_array_equal(trivelet.hdf5.read(d, np.s_[2:12, :20]), d[2:12, :20])

    def test_refused(self) -> None:
        with h5py.File(self.path, "w") as file:
            for number, (array, chunks, words) in enumerate(
                (
                    (np.zeros((4, 4), "f2"), (4, 4), ()),
                    (np.zeros((4, 4), "c8"), (4, 4), ()),
                    (np.zeros((2,) * 5, "u1"), (2,) * 5, ()),
                    (np.zeros((4, 4), "i2"), (4, 4), (2,)),  # version
                    (np.zeros((4, 4), "i2"), (4, 4), (1, 6)),  # mode
                    (np.zeros((4, 4), "i2"), (4, 4), (1, 0, 0, 5)),  # lossless with a value
                    (np.zeros((4, 4), "i2"), (4, 4), (1, 0, 0, 0, 0, 100)),  # block size
                    (np.zeros((4, 4), "i2"), (4, 4), (1, 0, 0, 0, 0, 0, 200)),  # slab
                    (np.zeros((4, 4), "i2"), (4, 4), (1, 0, 0, 0, 3)),  # transform
                    (np.zeros((4, 4), "i2"), (4, 4), (1,) + (0,) * 8),  # too many
                )
            ):
                with self.assertRaises((OSError, ValueError, RuntimeError), msg=str(words)) as raised:
                    file.create_dataset(
                        str(number), data=array, chunks=chunks, compression=trivelet.hdf5.FILTER_ID, compression_opts=words
                    )
                self.assertIn("Trivelet: ", str(raised.exception))
            for wrong in ({"mode": "best"}, {"mode": "psnr"}, {"value": 3}, {"block_size": 100}):
                self.assertRaises(trivelet.ArgumentError, trivelet.hdf5.filter, **wrong)
            d = file.create_dataset("both", data=blob((8, 8)), chunks=(8, 8), fletcher32=True, **trivelet.hdf5.filter())
            np.testing.assert_array_equal(d[...], file["both"][...])
            self.assertRaises(trivelet.ArgumentError, trivelet.hdf5.read, d)

    def test_damage(self) -> None:
        array = blob((16, 96, 96))
        with h5py.File(self.path, "w") as file:
            d = file.create_dataset("d", data=array, chunks=(16, 96, 48), **trivelet.hdf5.filter())
            good = d.id.read_direct_chunk((0, 0, 48))[1]
        other = trivelet.encode(array[:8, :, :48])
        for damaged in (good[: len(good) // 2], good[:300] + bytes([good[300] ^ 1]) + good[301:], b"x" * 700, other, b"x"):
            with h5py.File(self.path, "r+") as file:
                file["d"].id.write_direct_chunk((0, 0, 48), damaged)
            with h5py.File(self.path) as file:
                np.testing.assert_array_equal(file["d"][..., :48], array[..., :48])
                with self.assertRaises(OSError) as raised:
                    file["d"][...]
                if h5py.version.hdf5_version_tuple < (2,):  # later ones keep to themselves what a filter says
                    self.assertIn("Trivelet: ", str(raised.exception))
                with self.assertRaises(trivelet.Error) as raised:
                    trivelet.hdf5.read(file["d"])
                self.assertIn("chunk (0, 0, 48) of /d", str(raised.exception))

    def test_programs(self) -> None:
        for program in ("h5dump", "h5repack"):
            if not shutil.which(program):
                self.skipTest(f"no {program}")
        array = blob((12, 40, 40))
        plain, packed, other = self.folder / "plain.h5", self.folder / "packed.h5", self.folder / "other.h5"
        with h5py.File(plain, "w") as file:
            file["d"] = array
        words = trivelet.hdf5.client_data(mode="max_error", value=2)
        done = tool("h5repack", "-l", "d:CHUNK=12x40x20", "-f", f"d:UD={trivelet.hdf5.FILTER_ID},0,8,{','.join(map(str, words))}", plain, packed)  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stderr)
        done = tool("h5repack", "-l", "d:CHUNK=6x40x40", packed, other)  # other chunks of the same filter
        self.assertEqual(done.returncode, 0, done.stderr)
        for path in (packed, other):
            with h5py.File(path) as file:
                self.assertEqual(file["d"].id.get_create_plist().get_filter(0)[2][:8], words)
                back = file["d"][...]
                self.assertLessEqual(int(np.abs(back.astype(int) - array).max()), 2 if path == packed else 4)
            said = tool("h5dump", "-d", "/d", "-y", "-w", "0", "-o", self.folder / "dumped", "-b", "LE", path)
            self.assertEqual(said.returncode, 0, said.stderr)
            np.testing.assert_array_equal(np.fromfile(self.folder / "dumped", "<i2").reshape(array.shape), back)

    def test_threads(self) -> None:
        """Several files at once, and what number of threads the environment says."""
        array = blob((16, 64, 64))

        def work(number: int) -> None:
            with h5py.File(self.folder / f"{number}.h5", "w") as file:
                d = file.create_dataset("d", array.shape, "i2", chunks=(8, 32, 32), **trivelet.hdf5.filter())
                trivelet.hdf5.write(d, array, workers=2)
                results[number] = trivelet.hdf5.read(d, workers=3)

        results = {}
        threads = [threading.Thread(target=work, args=(n,)) for n in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for number in range(3):
            np.testing.assert_array_equal(results[number], array)
        with h5py.File(self.path, "w") as file:
            try:
                os.environ["TRIVELET_THREADS"] = "two"
                with self.assertRaises((OSError, ValueError, RuntimeError)) as raised:
                    file.create_dataset("d", data=array, chunks=(8, 32, 32), **trivelet.hdf5.filter())
                self.assertIn("TRIVELET_THREADS is 'two'", str(raised.exception))
                os.environ["TRIVELET_THREADS"] = "2"
                file.create_dataset("e", data=array, chunks=(8, 32, 32), **trivelet.hdf5.filter())
            finally:
                del os.environ["TRIVELET_THREADS"]
            file.create_dataset("f", data=array, chunks=(8, 32, 32), **trivelet.hdf5.filter())
        self.assertEqual(self.chunks_of("e"), self.chunks_of("f"))


if __name__ == "__main__":
    unittest.main()
