#!/usr/bin/env python3
"""Every field that ffprobe reports of a film survives .mkv and .tvl, or a warning names it.

    tests/program/film_fields_test.py path/to/trivelet

Films of several containers, with flags, languages, titles, dates, chapters, attachments and colours; a sample of the pairs
of containers, all with TRIVELET_FULL=1. Skipped without ffmpeg.
"""

import json
import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import program  # noqa: E402
from program import check, failures, ffmpeg, run  # noqa: E402

FULL = os.environ.get("TRIVELET_FULL", "0") not in ("", "0")
FAST = ["--preset", "fast", "-q", "40", "--gop", "10", "-y"]
DATE = "2020-01-02T03:04:05.000000Z"

# What ffprobe says of a file and of a codec, and not of the film: another codec and container have other ones.
OF_FILE = {"filename", "size", "bit_rate", "probe_score", "format_name", "format_long_name", "nb_streams", "nb_programs"}
OF_CODING = {
    "codec_name", "codec_long_name", "profile", "level", "codec_tag", "codec_tag_string", "coded_width", "coded_height", "refs",
    "has_b_frames", "is_avc", "nal_length_size", "extradata_size", "closed_captions", "film_grain", "id", "time_base", "start_pts",
    "duration_ts", "nb_frames", "sample_fmt", "bit_rate", "max_bit_rate", "bits_per_raw_sample", "quarter_sample", "divx_packed",
}  # fmt: skip
# ffprobe cannot know these of a stream of ours in Matroska. `info` does, and what is decoded has them again.
OF_DECODER = {"pix_fmt", "field_order"}
# Tags that muxers write of themselves.
OF_MUXER = {"encoder", "duration", "handler_name", "vendor_id", "major_brand", "minor_version", "compatible_brands"}
# To a millisecond of Matroska's, and a packet of sound, of which MP4 hides what is before the beginning and behind the end.
NEARLY = {"start_time": 0.0251, "duration": 0.0261, "start": 0.0011, "end": 0.0011}


def fields(file: Path) -> dict:
    """Where, what: value."""
    command = ["ffprobe", "-v", "error", "-show_format", "-show_streams", "-show_chapters", "-of", "json", str(file)]
    told = json.loads(program.process(*command, check=True).stdout)
    found = {}

    def add(where: str, what: dict, ignored: set) -> None:
        for name, value in what.items():
            if isinstance(value, dict):
                kind = {"disposition": "flag ", "tags": "tag "}[name]
                add(where, {kind + k.lower(): v for k, v in value.items()}, {"tag " + n for n in OF_MUXER})
            elif name not in ignored and not isinstance(value, list):
                found[where, name] = value

    add("film", told["format"], OF_FILE)
    # MP4's track of chapters is none of the film's.
    streams = [s for s in told["streams"] if (s["codec_type"], s.get("codec_tag_string")) != ("data", "text")]
    for i, stream in enumerate(streams):
        # How long a track lasts Matroska says of the film; when subtitles begin MP4 does not say.
        add(f"track {i}", stream, OF_CODING | {"duration"} | ({"start_time"} if stream["codec_type"] != "audio" else set()))
        if ("film", "tag creation_time") in found:
            found.pop((f"track {i}", "tag creation_time"), None)
    # A container shifts chapters with the pictures.
    first = next(float(s["start_time"]) for s in streams if s["codec_type"] == "video")
    for i, chapter in enumerate(told["chapters"]):
        begin, end = (float(chapter[name]) - first for name in ("start_time", "end_time"))
        add(f"chapter {i + 1}", {"start": begin, "end": end, "tags": chapter["tags"]}, set())
    return found


def compare(what: str, wanted: dict, found: dict, said: str, ignored=frozenset()) -> None:
    for (where, name), value in wanted.items():
        if name in ignored:
            continue
        got = found.get((where, name))
        if name in NEARLY and value != "N/A":
            same = got is not None and abs(float(got) - float(value)) <= NEARLY[name]
        elif name.startswith("flag "):
            same = got == value or value == 0  # MP4 cannot say that a first track is not the default
        else:
            same = got == value or value in ("N/A", "und", "0/0")
        if same:
            continue
        # A warning names what is lost and where it was.
        key = name.split(" ", 1)[1] if " " in name else name
        named = key in said and (where == "film" or where in said)
        check(named or f"{where}): " in said,  # the track as a whole
              f"{what}: {where}, {name}: {value} became {got}; it said: {said}")


def make(folder: Path, container: str) -> Path:
    (folder / "meta").write_text(
        f";FFMETADATA1\ntitle=A film\nartist=Someone\ncomment=Words; more = words\ncreation_time={DATE}\n"
        "[CHAPTER]\nTIMEBASE=1/1000\nSTART=0\nEND=400\ntitle=One\n[CHAPTER]\nTIMEBASE=1/1000\nSTART=400\nEND=800\ntitle=Zwei\n")
    (folder / "s.srt").write_text("1\n00:00:00,100 --> 00:00:00,500\nline\n")
    (folder / "note.txt").write_text("attached")
    film = folder / f"film.{container}"
    subtitles = {"mkv": "srt", "mp4": "mov_text", "mov": "mov_text"}.get(container)
    flags = ["-disposition:v:0", "forced+original" if container == "mkv" else "default", "-disposition:a:0", "default+dub",
             "-disposition:a:1", "hearing_impaired"]  # fmt: skip
    ffmpeg("-f", "lavfi", "-i", "testsrc2=size=98x66:rate=25:duration=0.8", "-f", "lavfi", "-i", "sine=duration=0.8:sample_rate=48000",
           "-i", folder / "s.srt", "-i", folder / "meta", "-map", "0:v", "-map", "1:a", "-map", "1:a",
           *(["-map", "2:s", "-c:s", subtitles, "-metadata:s:s:0", "language=fre"] if subtitles else []),
           *(["-attach", folder / "note.txt", "-metadata:s:t", "mimetype=text/plain"] if container == "mkv" else []),
           "-map_metadata", 3, "-map_chapters", 3, "-pix_fmt", "yuv420p", "-c:v", "mpeg4", "-q:v", 2, "-bf", 0, "-c:a",
           "mp2" if container in ("avi", "ts") else "aac", *flags, "-aspect", "16:9", "-color_primaries", "bt470bg", "-color_trc",
           "smpte170m", "-colorspace", "bt470bg", "-color_range", "tv", "-chroma_sample_location", "left", "-metadata:s:v:0",
           "language=eng", "-metadata:s:v:0", "title=The picture", "-metadata:s:v:0", "shot_by=A camera", "-metadata:s:a:0",
           "language=ger", "-metadata:s:a:0", "title=Ton", "-metadata:s:a:1", "language=eng", film)  # fmt: skip
    return film


def test_container(folder: Path, container: str, outputs) -> None:
    film = make(folder, container)
    wanted = fields(film)
    if container == "ts":  # which begins late, and Matroska counts from 0
        wanted.pop(("film", "duration"))
    mkv, tvl = folder / "film_t.mkv", folder / "film.tvl"
    said = run("encode", film, mkv, *FAST)
    compare(f"{container} to .mkv", wanted, fields(mkv), said, OF_DECODER)
    check("flag default" not in said, f"{container} to .mkv: {said}")
    stream_said = run("encode", film, tvl, *FAST)
    of_mkv, lacking = fields(mkv), {}
    for suffix in outputs:
        out = folder / f"out.{suffix}"
        codec = ["--codec", "mpeg4"] if suffix in ("mp4", "mov") else []
        said = run("decode", mkv, out, "-y", *codec)
        wanted_here = {**wanted, **{k: v for k, v in of_mkv.items() if k in wanted and k[1] not in OF_DECODER}}
        compare(f"{container}, .mkv to .{suffix}", wanted_here, fields(out), said, OF_DECODER - {"pix_fmt"})
        said = run("decode", tvl, out, "-y", *codec)
        video = {k: v for k, v in wanted.items() if k[0] in ("film", "track 0") or k[0].startswith("chapter")}
        # Without sound nothing begins before the pictures do.
        lacking = {("film", "start_time"), ("film", "duration"), ("track 0", "start_time")}
        compare(f"{container}, .tvl to .{suffix}", {k: v for k, v in video.items() if k not in lacking}, fields(out),
                said + stream_said, OF_DECODER - {"pix_fmt"})  # fmt: skip
    told = json.loads(run("info", tvl, "--json", "--quiet"))
    check(told["warnings"] == [], f"{container}: warnings of a whole stream: {told['warnings']}")


def test_programs(folder: Path) -> None:
    """A transport stream's names of its programs: that of the picture is kept, others are named."""
    film = folder / "programs.ts"
    ffmpeg("-f", "lavfi", "-i", "testsrc2=size=98x66:rate=25:duration=0.4", "-f", "lavfi", "-i", "testsrc=size=64x48:rate=25:duration=0.4",
           "-map", "0:v", "-map", "1:v", "-c:v", "mpeg2video", "-q:v", 2, "-program", "title=First:st=0",
           "-program", "title=Second:st=1", film)  # fmt: skip
    stream, again, mp4 = folder / "programs.tvl", folder / "again.ts", folder / "programs.mp4"
    said = run("encode", film, stream, *FAST)
    check("service_name 'Second' of program" in said and "'First'" not in said, f"programs, encode: {said}")
    run("decode", stream, again, "-y", "--codec", "libx264")
    told = program.process("ffprobe", "-v", "error", "-show_programs", again, check=True).stdout.decode()
    check("TAG:service_name=First\n" in told, f"programs, decoded: {told}")
    said = run("decode", stream, mp4, "-y", "--codec", "libx264")
    check("no place for service_name 'First'" in said, f"programs, to .mp4: {said}")


def test_dates(folder: Path) -> None:
    """A date of the track that is not the film's is kept, and where a container has no place for it it is named."""
    film, stream, out = folder / "dates.mp4", folder / "dates.tvl", folder / "dates.mkv"
    ffmpeg("-f", "lavfi", "-i", "testsrc2=size=98x66:rate=25:duration=0.1", "-c:v", "mpeg4", "-metadata", f"creation_time={DATE}", film)
    data = bytearray(film.read_bytes())
    at = data.index(b"mdhd") + 8
    data[at : at + 4] = (int.from_bytes(data[at : at + 4], "big") - 3600).to_bytes(4, "big")
    film.write_bytes(data)
    run("encode", film, stream, *FAST)
    entries = {e["key"]: e["value"] for e in json.loads(run("info", stream, "--json", "--quiet"))["metadata"]["entries"]}
    dates = {k: v for k, v in entries.items() if "creation_time" in k}
    check(dates == {"creation_time": DATE, "track_creation_time": DATE.replace("T03", "T02")}, f"dates: {dates}")
    said = run("decode", stream, out, "-y")
    check("no place for creation_time '2020-01-02T02:04:05" in said and "of track 0" in said, f"dates, to .mkv: {said}")
    at = data.index(b"mvhd") + 8  # a date of the track alone becomes that of the film
    data[at : at + 4] = bytes(4)
    film.write_bytes(data)
    run("encode", film, stream, *FAST)
    for said in (run("decode", stream, out, "-y"), run("encode", film, out, *FAST)):
        check("creation_time" not in said and fields(out)["film", "tag creation_time"] == DATE.replace("T03", "T02"),
              f"the date of a track: {said}, {fields(out)}")  # fmt: skip


def test_languages(folder: Path) -> None:
    """A tag in a language is there whichever of the language's two codes a container writes."""
    film, out = folder / "languages.nut", folder / "languages.mkv"
    ffmpeg("-f", "lavfi", "-i", "testsrc2=size=98x66:rate=25:duration=0.1", "-c:v", "ffv1", "-metadata", "artist-fra=Quelqu'un",
           "-metadata", "encoder-eng=5.1", film)  # fmt: skip
    said = run("encode", film, out, *FAST)
    check("no place" not in said and fields(out)["film", "tag artist-fre"] == "Quelqu'un", f"languages: {said}, {fields(out)}")


def test_spaces(folder: Path) -> None:
    """Matroska writes "vbr_peak" for "vbr peak", which is no loss."""
    film, out = folder / "spaces.nut", folder / "spaces.mkv"
    ffmpeg("-f", "lavfi", "-i", "testsrc2=size=98x66:rate=25:duration=0.1", "-c:v", "ffv1", "-metadata", "vbr peak=768000", film)
    said = run("encode", film, out, *FAST)
    check("no place" not in said and fields(out)["film", "tag vbr_peak"] == "768000", f"spaces: {said}, {fields(out)}")


def test_other_rate(folder: Path) -> None:
    """--fps keeps tags, in a stream and in Matroska, and names chapters and tracks, whose times do not fit."""
    film, chapters = folder / "rate.mkv", folder / "rate.txt"
    chapters.write_text(";FFMETADATA1\ntitle=A film\n[CHAPTER]\nTIMEBASE=1/1000\nSTART=0\nEND=100\ntitle=One\n")
    ffmpeg("-f", "lavfi", "-i", "testsrc2=size=98x66:rate=25:duration=0.2", "-f", "lavfi", "-i", "sine=duration=0.2", "-i", chapters,
           "-map", "0:v", "-map", "1:a", "-map_metadata", "2", "-c:v", "ffv1", "-c:a", "flac", film)  # fmt: skip
    for out in (folder / "rate.tvl", folder / "rate_coded.mkv"):
        said = run("encode", film, out, *FAST, "--fps", "50")
        told = json.loads(run("info", out, "--json", "--quiet"))["metadata"]
        tags = {e["key"]: e["value"] for e in told["entries"]}
        check(tags.get("title") == "A film" and not told["chapters"], f"--fps, {out.name}: {told}")
        check("left out: chapters, whose times" in said and "sound (flac" in said, f"--fps, {out.name}: {said}")


def test_one_track(folder: Path) -> None:
    """That the only track is the default, and that RGB has no matrix and full range, need no place in a container."""
    film, stream = folder / "one.mkv", folder / "one.tvl"
    for pixels in ("gbrp", "yuv420p"):
        ffmpeg("-f", "lavfi", "-i", "testsrc2=size=98x66:rate=25:duration=0.1", "-pix_fmt", pixels, "-color_range", "pc",
               "-c:v", "ffv1", "-disposition:v", "default", film)  # fmt: skip
        run("encode", film, stream, *FAST)
        for suffix in ("avi", "gif") if pixels == "gbrp" else ("avi",):
            said = run("decode", stream, folder / f"one.{suffix}", "-y", "--pix-fmt", "auto")
            check("flag default" not in said and "'gbr'" not in said, f"{pixels} to .{suffix}: {said}")
            check(("color_range 'pc'" in said) == (pixels == "yuv420p"), f"range of {pixels} to .{suffix}: {said}")


def main() -> int:
    program.path = os.path.abspath(sys.argv[1])
    if not program.has_ffmpeg():
        return 77
    containers = ("mkv", "mp4", "mov", "avi", "ts", "nut")
    with tempfile.TemporaryDirectory() as name:
        for i, container in enumerate(containers if FULL else containers[:2]):
            # FFmpeg's encoder of MPEG-4 does not take the clock of a transport stream.
            outputs = ("mkv", "nut") if container == "ts" else ("mkv", "mp4", "mov", "nut")
            test_container(Path(name), container, outputs if FULL else ("mkv", "mp4")[i:])
        test_dates(Path(name))
        test_languages(Path(name))
        test_spaces(Path(name))
        test_other_rate(Path(name))
        test_one_track(Path(name))
        if b" libx264 " in program.encoders():
            test_programs(Path(name))
    print(f"{len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
