#!/usr/bin/env python3
"""Compares 'trivelet plan' with the reads of 'trivelet decode' and with the bytes that the format requires.

    tests/program/plan_reads_test.py path/to/trivelet

Of ten requests: the plan is made in few rounds; decoding reads nothing that was not planned (strace, where it is
installed); a file with holes that has the planned bytes alone decodes to the same; and the plan is at most 1.15 times the
bytes of the headers and of the blocks that are needed, which are counted here from the chunks of the stream by the
reference decoder.
"""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "reference"))
import reference_decoder as reference  # noqa: E402

MOST = 1.15
SUPPORT = 2  # coefficients beside a sample that the 5/3 wavelet takes, at every level
EVERY = (b"Head", b"Gop ", b"Indx", b"Done", b"Volm", b"Mask")
program = ""
failures = []


def call(*arguments) -> str:
    return subprocess.run([program, *map(str, arguments)], check=True, capture_output=True, text=True).stdout


def make_volume(path: Path, width: int, height: int, slices: int) -> None:
    """Shells around a middle, and noise."""
    z, y, x = np.ogrid[:slices, :height, :width]
    distance = np.sqrt(((x - width / 2) / width) ** 2 + ((y - height / 2) / height) ** 2 + ((z - slices / 2) / slices) ** 2)
    noise = np.random.default_rng(7).integers(0, 24, (slices, height, width))
    voxels = (900 * np.cos(23 * distance) + noise).astype("<i2")
    path.write_bytes(
        f"NRRD0004\ntype: int16\ndimension: 3\nsizes: {width} {height} {slices}\nendian: little\nencoding: raw\n\n".encode()
        + voxels.tobytes())


def make_video(path: Path, width: int, height: int, frames: int) -> None:
    y, x = np.ogrid[:height, :width]
    noise = np.random.default_rng(8).integers(0, 16, (height, width + 4 * frames))
    with open(path, "wb") as f:
        f.write(b"YUV4MPEG2 W%d H%d F25:1 Cmono\n" % (width, height))
        for t in range(frames):
            picture = 120 + 60 * np.sin((x + 3 * t) / 11) * np.cos(y / 17) + noise[:, 3 * t: 3 * t + width]
            f.write(b"FRAME\n" + picture.astype(np.uint8).tobytes())


class Sizes:
    """Of a stream the bytes that a request needs: headers, and blocks of chunks."""

    def __init__(self, stream: bytes):
        boxes = list(reference.read_boxes(stream, EVERY))
        self.head = reference.read_head(boxes[0].payload)
        self.gops = []
        self.ends = 0  # what stands before, between and behind the GOPs, but for what belongs to one
        for i, box in enumerate(boxes):
            if box.kind == b"Gop ":
                behind = boxes[i + 1] if i + 1 < len(boxes) and boxes[i + 1].kind == b"part" else None
                checks = behind.end - behind.offset if behind else 0
                self.gops.append((box, reference.read_gop(box.payload, self.head), checks))
            elif box.kind != b"part":
                self.ends += box.end - box.offset
        self.ends += 8

    def needed(self, frames=None, reduce: int = 0, temporal_reduce: int = 0, layers: int = 0, box=None) -> int:
        """`frames`: from, up to; `box`: x, y, width, height at full size."""
        total = self.ends
        for gop_box, gop, checks in self.gops:
            if frames and not (gop.first_frame < frames[1] and gop.first_frame + gop.frames > frames[0]):
                continue
            chunks = sum(map(len, gop.chunks.values()))
            total += gop_box.end - gop_box.offset - chunks
            components = [reference.Component(self.head, info, gop) for info in self.head.components] if box else []
            taken = {}
            for key, data in gop.chunks.items():
                layer, band, distance = key
                if (layers and layer >= layers) or distance < reduce or band >= self.head.bands - temporal_reduce:
                    continue
                total += len(data)
                if box:
                    reference.read_chunk(data, layer, band, distance, components, gop, 0)
                    taken[band, distance] = True
            if not box:
                continue
            total += checks
            for component in components:
                size = self.head.block
                _, columns = component.geometry.block_grid
                for i, block in enumerate(component.blocks):
                    top, left = i // columns * size, i % columns * size
                    for (band, k), segment in block.segments.items():
                        distance = component.info.levels - k
                        edge = 0 if self.head.profile == reference.PREDICTIVE else SUPPORT << component.geometry.level(k)
                        inside = (left < box[0] + box[2] + edge and left + size > box[0] - edge
                                  and top < box[1] + box[3] + edge and top + size > box[1] - edge)
                        if (band, distance) in taken and not inside:
                            total -= len(segment.codeword)
        return total


def ranges_read(log: str, name: str):
    """What strace saw to be read of a file: from, up to."""
    position, begun = {}, {}
    for line in log.splitlines():
        thread, line = line.split(None, 1)
        if line.endswith("<unfinished ...>"):  # another thread's call comes between
            begun[thread] = line.removesuffix("<unfinished ...>")
            continue
        if line.startswith("<... "):
            line = begun.pop(thread) + line.split("resumed>", 1)[1]
        found = re.match(rf"(\w+)\((?:\w+, [^<]*)?(\d+)<[^>]*/{re.escape(name)}>, (.*)\) += (-?\d+)", line)
        if not found:
            continue
        what, file, rest, result = found[1], found[2], found[3], int(found[4])
        if what == "lseek":
            position[file] = result
        elif what == "read":
            yield position.get(file, 0), position.get(file, 0) + result
            position[file] = position.get(file, 0) + result
        elif what == "pread64":
            begin = int(rest.rsplit(", ", 1)[1])
            yield begin, begin + result
        elif what != "fstat":
            failures.append(f"{what} reads, which is not counted here: {line}")


def can_trace(folder: Path) -> bool:
    try:
        return subprocess.run(["strace", "-o", folder / "log", "true"], capture_output=True).returncode == 0
    except FileNotFoundError:
        return False


def check(name: str, stream: Path, request, folder: Path, needed: int, rounds: int, traces: bool) -> None:
    plan = json.loads(call("plan", "--json", "--quiet", stream, *request))
    ranges = [(r["offset"], r["offset"] + r["bytes"]) for r in plan["ranges"]]
    data = stream.read_bytes()
    sparse = folder / "sparse.tvl"
    with open(sparse, "wb") as f:
        f.truncate(len(data))
        for begin, end in ranges:
            f.seek(begin)
            f.write(data[begin:end])
    extension = ".nrrd" if b"Volm" in data[: 1 << 16] else ".y4m"
    whole, part = folder / ("whole" + extension), folder / ("part" + extension)
    call("decode", stream, whole, "-y", "--quiet", *request)
    command = [program, "decode", sparse, part, "-y", "--quiet", *request]
    if traces:
        calls = "read,readv,pread64,preadv,preadv2,lseek,mmap,sendfile,copy_file_range,splice"
        command = ["strace", "-f", "-y", "-s", "1", "-o", folder / "log", "-e", "trace=" + calls, *command]
    subprocess.run(list(map(str, command)), check=True)
    bad = []
    if whole.read_bytes() != part.read_bytes():
        bad.append("the planned bytes alone decode to something else")
    read = set()
    if traces:
        for begin, end in ranges_read((folder / "log").read_text(), "sparse.tvl"):
            read.update(range(begin, end))
        beyond = read - {i for begin, end in ranges for i in range(begin, end)}
        if beyond or not read:
            bad.append(f"{len(beyond)} bytes read that were not planned, from {min(beyond, default=0)}")
    if plan["rounds"] > rounds:
        bad.append(f"more than {rounds} rounds")
    if plan["bytes"] > MOST * needed:
        bad.append(f"more than {MOST} times what is needed")
    print(f"{name:34} of {len(data):8}: needed {needed:8}, planned {plan['bytes']:8} ({plan['bytes'] / needed:.3f})"
          f" in {plan['rounds']}, read {len(read) if traces else '-':>8}  {'; '.join(bad)}")
    if bad:
        failures.append(f"{name}: {'; '.join(bad)}")


def main() -> int:
    reference.Block.build = lambda *_: None  # sizes alone: no trees
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        traces = can_trace(folder)
        if not traces:
            print("strace is not there or may not trace: what is read is not looked at")
        make_volume(folder / "volume.nrrd", 192, 160, 32)
        make_video(folder / "video.y4m", 320, 192, 32)
        volume, predicted, video = (folder / f"{n}.tvl" for n in ("volume", "predicted", "video"))
        call("encode", folder / "volume.nrrd", volume, "--transform", "wavelet", "--gop", 8, "--block-size", 32, "--levels", "2x3",
             "--layers", 4, "--quiet")
        call("encode", folder / "volume.nrrd", predicted, "--transform", "prediction", "--gop", 8, "--block-size", 32, "--quiet")
        call("encode", folder / "video.y4m", video, "--gop", 8, "--levels", "2x3", "--layers", 4, "--motion", "off",
             "--quiet", "-q", 80)
        for stream, name, request, less in (
            (volume, "volume, all", [], {}),
            (volume, "volume, an eighth of the width", ["--reduce", 3], {"reduce": 3}),
            (volume, "volume, half, two layers", ["--reduce", 1, "--max-layers", 2], {"reduce": 1, "layers": 2}),
            (volume, "volume, six slices", ["--slices", "5:11"], {"frames": (5, 11)}),
            (volume, "volume, a box", ["--region", "70,60,9,48,40,7"], {"frames": (9, 16), "box": (70, 60, 48, 40)}),
            (predicted, "predicted, a box", ["--region", "70,60,9,48,40,7"], {"frames": (9, 16), "box": (70, 60, 48, 40)}),
            (predicted, "predicted, one slice", ["--slices", "20:21"], {"frames": (20, 21)}),
            (video, "video, ten frames", ["--frames", "12:22"], {"frames": (12, 22)}),
            (video, "video, half the size and rate", ["--reduce", 1, "--temporal-reduce", 1], {"reduce": 1, "temporal_reduce": 1}),
            (video, "video, a layer of some frames", ["--frames", "3:9", "--max-layers", 1], {"frames": (3, 9), "layers": 1}),
        ):
            rounds = 2 if "box" in less else 3  # as plan.h says
            check(name, stream, request, folder, Sizes(stream.read_bytes()).needed(**less), rounds, traces)
    for line in failures:
        print("FAILED:", line)
    return 1 if failures else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    program = str(Path(sys.argv[1]).resolve())
    sys.exit(main())
