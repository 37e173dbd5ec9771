#!/usr/bin/env python3
"""The defaults beside x265 medium and x264 medium, in one table.

    tests/bench/against_x265.py [--csv FILE] [--reuse CSV]... [--sources whole,off,half] [--rates R,...] [--jobs N] CLIP...

A row for each clip and source: BD-rates of the defaults and of --preset slow against x265 medium (-tune psnr), %, by PSNR
of all planes and by VMAF; CPU seconds of encoding and decoding, one thread, as a multiple of x265's and of x264's at the
same PSNR (each at up to four points; what decodes HEVC and H.264 is libavcodec); the distance of the worst frame of a GOP
from the mean, dB. Then means. tests/bench/rd measures the points (--csv keeps them, --reuse takes them from there).

Of each clip that is 1080p also the peak memory of encoding and decoding with two threads; and of the first clip the
latency: how many frames `encode --gop 8` takes before the first GOP is written, when they come one by one.
"""

from __future__ import annotations

import argparse
import csv
import math
import os
import select
import subprocess
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
from rd_tools import Failure, bd_rate, find_program, say  # noqa: E402

OURS, SLOW, ANCHOR, OTHER = "trivelet-q", "trivelet-q --preset slow", "x265-medium", "x264-medium"
RD = Path(__file__).resolve().parent / "rd"


class Row:
    """A measured point: the columns of rd's CSV."""

    def __init__(self, fields: dict[str, str]):
        self.clip, self.codec, self.frames = fields["clip"], fields["codec"], int(fields["frames"])
        for name in ("bytes", "bpp", "psnr", "dip", "encode_msamples", "decode_msamples", "vmaf"):
            setattr(self, name, float(fields[name]))


def measure(options: argparse.Namespace, folder: Path) -> list[Row]:
    table = folder / "points.csv"
    command = [sys.executable, str(RD), "--anchor", ANCHOR, "--codecs", ",".join((OURS, SLOW, OTHER, ANCHOR))]
    command += ["--rates", options.rates, "--sources", options.sources, "--jobs", str(options.jobs), "--csv", str(table)]
    for known in options.reuse:
        command += ["--reuse", known]
    if options.trivelet:
        command += ["--trivelet", options.trivelet]
    result = subprocess.run([*command, *map(str, options.clips)], stdout=sys.stderr)
    if result.returncode != 0:
        raise Failure("rd failed")
    with table.open(newline="") as f:
        return [Row(fields) for fields in csv.DictReader(f)]


def at_psnr(points: list[Row], psnr: float, measure: str) -> float | None:
    """Msamples per CPU second at this PSNR, by linear interpolation of logarithms; None outside of the curve."""
    known = sorted((p.psnr, math.log(getattr(p, measure))) for p in points)
    for (x0, y0), (x1, y1) in zip(known, known[1:]):
        if x0 <= psnr <= x1 and x0 < x1:
            return math.exp(y0 + (y1 - y0) * (psnr - x0) / (x1 - x0))
    return None


def times(own: list[Row], other: list[Row], measure: str) -> float | None:
    """How many times as long `own` takes as `other`, geometric mean of own's points."""
    ratios = []
    for p in own:
        speed = at_psnr(other, p.psnr, measure)
        if speed:
            ratios.append(math.log(speed / getattr(p, measure)))
    return math.exp(sum(ratios) / len(ratios)) if ratios else None


def cells_of(points: list[Row]) -> list[float | None]:
    by = {codec: [p for p in points if p.codec == codec] for codec in (OURS, SLOW, ANCHOR, OTHER)}
    bd = lambda codec, scale: (bd_rate(by[ANCHOR], by[codec], scale) or (None,))[0]  # noqa: E731
    ours = by[OURS]
    return [
        bd(OURS, "psnr"),
        bd(OURS, "vmaf"),
        bd(SLOW, "psnr"),
        bd(SLOW, "vmaf"),
        bd(OTHER, "psnr"),
        times(ours, by[ANCHOR], "encode_msamples"),
        times(ours, by[OTHER], "encode_msamples"),
        times(ours, by[ANCHOR], "decode_msamples"),
        sum(p.dip for p in ours) / len(ours),
        sum(p.dip for p in by[ANCHOR]) / len(by[ANCHOR]),
    ]


HEAD = (
    "| | frames | defaults, PSNR | VMAF | slow, PSNR | VMAF | x264 medium | encoding / x265 | / x264 | decoding / HEVC | dip | of x265 |\n"
    "|-|-|-|-|-|-|-|-|-|-|-|-|"
)


def text_of(values: list[float | None]) -> str:
    texts = []
    for i, v in enumerate(values):
        texts.append("–" if v is None or math.isnan(v) else f"{v:+.1f}".replace("-", "−") if i < 5 else f"{v:.2f}")
    return " | ".join(texts)


def print_table(points: list[Row]) -> None:
    rows = []
    print(HEAD)
    for clip in dict.fromkeys(p.clip for p in points):
        own = [p for p in points if p.clip == clip]
        rows.append(cells_of(own))
        print(f"| {clip} | {own[0].frames} | {text_of(rows[-1])} |")
    known = [[v for v in column if v is not None and not math.isnan(v)] for column in zip(*rows)]
    print(f"| **mean** | | {text_of([sum(v) / len(v) if v else None for v in known])} |")
    print(f"| **worst** | | {text_of([max(v) if v else None for v in known])} |")


def peak_of(command: list[str]) -> int:
    """MB (10^6) that the command takes at most."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    if status != 0:
        raise Failure(f"{' '.join(command)}: failed")
    return round(used.ru_maxrss * 1024 / 1e6)


def print_memory(program: Path, clip: Path, folder: Path) -> None:
    stream = str(folder / "memory.tvl")
    encode = peak_of([str(program), "encode", str(clip), stream, "-y", "--only-video", "--threads", "2"])
    decode = peak_of([str(program), "decode", stream, "null", "--threads", "2"])
    print(f"{clip.name}: {encode} MB at most to encode, {decode} MB to decode, two threads")


def latency(program: Path, gop: int) -> int:
    """Frames that go in, one by one, until the first GOP comes out."""
    width, height, settle = 320, 192, 0.5
    command = [str(program), "encode", "-", "-", "--gop", str(gop), "--quiet"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdin and process.stdout
    process.stdin.write(f"YUV4MPEG2 W{width} H{height} F25:1 Ip A1:1 C420jpeg\n".encode())
    written = b""
    try:
        for frame in range(8 * gop):
            row = bytes((x + 3 * frame) % 199 + 20 for x in range(width))
            process.stdin.write(b"FRAME\n" + row * height + bytes([128]) * (width * height // 2))
            process.stdin.flush()
            while select.select([process.stdout], [], [], settle)[0]:
                written += os.read(process.stdout.fileno(), 1 << 16)
            if b"Gop " in written:
                return frame + 1
    finally:
        process.kill()
        process.wait()
    raise Failure(f"no GOP was written after {8 * gop} frames")


def is_1080p(program: Path, clip: Path) -> bool:
    said = subprocess.run([str(program), "info", str(clip), "--json"], capture_output=True, text=True).stdout
    return '"height": 1080' in said


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("clips", nargs="+", type=Path, metavar="CLIP", help="8-bit video; raw: NAME_WIDTHxHEIGHT….yuv")
    parser.add_argument("--csv", type=Path, metavar="FILE", help="keep the points there")
    parser.add_argument("--reuse", action="append", default=[], metavar="CSV", help="take points from there, not anew")
    parser.add_argument("--rates", default="0.08,0.2,0.5", help="bits per pixel [%(default)s]")
    parser.add_argument("--sources", default="whole", help="of whole, off, half [%(default)s]")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="curves measured side by side [%(default)s]")
    parser.add_argument("--trivelet", metavar="PROGRAM", help="[$TRIVELET, else the newest build of this tree]")
    options = parser.parse_args()
    try:
        program = find_program(options.trivelet)
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            points = measure(options, folder)
            if options.csv:
                options.csv.write_bytes((folder / "points.csv").read_bytes())
            print_table(points)
            print()
            for clip in options.clips:
                if is_1080p(program, clip):
                    print_memory(program, clip, folder)
            print(f"--gop 8: the first GOP is written after {latency(program, 8)} frames")
    except Failure as e:
        say(f"against_x265.py: {e}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
