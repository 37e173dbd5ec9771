#!/usr/bin/env python3
"""Volumes of many kinds, made from fixed seeds: what Trivelet makes of them, beside zstd -19, xz and JPEG XL.

    tests/bench/volume_kinds.py [--program PATH] [--peers] [--only NAME;...] [--keep FOLDER]

Prints bytes of `fast`, `medium` and `slow`, lossless. With --peers also those of zstd -19, xz -9e and cjxl -d 0 -e 7
(slices below each other in one picture; integers of 8 and 16 bits), as far as they are installed, and the ratios of
`fast`, `medium` and `slow` to the best of them. Exits with 1 if a preset with more effort is larger, or if `medium` is
more than 2 % and 450 bytes (the file's header, boxes and checksums) above the best. Needs numpy (Debian:
python3-numpy).
"""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import numpy as np

MOST_OF_BEST = 1.02
CONTAINER_BYTES = 450
TYPES = {"u1": "uint8", "u2": "uint16", "i2": "int16", "f4": "float", "f8": "double"}


def smooth(rng, shape, cells):
    """Noise of so many cells an axis, interpolated linearly to the shape; about normal."""
    grid = rng.standard_normal([cells] * 3 if isinstance(cells, int) else cells)
    for axis, size in enumerate(shape):
        at = np.linspace(0, grid.shape[axis] - 1, size)
        low = np.minimum(at.astype(int), max(grid.shape[axis] - 2, 0))
        part = (at - low).reshape([-1 if i == axis else 1 for i in range(3)])
        high = np.minimum(low + 1, grid.shape[axis] - 1)
        grid = np.take(grid, low, axis) * (1 - part) + np.take(grid, high, axis) * part
    return grid


def regions(rng, shape, labels):
    """Segmented shapes: the nearest of so many points after a smooth distortion, inside an ellipsoid."""
    axes = [np.linspace(-1, 1, n) if n > 2 else np.linspace(0, 0.05 * (n - 1), n) for n in shape]
    where = np.stack(np.meshgrid(*axes, indexing="ij"))
    bent = where + 0.12 * np.stack([smooth(rng, shape, 7) for _ in range(3)])
    bent += 0.02 * np.stack([smooth(rng, shape, 23) for _ in range(3)])
    nearest = np.full(shape, np.inf)
    out = np.zeros(shape, np.uint8)
    for label in range(1, labels + 1):
        distance = ((bent - rng.uniform(-0.9, 0.9, 3).reshape(3, 1, 1, 1)) ** 2).sum(0)
        closer = distance < nearest
        nearest[closer] = distance[closer]
        out[closer] = label
    out[(where**2).sum(0) + 0.1 * smooth(rng, shape, 9) > 0.9] = 0
    return out


def tissue(rng, shape, noise):
    """A scan of 12 bits: smooth parts, edges and noise."""
    v = 900 + 500 * smooth(rng, shape, 6) + 400 * (smooth(rng, shape, 9) > 0.4) + noise * rng.standard_normal(shape)
    return np.clip(np.rint(v), 0, 4095).astype(np.int64)


def kinds():
    """Name, and what makes the volume (z, y, x)."""
    def rng(seed):
        return np.random.default_rng(seed)
    labels = lambda: regions(rng(1), (80, 128, 120), 142)
    return {
        "labels 142": labels,
        "labels enlarged": lambda: np.kron(labels()[20:60, 20:100, 20:100], np.ones((2, 2, 2), np.uint8)),
        "labels of noise": lambda: np.digitize(
            smooth(rng(2), (64, 128, 128), 40), [-0.8, -0.3, 0.0, 0.3, 0.8]).astype(np.uint8),
        "labels u16": lambda: labels().astype(np.uint16) * 1031 % 40009,
        "labels f32": lambda: labels().astype(np.float32),
        "mask": lambda: (regions(rng(3), (80, 128, 120), 5) > 2).astype(np.uint8) * 255,
        "mask of noise": lambda: (smooth(rng(4), (64, 128, 128), 60) > 0.5).astype(np.uint8),
        "mask, white": lambda: (rng(5).random((32, 128, 128)) < 0.1).astype(np.uint8),
        "sparse points": lambda: ((rng(6).random((64, 128, 128)) < 0.001) *
                                  rng(7).integers(1, 4000, (64, 128, 128))).astype(np.uint16),
        "photons": lambda: (100 + 37 * rng(8).poisson(
            np.exp(smooth(rng(9), (32, 128, 128), 9) - 0.5))).astype(np.uint16),
        "photons, levels": lambda: (rng(10).poisson(np.exp(1.5 * smooth(rng(11), (32, 128, 128), 9) - 2)) *
                                    257).astype(np.uint16),
        "grid 257": lambda: (tissue(rng(12), (32, 128, 128), 6) // 16 * 257 +
                             rng(13).integers(0, 6, (32, 128, 128))).astype(np.uint16),
        "multiples of 16": lambda: (tissue(rng(14), (32, 128, 128), 8) * 16).astype(np.uint16),
        "whole f32": lambda: tissue(rng(15), (32, 128, 128), 8).astype(np.float32),
        "whole f64": lambda: tissue(rng(16), (24, 96, 128), 8).astype(np.float64),
        "tenths f32": lambda: (tissue(rng(17), (32, 128, 128), 8).astype(np.float32) / np.float32(10)),
        "one slice": lambda: tissue(rng(18), (1, 512, 512), 8).astype(np.uint16),
        "two slices": lambda: tissue(rng(19), (2, 320, 320), 8).astype(np.uint16),
        "one slice of labels": lambda: regions(rng(20), (1, 512, 512), 60),
        "two slices of labels": lambda: regions(rng(21), (2, 320, 320), 60),
        "noise u8": lambda: rng(22).integers(0, 256, (16, 128, 128)).astype(np.uint8),
        "noise u16": lambda: rng(23).integers(0, 65536, (16, 128, 128)).astype(np.uint16),
        "noisy scan": lambda: tissue(rng(24), (32, 128, 128), 300).astype(np.uint16),
        "scan i16": lambda: (tissue(rng(25), (48, 128, 128), 8) - 1024).astype(np.int16),
        "nothing": lambda: np.zeros((32, 128, 128), np.uint8),
        "small": lambda: tissue(rng(26), (5, 24, 20), 8).astype(np.uint16),
    }


def write_nrrd(path, v):
    name = TYPES[v.dtype.str[1:]]
    head = (f"NRRD0004\ntype: {name}\ndimension: 3\nsizes: {v.shape[2]} {v.shape[1]} {v.shape[0]}\n"
            f"endian: little\nencoding: raw\n\n")
    path.write_bytes(head.encode() + v.astype(v.dtype.newbyteorder("<")).tobytes())


def size_of(command, path):
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return path.stat().st_size


def peers_of(v, folder):
    """Bytes of zstd, xz and JPEG XL; None for what is not installed or does not take such values."""
    raw, out = folder / "raw", folder / "out"
    raw.write_bytes(v.tobytes())
    found = []
    found.append(size_of(["zstd", "-19", "-f", "-q", raw, "-o", out], out) if shutil.which("zstd") else None)
    found.append(len(subprocess.run(["xz", "-9e", "-c", raw], check=True, stdout=subprocess.PIPE).stdout)
                 if shutil.which("xz") else None)
    jxl = None
    if shutil.which("cjxl") and v.dtype.itemsize <= 2 and v.dtype.kind in "ui":
        wide = v.astype(np.int32) - (-32768 if v.dtype.kind == "i" else 0)
        picture = folder / "picture.pgm"
        depth = 255 if v.dtype.itemsize == 1 else 65535
        pixels = wide.astype(">u2" if depth > 255 else "u1").tobytes()
        picture.write_bytes(f"P5\n{v.shape[2]} {v.shape[0] * v.shape[1]}\n{depth}\n".encode() + pixels)
        jxl = size_of(["cjxl", "-d", "0", "-e", "7", picture, folder / "out.jxl"], folder / "out.jxl")
    return found + [jxl]


def main():
    here = pathlib.Path(__file__).resolve().parents[2]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=os.environ.get("TRIVELET", here / "build/release/apps/trivelet"))
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("--only", type=lambda s: s.split(";"), help="kinds, separated by semicolons")
    parser.add_argument("--keep", type=pathlib.Path, help="keeps the volumes in this folder")
    options = parser.parse_args()
    others = " zstd -19 | xz -9e | JPEG XL 7 | fast / best | medium / best | slow / best |"
    print("| volume | fast | medium | slow |" + (others if options.peers else ""))
    print("|-|" + "-|" * (9 if options.peers else 3))
    wrong = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        for name, make in kinds().items():
            if options.only and name not in options.only:
                continue
            v = np.ascontiguousarray(make())
            path = folder / "volume.nrrd"
            write_nrrd(path, v)
            if options.keep:
                options.keep.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, options.keep / f"{name.replace(' ', '_').replace(',', '')}.nrrd")
            ours = [size_of([options.program, "encode", path, folder / "v.tvl", "-y", "--lossless", "--preset",
                             preset], folder / "v.tvl") for preset in ("fast", "medium", "slow")]
            cells = [name] + [str(n) for n in ours]
            if options.peers:
                peers = peers_of(v, folder)
                best = min(p for p in peers if p is not None)
                cells += ["-" if p is None else str(p) for p in peers]
                cells += [f"{size / best:.3f}" for size in ours]
                if ours[1] > MOST_OF_BEST * best + CONTAINER_BYTES:
                    wrong.append(f"{name}: medium takes {ours[1]} bytes, another {best}")
            if ours != sorted(ours, reverse=True):
                wrong.append(f"{name}: more effort takes more bytes")
            print("| " + " | ".join(cells) + " |", flush=True)
    sys.exit("\n".join(wrong) if wrong else 0)


if __name__ == "__main__":
    main()
