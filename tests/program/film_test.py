#!/usr/bin/env python3
"""Films: sound, subtitles and chapters survive Matroska together with the pictures.

    tests/program/film_test.py path/to/trivelet

Judged by FFmpeg: what was copied is the same byte for byte, sound and pictures stay together, and remuxing changes
nothing. Broken files end in one error. Skipped without ffmpeg.
"""

import json
import os
import random
import select
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import program  # noqa: E402
from program import check, failures, ffmpeg, run  # noqa: E402

SUBTITLES = """1
00:00:00,500 --> 00:00:01,000
first line

2
00:00:01,200 --> 00:00:01,900
second <i>line</i>
"""
CHAPTERS = """;FFMETADATA1
title=A film
[CHAPTER]
TIMEBASE=1/1000
START=0
END=1000
title=One
[CHAPTER]
TIMEBASE=1/1000
START=1000
END=2000
title=Two
"""
FULL = os.environ.get("TRIVELET_FULL", "0") not in ("", "0")
FAST = ["--preset", "fast", "-q", "40", "--gop", "10", "-y"]
EXACT = ["--preset", "fast", "--lossless", "-y"]

answers: dict = {}


def answer_of(file: Path, *command) -> bytes:
    """What a command says of a file, asked once while the file stays as it is: FFmpeg takes a tenth of a second to start."""
    state = file.stat()
    key = (state.st_ino, state.st_mtime_ns, state.st_size, *map(str, command))
    if key not in answers:
        answers[key] = program.process(*command, check=True).stdout
    return answers[key]


def ffprobe(file: Path, *arguments) -> dict:
    return json.loads(answer_of(file, "ffprobe", "-v", "error", "-of", "json", *arguments, file))


def duration(file: Path) -> float:
    return float(ffprobe(file, "-show_format")["format"]["duration"])


def sound(file: Path) -> bytes:
    return answer_of(file, "ffmpeg", "-v", "error", "-i", file, "-map", "0:a", "-c", "copy", "-f", "adts", "-")


def subtitles(file: Path) -> list:
    text = answer_of(file, "ffmpeg", "-v", "error", "-i", file, "-map", "0:s", "-f", "srt", "-").decode()
    return [line for line in text.splitlines() if line and "-->" not in line and not line.isdigit()]


def first_times(file: Path) -> dict:
    """When the first packet of pictures and of sound begins."""
    found = {}
    for packet in ffprobe(file, "-show_packets", "-show_entries", "packet=codec_type,pts_time")["packets"]:
        found.setdefault(packet["codec_type"], float(packet["pts_time"]))
    return found


def lag(file: Path) -> float:
    times = first_times(file)
    return times["video"] - times["audio"]


def chapters(file: Path) -> list:
    """When they begin in the time of the pictures, which a container may shift."""
    told = ffprobe(file, "-show_chapters", "-show_streams")
    first = next(float(s["start_time"]) for s in told["streams"] if s["codec_type"] == "video")
    return [(round(float(c["start_time"]) - first + 1e-6, 2), c["tags"]["title"]) for c in told["chapters"]]


def make_film(folder: Path) -> Path:
    (folder / "s.srt").write_text(SUBTITLES)
    (folder / "meta").write_text(CHAPTERS)
    film = folder / "film.mp4"
    picture = "testsrc2=size=98x66:rate=25:duration=2"
    tone = "sine=frequency=440:duration=2:sample_rate=48000"
    ffmpeg("-f", "lavfi", "-i", picture, "-f", "lavfi", "-i", tone, "-i", folder / "s.srt", "-i", folder / "meta",
           "-map", "0:v", "-map", "1:a", "-map", "2:s", "-map_metadata", 3, "-map_chapters", 3, "-pix_fmt", "yuv420p",
           "-c:v", "mpeg4", "-q:v", 2, "-c:a", "aac", "-c:s", "mov_text", "-metadata:s:a", "language=eng", film)  # fmt: skip
    return film


def test_round(folder: Path, film: Path) -> None:
    mkv, tvl, back = folder / "film.mkv", folder / "film.tvl", folder / "back.tvl"
    run("encode", film, mkv, *FAST)
    check(sound(mkv) == sound(film), "encode: sound is copied")
    check(subtitles(mkv) == subtitles(film), "encode: subtitles are kept")
    check(chapters(mkv) == chapters(film) == [(0.0, "One"), (1.0, "Two")], "encode: chapters are kept")
    check(abs(lag(mkv) - lag(film)) < 0.002, f"encode: sound stays with the pictures: {lag(mkv)}, {lag(film)}")
    check(ffprobe(mkv, "-show_format")["format"]["tags"]["title"] == "A film", "encode: the title is kept")
    run("verify", mkv)

    said = run("encode", film, tvl, *FAST)
    check(said.count("warning") == 1 and "sound (aac)" in said, "a .tvl file lacks sound, and says so once")
    run("mux", tvl, folder / "muxed.mkv", "--tracks-from", film, "-y")
    run("demux", folder / "muxed.mkv", back, "-y")
    check(back.read_bytes() == tvl.read_bytes(), "mux, demux: the same stream")
    check(sound(folder / "muxed.mkv") == sound(film), "mux: sound is copied")
    run("demux", mkv, folder / "plain.tvl", "-y")
    run("decode", folder / "plain.tvl", folder / "a.y4m", "-y")
    run("decode", tvl, folder / "b.y4m", "-y")
    check((folder / "a.y4m").read_bytes() == (folder / "b.y4m").read_bytes(), "the same pictures with and without sound")

    remuxed = folder / "remuxed.mkv"
    ffmpeg("-i", mkv, "-map", "0", "-c", "copy", remuxed)
    run("demux", remuxed, back, "-y")
    check(back.read_bytes() == (folder / "plain.tvl").read_bytes(), "ffmpeg -c copy keeps the stream")

    told = json.loads(run("info", mkv, "--json"))
    check([t["kind"] for t in told["other_tracks"]] == ["sound", "subtitles"] and told["chapters"], "info: tracks")
    check(told["complete"] and not told["index_rebuilt"] and told["video"]["frames"] == 50, "info: the index")


def test_outputs(folder: Path, film: Path) -> None:
    mkv = folder / "film.mkv"
    for name, codec in (("out.mp4", ["--codec", "mpeg4", "--tracks-from", film]), ("out.mkv", []), ("again.mkv", None)):
        out = folder / name
        if codec is None:
            run("encode", mkv, out, *FAST)
        else:
            run("decode", mkv, out, "-y", *codec)
        check(sound(out) == sound(film), f"{name}: sound is copied")
        check(subtitles(out) == subtitles(film), f"{name}: subtitles are kept")
        check(chapters(out) == chapters(film), f"{name}: chapters are kept: {chapters(out)}")
        check(abs(lag(out) - lag(film)) < 0.002, f"{name}: sound stays with the pictures: {lag(out)}, {lag(film)}")
    check("are left out" in run("decode", mkv, folder / "out.y4m", "-y"), "Y4M holds no sound, and says so")
    run("decode", mkv, folder / "no.y4m", "--audio", "none", code=2)
    run("decode", mkv, folder / "silent.mkv", "--audio", "none", "-y")
    kinds = [s["codec_type"] for s in ffprobe(folder / "silent.mkv", "-show_streams")["streams"]]
    check(kinds == ["video", "subtitle"], f"--audio none: {kinds}")
    run("decode", mkv, folder / "video.mkv", "--only-video", "-y")
    check(len(ffprobe(folder / "video.mkv", "-show_streams")["streams"]) == 1, "--only-video")

    run("truncate", mkv, folder / "small.mkv", "--layers", "2", "-y")
    run("verify", folder / "small.mkv")
    check(sound(folder / "small.mkv") == sound(film), "truncate: sound is copied")
    run("extract", mkv, folder / "part.mkv", "--frames", "20:40", "-y")
    told = json.loads(run("info", folder / "part.mkv", "--json"))
    check(told["video"]["frames"] == 20, "extract: whole GOPs")
    times = first_times(folder / "part.mkv")
    check(abs(times["video"] - times["audio"]) < 0.025, f"extract: sound of these frames: {times}")
    run("compare", mkv, film, "--min-psnr", "30")


def packets(file: Path) -> list:
    """Of all other tracks: which, when, how long, and what; but for how long the last is, which no other one ends."""
    found = ffprobe(file, "-show_packets", "-show_data_hash", "md5", "-show_entries",
                    "packet=stream_index,pts_time,data_hash")["packets"]  # fmt: skip
    return sorted((p["stream_index"], float(p["pts_time"]), p["data_hash"]) for p in found if p["stream_index"] > 0)


def test_join(folder: Path, film: Path) -> None:
    """Parts of a film are the film again, with all its tracks; other films follow each other."""
    mkv, whole = folder / "film.mkv", folder / "whole.mkv"
    parts = [folder / f"part{i}.mkv" for i in range(3)]
    for part, frames in zip(parts, (":20", "20:30", "30:50")):
        run("extract", mkv, part, "--frames", frames, "-y")
    said = run("join", *parts, "-o", whole, "-y")
    check("warning" not in said, f"join: nothing is lacking: {said}")
    check(packets(whole) == packets(mkv), "join: the other tracks are those of the film, with their times")
    check(chapters(whole) == chapters(mkv), f"join: chapters: {chapters(whole)}")
    run("demux", whole, folder / "whole.tvl", "-y")
    run("demux", mkv, folder / "film.tvl", "-y")
    check((folder / "whole.tvl").read_bytes() == (folder / "film.tvl").read_bytes(), "join: the pictures are")

    twice = folder / "twice.mkv"
    run("join", mkv, mkv, "-o", twice, "-y")
    run("verify", twice)
    once, both = packets(mkv), packets(twice)
    lines = [p for p in both if p[0] == 2]
    since = [round(p[1] - lines[0][1], 3) for p in lines]
    check(since == [0, 0.7, 2, 2.7], f"join: subtitles of the second film: {lines}")
    heard = [p[1] for p in both if p[0] == 1]
    check(len(heard) >= 2 * len([p for p in once if p[0] == 1]) - 4, f"join: sound of both films: {len(heard)} packets")
    check(max(b - a for a, b in zip(heard, heard[1:])) < 0.045, "join: without a gap")
    check([t for t, _ in chapters(twice)] == [0, 1, 2, 3], f"join: chapters of both: {chapters(twice)}")
    odd = [v for v in tones(twice) if v != "440"]
    check(len(odd) <= 2, f"join: the sound of both is heard, but at the seam: {odd}")

    # Tracks that the others lack are named, others are refused, and either can be left out.
    ffmpeg("-i", mkv, "-map", "0", "-map", "-0:s", "-c", "copy", folder / "untold.mkv")
    check("subtitles (subrip) in the time of" in run("join", mkv, folder / "untold.mkv", "-o", twice, "-y"), "join: a gap")
    said = run("join", folder / "untold.mkv", mkv, "-o", twice, "-y")
    check("has no such track" in said, f"join: a track too many: {said}")
    ffmpeg("-i", mkv, "-i", film, "-map", "0:v", "-map", "1:a", "-c:v", "copy", "-c:a", "flac", folder / "flac.mkv")
    said = run("join", mkv, folder / "flac.mkv", "-o", folder / "no.mkv", "-y", code=2)
    check("sound (flac" in said and "sound (aac" in said and not (folder / "no.mkv").exists(), f"join: other sound: {said}")
    run("join", mkv, folder / "flac.mkv", "-o", twice, "-y", "--audio", "none")
    check([s["codec_type"] for s in ffprobe(twice, "-show_streams")["streams"]] == ["video", "subtitle"], "--audio none")
    run("join", mkv, folder / "film.tvl", "-o", twice, "-y", "--only-video")
    run("join", folder / "film.tvl", mkv, "-o", twice, "-y")
    check(min(p[1] for p in packets(twice)) > 1.97, "join: sound begins with the second film")
    said = run("join", mkv, mkv, "-o", folder / "twice.tvl", "-y")
    check(said.count("warning") == 1 and "are left out" in said, f"join: a .tvl file holds no sound: {said}")
    run("join", *parts, "-o", twice, "-y", "--tracks-from", film)
    check(sound(twice) == sound(film), "join: the sound of another file")


def piped(data: bytes, *arguments) -> subprocess.CompletedProcess:
    return program.process(program.path, *arguments, stdin=data)


def test_pipe_and_plan(folder: Path) -> None:
    """A film from a pipe is read in its order, and what is planned of one is all that decoding needs."""
    mkv, part = folder / "film.mkv", folder / "part.mkv"
    run("decode", mkv, folder / "file.y4m", "-y", "--only-video")
    pictures = (folder / "file.y4m").read_bytes()
    whole = mkv.read_bytes()
    for data in (whole, whole[: len(whole) // 2]):
        result = piped(data, "decode", "-", "-", "--keep-partial")
        same = len(pictures) if data is whole else len(pictures) // 4  # whole GOPs
        check(result.stdout[:same] == pictures[:same], f"a pipe: the pictures: {len(result.stdout)} bytes")
        check((result.returncode == 0) == (data is whole), f"a pipe: cut is said: {result.returncode}")
    result = piped(whole, "decode", "-", folder / "piped.mkv", "-y")
    check(result.returncode == 0 and b"read only once" in result.stderr, "a pipe: lost sound is said")
    ffmpeg("-i", mkv, "-map", "0", "-c", "copy", "-live", "1", folder / "live.mkv")
    check(piped((folder / "live.mkv").read_bytes(), "decode", "-", "-").stdout == pictures, "a pipe: open-ended clusters")
    check(piped(whole, "verify", "-").returncode == 0, "a pipe: verify")
    with mkv.open("rb") as file:
        result = subprocess.run([program.path, "decode", "-", "-"], stdin=file, capture_output=True, timeout=120)
        check(result.stdout == pictures, "standard input from a file")
    generator = random.Random(7)
    for _ in range(60 if FULL else 12):
        data = bytearray(whole)
        for _ in range(generator.choice((1, 30))):
            data[generator.randrange(len(data))] ^= 1 << generator.randrange(8)
        result = piped(bytes(data[: generator.randrange(len(data))]), "decode", "-", "md5")
        check(result.returncode in (0, 2, 4, 5) and b"internal" not in result.stderr, f"a damaged pipe: {result.stderr}")

    for options in ([], ["--frames", "20:30"], ["--reduce", "1"]):
        plan = json.loads(run("plan", mkv, "--json", *options))
        check(plan["bytes"] < len(whole) and sum(r["bytes"] for r in plan["ranges"]) == plan["bytes"], "plan: bytes")
        ends = [0, *(r["offset"] + r["bytes"] for r in plan["ranges"])]
        apart = [r["offset"] - end for r, end in zip(plan["ranges"], ends)]
        check(all(gap > 1024 for gap in apart[1:]), f"plan {options}: ranges with little between them are one: {apart}")
        sparse = bytearray(len(whole))
        for r in plan["ranges"]:
            sparse[r["offset"] : r["offset"] + r["bytes"]] = whole[r["offset"] : r["offset"] + r["bytes"]]
        part.write_bytes(sparse)
        found = [piped(b"", "decode", file, "md5", *options).stdout for file in (part, mkv)]
        check(found[0] == found[1] and found[0], f"plan {options}: decodes: {found}")


def tones(file: Path) -> list:
    """What is heard in tenths of a second: zero crossings, as the frequency of a tone, to 20 Hz; not at the very seam."""
    raw = ffmpeg("-i", file, "-map", "0:a", "-f", "s16le", "-ac", 1, "-ar", 48000, "-").stdout
    samples = memoryview(raw[: len(raw) // 2 * 2]).cast("h")
    found = []
    for at in range(4800, len(samples) - 9600, 4800):
        piece = samples[at : at + 4800]
        rate = sum((a < 0) != (b < 0) for a, b in zip(piece, piece[1:])) * 5
        found.append("440" if abs(rate - 440) <= 25 else str(rate))
    return found


def test_losses(folder: Path, film: Path) -> None:
    """What a format cannot hold is said, and what was wrong about lengths is right."""
    mkv, half, tvl = folder / "film.mkv", folder / "half.mkv", folder / "exact.tvl"
    run("extract", mkv, half, "--temporal-reduce", "2", "-y")
    told = json.loads(run("info", half, "--json"))["video"]
    check(told["frames"] == 15 and abs(told["duration_seconds"] - 2) < 0.001, f"extract: frames and seconds: {told}")
    said = run("decode", half, folder / "half.y4m", "--only-video", "-y")
    check(said.count("warning") == 1 and "has no frame times" in said, f"Y4M of uneven frames: {said}")
    run("encode", film, tvl, "--lossless", "--preset", "fast", "--frames", ":5", "--only-video", "-y")
    check("warning" not in run("decode", tvl, folder / "l.mkv", "-y"), "FFV1 is exact")
    listed = program.encoders()
    if b"libx264 " in listed:
        check("the stream is lossless" in run("decode", tvl, folder / "l.mp4", "-y"), "lossless to H.264 is said")
        check("warning" not in run("decode", tvl, folder / "l.mp4", "--crf", "0", "-y"), "--crf was typed")
    run("decode", tvl, folder / "l.y4m", "--crf", "3", "-y", code=2)
    plain = program.process(program.path, "decode", tvl, "-")
    check(plain.stdout.startswith(b"YUV4MPEG2 W98"), "standard output is Y4M")

    turned = folder / "turned.mp4"
    ffmpeg("-i", film, "-map", "0:v", "-c", "copy", "-metadata:s:v", "rotate=90", turned)
    run("encode", turned, folder / "turned.tvl", *FAST, "--only-video")
    said = run("decode", folder / "turned.tvl", folder / "turned.y4m", "-y")
    check(said.count("warning") == 1 and "turned" in said, f"Y4M does not turn pictures: {said}")

    cut = folder / "cut.mp4"
    ffmpeg("-i", film, "-map", "0:v", "-c", "copy", "-movflags", "faststart", folder / "fast.mp4")
    whole = (folder / "fast.mp4").read_bytes()
    cut.write_bytes(whole[: len(whole) * 2 // 3])
    run("encode", cut, folder / "cut.tvl", *FAST, code=4)
    run("encode", cut, folder / "cut.tvl", *FAST, "--recover", code=4)
    frames = json.loads(run("info", folder / "cut.tvl", "--json"))["video"]["frames"]
    check(10 < frames < 50, f"--recover keeps the frames before the damage: {frames}")

    intact = json.loads(program.process(program.path, "verify", mkv, "--json").stdout)
    check(intact["intact"] and intact["frames"] == 50 and intact["damage"] == [], "verify --json")
    check("did you mean truncate" in run("trunkate", "a", "b", code=2), "a command is guessed")
    for guess in (["trunc", "a", "b"], ["help", "trunc"]):
        check("did you mean truncate" in run(*guess, code=2), f"{guess}: a command is guessed")
    check("Usage: trivelet truncate" in run("help", "truncate") and "Subcommands" in run("help"), "help of a command")
    check("did you mean --reduce" in run("decode", mkv, "null", "--redcue", "1", code=2), "an option is guessed")
    check("Usage: trivelet truncate" in run("help", "truncate"), "help COMMAND")
    check(run("-V") == run("--version"), "-V")
    run("thumbnail", mkv, folder / "small.png", "--size", "64", "-y")
    size = ffprobe(folder / "small.png", "-show_streams")["streams"][0]
    check((size["width"], size["height"]) == (49, 33), "thumbnail: halved until it fits")


def test_cut(folder: Path, film: Path) -> None:
    """Inputs whose end is missing say so, also where FFmpeg finds nothing wrong."""
    ffmpeg("-i", film, "-map", "0:v", "-c", "copy", folder / "whole.mkv")
    ffmpeg("-i", film, "-map", "0:v", "-c", "copy", "-live", "1", folder / "live.mkv")
    ffmpeg("-i", film, "-map", "0:v", "-c", "copy", folder / "whole.avi")
    for name in ("whole.mkv", "live.mkv", "whole.avi"):
        whole = (folder / name).read_bytes()
        cut, tvl = folder / ("cut_" + name), folder / "cut.tvl"
        cut.write_bytes(whole[: len(whole) * 2 // 3])
        missing = len(whole) - cut.stat().st_size
        said = run("encode", cut, tvl, *FAST, code=4)
        check("cut short" in said and "encode --recover" in said, f"{name} cut: {said}")
        check(name == "live.mkv" or f"{missing} bytes" in said, f"{name} cut by {missing}: {said}")
        said = run("encode", cut, tvl, *FAST, "--recover", code=4)
        frames = json.loads(run("info", tvl, "--json"))["video"]["frames"]
        check(10 < frames < 50 and f"holds {frames} frames" in said, f"{name} cut, recovered: {said}")
        run("encode", cut, tvl, *FAST, "--recover", "--frames", ":5")  # the cut is not reached
        check("cut short" in run("info", cut), f"info of {name} cut")
        told = json.loads(run("info", cut, "--json", "--quiet"))["warnings"]
        check(len(told) == 1 and "cut short" in told[0], f"info --json of {name} cut: {told}")
        run("encode", folder / name, tvl, *FAST)


def without_last_sample(film: bytes) -> bytes:
    """An MP4 of one track whose last sample has no bytes."""
    data = bytearray(film)
    at = data.index(b"stsz") + 4
    count = int.from_bytes(data[at + 8 : at + 12], "big")
    assert int.from_bytes(data[at + 4 : at + 8], "big") == 0  # sizes of their own
    data[at + 8 + 4 * count : at + 12 + 4 * count] = bytes(4)
    return bytes(data)


def silicon_graphics_movie(pictures: list, width: int, height: int) -> bytes:
    """Big-endian, 32 bits a pixel, with sound. Its demuxer says "again" where the sound has ended."""
    head = b"MOVI" + struct.pack(">H10xdHxxIIII12x", 2, 25.0, 1, len(pictures), 2, width, height)
    head += struct.pack(">IIII8x", 8000, 2, 401, 1) + bytes(0x200)
    sound, table, data = bytes(640), b"", b""
    for picture in pictures:
        table += struct.pack(">III8x", len(head) + 20 * len(pictures) + len(data), len(sound), len(picture))
        data += sound + picture
    return head + table + data


def float_tiff(width: int, height: int, channels: int) -> bytes:
    """Samples of 32 bits of floating point, all zero."""
    strip = 4 * width * height * channels
    entries = [(256, 3, 1, width), (257, 3, 1, height), (258, 3, channels, 150), (259, 3, 1, 1), (262, 3, 1, 2), (273, 4, 1, 166),
               (277, 3, 1, channels), (278, 3, 1, height), (279, 4, 1, strip), (338, 3, 1, 2), (339, 3, channels, 158)]  # fmt: skip
    head = b"II*\0" + struct.pack("<IH", 8, len(entries)) + b"".join(struct.pack("<HHII", *e) for e in entries)
    return head.ljust(150, b"\0") + struct.pack("<4H", 32, 32, 32, 32) + struct.pack("<4H", 3, 3, 3, 3) + bytes(strip)


def test_skipped_packets(folder: Path) -> None:
    """A demuxer that says "again" (EAGAIN) and packets of no bytes are no damage: the pictures are those that FFmpeg decodes."""
    draw = random.Random(5)
    pictures = [draw.randbytes(4 * 16 * 8) for _ in range(3)]
    movie, gaps, tvl, raw = folder / "again.mv", folder / "gaps.avi", folder / "again.tvl", folder / "again.argb"
    movie.write_bytes(silicon_graphics_movie(pictures, 16, 8))
    check("damaged" not in run("encode", movie, tvl, *EXACT), "a demuxer that says 'again'")
    run("decode", tvl, raw, "--format", "raw", "--pix-fmt", "argb", "-y")
    check(raw.read_bytes() == b"".join(pictures), "the pictures of a demuxer that says 'again'")

    ffmpeg("-f", "lavfi", "-i", "testsrc2=s=96x64:r=25:d=2", "-vf", "select='not(between(n,7,8)+eq(n,20))'", "-fps_mode",
           "passthrough", "-c:v", "mpeg4", "-bf", "0", gaps)  # fmt: skip
    empty = [p for p in ffprobe(gaps, "-show_packets")["packets"] if int(p["size"]) == 0]
    for options in ([], ["--recover"]):
        run("encode", gaps, tvl, *EXACT, *options)
        run("decode", tvl, folder / "gaps.mkv", "-y")
        same = [answer_of(f, "ffmpeg", "-v", "error", "-i", f, "-map", "0:v", "-fps_mode", "passthrough", "-f", "framemd5", "-") for f in (gaps, folder / "gaps.mkv")]
        sums = [[line.split(",")[-1] for line in text.decode().splitlines() if not line.startswith("#")] for text in same]
        check(len(sums[0]) == 47 and sums[0] == sums[1], f"packets of no bytes ({len(empty)}): {len(sums[0])} and {len(sums[1])}")

    picture = folder / "float.tiff"
    for channels in (3, 4):
        picture.write_bytes(float_tiff(8, 8, channels))
        for command in (["encode", picture, tvl, "-y"], ["info", picture], ["encode", picture, tvl, "-y", "--recover"]):
            said = run(*command, code=5)
            check("not supported" in said, f"a picture that FFmpeg's decoder does not support: {said}")


def test_findings(folder: Path, film: Path) -> None:
    """Packets of no bytes and what decoders only complain of are no damage; --recover ends with 4 where frames are missing."""
    plain, empty, tvl = folder / "plain.mp4", folder / "empty.mp4", folder / "found.tvl"
    ffmpeg("-i", film, "-map", "0:v", "-c", "copy", plain)
    empty.write_bytes(without_last_sample(plain.read_bytes()))
    said = run("encode", empty, tvl, *FAST)
    check(json.loads(run("info", tvl, "--json"))["video"]["frames"] == 49, f"a packet of no bytes is no frame: {said}")

    encoders = program.encoders()
    if b" libx264 " in encoders:  # whose first packet has a message of the encoder: it becomes longer than its unit
        coded = folder / "coded.mp4"
        ffmpeg("-i", film, "-map", "0:v", "-c:v", "libx264", coded)
        data = bytearray(coded.read_bytes())
        size = data.rindex(b"\x06\x05", 0, data.index(b"x264 - core")) + 2
        while data[size] == 255:
            size += 1
        data[size] = 254
        coded.write_bytes(data)
        for command in (["encode", coded, tvl, *FAST], ["encode", coded, tvl, *FAST, "--recover"]):
            said = run(*command)
            check(said.count("warning") == 1 and "SEI" in said and "complained" in said, f"a complaint is a warning: {said}")
        told = json.loads(run("info", coded, "--json", "--quiet"))
        check(len(told["warnings"]) == 1 and "SEI" in told["warnings"][0], f"info --json: {told['warnings']}")
        check(json.loads(run("info", tvl, "--json"))["video"]["frames"] == 50, "all frames are there")

    # Sound goes on behind the pictures, and its end is missing.
    longer = folder / "longer.mp4"
    ffmpeg("-i", film, "-f", "lavfi", "-i", "sine=duration=4", "-map", "0:v", "-map", "1:a", "-c:v", "copy", "-c:a", "aac",
           "-movflags", "faststart", longer)  # fmt: skip
    longer.write_bytes(longer.read_bytes()[:-500])
    run("encode", longer, tvl, *FAST, code=4)
    run("encode", longer, tvl, *FAST, "--recover")
    check(json.loads(run("info", tvl, "--json"))["video"]["frames"] == 50, "--recover: no frame is missing")

    # Damage between the GOPs of a stream, of which its index knows nothing.
    whole = tvl.read_bytes()
    places = [i for i in range(len(whole)) if whole.startswith(b"Gop ", i)]
    check(len(places) == 5, f"GOPs: {places}")
    for place in (places[1], places[2] + 5, places[4] + 13):
        (folder / "torn.tvl").write_bytes(whole[:place] + bytes([whole[place] ^ 0x40]) + whole[place + 1 :])
        said = run("mux", folder / "torn.tvl", folder / "torn.mkv", "-y", code=4)
        check(str(folder / "torn.tvl") in said, f"mux of damaged GOPs: {said}")
    # A cut film is taken out as far as it goes, and it is told. Of what is no stream nothing is written.
    run("mux", tvl, folder / "torn.mkv", "-y")
    data = (folder / "torn.mkv").read_bytes()
    (folder / "torn.mkv").write_bytes(data[: len(data) * 2 // 3])
    check("cut short" in run("demux", folder / "torn.mkv", folder / "torn.tvl", "-y", code=4), "demux of a cut film")
    run("decode", folder / "torn.tvl", "null", "--keep-partial", code=4)
    (folder / "none.mkv").write_bytes((Path(__file__).resolve().parents[1] / "corrupt/matroska/blocks_beyond_their_group").read_bytes()[1:])
    run("demux", folder / "none.mkv", folder / "none.tvl", code=4)
    check(not (folder / "none.tvl").exists(), "demux of a film whose stream has no header")
    check("pipe" in run("demux", "-", folder / "none.tvl", code=2), "demux of a pipe")

    # What is encrypted is not damaged, and an audio file is whole, but no video.
    ffmpeg("-i", film, "-map", "0:v", "-c", "copy", "-encryption_scheme", "cenc-aes-ctr", "-encryption_key", "00" * 16,
           "-encryption_kid", "11" * 16, folder / "secret.mp4")  # fmt: skip
    check("is encrypted" in run("encode", folder / "secret.mp4", tvl, *FAST, code=5), "an encrypted film")
    ffmpeg("-f", "lavfi", "-i", "sine=duration=1", folder / "sound.wav")
    run("encode", folder / "sound.wav", tvl, *FAST, code=5)
    (folder / "other").write_bytes(random.Random(3).randbytes(9000))
    run("encode", folder / "other", tvl, *FAST, code=5)
    (folder / "other").write_bytes(b"")
    check("is empty" in run("encode", folder / "other", tvl, *FAST, code=4), "an empty file")


def test_damaged_start(folder: Path, film: Path) -> None:
    """--recover of films that begin with damage: from the next key frame on, exactly, told, and exit code 4."""
    coded, source, bad, tvl = folder / "starts.avi", folder / "starts.mkv", folder / "starts_bad", folder / "starts.tvl"
    encoders = program.encoders()
    kinds = [(coded, "mjpeg", [], 1), (source, "mpeg4", ["-g", "10"], 10)]
    if b" libx264 " in encoders:
        kinds.append((folder / "starts.mp4", "libx264", ["-g", "10", "-bf", "2", "-threads", "1"], 10))
    for name, codec, options, missing in kinds:
        ffmpeg("-i", film, "-map", "0:v", "-frames:v", 40, "-c:v", codec, *options, name)
        packets = program.process("ffprobe", "-v", "error", "-select_streams", "v:0", "-show_entries", "packet=pos,size", "-of", "json",
                                  name, check=True).stdout  # fmt: skip
        first = json.loads(packets)["packets"][0]
        at, size = int(first["pos"]), int(first["size"])
        data = bytearray(name.read_bytes())
        data[at + size // 3 : at + size * 2 // 3] = b"\xff" * (size * 2 // 3 - size // 3)
        bad.write_bytes(data)
        run("encode", bad, tvl, *EXACT, "--only-video", code=4)
        said = run("encode", bad, tvl, *EXACT, "--only-video", "--recover", code=4)
        check("s is missing" in said and f"{40 - missing} frames" in said, f"{codec}, damage at the start: {said}")
        run("decode", tvl, folder / "starts.yuv", "-y", "--format", "raw")
        whole = ffmpeg("-i", name, "-f", "rawvideo", "-").stdout
        check((folder / "starts.yuv").read_bytes() == whole[len(whole) * missing // 40 :], f"{codec}: what follows the damage")
    # A stream of ours: GOPs of 10 frames.
    run("encode", film, tvl, *EXACT, "--gop", "10", "--motion", "off", "--only-video")
    whole = tvl.read_bytes()
    gops = [i + 16 for i in range(len(whole)) if whole.startswith(b"Gop ", i)]
    ours = folder / "starts_ours.tvl"
    run("decode", tvl, folder / "starts.yuv", "-y", "--format", "raw")
    pictures = (folder / "starts.yuv").read_bytes()
    for torn, begin, end in ((0, 10, 50), (2, 0, 20), (4, 0, 40)):
        at = gops[torn] + int.from_bytes(whole[gops[torn] : gops[torn] + 4], "little") + 9
        ours.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        run("encode", ours, folder / "starts_again.tvl", *EXACT, code=4)
        said = run("encode", ours, folder / "starts_again.tvl", *EXACT, "--recover", code=4)
        check(("the frames before 10 are missing" in said) == (torn == 0), f"GOP {torn} is damaged: {said}")
        run("decode", folder / "starts_again.tvl", folder / "starts.yuv", "-y", "--format", "raw")
        part = pictures[len(pictures) * begin // 50 : len(pictures) * end // 50]
        check((folder / "starts.yuv").read_bytes() == part, f"--recover of a stream, GOP {torn}")


def test_words(folder: Path, film: Path) -> None:
    """Errors name the file and say what can be done; names say what is written."""
    tvl = folder / "named.tvl"
    run("encode", film, tvl, *FAST, "--only-video")
    for command in (["verify", film], ["decode", film, "null"], ["thumbnail", film, folder / "t.png"], ["mux", film, folder / "t.mkv"],
                    ["truncate", film, folder / "t.tvl", "--layers", "1"], ["plan", film], ["play", tvl, "--compare", film]):  # fmt: skip
        check(str(film) in run(*command, code=4), f"{command[0]} names the file")
    for command in (["encode", film, "q.mp4"], ["encode", film, "q.png"], ["truncate", tvl, "q.avi", "--layers", "1"],
                    ["demux", folder / "film.mkv", "q.mov"]):  # fmt: skip
        target = folder / command[2]
        said = run(*command[:2], target, *command[3:], code=2)
        check("another kind of file" in said and not target.exists(), f"{command[0]} to {command[2]}: {said}")
        check(said.count("\n") == 1, f"{command[0]} to {command[2]}, nothing else is said: {said}")
    (folder / "v.nrrd").write_bytes(b"NRRD0004\ntype: uint8\ndimension: 3\nsizes: 4 4 4\nencoding: raw\n\n" + bytes(64))
    run("encode", folder / "v.nrrd", folder / "v.tvl", "-y")
    for name in ("b.png", "b.mp4", "b.foo"):
        said = run("decode", folder / "v.tvl", folder / name, code=2)
        check(".nii" in said and not (folder / name).exists(), f"a volume as {name}: {said}")
    run("decode", folder / "v.tvl", folder / "b.nii", "-y")

    for pixels, wanted in (("gbrapf32le", "gbrap16"), ("grayf32le", "gray16"), ("gbrpf32le", "gbrp16")):
        source = folder / f"{pixels}.exr"
        ffmpeg("-f", "lavfi", "-i", "testsrc2=size=32x32", "-frames:v", 1, "-pix_fmt", pixels, source)
        said = run("encode", source, tvl, "--lossless", "-y", code=5)
        check(f"--pix-fmt {wanted})" in said, f"{pixels}: {said}")
        run("encode", source, tvl, "--lossless", "-y", "--pix-fmt", wanted)

    webm, known = folder / "text.webm", b"D_WEBVTT/SUBTITLES"
    (folder / "s.vtt").write_text("WEBVTT\n\n00:00.100 --> 00:00.300\nline\n")
    ffmpeg("-f", "lavfi", "-i", "testsrc2=size=32x32:duration=0.4", "-i", folder / "s.vtt", "-c:v", "libvpx", "-c:s", "webvtt", webm)
    data = webm.read_bytes()
    check(data.count(known) == 1, "a WebM with text")
    said = run("encode", webm, folder / "text.mkv", *FAST)
    check("warning" not in said, f"WebVTT of WebM is kept: {said}")
    webm.write_bytes(data.replace(known, b"S_TEXT/WHATEVER".ljust(len(known), b"\0")))
    said = run("encode", webm, folder / "text.mkv", *FAST)
    check("does not know how it is coded" in said and "cannot hold" not in said, f"text of an unknown kind: {said}")

    # A window cannot be shown here.
    none = ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER", "XDG_RUNTIME_DIR")
    environment = {k: v for k, v in os.environ.items() if k not in none}
    run("encode", film, tvl, *FAST, "--only-video")
    result = subprocess.run([program.path, "play", tvl, "--quit-after", "1"], capture_output=True, env=environment, timeout=60)
    said = result.stderr.decode()
    check(result.returncode in (3, 5) and said.count("\n") == 1, f"play without a display: {result.returncode} {said}")
    if "player yes" in run("--version"):
        run("play", tvl, "--headless", "--screenshot", folder / "shot.png")
        run("play", tvl, "--screenshot-at", "1", code=2)


def test_copies(folder: Path, film: Path) -> None:
    """Sound stays where it is, whatever its codec has before the first sample, and however often it is copied."""
    encoders = program.encoders()
    if b" libopus " not in encoders:
        return
    first, last = folder / "opus.mkv", folder / "copied.mkv"
    ffmpeg("-i", film, "-map", "0:v", "-map", "0:a", "-c:v", "copy", "-c:a", "libopus", first)
    run("encode", first, last, *FAST)
    for i in range(3):
        between = folder / f"between{i}.mkv"
        run(("decode", "encode", "mux")[i], last, between, "-y", *(FAST if i == 1 else []))
        shutil.move(between, last)
        if i == 0:
            run("encode", last, folder / "again.mkv", *FAST)
            shutil.move(folder / "again.mkv", last)
    check(abs(lag(last) - lag(first)) < 0.0015, f"Opus stays in place: {lag(first)} became {lag(last)}")
    check(abs(duration(last) - duration(first)) < 0.01, f"as long as before: {duration(first)} became {duration(last)}")
    run("encode", film, last, *FAST, "--only-video")
    check(abs(duration(last) - 2 - first_times(last)["video"]) < 0.0015, f"pictures of 2 s last {duration(last)} s")


def test_waiting(folder: Path) -> None:
    """Standard input and output that do not block: a pipe of which little comes at a time, and that takes little."""
    tvl = folder / "found.tvl"
    whole = program.process(program.path, "decode", tvl, "-").stdout
    stream = tvl.read_bytes()
    for kind in ("pipe", "socket"):
        pipes = [os.pipe(), os.pipe()] if kind == "pipe" else [tuple(s.detach() for s in socket.socketpair()) for _ in range(2)]
        (their_in, our_out), (our_in, their_out) = pipes
        os.set_blocking(their_in, False)
        os.set_blocking(their_out, False)
        process = subprocess.Popen([program.path, "decode", "-", "-", "--quiet"], stdin=their_in, stdout=their_out, stderr=subprocess.PIPE)
        os.close(their_in)
        os.close(their_out)

        def feed() -> None:
            for at in range(0, len(stream), 4000):
                os.write(our_out, stream[at : at + 4000])
                time.sleep(0.01)
            os.close(our_out)

        feeder = threading.Thread(target=feed)
        feeder.start()
        got = b""
        while piece := os.read(our_in, 20000):
            got += piece
        feeder.join()
        os.close(our_in)
        said = process.stderr.read().decode()
        check(process.wait() == 0 and got == whole, f"a {kind} that does not block: {len(got)} of {len(whole)} bytes, {said}")


def test_live() -> None:
    """The packet of a GOP leaves a pipe as soon as it is made, however small it is."""
    frame = b"FRAME\n" + bytes([90]) * (64 * 48) + bytes([128]) * (64 * 48 // 2)
    command = [program.path, "encode", "-", "-", "--gop", "4", "--preset", "fast", "--quiet"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    process.stdin.write(b"YUV4MPEG2 W64 H48 F25:1 Ip A1:1 C420jpeg\n" + 5 * frame)
    process.stdin.flush()
    got = b""
    while b"Gop " not in got and select.select([process.stdout], [], [], 30)[0]:
        got += os.read(process.stdout.fileno(), 1 << 16)
    check(b"Gop " in got, "the first GOP waited for more")
    process.communicate()
    check(process.returncode == 0, f"encoding from a pipe that stays open ended with {process.returncode}")


def test_times(folder: Path, film: Path) -> None:
    """Frames by their times, and targets by the time that they last."""
    uneven = folder / "uneven.mkv"
    # Twenty frames in 0.8 s, then twenty in 4 s.
    ffmpeg("-i", film, "-map", "0:v", "-frames:v", 40, "-vf", "setpts='if(lt(N,20),N,20+(N-20)*5)/25/TB'", "-fps_mode", "vfr",
           "-c:v", "ffv1", uneven)  # fmt: skip
    seconds = 20 / 25 + 20 * 5 / 25
    tvl = folder / "uneven.tvl"
    run("encode", uneven, tvl, "--lossless", "--transform", "wavelet", "--motion", "off", "--gop", "8", "-y")
    told = json.loads(run("info", tvl, "--json"))["video"]
    check(abs(told["duration_seconds"] - seconds) < 0.2, f"uneven frames last {told['duration_seconds']} s")
    for text, first, end in (("0.4s:1s", 10, 21), ("00:00:01:", 21, 40), (":00:00:01.5", 0, 24), ("5:1s", 5, 21),
                             ("0.41s:30", 11, 30), ("0.4s:00:00:00.6", 10, 15)):  # fmt: skip
        part, named = folder / "part.y4m", folder / "named.y4m"
        run("decode", tvl, named, "--frames", f"{first}:{end}", "-y")
        run("decode", tvl, part, "--frames", text, "-y")
        check(part.read_bytes() == named.read_bytes(), f"decode --frames {text} is {first}:{end}")
        # Of a film and of frames without times of their own.
        run("encode", uneven, folder / "part.tvl", "--frames", text, "--lossless", "-y")
        run("decode", folder / "part.tvl", part, "-y")
        check(part.read_bytes() == named.read_bytes(), f"encode --frames {text} is {first}:{end}")
    run("decode", tvl, folder / "even.y4m", "-y")
    run("encode", folder / "even.y4m", folder / "part.tvl", "--frames", "0.2s:0.4s", "--lossless", "-y", "--fps", "50")
    check(json.loads(run("info", folder / "part.tvl", "--json"))["video"]["frames"] == 10, "times of Y4M")
    # Where scenes are looked for, frames behind the end are read and given back.
    ffmpeg("-f", "lavfi", "-i", "testsrc2=size=98x66:rate=25:duration=0.48[out0]", "-f", "lavfi", "-i",
           "color=white:size=98x66:rate=25:duration=1", "-filter_complex", "[0][1]concat", "-pix_fmt", "yuv420p",
           folder / "cut.y4m")  # fmt: skip
    run("encode", folder / "cut.y4m", folder / "part.tvl", "--frames", ":0.6s", "--lossless", "-y")
    run("encode", folder / "cut.y4m", folder / "named.tvl", "--frames", ":15", "--lossless", "-y")
    run("decode", folder / "part.tvl", part, "-y")
    run("decode", folder / "named.tvl", named, "-y")
    check(part.read_bytes() == named.read_bytes(), "an end by time behind a cut")
    run("extract", tvl, folder / "part.tvl", "--frames", "1.0s:1.2s", "-y")
    check(json.loads(run("info", folder / "part.tvl", "--json"))["video"]["frames"] == 8, "extract: GOPs by times")
    for text in ("1.5:2", "2s:1s", "1s", "00:61:00:", "00:00:01:00:00:02:", "-1s:", "10:00:01:10", "infs:", "0:0.0s"):
        run("decode", tvl, "null", "--frames", text, code=2)
    check("lasts 4." in run("decode", tvl, "null", "--frames", "100s:", code=2), "a time behind the end")
    piped = program.process(program.path, "decode", "-", "null", "--frames", "1s:", stdin=tvl.read_bytes())
    check(piped.returncode == 2 and b"use a file" in piped.stderr, "times need the index of a file")
    # 40 frames at the frame rate would be 1.6 s.
    for command in (["encode", uneven], ["truncate", tvl]):
        run(*command, folder / "rate.tvl", "--bitrate", "100k", "-y")
        rate = (folder / "rate.tvl").stat().st_size * 8 / seconds
        check(80e3 < rate <= 100e3 * 1.05, f"{command[0]} --bitrate 100k of uneven frames: {rate}")


def test_choice(folder: Path, film: Path) -> None:
    """Which video, which other tracks, sound in another codec, frames at a constant rate."""
    many = folder / "many.mkv"
    ffmpeg("-i", film, "-f", "lavfi", "-i", "testsrc=size=64x48:rate=25:duration=2", "-f", "lavfi", "-i",
           "sine=frequency=880:duration=2:sample_rate=44100", "-map", "0:v", "-map", "1:v", "-map", "0:a", "-map", "2:a",
           "-map", "0:s", "-c:v", "ffv1", "-c:a:0", "copy", "-c:a:1", "pcm_s16le", "-ac", "2", "-c:s", "srt",
           "-metadata:s:a:0", "language=eng", "-metadata:s:a:1", "language=deu", many)  # fmt: skip
    out = folder / "chosen.mkv"
    said = run("info", many, "--json")
    check("of 2 video tracks, 0 (" in said, f"info: the track of several that is read: {said[:200]}")
    told = json.loads(said[said.index("{") :])["video"]["duration_seconds"]
    check(told and abs(told - duration(many)) < 0.2, f"info: a track of several lasts {told} s")

    def tracks(file: Path) -> list:
        return [(s["codec_type"], s.get("codec_name", "?")) for s in ffprobe(file, "-show_streams")["streams"]][1:]

    run("encode", many, out, *FAST, "--stream", "v:1")
    told = json.loads(run("info", out, "--json"))["video"]
    check((told["width"], told["height"]) == (64, 48), f"--stream v:1: {told['width']}x{told['height']}")
    check(tracks(out)[0] == ("video", "ffv1") and len(tracks(out)) == 4, f"--stream: the other video comes along: {tracks(out)}")
    # A picture whose alpha takes more bits than its colours.
    ffmpeg("-f", "lavfi", "-i", "color=red:size=64x48:duration=0.2", "-f", "lavfi", "-i", "testsrc=size=64x48:duration=0.2",
           "-map", "0", "-map", "1", "-c:v", "png", "-pix_fmt:0", "rgb24", "-pix_fmt:1", "gray",
           "-disposition:v:0", "default", "-disposition:v:1", "default", folder / "alpha.mov")  # fmt: skip
    said = run("encode", folder / "alpha.mov", out, *FAST)
    told = json.loads(run("info", out, "--json"))["video"]
    check(told["pixel_format"] == "gbrp", f"of equally large videos the first is coded: {told['pixel_format']}; {said}")
    run("encode", many, out, *FAST, "--stream", "1", "--map", "a:1", "--map", "s")
    check(tracks(out) == [("audio", "pcm_s16le"), ("subtitle", "subrip")], f"--map a:1 s: {tracks(out)}")
    run("encode", many, out, *FAST, "--map", "0:m:language:eng")
    check(tracks(out) == [("audio", "aac")], f"--map by language: {tracks(out)}")
    run("encode", many, out, *FAST, "--map", "-s", "--map", "-v")
    check([k for k, _ in tracks(out)] == ["audio", "audio"], f"--map -s -v: {tracks(out)}")
    check("1 video (ffv1)" in run("encode", many, out, *FAST, "--stream", "v:2", code=2), "--stream: the tracks are listed")
    check("2 sound (aac, eng)" in run("encode", many, out, *FAST, "--map", "a:5", code=2), "--map: the tracks are listed")
    run("encode", many, out, *FAST, "--map", "x:y:z", code=2)
    run("encode", many, folder / "chosen.tvl", *FAST, "--map", "a", code=2)
    run("encode", out, folder / "chosen.tvl", *FAST, "--stream", "v:0", code=2)

    encoders = program.encoders()
    for codec, least in (("flac", 60), ("opus", 20)):
        if codec == "opus" and b" libopus " not in encoders:
            continue
        run("encode", many, out, *FAST, "--audio", codec, "--map", "a")
        check(tracks(out) == [("audio", codec)] * 2, f"--audio {codec}: {tracks(out)}")
        for track in (0, 1):
            # Together in time and alike: what is left when one is taken from the other.
            graph = (f"[0:a:{track}]aresample=48000,pan=mono|c0=c0[a];[1:a:{track}]aresample=48000,pan=mono|c0=-1*c0[b];"
                     "[a][b]amix=normalize=0,atrim=0.1:1.8,astats=metadata=1[c];[0:a:%d]pan=mono|c0=c0,atrim=0.1:1.8,astats[d]" % track)
            said = ffmpeg("-i", many, "-i", out, "-filter_complex", graph, "-map", "[c]", "-map", "[d]", "-f", "null", "-").stderr.decode()
            levels = sorted(float(line.rsplit(" ", 1)[1]) for line in said.splitlines() if "RMS level dB" in line)
            check(levels and levels[-1] - levels[0] > least, f"--audio {codec}, track {track}: levels {levels}")
        check(abs(lag(out) - lag(many)) < 0.02, f"--audio {codec}: together: {lag(out)}, {lag(many)}")
        run("decode", out, folder / "back.mkv", "--audio", "flac", "-y")
    sides = folder / "sides.mkv"  # six channels that Opus does not know so; FLAC, which FFmpeg calls experimental in MP4
    ffmpeg("-i", film, "-f", "lavfi", "-i", "anoisesrc=duration=2:sample_rate=48000,aformat=channel_layouts=5.1(side)", "-map", "0:v",
           "-map", "1:a", "-c:v", "copy", "-c:a", "flac", sides)  # fmt: skip
    if b" libopus " in encoders:
        run("encode", sides, out, *FAST, "--audio", "opus")
        layout = [s.get("channel_layout") for s in ffprobe(out, "-show_streams")["streams"]][1:]
        check(layout == ["5.1"], f"--audio opus of 5.1(side): {layout}")
    run("encode", sides, out, *FAST)
    run("decode", out, folder / "sides.mp4", "-y")
    same = [ffmpeg("-i", file, "-map", "0:a", "-c", "copy", "-f", "md5", "-").stdout for file in (sides, folder / "sides.mp4")]
    check(("audio", "flac") in tracks(folder / "sides.mp4") and same[0] == same[1], f"FLAC goes into MP4: {same}")
    check("cannot hold" in run("decode", out, folder / "a.avi", "--audio", "opus", "-y", code=5), "AVI holds no Opus")

    run("decode", folder / "uneven.tvl", folder / "filled.y4m", "--fill-cfr", "-y")
    counted = ffprobe(folder / "filled.y4m", "-count_frames", "-show_entries", "stream=nb_read_frames")["streams"][0]
    rate = json.loads(run("info", folder / "uneven.tvl", "--json"))["video"]["frames_per_second"]
    check(abs(int(counted["nb_read_frames"]) - 4.8 * rate) <= 0.2 * rate, f"--fill-cfr: {counted} frames at {rate} a second")
    check("has no frame times" not in run("decode", folder / "uneven.tvl", folder / "filled.y4m", "--fill-cfr", "-y"), "--fill-cfr is no loss")
    run("decode", folder / "film.mkv", folder / "same.y4m", "--fill-cfr", "--only-video", "-y")
    run("decode", folder / "film.mkv", folder / "plain.y4m", "--only-video", "-y")
    check((folder / "same.y4m").read_bytes() == (folder / "plain.y4m").read_bytes(), "--fill-cfr of even frames changes nothing")


def test_boxes(folder: Path, film: Path) -> None:
    """Chapters and tags in a stream without Matroska around it, and out of it again."""
    tvl = folder / "boxes.tvl"
    said = run("encode", film, tvl, *FAST)
    check("chapters" not in said and "tags" not in said, f"a stream has places for chapters and tags: {said}")
    told = json.loads(run("info", tvl, "--json", "--log-level", "error"))["metadata"]
    check([(c["begin"], c["title"]) for c in told["chapters"]] == chapters(film), f"chapters of the stream: {told}")
    check({"key": "title", "value": "A film"} in told["entries"], f"tags of the stream: {told}")
    for out in (folder / "boxes.mkv", folder / "boxes.mp4"):
        run("decode", tvl, out, "-y", *(["--codec", "mpeg4"] if out.suffix == ".mp4" else []))
        check(chapters(out) == chapters(film), f"{out.name}: chapters: {chapters(out)}")
        check(ffprobe(out, "-show_format")["format"]["tags"].get("title") == "A film", f"{out.name}: title")
    run("mux", tvl, folder / "boxes.mkv", "-y")
    check(chapters(folder / "boxes.mkv") == chapters(film), "mux: chapters are where players look for them")
    run("demux", folder / "boxes.mkv", folder / "again.tvl", "-y")
    check((folder / "again.tvl").read_bytes() == tvl.read_bytes(), "demux: the same stream")
    run("encode", tvl, folder / "again.tvl", *FAST)
    check(json.loads(run("info", folder / "again.tvl", "--json"))["metadata"] == told, "encoding again keeps them")
    check("chapters" in run("decode", tvl, folder / "boxes.y4m", "-y"), "Y4M holds no chapters, and says so")
    run("encode", film, folder / "again.tvl", *FAST, "--only-video")
    check("metadata" not in json.loads(run("info", folder / "again.tvl", "--json")), "--only-video")
    run("encode", film, folder / "whole.tvl", *FAST, "--joinable")
    for name, frames in (("a.tvl", ":20"), ("b.tvl", "20:")):
        run("encode", film, folder / name, *FAST, "--joinable", "--frames", frames)
    run("join", folder / "a.tvl", folder / "b.tvl", "-o", folder / "joined.tvl", "-y")
    check((folder / "joined.tvl").read_bytes() == (folder / "whole.tvl").read_bytes(), "parts have the chapters once")


def test_hdr(folder: Path) -> None:
    """What HDR10 says of screen and light comes through."""
    hdr = folder / "hdr.mkv"
    listed = program.encoders()
    if b"libx265 " not in listed:
        return
    display = "G(8500,39850)B(6550,2300)R(35400,14600)WP(15635,16450)L(10000000,50)"
    ffmpeg("-f", "lavfi", "-i", "testsrc2=size=64x64:rate=25:duration=0.4", "-pix_fmt", "yuv420p10le", "-c:v", "libx265",
           "-x265-params", f"log-level=none:hdr10=1:master-display={display}:max-cll=1000,400", hdr)  # fmt: skip

    def said(file: Path) -> list:
        frame = ffprobe(file, "-show_frames", "-read_intervals", "%+#1", "-select_streams", "v")["frames"][0]
        stream = ffprobe(file, "-show_streams", "-select_streams", "v")["streams"][0]
        found = stream.get("side_data_list", []) + frame.get("side_data_list", [])
        values = {}
        for data in found:
            for key, value in data.items():
                if "/" in str(value) or key.startswith("max_") or key == "rotation":
                    number = str(value).split("/")
                    values[key] = round(float(number[0]) / float(number[1]) if len(number) > 1 else float(number[0]), 4)
        return sorted(values.items())

    run("encode", hdr, folder / "hdr.tvl", *FAST)
    run("decode", folder / "hdr.tvl", folder / "hdr_out.mkv", "-y")
    wanted, got = said(hdr), said(folder / "hdr_out.mkv")
    check(len(wanted) >= 12 and wanted == got, f"HDR10: {wanted} became {got}")
    # A film that is turned as well, from MP4 to MP4, whichever file was between them.
    turned = folder / "turned.mp4"
    ffmpeg("-i", hdr, "-c", "copy", "-metadata:s:v", "rotate=90", turned)
    wanted = said(turned)
    check(dict(wanted).get("rotation") in (90, -90) and len(wanted) >= 13, f"a turned film: {wanted}")
    for between in ("turned.mkv", "turned.tvl"):
        run("encode", turned, folder / between, *FAST)
        for codec in ("libx265", "libx264"):
            run("decode", folder / between, folder / "turned_out.mp4", "--codec", codec, "-y")
            got = said(folder / "turned_out.mp4")
            check(wanted == got, f"mp4 -> {between} -> {codec} in mp4: {wanted} became {got}")


def test_lost_start(folder: Path) -> None:
    """A film that begins with pictures whose references were cut off: what FFmpeg decodes is there, and the rest is told."""
    whole, cut, tvl, raw = (folder / n for n in ("open.ts", "begins_later.ts", "later.tvl", "later.yuv"))
    ffmpeg("-f", "lavfi", "-i", "testsrc2=size=64x48:rate=25:duration=2", "-c:v", "mpeg2video", "-g", "15", "-bf", "2", whole)
    packets = ffprobe(whole, "-show_packets", "-select_streams", "v")["packets"]
    data = whole.read_bytes()
    tables = b"".join(data[i : i + 188] for i in range(0, 564, 188) if (data[i + 1] & 31) << 8 | data[i + 2] in (0, 17, 4096))
    keys = [i for i, packet in enumerate(packets) if packet["flags"][0] == "K"]
    # In front of the second GOP two B pictures are shown; behind it 6 others before the third GOP, with its two.
    for first in (keys[1], keys[2] - 6):
        cut.write_bytes(tables + data[int(packets[first]["pos"]) :])
        lost = 2 + (first != keys[1]) * 6
        pictures = ffmpeg("-i", cut, "-fps_mode", "passthrough", "-f", "rawvideo", "-").stdout
        check(len(pictures) == (len(packets) - first - lost) * 64 * 48 * 3 // 2, f"FFmpeg leaves out {lost} pictures")
        said = run("encode", cut, tvl, *EXACT)
        words = f"the first {lost} pictures need others"
        check(said.count("warning") == 1 and words in said, f"{lost} pictures are left out: {said}")
        told = json.loads(run("info", cut, "--json", "--quiet"))["warnings"]
        check(len(told) == 1 and words in told[0], f"info --json, {lost} pictures are left out: {told}")
        run("decode", tvl, raw, "-y")
        check(raw.read_bytes() == pictures, f"{lost} pictures are left out: the others are not FFmpeg's")
        # Times count from the first picture that is there.
        run("encode", cut, tvl, *EXACT, "--frames", "0.2s:0.6s")
        run("decode", tvl, raw, "-y")
        check(raw.read_bytes() == pictures[5 * 4608 : 15 * 4608], f"{lost} pictures are left out: frames of a time")
    check("need others" not in run("encode", whole, tvl, *FAST), "a film with its beginning is complete")
    ffmpeg("-f", "lavfi", "-i", "testsrc2=size=64x48:rate=25:duration=2", "-c:v", "mpeg2video", "-g", "15", "-bf", "2",
           "-flags", "+ildct", whole)  # fmt: skip
    place = [packet["pos"] for packet in ffprobe(whole, "-show_packets")["packets"] if packet["flags"][0] == "K"][1]
    cut.write_bytes(tables + whole.read_bytes()[int(place) :])
    said = run("encode", cut, tvl, *FAST)
    check("the first 2 pictures or fields need" in said, f"of interlaced films fields may be packets: {said}")


def test_heif(folder: Path, film: Path) -> None:
    """Of pictures in HEIF files what FFmpeg leaves out is named; those that it does not read are unsupported, not damaged."""
    picture, tvl = folder / "picture.mp4", folder / "picture.tvl"
    ffmpeg("-i", film, "-map", "0:v", "-frames:v", 1, "-c", "copy", picture)
    whole = picture.read_bytes()
    box = lambda name, content: (8 + len(content)).to_bytes(4, "big") + name + content  # noqa: E731
    meta = box(b"meta", bytes(4) + box(b"free", box(b"irot", b"\1") + box(b"clap", bytes(32))))
    picture.write_bytes(whole[:8] + b"mif1" + whole[12:] + meta)
    told = "left out: rotation, cropping"
    check(run("encode", picture, tvl, *FAST).count(told) == 1, "what a HEIF picture loses is named")
    warnings = json.loads(run("info", picture, "--json", "--quiet"))["warnings"]
    check(len(warnings) == 1 and told in warnings[0], f"info --json of a HEIF picture: {warnings}")
    check(told not in run("info", film), "a film is no HEIF picture")
    picture.write_bytes(box(b"ftyp", b"avif" + bytes(4) + b"avifmif1") + box(b"meta", bytes(4) + box(b"free", b"grid")) + box(b"mdat", bytes(99)))
    said = run("encode", picture, tvl, *FAST, code=5)
    check("in tiles that FFmpeg does not read" in said, f"a HEIF picture in tiles: {said}")


def test_open_gops(folder: Path, film: Path) -> None:
    mkv = folder / "motion.mkv"
    run("encode", film, mkv, "--motion", "on", "--keyint", "64", "--frames", ":50", "-y", "--levels", "2x2", "--gop", "8")
    packets = ffprobe(mkv, "-show_packets", "-select_streams", "v", "-show_entries", "packet=flags")["packets"]
    keys = [p["flags"][0] == "K" for p in packets]
    check(keys[0] and not all(keys) and len(keys) == 8, f"only what decodes alone is a key packet: {keys}")
    run("verify", mkv)


def hostile(whole: bytes) -> list:
    """Files that mean harm: sizes, depths and numbers that nobody writes."""
    def element(name: bytes, content: bytes, size: bytes = b"") -> bytes:
        return name + (size or bytes([0x01]) + len(content).to_bytes(7, "big")) + content

    ebml, segment, cluster = b"\x1a\x45\xdf\xa3", b"\x18\x53\x80\x67", b"\x1f\x43\xb6\x75"
    head_end = whole.index(cluster)
    unknown, huge = b"\x01" + b"\xff" * 7, b"\x01" + b"\xff" * 6 + b"\xfe"
    at = whole.index(b"\x63\xa2")  # CodecPrivate
    group = whole[head_end:]
    tick = whole.index(b"\x2a\xd7\xb1") + 4  # TimestampScale: 3 bytes
    return [
        ("clusters in clusters", whole[:head_end] + (cluster + unknown) * 20000 + group),
        ("empty clusters", whole[:head_end] + element(cluster, b"") * 20000),
        ("a cluster larger than any file", whole[:head_end] + cluster + huge + group[12:]),
        ("a segment in a segment", element(ebml, b"\x42\x82\x88matroska") + (segment + unknown) * 1000 + whole),
        ("CodecPrivate of 2^56 bytes", whole[:at + 2] + huge + whole[at + 4 :]),
        ("no tracks", whole[: whole.index(b"\x16\x54\xae\x6b")] + whole[head_end:]),
        ("a tick of 0", whole[:tick] + b"\0\0\0" + whole[tick + 3 :]),
        ("a long tick", whole[:tick] + b"\xff\xff\xff" + whole[tick + 3 :]),
        ("every packet twice", whole + group),
        ("packets before their header", whole[:head_end] + group[len(group) // 2 :] + group),
        ("nothing but voids", whole[:head_end] + b"\xec\x80" * 50000),
    ]  # fmt: skip


def test_damage(folder: Path) -> None:
    """Cut and flipped bytes: an Error, or what is left, and no other end."""
    whole = (folder / "film.mkv").read_bytes()
    broken, out, stream = folder / "broken.mkv", folder / "o.mkv", folder / "o.tvl"
    plain = folder / "film.tvl"
    generator = random.Random(20)
    # Everything that reads such files.
    commands = [
        ["verify", broken], ["verify", broken, "--against", folder / "film.mp4"], ["info", broken, "-v"],
        ["decode", broken, "null", "--keep-partial"], ["decode", broken, out, "-y", "--frames", "0.5s:1.5s", "--reduce", "1"],
        ["demux", broken, stream, "-y"], ["mux", broken, out, "-y"], ["truncate", broken, out, "--layers", "2", "-y"],
        ["mux", plain, out, "--tracks-from", broken, "-y"], ["mux", plain, out, "--tracks-from", broken, "--audio", "flac", "-y"],
        ["extract", broken, out, "--reduce", "1", "-y", "--keep-partial"], ["extract", broken, stream, "--frames", "10:30", "-y"],
        ["compare", broken, broken], ["join", broken, broken, "-o", out, "-y"], ["thumbnail", broken, folder / "t.png", "-y"],
        ["plan", broken], ["bench", broken, "--preset", "fast", "--repeat", "1"], ["encode", broken, stream, *FAST], ["encode", broken, out, *FAST, "--recover"],
    ]  # fmt: skip
    cases = [whole[:size] for size in (0, 3, 40, 300, 700, len(whole) // 2, len(whole) - 1)]
    for _ in range(200 if FULL else 9):
        flipped = bytearray(whole)
        for _ in range(generator.choice((1, 4, 100))):
            flipped[generator.randrange(generator.choice((1200, len(whole))))] = generator.randrange(256)
        cases.append(bytes(flipped))
    for i, data in enumerate(cases):
        broken.write_bytes(data)
        # Of cut files every third command, each of them for two or three.
        for command in commands if FULL else commands[i % 3 :: 3] if i < 7 else generator.sample(commands, 4):
            result = program.process(program.path, *command)
            said = result.stderr.decode(errors="replace")
            good = result.returncode in (0, 2, 4, 5, 6) and "internal" not in said and said.count("error:") <= 1
            check(good, f"damage {i}, {command[0]}: exit code {result.returncode}: {said[:300]}")
    for i, (name, data) in enumerate(hostile(whole)):
        broken.write_bytes(data)
        for command in commands if FULL else generator.sample(commands, 2):
            result = program.process(program.path, *command)
            said = result.stderr.decode(errors="replace")
            good = result.returncode in (0, 2, 4, 5, 6) and "internal" not in said and said.count("error:") <= 1
            check(good, f"{name}, {command[0]}: exit code {result.returncode}: {said[:300]}")
    broken.write_bytes(whole[: len(whole) * 2 // 3])
    said = run("decode", broken, folder / "rest.mkv", "--keep-partial", "-y", code=4)
    check("index" in said and (folder / "rest.mkv").exists(), f"of a cut film what is left is decoded: {said[:300]}")


def main() -> int:
    program.path = os.path.abspath(sys.argv[1])
    if not program.has_ffmpeg():
        return 77
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        film = make_film(folder)
        test_round(folder, film)
        test_outputs(folder, film)
        test_join(folder, film)
        test_pipe_and_plan(folder)
        test_losses(folder, film)
        test_cut(folder, film)
        test_skipped_packets(folder)
        test_findings(folder, film)
        test_damaged_start(folder, film)
        test_words(folder, film)
        test_copies(folder, film)
        test_waiting(folder)
        test_live()
        test_times(folder, film)
        test_choice(folder, film)
        test_boxes(folder, film)
        test_hdr(folder)
        test_open_gops(folder, film)
        test_lost_start(folder)
        test_heif(folder, film)
        test_damage(folder)
    print(f"{len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
