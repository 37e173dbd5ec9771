#!/usr/bin/env python3
"""Several emulated GPUs in one process: the CPU's bytes, in order, and one clear error when one GPU fails.

    tests/gpu/devices_test.py path/to/trivelet_emulated
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
from program import complain, failures  # noqa: E402

WIDTH, HEIGHT, FRAMES = 64, 48, 48
IN_TIME = 120  # seconds, also under sanitizers

program = ""


def run(arguments, gpus=3, failure="", queues="", **how):
    environment = dict(os.environ, TRIVELET_EMULATED_GPUS=str(gpus), TRIVELET_EMULATED_QUEUES=queues)
    environment.pop("CUDA_DEVICE_MAX_CONNECTIONS", None)
    if failure:
        environment["TRIVELET_EMULATED_FAILURE"] = failure
    if "input" not in how:
        how["stdin"] = subprocess.DEVNULL
    return subprocess.run([program, *arguments], capture_output=True, timeout=IN_TIME, env=environment, **how)


def shares(result):
    """GOPs that each GPU coded or decoded, as -v says."""
    said = re.search(r"GPUs (?:de)?coded ([0-9 +]+) GOPs", result.stderr.decode(errors="replace"))
    return [int(n) for n in said.group(1).split("+")] if said else []


def encoded(name, options, device, used, source="in.y4m", **how):
    one = run(["encode", source, "one.tvl", *options, "--device", "cpu", "-y", "--quiet"], **how)
    many = run(["encode", source, "many.tvl", *options, "--device", device, "-y", "-v"], **how)
    if one.returncode or many.returncode:
        return complain(f"encode, {name}", many if many.returncode else one)
    if Path("one.tvl").read_bytes() != Path("many.tvl").read_bytes():
        complain(f"encode, {name}: not the bytes of the CPU")
    if len(shares(many)) != used or min(shares(many), default=0) < 1:
        complain(f"encode, {name}: GPUs had {shares(many)} GOPs", many)


def main():
    global program
    program = str(Path(sys.argv[1]).resolve())
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        size = WIDTH * HEIGHT * 3 // 2
        texture = bytes((x * x * 7 + (x >> 5) * 13 + (x % 91)) & 255 for x in range(size + 8 * FRAMES))
        frames = b"".join(b"FRAME\n" + texture[8 * f:8 * f + size] for f in range(FRAMES))
        Path("in.y4m").write_bytes(f"YUV4MPEG2 W{WIDTH} H{HEIGHT} F25:1 Ip C420jpeg\n".encode() + frames)
        noise = bytes((x * x >> 3 ^ x * 1103515245 >> 16) & 255 for x in range(size))
        still = b"".join(b"FRAME\n" + (noise if f // 8 % 2 else frames[6:6 + size]) for f in range(FRAMES))
        Path("scenes.y4m").write_bytes(Path("in.y4m").read_bytes().split(b"\n", 1)[0] + b"\n" + still)
        fast = ["--preset", "fast", "--gop", "4"]
        encoded("fast, all GPUs", fast, "gpu:all", 3)
        encoded("fast along motion", [*fast, "--motion", "on", "--keyint", "9"], "gpu:0,1", 2)
        encoded("dense along motion", ["--gop", "4", "--motion", "on", "--keyint", "9"], "gpu:0,1", 2)
        # Each scene is measured by who codes it, and GOPs like it by nobody.
        encoded("dense, scenes", ["--gop", "4", "--motion", "off"], "gpu:all", 3, "scenes.y4m")
        encoded("dense, lossless, two of three", ["--lossless", "--transform", "wavelet", "--gop", "6", "--motion", "off"], "gpu:2,0", 2)
        encoded("a size", ["--gop", "2", "--size", "20k", "--motion", "off"], "gpu:all", 3)  # three runs of 8 GOPs
        encoded("a pipe", fast, "gpu:0,1", 2, "-", input=Path("in.y4m").read_bytes())

        # The driver creates its work queues at the first call, whatever is asked for later.
        for device in ("gpu", "gpu:all", "gpu:1,0"):
            for options, queues in ((["--motion", "on"], "17"), ([], "17"), (["--motion", "off"], "8"),
                                    (["--preset", "fast", "--motion", "off"], "4")):
                coded = run(["encode", "in.y4m", "q.tvl", "--gop", "4", *options, "--device", device, "-y"],
                            queues="queues")
                if coded.returncode or Path("queues").read_text() != queues:
                    complain(f"{Path('queues').read_text()} work queues for {options} on {device}", coded)

        run(["encode", "in.y4m", "fast.tvl", *fast, "--device", "cpu", "-y"])
        run(["decode", "fast.tvl", "one.y4m", "--device", "cpu", "-y"])
        for name in ("many.y4m", "-"):
            many = run(["decode", "fast.tvl", name, "--device", "gpu:all", "-y", "-v"])
            written = many.stdout if name == "-" else Path(name).read_bytes()
            if many.returncode or written != Path("one.y4m").read_bytes():
                complain(f"decode to {name}: not the bytes of the CPU", many)
            if name == "-" and (len(shares(many)) != 3 or min(shares(many)) < 1):
                complain(f"decode: GPUs had {shares(many)} GOPs", many)
        dropped = run(["decode", "fast.tvl", "null", "--device", "gpu:all", "-y", "-v"])
        if dropped.returncode or b"3 GPUs, each dropped what it decoded" not in dropped.stderr or \
                b"48 frames," not in dropped.stderr:
            complain("decode to null", dropped)
        checked = run(["verify", "fast.tvl", "--device", "gpu:all"])
        if checked.returncode or b"OK, 48 frames in 12 GOPs" not in checked.stdout:
            complain("verify", checked)

        # Dense volumes without loss have small blocks and slabs where a GPU is asked for.
        Path("v.raw").write_bytes(bytes((x * x * 7 + x // 40 * 13) & 255 for x in range(40 * 36 * 34)))
        volume = ["encode", "v.raw", "v.tvl", "--size", "40x36x34", "--type", "u8", "--format", "raw", "--transform",
                  "wavelet", "-y"]
        for device, block, slab in (("cpu", 128, 34), ("gpu", 32, 32)):
            coded = run([*volume, "--device", device])
            info = run(["info", "v.tvl", "--json"])
            told = json.loads(info.stdout)["coding"]
            back = run(["decode", "v.tvl", "back.raw", "--device", device, "-y"])
            if coded.returncode or back.returncode or Path("back.raw").read_bytes() != Path("v.raw").read_bytes():
                complain(f"a dense volume, {device}", back if back.returncode else coded)
            if (told["block_size"], told["gop_frames"]) != (block, slab):
                complain(f"a dense volume, {device}: blocks of {told['block_size']}, slabs of {told['gop_frames']}", info)

        # The benchmark runs on all, and says whether bytes and samples are the CPU's.
        bench = ["bench", "gpu", "--size", "16x16", "--frames", "4", "--gop", "2", "--profile", "fast", "--repeat", "1"]
        figures = run([*bench, "--codec-only", "--in-flight", "2", "--device", "gpu:1,2"])
        rows = re.findall(r"^(encode|decode) +2 +([0-9]+) ", figures.stdout.decode(), re.MULTILINE)
        if figures.returncode or b"on 2 GPUs at once" not in figures.stdout or len(rows) != 2:
            complain("bench gpu on two GPUs", figures)
        for arguments, why in (([*bench, "--device", "gpu:all"], b"--codec-only"),
                               (["bench", "in.y4m", "--device", "gpu:all"], b"several")):
            refused = run(arguments)
            if refused.returncode != 2 or why not in refused.stderr:
                complain(f"{arguments[1]} on all GPUs is not refused", refused)
        failed = run([*bench, "--codec-only", "--device", "gpu:all"], failure="1:60")
        if failed.returncode == 0 or failed.stderr.count(b"trivelet: error:") != 1 or b"launch failure" not in failed.stderr:
            complain("bench gpu: a GPU fails, not one message", failed)

        for device, why in (("gpu:0,0", "twice"), ("gpu:0,7", "gpu:7"), ("gpu:0,x", "is not"), ("gpu:", "is not"),
                            ("gpu:1,", "is not")):
            refused = run(["encode", "in.y4m", "no.tvl", "--device", device])
            if refused.returncode == 0 or why not in refused.stderr.decode() or Path("no.tvl").exists():
                complain(f"--device {device} is not refused", refused)
        for device in ("gpu", "gpu:all"):
            refused = run(["encode", "in.y4m", "no.tvl", "--motion", "on", "--preset", "slow", "--device", device])
            if refused.returncode == 0 or b"another preset" not in refused.stderr or Path("no.tvl").exists():
                complain(f"--preset slow along motion on {device} is not refused", refused)
        refused = run(["play", "fast.tvl", "--device", "gpu:0,1"])
        if refused.returncode == 0 or b"one GPU" not in refused.stderr:
            complain("play on two GPUs is not refused", refused)

        for arguments in (["encode", "in.y4m", "x.tvl", *fast], ["decode", "fast.tvl", "x.y4m"],
                          ["decode", "fast.tvl", "x.md5", "--format", "md5"]):
            failed = run([*arguments, "--device", "gpu:all", "--quiet"], failure="1:60")
            if failed.returncode == 0 or failed.stderr.count(b"trivelet: error:") != 1 or b"launch failure" not in failed.stderr:
                complain(f"{arguments[0]}: a GPU fails, not one message", failed)
            left = [p.name for p in Path(".").iterdir() if p.name.startswith("x.")]
            if left:
                complain(f"{arguments[0]}: a GPU fails, left {left}", failed)
        os.chdir("/")
    print("devices_test:", f"{len(failures)} failures" if failures else "all good")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
