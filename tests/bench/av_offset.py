#!/usr/bin/env python3
"""Measures the offset between the player's pictures and its sound after each of ten seeks, from recordings of both.

    tests/bench/av_offset.py path/to/trivelet

A film flashes and beeps on every second. The screen (Xvfb) is grabbed 120 times a second with the time of day; the sound
goes to a file at the speed of a sound card (SDL's driver `disk`), and when the file grows is noted. Positive: the picture
comes after its sound. Grabbing alone makes it up to 8 ms. Needs ffmpeg, Xvfb, xdotool and an idle machine; as root the
player and the recorders run with precedence.
"""

import os
import re
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

RATE, SAMPLE_BYTES = 48000, 8  # two channels of 32 bits
SCREEN = ":77"
KEYS = ["Right", "Right", "Left", "Up", "Left", "Right", "Down", "Right", "Left", "Right"]
BETWEEN = 3.6  # seconds


def make_film(trivelet: str, folder: Path) -> Path:
    plain, film = folder / "plain.mkv", folder / "film.mkv"
    light = "color=black:size=320x240:rate=25:duration=200,format=yuv420p,geq=lum='if(lt(mod(N,25),4),235,16)':cb=128:cr=128"
    beep = f"aevalsrc='if(lt(mod(t,1),0.1),0.5*sin(2*PI*1000*t),0)':s={RATE}:d=200"
    subprocess.run(["ffmpeg", "-v", "error", "-f", "lavfi", "-i", light, "-f", "lavfi", "-i", beep, "-c:v", "ffv1", "-c:a",
                    "pcm_s16le", str(plain)], check=True)  # fmt: skip
    subprocess.run([trivelet, "encode", str(plain), str(film), "--preset", "fast", "--quiet"], check=True)
    return film


def flashes(folder: Path) -> list:
    """Times of day at which the screen became bright."""
    log = (folder / "grab.log").read_text(errors="replace")
    times = [int(t) * 1e-6 for t in re.findall(r" pts: *(\d+) ", log)]
    pixels = (folder / "screen.raw").read_bytes()
    light = [sum(pixels[i : i + 64]) / 64 for i in range(0, len(pixels) - 63, 64)]
    return [(times[i - 1] + times[i]) / 2 for i in range(1, min(len(light), len(times))) if light[i - 1] <= 150 < light[i]]


def beeps(sound: Path, growth: list) -> list:
    """Times of day at which a beep began. A piece sounds from when it was written."""
    data = sound.read_bytes()
    count = len(data) // SAMPLE_BYTES
    left = struct.unpack(f"<{2 * count}f", data[: count * SAMPLE_BYTES])[::2]
    begun, silent = [], RATE
    for i, value in enumerate(left):
        if abs(value) > 0.1:
            if silent > RATE // 4:
                begun.append(i * SAMPLE_BYTES)
            silent = 0
        else:
            silent += 1
    found = []
    for place in begun:
        before = 0
        for moment, size in growth:
            if size > place:
                found.append(moment + (place - before) / SAMPLE_BYTES / RATE)
                break
            before = size
    return found


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__)
        return 2
    trivelet = os.path.abspath(sys.argv[1])
    first = ["nice", "-n", "-12"] if os.geteuid() == 0 else []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        film, sound = make_film(trivelet, folder), folder / "sound.raw"
        sound.touch()
        environment = {**os.environ, "DISPLAY": SCREEN, "SDL_AUDIODRIVER": "disk", "SDL_DISKAUDIOFILE": str(sound),
                       "LIBGL_ALWAYS_SOFTWARE": "1"}  # fmt: skip
        screen = subprocess.Popen([*first, "Xvfb", SCREEN, "-screen", "0", "320x240x24"], stderr=subprocess.DEVNULL)
        time.sleep(1)
        grab = ["ffmpeg", "-v", "info", "-copyts", "-f", "x11grab", "-framerate", "120", "-video_size", "32x32", "-grab_x", "144",
                "-grab_y", "100", "-i", SCREEN, "-pix_fmt", "gray", "-vf", "showinfo,scale=8:8:flags=area", "-fps_mode",
                "passthrough", "-f", "rawvideo", str(folder / "screen.raw")]  # fmt: skip
        with open(folder / "grab.log", "wb") as log:
            grabber = subprocess.Popen([*first, *grab], stderr=log, stdin=subprocess.DEVNULL)
        player = subprocess.Popen([*first, trivelet, "play", str(film), "--stats"], env=environment)
        growth, done = [], threading.Event()

        def watch() -> None:
            size = 0
            while not done.wait(0.0005):
                if sound.stat().st_size != size:
                    size = sound.stat().st_size
                    growth.append((time.time(), size))

        watcher = threading.Thread(target=watch)
        watcher.start()
        time.sleep(BETWEEN)
        jumps = []
        for key in KEYS:
            jumps.append(time.time())
            subprocess.run(["xdotool", "key", key], env=environment, check=True)
            time.sleep(BETWEEN)
        subprocess.run(["xdotool", "key", "q"], env=environment, check=True)
        player.wait(20)
        done.set()
        watcher.join()
        grabber.terminate()
        grabber.wait()
        screen.terminate()
        screen.wait()
        heard = beeps(sound, growth)
        pairs = []
        for seen in flashes(folder):
            nearest = min(heard, key=lambda moment: abs(moment - seen), default=0)
            if abs(nearest - seen) < 0.4:
                pairs.append((sum(jump < seen for jump in jumps), 1000 * (seen - nearest)))
    for jump in range(len(KEYS) + 1):
        offsets = " ".join(f"{ms:+.1f}" for number, ms in pairs if number == jump)
        print(f"{'begun' if jump == 0 else 'after ' + KEYS[jump - 1]:12} {offsets} ms")
    offsets = [ms for _, ms in pairs]
    if offsets:
        print(f"{len(offsets)} flashes: {min(offsets):+.1f} to {max(offsets):+.1f} ms, {sum(offsets) / len(offsets):+.1f} on average")
    return 0 if offsets else 1


if __name__ == "__main__":
    sys.exit(main())
