#!/usr/bin/env python3
"""Our GStreamer elements: Matroska and .tvl files to raw video, raw video to streams, and seeks.

    tests/program/gstreamer_test.py path/to/trivelet folder/of/the/plug-in path/to/gstreamer_seek

FFmpeg judges the pictures. Skipped without gst-launch-1.0, matroskademux or ffmpeg.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
from boxes import with_size  # noqa: E402
from program import check, failures, ffmpeg  # noqa: E402

SIZE = "96x64"  # without padding of rows in what filesink writes
FRAMES = 40
def psnr(raw: Path, pixel_format: str, reference: Path) -> float:
    """Between raw frames and a video; both have to have as many."""
    size = raw.stat().st_size
    said = ffmpeg("-f", "rawvideo", "-video_size", SIZE, "-pixel_format", pixel_format, "-i", raw, "-i", reference,
                  "-lavfi", f"[1]format={pixel_format}[x];[0][x]psnr", "-f", "null", "-").stderr.decode(errors="replace")  # fmt: skip
    frames = [int(n) for n in re.findall(r"frame=\s*(\d+)", said)]
    check(size > 0 and frames and frames[-1] == FRAMES, f"{raw.name}: {frames} frames")
    return float(re.search(r"average:(\S+)", said).group(1))


def main() -> int:
    program, plugins = os.path.abspath(sys.argv[1]), Path(sys.argv[2]).resolve()
    if not all(shutil.which(tool) for tool in ("gst-launch-1.0", "gst-inspect-1.0", "ffmpeg")):
        print("skipped: no gst-launch-1.0 or ffmpeg")
        return 77
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        environment = {**os.environ, "GST_PLUGIN_PATH": str(plugins), "GST_REGISTRY": str(folder / "registry")}

        def launch(*arguments) -> str:
            command = ["gst-launch-1.0", *map(str, arguments)]
            result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
            # It ends with 0 even after errors in some states.
            failed = result.returncode != 0 or "ERROR" in result.stderr + result.stdout
            check(not failed, f"{' '.join(command)}: {result.stderr[-600:]}")
            return result.stdout + result.stderr

        def failure(*arguments) -> str:
            """What an element says that cannot go on, or "". Errors while it prerolls let gst-launch 1.22 wait for ever."""
            process = subprocess.Popen(["gst-launch-1.0", *map(str, arguments)], env=environment, text=True,
                                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT)  # fmt: skip
            said = next((line for line in process.stdout if "ERROR: from element" in line), "")
            if said:
                process.kill()
            check(process.wait(timeout=60) in (0, 1, -9), f"{arguments}: ended with {process.returncode}")
            return said

        for element in ("matroskademux", "videoconvert"):
            if subprocess.run(["gst-inspect-1.0", element], env=environment, capture_output=True).returncode != 0:
                print(f"skipped: no {element}")
                return 77
        source = folder / "source.mkv"
        ffmpeg("-f", "lavfi", "-i", f"testsrc2=size={SIZE}:rate=25:duration={FRAMES / 25}", "-f", "lavfi", "-i",
               f"sine=duration={FRAMES / 25}", "-pix_fmt", "yuv420p", "-c:v", "ffv1", "-c:a", "flac", source)  # fmt: skip
        for options in (["--preset", "fast", "--gop", "9"], ["--motion", "on", "--gop", "8", "--levels", "2x3"]):
            film, stream, frames, raw = (folder / n for n in ("film.mkv", "film.tvl", "frames.mkv", "raw.yuv"))
            subprocess.run([program, "encode", source, film, "-q", "70", "-y", *options], check=True, capture_output=True)
            subprocess.run([program, "demux", film, stream, "-y"], check=True, capture_output=True)
            subprocess.run([program, "decode", film, frames, "-y"], check=True, capture_output=True)
            launch("filesrc", f"location={film}", "!", "matroskademux", "!", "tvldec", "!", "filesink", f"location={raw}")
            check(psnr(raw, "yuv420p", frames) > 99, f"{options}: from Matroska as decode gives it")
            raw.unlink()
            launch("filesrc", f"location={stream}", "blocksize=1000", "!", "tvldec", "!", "filesink", f"location={raw}")
            check(psnr(raw, "yuv420p", frames) > 99, f"{options}: from a .tvl file")
            # By what the file is: decodebin finds the element. Times are those of the film. Sound that nobody takes lets
            # gst-launch 1.22 wait for ever now and then.
            said = launch("-v", "filesrc", f"location={film}", "!", "decodebin", "name=d", "d.", "!", "video/x-raw", "!",
                          "fakesink", "silent=false", "d.", "!", "audio/x-raw", "!", "fakesink")  # fmt: skip
            times = re.findall(r"pts: 0:00:0(\d\.\d+), duration: 0:00:00\.0(\d)", said)
            check(len(times) == FRAMES, f"{options}: {len(times)} times")
            wrong = [t for i, (t, d) in enumerate(times) if abs(float(t) - i / 25) > 0.0011 or d != "4"]
            check(not wrong, f"{options}: times {wrong[:5]}")
            # Ten places, forwards and back: the picture that is due then, as decode gives it.
            ffmpeg("-i", frames, "-pix_fmt", "yuv420p", "-f", "rawvideo", raw)
            whole, bytes_per_frame = raw.read_bytes(), raw.stat().st_size // FRAMES
            places = (0, 39, 1, 8, 7, 20, 19, 33, 16, 38)
            said = subprocess.run([sys.argv[3], film, *(str(n / 25 + 0.001) for n in places)], env=environment,
                                  capture_output=True, text=True, timeout=120)  # fmt: skip
            check(said.returncode == 0, f"{options}: seeking: {said.stderr[-300:]}")
            shown = [line.split() for line in said.stdout.splitlines()]
            check(len(shown) == len(places), f"{options}: {len(shown)} places")
            for n, (time, sum_of_bytes) in zip(places, shown):
                wanted = hashlib.md5(whole[n * bytes_per_frame : (n + 1) * bytes_per_frame]).hexdigest()
                check(abs(int(time) / 1e9 - n / 25) < 0.0011, f"{options}: sought {n / 25} s, shown {time} ns")
                check(sum_of_bytes == wanted, f"{options}: another picture at {n / 25} s")
            # From end to end each GOP is decoded once, also where it depends on the one before.
            gops = len(json.loads(subprocess.run([program, "info", film, "--json"], capture_output=True).stdout)["gops"])
            said = subprocess.run([sys.argv[3], film], env=environment, capture_output=True, text=True, timeout=120)
            check(said.stdout.strip() == str(gops), f"{options}: {gops} GOPs, decoded {said.stdout} {said.stderr[-300:]}")
        # Fewer layers, a smaller picture.
        launch("filesrc", f"location={film}", "!", "matroskademux", "!", "tvldec", "reduce=1", "!", "filesink", f"location={raw}")
        check(raw.stat().st_size == FRAMES * 48 * 32 * 3 // 2, "reduce=1")
        # Back: exactly, with the format, colour and rate that came in.
        for pixels, name in (("yuv420p", "I420"), ("gbrp10le", "GBR_10LE"), ("gray", "GRAY8"), ("yuv422p12le", "I422_12LE")):
            raw, back, again = folder / "in.raw", folder / "back.tvl", folder / "again.yuv"
            ffmpeg("-i", source, "-an", "-pix_fmt", pixels, "-f", "rawvideo", raw)
            launch("filesrc", f"location={raw}", f"blocksize={raw.stat().st_size // FRAMES}", "!", "rawvideoparse",
                   "width=96", "height=64", f"format={name.lower().replace('_', '-')}", "framerate=30000/1001", "!", "tvlenc",
                   "lossless=true", "!", "filesink", f"location={back}")  # fmt: skip
            result = subprocess.run([program, "verify", back, "--json"], capture_output=True, text=True)
            told = json.loads(result.stdout or "{}")
            check(told.get("intact") and told.get("frames") == FRAMES, f"tvlenc {pixels}: {result.stdout[:200]}")
            subprocess.run([program, "decode", back, again, "-y"], capture_output=True)
            check(again.exists() and again.read_bytes() == raw.read_bytes(), f"tvlenc {pixels}: exact")
            video = json.loads(subprocess.run([program, "info", back, "--json"], capture_output=True).stdout)["video"]
            check(video["pixel_format"] == pixels and video["frame_rate"] == "30000/1001", f"tvlenc {pixels}: {video}")
            check(abs(video["duration_seconds"] - FRAMES * 1001 / 30000) < 1e-6, f"tvlenc {pixels}: lasts {video}")
        # A source of everything gives plain YUV. Into Matroska, beside sound; motion has GOPs that depend on others.
        both = folder / "both.mkv"
        test_pictures = ["videotestsrc", f"num-buffers={FRAMES}", "!", "video/x-raw,width=96,height=64,framerate=25/1"]
        deep = ["queue", "max-size-time=0", "max-size-bytes=0", "max-size-buffers=0"]
        launch(*test_pictures, "!", "tvlenc", "motion=on", "gop=8", "!", "matroskamux", "name=m", "!", "filesink",
               f"location={both}", "audiotestsrc", "num-buffers=50", "!", *deep, "!", "audioconvert", "!",
               "audio/x-raw,format=S16LE", "!", "m.")  # fmt: skip
        result = subprocess.run([program, "verify", both, "--json"], capture_output=True, text=True)
        told = json.loads(result.stdout or "{}")
        check(told.get("intact") and told.get("frames") == FRAMES, f"into Matroska: {result.stdout[:300]}")
        told = json.loads(subprocess.run([program, "info", both, "--json"], capture_output=True).stdout)
        check(told["video"]["pixel_format"] == "yuv420p" and told["video"]["frame_rate"] == "25/1", f"{told['video']}")
        keys = [line for line in ffmpeg("-i", both, "-map", "0:v", "-c", "copy", "-f", "framecrc", "-").stdout.decode().splitlines()
                if not line.startswith("#")]  # fmt: skip
        check(len(keys) == FRAMES // 8 + 1 and "F=0x0" not in keys[0] and "F=0x0" in keys[1], f"key blocks: {keys}")
        said = subprocess.run([sys.argv[3], both, "0.801", "0.3201"], env=environment, capture_output=True, text=True, timeout=120)
        check([round(int(line.split()[0]) / 4e7) for line in said.stdout.splitlines()] == [20, 8], f"seeks there: {said.stdout}")
        # U and V in one plane, in and out.
        for layout, pixels in (("NV12", "yuv420p"), ("P010_10LE", "yuv420p10le")):
            kinds = f"video/x-raw,format={layout}"
            raw, back, again = folder / "in.raw", folder / "back.tvl", folder / "again.raw"
            pictures = [*test_pictures[:-1], f"{kinds},{test_pictures[-1].partition(',')[2]}", "!"]
            launch(*pictures, "tvlenc", "lossless=true", "!", "filesink", f"location={back}")
            launch(*pictures, "filesink", f"location={raw}")
            launch("filesrc", f"location={back}", "!", "tvldec", "!", kinds, "!", "filesink", f"location={again}")
            check(again.read_bytes() == raw.read_bytes(), f"{layout}: exact")
            video = json.loads(subprocess.run([program, "info", back, "--json"], capture_output=True).stdout)["video"]
            check(video["pixel_format"] == pixels, f"{layout}: {video}")
        # Rates.
        noise = [*test_pictures[:2], "pattern=snow", *test_pictures[2:]]
        for options, most in ((["bitrate=200"], 200), (["preset=fast", "gop=4", "max-bitrate=200"], 220)):
            launch(*noise, "!", "tvlenc", *options, "!", "filesink", f"location={back}")
            rate = back.stat().st_size * 8 / (FRAMES / 25) / 1000
            check(most * 0.7 < rate <= most, f"tvlenc {options}: {rate} kbit/s")
        # Damage is an error of the pipeline, not a crash.
        whole = stream.read_bytes()
        for at in (3, 30, 300, len(whole) // 2):
            broken = folder / "broken.tvl"
            broken.write_bytes(whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :])
            failure("filesrc", f"location={broken}", "!", "tvldec", "!", "fakesink")
        # A picture of more bytes than GStreamer counts takes more memory than a decoder may: it is refused before.
        large = folder / "large.tvl"
        subprocess.run([program, "encode", source, large, "--gop", "1", "--frames", ":1", "--only-video"], check=True,
                       capture_output=True)  # fmt: skip
        large.write_bytes(with_size(large.read_bytes(), 65536, 21846))
        said = failure("filesrc", f"location={large}", "!", "tvldec", "!", "fakesink")
        check("(Limits::memory)" in said, f"a picture that GStreamer cannot count: {said}")
        check("not a Trivelet stream" in failure("filesrc", f"location={source}", "!", "tvldec", "!", "fakesink"),
              "another file is refused")
    print(f"{len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
