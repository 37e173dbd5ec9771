"""Clips, codecs, measurements and BD-rate for rd and rd_claims. Standard library only; runs ffmpeg, ffprobe and
trivelet.

Every codec is given the same raw planar frames and gives raw planar frames back, which `trivelet compare` measures.
Seconds are CPU seconds (user + system) of the whole process with one thread: reading and writing raw files included,
waiting for a busy machine not. Bytes: the whole file for Trivelet; for the others the packets alone, without the
container, and without the SEI message in which x264 describes itself.
"""

from __future__ import annotations

import csv
import dataclasses
import importlib
import json
import math
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

SAMPLES_PER_PIXEL = {"gray": 1.0, "yuv420p": 1.5, "yuv422p": 2.0, "yuv444p": 3.0}
FULL_RANGE_NAMES = {"yuvj420p": "yuv420p", "yuvj422p": "yuv422p", "yuvj444p": "yuv444p"}


class Failure(Exception):
    """A program failed or an input cannot be used; the text is for the user."""


def run(command: list[str]) -> float:
    """Runs a program and returns its CPU seconds. Raises Failure with its standard error if it fails."""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    errors = process.stderr.read().decode(errors="replace")
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stderr.close()
    if process.returncode != 0:
        raise Failure(f"{' '.join(command)}\nexit status {process.returncode}: {errors.strip()[-800:]}")
    return usage.ru_utime + usage.ru_stime


def output_of(command: list[str]) -> str:
    result = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if result.returncode != 0:
        raise Failure(f"{' '.join(command)}\nexit status {result.returncode}: {result.stderr.strip()[-800:]}")
    return result.stdout


FFMPEG = ["ffmpeg", "-v", "error", "-nostdin", "-y"]


@dataclass
class Clip:
    """Raw planar frames in a file of their own."""

    name: str
    raw: Path
    width: int
    height: int
    pix_fmt: str
    frames: int
    fps: str

    @property
    def pixels(self) -> int:
        return self.width * self.height * self.frames

    @property
    def samples(self) -> float:
        return self.pixels * SAMPLES_PER_PIXEL[self.pix_fmt]

    def ffmpeg_input(self) -> list[str]:
        return [
            *("-f", "rawvideo", "-video_size", f"{self.width}x{self.height}", "-pix_fmt", self.pix_fmt),
            *("-framerate", self.fps, "-i", str(self.raw)),
        ]

    def trivelet_input(self) -> list[str]:
        return ["--size", f"{self.width}x{self.height}", "--pix-fmt", self.pix_fmt]


SOURCES = ("whole", "off", "half")
OFF_GRID = 4  # samples that "off" cuts from each side: blocks of 8x8 of the source then straddle those of encoders


def load_clip(path: Path, frames: int, work: Path, luma: bool = False, crop: int = 0, source: str = "whole") -> Clip:
    """Unpacks the first `frames` frames. Raw files have their size in the name: NAME_WIDTHxHEIGHT….yuv, 8-bit 4:2:0.

    `luma` takes the first plane alone, `crop` a square of that side from the middle. `source`: "off" cuts OFF_GRID
    samples from each side, "half" halves width and height (to even numbers)."""
    reading: list[str] = []
    if path.suffix == ".yuv":
        size = re.search(r"(\d+)x(\d+)", path.name)
        if not size:
            raise Failure(f"{path}: no WIDTHxHEIGHT in the name of a raw file")
        reading = ["-f", "rawvideo", "-video_size", size.group(0), "-pixel_format", "yuv420p"]
    probe = json.loads(
        output_of(
            ["ffprobe", "-v", "error", *reading, "-select_streams", "v:0", "-of", "json"]
            + ["-show_entries", "stream=width,height,pix_fmt,r_frame_rate", str(path)]
        )
    )["streams"][0]
    format_ = FULL_RANGE_NAMES.get(probe["pix_fmt"], probe["pix_fmt"])
    if format_ not in SAMPLES_PER_PIXEL:
        raise Failure(f"{path}: pixel format {format_}; 8-bit {', '.join(SAMPLES_PER_PIXEL)} are compared")
    width, height = probe["width"], probe["height"]
    filters = []
    if crop:
        width, height = min(width, crop), min(height, crop)
        filters.append(f"crop={width}:{height}")
    if source == "off":
        width, height = width - 2 * OFF_GRID, height - 2 * OFF_GRID
        filters.append(f"crop={width}:{height}:{OFF_GRID}:{OFF_GRID}:exact=1")
    elif source == "half":
        width, height = width // 4 * 2, height // 4 * 2
        filters.append(f"scale={width}:{height}:flags=lanczos+accurate_rnd+full_chroma_int")
    luma = luma and format_ != "gray"
    if luma:  # as it is; -pix_fmt gray would stretch limited range to full
        filters.append("extractplanes=y")
        format_ = "gray"
    marks = f"{'-luma' if luma else ''}{f'-{width}x{height}' if crop else ''}"
    marks += "" if source == "whole" else f"-{source}"
    raw = work / f"{path.stem}{marks}.yuv"
    run(
        [*FFMPEG, *reading, "-i", str(path), "-map", "0:v:0", "-fps_mode", "passthrough", "-frames:v", str(frames)]
        + [*(["-vf", ",".join(filters)] if filters else []), "-pix_fmt", "gray" if luma else probe["pix_fmt"]]
        + ["-f", "rawvideo", str(raw)]
    )
    frame_bytes = 0
    for plane in range(1 if format_ == "gray" else 3):
        narrow = plane > 0 and format_ in ("yuv420p", "yuv422p")
        low = plane > 0 and format_ == "yuv420p"
        frame_bytes += (-(-width // 2) if narrow else width) * (-(-height // 2) if low else height)
    count, rest = divmod(raw.stat().st_size, frame_bytes)
    if rest or not count:
        raise Failure(f"{path}: {raw.stat().st_size} raw bytes are not whole frames of {frame_bytes}")
    name = re.sub(r"(\.x264ll|_\d+x\d+.*|_yuv420p.*|_gray8)", "", path.stem)
    return Clip(name + marks, raw, width, height, format_, count, probe["r_frame_rate"])


@dataclass
class Coded:
    size: int  # bytes
    encode: float  # CPU seconds
    decode: float
    decoded: Path  # raw planar


class Codec:
    """One encoder with its settings. `label` names it in tables; `quality` is its own scale."""

    label = ""
    start = 28.0  # first quality tried
    octave = 6.0  # change of quality that about halves the bytes
    worst, best = 51.0, 1.0
    whole = True  # quality is an integer

    def code(self, clip: Clip, quality: float, work: Path) -> Coded:
        raise NotImplementedError

    def exact(self, clip: Clip, bpp: float) -> float | None:
        """The quality for this rate if the encoder has rate targets; else None."""
        return None


class Trivelet(Codec):
    """`trivelet` hits bits per pixel (--bpp), `trivelet-q` has constant quality (-q); further options as typed."""

    def __init__(self, program: Path, label: str):
        words = label.split()
        self.program = str(program)
        self.label = label
        self.constant = words[0] == "trivelet-q"
        self.options = words[1:]
        self.start, self.octave, self.worst, self.best = 50.0, -15.0, 0.0, 95.0

    def exact(self, clip: Clip, bpp: float) -> float | None:
        return None if self.constant else bpp

    def code(self, clip: Clip, quality: float, work: Path) -> Coded:
        stream, decoded = work / "coded.tvl", work / "decoded.yuv"
        how = ["-q" if self.constant else "--bpp", f"{quality:g}"]
        encode = run(
            [self.program, "encode", str(clip.raw), str(stream), *clip.trivelet_input(), *how, *self.options]
            + ["--threads", "1", "--quiet", "-y"]
        )
        decode = run([self.program, "decode", str(stream), str(decoded), "--threads", "1", "--quiet", "-y"])
        return Coded(stream.stat().st_size, encode, decode, decoded)


class Ffmpeg(Codec):
    """An encoder of FFmpeg; `options` may contain {} for the quality. NUT holds the packets between the two runs."""

    def __init__(self, label: str, options: str, **scale: float):
        self.label = label
        self.options = options
        for key, value in scale.items():
            setattr(self, key, value)

    def code(self, clip: Clip, quality: float, work: Path) -> Coded:
        stream, decoded = work / "coded.nut", work / "decoded.yuv"
        options = self.options.replace("{}", f"{quality:g}").split()
        if "libx264" in options:
            options += ["-bsf:v", "filter_units=remove_types=6"]
        encode = run([*FFMPEG, *clip.ffmpeg_input(), *options, "-threads", "1", str(stream)])
        # FFmpeg's H.264 decoder gives 4:2:0 for grey, and converting that to grey stretches its range.
        luma = ["-vf", "extractplanes=y"] if clip.pix_fmt == "gray" else []
        decode = run(
            [*FFMPEG, "-threads", "1", "-i", str(stream), "-fps_mode", "passthrough", *luma, "-f", "rawvideo"]
            + ["-pix_fmt", clip.pix_fmt, str(decoded)]
        )
        packets = output_of(["ffprobe", "-v", "error", "-show_entries", "packet=size", "-of", "csv=p=0", str(stream)])
        size = sum(int(line.strip(",")) for line in packets.split())
        return Coded(size, encode, decode, decoded)


class OpenJpeg(Ffmpeg):
    """Every frame has the raw size divided by the level, the only lossy control that FFmpeg offers."""

    def exact(self, clip: Clip, bpp: float) -> float | None:
        return max(1, round(8 * SAMPLES_PER_PIXEL[clip.pix_fmt] / bpp))


X264 = "-c:v libx264 -tune psnr -crf {} -preset "
X265 = "-c:v libx265 -tune psnr -crf {} -x265-params info=0:log-level=error:pools=none:frame-threads=1 -preset "
OPENJPEG = "-c:v libopenjpeg -format j2k "


def make_codec(label: str, program: Path) -> Codec:
    if label.split()[0] in ("trivelet", "trivelet-q"):
        return Trivelet(program, label)
    known = {
        "x264-intra": lambda: Ffmpeg(label, X264 + "medium -g 1"),
        "x264-medium": lambda: Ffmpeg(label, X264 + "medium"),
        "x264-ultrafast": lambda: Ffmpeg(label, X264 + "ultrafast"),
        "x265-medium": lambda: Ffmpeg(label, X265 + "medium"),
        "openjpeg": lambda: OpenJpeg(label, OPENJPEG + "-irreversible 1 -compression_level {}"),
        "snow": lambda: Ffmpeg(label, "-c:v snow -g 250 -q:v {}", start=8.0, octave=5.0, worst=60.0, best=0.3, whole=False),
        "ffv1-lossless": lambda: Ffmpeg(label, "-c:v ffv1 -level 3 -coder 1 -context 1 -g 300 -slices 4"),
        "openjpeg-lossless": lambda: Ffmpeg(label, OPENJPEG),
    }
    if label not in known:
        raise Failure(f"unknown codec '{label}'; known: trivelet[-q] [OPTIONS], {', '.join(known)}")
    return known[label]()


@dataclass
class Point:
    """A measured point of a curve; the fields are the columns of the CSV."""

    clip: str
    frames: int
    codec: str
    quality: float
    bytes: int
    bpp: float
    psnr_y: float
    psnr: float  # all samples of all planes
    ssim: float  # first plane
    dip: float  # dB from the mean to the worst frame of a GOP, mean of GOPs
    encode_msamples: float  # Msamples per CPU second
    decode_msamples: float
    vmaf: float = math.nan  # mean of the frames; not a number: not measured


def find_vmaf() -> str | None:
    """An ffmpeg with libvmaf: that of PATH, or of the Python package imageio-ffmpeg."""
    candidates = ["ffmpeg"]
    try:
        candidates.append(importlib.import_module("imageio_ffmpeg").get_ffmpeg_exe())
    except (ImportError, RuntimeError):
        pass
    for program in candidates:
        if " libvmaf " in output_of([program, "-hide_banner", "-filters"]):
            return program
    return None


def vmaf(program: str, clip: Clip, decoded: Path) -> float:
    """The mean VMAF (default model, luma) of decoded frames. `program`: find_vmaf()."""
    log = decoded.with_suffix(".vmaf")
    # libvmaf refuses grey. A conversion would stretch the range of its values.
    planes = "split=3,mergeplanes=0x001020:yuv444p" if clip.pix_fmt == "gray" else "null"
    inputs = dataclasses.replace(clip, raw=decoded).ffmpeg_input() + clip.ffmpeg_input()
    run(
        [program, *FFMPEG[1:], *inputs]
        + ["-lavfi", f"[0:v]{planes}[a];[1:v]{planes}[b];[a][b]libvmaf=log_fmt=json:log_path={log}", "-f", "null", "-"]
    )
    return float(json.loads(log.read_text())["pooled_metrics"]["vmaf"]["mean"])


def gop_lengths(program: Path, stream: Path) -> list[int]:
    return [g["frames"] for g in json.loads(output_of([str(program), "info", str(stream), "-v", "--json"]))["gops"]]


def frame_psnr(program: Path, clip: Clip, decoded: Path, work: Path) -> tuple[dict, list[float]]:
    """What `trivelet compare --json` says, and the PSNR of every frame."""
    table = work / "frames.csv"
    said = json.loads(
        output_of(
            [str(program), "compare", str(clip.raw), str(decoded), *clip.trivelet_input(), "--json", "-y"]
            + ["--frames-csv", str(table)]
        )
    )
    if said["frames"] != clip.frames:
        raise Failure(f"{clip.name}: {said['frames']} frames came back of {clip.frames}")
    with open(table, newline="") as f:
        return said, [float(row["psnr"]) for row in csv.DictReader(f)]


def dip_of(frames: list[float], gops: list[int]) -> float:
    """Mean over the GOPs of: mean PSNR of its frames minus that of its worst frame."""
    dips, at = [], 0
    for length in gops:
        part = frames[at : at + length]
        at += length
        if len(part) > 1 and all(map(math.isfinite, part)):
            dips.append(sum(part) / len(part) - min(part))
    return sum(dips) / len(dips) if dips else 0.0


def measure(
    codec: Codec, clip: Clip, quality: float, program: Path, work: Path, with_vmaf: str | None = None
) -> Point:
    """`with_vmaf`: an ffmpeg that measures it (find_vmaf())."""
    coded = codec.code(clip, quality, work)
    if coded.decoded.stat().st_size != clip.raw.stat().st_size:
        raise Failure(f"{codec.label} of {clip.name}: {coded.decoded.stat().st_size} raw bytes came back")
    said, frames = frame_psnr(program, clip, coded.decoded, work)
    if isinstance(codec, Trivelet):
        gops = gop_lengths(program, work / "coded.tvl")
    else:
        gops = [33] * (clip.frames // 33) + [clip.frames % 33]
    value = lambda x: math.inf if x is None else float(x)  # noqa: E731  (identical: null)
    return Point(
        clip.name,
        clip.frames,
        codec.label,
        quality,
        coded.size,
        8 * coded.size / clip.pixels,
        value(next(iter(said["planes"].values()))["psnr"]),
        value(said["psnr"]),
        math.nan if said["ssim"] is None else float(said["ssim"]),
        dip_of(frames, gops),
        clip.samples / coded.encode / 1e6,
        clip.samples / coded.decode / 1e6,
        vmaf(with_vmaf, clip, coded.decoded) if with_vmaf else math.nan,
    )


def pchip(x: list[float], y: list[float]) -> list[float]:
    """Slopes of the monotone piecewise-cubic interpolant (Fritsch and Butland) at the knots; x increases."""
    n = len(x)
    h = [x[i + 1] - x[i] for i in range(n - 1)]
    d = [(y[i + 1] - y[i]) / h[i] for i in range(n - 1)]
    if n == 2:
        return [d[0], d[0]]
    slopes = [0.0] * n
    for i in range(1, n - 1):
        if d[i - 1] * d[i] > 0:
            a, b = 2 * h[i] + h[i - 1], h[i] + 2 * h[i - 1]
            slopes[i] = (a + b) / (a / d[i - 1] + b / d[i])
    for end, h0, h1, d0, d1 in ((0, h[0], h[1], d[0], d[1]), (n - 1, h[-1], h[-2], d[-1], d[-2])):
        slope = ((2 * h0 + h1) * d0 - h0 * d1) / (h0 + h1)
        if slope * d0 <= 0:
            slope = 0.0
        elif d0 * d1 <= 0 and abs(slope) > 3 * abs(d0):
            slope = 3 * d0
        slopes[end] = slope
    return slopes


def integral(x: list[float], y: list[float], low: float, high: float) -> float:
    """Integral of the piecewise-cubic interpolant from low to high, both within the knots."""
    slopes = pchip(x, y)
    total = 0.0
    for i in range(len(x) - 1):
        a, b = max(low, x[i]), min(high, x[i + 1])
        if b <= a:
            continue
        h = x[i + 1] - x[i]
        d = (y[i + 1] - y[i]) / h
        c2 = (3 * d - 2 * slopes[i] - slopes[i + 1]) / h
        c3 = (slopes[i] + slopes[i + 1] - 2 * d) / (h * h)

        def primitive(t: float) -> float:
            return t * (y[i] + t * (slopes[i] / 2 + t * (c2 / 3 + t * c3 / 4)))

        total += primitive(b - x[i]) - primitive(a - x[i])
    return total


def curve(points: list[Point], measure: str = "psnr") -> tuple[list[float], list[float]]:
    """PSNR of all planes (or VMAF), increasing, and log10 of the bits a pixel; points that do not rise are dropped."""
    x: list[float] = []
    y: list[float] = []
    for p in sorted(points, key=lambda p: p.bpp):
        value = getattr(p, measure)
        if math.isfinite(value) and (not x or (value > x[-1] + 1e-6 and math.log10(p.bpp) > y[-1])):
            x.append(value)
            y.append(math.log10(p.bpp))
    return x, y


def bd_rate(anchor: list[Point], test: list[Point], measure: str = "psnr") -> tuple[float, float] | None:
    """Bjontegaard's difference of rate, % (negative = test needs fewer bits), over the PSNR (or VMAF) both curves
    reach, and the length of that range in dB. PCHIP through log10(rate) over PSNR (all planes). None with less than 1
    dB in common."""
    xa, ya = curve(anchor, measure)
    xt, yt = curve(test, measure)
    if len(xa) < 2 or len(xt) < 2:
        return None
    low, high = max(xa[0], xt[0]), min(xa[-1], xt[-1])
    if high - low < 1:
        return None
    difference = (integral(xt, yt, low, high) - integral(xa, ya, low, high)) / (high - low)
    return 100 * (10**difference - 1), high - low


def find_program(typed: str | None) -> Path:
    """--trivelet, else $TRIVELET, else the newest build of this tree."""
    named = typed or os.environ.get("TRIVELET")
    if named:
        return Path(named).resolve()
    root = Path(__file__).resolve().parents[2]
    found = sorted(root.glob("build*/**/apps/trivelet"), key=lambda p: p.stat().st_mtime)
    if not found:
        raise Failure("no trivelet program; build it, or name it with --trivelet or $TRIVELET")
    return found[-1]


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
