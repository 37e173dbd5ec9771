#!/usr/bin/env python3
"""Compares lossy volumes with SPERR at equal rates: the table of docs/VOLUMES.md "Lossy quality".

    tests/bench/volumes_lossy.py TRIVELET VOLUME_PEERS VOLUME...

TRIVELET and VOLUME_PEERS are the programs of the build; SPERR is imagecodecs'. All codecs get the same samples, integers as
they are (SPERR as floats) and as many bits for each voxel. PSNR has the largest minus the least value as its peak, of whole
numbers as both would be stored. MB are of the samples for each second of processor time, one thread; of SPERR without reading
and writing files.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import imagecodecs
import numpy


def psnr(voxels, decoded):
    error = voxels.astype(numpy.float64) - numpy.rint(decoded)
    peak = float(voxels.max()) - float(voxels.min())
    return 10 * numpy.log10(peak**2 / numpy.mean(error**2))


def timed(call):
    begin = time.process_time()
    result = call()
    return result, time.process_time() - begin


def run(*arguments):
    """Processor time of the program."""
    done = subprocess.run(["/usr/bin/time", "-f", "%U %S", *map(str, arguments)], check=True, capture_output=True, text=True)
    return sum(map(float, done.stderr.split()[-2:]))


def main():
    trivelet, peers, *volumes = sys.argv[1:]
    print("| | bits a voxel | trivelet | dB | enc, dec | SPERR | dB | enc, dec |")
    print("|-|-|-|-|-|-|-|-|")
    with tempfile.TemporaryDirectory() as folder:
        raw, coded, back = (Path(folder) / name for name in ("v.raw", "v.tvl", "back.raw"))
        for volume in volumes:
            told = subprocess.run([peers, volume, "--raw", raw], check=True, capture_output=True, text=True).stdout
            width, height, bits = map(int, told.split()[:3])
            kind = numpy.uint8 if bits <= 8 else numpy.uint16
            voxels = numpy.fromfile(raw, kind).reshape(-1, height, width)
            floats = numpy.ascontiguousarray(voxels.astype(numpy.float32))
            speed = lambda seconds: f"{voxels.nbytes / max(seconds, 0.01) / 1e6:.0f}"
            for rate in (0.5, 1):
                encode = run(trivelet, "encode", raw, coded, "-y", "--quiet", "--no-verify", "-t", 1, "--format", "raw", "--size",
                             f"{width}x{height}x{len(voxels)}", "--type", "u8" if bits <= 8 else "u16", "--bpp", rate)
                decode = run(trivelet, "decode", coded, back, "-y", "--quiet", "-t", 1)
                ours = psnr(voxels, numpy.fromfile(back, kind).reshape(voxels.shape))
                sperr, their_encode = timed(lambda: imagecodecs.sperr_encode(floats, rate, "bpp", numthreads=1))
                decoded, their_decode = timed(lambda: imagecodecs.sperr_decode(sperr, numthreads=1))
                theirs = psnr(voxels, decoded.reshape(voxels.shape))
                print(f"| {Path(volume).name} | {rate} | {coded.stat().st_size:,} | {ours:.2f} | {speed(encode)}, {speed(decode)} "
                      f"| {len(sperr):,} | {theirs:.2f} | {speed(their_encode)}, {speed(their_decode)} |", flush=True)


if __name__ == "__main__":
    main()
