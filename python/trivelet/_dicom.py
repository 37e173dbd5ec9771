"""Place, spacing and scale of DICOM files whose headers a stream keeps: the rules of io/volume/dicom_series.cpp, for
files that stand in their order already. Source: PS3.5 7 (data set encoding), PS3.3 C.7.6.2 and C.7.6.16 (planes)."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass, field, replace
from typing import Any, Iterator, NamedTuple, Optional

import numpy as np

_SAME = 1e-3  # tolerance in millimetres, and in components of directions
_UNDEFINED = 0xFFFFFFFF
_MAX_DEPTH = 32
_LONG = ("OB", "OW", "OF", "OD", "OL", "OV", "SQ", "UC", "UR", "UT", "UN", "SV", "UV")
_ITEM, _ITEM_END, _SEQUENCE_END = 0xFFFEE000, 0xFFFEE00D, 0xFFFEE0DD
_GROUPS = (0x00209113, 0x00209116, 0x00289110, 0x00289145)  # plane position, orientation, pixel measures, scale


class Place(NamedTuple):
    spacing: tuple[float, float, float, float]  # along x, y, z and volumes
    affine: Optional[np.ndarray[Any, Any]]  # from x, y, z to millimetres to the right, anterior, superior
    scale: Optional[tuple[float, float]]  # slope and intercept; None if slices have their own


@dataclass
class _Plane:
    slope: float = 1
    intercept: float = 0
    thickness: float = 0
    between: float = 0
    position: tuple[float, ...] = ()
    orientation: tuple[float, ...] = ()
    spacing: tuple[float, ...] = ()

    def has_place(self) -> bool:
        return len(self.orientation) == 6 and len(self.position) == 3

    def normal(self) -> Any:
        return np.cross(self.orientation[:3], self.orientation[3:])


@dataclass
class _File:
    plane: _Plane = field(default_factory=_Plane)
    instance: str = ""
    frames: int = 1
    offsets: tuple[float, ...] = ()
    places: list[tuple[float, ...]] = field(default_factory=list)
    one_orientation: bool = True
    one_scale: bool = True


class _Element(NamedTuple):
    tag: int
    vr: str
    at: int
    length: int


class _DataSet:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.explicit, self.order = True, "<"
        self.start = 132 if data[128:132] == b"DICM" else 0
        syntax = ""
        while data[self.start : self.start + 2] == b"\2\0":
            e = self.element(self.start)
            if e.tag == 0x00020010:
                syntax = self.text(e)
            self.start = e.at + e.length
        first = data[self.start : self.start + 6]
        self.explicit = len(first) == 6 and first[4:6].isalpha() and first[4:6].isupper()
        if syntax == "1.2.840.10008.1.2.2" or (not syntax and first[:2] == b"\0\x08"):
            self.order = ">"

    def element(self, at: int) -> _Element:
        group, number = struct.unpack_from(self.order + "HH", self.data, at)
        tag = group << 16 | number
        if not self.explicit or group == 0xFFFE:
            return _Element(tag, "", at + 8, struct.unpack_from(self.order + "I", self.data, at + 4)[0])
        vr = self.data[at + 4 : at + 6].decode("latin-1")
        if vr in _LONG:
            return _Element(tag, vr, at + 12, struct.unpack_from(self.order + "I", self.data, at + 8)[0])
        return _Element(tag, vr, at + 8, struct.unpack_from(self.order + "H", self.data, at + 6)[0])

    def end_of(self, e: _Element, depth: int = 0) -> int:
        if e.length != _UNDEFINED:
            return e.at + e.length
        if depth > _MAX_DEPTH:
            raise ValueError("sequences nested too deep")
        was_explicit = self.explicit
        self.explicit = self.explicit and e.vr != "UN"  # such a sequence holds implicit elements
        last, at = _ITEM_END if e.tag == _ITEM else _SEQUENCE_END, e.at
        while (inner := self.element(at)).tag != last:
            at = self.end_of(inner, depth + 1)
        self.explicit = was_explicit
        return inner.at

    def elements(self, at: int, end: int) -> Iterator[_Element]:
        while at + 8 <= end:
            e = self.element(at)
            if e.tag in (_ITEM_END, _SEQUENCE_END):
                return
            yield e
            at = self.end_of(e)

    def inside(self, e: _Element) -> Iterator[_Element]:
        return self.elements(e.at, self.end_of(e))

    def text(self, e: _Element) -> str:
        return self.data[e.at : e.at + e.length].decode("latin-1").strip("\0 ")

    def numbers(self, e: _Element) -> tuple[float, ...]:
        try:
            found = tuple(float(part) for part in self.text(e).split("\\"))
        except ValueError:
            return ()
        return found if all(map(math.isfinite, found)) else ()

    def real(self, e: _Element, otherwise: float) -> float:
        return (self.numbers(e) or (otherwise,))[0]


def _set_plane(data: _DataSet, e: _Element, plane: _Plane) -> None:
    if e.tag == 0x00180050:
        plane.thickness = data.real(e, 0)
    elif e.tag == 0x00180088:
        plane.between = data.real(e, 0)
    elif e.tag == 0x00200032:
        plane.position = data.numbers(e)
    elif e.tag == 0x00200037:
        plane.orientation = data.numbers(e)
    elif e.tag == 0x00280030:
        plane.spacing = data.numbers(e)
    elif e.tag == 0x00281052:
        plane.intercept = data.real(e, 0)
    elif e.tag == 0x00281053:
        plane.slope = data.real(e, 1)


def _functional_groups(data: _DataSet, groups: _Element, file: _File) -> None:
    common = file.plane
    for number, item in enumerate(data.inside(groups)):
        frame = replace(common)
        for group in data.inside(item):
            if group.tag in _GROUPS:
                for inner in data.inside(group):
                    for e in data.inside(inner):
                        _set_plane(data, e, frame)
        if number == 0:
            file.plane = frame
        if groups.tag == 0x52009230:
            if len(frame.position) == 3 and len(file.places) < file.frames:
                file.places.append(frame.position)
            file.one_orientation &= frame.orientation == file.plane.orientation
            file.one_scale &= (frame.slope, frame.intercept) == (file.plane.slope, file.plane.intercept)


def _read(head: bytes) -> _File:
    data, file = _DataSet(head), _File()
    for e in data.elements(data.start, len(head)):
        if e.tag in (0x7FE00008, 0x7FE00009, 0x7FE00010):
            break
        if e.tag == 0x00080018:
            file.instance = data.text(e)
        elif e.tag == 0x00280008:
            file.frames = max(1, int(data.real(e, 1)))
        elif e.tag == 0x3004000C:
            file.offsets = data.numbers(e)
        elif e.tag in (0x52009229, 0x52009230):
            _functional_groups(data, e, file)
        else:
            _set_plane(data, e, file.plane)
    return file


def _near(a: tuple[float, ...], b: tuple[float, ...]) -> bool:
    return len(a) == len(b) and all(abs(x - y) <= _SAME for x, y in zip(a, b))


def _usual_gap(gaps: Any) -> float:
    """The most frequent distance; of several the one nearest to the middle of all."""
    gaps = np.sort(gaps)
    alike = np.searchsorted(gaps, 1.01 * gaps, "right") - np.searchsorted(gaps, 0.99 * gaps, "left")
    from_middle = np.abs(np.arange(len(gaps)) - len(gaps) // 2)
    return float(gaps[min(range(len(gaps)), key=lambda i: (-alike[i], from_middle[i]))])


def _step_of_files(files: list[_File]) -> Optional[Any]:
    """From slice to slice, of the usual distance: of the first files, up to one whose place does not follow."""
    first = files[0].plane
    if not first.has_place():
        return None
    normal, found = first.normal(), [np.array(first.position)]
    for file in files[1:]:
        plane = file.plane
        same = _near(plane.orientation, first.orientation) and _near(plane.spacing, first.spacing)
        if not same or not plane.has_place() or (plane.position - found[-1]) @ normal <= _SAME:
            break
        found.append(np.array(plane.position))
    steps = np.diff(found, axis=0)
    if not len(steps):
        return normal * _thickness(first) if np.linalg.norm(normal) > _SAME else None
    gaps = steps @ normal
    usual = _usual_gap(gaps)
    like = np.sort(steps[np.abs(gaps - usual) <= 0.01 * usual], axis=0)
    step, even = like[len(like) // 2], (found[-1] - found[0]) / len(steps)
    # Of rounded positions it is a part of the way to the last one.
    off = lambda step: np.linalg.norm(found - found[0] - np.outer(np.arange(len(found)), step), axis=1).max()
    return even if off(step) > _SAME and off(even) <= 0.01 * usual else step


def _step_of_frames(file: _File) -> Optional[Any]:
    plane, n = file.plane, file.frames
    if plane.has_place() and len(file.offsets) == n:  # dose grids: along the normal
        steps = np.diff(file.offsets)
        regular = abs(steps[0]) > _SAME and np.all(np.abs(steps - steps[0]) <= _SAME + 0.01 * abs(steps[0]))
        return plane.normal() * steps[0] if regular else None
    if len(file.places) != n or not file.one_orientation or len(plane.orientation) != 6:
        return None
    places = np.array(file.places)
    again = np.linalg.norm(places - places[0], axis=1) <= _SAME
    slices = int(np.argmax(again[1:])) + 1 if again[1:].any() else n
    if n % slices or np.linalg.norm(places - np.tile(places[:slices], (n // slices, 1)), axis=1).max() > _SAME:
        return None
    if slices < 2:
        normal = plane.normal()
        return normal * _thickness(plane) if np.linalg.norm(normal) > _SAME else None
    step = (places[slices - 1] - places[0]) / (slices - 1)
    due = places[0] + np.outer(np.arange(slices), step)
    even = np.linalg.norm(places[:slices] - due, axis=1).max() <= _SAME + 0.01 * np.linalg.norm(step)
    return step if even else None


def _thickness(plane: _Plane) -> float:
    return plane.between if plane.between > 0 else plane.thickness if plane.thickness > 0 else 1.0


def _same_places(files: list[_File]) -> bool:
    """Each file is then a volume, or several. Copies of a file are none."""
    first, instances = files[0], [f.instance for f in files if f.instance]
    if len(instances) != len(set(instances)):
        return False
    return all(
        f.frames == first.frames and f.one_orientation == first.one_orientation and _near(f.offsets, first.offsets)
        and (not f.offsets or _near(f.plane.position, first.plane.position))
        and len(f.places) == len(first.places) and all(map(_near, f.places, first.places))
        for f in files
    )  # fmt: skip


def place_of(heads: list[bytes]) -> Optional[Place]:
    """None if a header cannot be read."""
    try:
        files = [_read(head) for head in heads]
    except (struct.error, ValueError, OverflowError, RecursionError):
        return None
    plane = files[0].plane
    if all(f.frames == 1 for f in files):
        step = _step_of_files(files)
    else:
        step = _step_of_frames(files[0]) if _same_places(files) else None
    corner = files[0].places[0] if files[0].places else plane.position
    rows, columns = plane.spacing if len(plane.spacing) == 2 and min(plane.spacing) > 0 else (1.0, 1.0)
    distance = _thickness(plane)
    affine = None
    if step is not None:
        if not np.array_equal(step, plane.normal() * distance):  # else it is the thickness of one slice
            distance = abs(float(step @ plane.normal())) or float(np.linalg.norm(step))
        across, down = np.array(plane.orientation).reshape(2, 3)
        affine = np.eye(4)
        affine[:3] = np.column_stack([across * columns, down * rows, step, corner])
        affine[:2] *= -1  # DICOM counts to the left and to the back
        if not np.isfinite(affine).all() or np.linalg.matrix_rank(affine) < 4:
            affine = None
    scale = (plane.slope, plane.intercept)
    own = any(not f.one_scale or (f.plane.slope, f.plane.intercept) != scale for f in files)
    return Place((columns, rows, distance, 1.0), affine, None if own else scale)
