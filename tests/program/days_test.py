#!/usr/bin/env python3
"""Working days of users, as README describes them, each from an empty folder to the result that counts.

    tests/program/days_test.py path/to/trivelet [path/to/libtrivelet.so.1]

An archivist codes a folder of mixed files, loses the originals and gets them back. An editor makes a mezzanine with
sound, cuts it, takes a proxy out of it and delivers. A scientist puts a DICOM study into Zarr, reads a region and gets
the files back. The fourth day, a C program from the Debian package, is tests/program/clean_root_test.sh. Parts that
need ffmpeg or Zarr are skipped without them.
"""

import hashlib
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import program  # noqa: E402
from program import check, failures, ffmpeg, run  # noqa: E402


def files_in(folder: Path) -> dict[str, str]:
    """The digests of all files, by their names below the folder."""
    return {
        str(p.relative_to(folder)): hashlib.md5(p.read_bytes()).hexdigest() for p in folder.rglob("*") if p.is_file()
    }


def decoded(file: Path, *options: str) -> bytes:
    """What FFmpeg finds in a file: -map 0:v or 0:a."""
    return ffmpeg("-i", file, *options, "-f", "md5", "-").stdout


def dicom_element(group: int, number: int, vr: str, value) -> bytes:
    value = value.encode() if isinstance(value, str) else value
    value += (b"\0" if vr == "UI" else b" ") * (len(value) % 2)
    head = struct.pack("<HH2s", group, number, vr.encode())
    return head + (struct.pack("<HI", 0, len(value)) if vr == "OW" else struct.pack("<H", len(value))) + value


def make_study(folder: Path, slices: int = 6, size: int = 32) -> None:
    """A series of CT, whose voxel at x, y, z has the value 100 z + 3 x + y."""
    folder.mkdir(parents=True)
    short = lambda number, value: dicom_element(0x28, number, "US", struct.pack("<H", value))  # noqa: E731
    for z in range(slices):
        pixels = struct.pack(f"<{size * size}H", *(100 * z + 3 * x + y for y in range(size) for x in range(size)))
        data = b"".join([
            bytes(128), b"DICM", dicom_element(2, 0x10, "UI", "1.2.840.10008.1.2.1"),
            dicom_element(8, 0x18, "UI", f"1.2.3.{z}"), dicom_element(0x10, 0x10, "PN", "Doe^Jane"),
            dicom_element(0x20, 0x0E, "UI", "1.2.3"), dicom_element(0x20, 0x13, "IS", str(z)),
            dicom_element(0x20, 0x32, "DS", f"0\\0\\{2 * z}"), dicom_element(0x20, 0x37, "DS", "1\\0\\0\\0\\1\\0"),
            short(2, 1), short(0x10, size), short(0x11, size), dicom_element(0x28, 0x30, "DS", "1\\1"),
            short(0x100, 16), short(0x101, 16), short(0x103, 0), dicom_element(0x7FE0, 0x10, "OW", pixels)])
        (folder / f"IM{z:04d}").write_bytes(data)


def make_film(path: Path, seconds: int = 2) -> None:
    ffmpeg("-f", "lavfi", "-i", f"testsrc2=size=160x96:rate=25:duration={seconds}", "-f", "lavfi", "-i",
           f"sine=frequency=440:duration={seconds}", "-c:v", "libx264", "-preset", "ultrafast", "-c:a", "aac", path)


def day_of_the_archivist(folder: Path, has_ffmpeg: bool) -> None:
    attic = folder / "attic"
    make_study(attic / "study")
    make_study(attic / "study" / "later", 4)  # a series in a folder of another one
    (attic / "study" / "notes.txt").write_text("words")
    header = b"NRRD0004\ntype: short\ndimension: 3\nsizes: 8 8 4\nencoding: raw\nendian: little\n\n"
    (attic / "brain.nrrd").write_bytes(header + struct.pack("<256h", *range(256)))
    (attic / "reels").mkdir()
    clip = b"YUV4MPEG2 W32 H16 F25:1 C420jpeg\n" + b"".join(b"FRAME\n" + bytes([t * 9]) * 768 for t in range(5))
    (attic / "reels" / "clip.y4m").write_bytes(clip)
    still = b"P6\n12 8\n255\n" + bytes(i * 7 % 256 for i in range(288))
    (attic / "still.ppm").write_bytes(still)
    film = attic / "reels" / "film.mp4"
    if has_ffmpeg:
        make_film(film)
    before = files_in(attic)
    # The samples of the pictures, and the packets of the sound.
    tracks = {t: decoded(film, *t.split()) for t in ("-map 0:v", "-map 0:a -c copy")} if has_ffmpeg else {}

    coded, back = folder / "coded", folder / "back"
    report = folder / "coded.json"
    run("encode", attic, "--recursive", "--out-dir", coded, "--lossless", "--verify", "--report", report)
    entries = {Path(f["input"]).name: f for f in json.loads(report.read_text())["files"]}
    check({f["state"] for f in entries.values()} == {"done"}, f"all files are coded: {entries}")
    check(all(f["verified"] for f in entries.values()), "all files are compared")
    check(entries["brain.nrrd"]["input_md5"] == before["brain.nrrd"], "digests of the originals are in the report")
    check(len(entries["study"]["input_files"]) == 7, "those of a folder, too")
    check(len(entries["later"]["input_files"]) == 4, "those of a folder in a study")
    check(any("notes.txt: is no DICOM file" in said for said in entries["study"]["warnings"]), f"what is left: {entries['study']}")
    shutil.rmtree(attic)
    run("verify", coded / "study.tvl")

    run("decode", coded, "--recursive", "--out-dir", back)
    after = files_in(back)
    for name in before:
        if not name.startswith("reels/") and name not in ("still.ppm", "study/notes.txt"):
            check(after.get(name) == before[name], f"{name} is the same file again")
    check((back / "reels" / "clip.y4m").read_bytes().endswith(clip[-774:]), "and so are the pictures of the clip")
    check((back / "still.ppm").read_bytes() == still, "and a single picture")
    for option, digest in tracks.items():
        check(decoded(back / "reels" / "film.mkv", *option.split()) == digest, f"the film's {option}")
    # A second run does nothing.
    said = run("encode", back, "--recursive", "--out-dir", coded, "--lossless", "--skip-existing")
    check("failed" in said and "0 failed" in said, f"what was decoded is coded again: {said}")


def day_of_the_editor(folder: Path) -> None:
    camera, mezzanine = folder / "camera.mp4", folder / "mezzanine.mkv"
    make_film(camera, 3)
    run("encode", camera, mezzanine, "--for", "mezzanine", "--verify")
    info = json.loads(run("info", mezzanine, "--json"))
    check(info["coding"]["profile"] == "fast" and info["coding"]["gop_frames"] <= 8, f"a mezzanine: {info['coding']}")
    compared = json.loads(run("compare", camera, mezzanine, "--json"))
    check(compared["psnr"] > 45, f"of high quality: {compared['psnr']} dB")
    # Any frame, and a cut without coding again.
    run("decode", mezzanine, folder / "frame.png", "--frames", "70:71", "--pix-fmt", "auto")
    run("extract", mezzanine, folder / "first.mkv", "--frames", ":24")
    run("extract", mezzanine, folder / "last.mkv", "--frames", "48:")
    run("join", folder / "first.mkv", folder / "last.mkv", "-o", folder / "cut.mkv")
    cut = json.loads(run("info", folder / "cut.mkv", "--json"))
    check(cut["video"]["frames"] == 51, f"24 and 27 frames: {cut['video']['frames']}")
    # A proxy is a part of the same file; the film is delivered in H.264.
    run("extract", folder / "cut.mkv", folder / "proxy.mkv", "--reduce", "1")
    check((folder / "proxy.mkv").stat().st_size < 0.6 * (folder / "cut.mkv").stat().st_size, "a smaller proxy")
    run("decode", folder / "cut.mkv", folder / "cut.mp4")
    probed = ffmpeg("-i", folder / "cut.mp4", "-f", "null", "-").stderr.decode()
    check("Video: h264" in probed and "Audio: aac" in probed, "delivered with sound")


SCIENCE = """
import sys
import numpy as np, zarr
from trivelet.zarr import TriveletCodec
import trivelet
stream, folder = sys.argv[1:]
volume = trivelet.decode(stream)
assert volume.shape == (6, 32, 32) and volume[2, 5, 7] == 226, (volume.shape, volume[2, 5, 7])
z = zarr.create_array(folder, shape=volume.shape, chunks=(4, 16, 16), dtype=volume.dtype, compressors=None,
                      serializer=TriveletCodec(mode="lossless"))
z[:] = volume
again = zarr.open_array(folder, mode="r")
assert (again[3:5, 10:20, 4:6] == volume[3:5, 10:20, 4:6]).all()
assert (again[:] == volume).all()
"""


def day_of_the_scientist(folder: Path, library: str) -> None:
    study, stream = folder / "study", folder / "study.tvl"
    make_study(study)
    run("encode", study, stream)
    box = folder / "box.nii"
    run("decode", stream, box, "--region", "4,4,1,8,8,2")
    check(struct.unpack("<H", box.read_bytes()[352:354])[0] == 116, "the first voxel of a region")
    if library:
        environment = dict(os.environ, TRIVELET_LIBRARY=library,
                           PYTHONPATH=str(Path(__file__).resolve().parents[2] / "python"))
        result = subprocess.run([sys.executable, "-c", SCIENCE, stream, folder / "study.zarr"], env=environment,
                                capture_output=True, text=True)
        if "No module named" in result.stderr:
            print("skipped: no Zarr 3")
        else:
            check(result.returncode == 0, f"into Zarr: {result.stderr[-600:]}")
    run("decode", stream, folder / "back")
    check(files_in(folder / "back") == files_in(study), "the study comes back byte for byte")


def main() -> int:
    program.path = sys.argv[1]
    library = sys.argv[2] if len(sys.argv) > 2 and Path(sys.argv[2]).exists() else ""
    has_ffmpeg = program.has_ffmpeg()
    with tempfile.TemporaryDirectory() as name:
        for day in ("archive", "editing", "study"):
            (Path(name) / day).mkdir()
        day_of_the_archivist(Path(name) / "archive", has_ffmpeg)
        if has_ffmpeg:
            day_of_the_editor(Path(name) / "editing")
        day_of_the_scientist(Path(name) / "study", library)
    print(f"{len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
