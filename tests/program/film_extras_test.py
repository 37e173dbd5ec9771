#!/usr/bin/env python3
"""What stands beside the coded pictures of a film: the alpha of WebM is decoded with them, and what no stream has a place
for is named (closed captions, stereoscopic and Dolby Vision pictures).

    tests/program/film_extras_test.py path/to/trivelet

Judged by FFmpeg; skipped without it.
"""

import os
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import program  # noqa: E402
from program import check, failures, ffmpeg, run  # noqa: E402

EXACT = ["--preset", "fast", "--lossless", "-y"]


def knows(kind: str, name: str) -> bool:
    listed = subprocess.run(["ffmpeg", "-v", "quiet", kind], capture_output=True).stdout.decode()
    return any(name in line.split() for line in listed.splitlines())


def hashes(text: bytes) -> list:
    return [line.split(b",")[-1].strip() for line in text.splitlines() if line and line[:1] != b"#"]


def test_alpha(folder: Path) -> None:
    """VP8 and VP9 have alpha in a second stream, which FFmpeg's own decoders pass over."""
    source = "testsrc2=size=64x48:rate=10:duration=1,format=yuva420p,geq=lum='lum(X,Y)':cb='cb(X,Y)':cr='cr(X,Y)':a='X*4'"
    for encoder, decoder in (("libvpx", "libvpx"), ("libvpx-vp9", "libvpx-vp9")):
        if not knows("-encoders", encoder) or not knows("-decoders", decoder):
            continue
        film, coded = folder / f"{encoder}.webm", folder / "alpha.tvl"
        ffmpeg("-f", "lavfi", "-i", source, "-c:v", encoder, "-auto-alt-ref", "0", "-b:v", "500k", film)
        said = run("encode", film, coded, *EXACT)
        check("transparency" not in said, f"{encoder}: {said}")
        told = run("info", coded, "--json")
        check("yuva420p" in told, f"{encoder}: no alpha in {told}")
        wanted = hashes(ffmpeg("-c:v", decoder, "-i", film, "-pix_fmt", "yuva420p", "-f", "framemd5", "-").stdout)
        run("decode", coded, folder / "alpha.mkv", "-y")
        found = hashes(ffmpeg("-i", folder / "alpha.mkv", "-pix_fmt", "yuva420p", "-f", "framemd5", "-").stdout)
        check(len(wanted) == 10 and wanted == found, f"{encoder}: other pictures or alpha")


def with_captions(stream: bytes) -> bytes:
    """MPEG-2 with closed captions behind the extension of each picture (ATSC A/53, part 4, 6.2.3)."""
    captions = b"\0\0\1\xb2GA94\3" + bytes([0x41, 0xFF, 0xFC, 0x94, 0x20, 0xFF])
    out, at = b"", 0
    while (found := stream.find(b"\0\0\1\xb5", at)) >= 0:
        is_of_picture = stream[found + 4] >> 4 == 8
        end = stream.find(b"\0\0\1", found + 4)
        out += stream[at:end] + (captions if is_of_picture else b"")
        at = end
    return out + stream[at:]


def test_named(folder: Path) -> None:
    plain, captioned = folder / "plain.m2v", folder / "captions.m2v"
    ffmpeg("-f", "lavfi", "-i", "testsrc2=size=64x48:rate=25:duration=0.4", "-c:v", "mpeg2video", plain)
    captioned.write_bytes(with_captions(plain.read_bytes()))
    coded = folder / "named.tvl"
    check("left out" not in run("encode", plain, coded, *EXACT), "a film without anything")
    said = run("encode", captioned, coded, *EXACT)
    check("left out: closed captions" in said, f"closed captions: {said}")
    vision = folder / "vision.mp4"
    ffmpeg("-i", plain, "-c:v", "mpeg4", vision)
    stereo = folder / "stereo.mkv"
    ffmpeg("-i", vision, "-c", "copy", "-metadata:s:v", "stereo_mode=left_right", stereo)
    said = run("encode", stereo, coded, *EXACT)
    check("that the picture is stereoscopic" in said, f"stereoscopic: {said}")
    vision.write_bytes(with_vision(vision.read_bytes()))
    said = run("encode", vision, coded, *EXACT)
    check("Dolby Vision" in said, f"Dolby Vision: {said}")
    told = run("info", vision, "--json")
    check("Dolby Vision" in told.partition('"warnings"')[2], f"info: {told}")


def with_vision(film: bytes) -> bytes:
    """MP4 whose track of pictures is configured for Dolby Vision: a box in its description, and longer boxes around."""
    box = struct.pack(">I4s", 32, b"dvvC") + bytes([1, 0, 8 << 1, 1 << 3 | 1, 4 << 4]) + bytes(19)
    at = film.index(b"mp4v", film.index(b"stsd"))  # the entry of the only description
    end = at - 4 + struct.unpack_from(">I", film, at - 4)[0]
    data = bytearray(film[:end] + box + film[end:])
    for name in (b"moov", b"trak", b"mdia", b"minf", b"stbl", b"stsd", b"mp4v"):
        size = data.index(name, data.index(b"stsd") if name == b"mp4v" else 0) - 4
        struct.pack_into(">I", data, size, struct.unpack_from(">I", data, size)[0] + len(box))
    check(film.index(b"mdat") < film.index(b"moov"), "the samples stand before the description")
    return bytes(data)


def main() -> int:
    program.path = os.path.abspath(sys.argv[1])
    if not program.has_ffmpeg():
        return 77
    with tempfile.TemporaryDirectory() as name:
        test_alpha(Path(name))
        test_named(Path(name))
    print(f"{len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
