#!/usr/bin/env python3
"""Values of volume files survive the program: NIfTI, Analyze, NRRD and MetaImage of every type, byte order, scale,
encoding and arrangement of files go through the program into every format that it writes; what comes out is read by
nibabel and by the readers below, which share nothing with the program, and compared with what was put in.

    volume_values_test.py TRIVELET      a sample of the cases; more, and all, with TRIVELET_FULL=1
"""

import gzip
import itertools
import json
import os
import random
import sys
import tempfile
import zlib
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import program  # noqa: E402

try:
    import nibabel
    import numpy as np
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(77)

program.path = sys.argv[1]
FULL = os.environ.get("TRIVELET_FULL", "0") not in ("", "0")
RANDOM = np.random.default_rng(11)
SHAPE = (3, 4, 5)  # slices, rows, columns
TYPES = ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8"]
AFFINE = np.array([[0, -1.5, 0, 10], [-2, 0, 0, 20.5], [0, 0, 2.5, -30], [0, 0, 0, 1]])  # of whole binary fractions


class Volume:
    """Stored values along t, z, y, x, c; what they mean; where they lie, if a header says so."""

    def __init__(self, values, slope=1.0, inter=0.0, affine=None) -> None:
        self.values, self.slope, self.inter, self.affine = values, slope, inter, affine


def values_of(dtype: str, shape: tuple) -> np.ndarray:
    """All bit patterns are values; those of floats are finite, and NaN."""
    kind = np.dtype(dtype)
    if kind.kind == "f":
        values = RANDOM.normal(0, 1e3, shape).astype(kind)
        values.flat[::7] = np.nan
        values.flat[3] = -0.0
        return values
    whole = RANDOM.bytes(int(np.prod(shape)) * kind.itemsize)
    return np.frombuffer(whole, kind).reshape(shape).copy()


# ------------------------------------------------------------------------------------------------------------- readers


def plain(path: Path) -> bytes:
    data = path.read_bytes()
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data


def placed_by_quaternion(header) -> np.ndarray:
    """As nifti1_io has it. Some versions of nibabel take a turn of its own from the rounding of half a turn."""
    turn = [float(header[f"quatern_{axis}"]) for axis in "bcd"]
    rest = 1 - sum(x * x for x in turn)
    if rest < 1e-7:
        length = np.sqrt(sum(x * x for x in turn))
        quaternion = [0, *(x / length for x in turn)]
    else:
        quaternion = [np.sqrt(rest), *turn]
    affine = np.eye(4)
    mirrored = -1 if header["pixdim"][0] < 0 else 1
    affine[:3, :3] = nibabel.quaternions.quat2mat(quaternion) * (header["pixdim"][1:4] * [1, 1, mirrored])
    affine[:3, 3] = [header[f"qoffset_{axis}"] for axis in "xyz"]
    return affine


def read_nifti(path: Path) -> Volume:
    image = nibabel.load(path)
    header = image.header
    stored = image.dataobj.get_unscaled()
    channels = [stored]
    if stored.dtype.names:  # RGB
        channels = [stored[name] for name in stored.dtype.names]
    elif stored.dtype.kind == "c":
        channels = [stored.real, stored.imag]
    values = np.stack([c.reshape((*c.shape, 1, 1, 1)[: max(4, c.ndim)]) for c in channels], -1)
    values = values.reshape((*values.shape[:3], -1, values.shape[-1]), order="F")
    slope, inter = image.dataobj.slope, image.dataobj.inter
    placed = "sform_code" in header and (header["sform_code"] > 0 or header["qform_code"] > 0)
    affine = image.affine if placed else None
    if placed and header["sform_code"] == 0:
        affine = placed_by_quaternion(header)
    return Volume(values.transpose(3, 2, 1, 0, 4), slope, inter, affine)


def flip(rows: np.ndarray) -> np.ndarray:
    """Between coordinates that grow to the left and back, and to the right and front."""
    return np.diag([-1, -1, 1]) @ rows


def arranged(data: bytes, dtype: str, sizes: list, channels: int) -> np.ndarray:
    """Extents with x first, without that of the channels."""
    extents = [*sizes, 1, 1, 1][: max(4, len(sizes))]
    full = (int(np.prod(extents[3:])), *extents[2::-1], channels)
    return np.frombuffer(data, dtype, int(np.prod(full))).reshape(full)


NRRD_TYPES = dict(zip(TYPES, ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float", "double"]))
META_TYPES = dict(
    zip(
        TYPES,
        "MET_CHAR MET_UCHAR MET_SHORT MET_USHORT MET_INT MET_UINT MET_LONG_LONG MET_ULONG_LONG MET_FLOAT MET_DOUBLE".split(),
    )
)


def code_of(table: dict, name: str) -> str:
    return next(code for code, known in table.items() if known == name)


def read_nrrd(path: Path) -> Volume:
    """What the program makes: attached, raw or gzip."""
    head, data = path.read_bytes().split(b"\n\n", 1)
    lines = head.decode().split("\n")
    assert lines[0].startswith("NRRD000"), lines[0]
    field = dict(line.split(": ", 1) for line in lines[1:])
    data = gzip.decompress(data) if field["encoding"] == "gzip" else data
    sizes = [int(n) for n in field["sizes"].split()]
    kinds = field["kinds"].split()
    channels = sizes.pop(0) if kinds[0] != "domain" else 1
    dtype = (">" if field.get("endian") == "big" else "<") + code_of(NRRD_TYPES, field["type"])
    affine = None
    if "space" in field:
        assert field["space"] == "left-posterior-superior"
        vectors = [[float(v) for v in t.strip("()").split(",")] for t in field["space directions"].split() if t != "none"]
        affine = np.eye(4)
        affine[:3, :3] = flip(np.array(vectors).T)
        affine[:3, 3] = flip(np.array([float(v) for v in field["space origin"].strip("()").split(",")]))
    return Volume(arranged(data, dtype, sizes, channels), affine=affine)


def read_meta(path: Path) -> Volume:
    head, data = path.read_bytes().split(b"ElementDataFile = LOCAL\n", 1)
    field = dict(line.split(" = ", 1) for line in head.decode().strip().split("\n"))
    if field["CompressedData"] == "True":
        assert int(field["CompressedDataSize"]) == len(data)
        data = zlib.decompress(data)
    sizes = [int(n) for n in field["DimSize"].split()]
    dtype = (">" if field["BinaryDataByteOrderMSB"] == "True" else "<") + code_of(META_TYPES, field["ElementType"])
    affine = None
    if "TransformMatrix" in field:
        n = len(sizes)
        matrix = np.array([float(v) for v in field["TransformMatrix"].split()]).reshape(n, n)[:3, :3]
        affine = np.eye(4)
        affine[:3, :3] = flip(matrix.T * [float(v) for v in field["ElementSpacing"].split()[:3]])
        affine[:3, 3] = flip(np.array([float(v) for v in field["Offset"].split()[:3]]))
    return Volume(
        arranged(data, dtype, sizes, int(field.get("ElementNumberOfChannels", "1"))),
        float(field.get("ElementToIntensityFunctionSlope", "1")),
        float(field.get("ElementToIntensityFunctionOffset", "0")),
        affine,
    )


# ------------------------------------------------------------------------------------------------------------- writers
# Each gives the names of the files and the volume. They are told by keywords, which name the case.


def nifti(folder: Path, dtype="i2", order="<", form="n+1", gz=False, scale=(1, 0), volumes=1, place="sform") -> tuple:
    shape = (5, 4, 3, volumes) if volumes > 1 else (5, 4, 3)
    channels = {"RGB": 3, "RGBA": 4, "c8": 2, "c16": 2}.get(dtype, 1)
    scalar = {"RGB": "u1", "RGBA": "u1", "c8": "f4", "c16": "f8"}.get(dtype, dtype)
    values = values_of(scalar, (volumes, *SHAPE, channels))
    kinds = {"n+1": nibabel.Nifti1Image, "ni1": nibabel.Nifti1Pair, "n+2": nibabel.Nifti2Image, "ni2": nibabel.Nifti2Pair}
    kinds["analyze"] = nibabel.Spm99AnalyzeImage
    header = kinds[form].header_class(endianness=order)
    codes = {"i1": 256, "u1": 2, "i2": 4, "u2": 512, "i4": 8, "u4": 768, "i8": 1024, "u8": 1280, "f4": 16, "f8": 64}
    codes.update({"RGB": 128, "RGBA": 2304, "c8": 32, "c16": 1792})
    header["datatype"], header["bitpix"] = codes[dtype], 8 * channels * np.dtype(scalar).itemsize
    header.set_data_shape(shape)
    if form != "analyze":
        header["scl_slope"], header["scl_inter"] = scale
        header["magic"] = form if form[2] == "1" else form.encode() + b"\0\r\n\x1a\n"
        if place == "sform":
            header.set_sform(AFFINE, 2)
        elif place == "qform":
            header.set_qform(AFFINE, 1)
    else:
        header["scl_slope"] = scale[0]
    single = form in ("n+1", "n+2")
    if single:
        header["vox_offset"] = header.sizeof_hdr + 4 + 16
    head = header.binaryblock + (b"\1\0\0\0" + int.to_bytes(16, 4, "big" if order == ">" else "little") + b"\0" * 12 if single else b"")
    data = values.transpose(0, 1, 2, 3, 4).astype(order + scalar).tobytes()
    pack = gzip.compress if gz else bytes
    end = ".gz" if gz else ""
    names = ["in.nii" + end] if single else ["in.hdr" + end, "in.img" + end]
    for name, content in zip(names, [head + data] if single else [head, data]):
        (folder / name).write_bytes(pack(content))
    slope, inter = scale if np.isfinite(scale[0]) and scale[0] != 0 else (1, 0)
    return names, Volume(values.astype(order + scalar), slope, inter, AFFINE if place != "none" and form != "analyze" else None)


def nrrd(folder: Path, dtype="i2", order="<", encoding="raw", files="one", channels=1, volumes=1, place="lps", skip="") -> tuple:
    values = values_of(dtype, (volumes, *SHAPE, channels)).astype(order + dtype)
    lines = ["NRRD0005", "# a comment", f"type: {NRRD_TYPES[dtype]}"]
    axes = (channels > 1) + 3 + (volumes > 1)
    none = (["none"] if channels > 1 else []), (["none"] if volumes > 1 else [])
    sizes = ([channels] if channels > 1 else []) + [*SHAPE[::-1]] + ([volumes] if volumes > 1 else [])
    lines += [f"dimension: {axes}", "sizes: " + " ".join(map(str, sizes))]
    if place != "none":
        signs = {"lps": [-1, -1, 1], "ras": [1, 1, 1], "las": [-1, 1, 1]}[place]
        rows = np.diag(signs) @ AFFINE[:3]
        vectors = ["(" + ",".join(map(str, rows[:, i])) + ")" for i in range(4)]
        spaces = {"lps": "left-posterior-superior", "ras": "RAS", "las": "left-anterior-superior"}
        lines += [f"space: {spaces[place]}", "space directions: " + " ".join(none[0] + vectors[:3] + none[1])]
        lines += ["space origin: " + vectors[3]]
    kinds = (["RGB-color" if channels == 3 else "vector"] if channels > 1 else []) + ["domain"] * 3
    lines += ["kinds: " + " ".join(kinds + (["list"] if volumes > 1 else []))]
    lines += ["endian: " + ("big" if order == ">" else "little"), f"encoding: {encoding}", "key:=a value: of a key"]
    data = values.tobytes()
    parts = [data] if files != "slices" else [data[i : i + len(data) // 3] for i in range(0, len(data), len(data) // 3)]
    if encoding == "gzip":
        parts = [gzip.compress(p) for p in parts]
    if skip == "lines":
        lines += ["line skip: 2"]
        parts = [b"one\ntwo, which is skipped\n" + p for p in parts]
    elif skip == "bytes":
        lines += ["byte skip: 6"]
        parts = [b"behind"[:6] + p for p in parts]
    elif skip == "all":
        lines += ["byte skip: -1"]
        parts = [b"of any length" + p for p in parts]
    if files == "one":
        (folder / "in.nrrd").write_bytes("\n".join(lines + ["", ""]).encode() + parts[0])
        return ["in.nrrd"], Volume(values, affine=AFFINE if place != "none" else None)
    names = [f"in{i:02}.raw" for i in range(len(parts))]
    for name, part in zip(names, parts):
        (folder / name).write_bytes(part)
    if files == "two":
        lines += [f"data file: ./{names[0]}"]
    elif files == "slices":
        lines += ["data file: in%02d.raw 0 2 1"] if volumes == 1 else ["data file: LIST", *names]
    (folder / "in.nhdr").write_text("\n".join(lines) + "\n")
    return ["in.nhdr", *names], Volume(values, affine=AFFINE if place != "none" else None)


def meta(folder: Path, dtype="i2", order="<", packed=False, files="one", channels=1, volumes=1, scale=(1, 0), skip=0) -> tuple:
    values = values_of(dtype, (volumes, *SHAPE, channels)).astype(order + dtype)
    n = 4 if volumes > 1 else 3
    rows = np.eye(4)
    rows[:3] = flip(AFFINE[:3])
    spacing = [2, 1.5, 2.5, 1][:n]
    matrix = np.eye(n)
    matrix[:3, :3] = rows[:3, :3].T / np.array(spacing)[:3, None]
    lines = ["ObjectType = Image", f"NDims = {n}", "BinaryData = True", f"BinaryDataByteOrderMSB = {order == '>'}"]
    lines += [f"CompressedData = {packed}", "TransformMatrix = " + " ".join(map(str, matrix.ravel()))]
    lines += ["Offset = " + " ".join(map(str, [*rows[:3, 3], 0][:n])), "CenterOfRotation = " + "0 " * n]
    lines += ["ElementSpacing = " + " ".join(map(str, spacing)), "DimSize = " + " ".join(map(str, [5, 4, 3, volumes][:n]))]
    lines += [f"ElementNumberOfChannels = {channels}"] if channels > 1 else []
    if scale != (1, 0):
        lines += [f"ElementToIntensityFunctionSlope = {scale[0]}", f"ElementToIntensityFunctionOffset = {scale[1]}"]
    lines += [f"ElementType = {META_TYPES[dtype]}"]
    data = values.tobytes()
    parts = [data] if files != "slices" else [data[i : i + len(data) // 3] for i in range(0, len(data), len(data) // 3)]
    if packed:
        parts = [zlib.compress(p) for p in parts]
    volume = Volume(values, *scale, AFFINE)
    if skip:
        lines += [f"HeaderSize = {skip}"]
        parts = [b"before"[: max(0, skip)] + p if skip > 0 else b"of any length" + p for p in parts]
    if files == "one":
        (folder / "in.mha").write_bytes("\n".join(lines + ["ElementDataFile = LOCAL", ""]).encode() + parts[0])
        return ["in.mha"], volume
    names = [f"in{i}.raw" for i in range(len(parts))]
    for name, part in zip(names, parts):
        (folder / name).write_bytes(part)
    if files == "two":
        lines += [f"ElementDataFile = {names[0]}"]
    else:
        lines += ["ElementDataFile = in%d.raw 0 2 1"] if volumes == 1 else ["ElementDataFile = LIST", *names]
    (folder / "in.mhd").write_text("\n".join(lines) + "\n")
    return ["in.mhd", *names], volume


# --------------------------------------------------------------------------------------------------------------- cases


def grid(writer, **choices) -> list:
    """All cases in which two choices differ from the first ones; with TRIVELET_FULL=1 three."""
    names, cases = list(choices), []
    for picked in itertools.product(*choices.values()):
        case = dict(zip(names, picked))
        other = sum(value != choices[name][0] for name, value in case.items())
        if other <= (3 if FULL else 2):
            cases.append((writer, case))
    return cases


def is_possible(writer, case: dict) -> bool:
    if writer is nifti:
        wide = case["dtype"] in ("RGB", "RGBA", "c8", "c16")
        if case["form"] == "analyze":
            return case["dtype"] in ("u1", "i2", "i4", "f4", "f8") and case["scale"][1] == 0 and case["place"] == "none"
        return not (wide and case["scale"] != (1, 0))
    if writer is nrrd:
        return (not case["skip"] or case["files"] != "one") and not (case["encoding"] == "gzip" and case["skip"] in ("bytes", "all"))
    return not case["skip"] or (case["files"] != "one" and not case["packed"])


def all_cases() -> list:
    scales = [(1, 0), (0.5, -1024), (float("nan"), 0), (0, 0), (-2, 3)]
    cases = grid(
        nifti,
        dtype=["i2"] + [t for t in TYPES if t != "i2"] + ["RGB", "RGBA", "c8", "c16"],
        order=["<", ">"],
        form=["n+1", "ni1", "n+2", "ni2", "analyze"],
        gz=[False, True],
        scale=scales,
        volumes=[1, 3],
        place=["sform", "qform", "none"],
    )
    cases += grid(
        nrrd,
        dtype=["i2"] + [t for t in TYPES if t != "i2"],
        order=["<", ">"],
        encoding=["raw", "gzip"],
        files=["one", "two", "slices"],
        channels=[1, 2, 3, 4],
        volumes=[1, 3],
        place=["lps", "ras", "las", "none"],
        skip=["", "lines", "bytes", "all"],
    )
    cases += grid(
        meta,
        dtype=["i2"] + [t for t in TYPES if t != "i2"],
        order=["<", ">"],
        packed=[False, True],
        files=["one", "two", "slices"],
        channels=[1, 2, 3, 4],
        volumes=[1, 3],
        scale=scales[:2],
        skip=[0, 6, -1],
    )
    return [case for case in cases if is_possible(*case)]


READERS = {"nii": read_nifti, "nii.gz": read_nifti, "nrrd": read_nrrd, "mha": read_meta}


def same(a: np.ndarray, b: np.ndarray) -> bool:
    return a.shape == b.shape and a.dtype.newbyteorder("=") == b.dtype.newbyteorder("=") and np.array_equal(
        a, b, equal_nan=a.dtype.kind == "f"
    )


def judge(what: str, kind: str, found: Volume, wanted: Volume) -> None:
    program.check(same(found.values, wanted.values), f"{what}: other values in {kind}")
    if kind != "nrrd":
        scale = (found.slope, found.inter)
        program.check(np.allclose(scale, (wanted.slope, wanted.inter)), f"{what}: scale {scale} in {kind}")
    if wanted.affine is not None:
        program.check(found.affine is not None and np.allclose(found.affine, wanted.affine), f"{what}: elsewhere in {kind}: {found.affine}")


def can_hold(kind: str, values: np.ndarray) -> bool:
    """NIfTI has colours of 8 bits, and complex numbers of floats."""
    channels = values.shape[-1]
    if not kind.startswith("nii") or channels == 1:
        return True
    return channels in (3, 4) and values.dtype == np.uint8 or channels == 2 and values.dtype.kind == "f"


def try_case(folder: Path, number: int, writer, case: dict) -> None:
    what = f"{writer.__name__} {case}"
    names, wanted = writer(folder, **case)
    if writer is nifti:  # the case is what nibabel takes it for
        read = read_nifti(folder / names[0])
        wanted.affine = read.affine  # quaternions are rounded
        program.check(same(read.values, wanted.values) and (read.slope, read.inter) == (wanted.slope, wanted.inter), f"{what}: nibabel differs")
    named = names[-1] if writer is nifti and number % 2 else names[0]
    planes = wanted.values.shape[-1] * -(-wanted.values.dtype.itemsize // 2)
    told = program.run("encode", folder / named, folder / "v.tvl", "-y")
    program.check(("is none of space" in told) == (planes > 4), f"{what}: {told}")
    if planes > 4:  # more than the format has for a voxel: the values are the first axis
        wanted = Volume(wanted.values.reshape(-1, *wanted.values.shape[2:], 1), wanted.slope, wanted.inter)
        program.run("verify", folder / "v.tvl", "--against", folder / named)
        program.check("identical" in program.run("compare", folder / named, folder / "v.tvl"), f"{what}: compare")
    again = folder / "again"
    again.mkdir(exist_ok=True)
    program.run("decode", folder / "v.tvl", again / named, "--quiet", "-y")
    for name in names:
        program.check(unpacked(again / name) == unpacked(folder / name), f"{what}: {name} comes back otherwise")
    said = json.loads(program.run("info", folder / "v.tvl", "--json", "--quiet"))["volume"]
    program.check((said["slope"], said["intercept"]) == (wanted.slope, wanted.inter), f"{what}: info says a scale of {said}")
    kinds = [k for k in READERS if can_hold(k, wanted.values)]
    for kind in kinds if FULL else {kinds[number % len(kinds)], kinds[(number // 4) % len(kinds)]}:
        out = again / f"other.{kind}"
        program.run("decode", folder / "v.tvl", out, "--quiet", "-y")
        is_own = kind.startswith("nii") and names[0].endswith(("nii", "nii.gz")) and planes > 4
        if not (is_own or kind == "nrrd" and names[0].endswith("nrrd") or kind == "mha" and names[0].endswith("mha")):
            judge(what, kind, READERS[kind](out), wanted)
    program.run("decode", folder / "v.tvl", again / "v.raw", "--quiet", "-y")
    program.check((again / "v.raw").read_bytes() == wanted.values.tobytes(), f"{what}: other bytes in raw")


def unpacked(path: Path) -> bytes:
    """What a file says, whatever a compressor made of it."""
    data = plain(path)
    before, found, packed = data.partition(b"\x1f\x8b")  # behind lines that are skipped
    if found and path.suffix == ".raw" and before == b"one\ntwo, which is skipped\n":
        return before + gzip.decompress(found + packed)
    for mark, end, unpack in (
        (b"encoding: gzip", b"\n\n", gzip.decompress),
        (b"CompressedData = True", b"ElementDataFile = LOCAL\n", zlib.decompress),
    ):
        head, found, body = data.partition(end)
        if found and mark in head:
            return head + unpack(body)
    try:
        return zlib.decompress(data)
    except zlib.error:
        return data


def main() -> int:
    cases = all_cases()
    if not FULL:
        cases = random.Random(5).sample(cases, len(cases) // 7)
    for number, (writer, case) in enumerate(cases):
        with tempfile.TemporaryDirectory() as folder:
            try:
                try_case(Path(folder), number, writer, case)
            except Exception as error:  # of a reader: what it was given is wrong
                program.complain(f"{writer.__name__} {case}: {error!r}")
    print(f"{len(cases)} cases, {len(program.failures)} failures")
    return 1 if program.failures else 0


if __name__ == "__main__":
    sys.exit(main())
