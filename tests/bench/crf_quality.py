#!/usr/bin/env python3
"""The -q of trivelet that has the PSNR of x264's --crf, by clip and on average: the table in docs/COMMANDS.md.

    tests/bench/crf_quality.py TRIVELET CLIP...        # needs ffmpeg with libx264; clips of 8 bits

Both encoders are at their defaults (x264: preset medium). PSNR is over all planes, as 'trivelet compare' has it.
"""
import json
import subprocess
import sys
import tempfile
from pathlib import Path

CRFS = (12, 15, 18, 20, 23, 26, 28, 32)
QUALITIES = range(10, 91, 10)


def run(*command):
    return subprocess.run([str(c) for c in command], check=True, capture_output=True, text=True).stdout


def psnr(trivelet, clip, coded):
    return json.loads(run(trivelet, "compare", clip, coded, "--json"))["psnr"]


def measured(trivelet, clip, folder):
    """PSNR and bytes of both encoders: {crf: ...}, {quality: ...}."""
    x264, ours = {}, {}
    for crf in CRFS:
        coded = folder / "x.mp4"
        run("ffmpeg", "-v", "error", "-y", "-i", clip, "-an", "-c:v", "libx264", "-preset", "medium", "-crf", crf, coded)
        x264[crf] = psnr(trivelet, clip, coded), coded.stat().st_size
    for quality in QUALITIES:
        coded = folder / "x.tvl"
        run(trivelet, "encode", clip, coded, "-q", quality, "-y", "--quiet")
        ours[quality] = psnr(trivelet, clip, coded), coded.stat().st_size
    return x264, ours


def quality_at(ours, wanted):
    """Between the two qualities around a PSNR; None outside."""
    points = sorted(ours.items())
    for (low, (below, _)), (high, (above, _)) in zip(points, points[1:]):
        if below <= wanted <= above:
            return low + (high - low) * (wanted - below) / (above - below)
    return None


def main():
    trivelet, *clips = sys.argv[1:]
    table = {crf: [] for crf in CRFS}
    with tempfile.TemporaryDirectory() as name:
        for clip in clips:
            x264, ours = measured(trivelet, clip, Path(name))
            for crf in CRFS:
                table[crf].append(quality_at(ours, x264[crf][0]))
    print("| --crf | -q | " + " | ".join(Path(c).stem.split("_")[0] for c in clips) + " |")
    print("|-|-|" + "-|" * len(clips))
    for crf, found in table.items():
        known = [q for q in found if q is not None]
        mean = f"{sum(known) / len(known):.0f}" if known else "-"
        print(f"| {crf} | **{mean}** | " + " | ".join("-" if q is None else f"{q:.1f}" for q in found) + " |")


if __name__ == "__main__":
    main()
