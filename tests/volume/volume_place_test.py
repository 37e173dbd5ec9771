#!/usr/bin/env python3
"""Where a picture lies is kept by files of other formats: one DICOM slice, several of one place, MetaImage of two axes
or without a matrix; the step of time in NRRD. What NRRD says of a space that is not the patient's is warned of.

    volume_place_test.py TRIVELET
"""
import gzip
import math
import re
import struct
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import program  # noqa: E402
from program import check, run  # noqa: E402

program.path = sys.argv[1]
ROWS, COLUMNS = 4, 6
TILTED = [0.6, 0.8, 0, -0.8, 0.6, 0]  # of rows and columns, normal to the head


def element(group, number, vr, value):
    value = value.encode() if isinstance(value, str) else value
    value += (b"\0" if vr == "UI" else b" ") * (len(value) % 2)
    head = struct.pack("<HH2s", group, number, vr.encode())
    return head + (struct.pack("<HI", 0, len(value)) if vr == "OW" else struct.pack("<H", len(value))) + value


def dicom(instance, position, orientation, spacing=(2, 1.5), **steps):
    """`steps`: thickness, between. Pixel Spacing is of rows first."""
    text = lambda values: "\\".join(str(v) for v in values)
    short = lambda e, value: element(0x28, e, "US", struct.pack("<H", value))
    pixels = struct.pack(f"<{ROWS * COLUMNS}H", *(instance * 100 + i for i in range(ROWS * COLUMNS)))
    parts = [bytes(128), b"DICM", element(2, 0x10, "UI", "1.2.840.10008.1.2.1"), element(8, 0x18, "UI", f"1.2.3.{instance}")]
    parts += [element(0x18, tag, "DS", str(steps[name])) for tag, name in ((0x50, "thickness"), (0x88, "between")) if name in steps]
    parts += [element(0x20, 0x0E, "UI", "1.2.3"), element(0x20, 0x13, "IS", str(instance))]
    parts += [element(0x20, 0x32, "DS", text(position)), element(0x20, 0x37, "DS", text(orientation))]
    parts += [short(2, 1), short(0x10, ROWS), short(0x11, COLUMNS), element(0x28, 0x30, "DS", text(spacing)), short(0x100, 16), short(0x103, 0)]
    return b"".join(parts + [element(0x7FE0, 0x10, "OW", pixels)])


def wanted_matrix(position, orientation, spacing, step):
    """Rows of the matrix to the right, front and top; DICOM counts to the left and back."""
    a, b = orientation[:3], orientation[3:]
    normal = [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
    sign = (-1, -1, 1)
    return [[sign[r] * v for v in (a[r] * spacing[1], b[r] * spacing[0], normal[r] * step, position[r])] for r in range(3)]


def nifti_matrix(path):
    data = path.read_bytes()
    if struct.unpack_from("<h", data, 254)[0] <= 0:  # sform_code
        return None
    return [list(struct.unpack_from("<4f", data, 280 + 16 * r)) for r in range(3)]


def nrrd_matrix(path):
    head = path.read_bytes().split(b"\n\n")[0].decode()
    directions = re.search(r"space directions: (.*)", head)
    if not directions:
        return None
    vector = lambda text: [float(v) for v in text.split(",")]
    columns = [vector(v) for v in re.findall(r"\(([^)]*)\)", directions.group(1))]
    columns.append(vector(re.search(r"space origin: \((.*)\)", head).group(1)))
    sign = (-1, -1, 1) if "left-posterior" in head else (1, 1, 1)
    return [[sign[r] * column[r] for column in columns] for r in range(3)]


def check_place(folder, what, wanted):
    """Of the stream v.tvl."""
    for name, read in (("v.nii", nifti_matrix), ("v.nrrd", nrrd_matrix)):
        run("decode", folder / "v.tvl", folder / name, "-y")
        found = read(folder / name)
        is_near = found is not None and all(
            math.isclose(x, y, rel_tol=1e-5, abs_tol=1e-5) for p, q in zip(found, wanted) for x, y in zip(p, q))  # fmt: skip
        check(is_near, f"{what}, {name}: {found}, not {wanted}")


def test_dicom(folder):
    position, spacing = (-10.5, 20, 300), (2, 1.5)
    for what, steps, step in (("thickness", {"thickness": 5}, 5), ("distance", {"thickness": 5, "between": 6.5}, 6.5), ("nothing", {}, 1)):
        (folder / "one.dcm").write_bytes(dicom(1, position, TILTED, spacing, **steps))
        run("encode", folder / "one.dcm", folder / "v.tvl", "-y")
        check_place(folder, f"one slice, {what}", wanted_matrix(position, TILTED, spacing, step))
    times = folder / "times"
    times.mkdir()
    for i in range(3):
        (times / f"{i}").write_bytes(dicom(i + 1, position, TILTED, spacing, thickness=5))
    run("encode", times, folder / "v.tvl", "-y")
    check_place(folder, "one place, three times", wanted_matrix(position, TILTED, spacing, 5))
    (folder / "one.dcm").write_bytes(dicom(1, position, [0, 0, 0, 0, 0, 0], spacing))
    run("encode", folder / "one.dcm", folder / "v.tvl", "-y")
    run("decode", folder / "v.tvl", folder / "v.nii", "-y")
    check(nifti_matrix(folder / "v.nii") is None, "directions of no length are a place")


def test_metaimage(folder):
    def write(*lines):
        axes = len(lines[0].split()) - 2
        head = ["ObjectType = Image", f"NDims = {axes}", "BinaryData = True", *lines, "ElementType = MET_UCHAR", "ElementDataFile = LOCAL"]
        size = math.prod(int(v) for v in lines[0].split()[2:])
        (folder / "p.mha").write_bytes("\n".join(head).encode() + b"\n" + bytes(i % 251 for i in range(size)))
        run("encode", folder / "p.mha", folder / "v.tvl", "-y")

    write("DimSize = 6 4", "Offset = 60 70", "ElementSpacing = 0.5 0.75")
    check_place(folder, "two axes", [[-0.5, 0, 0, -60], [0, -0.75, 0, -70], [0, 0, 1, 0]])
    write("DimSize = 6 4", "TransformMatrix = 0 1 -1 0", "Offset = 60 70", "ElementSpacing = 0.5 0.75")
    check_place(folder, "two axes, turned", [[0, 0.75, 0, -60], [-0.5, 0, 0, -70], [0, 0, 1, 0]])
    write("DimSize = 6 4 2", "Position = 1 2 3", "ElementSpacing = 0.5 0.75 2")
    check_place(folder, "no matrix", [[-0.5, 0, 0, -1], [0, -0.75, 0, -2], [0, 0, 2, 3]])
    write("DimSize = 6 4 2", "Orientation = 0 1 0 1 0 0 0 0 1", "ElementSpacing = 0.5 0.75 2")
    check_place(folder, "no offset", [[0, -0.75, 0, 0], [-0.5, 0, 0, 0], [0, 0, 2, 0]])


def test_vectors(folder):
    """Voxels of more than can be coded together: their values are the first axis. Fewer bits stay values."""
    for channels, kind, code in ((3, "MET_FLOAT", "f"), (7, "MET_UCHAR", "B"), (2, "MET_DOUBLE", "d")):
        count = channels * 6 * 4 * 5
        data = struct.pack(f"<{count}{code}", *((i * i % 251) + (0.37 * i if code != "B" else 0) for i in range(count)))
        head = ["ObjectType = Image", "NDims = 3", "BinaryData = True", "DimSize = 6 4 5", "Offset = 1 2 3", "ElementSpacing = 0.5 0.75 2"]
        head += [f"ElementNumberOfChannels = {channels}", f"ElementType = {kind}", "ElementDataFile = LOCAL"]
        (folder / "f.mha").write_bytes("\n".join(head).encode() + b"\n" + data)
        said = run("encode", folder / "f.mha", folder / "v.tvl", "-y")
        check(f"the first axis has {channels} values and is none of space" in said, f"{channels} of {kind}: {said}")
        check(f"{channels}x6x4x5 " in said, f"{channels} of {kind}, the size: {said}")
        run("verify", folder / "v.tvl", "--against", folder / "f.mha")
        check("identical" in run("compare", folder / "v.tvl", folder / "f.mha"), f"{channels} of {kind}: compare")
        run("decode", folder / "v.tvl", folder / "again.mha", "-y")
        check((folder / "again.mha").read_bytes() == (folder / "f.mha").read_bytes(), f"{channels} of {kind}: another file")
        other = run("decode", folder / "v.tvl", folder / "v.nrrd", "-y")
        check("is none of space" in other, f"{channels} of {kind}, as NRRD: {other}")
        text, _, packed = (folder / "v.nrrd").read_bytes().partition(b"\n\n")
        same = f"sizes: {channels} 6 4 5".encode() in text and gzip.decompress(packed) == data
        check(same, f"{channels} of {kind}: other voxels in NRRD")
        check(nifti_matrix_of(folder) is None, f"{channels} of {kind}: a place")
    # Whole numbers of few bits, though the type has more.
    data = struct.pack("<360f", *(i % 200 for i in range(360)))
    head[6:8] = ["ElementNumberOfChannels = 3", "ElementType = MET_FLOAT"]
    (folder / "f.mha").write_bytes("\n".join(head).encode() + b"\n" + data)
    said = run("encode", folder / "f.mha", folder / "v.tvl", "-y")
    check("6x4x5 float32" in said and "none of space" not in said, f"few bits: {said}")


def nifti_matrix_of(folder):
    run("decode", folder / "v.tvl", folder / "v.nii", "-y")
    return nifti_matrix(folder / "v.nii")


def test_nrrd(folder):
    def write(*lines, sizes="6 4 2"):
        axes = len(sizes.split())
        head = ["NRRD0004", "type: uint8", f"dimension: {axes}", *lines, f"sizes: {sizes}", "encoding: raw"]
        size = math.prod(int(v) for v in sizes.split())
        (folder / "p.nrrd").write_bytes("\n".join(head).encode() + b"\n\n" + bytes(i % 251 for i in range(size)))
        run("encode", folder / "p.nrrd", folder / "v.tvl", "-y")

    place = ["space directions: (2,0,0) (0,3,0) (0,0,4)", "space origin: (5,6,7)"]
    for space, named in (("space: scanner-xyz", False), ("space dimension: 3", False), ("space: right-anterior-superior", True)):
        write(space, *place)
        said = run("decode", folder / "v.tvl", folder / "v.nii", "-y")
        check(("has not the directions and the origin" in said) != named, f"{space}: {said}")
        check((nifti_matrix(folder / "v.nii") is not None) == named, f"{space}: {nifti_matrix(folder / 'v.nii')}")
    check("origin" not in run("decode", folder / "v.tvl", folder / "again.nrrd", "-y"), "a warning for the file itself")
    # Directions without an origin are kept, and what other formats say instead of none is named.
    write("space: right-anterior-superior", place[0])
    said = run("decode", folder / "v.tvl", folder / "v.nii", "-y")
    check("no 'space origin'" in said and "has not the directions" not in said, f"no origin: {said}")
    wanted = [[2, 0, 0, 0], [0, 3, 0, 0], [0, 0, 4, 0]]
    check(nifti_matrix(folder / "v.nii") == wanted, f"no origin: {nifti_matrix(folder / 'v.nii')}")
    # The step of time, through MetaImage and NRRD with a place.
    (folder / "t.mha").write_bytes(b"ObjectType = Image\nNDims = 4\nBinaryData = True\nDimSize = 6 4 2 3\nOffset = 1 2 3 0\n"
                                   b"ElementSpacing = 1 1 1 2.5\nElementType = MET_UCHAR\nElementDataFile = LOCAL\n" + bytes(144))  # fmt: skip
    run("encode", folder / "t.mha", folder / "v.tvl", "-y")
    run("decode", folder / "v.tvl", folder / "t.nrrd", "-y")
    run("encode", folder / "t.nrrd", folder / "v.tvl", "-y")
    run("decode", folder / "v.tvl", folder / "t.nii", "-y")
    step = struct.unpack_from("<f", (folder / "t.nii").read_bytes(), 76 + 16)[0]
    check(step == 2.5, f"the step of time is {step} behind NRRD, not 2.5")
    check(nifti_matrix(folder / "t.nii") is not None, "the place behind NRRD")


def test_nrrd_of_values(folder):
    """Diffusion: a first axis of more values than a voxel has is none of space, which is said. Four are a voxel's."""
    for count, kinds in ((7, "list domain domain domain"), (7, ""), (4, "list domain domain domain"), (1, "list domain domain domain")):
        head = ["NRRD0005", "type: uint8", "dimension: 4", "space: right-anterior-superior", f"sizes: {count} 5 4 3",
                "space directions: none (2,0,0) (0,2,0) (0,0,3)", "space origin: (1,2,3)", "encoding: raw"]  # fmt: skip
        head += [f"kinds: {kinds}"] if kinds else []
        data = bytes(i % 251 for i in range(60 * count))
        (folder / "d.nrrd").write_bytes("\n".join(head).encode() + b"\n\n" + data)
        said = run("encode", folder / "d.nrrd", folder / "v.tvl", "-y")
        other = run("decode", folder / "v.tvl", folder / "d.nii" if count != 4 else folder / "d.raw", "-y")
        for text in (said, other):
            check(("the first axis has 7 values and is none of space" in text) == (count == 7), f"{count} values, {kinds}: {text}")
        check("not named as" not in other or count == 1, f"{count} values: the space is named: {other}")
        run("decode", folder / "v.tvl", folder / "again.nrrd", "-y")
        check((folder / "again.nrrd").read_bytes() == (folder / "d.nrrd").read_bytes(), f"{count} values: another file")
    # Values along a line, such as a map of colours, stay a picture of two axes.
    for kinds in ("3-vector space", "RGB-color domain", "space space"):
        head = ["NRRD0004", "type: float", "dimension: 2", "space dimension: 1", "sizes: 3 40", f"kinds: {kinds}"]
        head += ["space directions: " + ("none (0.25)" if kinds != "space space" else "(1) (0.25)"), "endian: little", "encoding: raw"]
        (folder / "d.nrrd").write_bytes("\n".join(head).encode() + b"\n\n" + struct.pack("<120f", *range(120)))
        said = run("encode", folder / "d.nrrd", folder / "v.tvl", "-y")
        check("3x40x1 float32" in said, f"values along a line: {said}")
        other = run("decode", folder / "v.tvl", folder / "d.nii", "-y")
        for text in (said, other):
            told = "the first axis has 3 values and is none of space" in text
            check(told == (kinds != "space space"), f"values along a line, {kinds}: {text}")
    # Values between the axes of space: the space is named, and the remark says what the matter is.
    head = ["NRRD0005", "type: uint8", "dimension: 4", "space: left-posterior-superior", "sizes: 5 4 2 3",
            "space directions: (2,0,0) (0,2,0) none (0,0,3)", "space origin: (1,2,3)", "encoding: raw"]  # fmt: skip
    (folder / "d.nrrd").write_bytes("\n".join(head).encode() + b"\n\n" + bytes(120))
    said = run("encode", folder / "d.nrrd", folder / "v.tvl", "-y")
    other = run("decode", folder / "v.tvl", folder / "d.nii", "-y")
    for text in (said, other):
        check("axis 3 has values and stands among those of space" in text and "not named as" not in text, f"between: {text}")
    # Where no axis has a direction, kinds alone say what the first one is.
    of_values = ("3-color", "RGB-color", "RGBcolor", "RGB", "HSV", "rgb", "Vector", "3-gradient", "3-normal", "point", "normal", "list")
    cases = [("space space space", "3x5x4, uint8"), ("", "3x5x4, uint8"), ("??? space space", "3x5x4, uint8")]
    for kinds, size in cases + [(f"{kind} domain domain", "5x4x1") for kind in of_values]:
        head = ["NRRD0005", "type: uint8", "dimension: 3", "sizes: 3 5 4", "space dimension: 3", "space directions: none none none"]
        head += ["encoding: raw", *([f"kinds: {kinds}"] if kinds else [])]
        (folder / "d.nrrd").write_bytes("\n".join(head).encode() + b"\n\n" + bytes(range(60)))
        said = run("encode", folder / "d.nrrd", folder / "v.tvl", "-y") + run("info", folder / "v.tvl")
        check(size in said and "none of space" not in said, f"no directions, {kinds}: {said}")


for test in (test_dicom, test_metaimage, test_vectors, test_nrrd, test_nrrd_of_values):
    with tempfile.TemporaryDirectory() as folder:
        test(Path(folder))
if program.failures:
    sys.exit(1)
print("places came back")
