#!/usr/bin/env python3
"""Memory of encoding and decoding 1080p: at most what docs/RESULTS.md says, for any length of video.

    tests/program/memory_test.py path/to/trivelet
"""

import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ENCODING = 620  # MB, without motion
DECODING = {"off": 340, "on": 340}  # by --motion
WIDTH, HEIGHT = 1920, 1080
FRAMES = 66 if os.environ.get("TRIVELET_FULL") else 36  # more than a group of frames: the next one is read meanwhile


def texture(width: int, seed: int) -> bytes:
    return bytes(128 + round(50 * math.sin((x + seed) / 90) + 40 * math.sin((x + seed) / 23)) for x in range(width))


def write_clip(path: Path) -> None:
    """Stripes that move, so that there is something to code."""
    with open(path, "wb") as f:
        f.write(f"YUV4MPEG2 W{WIDTH} H{HEIGHT} F25:1 Ip A1:1 C420jpeg\n".encode())
        rows = [texture(WIDTH, 0) * 2, texture(WIDTH // 2, 1) * 2, texture(WIDTH // 2, 2) * 2]
        for t in range(FRAMES):
            f.write(b"FRAME\n")
            for row, half in zip(rows, (0, 1, 1)):
                width = WIDTH >> half
                for y in range(HEIGHT >> half):
                    at = (3 * y + 2 * t) % width
                    f.write(row[at : at + width])


def within(limit: float, command: list) -> bool:
    """Runs a command that succeeds in at most `limit` MB."""
    process = subprocess.Popen([*command, "--quiet", "--threads", "2"])
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    peak = usage.ru_maxrss * 1024 / 1e6
    seconds = usage.ru_utime + usage.ru_stime
    print(f"{command[1]}: exit {process.returncode}, {peak:.0f} MB of {limit}, {seconds:.2f} s of the processor")
    return process.returncode == 0 and peak <= limit


def main() -> int:
    program = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        clip, stream = Path(folder) / "clip.y4m", Path(folder) / "clip.tvl"
        write_clip(clip)
        good = within(ENCODING, [program, "encode", clip, stream, "--motion", "off"])
        good &= within(DECODING["off"], [program, "decode", stream, "null"])
        moving = [program, "encode", clip, stream, "-y", "--motion", "on", "--preset", "fast"]
        good &= within(math.inf, moving)
        good &= within(DECODING["on"], [program, "decode", stream, "null"])
    return 0 if good else 1


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main())
