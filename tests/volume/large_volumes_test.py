#!/usr/bin/env python3
"""Series of thousands of points in time, whole and in parts; with TRIVELET_FULL=1 also volumes of more than 2^31 and 2^32
voxels, nearly all of them holes of a sparse file: coded, verified, decoded, and a region at the far end.

    large_volumes_test.py TRIVELET
"""
import os
import struct
import subprocess
import sys
from pathlib import Path
import tempfile

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import program  # noqa: E402
from program import check  # noqa: E402

program.path = sys.argv[1]
FULL = os.environ.get("TRIVELET_FULL", "0") not in ("", "0")


def run(*arguments):
    r = subprocess.run([program.path, *map(str, arguments)], capture_output=True, text=True)
    check(r.returncode == 0, f"{' '.join(map(str, arguments))}: exit code {r.returncode}: {r.stderr[:1000]}")
    return r.stdout + r.stderr


def nrrd(sizes, kind):
    return (f"NRRD0004\ntype: {kind}\nendian: little\ndimension: {len(sizes)}\nsizes: {' '.join(map(str, sizes))}\n"
            "encoding: raw\n\n").encode()


def test_points_in_time(folder, times):
    """A slow wave and a little noise; the bytes are those of the file."""
    width, height, slices = 7, 5, 3
    values, state = [], 1
    for t in range(times):
        for i in range(width * height * slices):
            state = state * 1103515245 + 12345 & 0x7FFFFFFF
            values.append(500 + 9 * i + abs(t % 60 - 30) + (state >> 16) % 3)
    head = nrrd((width, height, slices, times), "uint16")
    voxels = struct.pack(f"<{len(values)}H", *values)
    path, coded, again = (os.path.join(folder, n) for n in ("times.nrrd", "times.tvl", "again.nrrd"))
    open(path, "wb").write(head + voxels)
    for options in ((), ("--preset", "fast"), ("--transform", "wavelet"), ("--preset", "slow"), ("--max-error", 2)):
        run("encode", path, coded, "-y", *options)
        said = run("verify", coded, "--against", path)
        check("--max-error" in options or "identical" in said, f"{times} points in time, {options}: {said}")
        check(f"{slices}x{times}" in run("info", coded), f"{times} points in time are not told")
        if "--max-error" in options:
            continue
        run("decode", coded, again, "-y")
        check(open(again, "rb").read() == head + voxels, f"{times} points in time, {options}: another file came back")
        run("decode", coded, os.path.join(folder, "part.raw"), "-y", "--region", "2,1,1,3,2,2")
        wanted = b"".join(voxels[2 * (((t * slices + z) * height + y) * width + 2):][:6]
                          for t in range(times) for z in (1, 2) for y in (1, 2))
        check(open(os.path.join(folder, "part.raw"), "rb").read() == wanted, f"{times} points in time, {options}: region")


def test_sparse(folder, slices, preset):
    """The corners and the middle of some slices are written, the rest is holes."""
    side = 2048
    head = nrrd((side, side, slices), "uint8")
    path, coded, part = (os.path.join(folder, n) for n in ("sparse.nrrd", "sparse.tvl", "part.raw"))
    with open(path, "wb") as f:
        f.write(head)
        f.truncate(len(head) + side * side * slices)
        for z in (0, 1, slices // 2, 511, 512, slices - 2, slices - 1):
            for y in (0, 1000, side - 1):
                for x in (0, side - 8):
                    f.seek(len(head) + (z * side + y) * side + x)
                    f.write(bytes((z + y + x + i) % 251 + 1 for i in range(8)))
    run("encode", path, coded, "-y", "--preset", preset)
    check("identical" in run("verify", coded, "--against", path), f"{slices} slices, {preset}: verify")
    with open(path, "rb") as f:
        for x, y, z, w, h, d in ((2000, 2000, slices - 10, 48, 48, 10), (0, 990, 505, 20, 20, 12), (0, 0, 0, 9, 3, 2)):
            run("decode", coded, part, "-y", "--region", f"{x},{y},{z},{w},{h},{d}")
            wanted = b""
            for row in range(h * d):
                f.seek(len(head) + ((z + row // h) * side + y + row % h) * side + x)
                wanted += f.read(w)
            check(open(part, "rb").read() == wanted, f"{slices} slices, {preset}: region {x},{y},{z}")
    if preset == "fast":
        again = os.path.join(folder, "again.nrrd")
        run("decode", coded, again, "-y")
        check(subprocess.run(["cmp", path, again]).returncode == 0, f"{slices} slices: another file came back")
        os.remove(again)


with tempfile.TemporaryDirectory() as folder:
    for times in (5000, 40000) if FULL else (5000,):
        test_points_in_time(folder, times)
    if FULL:
        for slices, preset in ((600, "medium"), (1100, "fast")):
            test_sparse(folder, slices, preset)
if program.failures:
    sys.exit(1)
print("all came back")
