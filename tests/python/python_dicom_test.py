#!/usr/bin/env python3
"""The Python package reads place, spacing, time step and scale from DICOM headers that a stream keeps; the program reads
them by rules of its own. Made series of many kinds, and all layouts of samples of dicom_matrix_test.py: both must say
the same. A sample of all, or with TRIVELET_FULL=1 each.

    python_dicom_test.py path/to/libtrivelet.so.1 path/to/trivelet
"""
import json
import os
import random
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

if len(sys.argv) < 3:
    print(__doc__)
    sys.exit(2)
library, PROGRAM = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
if not library.exists() or not PROGRAM.exists():
    print(f"skipped: {library} or {PROGRAM} was not built")
    sys.exit(77)
os.environ["TRIVELET_LIBRARY"] = str(library)
ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "tests/support"), str(ROOT / "tests/volume")]
try:
    import numpy as np
except ImportError:
    print("skipped: no numpy")
    sys.exit(77)

import program  # noqa: E402
import trivelet  # noqa: E402
from program import check  # noqa: E402

FULL = os.environ.get("TRIVELET_FULL", "0") not in ("", "0")
ROWS, COLUMNS = 4, 6
FLAT, TILTED, SIDE = (1, 0, 0, 0, 1, 0), (0.8, 0.6, 0, -0.48, 0.64, 0.6), (0, 1, 0, 0, 0, -1)
LONG = ("OW", "SQ", "UN", "OB")


class Writer:
    """Elements of one transfer syntax."""

    def __init__(self, explicit: bool, big: bool, undefined: bool) -> None:
        self.explicit, self.order, self.undefined = explicit, ">" if big else "<", undefined

    def element(self, tag: int, vr: str, value) -> bytes:
        if isinstance(value, (tuple, list, np.ndarray)):
            value = "\\".join(f"{v:.10g}" for v in value)
        if vr == "US":
            value = struct.pack(self.order + "H", value)
        elif vr == "FD":
            value = struct.pack(self.order + "d", value)
        elif not isinstance(value, bytes):
            value = str(value).encode()
        value += (b"\0" if vr in ("UI", "OW") else b" ") * (len(value) % 2)
        head = struct.pack(self.order + "HH", tag >> 16, tag & 0xFFFF)
        if not self.explicit:
            return head + struct.pack(self.order + "I", len(value)) + value
        return head + vr.encode() + struct.pack(self.order + ("HI" if vr in LONG else "H"), *([0] if vr in LONG else []), len(value)) + value

    def sequence(self, tag: int, items: list) -> bytes:
        part = lambda e, n: struct.pack(self.order + "HHI", 0xFFFE, e, n)
        if not self.undefined:
            return self.element(tag, "SQ", b"".join(part(0xE000, len(i)) + i for i in items))
        inside = b"".join(part(0xE000, 0xFFFFFFFF) + i + part(0xE00D, 0) for i in items) + part(0xE0DD, 0)
        head = struct.pack(self.order + "HH", tag >> 16, tag & 0xFFFF)
        return head + (b"SQ\0\0" if self.explicit else b"") + b"\xff" * 4 + inside


def places_of(rng: random.Random, count: int, orientation) -> list:
    """Of slices: at equal steps, or with what real series have instead."""
    normal = np.cross(orientation[:3], orientation[3:])
    kind = rng.choice(["even", "even", "tilted", "gap", "rounded", "random", "down", "one"])
    start, step = np.array([-90.5, 20, 5]), rng.choice([0.7, 2.5, 5])
    moves = [step * z for z in range(count)]
    if kind == "gap":
        moves = [m + (step if z >= count // 2 else 0) for z, m in enumerate(moves)]
    elif kind == "rounded":
        moves = [round(m + 0.003 * (z % 2), 3) for z, m in enumerate(moves)]
    elif kind == "random":
        moves = sorted(rng.uniform(0, 30) for _ in range(count))
    elif kind == "down":
        moves = [-m for m in moves]
    elif kind == "one":
        moves = [0.0] * count
    lean = np.array(orientation[3:]) * (0.2 if kind == "tilted" else 0)
    return [start + m * (normal + lean) for m in moves]


def plane(w: Writer, place, orientation, scale, attributes) -> list:
    """Pairs of tags and elements of a slice."""
    found = [(0x00200032, w.element(0x00200032, "DS", place)), (0x00200037, w.element(0x00200037, "DS", orientation))]
    for tag, value in (*attributes, (0x00281052, scale[1]), (0x00281053, scale[0])):
        if value is not None:
            found.append((tag, w.element(tag, "DS", value)))
    return found


def times(w: Writer, kind: str, t: int) -> list:
    step = {"tr": 0, "even": 2, "uneven": 2 + t * t}.get(kind, 2)
    text = lambda seconds: f"{100000 + int(seconds)}.{int(1e6 * (seconds % 1)):06}"
    found = []
    if kind in ("tr", "tr and clock"):
        found.append((0x00180080, w.element(0x00180080, "DS", 2010)))
    if kind in ("even", "uneven", "tr and clock"):
        found.append((0x00080022, w.element(0x00080022, "DA", "20240229")))
        found.append((0x00080032, w.element(0x00080032, "TM", text(step * t))))
    if kind == "date and time":
        found.append((0x0008002A, w.element(0x0008002A, "DT", f"20231231235{8 + t // 30}{2 * t % 60:02}.25+0100")))
    if kind == "trigger":
        found.append((0x00181060, w.element(0x00181060, "DS", 40 * t)))
    if kind == "reference":
        found.append((0x00541300, w.element(0x00541300, "DS", 60000 * t + 30000)))
    if kind == "resolution":
        found.append((0x00200110, w.element(0x00200110, "DS", 45)))
    if kind == "echoes":
        found += [(0x00180080, w.element(0x00180080, "DS", 2000)), (0x00180081, w.element(0x00180081, "DS", 5 + 7 * t))]
    if kind == "tr of 3D":
        found += [(0x00180023, w.element(0x00180023, "CS", "3D")), (0x00180080, w.element(0x00180080, "DS", 8))]
    return found


TIMES = ["none", "tr", "even", "uneven", "tr and clock", "date and time", "trigger", "reference", "resolution", "echoes", "tr of 3D"]


def file_of(w: Writer, instance: int, frames: int, elements: list) -> bytes:
    syntax = "1.2.840.10008.1.2" + (".2" if w.order == ">" else ".1" if w.explicit else "")
    meta = Writer(True, False, False).element(0x00020010, "UI", syntax)
    common = [(0x00080018, w.element(0x00080018, "UI", f"1.2.3.{instance}")), (0x0020000E, w.element(0x0020000E, "UI", "1.2.3")),
              (0x00200013, w.element(0x00200013, "IS", instance)), (0x00280002, w.element(0x00280002, "US", 1)),
              (0x00280010, w.element(0x00280010, "US", ROWS)), (0x00280011, w.element(0x00280011, "US", COLUMNS))]  # fmt: skip
    common += [(tag, w.element(tag, "US", v)) for tag, v in ((0x00280100, 16), (0x00280101, 16), (0x00280102, 15), (0x00280103, 0))]
    if frames > 1:
        common.append((0x00280008, w.element(0x00280008, "IS", frames)))
    pixels = np.random.default_rng(instance).integers(0, 4000, frames * ROWS * COLUMNS).astype(w.order + "u2")
    common.append((0x7FE00010, w.element(0x7FE00010, "OW", pixels.tobytes())))
    inside = w.sequence(0x00081140, [w.element(0x00081150, "UI", "1.2"), b""])  # stands before the place
    every = sorted([*common, *elements, (0x00081140, inside)], key=lambda e: e[0])
    return bytes(128) + b"DICM" + meta + b"".join(e for _, e in every)


def attributes_of(rng: random.Random) -> list:
    """Thickness, distance and spacing, some missing."""
    return [(0x00180050, rng.choice([None, 4, 0])), (0x00180088, rng.choice([None, None, 5.5])),
            (0x00280030, rng.choice([(0.75, 0.5), (0.75, 0.5), None, (0, 0)]))]  # fmt: skip


def slices(rng: random.Random, w: Writer, folder: Path) -> str:
    """A file for each slice, of one or several volumes."""
    volumes, count = rng.choice([1, 1, 2, 4]), rng.choice([1, 2, 5, 8])
    orientation, clock = rng.choice([FLAT, TILTED, SIDE]), rng.choice(TIMES)
    places, attributes = places_of(rng, count, orientation), attributes_of(rng)
    scales = rng.choice([[(1, 0)], [(2.5, -1000)], [(2.5, -1000), (2.5, 7)], [(None, None)], [(1, 5), (2, 5)]])
    odd = rng.random() < 0.2
    for t in range(volumes):
        for z in range(count):
            i = 1 + t * count + z
            turned = FLAT if odd and i == 1 and orientation != FLAT else orientation
            elements = plane(w, places[z], turned, scales[i % len(scales)], attributes) + times(w, clock, t)
            (folder / f"{i:03}.dcm").write_bytes(file_of(w, i, 1, elements))
    return f"slices, {volumes} volumes of {count}, {clock}, scales {scales}, odd {odd}"


def frames(rng: random.Random, w: Writer, folder: Path) -> str:
    """Files of several frames with functional groups, some of them shared by all."""
    files, volumes, count = rng.choice([1, 1, 1, 2, 3]), rng.choice([1, 1, 3]), rng.choice([1, 3, 6])
    orientation, clock = rng.choice([FLAT, TILTED]), rng.choice(["none", "offset", "reference", "date and time", "trigger", "tr"])
    attributes, same = attributes_of(rng), rng.random() < 0.7
    scales = rng.choice([[(1, 0)], [(2.5, -1000)], [(1, 5), (2, 5)], [(None, None)]])
    placed, is_shared = rng.random() < 0.9, rng.random() < 0.5
    place_lists = [places_of(rng, count, orientation) for _ in range(files)]
    for f in range(files):
        places = place_lists[0 if same else f]
        groups = []
        for i in range(volumes * count):
            t, z, scale = i // count, i % count, scales[i % len(scales)]
            own = [w.sequence(0x00209113, [w.element(0x00200032, "DS", places[z])])] if placed else []
            values = [w.element(tag, "DS", v) for tag, v in ((0x00281052, scale[1]), (0x00281053, scale[0])) if v is not None]
            own += [w.sequence(0x00289145, [b"".join(values)])] if values else []
            if clock == "offset":
                own.append(w.sequence(0x00209310, [w.element(0x0020930D, "FD", 1.75 * t)]))
            elif clock == "date and time":
                own.append(w.sequence(0x00209111, [w.element(0x00189074, "DT", f"2024010100{10 + t}00.5")]))
            elif clock == "trigger":
                own.append(w.sequence(0x00189118, [w.element(0x00209153, "FD", 33.0 * t)]))
            groups.append(b"".join(own))
        measures = b"".join(w.element(tag, "DS", v) for tag, v in attributes if v is not None)
        shared = [w.sequence(0x00209116, [w.element(0x00200037, "DS", orientation)]), w.sequence(0x00289110, [measures])]
        if clock == "tr":
            shared.append(w.sequence(0x00189112, [w.element(0x00180080, "DS", 1500)]))
        if not is_shared:
            groups = [b"".join(shared) + g for g in groups]
        elements = [(0x52009229, w.sequence(0x52009229, [b"".join(shared) if is_shared else b""])), (0x52009230, w.sequence(0x52009230, groups))]
        elements += times(w, clock, f) if clock == "reference" else []
        (folder / f"{f}.dcm").write_bytes(file_of(w, f + 1, volumes * count, elements))
    return f"frames, {files} files, {volumes} volumes of {count}, {clock}, placed {placed}, scales {scales}, same {same}"


def dose(rng: random.Random, w: Writer, folder: Path) -> str:
    offsets = rng.choice([[0, 2.5, 5, 7.5], [0, -3, -6, -9], [0, 1, 3, 6], [0.0, 2.5, 5]])
    elements = plane(w, (-90.5, 20, 5), rng.choice([FLAT, TILTED]), (None, None), attributes_of(rng))
    elements.append((0x3004000C, w.element(0x3004000C, "DS", offsets)))
    (folder / "dose.dcm").write_bytes(file_of(w, 1, 4, elements))
    return f"dose, {offsets}"


def compare(what: str, stream: Path) -> None:
    said = json.loads(program.run("info", stream, "--json", "--quiet"))
    info, volume = said["volume"], trivelet.open(stream)
    due = [s for s, n in zip(info["spacing"], (2, 2, 2, volume._full[0])) if n > 1][::-1]
    check(np.allclose(volume.spacing, due, rtol=1e-5), f"{what}: spacing {volume.spacing}, the program says {due}")
    affine = np.array(info["affine"]).reshape(3, 4) if "affine" in info else None
    same = (affine is None) == (volume.affine is None) and (affine is None or np.allclose(volume.affine[:3], affine, atol=1e-5))
    check(same, f"{what}: affine {volume.affine}, the program says {affine}")
    if volume.scale is None:
        has_own = any("from slice to slice" in text for text in said["warnings"])
        check(has_own, f"{what}: slices have scales of their own, of which the program does not know")
    else:
        check(volume.scale == (info["slope"], info["intercept"]), f"{what}: scale {volume.scale}, not {info['slope'], info['intercept']}")


def test_places(seed: int) -> None:
    rng = random.Random(seed)
    w = Writer(*rng.choice([(True, False, False), (True, False, True), (False, False, True), (True, True, False)]))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "in").mkdir()
        what = f"{seed}: " + rng.choice([slices, slices, frames, frames, dose])(rng, w, folder / "in")
        r = subprocess.run([PROGRAM, "encode", folder / "in", folder / "v.tvl", "--preset", "fast"], capture_output=True, text=True)
        check(r.returncode == 0, f"{what}: {r.stderr}")
        if r.returncode == 0:
            compare(what, folder / "v.tvl")


def test_samples() -> None:
    """What Python decodes of each layout of samples is what went into the file."""
    sys.argv[1:] = [str(PROGRAM)]
    import dicom_matrix_test as matrix

    cases = list(matrix.all_cases())
    cases = [c for c in cases if c.syntax not in matrix.TOOLS]
    for number, case in enumerate(cases if FULL else random.Random(4).sample(cases, 60)):
        with tempfile.TemporaryDirectory() as folder:
            values, data = case.make(number)
            path, stream = Path(folder) / "a.dcm", Path(folder) / "a.tvl"
            path.write_bytes(data)
            program.run("encode", path, stream, "--quiet", "--preset", "fast")
            found = trivelet.open(stream)[...]
            check(np.array_equal(np.asarray(found).reshape(values.shape), values), f"{case.name()}: Python has other values")
            compare(case.name(), stream)


if __name__ == "__main__":
    program.path = str(PROGRAM)
    for seed in range(1500 if FULL else 150):
        try:
            test_places(seed)
        except Exception as error:
            program.complain(f"{seed}: {error!r}")
    test_samples()
    print("places, spacing, times and scales are those of the program" if not program.failures else f"{len(program.failures)} failures")
    sys.exit(1 if program.failures else 0)
