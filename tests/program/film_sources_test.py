#!/usr/bin/env python3
"""Films with several videos, of several rates, and with damage: what is read is what ffmpeg reads, each time.

    tests/program/film_sources_test.py path/to/trivelet

Skipped without ffmpeg.
"""

import os
import re
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import program  # noqa: E402
from program import check, failures, ffmpeg, run  # noqa: E402

EXACT = ["--lossless", "--preset", "fast", "-y"]


def hashes(text: bytes) -> list:
    """Of a list of ffmpeg's or ours, one a frame."""
    return [line.split(b",")[-1].strip() for line in text.splitlines() if line and not line.startswith(b"#")]


def decoded_by_ffmpeg(film: Path) -> list:
    return hashes(ffmpeg("-i", film, "-an", "-fps_mode", "passthrough", "-f", "framemd5", "-").stdout)


def decoded(stream: Path) -> list:
    return hashes(subprocess.run([program.path, "decode", stream, "framemd5", "--only-video"], check=True, capture_output=True).stdout)


def test_videos(folder: Path) -> None:
    """Of several videos, that which ffmpeg takes: the default, then the largest; never a cover."""
    film, coded = folder / "two.mov", folder / "two.tvl"
    for flags, taken in ((("default", "default"), 1), (("default", "0"), 0)):
        ffmpeg("-f", "lavfi", "-i", "nullsrc=size=90x18:rate=25,geq=random(1)*255,format=gray", "-f", "lavfi", "-i",
               "color=red:size=420x84:rate=25", "-map", "0", "-map", "1", "-frames:v", 8, "-c:v:0", "png", "-c:v:1", "mpeg4",
               "-disposition:v:0", flags[0], "-disposition:v:1", flags[1], film)  # fmt: skip
        said = run("encode", film, coded, *EXACT)
        check(decoded(coded) == decoded_by_ffmpeg(film), f"flags {flags}: other pictures than ffmpeg's: {said}")
        sizes = ("0 (png, 90x18)", "1 (mpeg4, 420x84)")
        wanted = f"of 2 video tracks, {sizes[taken]} is read and not {sizes[1 - taken]}; encode --stream takes another"
        check(wanted in said, f"flags {flags}: {said}")
        check("is read and not" not in run("encode", film, coded, *EXACT, "--stream", "v:0"), "a track that was asked for")
    ffmpeg("-f", "lavfi", "-i", "color=size=64x48:rate=25:duration=0.32", "-f", "lavfi", "-i",
           "color=red:size=640x480:rate=25:duration=0.04", "-map", "0", "-map", "1", "-c:v:0", "mpeg4", "-c:v:1", "png", "-disposition:v:1", "attached_pic",
           folder / "cover.mp4")  # fmt: skip
    said = run("encode", folder / "cover.mp4", coded, *EXACT)
    check(len(decoded(coded)) == 8 and "video tracks" not in said, f"a cover is no video: {said}")


def chunk(name: bytes, content: bytes) -> bytes:
    return name + struct.pack(">IH", len(content) + 10, 0) + content


def chunks_of(film: bytes) -> list:
    """Of RealMedia: name, contents behind the version."""
    found = []
    while len(film) > 10:
        size = struct.unpack(">I", film[4:8])[0]
        found.append((film[:4], film[10:size]))
        film = film[size:]
    return found


def description(number: int, mime: bytes, codec: bytes) -> bytes:
    """A track of RealMedia."""
    text = bytes([len(mime)]) + mime
    return struct.pack(">H7I", number, 20000, 20000, 1000, 1000, 0, 0, 1000) + b"\0" + text + struct.pack(">I", len(codec)) + codec


def cook() -> bytes:
    """What RealMedia says of sound that is coded by cook: 22,050 Hz, one channel."""
    head = b".ra\xfd" + struct.pack(">HH4sIHIHIIIIHHHHHHHHIH", 5, 0, b".ra5", 0, 5, 0, 1, 32, 0, 0, 0, 1, 32, 32, 0, 0, 0, 0, 22050, 16, 1)
    return head + b"genr" + b"cook" + bytes(4) + struct.pack(">I", 8) + struct.pack(">IHH", 0x01000001, 512, 32)


def real_media(plain: bytes, more: list, chunks: int) -> bytes:
    """The film with further tracks before its own, and its packets so many times, as films of several rates have them."""
    parts = chunks_of(plain)
    own = next(content for name, content in parts if name == b"MDPR")
    data = next(content for name, content in parts if name == b"DATA")
    tracks = b"".join(chunk(b"MDPR", content) for content in more) + chunk(b"MDPR", own)
    begin = 18 + 50 + len(tracks)
    settings = bytearray(next(content for name, content in parts if name == b"PROP"))
    settings[-12:] = struct.pack(">IIHH", 0, begin, len(more) + 1, 0)
    file = b".RMF" + struct.pack(">IHII", 18, 0, 0, len(more) + 4) + chunk(b"PROP", bytes(settings)) + tracks
    for i in range(chunks):
        end = begin + (len(data) + 10) * (i + 1)
        file += chunk(b"DATA", data[:4] + struct.pack(">I", end if i + 1 < chunks else 0) + data[8:])
    return file


def test_real_media(folder: Path) -> None:
    """A film of several rates has its tracks once for each, in chunks of their own, of which FFmpeg knows one."""
    plain, film, coded = folder / "plain.rm", folder / "film.rm", folder / "film.mkv"
    ffmpeg("-f", "lavfi", "-i", "testsrc2=size=64x48:rate=25", "-frames:v", 30, "-c:v", "rv10", "-g", 10, plain)
    whole = plain.read_bytes()
    video = next(content for name, content in chunks_of(whole) if name == b"MDPR")
    wanted = decoded_by_ffmpeg(plain)
    check(len(wanted) == 30, f"RealMedia: {len(wanted)} frames")
    others = [struct.pack(">H", number) + video[2:] for number in (4, 5)]
    sound = description(7, b"audio/x-pn-realaudio", cook())
    for name, more, chunks in (("plain", [], 1), ("rates", others, 3), ("cook", [sound], 1)):
        film.write_bytes(real_media(whole, more, chunks))
        said = run("encode", film, coded, *EXACT, "--verify")
        check(decoded(coded) == wanted, f"RealMedia, {name}: other pictures: {said}")
        check(("of 3 video tracks, 2 (rv10, 64x48) is read" in said) == (name == "rates"), f"RealMedia, {name}: {said}")
        check(("sound (cook, track 0): matroska cannot hold it" in said) == (name == "cook"), f"RealMedia, {name}: {said}")
        piped = subprocess.run([program.path, "encode", "-", folder / "piped.tvl", *EXACT], input=film.read_bytes(), capture_output=True)
        check(piped.returncode == 0 and decoded(folder / "piped.tvl") == wanted, f"RealMedia, {name}, piped: {piped.stderr}")


def without_configuration(film: bytes) -> bytes:
    """FLV without what its first packet of AAC says of the others."""
    at, out = 13, film[:13]
    while at < len(film):
        size = int.from_bytes(film[at + 1 : at + 4], "big")
        tag = film[at : at + 11 + size + 4]
        if tag[0] == 8 and tag[12] == 0:
            tag = tag[:1] + (2).to_bytes(3, "big") + tag[4:13] + (13).to_bytes(4, "big")
        out += tag
        at += 11 + size + 4
    return out


def test_sound_without_configuration(folder: Path) -> None:
    film, coded = folder / "whole.flv", folder / "bare.mkv"
    ffmpeg("-f", "lavfi", "-i", "testsrc2=size=64x48:rate=25:duration=1", "-f", "lavfi", "-i", "sine=duration=1", "-c:v", "flv1", "-c:a",
           "aac", film)  # fmt: skip
    (folder / "bare.flv").write_bytes(without_configuration(film.read_bytes()))
    said = run("encode", folder / "bare.flv", coded, *EXACT)
    check("sound (aac, track 0): matroska cannot hold it (its configuration is missing)" in said, f"AAC without configuration: {said}")
    check(decoded(coded) == decoded_by_ffmpeg(film), "the pictures of a film whose sound is left out")


def outcomes(film: Path, coded: Path, *arguments) -> set:
    """Exit code, words and bytes, with several numbers of threads and several times."""
    found = set()
    for i in range(12):
        coded.unlink(missing_ok=True)
        command = [program.path, "encode", film, coded, *EXACT, "-t", str((1, 2, 4, 8)[i % 4]), *arguments]
        result = subprocess.run(command, capture_output=True, text=True, timeout=120)
        said = re.sub(r", [0-9.]+ frames/s", "", result.stderr)
        found.add((result.returncode, said, coded.read_bytes() if coded.exists() else b""))
    return found


def test_repeated(folder: Path) -> None:
    """Films that are damaged or wrongly padded: the answer depends on no thread, and not on what is behind the part that is asked for."""
    film, coded = folder / "padded.avi", folder / "again.tvl"
    ffmpeg("-f", "lavfi", "-i", "testsrc2=size=352x288:rate=25", "-frames:v", 12, "-c:v", "mpeg4", "-q:v", 2, "-bf", 0, "-f", "m4v",
           folder / "plain.m4v")  # fmt: skip
    parts = (folder / "plain.m4v").read_bytes().split(b"\0\0\1\xb6")
    # The decoder counts how pictures end; bytes behind those from the fifth on are padding or damage by this count.
    (folder / "padded.m4v").write_bytes(b"\0\0\1\xb6".join(parts[:5] + [part + b"\xff\xff" for part in parts[5:]]))
    ffmpeg("-f", "m4v", "-framerate", 25, "-i", folder / "padded.m4v", "-c", "copy", film)
    found = outcomes(film, coded)
    check(len(found) == 1 and next(iter(found))[0] == 4, f"MPEG-4 with padding of its own: {[(c, w[:200]) for c, w, _ in found]}")

    whole, film = folder / "whole.mp4", folder / "damaged.mp4"
    ffmpeg("-f", "lavfi", "-i", "testsrc2=size=320x240:rate=25", "-frames:v", 40, "-c:v", "libx264", "-g", 60, "-bf", 2, whole)
    packets = subprocess.run(["ffprobe", "-v", "error", "-select_streams", "v", "-show_entries", "packet=pts_time,pos,size", "-of", "csv=p=0",
                              whole], check=True, capture_output=True, text=True).stdout.split()  # fmt: skip
    time, size, at = (float(field) for field in packets[15].split(",")[:3])
    data = bytearray(whole.read_bytes())
    for i in range(int(at + size / 2), int(at + size / 2) + 40):
        data[i] ^= 0x5A
    film.write_bytes(data)
    # Those shown before that need no later packet.
    intact = sum(1 for packet in packets[:15] if float(packet.split(",")[0]) < time)
    run("encode", whole, folder / "intact.tvl", *EXACT, "--frames", f":{intact}")
    found = outcomes(film, coded, "--frames", f":{intact}")
    check({(c, data) for c, _, data in found} == {(0, (folder / "intact.tvl").read_bytes())},
          f"{intact} frames before damage: {[(c, w[:200]) for c, w, _ in found]}")  # fmt: skip
    found = outcomes(film, coded)
    check(len(found) == 1 and next(iter(found))[0] == 4, f"damage: {[(c, w[:200]) for c, w, _ in found]}")


def main() -> int:
    program.path = os.path.abspath(sys.argv[1])
    if not program.has_ffmpeg():
        return 77
    with tempfile.TemporaryDirectory() as name:
        test_videos(Path(name))
        test_real_media(Path(name))
        test_sound_without_configuration(Path(name))
        encoders = subprocess.run(["ffmpeg", "-v", "quiet", "-encoders"], capture_output=True).stdout
        if b" libx264 " in encoders:
            test_repeated(Path(name))
    print(f"{len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
