#!/usr/bin/env python3
"""The setting of the work of 2015 that VSTC is after: the first frame of sequences at QP 28 with blocks of 64.

    vstc_sequences.py TRIVELET FILE... --way "NAME=OPTIONS" [--way ...] [--qp 28] [--block 64]

Every way codes every first frame with its options of `trivelet still encode`; "mpirun N" before the options starts N
processes. Prints a Markdown table: bits per pixel and PSNR of luma of the first way, seconds of all, as the program
counts them, and whether streams differ.
"""
import argparse
import json
import pathlib
import shlex
import subprocess
import tempfile


def run(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{shlex.join(map(str, command))}: {done.stderr.strip()}")
    return done.stdout


def encode(trivelet, source, stream, options, settings):
    words = shlex.split(options)
    start = ["mpirun", "--oversubscribe", "-n", words[1]] if words[:1] == ["mpirun"] else []
    rest = words[2:] if start else words
    return json.loads(run([*start, trivelet, "still", "encode", source, stream, "--codec", "vstc", "-y", "--json",
                           *settings, *rest]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trivelet")
    parser.add_argument("files", nargs="+", type=pathlib.Path)
    parser.add_argument("--way", action="append", required=True, metavar="NAME=OPTIONS")
    parser.add_argument("--qp", type=int, default=28)
    parser.add_argument("--block", type=int, default=64)
    options = parser.parse_args()
    ways = [way.partition("=")[::2] for way in options.way]
    settings = ["-q", str(options.qp), "--block", str(options.block)]
    print("| sequence | size | bits/pixel | PSNR of luma | " + " | ".join(f"{name}, s" for name, _ in ways) + " |")
    print("|-|-|-|-|" + "-|" * len(ways))
    with tempfile.TemporaryDirectory() as folder:
        place = pathlib.Path(folder)
        for source in options.files:
            figures, streams = [], []
            for i, (_, way) in enumerate(ways):
                stream = place / f"{i}.tvs"
                figures.append(encode(options.trivelet, source, stream, way, settings))
                streams.append(stream.read_bytes())
            decoded = place / "decoded.y4m"
            run([options.trivelet, "still", "decode", place / "0.tvs", decoded, "-y", "--quiet"])
            luma = json.loads(run([options.trivelet, "compare", source, decoded, "--frames", "1", "--json"]))
            planes = luma.get("planes", {})
            psnr = planes["y"]["psnr"] if "y" in planes else luma["psnr"]
            seconds = [f"{f['seconds']:.2f}" + ("" if s == streams[0] else f" ({f['bits_per_pixel']:.3f} bits)")
                       for f, s in zip(figures, streams)]
            print(f"| {source.stem} | {figures[0]['width']}x{figures[0]['height']} "
                  f"| {figures[0]['bits_per_pixel']:.3f} | {psnr:.2f} | " + " | ".join(seconds) + " |", flush=True)


if __name__ == "__main__":
    main()
