#!/usr/bin/env python3
"""Measures the figures of README.md and docs/ except the curves, and writes them to tests/bench/data.

    tests/bench/measure_figures.py cpu [--out DIR] [NAME…]   speed memory targets truncate lossless luma ends
    tests/bench/measure_figures.py gpu [--out DIR]           codec on a GPU; the whole program: program_files.py

A CSV file for each table, whose first lines say when, at which commit, on what and how it was measured. Clips are read
from $TRIVELET_DATA/video (else ../shared/data/video); what is not there is skipped, and said so. The program is
$TRIVELET, else the newest build of this tree. Speeds on the CPU are whole processes with one thread, per second of
processor time: reading and writing files counts, waiting for a busy machine does not.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import json
import math
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
from figures import DATA, GPU_SETTINGS, ROOT, SETTINGS  # noqa: E402
from rd_tools import Failure, find_program, load_clip, make_codec, measure, output_of, run, say  # noqa: E402

CLIPS = {
    "bbb": "bbb_1920x1080_24f_yuv420p.x264ll.mkv",
    "film": "bbb_1080p_5s.mp4",
    "basket": "BasketballPass_416x240_100f_yuv420p.mkv",
    "mobile": "mobile_cif_352x288_30f_yuv420p.mkv",
    "calendar": "calendar_720x576_24f_yuv420p.mkv",
    "walk": "walk_720x480_32f_yuv420p.mkv",
}


class Skipped(Exception):
    pass


def clip_path(name: str) -> Path:
    folder = Path(os.environ.get("TRIVELET_DATA", ROOT / "../shared/data")) / "video"
    for path in (folder / CLIPS[name], folder / (CLIPS[name].split(".")[0] + ".tvl")):
        if path.exists():
            return path
    raise Skipped(f"no {CLIPS[name]} in {folder}")


def commit() -> str:
    try:
        return (
            os.environ.get("TRIVELET_COMMIT")
            or output_of(["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"]).strip()
        )
    except (Failure, OSError):
        return "unknown"


def machine() -> str:
    model = platform.machine()
    with open("/proc/cpuinfo") as f:
        for line in f:
            if line.startswith("model name"):
                model = line.split(":")[1].strip()
                break
    return f"{model}, {os.cpu_count()} cores"


def gpu_name() -> str:
    line = output_of(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]).splitlines()[0]
    name, driver = line.split(", ")
    return f"{name}, driver {driver}; host {machine()}"


def save(folder: Path, name: str, how: str, where: str, header: list[str], rows: list[list]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / f"{name}.csv", "w", newline="") as f:
        f.write(f"# {datetime.date.today()}, {commit()}; {where}\n# {how}\n")
        writer = csv.writer(f, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)
    say(f"{folder / name}.csv")


class Program:
    def __init__(self, work: Path):
        self.path = str(find_program(None))
        self.work = work

    def encode(self, source: Path, options: str, stream: str = "s.tvl") -> tuple[Path, float]:
        out = self.work / stream
        return out, run([self.path, "encode", str(source), str(out), "-y", "--quiet", *options.split()])

    def decode(self, stream: Path, to: str = "null", options: str = "") -> float:
        return run([self.path, "decode", str(stream), to, "-y", "--quiet", *options.split()])

    def psnr(self, a: Path, b: Path) -> float:
        said = json.loads(output_of([self.path, "compare", str(a), str(b), "--json"]))
        return math.inf if said["identical"] else said["psnr"]

    def frames(self, stream: Path) -> int:
        return json.loads(output_of([self.path, "info", str(stream), "--json"]))["video"]["frames"]


def y4m(name: str, work: Path) -> Path:
    source, out = clip_path(name), work / f"{name}.y4m"
    if source.suffix == ".tvl":
        run([str(find_program(None)), "decode", str(source), str(out), "-y", "--quiet"])
    else:
        run(["ffmpeg", "-v", "error", "-nostdin", "-y", "-i", str(source), "-f", "yuv4mpegpipe", str(out)])
    return out


def measure_speed(p: Program, out: Path) -> None:
    clip = y4m("bbb", p.work)
    rows = []
    for profile in ("fast", "dense"):
        for setting in SETTINGS:
            encode, decode = [], []
            for _ in range(2):
                stream, seconds = p.encode(clip, f"{setting} --profile {profile} --motion off --threads 1")
                encode.append(seconds)
                decode.append(p.decode(stream, options="--threads 1"))
            frames = p.frames(stream)
            bpp = 8 * stream.stat().st_size / (1920 * 1080 * frames)
            rows.append([profile, setting, f"{bpp:.4f}", f"{p.psnr(clip, stream):.3f}"])
            rows[-1] += [f"{frames / min(encode):.2f}", f"{frames / min(decode):.2f}"]
    how = "trivelet encode bbb.y4m s.tvl SETTING --profile PROFILE --motion off --threads 1; "
    how += "trivelet decode s.tvl null --threads 1; best of 2"
    save(out, "speed", how, machine(), ["profile", "setting", "bpp", "psnr", "encode_fps", "decode_fps"], rows)


def measure_memory(p: Program, out: Path) -> None:
    def peak(command: list[str]) -> int:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = status
        if status:
            raise Failure(" ".join(command))
        return usage.ru_maxrss * 1024 // 10**6

    film, stream, rows = clip_path("film"), p.work / "m.tvl", []
    for profile in ("fast", "dense"):
        for frames in (66, 120):
            options = ["--profile", profile, "--motion", "off", "--frames", f":{frames}", "-y", "--quiet"]
            encode = peak([p.path, "encode", str(film), str(stream), *options])
            rows.append([profile, frames, encode, peak([p.path, "decode", str(stream), "null", "--quiet"])])
    how = "/usr/bin/time -v trivelet encode film.mp4 m.tvl --profile PROFILE --motion off --frames :N; trivelet decode m.tvl null"
    save(out, "memory", how, machine(), ["profile", "frames", "encode_mb", "decode_mb"], rows)


def measure_targets(p: Program, out: Path) -> None:
    clip, rows = clip_path("basket"), []
    for target in ("--size 20k", "--size 100k", "--bpp 0.3", "--size 2000k", "--psnr 38"):
        stream, _ = p.encode(clip, target + " --motion off")
        kind, value = target.split()
        limit = {"--bpp": lambda v: int(float(v) * 416 * 240 * 100 / 8), "--size": lambda v: int(v[:-1]) * 1024}
        rows.append([target, stream.stat().st_size, limit[kind](value) if kind in limit else ""])
        rows[-1].append(f"{p.psnr(clip, stream):.2f}")
    how = "trivelet encode BasketballPass.mkv s.tvl TARGET --motion off; trivelet compare BasketballPass.mkv s.tvl"
    save(out, "targets", how, machine(), ["target", "bytes", "limit", "psnr"], rows)


def measure_truncate(p: Program, out: Path) -> None:
    clip, rows = clip_path("basket"), []
    whole, _ = p.encode(clip, "-q 70 --motion off", "whole.tvl")
    full = whole.stat().st_size
    for percent in (10, 20, 40, 60, 80):
        size, cut = full * percent // 100, p.work / "cut.tvl"
        said = subprocess.run(
            [p.path, "truncate", str(whole), str(cut), "-y", "--size", str(size)],
            capture_output=True,
            text=True,
            check=True,
        ).stderr
        predicted = re.search(r"predicted PSNR ([0-9.]+)", said)
        coded, _ = p.encode(clip, f"--size {size} --motion off")
        rows.append(
            [percent, predicted.group(1) if predicted else "", f"{p.psnr(clip, cut):.2f}", f"{p.psnr(clip, coded):.2f}"]
        )
    rows.append([100, "", f"{p.psnr(clip, whole):.2f}", full])
    how = "trivelet encode BasketballPass.mkv whole.tvl -q 70 --motion off; trivelet truncate whole.tvl cut.tvl --size N; "
    how += "trivelet encode BasketballPass.mkv s.tvl --size N --motion off"
    save(out, "truncate", how, machine(), ["percent", "predicted", "has", "coded_for_it"], rows)


def measure_lossless(p: Program, out: Path) -> None:
    rows = []
    for name in ("mobile", "calendar", "walk", "basket"):
        clip = load_clip(clip_path(name), 65, p.work)
        cells = []
        for codec in ("ffv1-lossless", "openjpeg-lossless"):
            cells.append(make_codec(codec, Path(p.path)).code(clip, 0, p.work).size)
        for options in ("--profile fast", "", "--preset slow"):
            cells.append(
                p.encode(clip.raw, f"--lossless --transform wavelet --motion off {options} {' '.join(clip.trivelet_input())}")[0].stat().st_size
            )
        rows.append([clip.name, clip.frames] + [f"{8 * size / clip.pixels:.3f}" for size in cells])
    how = "ffmpeg -c:v ffv1 -level 3 -coder 1 -context 1 -slices 4, or libopenjpeg; "
    how += "trivelet encode CLIP s.tvl --lossless --transform wavelet --motion off …; 65 frames at most"
    save(out, "lossless", how, machine(), ["clip", "frames", "ffv1", "openjpeg", "fast", "dense", "slow"], rows)


def measure_luma(p: Program, out: Path) -> None:
    clip, rows = load_clip(clip_path("mobile"), 128, p.work, luma=True), []
    for options in ("", " --preset slow"):
        codec = make_codec(f"trivelet --motion off --gop {clip.frames}{options}", Path(p.path))
        points = [measure(codec, clip, bpp, Path(p.path), p.work) for bpp in (0.25, 0.5, 1)]
        rows.append([options.strip()] + [f"{point.psnr:.2f}" for point in points])
    how = "tests/bench/rd_claims luma mobile_cif_352x288_30f_yuv420p.mkv"
    save(out, "luma", how, machine(), ["options", "at_0.25", "at_0.5", "at_1"], rows)


def measure_ends(p: Program, out: Path) -> None:
    rows = []
    for name in ("basket", "mobile", "walk"):
        clip = load_clip(clip_path(name), 65, p.work)
        point = measure(make_codec("trivelet-q --motion off", Path(p.path)), clip, 50, Path(p.path), p.work)
        rows.append([clip.name, f"{point.bpp:.3f}", f"{point.psnr:.2f}", f"{point.dip:.2f}"])
    how = "tests/bench/rd --anchor trivelet-q --codecs \"trivelet-q --motion off\" --qualities 50 --frames 65 CLIP…"
    save(out, "ends", how, machine(), ["clip", "bpp", "psnr", "dip"], rows)


MEASURES = {
    "speed": measure_speed,
    "memory": measure_memory,
    "targets": measure_targets,
    "truncate": measure_truncate,
    "lossless": measure_lossless,
    "luma": measure_luma,
    "ends": measure_ends,
}


def to_and_fro(clip: Path, frames: int, out: Path) -> None:
    """A longer clip: the frames of a Y4M file, played forward and backward in turn."""
    data = clip.read_bytes()
    head = data.index(b"\n") + 1
    width, height = (int(re.search(rb" %s(\d+)" % key, data[:head]).group(1)) for key in (b"W", b"H"))
    size = len(b"FRAME\n") + width * height * 3 // 2
    parts = [data[at : at + size] for at in range(head, len(data), size)]
    order = parts + parts[-2:0:-1]
    with open(out, "wb") as f:
        f.write(data[:head])
        for i in range(frames):
            f.write(order[i % len(order)])


def measure_gpu(p: Program, out: Path) -> None:
    clip = y4m("bbb", p.work)
    rows = []
    for profile, setting in GPU_SETTINGS:
        table = p.work / "gpu.csv"
        repeat = "5" if profile == "fast" else "2"
        command = [p.path, "bench", "gpu", str(clip), "--gop", "32", "--profile", profile, "--motion", "off", *setting.split()]
        said = output_of([*command, "--repeat", repeat, "--codec-only", "--csv", str(table)])
        print(said, flush=True)
        bpp = re.search(r"([0-9.]+) bits per pixel", said).group(1)
        with open(table, newline="") as f:
            for row in csv.DictReader(f):
                if row["kind"] == "codec":
                    rows.append([profile, setting, bpp, row["what"], row["slots"], row["frames_per_second"]])
    how = "trivelet bench gpu bbb.y4m --gop 32 --profile PROFILE --motion off SETTING --repeat 5 (dense: 2) --codec-only"
    save(out, "gpu_codec", how, gpu_name(), ["profile", "setting", "bpp", "way", "gops_in_flight", "fps"], rows)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("cpu", "gpu"))
    parser.add_argument("names", nargs="*", metavar="NAME", help=" ".join(MEASURES))
    parser.add_argument("--out", type=Path, default=DATA, help="folder of the CSV files [tests/bench/data]")
    options = parser.parse_args()
    chosen = {"gpu": measure_gpu} if options.what == "gpu" else {n: MEASURES[n] for n in options.names or MEASURES}
    for name, function in chosen.items():
        begun = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            try:
                function(Program(Path(folder)), options.out)
            except Skipped as e:
                say(f"{name}: skipped, {e}")
                continue
            except (Failure, subprocess.CalledProcessError) as e:
                say(f"{name}: {e}")
                return 1
        say(f"{name}: {time.monotonic() - begun:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
