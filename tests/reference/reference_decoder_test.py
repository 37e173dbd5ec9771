#!/usr/bin/env python3
"""Compare the program's decoder, sample for sample, with reference_decoder.py on tiny streams of many kinds.

    reference_decoder_test.py PROGRAM [--all]

PROGRAM is the trivelet program; it also makes the streams. Of two cases that follow each other one is tried, profiles and
ways to decode less take turns; with --all every case is coded in both profiles, and every stream is decoded in every way.
Ends with a line "N passed, M failed"; the exit status is 1 if any failed, 77 (skipped) without numpy.
"""

from __future__ import annotations

import math
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

sys.dont_write_bytecode = True
SKIPPED = 77

try:
    import numpy  # noqa: F401
except ImportError:
    print("skipped: the reference decoder needs numpy")
    sys.exit(SKIPPED)

sys.path.insert(0, str(Path(__file__).resolve().parent))
import reference_decoder as reference  # noqa: E402
from reference_extract import extract  # noqa: E402
from reference_motion import BOTH, OTHER, PAST  # noqa: E402
from reference_motion_writer import invent_motion  # noqa: E402


class PixelFormat(NamedTuple):
    bits: int
    components: int
    chroma_x: int = 0
    chroma_y: int = 0


FORMATS = {
    "gray": PixelFormat(8, 1),
    "gray10": PixelFormat(10, 1),
    "gray16": PixelFormat(16, 1),
    "yuv420p": PixelFormat(8, 3, 1, 1),
    "yuv411p": PixelFormat(8, 3, 2, 0),
    "yuv422p10": PixelFormat(10, 3, 1, 0),
    "yuv444p": PixelFormat(8, 3),
    "yuva420p": PixelFormat(8, 4, 1, 1),
    "gbrp": PixelFormat(8, 3),
    "gbrp12": PixelFormat(12, 3),
    "gbrap": PixelFormat(8, 4),
}


class Case(NamedTuple):
    pixel_format: str
    size: str
    frames: int
    encode: str
    content: str = "moving"


# Options of "trivelet decode" with those of the reference decoder
WHOLE = reference.Options()
R1, R2, R3, R4, R5 = (reference.Options(reduce=n) for n in (1, 2, 3, 4, 5))
T1, T2 = (reference.Options(temporal_reduce=n) for n in (1, 2))
R1T1 = reference.Options(reduce=1, temporal_reduce=1)
R2T3 = reference.Options(reduce=2, temporal_reduce=3)
L1, L2 = (reference.Options(layers=n) for n in (1, 2))
P2, P5 = (reference.Options(planes=n) for n in (2, 5))
ALL_LESS = reference.Options(layers=2, planes=4, reduce=1, temporal_reduce=1)

CASES: list[tuple[Case, list[reference.Options]]] = [
    # Lossless, all reversible wavelets
    (Case("yuv420p", "40x24", 8, "--lossless --gop 8 --levels 2x2"), [R1, T1, T2, R1T1, L1, P2]),
    (Case("gray", "40x24", 10, "--lossless --gop 8 --levels 3x3 --wavelet haar --temporal-wavelet haar"), [R1T1, P5]),
    (Case("gray", "40x24", 10, "--lossless --gop 8 --levels 3x3 --wavelet 13/7 --temporal-wavelet 13/7"), [R1T1, P5]),
    (Case("gray", "40x24", 10, "--lossless --gop 8 --levels 3x3 --wavelet 5/3 --temporal-wavelet 13/7"), [R2T3, L2]),
    (Case("gray16", "33x5", 6, "--lossless --gop 6 --levels 2x4", "noise"), [R1, T1, P5]),
    (Case("yuv422p10", "17x31", 7, "--lossless --gop 4 --levels 2x2 --layers 1"), [R1T1, P2]),
    # Lossy, all wavelets
    (Case("yuv420p", "40x24", 12, "-q 60 --gop 8 --levels 3x3"), [R1, R2, T1, R1T1, R2T3, L1, L2, P2, ALL_LESS]),
    (Case("yuv444p", "17x31", 8, "-q 75 --gop 8 --levels 2x2 --wavelet 5/3 --temporal-wavelet 5/3"), [R1T1, ALL_LESS]),
    (Case("gray", "40x24", 8, "-q 75 --gop 8 --levels 2x4 --wavelet haar --temporal-wavelet haar"), [R1T1, ALL_LESS]),
    (Case("gray", "40x24", 8, "-q 90 --gop 8 --levels 4x3 --wavelet 9/7 --temporal-wavelet 9/7"), [R1T1, ALL_LESS]),
    (Case("gray10", "33x5", 9, "--step 3.7 --gop 8 --levels 2x4 --wavelet 5/3 --temporal-wavelet 9/7"), [R2, T1, R1T1]),
    (Case("gray16", "24x16", 6, "-q 100 --gop 6 --levels 2x3 --temporal-wavelet haar", "noise"), [R1T1, ALL_LESS]),
    (Case("yuv422p10", "33x5", 6, "-q 50 --gop 6 --levels 2x2 --layers 1"), [R1T1, P2]),
    # Components: alpha, RGB with and without loss, subsampling
    (Case("yuva420p", "18x10", 5, "--lossless --gop 5 --levels 2x2"), [R1T1, P2]),
    (Case("yuva420p", "18x10", 5, "-q 60 --gop 5 --levels 2x2"), [R1T1, P2]),
    (Case("yuv411p", "40x8", 5, "-q 60 --gop 5 --levels 2x3"), [R1T1, P2]),
    (Case("gbrp", "40x24", 5, "--lossless --gop 5 --levels 2x3"), [R1T1, P5]),
    (Case("gbrp12", "17x31", 5, "-q 60 --gop 5 --levels 2x3"), [R1T1, P5]),
    # Sizes: one sample, one column, few levels, many blocks, GOPs of one frame
    (Case("gray", "1x1", 6, "--lossless --gop 4 --levels 2x2"), []),
    (Case("gray", "1x1", 6, "-q 80 --gop 4 --levels 2x2"), []),
    (Case("yuv420p", "1x9", 6, "-q 80 --gop 4 --levels 2x2"), [T1]),
    (Case("gray", "20x12", 5, "--lossless --gop 4 --levels 2x1"), [R1, T1, P5]),
    (Case("gray", "20x12", 5, "-q 60 --gop 4 --levels 2x0"), [T1, P5]),
    (Case("yuv420p", "140x70", 2, "-q 40 --gop 2 --levels 1x3 --block-size 32"), [R1T1, L1]),
    (Case("gray", "70x140", 2, "-q 40 --gop 1 --block-size 32 --levels 0x5"), [R1, L1]),
    (Case("yuv420p", "24x40", 19, "-q 40 --gop 16 --levels 4x3 --layers 16"), [R1T1, R2T3, ALL_LESS]),
    (Case("gray", "20x12", 9, "-q 80 --gop 8 --levels 8x8"), [R1, T1, ALL_LESS]),
    # The predictive profile: components, blocks, presets with all sets of taps
    (Case("yuv420p", "40x24", 8, "--lossless --gop 5 --transform prediction"), []),
    (Case("yuva420p", "70x34", 4, "--lossless --gop 4 --block-size 32 --transform prediction"), []),
    (Case("gray16", "33x17", 5, "--lossless --gop 5 --transform prediction --preset slow", "noise"), []),
    (Case("gray10", "64x40", 6, "--lossless --gop 6 --transform prediction --preset slow"), []),
    (Case("gbrp", "17x31", 3, "--lossless --gop 1 --transform prediction --preset fast"), []),
    (Case("gray", "20x12", 5, "--lossless --gop 4 --transform prediction", "flat"), []),
    (Case("yuv420p", "40x24", 8, "--lossless --gop 5 --transform prediction --preset fast"), []),
    (Case("gray16", "33x17", 5, "--lossless --gop 5 --transform prediction --preset fast", "noise"), []),
    (Case("gray10", "17x5", 4, "--lossless --gop 4 --transform prediction --preset fast"), []),
    # Contents: nothing at all, and noise
    (Case("yuv420p", "20x12", 5, "--lossless --gop 4 --levels 2x2", "flat"), [R1T1]),
    (Case("gray", "20x12", 8, "-q 5 --gop 8 --levels 2x2", "flat"), [R1T1]),
    (Case("gray", "20x12", 8, "-q 95 --gop 8 --levels 2x2", "noise"), [R1T1]),
    (Case("gbrp", "20x12", 4, "--lossless --gop 4 --levels 1x2", "noise"), [R1T1]),
    # Frame gains; scales
    (Case("yuv420p", "24x16", 18, "-q 60 --gop 16 --levels 4x3 --layers 2"), [R1, T2, R2T3, ALL_LESS]),
    (Case("yuv420p", "24x16", 8, "-q 60 --gop 8 --levels 2x3 --tune visual"), [R1T1, ALL_LESS]),
    (Case("gray", "24x16", 7, "-q 70 --gop 7 --levels 0x2"), [R1]),
    # Rates: cuts that differ from segment to segment
    (Case("yuv420p", "40x24", 8, "--bpp 1.5 --gop 8 --levels 3x3 --layers 4"), [R1, R2T3, L1, L2, P2, ALL_LESS]),
    (Case("yuv420p", "70x40", 4, "--bpp 2 --gop 4 --levels 2x2 --layers 5 --block-size 32"), [R1T1, L1, L2]),
    (Case("gbrp", "24x16", 5, "--bpp 4 --gop 5 --levels 2x2 --layers 3"), [R1T1, L1, L2, P5]),
    (Case("gray10", "24x16", 8, "--bpp 3 --gop 8 --levels 2x3 --tune visual"), [R1T1, L1]),
    (Case("yuv420p", "24x16", 8, "--size 1100 --gop 8 --levels 2x3 --layers 4"), [R1T1, L2]),
    (Case("yuv420p", "24x16", 8, "--psnr 36 --gop 8 --levels 2x3 --layers 2"), [R1T1, L1]),
    # Motion: formats; GOPs of all lengths, with a short last one; sizes
    (Case("yuv420p", "48x40", 11, "-q 60 --gop 8 --levels 3x3 --layers 4 --motion on"), [R1, R2, T1, R1T1, R2T3, L1, L2, P2, ALL_LESS]),
    (Case("yuv420p", "40x24", 9, "--lossless --gop 8 --levels 3x3 --layers 4 --motion on"), [R1T1, T1, L2]),
    (Case("gray", "40x24", 6, "--lossless --gop 6 --levels 2x4 --wavelet 13/7 --layers 4 --motion on"), [R1, R3, L1]),
    (Case("yuv422p10", "33x17", 7, "-q 50 --gop 7 --levels 2x3 --motion on"), [R1, R1T1, P5]),
    (Case("gray16", "33x17", 5, "-q 90 --gop 5 --levels 2x4 --temporal-wavelet haar --layers 4 --motion on", "noise"), [R3, T1, L1]),
    (Case("yuv444p", "17x31", 4, "-q 70 --gop 4 --levels 2x3 --wavelet 5/3 --layers 4 --motion on"), [R2, T1, L1]),
    (Case("gbrp", "24x16", 5, "--lossless --gop 4 --levels 2x3 --layers 4 --motion on"), [R1, T1, L1]),
    (Case("gbrp12", "24x16", 4, "-q 60 --gop 4 --levels 2x3 --layers 4 --motion on"), [R1, T1, ALL_LESS]),
    (Case("yuva420p", "18x10", 5, "-q 60 --gop 5 --levels 2x2 --layers 4 --motion on"), [R1T1, T2, L1]),
    (Case("gbrap", "17x31", 3, "-q 50 --gop 3 --levels 1x3 --layers 4 --motion on"), [R3, T1, L1]),
    (Case("yuv411p", "70x8", 5, "-q 60 --gop 5 --levels 2x3 --motion on"), [R1, T1, P5]),
    (Case("gray", "5x3", 6, "-q 60 --gop 6 --levels 2x2 --motion on"), [R1, T1, R2]),
    (Case("gray", "1x1", 6, "--lossless --gop 4 --levels 2x1 --motion on"), [T1]),
    (Case("gray", "40x24", 3, "-q 60 --gop 1 --motion on"), [R1]),
    (Case("gray", "24x16", 18, "-q 60 --gop 4 --levels 2x2 --layers 4 --motion on --keyint 8"), [R1T1, T1, T2, L1]),
    (Case("gray", "24x16", 22, "-q 60 --gop 4 --levels 2x2 --layers 4 --motion on --key-prediction on"), [R1T1, T1, T2, L1]),
    (Case("yuv420p", "24x16", 14, "--lossless --gop 6 --levels 1x2 --motion on --key-prediction on"), [R1, T1]),
    (Case("gray", "24x16", 17, "-q 60 --gop 17 --levels 4x2 --layers 4 --motion on"), [R1, R1T1, L1]),
    (Case("yuv420p", "96x64", 2, "-q 60 --gop 2 --levels 1x3 --layers 4 --motion on", "flat"), [R1, T1, L1]),
    (Case("gray", "300x12", 3, "-q 30 --gop 3 --levels 1x2 --layers 4 --motion on"), [R1, T1, L1]),
    (Case("yuv420p", "40x24", 8, "--bpp 1.5 --gop 8 --levels 3x3 --layers 4 --motion on"), [R1, L1, ALL_LESS]),
    (Case("yuv420p", "40x24", 8, "-q 60 --gop 4 --levels 2x3 --layers 4 --motion auto", "stopping"), [R1T1, T1, L1]),
]

# Motion drawn at random: what is coded, ways to decode it, and how wild the vectors are; the last one, with several
# squares each way, is too large for every day
INVENTED: list[tuple[Case, list[reference.Options], float]] = [
    (Case("yuv420p", "40x24", 6, "-q 30 --gop 8 --levels 3x3 --motion on"), [WHOLE, R1, R2, T1], 0.5),
    (Case("gbrap", "20x20", 4, "--lossless --gop 4 --levels 2x3 --motion on"), [WHOLE, R2, T1], 0.6),
    (Case("yuv420p", "70x40", 4, "-q 20 --gop 4 --levels 2x5 --motion on"), [R4, WHOLE], 0.7),
    (Case("gray16", "33x17", 7, "-q 60 --gop 7 --levels 2x2 --motion on", "noise"), [R1, WHOLE], 0.85),
    (Case("gray", "264x12", 3, "-q 20 --gop 3 --levels 1x5 --motion on"), [WHOLE, R5], 0.8),
    (Case("yuv420p", "40x24", 11, "-q 30 --gop 4 --levels 2x3 --motion on"), [WHOLE, R1T1, T2], 0.5),  # open GOPs, the last one short
    (Case("gbrp", "20x20", 8, "--lossless --gop 2 --levels 1x3 --motion on --keyint 4"), [WHOLE, T1], 0.6),
    (Case("gray", "128x128", 4, "-q 10 --gop 4 --levels 2x4 --motion on"), [R1, WHOLE], 0.4),
]


def make_raw(case: Case) -> bytes:
    """Raw samples of waves that move, all the time or half of it, with a little noise; or of noise, or of one value."""
    pixel_format = FORMATS[case.pixel_format]
    width, height = (int(n) for n in case.size.split("x"))
    peak = (1 << pixel_format.bits) - 1
    generator = random.Random(f"{case}")
    result = bytearray()
    for frame in range(case.frames):
        for component in range(pixel_format.components):
            chroma = component in (1, 2)
            columns = -(-width >> pixel_format.chroma_x) if chroma else width
            rows = -(-height >> pixel_format.chroma_y) if chroma else height
            for y in range(rows):
                for x in range(columns):
                    value = 0.5
                    if case.content == "noise":
                        value = generator.random()
                    elif case.content in ("moving", "stopping"):
                        time = frame if case.content == "moving" else min(frame, case.frames // 2)
                        value += 0.25 * math.sin((x + 2 * time) / 5 + component) + 0.2 * math.cos((y - time) / 4)
                        value += 0.3 * ((x + time) % 13 == 6) + 0.05 * (generator.random() - 0.5)
                    sample = min(max(round(value * peak), 0), peak)
                    result += sample.to_bytes(1 if pixel_format.bits <= 8 else 2, "little")
    return bytes(result)


class Tester:
    def __init__(self, program: str, folder: Path) -> None:
        self.program = program
        self.folder = folder
        self.passed = 0
        self.failed = 0
        self.seen: set[str] = set()  # what streams had

    def report(self, good: bool, name: str, reason: str = "") -> None:
        self.passed += good
        self.failed += not good
        if not good:
            print(f"FAILED {name}: {reason}")

    def run(self, *arguments: str) -> str | None:
        """Run the program; the reason if it fails."""
        done = subprocess.run([self.program, *arguments], capture_output=True, text=True, timeout=120)
        return None if done.returncode == 0 else f"exit status {done.returncode}: {done.stderr.strip()}"

    def compare(self, name: str, stream: Path, options: reference.Options) -> bytes | None:
        """What the reference decoder gives, if the program gives the same."""
        output = self.folder / "out.yuv"
        arguments = ["--max-layers", options.layers, "--max-planes", options.planes, "--reduce", options.reduce,
                     "--temporal-reduce", options.temporal_reduce]
        reason = self.run("decode", "-y", "--quiet", "-t", "1", *map(str, arguments), str(stream), str(output))
        if reason is not None:
            return self.report(False, name, reason)
        expected = output.read_bytes()
        decoded = bytearray()
        try:
            reference.decode(stream.read_bytes(), options, decoded.extend)
        except reference.FormatError as error:
            return self.report(False, name, f"the reference decoder refuses: {error}")
        if decoded == expected:
            self.report(True, name)
            return expected
        different = sum(a != b for a, b in zip(decoded, expected))
        self.report(False, name, f"{different} bytes differ of {len(expected)} ({len(decoded)} from the reference)")

    def encode(self, case: Case, samples: bytes, stream: Path) -> str | None:
        """Make a stream; the reason if that fails."""
        raw = self.folder / "in.yuv"
        raw.write_bytes(samples)
        return self.run("encode", "-y", "--quiet", "-t", "1", "--format", "raw", "--size", case.size,
                        "--pix-fmt", case.pixel_format, *case.encode.split(), str(raw), str(stream))

    def case(self, case: Case, less: list[reference.Options]) -> None:
        name = " ".join(map(str, case))
        stream = self.folder / "stream.tvl"
        samples = make_raw(case)
        reason = self.encode(case, samples, stream)
        if reason is not None:
            return self.report(False, name, reason)
        self.note(case, stream.read_bytes())
        decoded = self.compare(f"{name} | whole", stream, WHOLE)
        if "--lossless" in case.encode:
            self.report(decoded == samples, f"{name} | lossless", "not the samples that were encoded")
        for options in less:
            chosen = " ".join(f"{key}={value}" for key, value in vars(options).items() if value)
            self.compare(f"{name} | {chosen}", stream, options)

    def extracts(self) -> None:
        """Streams made smaller without coding them again: the same as decoding less of the whole one."""
        options = reference.Options
        kinds = [
            (Case("yuv420p", "40x24", 12, "-q 60 --gop 8 --levels 3x3 --layers 3"), (1, 1, 2), options(2, 0, 1, 1)),
            (Case("yuv420p", "40x24", 8, "--bpp 2 --gop 8 --levels 3x3 --layers 3"), (0, 2, 3), options(0, 0, 0, 2)),
            (Case("gbrp", "20x12", 8, "--lossless --gop 4 --levels 2x2 --profile fast"), (2, 0, 2), options(2, 0, 2, 0)),
            (Case("yuv420p", "40x24", 6, "-q 60 --gop 8 --levels 3x3 --layers 3 --motion on"), (1, 1, 2), options(2, 0, 1, 1)),
        ]
        for case, (dropped, temporal_dropped, layers), less in kinds:
            name = " ".join(map(str, case)) + f" | extract {dropped} {temporal_dropped} {layers}"
            stream = self.folder / "stream.tvl"
            reason = self.encode(case, make_raw(case), stream)
            if reason is not None:
                self.report(False, name, reason)
                continue
            whole = stream.read_bytes()
            stream.write_bytes(extract(whole, dropped, temporal_dropped, layers))
            self.compare(name, stream, WHOLE)
            further = options(temporal_reduce=1 - temporal_dropped // 2)
            self.compare(f"{name} | less", stream, further)
            results = [bytearray(), bytearray()]
            reference.decode(whole, less, results[0].extend)
            reference.decode(stream.read_bytes(), WHOLE, results[1].extend)
            self.report(results[0] == results[1], name, "not what the whole stream gives")

    def note(self, case: Case, data: bytes) -> None:
        """Remember what this stream has; only one with a target for its bytes may lack planes."""
        profile = "?"
        has_target = any(option in case.encode for option in ("--bpp", "--size", "--psnr"))
        for box in reference.read_boxes(data):
            if box.kind == b"Head":
                head = reference.read_head(box.payload)
                profile = "dense" if head.profile == reference.DENSE else "fast"
                if any(set(component.scales) != {64} for component in head.components):
                    self.seen.add(f"{profile} scales")
            elif box.kind == b"Gop ":
                gop = reference.read_gop(box.payload, head)
                if gop.gains:
                    self.seen.add(f"{profile} frame gains")
                if gop.motion is not None and gop.key == reference.KEY_OPEN:
                    self.seen.add("open GOPs")
                if gop.predicted:
                    self.seen.add("predicted keys")
                if head.motion and gop.motion is None:
                    self.seen.add("GOPs without motion beside others")
                for highs in reference.read_motion(gop, head, 0) if gop.motion is not None else []:
                    for frame in highs:
                        self.seen |= {f"motion, mode {motion.mode}" for motion in frame.cells.values()}
                        self.seen |= {f"motion, blocks of {side} cells" for side in frame.sides.values()}
                        if frame.older and any(motion.mode != PAST for motion in frame.cells.values()):
                            self.seen.add("motion to an older frame")
                for component in reference.read_components(gop, head, reference.Options(planes=1)) if has_target else []:
                    lows = [segment.low for block in component.blocks for segment in block.segments.values()]
                    if any(low % 2 for low in lows) and profile == "dense":
                        self.seen.add("dense odd cuts")
                    if any(lows):
                        self.seen.add(f"{profile} planes left out")

    def coverage(self) -> None:
        """The cases above must have what they are there for."""
        for what in ("fast scales", "fast frame gains", "fast planes left out", "dense scales", "dense frame gains",
                     "dense planes left out", "dense odd cuts", "GOPs without motion beside others",
                     "motion to an older frame", "open GOPs", "predicted keys",
                     *(f"motion, mode {mode}" for mode in (PAST, OTHER, BOTH)),
                     *(f"motion, blocks of {side} cells" for side in (1, 2, 4, 8))):
            self.report(what in self.seen, f"coverage: {what}", "no stream has them")

    def invented(self, every: bool) -> None:
        """Motion that no encoder chooses, and motion with a vector that is too long."""
        stream = self.folder / "stream.tvl"
        for number, (case, less, wildness) in enumerate(INVENTED if every else INVENTED[:-1]):
            reason = self.encode(case, make_raw(case), stream)
            if reason is not None:
                self.report(False, f"{case}", reason)
                continue
            data = stream.read_bytes()
            for seed in range(10 if every else 1):
                stream.write_bytes(invent_motion(data, seed, wildness))
                for options in less if every else less[number % 2::2]:
                    self.compare(" ".join(map(str, case)) + f" | invented {seed} {options}", stream, options)
        invented = invent_motion(data, 0, 0.9, damaged=True)
        stream.write_bytes(invented)
        reason = self.run("decode", "-y", "--quiet", "-t", "1", str(stream), str(self.folder / "out.yuv"))
        self.report("exit status 4" in (reason or ""), "damaged motion", f"the program decodes it: {reason}")
        try:
            reference.decode(invented, WHOLE, len)
            self.report(False, "damaged motion", "the reference decoder decodes it")
        except reference.FormatError:
            self.report(True, "damaged motion")

    def damage(self, settings: str) -> None:
        """The reference decoder must refuse a stream with a changed byte, whole GOPs of a cut one are valid."""
        case = Case("gray", "20x12", 8, f"--lossless --gop 4 --levels 2x2 --no-scene-cuts {settings}")
        stream = self.folder / "stream.tvl"
        samples = make_raw(case)
        reason = self.encode(case, samples, stream)
        if reason is not None:
            return self.report(False, "damage", reason)
        data = stream.read_bytes()
        for position in range(0, len(data), max(1, len(data) // 20)):
            changed = bytearray(data)
            changed[position] ^= 0x10
            try:
                reference.decode(bytes(changed), WHOLE, len)
                self.report(False, "damage", f"byte {position} changed without notice")
            except reference.FormatError:
                self.report(True, "damage")
        gop = [box for box in reference.read_boxes(data) if box.kind == b"Gop "][1]
        decoded = bytearray()
        reference.decode(data[:gop.end - 1], WHOLE, decoded.extend)
        self.report(decoded == samples[:len(samples) // 2], "a stream cut in its second GOP")


def has_profiles(case: Case) -> bool:
    return "--profile" not in case.encode and "--transform" not in case.encode


def main() -> int:
    if len(sys.argv) not in (2, 3) or sys.argv[2:] not in ([], ["--all"]):
        print(f"usage: {sys.argv[0]} PROGRAM [--all]", file=sys.stderr)
        return 2
    every = len(sys.argv) == 3 or os.environ.get("TRIVELET_FULL", "0") not in ("", "0")
    with tempfile.TemporaryDirectory() as folder:
        tester = Tester(sys.argv[1], Path(folder))
        for number, (case, less) in enumerate(CASES):
            fast = case._replace(encode=f"{case.encode} --profile fast")
            if every:
                if has_profiles(case):
                    tester.case(fast, less)
                tester.case(case, less)
            elif number % 2 == 1:
                tester.case(fast if number % 4 == 1 and has_profiles(case) else case, less[number // 4 % 3 :: 3])
            # The only ones with scales, and with predicted keys.
            if not every and ("--tune visual" in case.encode or "-q 60" in case.encode and "--key-" in case.encode):
                tester.case(case, less[:1])
        tester.coverage()
        tester.extracts()
        tester.invented(every)
        tester.damage("--profile fast")
        tester.damage("--profile dense")
        tester.damage("--motion on")
    print(f"{tester.passed} passed, {tester.failed} failed")
    return 1 if tester.failed else 0


if __name__ == "__main__":
    sys.exit(main())
