#!/usr/bin/env python3
"""What stands beside the coded pictures of a film: the alpha of WebM is decoded with them, and what no stream has a place
for is named (closed captions, stereoscopic and Dolby Vision pictures). Encrypted WebM is told from damage, and a box that
is longer than its samples from a film that is cut.

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
    if knows("-encoders", "libvpx"):  # whose matrix VP8 says itself
        wide = folder / "wide.webm"
        colours = ["-color_primaries", "bt709", "-color_trc", "bt709", "-color_range", "tv"]
        for matrix, told in (("bt709", "matrix bt709 for bt470bg"), ("bt470bg", "")):
            ffmpeg("-i", plain, "-c:v", "libvpx", *colours, "-colorspace", matrix, wide)
            said = run("encode", wide, coded, *EXACT)
            check(("container states" in said) == bool(told) and told in said, f"{matrix} in WebM: {said}")
        said = run("info", coded)
        check("primaries bt709 (1), transfer bt709 (1), matrix bt470bg (5), range limited" in said, f"info: {said}")
    stereo = folder / "stereo.mkv"
    ffmpeg("-i", vision, "-c", "copy", "-metadata:s:v", "stereo_mode=left_right", stereo)
    said = run("encode", stereo, coded, *EXACT)
    check("that the picture is stereoscopic" in said, f"stereoscopic: {said}")
    vision.write_bytes(with_vision(vision.read_bytes()))
    said = run("encode", vision, coded, *EXACT)
    check("Dolby Vision" in said, f"Dolby Vision: {said}")
    told = run("info", vision, "--json")
    check("Dolby Vision" in told.partition('"warnings"')[2], f"info: {told}")


def with_time_codes(stream: bytes) -> bytes:
    """H.264 with the time code 01:02:03:04 before each picture (ITU-T H.264, D.1.3: picture timing SEI message)."""
    fields = ((0, 4), (1, 1), (0, 2), (0, 1), (0, 5), (1, 1), (0, 1), (0, 1), (4, 8), (3, 6), (2, 6), (1, 5), (0x555555, 24))
    text = "".join(f"{value:0{size}b}" for value, size in fields) + "1"
    timing = int(text.ljust(72, "0"), 2).to_bytes(9, "big")
    out = b""
    for unit in stream.replace(b"\0\0\0\1", b"\0\0\1").split(b"\0\0\1")[1:]:
        kind = unit[0] & 31
        out += b"\0\0\0\1\6\1\x09" + timing + b"\x80" if kind in (1, 5) else b""
        out += b"\0\0\0\1" + unit if kind != 6 else b""
    return out


def test_time_codes(folder: Path) -> None:
    plain, coded = folder / "plain.h264", folder / "codes.h264"
    params = "pic-struct=1:slices=1:bframes=0"
    ffmpeg("-f", "lavfi", "-i", "testsrc2=size=64x48:rate=25:duration=0.4", "-c:v", "libx264", "-x264-params", params, plain)
    coded.write_bytes(with_time_codes(plain.read_bytes()))
    check("left out" not in run("encode", plain, folder / "codes.tvl", *EXACT), "a film without time codes")
    said = run("encode", coded, folder / "codes.tvl", *EXACT)
    check("left out: time codes of pictures" in said, f"time codes: {said}")


def test_edits(folder: Path) -> None:
    """Sound before the beginning that an edit list of MP4 leaves out is heard in Matroska, and named. What encoders put
    before the sound, a packet at most, is not."""
    film, cut = folder / "edits.mp4", folder / "cut.mp4"
    ffmpeg("-f", "lavfi", "-i", "testsrc2=size=64x48:rate=25:duration=0.6", "-f", "lavfi", "-i", "sine=duration=0.6:sample_rate=48000",
           "-c:v", "mpeg4", "-g", 100, "-c:a", "aac", film)  # fmt: skip
    ffmpeg("-ss", 0.1, "-i", film, "-c", "copy", cut)
    for source, named in ((film, False), (cut, True)):
        said = run("encode", source, folder / "edits.mkv", *EXACT)
        check(("sound (track 1): 100 milliseconds that an edit list leaves out are heard" in said) == named, f"{source.name}: {said}")
    said = run("encode", cut, folder / "edits.mkv", *EXACT, "--audio", "flac")
    check("edit list" not in said, f"sound that is encoded again has none of it: {said}")


def test_cover(folder: Path) -> None:
    """A cover of Matroska keeps its name and title."""
    film, out = folder / "covered.mkv", folder / "covered_t.mkv"
    ffmpeg("-f", "lavfi", "-i", "testsrc2=size=64x48", "-frames:v", 1, folder / "land.png")
    ffmpeg("-i", folder / "land.png", "-c:v", "mpeg4", "-attach", folder / "land.png", "-metadata:s:t", "mimetype=image/png",
           "-metadata:s:t", "title=A cover", film)  # fmt: skip
    run("encode", film, out, *EXACT)
    command = ["ffprobe", "-v", "error", "-select_streams", "1", "-show_entries", "stream_tags", "-of", "compact", out]
    told = subprocess.run(command, check=True, capture_output=True).stdout.decode()
    check("filename=land.png" in told and "title=A cover" in told and "mimetype=image/png" in told, f"cover: {told}")


def test_times_in_disorder(folder: Path) -> None:
    """The third picture of Matroska is said to be shown when the second one is."""
    film, coded = folder / "times.mkv", folder / "times.tvl"
    ffmpeg("-f", "lavfi", "-i", "testsrc2=size=64x48:rate=25:duration=0.4", "-c:v", "mjpeg", film)
    said = run("encode", film, coded, *EXACT)
    check("not behind" not in said, f"times in order: {said}")
    data = film.read_bytes()
    check(b"\x81\0\x50\x80" in data, "track 1, 80 ms, a key frame")
    film.write_bytes(data.replace(b"\x81\0\x50\x80", b"\x81\0\x28\x80", 1))
    said = run("encode", film, coded, *EXACT)
    check("not behind that of the picture before" in said, f"times that stand still: {said}")


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


def test_encrypted(folder: Path) -> None:
    """Packets of encrypted WebM look damaged to decoders."""

    def element(name: str, *content: bytes) -> bytes:
        data = b"".join(content)
        return bytes.fromhex(name) + struct.pack(">Q", 1 << 56 | len(data)) + data

    key = element("5035", element("47E1", b"\5"), element("47E2", bytes(range(16))))
    secret = element("6D80", element("6240", element("5031", b"\0"), element("5033", b"\1"), key))
    video = element("E0", element("B0", b"\x40"), element("BA", b"\x30"))
    track = element("AE", element("D7", b"\1"), element("73C5", b"\1"), element("83", b"\1"), element("86", b"V_VP9"), video, secret)
    blocks = [element("A3", bytes([0x81, 0, i, 0x80, 1]) + bytes(range(9, 200))) for i in range(4)]
    info = element("1549A966", element("2AD7B1", b"\x0f\x42\x40"))
    film = element("1A45DFA3", element("4282", b"webm")) + element(
        "18538067", info, element("1654AE6B", track), element("1F43B675", element("E7", b"\0"), *blocks))  # fmt: skip
    (folder / "secret.webm").write_bytes(film)
    said = run("encode", folder / "secret.webm", folder / "secret.tvl", "-y", code=5)
    check("is encrypted; decrypt it first" in said, f"encrypted: {said}")


def test_long_box(folder: Path) -> None:
    """A box may end behind the file with all of its samples there: FFmpeg says nothing of that."""
    whole, long, coded = folder / "whole.mp4", folder / "long.mp4", folder / "long.tvl"
    ffmpeg("-f", "lavfi", "-i", "testsrc2=size=64x48:rate=25:duration=0.4", "-c:v", "mpeg4", "-movflags", "faststart", whole)
    data = bytearray(whole.read_bytes())
    at = data.index(b"mdat") - 4
    struct.pack_into(">I", data, at, struct.unpack_from(">I", data, at)[0] + 8)
    long.write_bytes(data)
    said = run("encode", long, coded, *EXACT)
    check("8 bytes without samples are missing" in said, f"a box too long: {said}")
    run("encode", whole, folder / "whole.tvl", *EXACT)
    check(coded.read_bytes() == (folder / "whole.tvl").read_bytes(), "a box too long: another film")
    check("cut short" not in run("info", long), "info of a box too long")
    long.write_bytes(data[:-1])
    check("9 bytes are missing at its end" in run("encode", long, coded, *EXACT, code=4), "a film cut by a byte")
    fragments = folder / "fragments.mp4"
    ffmpeg("-i", whole, "-c", "copy", "-movflags", "frag_every_frame+empty_moov", fragments)
    parts = fragments.read_bytes()
    long.write_bytes(parts[: parts.rindex(b"mdat") + 8])
    check("cut short" in run("encode", long, coded, *EXACT, code=4), "the last fragment cut")


def test_damaged_header(folder: Path) -> None:
    """What `ffmpeg -xerror` accepts of a transport stream with a damaged picture is coded, with a warning; the rest is not."""
    whole, broken, coded = folder / "whole.ts", folder / "broken.ts", folder / "broken.tvl"
    ffmpeg("-f", "lavfi", "-i", "testsrc2=size=64x48:rate=25:duration=2", "-c:v", "mpeg2video", "-bf", "2", whole)
    data = whole.read_bytes()
    at = data.index(b"\0\0\1\0")  # the header of the first picture
    codes = set()
    for what, place, new in (("no header", at, b"\x55" * 9), ("no start code", at + 2, b"\0"), ("another type", at + 5, bytes([data[at + 5] ^ 0x18])),
                             ("no type", at + 5, bytes([data[at + 5] ^ 0x38]))):  # fmt: skip
        broken.write_bytes(data[:place] + new + data[place + len(new) :])
        judged = subprocess.run(["ffmpeg", "-v", "error", "-xerror", "-nostdin", "-i", str(broken), "-f", "null", "-"], capture_output=True)
        code = 4 if judged.returncode else 0
        codes.add(code)
        said = run("encode", broken, coded, *EXACT, code=code)
        check(code == 4 or "warning: " in said and "FFmpeg complained" in said, f"{what}: {said}")
    check(codes == {0, 4}, f"all damage is judged alike: {codes}")


def shown(film: Path) -> list:
    """When the pictures of the second track are shown, in milliseconds since the first, in the order of decoding."""
    told = subprocess.run(["ffprobe", "-v", "error", "-select_streams", "v:1", "-show_entries", "packet=pts_time,size", "-of", "csv", film],
                          capture_output=True, check=True).stdout.decode()  # fmt: skip
    packets = [line.split(",")[1:] for line in told.split()]
    first = min(float(time) for time, _ in packets)
    return [(round(1000 * (float(time) - first)), size) for time, size in packets]


def test_second_picture(folder: Path) -> None:
    """Matroska does not tell when pictures are decoded: they are shown when they were, in whatever container."""
    if not knows("-encoders", "libx264"):
        return
    for pyramid, adapt in (("none", 0), ("strict", 0), ("normal", 1)):
        film, coded = folder / "two.mp4", folder / "two.mkv"
        ffmpeg("-f", "lavfi", "-i", "testsrc2=size=96x64:rate=25:duration=2", "-f", "lavfi", "-i", "testsrc2=size=64x48:rate=25:duration=2", "-map", "0", "-map", "1",
               "-c:v:0", "mpeg4", "-bf", "0", "-c:v:1", "libx264", "-bf:v:1", "3", "-x264-params:v:1",
               f"b-pyramid={pyramid}:b-adapt={adapt}", film)  # fmt: skip
        wanted = shown(film)
        check(wanted != sorted(wanted), "pictures of the second track change places")
        run("encode", film, coded, *EXACT)
        check(shown(coded) == wanted, f"two tracks, into the stream: {shown(coded)[:8]} instead of {wanted[:8]}")
        for back in (folder / "back.mkv", folder / "back.mp4"):
            run("decode", coded, back, "-y")
            found = shown(back)
            check(len(found) == len(wanted) and all(abs(a[0] - b[0]) <= 1 and a[1] == b[1] for a, b in zip(wanted, found)),
                  f"two tracks, into {back.name}: {found[:8]} instead of {wanted[:8]}")  # fmt: skip


def main() -> int:
    program.path = os.path.abspath(sys.argv[1])
    if not program.has_ffmpeg():
        return 77
    with tempfile.TemporaryDirectory() as name:
        test_alpha(Path(name))
        test_named(Path(name))
        if knows("-encoders", "libx264"):
            test_time_codes(Path(name))
        test_encrypted(Path(name))
        test_times_in_disorder(Path(name))
        test_long_box(Path(name))
        test_edits(Path(name))
        test_cover(Path(name))
        test_damaged_header(Path(name))
        test_second_picture(Path(name))
    print(f"{len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
