#!/usr/bin/env python3
"""The player without a screen: it draws what 'decode' gives, converted according to the standards.

    tests/program/play_test.py path/to/trivelet [path/to/trivelet_emulated]

Draws by Xvfb's OpenGL. Skipped where the program has no player, or there is no ffmpeg or xvfb-run.
"""

import json
import math
import os
import random
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import film_test
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
from program import check, failures  # noqa: E402

WIDTH, HEIGHT = 98, 66
program = ""


def run_on_screen(*command) -> subprocess.CompletedProcess:
    # Not the whole suite's number of screens: one is started for each call, which finds a free one.
    environment = {**os.environ, "SDL_AUDIODRIVER": "dummy", "LIBGL_ALWAYS_SOFTWARE": "1"}
    return subprocess.run(["xvfb-run", "-a", *map(str, command)], capture_output=True, timeout=120, env=environment)


def run(*arguments, screen: bool = False) -> subprocess.CompletedProcess:
    command = [program, *map(str, arguments)]
    result = run_on_screen(*command) if screen else subprocess.run(command, capture_output=True, timeout=120)
    check(result.returncode == 0, f"{arguments[0]}: exit code {result.returncode}: {result.stderr.decode()[:400]}")
    return result


def planes(raw: bytes, sizes: list, wide: bool) -> list:
    """Rows of every plane, as parts of the largest sample."""
    found, at = [], 0
    for width, height in sizes:
        rows = []
        for _ in range(height):
            row = raw[at : at + width * (2 if wide else 1)]
            rows.append([row[2 * i] | row[2 * i + 1] << 8 for i in range(width)] if wide else list(row))
            at += len(row)
        found.append(rows)
    return found


def between(rows: list, x: float, y: float) -> float:
    """Bilinear, the edges going on for ever."""
    x, y = min(max(x, 0), len(rows[0]) - 1), min(max(y, 0), len(rows) - 1)
    x0, y0 = int(x), int(y)
    x1, y1 = min(x0 + 1, len(rows[0]) - 1), min(y0 + 1, len(rows) - 1)
    top = rows[y0][x0] * (1 - x + x0) + rows[y0][x1] * (x - x0)
    low = rows[y1][x0] * (1 - x + x0) + rows[y1][x1] * (x - x0)
    return top * (1 - y + y0) + low * (y - y0)


def expected(raw: bytes, halved: int, bits: int) -> bytes:
    """BT.601 of limited range; chroma to the left if it is halved."""
    chroma = ((WIDTH + halved) >> halved, (HEIGHT + halved) >> halved)
    luma, blue, red = planes(raw, [(WIDTH, HEIGHT), chroma, chroma], bits > 8)
    unit, out = 1 << (bits - 8), bytearray()
    for y in range(HEIGHT):
        for x in range(WIDTH):
            at = (x / 2, (y + 0.5) / 2 - 0.5) if halved else (x, y)
            l = (luma[y][x] - 16 * unit) / (219 * unit)
            u = (between(blue, *at) - 128 * unit) / (224 * unit)
            v = (between(red, *at) - 128 * unit) / (224 * unit)
            r, b = l + 1.402 * v, l + 1.772 * u
            g = (l - 0.299 * r - 0.114 * b) / 0.587
            out += bytes(min(255, max(0, math.floor(255 * c + 0.5))) for c in (r, g, b))
    return bytes(out)


def psnr(a: bytes, b: bytes) -> float:
    error = sum((x - y) ** 2 for x, y in zip(a, b)) / max(1, len(a))
    return 99 if error == 0 else 10 * math.log10(255 * 255 / error)


def pixels(png: Path) -> bytes:
    command = ["ffmpeg", "-v", "error", "-i", str(png), "-f", "rawvideo", "-pix_fmt", "rgb24", "-"]
    return subprocess.run(command, check=True, capture_output=True).stdout


def test_pictures(folder: Path) -> None:
    for name, halved, bits in (("yuv420p", 1, 8), ("yuv444p", 0, 8), ("yuv420p10le", 1, 10)):
        film, stream, shot = folder / f"{name}.mkv", folder / f"{name}.tvl.mkv", folder / f"{name}.png"
        source = f"testsrc2=size={WIDTH}x{HEIGHT}:rate=25:duration=1"
        subprocess.run(["ffmpeg", "-v", "error", "-f", "lavfi", "-i", source, "-f", "lavfi", "-i", "sine=duration=1",
                        "-pix_fmt", name, "-c:v", "ffv1", "-c:a", "pcm_s16le", str(film)], check=True)  # fmt: skip
        run("encode", film, stream, "-q", "60", "--preset", "fast", "--gop", "10")
        run("play", stream, "--headless", "--screenshot-at", "0.52", "--screenshot", shot, screen=True)
        raw = run("decode", stream, "-", "--format", "raw", "--frames", "13:14").stdout
        quality = psnr(pixels(shot), expected(raw, halved, bits))
        check(quality >= 50, f"{name}: the screenshot is the frame: {quality:.1f} dB")
        other = run("decode", stream, "-", "--format", "raw", "--frames", "12:13").stdout
        check(psnr(pixels(shot), expected(other, halved, bits)) < 45, f"{name}: and not the one before")


def test_playing(folder: Path) -> None:
    film = folder / "yuv420p.tvl.mkv"
    for more in ([], ["--no-budget", "--overlay"], ["--compare", film], ["--reduce", "1", "--max-layers", "2", "--seek", "0.4"]):
        said = run("play", film, "--stats", "--quit-after", "5", *more, screen=True).stderr.decode()
        check("frames shown" in said, f"play {more}: {said[:300]}")


def test_tracks(folder: Path) -> None:
    """Subtitles of a track are drawn while they last; tracks that do not exist are refused."""
    text, film, stream, shot = (folder / n for n in ("a.srt", "tracks.mkv", "tracks.tvl.mkv", "tracks.png"))
    text.write_text("1\n00:00:00,200 --> 00:00:00,600\n<i>Hello</i>\n")
    subprocess.run(["ffmpeg", "-v", "error", "-f", "lavfi", "-i", "color=black:size=320x160:rate=25:duration=1", "-f", "lavfi", "-i",
                    "sine=duration=1", "-i", text, "-map", "0", "-map", "1", "-map", "1", "-map", "2", "-pix_fmt", "gray", "-c:v",
                    "ffv1", "-c:a", "flac", "-c:s", "srt", str(film)], check=True)  # fmt: skip
    run("encode", film, stream, "-q", "60", "--preset", "fast")
    for at, more, drawn in (("0.4", ["--subtitles", "1"], True), ("0.8", ["--subtitles", "1"], False), ("0.4", [], False)):
        run("play", stream, "--headless", "--screenshot-at", at, "--screenshot", shot, "-y", *more, screen=True)
        check((max(pixels(shot)) > 200) == drawn, f"subtitles at {at} s {more}: {max(pixels(shot))}")
    run("play", stream, "--sound", "2", screen=True)
    for more in (["--sound", "3"], ["--subtitles", "2"]):
        result = run_on_screen(program, "play", stream, "--quit-after", "1", *more)
        check(result.returncode == 2, f"{more}: {result.returncode}: {result.stderr.decode()[:300]}")


def test_each_gop_once(folder: Path) -> None:
    """Played from end to end each GOP is decoded once, though most depend on the one before; a jump costs two."""
    film, stream = folder / "moving.mkv", folder / "moving.tvl"
    source = f"testsrc2=size={WIDTH}x{HEIGHT}:rate=12:duration=4"
    subprocess.run(["ffmpeg", "-v", "error", "-f", "lavfi", "-i", source, "-pix_fmt", "yuv420p", "-c:v", "ffv1", str(film)],
                   check=True)  # fmt: skip
    run("encode", film, stream, "--motion", "on", "--gop", "8", "--levels", "3x3")
    gops = json.loads(run("info", stream, "--json").stdout)["gops"]
    check(len(gops) == 6, f"6 GOPs: {gops}")
    for seek, expected in (("0", 6), ("2.1", 4)):  # into the fourth, and the one before for its key frame
        said = run("play", stream, "--stats", "--no-budget", "--seek", seek, screen=True).stderr.decode()
        found = re.search(r"(\d+) frames shown, (\d+) late .*?; (\d+) GOPs decoded", said)
        check(bool(found) and int(found.group(3)) == expected, f"from {seek} s on: {said[:300]}, expected {expected} GOPs")
        frames = 48 - math.floor(12 * float(seek))
        check(bool(found) and int(found.group(1)) + int(found.group(2)) == frames, f"from {seek} s on, {frames} frames: {said[:300]}")


def test_volumes(folder: Path) -> None:
    """Three planes, as 'view' cuts them; less of the stream at a reduced size; a window typed."""
    raw, stream, shot, view = (folder / n for n in ("v.raw", "v.tvl", "planes.png", "view.png"))
    raw.write_bytes(bytes((3 * x * x + 5 * y + 11 * z) % 251 for z in range(24) for y in range(30) for x in range(40)))
    run("encode", raw, stream, "--size", "40x30x24", "--type", "u8", "--transform", "wavelet")
    run("play", stream, "--headless", "--screenshot", shot, screen=True)
    run("view", stream, "--montage", "-o", view)
    alike = [pixels(shot), pixels(view)]
    rgb = alike[1] if len(alike[1]) == len(alike[0]) else bytes(v for v in alike[1] for _ in range(3))
    check(alike[0] == rgb, "three planes are those of view")
    run("play", stream, "--headless", "--screenshot", shot, "--window", "20:120", "-y", screen=True)
    run("view", stream, "--montage", "--window", "20:120", "-o", view, "-y")
    rgb = pixels(view)
    check(pixels(shot) == (rgb if len(rgb) == len(alike[0]) else bytes(v for v in rgb for _ in range(3))), "--window")
    run("play", stream, "--headless", "--screenshot", shot, "--reduce", "1", "-y", screen=True)
    check(len(pixels(shot)) == (20 + 20 + 15 + 2 * 2) * 15 * 3, f"--reduce 1: {len(pixels(shot))} bytes")
    run("play", stream, "--headless", "--overlay", "--at", "1,2,3", "--screenshot", shot, "-y", screen=True)
    check(len(set(pixels(shot))) > 30, "the controls are drawn")
    run("play", stream, "--quit-after", "1", screen=True)
    for options in (["--seek", "1"], ["--at", "1,2,99"], ["--window", "5:1"], ["--at", "1"]):
        result = subprocess.run([program, "play", stream, "--headless", "--screenshot", shot, "-y", *options], capture_output=True)
        check(result.returncode == 2, f"play of a volume {options}: {result.returncode}")


def test_going_on(folder: Path) -> None:
    """Behind damage in the middle a film goes on, and what was damaged is said at the end."""
    whole = (folder / "moving.tvl").read_bytes()
    gops = json.loads(run("info", folder / "moving.tvl", "--json").stdout)["gops"]
    for name, at in (("header", gops[2]["offset"] + 30), ("chunk", gops[2]["offset"] + gops[2]["bytes"] - 20)):
        broken, shot = folder / "broken.tvl", folder / "broken.png"
        broken.write_bytes(whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :])
        script = f"{shlex.join([program, 'play', str(broken), '--stats', '--seek', '1'])}; echo exit $? >&2"
        said = run_on_screen("sh", "-c", script).stderr.decode()
        check("exit 4" in said, f"{name}: exit code 4: {said[:300]}")
        found = re.search(r"(\d+) frames shown, (\d+) late", said)
        check(bool(found) and int(found.group(1)) + int(found.group(2)) == 36, f"{name}: to the end: {said[:300]}")
        check(said.count("error:") == 1 and "is damaged" in said, f"{name}: one error: {said[:300]}")
        shots = []
        for film in (broken, folder / "moving.tvl"):
            run("play", film, "--headless", "--screenshot-at", "3.9", "--screenshot", shot, "-y", screen=True)
            shots.append(pixels(shot))
        check(shots[0] == shots[1], f"{name}: the last GOP is intact")


def test_gpu(folder: Path, emulated: str) -> None:
    """Frames that a GPU decodes stay there; where OpenGL is not on it they are fetched, which is said once."""
    shots = folder / "gpu.png", folder / "cpu.png"
    for name, more in (("yuv420p10le.tvl.mkv", ["--reduce", "1"]), ("yuv444p.tvl.mkv", ["--compare", folder / "yuv420p.tvl.mkv"])):
        for device, shot in zip(("gpu", "cpu"), shots):
            command = [emulated, "play", folder / name, "--device", device, "-v", "--headless", "--screenshot-at", "0.3",
                       "--screenshot", shot, "-y", *more]  # fmt: skip
            result = run_on_screen(*command)
            said = result.stderr.decode()
            check(result.returncode == 0, f"{name} --device {device}: exit code {result.returncode}: {said[:300]}")
            check(said.count("are copied through the host") == (device == "gpu"), f"{name} --device {device}: {said[:300]}")
        check(pixels(shots[0]) == pixels(shots[1]), f"{name}: the same picture from the GPU")


def test_damage(folder: Path) -> None:
    """Cut, changed and hostile files: pictures, or one error, and no other end. One screen for all of them."""
    generator = random.Random(7)
    commands, shot = [], folder / "damaged.png"
    for name in ("yuv420p.tvl.mkv", "film.tvl", "v.tvl"):
        whole = (folder / name).read_bytes()
        for i in range(6):
            data = bytearray(whole[: len(whole) * i // 3] if i < 3 else whole)
            for _ in range(30 if i >= 3 else 0):
                data[generator.randrange(len(data) if i > 3 else min(len(data), 1500))] ^= 1 << generator.randrange(8)
            (folder / f"damaged_{i}_{name}").write_bytes(data)
            commands.append([program, "play", str(folder / f"damaged_{i}_{name}"), "--headless", "--screenshot", str(shot), "-y",
                             *(["--screenshot-at", "0.2"] if name != "v.tvl" else [])])
    for i, (_, data) in enumerate(film_test.hostile((folder / "yuv420p.tvl.mkv").read_bytes())):
        (folder / f"hostile_{i}.mkv").write_bytes(data)
        commands.append([program, "play", str(folder / f"hostile_{i}.mkv"), "--headless", "--screenshot", str(shot), "-y",
                         "--screenshot-at", "0.2"])  # fmt: skip
    script = "".join(f"{shlex.join(c)} 2>&1 </dev/null; echo exit $?; " for c in commands)
    told = run_on_screen("sh", "-c", script)
    answers = re.split(r"exit (\d+)\n", told.stdout.decode(errors="replace"))
    check(len(answers) == 2 * len(commands) + 1, f"damage: {len(answers)} answers: {told.stderr.decode()[:300]}")
    for command, said, code in zip(commands, answers[::2], answers[1::2]):
        good = int(code) in (0, 2, 4, 5) and said.count("error:") <= 1 and "internal" not in said
        check(good, f"play {Path(command[2]).name}: exit code {code}: {said[:300]}")
    codes = answers[1::2]
    check("0" in codes and "4" in codes, f"some are played, some refused: {codes}")


def main() -> int:
    global program
    program = os.path.abspath(sys.argv[1])
    version = subprocess.run([program, "--version"], capture_output=True, text=True).stdout
    if "player yes" not in version or not shutil.which("ffmpeg") or not shutil.which("xvfb-run"):
        print("skipped: no player, ffmpeg or xvfb-run")
        return 77
    with tempfile.TemporaryDirectory() as name:
        test_pictures(Path(name))
        test_playing(Path(name))
        test_tracks(Path(name))
        test_each_gop_once(Path(name))
        test_going_on(Path(name))
        test_volumes(Path(name))
        if sys.argv[2:] and sys.argv[2]:  # the emulated program, where it is built
            test_gpu(Path(name), os.path.abspath(sys.argv[2]))
        run("demux", Path(name) / "yuv420p.tvl.mkv", Path(name) / "film.tvl")
        test_damage(Path(name))
    print(f"{len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
