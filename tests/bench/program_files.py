#!/usr/bin/env python3
"""Times the program on files: frames a second on a GPU and on CPU threads, with and without start-up.

    tests/bench/program_files.py [--out DIR] [--clip CLIP.y4m] [--frames N] [--devices gpu,cpu,cpu:N]

Encodes N frames (2,000) of a 1080p Y4M file to a .tvl file and decodes it, to nowhere and to a Y4M file, whole
processes, everything in a memory file system (/dev/shm); the best of two. The CPU codes 660 frames, lossy ones; cpu:N is
N threads of it, so that cpu:1,cpu:2,cpu:4 with --frames 132 and a folder of its own show how it scales. "Work" is what -v
says: from when the first frame could be read until the file has its name; what comes before and after is, on a GPU, the
starting and ending of CUDA. A clip of 64 frames tells what a short one takes in all. The clip is played to and fro;
without --clip it is the 1080p one of the shared data, by ffmpeg. Writes gpu_files.csv (tests/bench/data) and prints it.
The program is $TRIVELET, else the newest build of this tree.
"""

from __future__ import annotations

import argparse
import gzip
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
from figures import DATA  # noqa: E402
from measure_figures import gpu_name, machine, save, to_and_fro, y4m  # noqa: E402
from rd_tools import find_program  # noqa: E402

SETTINGS = [("fast", "-q 60"), ("fast", "--lossless"), ("dense", "-q 60"), ("dense", "--lossless")]
COLUMNS = ["device", "profile", "setting", "frames", "encode_s", "encode_work_s", "decode_s", "decode_work_s"]
COLUMNS += ["y4m_s", "short_s"]
REPEAT = 2
SHORT = 64


def timed(command: list[str]) -> tuple[float, float]:
    """Seconds of a process, and of its work without start-up and exit; the best of several runs."""
    best = (1e9, 0.0)
    for _ in range(REPEAT):
        begun = time.monotonic()
        said = subprocess.run([*command, "-v", "-y"], check=True, stderr=subprocess.PIPE, text=True).stderr
        seconds = time.monotonic() - begun
        whole, start = (float(re.search(r"([0-9.]+) " + text, said).group(1)) for text in ("seconds in all", "to set up"))
        if seconds < best[0]:
            best = (seconds, whole - start)
    return best


def rows_of(program: str, device: str, clip: Path, short: Path, frames: int, folder: Path) -> list[list]:
    stream, video, rows = folder / "a.tvl", folder / "a.y4m", []
    for profile, setting in SETTINGS:
        if device != "gpu" and setting == "--lossless":
            continue
        where, _, threads = device.partition(":")
        on = ["--device", where, *(["--threads", threads] if threads else [])]
        encode = [program, "encode", str(clip), str(stream), "--profile", profile, "--motion", "off", *setting.split(), *on]
        coded, coded_work = timed(encode)
        decoded, decoded_work = timed([program, "decode", str(stream), "null", *on])
        written = timed([program, "decode", str(stream), str(video), *on])[0]
        video.unlink()
        encode[2:4] = [str(short), str(folder / "b.tvl")]
        row = [device, profile, setting, frames]
        row += [f"{s:.3f}" for s in (coded, coded_work, decoded, decoded_work, written, timed(encode)[0])]
        print(",".join(map(str, row)), flush=True)
        rows.append(row)
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=DATA, help="folder of the CSV file [tests/bench/data]")
    parser.add_argument("--clip", type=Path, help="a Y4M file of 1080p, also packed by gzip")
    parser.add_argument("--frames", type=int, default=2000)
    parser.add_argument("--devices", default="gpu,cpu")
    options = parser.parse_args()
    program = str(find_program(None))
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=memory) as name:
        folder = Path(name)
        clip = options.clip or y4m("bbb", folder)
        if clip.suffix == ".gz":
            (folder / "clip.y4m").write_bytes(gzip.decompress(clip.read_bytes()))
            clip = folder / "clip.y4m"
        to_and_fro(clip, options.frames, folder / "long.y4m")
        to_and_fro(clip, SHORT, folder / "short.y4m")
        rows = []
        for device in options.devices.split(","):
            frames = options.frames if device == "gpu" else min(options.frames, 660)
            if frames != options.frames:
                to_and_fro(clip, frames, folder / "long.y4m")
            rows += rows_of(program, device, folder / "long.y4m", folder / "short.y4m", frames, folder)
    how = "tests/bench/program_files.py: trivelet encode|decode --device gpu|cpu (encode --motion off), "
    how += "frames of 1080p Y4M in a memory file system"
    where = gpu_name() if "gpu" in options.devices.split(",") else machine()
    save(options.out, "gpu_files", how + "; best of 2", where, COLUMNS, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
