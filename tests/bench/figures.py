#!/usr/bin/env python3
"""Makes the tables of README.md and docs/ from the measurements in tests/bench/data.

    tests/bench/figures.py print [--data DIR]   every table with date, commit, machine and command
    tests/bench/figures.py write                puts the tables into the documents
    tests/bench/figures.py check                fails where a document shows other figures than were measured

A document shows a table between `<!-- figures: NAME -->` and `<!-- end -->`; nothing else writes there. The CSV files
come from measure_figures.py, rd and nvjpeg2000.sh; readme_figures.sh runs all of it.
"""

from __future__ import annotations

import argparse
import csv
import math
import re
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
from rd_tools import Failure, Point, bd_rate, say  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "tests/bench/data"
DOCUMENTS = ("README.md", "docs/RESULTS.md", "docs/GPU.md")
SETTINGS = ("-q 45", "-q 60", "-q 85", "--lossless")
GPU_SETTINGS = [(profile, setting) for profile in ("fast", "dense") for setting in ("-q 60", "-q 70", "--lossless")]

SHOWN = [DATA]  # folders of CSV files; the first one that has a table counts


def load(name: str) -> tuple[list[str], list[dict]]:
    path = next((folder / f"{name}.csv" for folder in SHOWN if (folder / f"{name}.csv").exists()), None)
    if not path:
        return [], []
    lines = path.read_text().splitlines()
    notes = [line[2:] for line in lines if line.startswith("# ")]
    return notes, list(csv.DictReader(line for line in lines if not line.startswith("#")))


def rows_of(name: str) -> list[dict]:
    return load(name)[1]


def number(value: float, digits: int = 3) -> str:
    """Formats with this many significant digits and separated thousands."""
    if value == 0 or not math.isfinite(value):
        return "exact" if math.isinf(value) else "0"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    return f"{round(value, digits - 1 - math.floor(math.log10(abs(value)))):,.{decimals}f}"


def table(header: list[str], rows: list[list[str]]) -> str:
    if not rows:
        return "*Not measured yet.*"
    line = lambda cells: "| " + " | ".join(cells) + " |"  # noqa: E731
    return "\n".join([line(header), "|" + "-|" * len(header), *map(line, rows)])


def source(name: str) -> str:
    notes, _ = load(name)
    return "" if not notes else f"\n\n*{notes[0]}.*\n\n    " + "\n    ".join(notes[1].split("; "))


def best_gpu(profile: str, setting: str, way: str) -> str:
    found = [
        float(r["fps"])
        for r in rows_of("gpu_codec")
        if (r["profile"], r["setting"], r["way"]) == (profile, setting, way)
    ]
    return number(max(found), 4) if found else "–"


def gpu_of(name: str) -> str:
    """The GPU that was measured."""
    found = re.search(r"NVIDIA (\w+)", "".join(load(name)[0][:1]))
    return found.group(1) if found else "GPU"


def block_summary() -> str:
    names = {"fast": "`--preset fast`", "dense": "`--motion off`"}
    rows = []
    for profile in ("fast", "dense"):
        for setting in ("-q 60", "--lossless"):
            wavelet = (profile, setting) == ("dense", "--lossless")  # which `auto` does not take there
            cells = [f"`{setting} --transform wavelet --motion off`" if wavelet else f"{names[profile]}, `{setting}`"]
            cpu = [r for r in rows_of("speed") if (r["profile"], r["setting"]) == (profile, setting)]
            cells += (
                [
                    number(float(cpu[0]["bpp"])),
                    "exact" if cpu[0]["psnr"] == "inf" else f"{float(cpu[0]['psnr']):.1f} dB",
                ]
                + [f"{number(float(cpu[0]['encode_fps']), 2)} / {number(float(cpu[0]['decode_fps']), 2)}"]
                if cpu
                else ["–"] * 3
            )
            cells.append(f"{best_gpu(profile, setting, 'encode')} / {best_gpu(profile, setting, 'decode')}")
            wanted = ("gpu", profile, setting)
            files = [r for r in rows_of("gpu_files") if (r["device"], r["profile"], r["setting"]) == wanted]
            fps = (
                [number(int(files[0]["frames"]) / float(files[0][k])) for k in ("encode_s", "decode_s")]
                if files
                else []
            )
            cells.append(" / ".join(fps) or "–")
            rows.append(cells)
    return table(
        [
            "frames a second of 1080p, encode / decode",
            "bits/pixel",
            "PSNR",
            "one CPU core",
            gpu_of("gpu_codec"),
            f"{gpu_of('gpu_files')}, program and files",
        ],
        rows,
    )


def block_speed() -> str:
    per_frame = 1920 * 1080 * 1.5 / 1e6
    rows = []
    for setting in SETTINGS:
        cells = [f"`{setting}`"]
        psnr = ""
        for profile in ("dense", "fast"):
            found = [r for r in rows_of("speed") if (r["profile"], r["setting"]) == (profile, setting)]
            if not found:
                cells += ["–"] * 3
                continue
            r = found[0]
            psnr = "exact" if r["psnr"] == "inf" else f"{float(r['psnr']):.1f}"
            speeds = [number(float(r[k]) * per_frame) for k in ("encode_fps", "decode_fps")]
            cells += [number(float(r["bpp"])), *speeds]
        rows.append([*cells, psnr])
    header = ["", "`dense` bits/pixel", "encode", "decode", "`fast` bits/pixel", "encode", "decode", "PSNR dB"]
    return table(header, rows) + source("speed")


def block_peers() -> str:
    nearest: dict[str, dict] = {}
    for r in rows_of("peers"):
        best = nearest.get(r["codec"])
        if not best or abs(float(r["bpp"]) - 0.4) < abs(float(best["bpp"]) - 0.4):
            nearest[r["codec"]] = r
    rows = []
    for r in nearest.values():
        speeds = [number(float(r[k])) for k in ("encode_msamples", "decode_msamples")]
        rows.append([r["codec"], f"{float(r['bpp']):.3f}", *speeds, f"{float(r['psnr']):.1f}"])
    return table(["", "bits/pixel", "encode", "decode", "PSNR dB"], rows) + source("peers")


def block_rd() -> str:
    types = {"clip": str, "frames": int, "codec": str}
    points = [Point(**{k: types.get(k, float)(v) for k, v in r.items()}) for r in rows_of("rd")]
    clips = list(dict.fromkeys(p.clip for p in points))
    codecs = [c for c in dict.fromkeys(p.codec for p in points) if c != "trivelet --motion off"]
    rows = []
    for codec in codecs:
        cells = [codec]
        for clip in clips:
            pick = lambda label: [p for p in points if p.clip == clip and p.codec == label]  # noqa: E731
            bd = bd_rate(pick(codec), pick("trivelet --motion off"))
            cells.append(f"{bd[0]:+.0f}".replace("-", "−") if bd else "–")
        rows.append(cells)
    frames = {p.clip: p.frames for p in points}
    return table(["bits of Trivelet with `--motion off` over those of", *(f"{c}, {frames[c]} frames" for c in clips)], rows) + source("rd")


def block_targets() -> str:
    rows = []
    for r in rows_of("targets"):
        size = f"{int(r['bytes']):,}" + (f" of {int(r['limit']):,}" if r["limit"] else "")
        rows.append([f"`{r['target']}`", size, r["psnr"]])
    return table(["", "bytes", "PSNR of all planes"], rows) + source("targets")


def block_truncate() -> str:
    rows = [
        [f"{r['percent']} %", r["predicted"] or "–", r["has"], r["coded_for_it"]]
        for r in rows_of("truncate")
        if r["percent"] != "100"
    ]
    return table(["`trivelet truncate --size`", "index predicts", "has", "coded for that size"], rows) + source(
        "truncate"
    )


def block_lossless() -> str:
    rows = [
        [r["clip"], *(f"{float(r[k]):.2f}" for k in ("ffv1", "openjpeg", "fast", "dense", "slow"))]
        for r in rows_of("lossless")
    ]
    header = ["bits/pixel, wavelet, `--motion off`", "FFV1", "OpenJPEG", "`--preset fast`", "`medium`", "`--preset slow`"]
    return table(header, rows) + source("lossless")


def block_luma() -> str:
    rows = [
        [f"`{r['options']}`" if r["options"] else "`--motion off`", r["at_0.25"], r["at_0.5"], r["at_1"]]
        for r in rows_of("luma")
    ]
    return table(["luma of mobile, PSNR dB at", "0.25", "0.5", "1 bit/pixel"], rows) + source("luma")


def block_ends() -> str:
    keys = ("dip", "bpp", "psnr")
    rows = [[r["clip"], *(r[k] for k in keys)] for r in rows_of("ends")]
    return table(["", "dip, dB", "bits/pixel", "PSNR"], rows) + source("ends")


def block_memory() -> str:
    rows = [
        [f"`--profile {r['profile']}`", r["frames"], *(f"{int(r[k]):,}" for k in ("encode_mb", "decode_mb"))]
        for r in rows_of("memory")
    ]
    return table(["1080p, 4:2:0, 8 bits", "frames", "encode, MB", "decode, MB"], rows) + source("memory")


def block_gpu() -> str:
    rows = []
    for profile, setting in GPU_SETTINGS:
        own = [r for r in rows_of("gpu_codec") if (r["profile"], r["setting"]) == (profile, setting)]
        for slots in dict.fromkeys(r["gops_in_flight"] for r in own):
            fps = {r["way"]: number(float(r["fps"]), 4) for r in own if r["gops_in_flight"] == slots}
            rows.append(
                [f"`{profile}`, `{setting}`", own[0]["bpp"], slots, fps.get("encode", "–"), fps.get("decode", "–")]
            )
    return table(["", "bits/pixel", "GOPs in flight", "encode, frames/s", "decode, frames/s"], rows) + source(
        "gpu_codec"
    )


def block_gpu_files() -> str:
    """Frames a second without and with start-up and exit."""
    rows = []
    for r in rows_of("gpu_files"):
        frames = int(r["frames"])
        device, _, threads = r["device"].partition(":")
        name = device.upper() + (f" with --threads {threads}" if threads else "")
        cells = [f"{name}, `{r['profile']}`, `{r['setting']}`", number(frames)]
        for way in ("encode", "decode"):
            cells.append(" / ".join(number(frames / float(r[f"{way}{s}"])) for s in ("_work_s", "_s")))
        rows.append([*cells, number(frames / float(r["y4m_s"])), f"{float(r['short_s']):.2f} s"])
    heads = ["", "frames", "encode, frames/s", "decode to `null`, frames/s", "to a Y4M file, frames/s"]
    return table([*heads, "64 frames encoded in"], rows) + source("gpu_files")


def block_nvjpeg2000() -> str:
    rows = [
        [
            r["codec"],
            r["clip"],
            f"{float(r['bpp']):.3f}",
            f"{float(r['psnr_y']):.1f}",
            number(float(r["encode_fps"])),
            number(float(r["decode_fps"])),
        ]
        for r in rows_of("nvjpeg2000")
        if r["clip"] == "bbb"
    ]
    return table(
        ["nvJPEG2000", "clip", "bits/pixel", "luma PSNR", "encode, frames/s", "decode, frames/s"], rows
    ) + source("nvjpeg2000")


BLOCKS = {name[6:]: function for name, function in list(globals().items()) if name.startswith("block_")}


def replaced(text: str, document: str) -> str:
    def block(match: re.Match) -> str:
        name = match.group(1)
        if name not in BLOCKS:
            raise Failure(f"{document}: no table '{name}'")
        return f"<!-- figures: {name} -->\n{BLOCKS[name]()}\n<!-- end -->"

    return re.sub(r"<!-- figures: (\w+) -->\n.*?<!-- end -->", block, text, flags=re.S)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("print", "write", "check"))
    parser.add_argument("--data", type=Path, help="print: CSV files of this folder before those of tests/bench/data")
    options = parser.parse_args()
    if options.what == "print":
        SHOWN[:0] = [options.data] if options.data else []
        for name, function in BLOCKS.items():
            print(f"\n== {name}\n{function()}")
        return 0
    status = 0
    for document in DOCUMENTS:
        path = ROOT / document
        text = path.read_text()
        try:
            wanted = replaced(text, document)
        except Failure as e:
            say(f"figures: {e}")
            return 1
        if options.what == "write":
            path.write_text(wanted)
        elif wanted != text:
            say(f"{document} shows other figures than tests/bench/data; 'tests/bench/figures.py write' mends it")
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
