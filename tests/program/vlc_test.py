#!/usr/bin/env python3
"""VLC with our module shows what 'decode' gives, from the start, after a seek, and with motion.

    tests/program/vlc_test.py path/to/trivelet folder/of/the/module

Without a screen: VLC's filter "scene" writes what would be shown. Skipped without VLC or ffmpeg. As root VLC runs as
nobody, for it refuses root.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
from program import check, failures  # noqa: E402

def play(film: Path, plugins: Path, folder: Path, *more) -> tuple:
    """Pictures that VLC shows, in their order, and how often the module decoded a GOP."""
    for old in folder.glob("*.png"):
        old.unlink()
    before = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] if os.getuid() == 0 else []
    command = [*before, "cvlc", "-I", "dummy", "--aout=dummy", "--vout=dummy", "--video-filter=scene", "--no-spu",
               "-vv", f"--scene-path={folder}", "--scene-prefix=p", "--scene-format=png", "--scene-ratio=1", *more,
               str(film), "vlc://quit"]  # fmt: skip
    environment = {**os.environ, "VLC_PLUGIN_PATH": str(plugins), "HOME": str(folder)}
    said = subprocess.run(command, env=environment, capture_output=True, timeout=120).stderr.decode(errors="replace")
    return sorted(folder.glob("*.png")), sum(map(int, re.findall(r"(\d+) GOPs decoded", said)))


def nearest(png: Path, frames: Path) -> tuple:
    """The frame that is most like it, and its PSNR."""
    graph = "[0:v]format=rgb24[a];[1:v]loop=-1:1,format=rgb24[b];[a][b]psnr=stats_file=-:shortest=1"
    command = ["ffmpeg", "-v", "error", "-i", str(frames), "-i", str(png), "-filter_complex", graph, "-f", "null", "-"]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found = [(float("inf") if p == "inf" else float(p)) for p in re.findall(r"psnr_avg:(\S+)", said)]
    best = max(range(len(found)), key=lambda i: found[i])
    return best, found[best]


def main() -> int:
    program, plugins = os.path.abspath(sys.argv[1]), Path(sys.argv[2]).resolve()
    if not shutil.which("cvlc") or not shutil.which("ffmpeg") or not shutil.which("setpriv"):
        print("skipped: no cvlc, ffmpeg or setpriv")
        return 77
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        scene = folder / "scene"
        scene.mkdir(mode=0o777)
        scene.chmod(0o777)
        modules = folder / "plugins"  # where nobody may read it
        shutil.copytree(plugins, modules)
        source = folder / "source.mkv"
        subprocess.run(["ffmpeg", "-v", "error", "-f", "lavfi", "-i", "testsrc2=size=99x66:rate=25:duration=3", "-f",
                        "lavfi", "-i", "sine=duration=3", "-pix_fmt", "yuv420p", "-c:v", "ffv1", "-c:a", "aac",
                        str(source)], check=True)  # fmt: skip
        # The defaults' GOPs are longer than VLC's pool of pictures. The last film is one GOP: VLC, which does not know how
        # long a packet lasts, shows nothing of the one it seeks into.
        for options in ([], ["--preset", "fast", "--gop", "10"], ["--motion", "on", "--gop", "8", "--levels", "2x3"],
                        ["--preset", "fast", "--gop", "128"]):  # fmt: skip
            film, frames = folder / "film.mkv", folder / "frames.y4m"
            subprocess.run([program, "encode", source, film, "-q", "70", "-y", *options], check=True, capture_output=True)
            subprocess.run([program, "decode", film, frames, "-y"], check=True, capture_output=True)
            film.chmod(0o644)
            shown, decoded = play(film, modules, scene)
            gops = len(json.loads(subprocess.run([program, "info", film, "--json"], capture_output=True).stdout)["gops"])
            check(decoded == gops, f"{options}: {gops} GOPs, decoded {decoded}")
            # The last ones may be cut off by the end.
            check(65 <= len(shown) <= 76, f"{options}: {len(shown)} of 75 pictures")
            for place in (0, len(shown) // 2, len(shown) - 1):
                if place < len(shown):
                    frame, quality = nearest(shown[place], frames)
                    check(quality >= 50 and abs(frame - place) <= 10, f"{options}: picture {place} is frame {frame}, {quality:.1f} dB")
            if gops == 1:
                continue
            late, _ = play(film, modules, scene, "--start-time=2")
            check(len(late) > 5, f"{options}: {len(late)} pictures after a seek")
            if late:
                frame, quality = nearest(late[-1], frames)
                check(quality >= 50 and frame > 60, f"{options}: after a seek, frame {frame}, {quality:.1f} dB")
    print(f"{len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
