#!/usr/bin/env python3
"""What stands beside the coded pictures of a film: the alpha of WebM is decoded with them, and what no stream has a place
for is named (closed captions, stereoscopic and Dolby Vision pictures). Encrypted WebM is told from damage, and a box that
is longer than its samples from a film that is cut.

    tests/program/film_extras_test.py path/to/trivelet

Judged by FFmpeg; skipped without it.
"""

import json
import os
import struct
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import program  # noqa: E402
from program import check, failures, ffmpeg, run  # noqa: E402

EXACT = ["--preset", "fast", "--lossless", "-y"]


def knows(kind: str, name: str) -> bool:
    listed = program.process("ffmpeg", "-v", "quiet", kind).stdout.decode()
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
    ffmpeg("-i", vision, "-c", "copy", "-metadata:s:v", "stereo_mode=mono", stereo)
    said = run("encode", stereo, coded, *EXACT)
    check("stereoscopic" not in said, f"a picture that says it is no stereoscopic one: {said}")
    profile = folder / "profile.mp4"
    ffmpeg("-i", plain, "-c:v", "mpeg4", "-color_primaries", "bt709", "-color_trc", "bt709", "-colorspace", "bt709", "-movflags", "+write_colr", profile)
    profile.write_bytes(profile.read_bytes().replace(b"colrnclx", b"colrprof"))
    said = run("encode", profile, coded, *EXACT)
    check("left out: colour profile (ICC, 7 bytes)" in said, f"colour profile: {said}")
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
    told = program.process(*command, check=True).stdout.decode()
    check("filename=land.png" in told and "title=A cover" in told and "mimetype=image/png" in told, f"cover: {told}")


def test_later_pictures(folder: Path) -> None:
    """What only later pictures have is named, too; so is the part of a picture that is to be shown."""
    plain, coded = folder / "plain.m2v", folder / "later.tvl"
    stream = plain.read_bytes()
    second = stream.index(b"\0\0\1\0", stream.index(b"\0\0\1\0") + 4)
    (folder / "later.m2v").write_bytes(stream[:second] + with_captions(stream[second:]))
    said = run("encode", folder / "later.m2v", coded, *EXACT)
    check("left out: closed captions" in said, f"captions of later pictures: {said}")
    # ITU-T H.262, 6.2.2.4: sequence_display_extension() of 32x48, behind the sequence extension.
    display = b"\0\0\1\xb5" + int(f"{2:04b}{0:03b}0{32:014b}1{48:014b}000", 2).to_bytes(5, "big")
    at = stream.index(b"\0\0\1", stream.index(b"\0\0\1\xb5") + 4)
    (folder / "pans.m2v").write_bytes(stream[:at] + display + stream[at:])
    said = run("encode", folder / "pans.m2v", coded, *EXACT)
    check("left out: pan-scan" in said, f"pan-scan: {said}")


def entries_of(stream: Path) -> dict:
    told = json.loads(run("info", stream, "--json", "--quiet")).get("metadata", {})
    return {e["key"]: e["value"] for e in told.get("entries", [])}


def test_kept_tags(folder: Path) -> None:
    """The time code of MPEG-2 and the XMP of QuickTime are tags of the stream."""
    film, coded, out = folder / "coded.m2v", folder / "coded.tvl", folder / "again.mov"
    ffmpeg("-i", folder / "plain.m2v", "-c:v", "mpeg2video", "-timecode", "01:02:03:04", film)
    run("encode", film, coded, *EXACT)
    check(entries_of(coded).get("timecode") == "01:02:03:04", f"a time code: {entries_of(coded)}")
    run("encode", folder / "plain.m2v", coded, *EXACT)
    check("timecode" not in entries_of(coded), "that of an encoder, 0")
    packet = "<?xpacket begin=''?><x:xmpmeta/>"
    ffmpeg("-i", folder / "plain.m2v", "-c:v", "mpeg4", "-metadata", f"xmp={packet}", out)
    run("encode", out, coded, *EXACT)
    check(entries_of(coded).get("xmp") == packet, f"XMP: {entries_of(coded)}")
    said = run("decode", coded, out, "-y", "--codec", "mpeg4")
    check(packet.encode() in out.read_bytes() and "xmp" not in said, f"XMP, decoded: {said}")
    check("no place for xmp" in run("decode", coded, folder / "again.mp4", "-y", "--codec", "mpeg4"), "XMP to .mp4")
    long, wrong = folder / "long.mkv", folder / "wrong.mkv"
    ffmpeg("-i", folder / "plain.m2v", "-c:v", "mpeg4", "-metadata", "words=" + "a" * 65537, "-metadata", "title=A film", long)
    wrong.write_bytes(long.read_bytes().replace(b"A film", b"\xc4 film"))
    said = run("encode", wrong, coded, *EXACT)
    check("no place for: " in said and "title (no UTF-8)" in said and "words (65537 bytes)" in said, f"tags: {said}")


def box(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I4s", 8 + len(content), name) + content


def test_descriptions(folder: Path) -> None:
    """Boxes of MP4 in the description of its pictures that FFmpeg passes over are named."""
    aperture = lambda width: box(b"clap", struct.pack(">8I", width, 1, 48, 1, 0, 1, 0, 1))
    cases = {"plain": (b"", ""), "eyes": (box(b"lhvC", bytes(8)) + box(b"vexu", b""), "the second eye (MV-HEVC), how eyes see the picture (vexu)"),
             "field": (box(b"hfov", bytes(4)), "the horizontal field of view"), "whole": (aperture(64), ""),
             "cropped": (aperture(60), "cropping")}  # fmt: skip
    film = folder / "described.mp4"
    ffmpeg("-i", folder / "plain.m2v", "-c:v", "mpeg4", film)
    plain = film.read_bytes()
    for name, (boxes, told) in cases.items():
        film.write_bytes(with_boxes(plain, boxes))
        said = run("encode", film, folder / "described.tvl", *EXACT)
        check((f"left out: {told}\n" in said) if told else "left out" not in said, f"{name}: {said}")


def test_script(folder: Path) -> None:
    """Data of a script in FLV, which FFmpeg takes for text, are named, and no subtitles."""
    film, cued = folder / "plain.flv", folder / "cued.flv"
    ffmpeg("-i", folder / "plain.m2v", "-c:v", "flv1", film)
    data, at = film.read_bytes(), 13
    for _ in range(3):  # behind what describes the film, and two pictures
        at += 15 + int.from_bytes(data[at + 1 : at + 4], "big")
    text = lambda name: struct.pack(">H", len(name)) + name
    event = b"\2" + text(b"onCuePoint") + b"\3" + text(b"name") + b"\2" + text(b"one") + b"\0\0\x09"
    head = bytes([18]) + len(event).to_bytes(3, "big") + (40).to_bytes(3, "big") + bytes(4)
    cued.write_bytes(data[:at] + head + event + struct.pack(">I", 11 + len(event)) + data[at:])
    said = run("encode", cued, folder / "cued.mkv", *EXACT)
    tracks = json.loads(run("info", folder / "cued.mkv", "--json", "--quiet"))["other_tracks"]
    check("data of a script (onCuePoint, track 1)" in said and not tracks, f"data of a script: {said}, {tracks}")


def test_messages(folder: Path) -> None:
    """What FFmpeg does not know is named by its letters, and what it lacks is no damage."""
    unknown = folder / "unknown.avi"
    ffmpeg("-i", folder / "plain.m2v", "-c:v", "mjpeg", unknown)
    unknown.write_bytes(unknown.read_bytes().replace(b"MJPG", b"XYZ1"))
    said = run("encode", unknown, folder / "unknown.tvl", "-y", code=5)
    check("no decoder for pictures coded as 'XYZ1'" in said, f"letters of a codec: {said}")
    if not knows("-encoders", "libx264"):
        return
    groups = folder / "groups.h264"
    ffmpeg("-i", folder / "plain.m2v", "-c:v", "libx264", "-profile:v", "baseline", groups)
    units = groups.read_bytes().replace(b"\0\0\0\1", b"\0\0\1").split(b"\0\0\1")[1:]
    # A picture parameter set with two slice groups (ITU-T H.264, 7.3.2.2).
    units = [u if u[0] & 31 != 8 else bytes([u[0], 0b11000101, 0x80]) for u in units]
    groups.write_bytes(b"".join(b"\0\0\0\1" + u for u in units))
    said = run("encode", groups, folder / "groups.tvl", "-y", code=5)
    check("FMO is not implemented" in said, f"slice groups: {said}")


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


def with_boxes(film: bytes, boxes: bytes) -> bytes:
    """MP4 with more boxes in the description of its pictures, and longer boxes around."""
    at = film.index(b"mp4v", film.index(b"stsd"))  # the entry of the only description
    end = at - 4 + struct.unpack_from(">I", film, at - 4)[0]
    data = bytearray(film[:end] + boxes + film[end:])
    for name in (b"moov", b"trak", b"mdia", b"minf", b"stbl", b"stsd", b"mp4v"):
        size = data.index(name, data.index(b"stsd") if name == b"mp4v" else 0) - 4
        struct.pack_into(">I", data, size, struct.unpack_from(">I", data, size)[0] + len(boxes))
    check(film.index(b"mdat") < film.index(b"moov"), "the samples stand before the description")
    return bytes(data)


def with_vision(film: bytes) -> bytes:
    """MP4 whose track of pictures is configured for Dolby Vision."""
    return with_boxes(film, box(b"dvvC", bytes([1, 0, 8 << 1, 1 << 3 | 1, 4 << 4]) + bytes(19)))


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
        judged = program.process("ffmpeg", "-v", "error", "-xerror", "-nostdin", "-i", broken, "-f", "null", "-")
        code = 4 if judged.returncode else 0
        codes.add(code)
        said = run("encode", broken, coded, *EXACT, code=code)
        check(code == 4 or "warning: " in said and "FFmpeg complained" in said, f"{what}: {said}")
    check(codes == {0, 4}, f"all damage is judged alike: {codes}")


def shown(film: Path) -> list:
    """When the pictures of the second track are shown, in milliseconds since the first, in the order of decoding."""
    told = program.process("ffprobe", "-v", "error", "-select_streams", "v:1", "-show_entries", "packet=pts_time,size", "-of", "csv", film,
                           check=True).stdout.decode()  # fmt: skip
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


def test_sound_of_windows(folder: Path) -> None:
    """Matroska holds sound that it has no name of its own for by its number in WAV files."""
    for encoder, rate, suffix in (("wmav2", 44100, "wmv"), ("adpcm_ms", 22050, "avi"), ("adpcm_swf", 22050, "flv")):
        film, coded, back = folder / f"sound.{suffix}", folder / "sound.mkv", folder / "back.mkv"
        ffmpeg("-f", "lavfi", "-i", "testsrc2=size=64x48:rate=25:duration=1", "-f", "lavfi", "-i", "sine=duration=1", "-c:v", "flv1",
               "-c:a", encoder, "-ar", rate, film)  # fmt: skip
        samples = [ffmpeg("-i", film, "-map", "0:a", "-f", "s16le", "-").stdout]
        said = run("encode", film, coded, *EXACT, "--verify")
        held = encoder != "adpcm_swf"  # whose header FFmpeg does not write
        check(("matroska cannot hold it" in said) != held and ("lacks" in said) != held, f"{encoder}: {said}")
        if not held:
            continue
        run("decode", coded, back, "-y")
        samples += [ffmpeg("-i", name, "-map", "0:a", "-f", "s16le", "-").stdout for name in (coded, back)]
        check(len(samples[0]) > 30000 and all(sound == samples[0] for sound in samples),
              f"{encoder}: other samples, {[len(sound) for sound in samples]} bytes")  # fmt: skip


def test_codecs_with_rates(folder: Path) -> None:
    """MPEG-2 has a few frame rates and MPEG-4 a coarse clock: films of a transport stream, whose clock is finer, fit."""
    for frames, rate, said_of in ((10, "25", ""), (10, "30000/1001", ""), (10, "17", "has no frame rate of 17/1")):
        film, coded = folder / "clock.ts", folder / "clock.tvl"
        ffmpeg("-f", "lavfi", "-i", f"testsrc2=size=64x48:rate={rate}", "-frames:v", frames, "-c:v", "libx264", film)
        run("encode", film, coded, *EXACT)
        for codec in ("mpeg2video", "mpeg4"):
            back = folder / f"clock_{codec}.mkv"
            refused = said_of if codec == "mpeg2video" else ""
            said = run("decode", coded, back, "-y", "--codec", codec, code=5 if refused else 0)
            check(refused in said and "earlier or later" not in said, f"{codec}, {rate} frames/s: {said}")
            if not refused:
                found = json.loads(program.process("ffprobe", "-v", "error", "-of", "json", "-count_packets", "-show_streams", back,
                                                   check=True).stdout)["streams"][0]  # fmt: skip
                times = (found["nb_read_packets"], found["r_frame_rate"])
                check(times == (str(frames), rate if "/" in rate else f"{rate}/1"), f"{codec}, {rate} frames/s: {times}")
    ffmpeg("-f", "lavfi", "-i", "testsrc2=size=64x48:rate=25", "-frames:v", 20, "-vf", "setpts='if(lt(N,10),N,N+5)/25/TB'",
           "-fps_mode", "vfr", "-c:v", "libx264", "-bf", "0", film)  # fmt: skip
    run("encode", film, coded, *EXACT)
    said = run("decode", coded, folder / "moved.mkv", "-y", "--codec", "mpeg2video")
    check("mpeg2video has no times of frames" in said, f"MPEG-2 of a film with a gap: {said}")


def main() -> int:
    program.path = os.path.abspath(sys.argv[1])
    if not program.has_ffmpeg():
        return 77
    with tempfile.TemporaryDirectory() as name:
        test_alpha(Path(name))
        test_named(Path(name))
        test_sound_of_windows(Path(name))
        if knows("-encoders", "libx264"):
            test_codecs_with_rates(Path(name))
            test_time_codes(Path(name))
        test_encrypted(Path(name))
        test_times_in_disorder(Path(name))
        test_long_box(Path(name))
        test_later_pictures(Path(name))
        test_kept_tags(Path(name))
        test_descriptions(Path(name))
        test_script(Path(name))
        test_messages(Path(name))
        test_edits(Path(name))
        test_cover(Path(name))
        test_damaged_header(Path(name))
        test_second_picture(Path(name))
    print(f"{len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
