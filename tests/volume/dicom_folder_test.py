#!/usr/bin/env python3
"""A folder of 1,000 DICOM files, with TRIVELET_FULL=1 of 5,000, of several series: the series are listed, and each is
coded, verified and decoded byte for byte with few open files. Where pydicom is, it makes an enhanced file with many
frames and one with colours and reads them again.

    dicom_folder_test.py TRIVELET
"""
import gzip
import json
import os
import resource
import struct
import subprocess
import sys
from pathlib import Path
import tempfile
import time

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import program  # noqa: E402
from program import check, run  # noqa: E402

program.path = sys.argv[1]
DESCRIPTORS = 64  # for the program
FULL = os.environ.get("TRIVELET_FULL", "0") not in ("", "0")
MANY = 5 if FULL else 1  # thousands of files


def element(group, number, vr, value):
    value = value.encode() if isinstance(value, str) else value
    value += (b"\0" if vr == "UI" else b" ") * (len(value) % 2)
    head = struct.pack("<HH2s", group, number, vr.encode())
    return head + (struct.pack("<HI", 0, len(value)) if vr == "OW" else struct.pack("<H", len(value))) + value


def dicom(series, number, description, instance, z, size, pixels, slope=None, uid=None, plane=True, spacing="1\\1", intercept=0):
    short = lambda group, e, value: element(group, e, "US", struct.pack("<H", value))
    return b"".join([
        bytes(128), b"DICM", element(2, 0x10, "UI", "1.2.840.10008.1.2.1"),
        element(8, 0x18, "UI", uid or f"{series}.{instance}"), element(8, 0x103E, "LO", description),
        element(0x20, 0x0E, "UI", series), element(0x20, 0x11, "IS", str(number)), element(0x20, 0x13, "IS", str(instance)),
        element(0x20, 0x32, "DS", f"0\\0\\{z}"), *([element(0x20, 0x37, "DS", "1\\0\\0\\0\\1\\0")] if plane else []),
        short(0x28, 2, 1), short(0x28, 0x10, size), short(0x28, 0x11, size), element(0x28, 0x30, "DS", spacing),
        short(0x28, 0x100, 16), short(0x28, 0x103, 0),
        *([element(0x28, 0x1052, "DS", str(intercept)), element(0x28, 0x1053, "DS", str(slope))] if slope else []),
        element(0x7FE0, 0x10, "OW", pixels)])


# UID, number, description, side of a picture, places, points in time
SERIES = [("1.2.826.0.1.1", 2, "T1", 12, 340 * MANY, 1), ("1.2.826.0.1.2", 3, "T2 AX", 10, 260 * MANY, 1),
          ("1.2.826.0.1.3", 4, "BOLD", 8, 20, 18 * MANY), ("1.2.826.0.1.10", 5, "LOC", 16, 40 * MANY, 1)]


def make_folder(folder):
    """File name -> bytes, the series mixed among each other."""
    content = {}
    for uid, number, description, size, places, times in SERIES:
        names = {}
        for t in range(times):
            for z in range(places):
                ramp = [(x * (7 + z % 5) + y * 13 + 3 * t + (x * y * z) % 4) % 4096 for y in range(size) for x in range(size)]
                instance = t * places + z + 1
                names[f"IM{instance * 37 % 10007:05}_{number}"] = dicom(
                    uid, number, description, instance, 0.5 * z, size, struct.pack(f"<{size * size}H", *ramp))
        content[uid] = names
        for name, data in names.items():
            with open(os.path.join(folder, name), "wb") as f:
                f.write(data)
    return content


def few(*arguments, code=0):
    """The program with few descriptors."""
    r = subprocess.run([program.path, *map(str, arguments)], capture_output=True, text=True,
                       preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS)))
    check(r.returncode == code, f"{' '.join(map(str, arguments))}: exit code {r.returncode}: {r.stderr[:2000]}")
    return r.stderr + r.stdout


def test_thousands_of_files(folder):
    many, coded = os.path.join(folder, "many"), os.path.join(folder, "many.tvl")
    os.mkdir(many)
    content = make_folder(many)
    check(sum(map(len, content.values())) == 1000 * MANY, f"{MANY},000 files were to be made")
    open(os.path.join(many, "readme.txt"), "w").write("no DICOM")

    # Which there are is said, whoever asks.
    for command in (("encode", many, coded), ("info", many), ("view", many, "-o", os.path.join(folder, "v.pgm"))):
        said = few(*command, code=2)
        for uid, number, description, _, places, times in SERIES:
            check(f"number {number}, {places * times} slices, '{description}', UID {uid}\n" in said + "\n",
                  f"{command[0]}: {description} is not told: {said}")
        check("--series" in said, f"{command[0]} does not say what to do: {said}")
    check("hold no series '9'" in few("encode", many, coded, "--series", "9", code=2), "a number that no series has")
    check(not os.path.exists(coded), "the output of a refused encode")

    for (uid, number, _, size, places, times), chosen in zip(SERIES, ("2", "1.2.826.0.1.2", "4", "1.2.826.0.1.10")):
        few("encode", many, coded, "-y", "--series", chosen, "--preset", "fast" if number == 5 else "medium")
        check("identical" in few("verify", coded, "--against", many, "--series", chosen), f"{chosen}: verify")
        check("identical" in few("compare", many, coded, "--series", chosen), f"{chosen}: compare")
        said = few("info", coded)
        check(f"{size}x{size}x{places}" + (f"x{times}" if times > 1 else "") in said, f"{chosen}: {said}")
        again = os.path.join(folder, "again" + chosen)
        few("decode", coded, again)
        found = {name: open(os.path.join(again, name), "rb").read() for name in os.listdir(again)}
        check(found == content[uid], f"{chosen}: other files came back")
    few("verify", coded, "--against", many, code=2)
    few("verify", coded, "--against", many, "--series", "2", code=6)
    run("verify", coded, "--series", "2", code=2)
    run("info", coded, "--series", "2", code=2)
    y4m = os.path.join(folder, "v.y4m")
    open(y4m, "wb").write(b"YUV4MPEG2 W2 H2 F25:1 Cmono\nFRAME\n1234")
    run("encode", y4m, coded, "-y", "--series", "2", code=2)


def test_unread_volumes(folder):
    for name in ("a.mgz", "a.MGH", "a.mgh.gz", "a.mnc", "a.vti"):
        path = os.path.join(folder, name)
        with open(path, "wb") as f:
            f.write(gzip.compress(bytes(300)) if name.endswith("z") else b"\0\0\0\1" + bytes(300))
        said = run("encode", path, path + ".tvl", code=5)
        check("which is not read; convert it first" in said, f"{name}: {said}")


def test_own_slopes(folder):
    """Where every slice has its own slope no other format gets one: it would be wrong for all slices but one."""
    for name, slopes in (("own", (0.25, 2.5, 40)), ("same", (0.25, 0.25, 0.25))):
        slices, coded, image = (os.path.join(folder, name + end) for end in ("", ".tvl", ".nii"))
        os.mkdir(slices)
        pixels = struct.pack("<64H", *range(64))
        files = [dicom("1.2.826.0.1.7", 1, "PET", z + 1, z, 8, pixels, slope) for z, slope in enumerate(slopes)]
        for z, data in enumerate(files):
            with open(os.path.join(slices, f"{z}.dcm"), "wb") as f:
                f.write(data)
        said = run("encode", slices, coded)
        check(("the stored values without slope and intercept" in said) == (name == "own"), f"{name} slopes: {said}")
        said = run("decode", coded, image, "-y")
        check(("spacing and scale" in said, "the stored values without slope and intercept" in said) == (name == "same", name == "own"),
              f"{name} slopes, decoded: {said}")
        header = open(image, "rb").read(352)
        check(struct.unpack_from("<2f", header, 112) in (((1.0, 0.0), (0.0, 0.0)) if name == "own" else ((0.25, 0.0),)),
              f"{name} slopes: {struct.unpack_from('<2f', header, 112)} in NIfTI")
        again = os.path.join(folder, name + "_again")
        run("decode", coded, again)
        check([open(os.path.join(again, f"{z}.dcm"), "rb").read() for z in range(3)] == files, f"{name} slopes: the files")
        # A header without a place for it does not keep it, and one remark says so.
        said = run("decode", coded, os.path.join(folder, name + ".nrrd"))
        check("it keeps position, spacing from" in said, f"{name} slopes in NRRD: {said}")
        check(("no place for the scale" in said) == (name == "same"), f"{name} slopes in NRRD: {said}")
        said = run("decode", coded, os.path.join(folder, name + ".raw"))
        check("has a new header" not in said and "stored values alone; 8x8x3 uint16" in said, f"{name} slopes, raw: {said}")


def series_of(folder, name, files):
    """Writes the files, codes them, and returns what was said; they come back byte for byte."""
    slices, coded, again = (os.path.join(folder, name + end) for end in ("", ".tvl", "_again"))
    os.mkdir(slices)
    for number, data in enumerate(files):
        with open(os.path.join(slices, f"{number}.dcm"), "wb") as f:
            f.write(data)
    said = run("encode", slices, coded)
    run("decode", coded, again)
    check([open(os.path.join(again, f"{n}.dcm"), "rb").read() for n in range(len(files))] == files, f"{name}: the files")
    return said + run("info", coded)


def test_what_differs(folder):
    """Slopes or intercepts, whichever differ, are named."""
    pixels = bytes(128)
    for name, scales, what in (("slopes", ((1, 5), (2, 5)), "slope differs"), ("intercepts", ((2, 5), (2, 6)), "intercept differs"),
                               ("both", ((1, 5), (2, 6)), "slope and intercept differ"), ("none", ((2, 5), (2, 5)), None)):
        said = series_of(folder, "what_" + name, [dicom("1.2.826.0.1.11", 1, "PET", z + 1, z, 8, pixels, slope, intercept=b)
                                                  for z, (slope, b) in enumerate(scales)])
        check(said.count("the rescale ") == (2 if what else 0), f"{name}: {said}")  # encode, info
        check(what is None or f"the rescale {what} from slice to slice" in said, f"{name}: {said}")
        check(("2 * stored + 5" in said) == (what is None), f"{name}: {said}")


def test_uneven_distances(folder):
    """The most frequent distance is taken. "Mostly" is more than half; less is told as what it is."""
    for name, places, step, what in (
            ("tie", (0, 2, 4, 9, 14), 5, "2 to 5 mm, 5 is taken, the distance of 2 of 4 pairs, first another between 0.dcm"),
            ("mostly", (0, 2, 4, 9), 2, "2 to 5 mm, mostly 2, first another between 2.dcm and 3.dcm"),
            ("frequent", (0, 1, 2, 5, 9, 14), 1, "1 to 5 mm, 1 is taken, the distance of 2 of 5 pairs, first another between 2.dcm"),
            ("nearly", (0, 0.993, 1.993, 3), 1, None)):
        said = series_of(folder, "distance_" + name, [dicom("1.2.826.0.1.12", 1, "CT", n + 1, z, 8, bytes(128))
                                                      for n, z in enumerate(places)])
        check(f"1 x 1 x {step}" in said, f"{name}: {said}")
        check(("is not the same everywhere" in said) == (what is not None) and (what or "") in said, f"{name}: {said}")


def run_length(data):
    """The same file with its pixels, which all have one value, in RLE."""
    at = data.index(struct.pack("<HH2s", 0x7FE0, 0x10, b"OW"))
    low, high = data[-2], data[-1]
    frame = struct.pack("<16I", 2, 64, 66, *[0] * 13) + bytes([257 - 64, high, 257 - 64, low])
    items = b"".join(struct.pack("<HHI", 0xFFFE, 0xE000, len(item)) + item for item in (b"", frame))
    head = data[:at].replace(element(2, 0x10, "UI", "1.2.840.10008.1.2.1"), element(2, 0x10, "UI", "1.2.840.10008.1.2.5"))
    return head + struct.pack("<HH2sHI", 0x7FE0, 0x10, b"OB", 0, 0xFFFFFFFF) + items + struct.pack("<HHI", 0xFFFE, 0xE0DD, 0)


def test_three_orientations(folder):
    """Of three planes with as many files none has most of the series."""
    planes = ("1\\0\\0\\0\\1\\0", "0\\1\\0\\0\\0\\-1", "1\\0\\0\\0\\0\\-1")
    files = [dicom("1.2.826.0.1.14", 1, "LOC", 3 * p + n + 1, n, 8, bytes(128), plane=False).replace(
        element(0x28, 2, "US", struct.pack("<H", 1)), element(0x20, 0x37, "DS", plane) + element(0x28, 2, "US", struct.pack("<H", 1)))
        for p, plane in enumerate(planes) for n in range(3)]
    said = series_of(folder, "planes", files)
    check("another orientation than the volume; stacked behind the volume" in said and "most" not in said, f"three planes: {said}")


def test_left_out_and_compressed(folder):
    """Of compressed files only those that are in the volume are counted."""
    slices, coded = os.path.join(folder, "runs"), os.path.join(folder, "runs.tvl")
    os.mkdir(slices)
    for n, z in enumerate((0, 1, 2, 2, 1)):  # a copy, and another picture at a place that is taken
        data = dicom("1.2.826.0.1.13", 1, "CT", z + 1 if n < 4 else 9, z, 8, bytes([5, z]) * 64)
        with open(os.path.join(slices, f"{n}.dcm"), "wb") as f:
            f.write(run_length(data))
    said = run("encode", slices, coded)
    check("5 files had compressed pixels" in said and "8x8x5 " in said, f"all: {said}")
    said = run("encode", slices, coded, "-y", "--only-matching")
    check("3 files had compressed pixels" in said and "8x8x3 " in said, f"left out: {said}")


def test_one_instance_for_all(folder):
    """Programs that remove names give all files one SOP Instance UID. Copies also have the same place and number."""
    pixels = struct.pack("<64H", *range(64))
    slice_of = lambda instance, z, **more: dicom("1.2.826.0.1.8", 1, "CT", instance, z, 8, pixels, uid="1.2.3", **more)
    said = series_of(folder, "one_uid", [slice_of(z + 1, 2 * z) for z in range(5)])
    check("8x8x5 " in said and "1 x 1 x 2" in said and "there twice" not in said, f"one UID for all: {said}")
    said = series_of(folder, "copy", [slice_of(z + 1, 2 * z) for z in (0, 1, 1, 2)])
    check("2.dcm: there twice" in said or "1.dcm: there twice" in said, f"a copy: {said}")
    # A copy of a file that does not fit, and places that are no numbers: one file is always left.
    said = series_of(folder, "odd_copies", [slice_of(1, 0, plane=False, spacing=mm) for mm in ("2\\2", "1\\1", "1\\1")])
    check("another pixel spacing" in said and "there twice" in said, f"copies of a misfit: {said}")
    said = series_of(folder, "nan", [slice_of(z, "nan", spacing="nan\\inf") for z in range(3)])
    check("8x8x3 " in said and "do not say where they lie" in said, f"places that are no numbers: {said}")


def test_without_series(folder):
    """Files without a Series Instance UID are a series of their own; the others are not left out without a word."""
    mixed, coded = os.path.join(folder, "mixed"), os.path.join(folder, "mixed.tvl")
    os.mkdir(mixed)
    for name, uid in (("1.dcm", "1.2.826.0.1.9"), ("2.dcm", "1.2.826.0.1.9"), ("3.dcm", "")):
        with open(os.path.join(mixed, name), "wb") as f:
            f.write(dicom(uid, 1, "CT", int(name[0]), int(name[0]), 8, bytes(128)))
    said = run("encode", mixed, coded, code=2)
    check("belong to 2 series" in said and "1 slice, 'CT', no UID ('none')" in said, f"a file without a series: {said}")
    check("8x8x1 " in run("encode", mixed, coded, "--series", "none"), "a file without a series")
    check("8x8x2 " in run("encode", mixed, coded, "--series", "1.2.826.0.1.9", "-y"), "the series beside it")
    os.remove(os.path.join(mixed, "1.dcm"))
    os.remove(os.path.join(mixed, "2.dcm"))
    check("8x8x1 " in run("encode", mixed, coded, "-y"), "alone")


def test_damaged_file_beside(folder):
    """A damaged file beside a series is refused with the way out, and left out with a warning."""
    slices, coded = os.path.join(folder, "beside"), os.path.join(folder, "beside.tvl")
    os.mkdir(slices)
    for n in range(1, 4):
        data = dicom("1.2.826.0.1.10", 1, "CT", n, n, 8, bytes(128))
        with open(os.path.join(slices, f"{n}.dcm"), "wb") as f:
            f.write(data)
    with open(os.path.join(slices, "cut.dcm"), "wb") as f:
        f.write(data[:data.index(b"1\\1") + 1])
    said = run("encode", slices, coded, code=4)
    check("cut.dcm" in said and "--only-matching leaves such files out" in said, f"a damaged file: {said}")
    said = run("encode", slices, coded, "--only-matching")
    check("8x8x3 " in said and "cut.dcm" in said and "left out" in said, f"without a damaged file: {said}")
    # A file in an unknown transfer syntax, as one that is damaged.
    with open(os.path.join(slices, "cut.dcm"), "wb") as f:
        f.write(data.replace(b"1.2.840.10008.1.2.1\0", b"1.2.840.113619.5.2\0\0"))
    said = run("encode", slices, coded, "-y", code=5)
    check("unknown transfer syntax" in said and "--only-matching leaves such files out" in said, f"unknown: {said}")
    check("8x8x3 " in run("encode", slices, coded, "-y", "--only-matching"), "without a file in an unknown syntax")
    os.mkdir(os.path.join(folder, "pointers"))
    open(os.path.join(folder, "pointers", "1.dcm"), "w").write("version https://git-lfs.github.com/spec/v1\n" * 20)
    said = run("encode", os.path.join(folder, "pointers"), coded, "-y", code=3)
    check("none of its files is a DICOM file, not even 1.dcm" in said, f"files that are none: {said}")


def index_file():
    """A DICOMDIR has no pixels."""
    return bytes(128) + b"DICM" + element(2, 0x10, "UI", "1.2.840.10008.1.2.1") + element(4, 0x1130, "CS", "DISC")


def save_series(folder, uid, number, files, description="CT"):
    os.makedirs(folder, exist_ok=True)
    for n in range(files):
        with open(os.path.join(folder, f"{number}_{n}"), "wb") as f:
            f.write(dicom(uid, number, description, n + 1, n, 8, bytes([n, number] * 64)))


def test_folder_of_folders(folder):
    """Folders that hold slices are named, and what has to be typed; a DICOMDIR is no slice."""
    study, coded = os.path.join(folder, "study"), os.path.join(folder, "study.tvl")
    for n, place in enumerate(("ST1/SE1", "ST1/SE2", "ST2/SE1", "ST2/SE2", "ST2/SE3")):
        save_series(os.path.join(study, place), f"1.2.826.0.2.{n}", n, 2)
    os.makedirs(os.path.join(study, "notes"))
    open(os.path.join(study, "notes", "a.txt"), "w").write("no slice")
    for index in (False, True):
        if index:
            open(os.path.join(study, "DICOMDIR"), "wb").write(index_file())
        for command in (("encode", study, coded), ("info", study)):
            said = run(*command, code=3)
            check("its folders ST1/SE1, ST1/SE2, ST2/SE1 and 2 more do; encode one of them, or all with --recursive "
                  "--out-dir FOLDER" in said, f"a folder of folders: {said}")
    out = os.path.join(folder, "study_coded")
    said = run("encode", study, "--recursive", "--out-dir", out)
    check("DICOMDIR: holds no pixels" in said and "it is left" in said, f"a DICOMDIR: {said}")
    check("5 done, 0 skipped, 0 failed, 2 other files left" in said, f"a DICOMDIR: {said}")
    # Alone with slices beside it, and without any.
    save_series(os.path.join(folder, "disc"), "1.2.826.0.3", 1, 3)
    open(os.path.join(folder, "disc", "DICOMDIR"), "wb").write(index_file())
    said = run("encode", os.path.join(folder, "disc"), "--recursive", "--out-dir", out)
    check("8x8x3 " in said and "DICOMDIR: holds no pixels" in said and "1 done, 0 skipped, 0 failed" in said, f"disc: {said}")
    os.makedirs(os.path.join(folder, "index"))
    open(os.path.join(folder, "index", "DICOMDIR"), "wb").write(index_file())
    said = run("encode", os.path.join(folder, "index"), coded, code=5)
    check("holds no pixels" in said, f"a DICOMDIR alone: {said}")


def test_all_series_of_a_folder(folder):
    """With --out-dir each series of a folder gets an output of its own; decode gives each its folder."""
    archive, coded, back = (os.path.join(folder, name) for name in ("archive", "archive_coded", "archive_back"))
    mixed, report = os.path.join(archive, "pat", "mixed"), os.path.join(folder, "series.json")
    due = {"pat/mixed_series-2": ("1.2.826.0.4.1", 2, 3, "T1/ax"), "pat/mixed_series-7-1": ("1.2.826.0.4.2", 7, 2, "A"),
           "pat/mixed_series-7-2": ("1.2.826.0.4.3", 7, 4, "B"), "pat/mixed_series-without-number": ("1.2.826.0.4.4", "", 5, "")}
    for uid, number, files, description in due.values():
        for n in range(files):
            name = os.path.join(mixed, f"{uid}_{n}.dcm")
            os.makedirs(mixed, exist_ok=True)
            with open(name, "wb") as f:
                f.write(dicom(uid, number, description, n + 1, n, 8, bytes([n, files] * 64)))
    open(os.path.join(mixed, "AAA.txt"), "w").write("a first file that is none of DICOM")
    save_series(os.path.join(archive, "one"), "1.2.826.0.4.9", 9, 2)
    said = run("encode", archive, "--recursive", "--out-dir", coded, "--report", report)
    check("5 done, 0 skipped, 0 failed" in said and "mixed (series 2, 'T1/ax') -> " in said, f"all series: {said}")
    found = sorted(str(p.relative_to(coded)) for p in Path(coded).rglob("*.tvl"))
    check(found == sorted(["one.tvl"] + [name + ".tvl" for name in due]), f"all series: {found}")
    files = {f["output"]: f for f in json.load(open(report))["files"]}
    told = files[os.path.join(coded, "pat/mixed_series-7-2.tvl")]
    check(told["part"] == "series 7-2, 'B'" and len(told["input_files"]) == 4, f"all series, reported: {told}")
    run("decode", coded, "--recursive", "--out-dir", back)
    for name, (uid, _, files, _) in due.items():
        names = {f"{uid}_{n}.dcm" for n in range(files)}
        check(set(os.listdir(os.path.join(back, name))) == names, f"{name}: {os.listdir(os.path.join(back, name))}")
        for n in names:
            check(Path(back, name, n).read_bytes() == Path(mixed, n).read_bytes(), f"{name}: {n} came back as another file")
    # One that is named is the only one; a folder that is named is divided as well.
    run("encode", mixed, "--out-dir", os.path.join(folder, "third"), "--series", "1.2.826.0.4.3")
    check(os.listdir(os.path.join(folder, "third")) == ["mixed.tvl"], "a series by name")
    run("encode", mixed, "--out-dir", os.path.join(folder, "fourth"))
    check(len(os.listdir(os.path.join(folder, "fourth"))) == 4, "a folder of series by name")
    said = run("encode", mixed, os.path.join(folder, "m.tvl"), code=2)
    check("encode --out-dir FOLDER each into a file of its own" in said, f"several series: {said}")


def test_with_pydicom(folder):
    try:
        import numpy as np
        import pydicom
        from pydicom.dataset import Dataset, FileMetaDataset
        from pydicom.sequence import Sequence
    except ImportError as e:
        print(f"without pydicom: {e}")
        return

    def write(path, ds, uid):
        ds.file_meta = FileMetaDataset()
        ds.file_meta.MediaStorageSOPClassUID, ds.file_meta.MediaStorageSOPInstanceUID = uid, "1.2.3.9"
        ds.file_meta.TransferSyntaxUID = pydicom.uid.ExplicitVRLittleEndian
        ds.is_little_endian, ds.is_implicit_VR = True, False
        ds.SOPClassUID, ds.SOPInstanceUID, ds.SeriesInstanceUID = uid, "1.2.3.9", "1.2.3"
        ds.save_as(path, write_like_original=False)

    def item(**values):
        ds = Dataset()
        for name, value in values.items():
            setattr(ds, name, value)
        return ds

    random = np.random.default_rng(1)
    coded, path = os.path.join(folder, "e.tvl"), os.path.join(folder, "enhanced.dcm")
    frames = (400 + np.cumsum(random.integers(-3, 4, (12, 20, 24)), axis=0)).astype("<i2")
    ds = Dataset()
    ds.NumberOfFrames, ds.Rows, ds.Columns, ds.SamplesPerPixel, ds.PhotometricInterpretation = 12, 20, 24, 1, "MONOCHROME2"
    ds.BitsAllocated, ds.BitsStored, ds.HighBit, ds.PixelRepresentation = 16, 16, 15, 1
    ds.SharedFunctionalGroupsSequence = Sequence([item(
        PixelMeasuresSequence=Sequence([item(PixelSpacing=[0.7, 0.6], SliceThickness=2)]),
        PlaneOrientationSequence=Sequence([item(ImageOrientationPatient=[1, 0, 0, 0, 1, 0])]),
        PixelValueTransformationSequence=Sequence([item(RescaleIntercept=-1000, RescaleSlope=4, RescaleType="HU")]))])
    ds.PerFrameFunctionalGroupsSequence = Sequence(
        [item(PlanePositionSequence=Sequence([item(ImagePositionPatient=[1, 2, 1.5 * z])])) for z in range(12)])
    ds.PixelData = frames.tobytes()
    write(path, ds, pydicom.uid.EnhancedCTImageStorage)
    run("encode", path, coded, "-y")
    check("identical" in run("verify", coded, "--against", path), "enhanced: verify")
    said = run("info", coded)
    check("24x20x12" in said and "0.6 x 0.7 x 1.5" in said and "4 * stored + -1000" in said, f"enhanced: {said}")
    again = os.path.join(folder, "enhanced_again.dcm")
    run("decode", coded, again)
    check(open(again, "rb").read() == open(path, "rb").read(), "enhanced: another file came back")
    # The bound is of scaled values: 4 of them are 1 of the stored ones.
    run("encode", path, coded, "-y", "--max-error-hu", 4)
    run("decode", coded, again, "-y")
    worst = int(np.abs(pydicom.dcmread(again).pixel_array.astype(int) - frames).max())
    check(worst == 1, f"enhanced: the largest error is {worst} steps of 4 HU where 4 HU were allowed")

    ds = Dataset()
    ds.NumberOfFrames, ds.Rows, ds.Columns, ds.SamplesPerPixel, ds.PhotometricInterpretation = 5, 14, 18, 3, "RGB"
    ds.BitsAllocated, ds.BitsStored, ds.HighBit, ds.PixelRepresentation, ds.PlanarConfiguration = 8, 8, 7, 0, 0
    colours = random.integers(0, 256, (5, 14, 18, 3)).astype("u1")
    ds.PixelData = colours.tobytes()
    for planar in (0, 1):
        ds.PlanarConfiguration = planar
        ds.PixelData = (colours.transpose(0, 3, 1, 2) if planar else colours).tobytes()
        path = os.path.join(folder, f"rgb{planar}.dcm")
        write(path, ds, pydicom.uid.UltrasoundMultiFrameImageStorage)
        run("encode", path, coded, "-y")
        check("identical" in run("verify", coded, "--against", path), f"colours {planar}: verify")
        run("decode", coded, again, "-y")
        check(open(again, "rb").read() == open(path, "rb").read(), f"colours {planar}: another file came back")
        check(np.array_equal(pydicom.dcmread(again).pixel_array, colours), f"colours {planar}: pydicom sees others")


start = time.monotonic()
with tempfile.TemporaryDirectory() as folder:
    test_own_slopes(folder)
    test_unread_volumes(folder)
    test_what_differs(folder)
    test_uneven_distances(folder)
    test_three_orientations(folder)
    test_left_out_and_compressed(folder)
    test_one_instance_for_all(folder)
    test_without_series(folder)
    test_damaged_file_beside(folder)
    test_folder_of_folders(folder)
    test_all_series_of_a_folder(folder)
    test_thousands_of_files(folder)
    test_with_pydicom(folder)
if program.failures:
    sys.exit(1)
print(f"all series came back, in {time.monotonic() - start:.1f} s")
