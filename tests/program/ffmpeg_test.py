#!/usr/bin/env python3
"""FFmpeg with Trivelet in it (packaging/ffmpeg) shows what 'decode' gives, seeks, copies and encodes.

    tests/program/ffmpeg_test.py path/to/trivelet FOLDER

FOLDER keeps the build. With TRIVELET_FULL alone, for it compiles FFmpeg, under AddressSanitizer. TRIVELET_FFMPEG_PREFIX
names an installed one instead.
"""

import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
from program import check, failures  # noqa: E402
from program import ffmpeg as debians_ffmpeg  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
# pixel format, size, options of 'trivelet encode'
CASES = [
    ("yuv420p", "98x54", ["-q", "60", "--layers", "4"]),
    ("yuv420p", "96x54", ["--motion", "on", "--levels", "2x3", "--gop", "16", "--keyint", "32"]),
    ("yuv422p", "97x53", ["--preset", "fast"]),
    ("yuv444p10le", "96x54", ["-q", "80"]),
    ("yuv420p12le", "64x48", ["--lossless"]),
    ("yuva420p", "64x48", ["-q", "70"]),
    ("gbrp", "65x47", ["--lossless", "--preset", "fast"]),
    ("gbrap12le", "64x48", ["-q", "70"]),
    ("gray", "63x47", ["--preset", "fast", "--layers", "3"]),
    ("gray16le", "64x48", ["--lossless"]),
    ("ya8", "64x48", ["-q", "70"]),
    ("yuv440p", "64x48", ["-q", "70"]),
    ("yuv444p16le", "64x48", ["-q", "90", "--gop", "1"]),
]


class Tools:
    def __init__(self, program: str, prefix: Path) -> None:
        self.program, self.prefix = program, prefix

    def trivelet(self, *arguments, code: int = 0) -> str:
        done = subprocess.run([self.program, *map(str, arguments)], capture_output=True, text=True, timeout=300)
        check(done.returncode == code, f"trivelet {arguments[0]} ends with {done.returncode}: {done.stderr}")
        return done.stdout

    def ffmpeg(self, *arguments, fails: bool = False, data: bytes = b"") -> bytes:
        command = [self.prefix / "bin/ffmpeg", "-hide_banner", "-v", "error", "-y", "-nostdin", *map(str, arguments)]
        if data:
            command.remove("-nostdin")
        done = subprocess.run(command, capture_output=True, timeout=300, input=data or None)
        said = done.stderr.decode(errors="replace")
        check("AddressSanitizer" not in said and "LeakSanitizer" not in said and done.returncode >= 0, said[-2000:])
        check(fails or done.returncode == 0, f"ffmpeg {' '.join(map(str, arguments))}: {said[-1000:]}")
        return done.stdout

    def probe(self, file: Path) -> dict:
        shown = ["-show_format", "-show_streams", "-show_chapters", "-show_packets"]
        command = [self.prefix / "bin/ffprobe", "-v", "error", "-of", "json", *shown, file]
        return json.loads(subprocess.run(command, check=True, capture_output=True, timeout=300).stdout)

    def raw(self, file: Path | str, *options, data: bytes = b"") -> bytes:
        """Component after component, as 'decode' writes frames; FFmpeg's frames of grey with alpha are interleaved."""
        pixels = self.ffmpeg(*options, "-i", file, "-fps_mode", "passthrough", "-f", "rawvideo", "-", data=data)
        stream = self.probe(file)["streams"][0] if not data else {"pix_fmt": ""}
        if not stream["pix_fmt"].startswith("ya"):
            return pixels
        sample = 2 if "16" in stream["pix_fmt"] else 1
        size = stream["width"] * stream["height"] * 2 * sample
        split = bytearray()
        for frame in (pixels[i : i + size] for i in range(0, len(pixels), size)):
            for first in (0, sample):
                plane = bytearray(size // 2)
                for byte in range(sample):
                    plane[byte::sample] = frame[first + byte :: 2 * sample]
                split += plane
        return bytes(split)

    def decoded(self, file: Path, *options) -> bytes:
        out = file.with_suffix(".yuv")
        self.trivelet("decode", file, out, "--format", "raw", "-y", "--quiet", *options)
        return out.read_bytes()


def md5(data: bytes) -> str:
    return hashlib.md5(data).hexdigest()


def make_source(tools: Tools, file: Path, pix_fmt: str, size: str, frames: int = 40) -> None:
    graph = f"testsrc2=size=128x96:rate=25,trim=end_frame={frames},scale={size.replace('x', ':')},setsar=1,format={pix_fmt}"
    tools.ffmpeg("-f", "lavfi", "-i", graph, "-c:v", "ffv1", file)


def test_decoding(tools: Tools, folder: Path) -> None:
    for number, (pix_fmt, size, options) in enumerate(CASES):
        source, tvl, mkv, back = (folder / f"{number}{end}" for end in (".src.mkv", ".tvl", ".mkv", ".back.tvl"))
        make_source(tools, source, pix_fmt, size)
        tools.trivelet("encode", source, tvl, "-y", "--quiet", *options)
        wanted = tools.decoded(tvl)
        what = f"{pix_fmt} {size} {' '.join(options)}"
        check(len(wanted) > 0 and md5(tools.raw(tvl)) == md5(wanted), f"{what}: .tvl, other frames")
        tools.ffmpeg("-i", tvl, "-c", "copy", mkv)
        check(md5(tools.raw(mkv)) == md5(wanted), f"{what}: .mkv, other frames")
        check(md5(tools.decoded(mkv)) == md5(wanted), f"{what}: 'decode' of FFmpeg's .mkv, other frames")
        tools.trivelet("verify", mkv, "--quiet")
        tools.ffmpeg("-i", mkv, "-c", "copy", back)
        check(back.read_bytes() == tvl.read_bytes(), f"{what}: .tvl -> .mkv -> .tvl, other bytes")
        if pix_fmt != "ya8":
            check(md5(tools.raw("pipe:0", data=tvl.read_bytes())) == md5(wanted), f"{what}: from a pipe, other frames")
        stream = tools.probe(tvl)["streams"][0]
        check(stream["pix_fmt"] == pix_fmt and f"{stream['width']}x{stream['height']}" == size, f"{what}: {stream}")
        check(abs(float(stream["duration"]) - 1.6) < 1e-6 and stream["avg_frame_rate"] == "25/1", f"{what}: {stream}")
    tvl = folder / "0.tvl"
    for lowres in (1, 2):
        check(md5(tools.raw(tvl, "-lowres", lowres)) == md5(tools.decoded(tvl, "--reduce", lowres)), f"-lowres {lowres}")
    check(md5(tools.raw(tvl, "-layers", 3)) == md5(tools.decoded(tvl, "--max-layers", 3)), "-layers 3")
    check(md5(tools.raw(tvl, "-reduce_rate", 1)) == md5(tools.decoded(tvl, "--temporal-reduce", 1)), "-reduce_rate 1")
    for threads in (1, 3):
        check(md5(tools.raw(folder / "1.tvl", "-threads", threads)) == md5(tools.decoded(folder / "1.tvl")), "threads")
    tools.ffmpeg("-lowres", 8, "-i", tvl, "-f", "null", "-", fails=True)


def test_seeking(tools: Tools, folder: Path) -> None:
    source = folder / "long.src.mkv"
    make_source(tools, source, "yuv420p", "96x54", 200)
    chosen = random.Random(5)
    for name, options in (("plain", ["--gop", "16", "--motion", "off"]), ("motion", ["--motion", "on", "--gop", "16", "--keyint", "32"])):
        tvl, mkv = folder / f"{name}.tvl", folder / f"{name}.mkv"
        tools.trivelet("encode", source, tvl, "-y", "--quiet", *options)
        tools.ffmpeg("-i", tvl, "-c", "copy", mkv)
        whole = tools.decoded(tvl)
        size = len(whole) // 200
        for _ in range(20):
            frame = chosen.randrange(200)
            file = chosen.choice([tvl, mkv])
            got = tools.ffmpeg("-ss", f"{frame * 0.04:.2f}", "-i", file, "-frames:v", 1, "-f", "rawvideo", "-")
            check(got == whole[frame * size : (frame + 1) * size], f"{file.name}: -ss to frame {frame}")
        packets = tools.probe(tvl)["packets"]
        times = [float(p["pts_time"]) for p in packets]
        check(times[-1] == 8 and times == sorted(times) and packets[0]["flags"].startswith("K"), f"{name}: {times}")
        check((sum(p["flags"].startswith("K") for p in packets) < len(packets) - 1) == (name == "motion"), f"{name}: keys")


def test_encoding(tools: Tools, folder: Path) -> None:
    for number, (pix_fmt, size) in enumerate([("yuv420p", "98x54"), ("gbrp10le", "64x48"), ("gray", "33x31"),
                                              ("yuva444p10le", "64x48"), ("ya16le", "64x48")]):  # fmt: skip
        source, tvl, mkv = (folder / f"e{number}{end}" for end in (".src.mkv", ".tvl", ".mkv"))
        make_source(tools, source, pix_fmt, size)
        wanted = md5(tools.raw(source))
        for profile in ("dense", "fast", "predictive"):
            tools.ffmpeg("-i", source, "-c:v", "libtrivelet", "-lossless", 1, "-profile", profile, tvl)
            check(md5(tools.decoded(tvl)) == wanted, f"{pix_fmt} -profile {profile}: not lossless")
            tools.trivelet("verify", tvl, "--quiet")
        tools.ffmpeg("-i", source, "-c:v", "libtrivelet", "-lossless", 1, mkv)
        check(md5(tools.decoded(mkv)) == wanted and md5(tools.raw(mkv)) == wanted, f"{pix_fmt}: .mkv is not lossless")
        tools.trivelet("verify", mkv, "--quiet")
    source = folder / "long.src.mkv"
    sizes = []
    for quality in (30, 60, 90):
        tvl = folder / f"q{quality}.tvl"
        tools.ffmpeg("-i", source, "-c:v", "libtrivelet", "-quality", quality, tvl)
        sizes.append(tvl.stat().st_size)
        own = folder / "own.tvl"
        tools.trivelet("encode", source, own, "-y", "--quiet", "-q", quality)
        check(tools.decoded(own) == tools.decoded(tvl), f"-quality {quality}: not the pictures of -q {quality}")
    check(sizes == sorted(sizes) and sizes[2] > 2 * sizes[0], f"sizes by quality: {sizes}")
    tvl = folder / "rate.tvl"
    tools.ffmpeg("-i", source, "-c:v", "libtrivelet", "-b:v", "200k", "-motion", "on", "-g", 16, tvl)
    check(0.9 * 200e3 < tvl.stat().st_size <= 200e3, f"-b:v 200k: {tvl.stat().st_size} bytes of 8 s")
    check(float(tools.probe(tvl)["format"]["duration"]) == 8, "a film of 8 s that is encoded lasts 8 s")
    tools.trivelet("verify", tvl, "--quiet")
    # Times that are not evenly spaced.
    tools.ffmpeg("-i", source, "-vf", "select='not(mod(n,7))+not(mod(n,5))'", "-fps_mode", "vfr", "-c:v", "libtrivelet",
                 "-g", 8, folder / "uneven.tvl")  # fmt: skip
    frames = tools.ffmpeg("-i", folder / "uneven.tvl", "-fps_mode", "passthrough", "-f", "framemd5", "-").decode()
    times = [int(line.split(",")[2]) for line in frames.splitlines() if line and line[0] != "#"]
    check(times == [n for n in range(200) if n % 7 == 0 or n % 5 == 0], f"uneven times: {times}")


def test_damage(tools: Tools, folder: Path) -> None:
    """No input ends FFmpeg by a signal or a sanitizer; what is whole is shown."""
    chosen = random.Random(11)
    for name in ("0", "1", "6", "motion"):
        whole = (folder / f"{name}.tvl").read_bytes()
        for container in (".tvl", ".mkv"):
            data = (folder / f"{name}{container}").read_bytes()
            for _ in range(12):
                bad = bytearray(data)
                for _ in range(chosen.choice([1, 3, 20])):
                    bad[chosen.randrange(len(bad))] ^= 1 << chosen.randrange(8)
                if chosen.random() < 0.3:
                    bad = bad[: chosen.randrange(len(bad))]
                file = folder / f"bad{container}"
                file.write_bytes(bad)
                corrupt = ["-flags", "+output_corrupt"] if chosen.random() < 0.5 else []
                tools.ffmpeg(*corrupt, "-i", file, "-f", "null", "-", fails=True)
                tools.ffmpeg("-ss", "0.8", "-i", file, "-f", "null", "-", fails=True)
                tools.ffmpeg("-i", file, "-c", "copy", folder / "copy.tvl", fails=True)
        check(len(whole) > 0, name)
    # A damaged GOP in the middle: the others are shown, from a file and from a pipe.
    data = bytearray((folder / "plain.tvl").read_bytes())
    gop = [i for i in range(len(data)) if data[i : i + 4] == b"Gop "][4]
    size = len(tools.decoded(folder / "plain.tvl")) // 200
    for at in (gop + 2, gop + 600):
        bad = bytearray(data)
        bad[at] ^= 0xFF
        file = folder / "bad.tvl"
        file.write_bytes(bad)
        shown = tools.ffmpeg("-i", file, "-fps_mode", "passthrough", "-f", "rawvideo", "-", fails=True)
        check(len(shown) // size == 200 - 16, f"byte {at}: {len(shown) // size} frames are shown, not 184")
    # A volume is no video.
    tools.ffmpeg("-i", ROOT / "tests/conformance/volume_u8.tvl", "-f", "null", "-", fails=True)


def test_mpv(tools: Tools, folder: Path) -> None:
    """Debian's mpv, which is linked against FFmpeg's shared libraries, shows the frame that it was asked for."""
    if not shutil.which("mpv") or not shutil.which("ffmpeg") or not list(tools.prefix.glob("lib/libavcodec.so*")):
        print("not tested: mpv, ffmpeg or FFmpeg's shared libraries are not installed")
        return
    environment = {**os.environ, "LD_LIBRARY_PATH": str(tools.prefix / "lib"), "HOME": str(folder)}
    for name in ("motion.tvl", "motion.mkv"):
        options = ["--no-config", "--vo=image", "--vo-image-format=jpg", f"--vo-image-outdir={folder}", "--ao=null"]
        command = ["mpv", *options, "--start=4", "--frames=1", str(folder / name)]
        (folder / "00000001.jpg").unlink(missing_ok=True)
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)
        if not (folder / "00000001.jpg").exists():
            check(False, f"mpv {name}: no picture: {done.stdout[-500:]} {done.stderr[-500:]}")
            continue
        tools.trivelet("decode", folder / name, folder / "frame.y4m", "-y", "--quiet", "--frames", "100:101")
        graph = "[0:v]format=yuv444p[a];[1:v]format=rgb24,format=yuv444p[b];[a][b]psnr=stats_file=-"
        pictures = ["-i", folder / "00000001.jpg", "-i", folder / "frame.y4m"]
        said = debians_ffmpeg(*pictures, "-lavfi", graph, "-f", "null", "-").stdout
        psnr = float(said.decode().split("psnr_y:")[1].split()[0])
        check(psnr > 30, f"mpv {name}: the picture has {psnr} dB against frame 100")


def main() -> int:
    prefix = os.environ.get("TRIVELET_FFMPEG_PREFIX", "")
    if not prefix and os.environ.get("TRIVELET_FULL", "0") in ("", "0"):
        print("skipped: tests/run.sh --full builds FFmpeg")
        return 77
    if not prefix:
        build = Path(sys.argv[2]).resolve()
        prefix = str(build / "installed")
        environment = {**os.environ, "SANITIZE": "1", "BUILD_DIR": str(build)}
        subprocess.run([ROOT / "packaging/ffmpeg/build.sh", "--minimal", prefix], check=True, env=environment)
    tools = Tools(os.path.abspath(sys.argv[1]), Path(prefix))
    with tempfile.TemporaryDirectory() as name:
        for test in (test_decoding, test_seeking, test_encoding, test_damage, test_mpv):
            test(tools, Path(name))
    shutil.rmtree(Path(sys.argv[2]) / "source", ignore_errors=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
