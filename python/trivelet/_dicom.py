"""Place, spacing and scale of DICOM files whose headers a stream keeps: the rules of io/volume/dicom_series.cpp, for
files that stand in their order already. They are here once more because the C interface knows streams and no files.
tests/python/python_dicom_test.py compares the two. Source: PS3.5 7 (data set encoding), PS3.3 C.7.6.2 and C.7.6.16
(planes)."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass, field, replace
from typing import Any, Iterator, NamedTuple, Optional

import numpy as np

from . import _dicom_times
from ._dicom_times import Times

_SAME = 1e-3  # tolerance in millimetres, and in components of directions
_UNDEFINED = 0xFFFFFFFF
_MAX_DEPTH = 32
_LONG = ("OB", "OW", "OF", "OD", "OL", "OV", "SQ", "UC", "UR", "UT", "UN", "SV", "UV")
_ITEM, _ITEM_END, _SEQUENCE_END = 0xFFFEE000, 0xFFFEE00D, 0xFFFEE0DD
# Plane position, orientation, pixel measures, scale; MR timing, echo, cardiac synchronization, frame content, time
_GROUPS = (0x00209113, 0x00209116, 0x00289110, 0x00289145, 0x00189112, 0x00189114, 0x00189118, 0x00209111, 0x00209310)


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
    times: Times = Times()

    def has_place(self) -> bool:
        return len(self.orientation) == 6 and len(self.position) == 3

    def normal(self) -> Any:
        return np.cross(self.orientation[:3], self.orientation[3:])


@dataclass
class _File:
    plane: _Plane = field(default_factory=_Plane)
    instance: str = ""
    number: float = 0
    frames: int = 1
    offsets: tuple[float, ...] = ()
    places: list[tuple[float, ...]] = field(default_factory=list)
    frame_times: list[Times] = field(default_factory=list)
    date: str = ""
    time: str = ""
    is_3d: bool = False
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

    def binary_real(self, e: _Element) -> float:
        return float(struct.unpack_from(self.order + "d", self.data, e.at)[0]) if e.length == 8 else math.nan


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
    elif e.tag in _dicom_times.FIELDS:
        name, otherwise, is_binary = _dicom_times.FIELDS[e.tag]
        value = 1e-3 * (data.binary_real(e) if is_binary else data.real(e, otherwise))
        plane.times = plane.times._replace(**{name: value})
    elif e.tag == _dicom_times.OFFSET:
        plane.times = plane.times._replace(offset=data.binary_real(e))
    elif e.tag in _dicom_times.ACQUIRED:
        plane.times = plane.times._replace(acquired=_dicom_times.seconds_of_date_time(data.text(e)))


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
            file.frame_times.append(frame.times)
            file.one_orientation &= frame.orientation == file.plane.orientation
            file.one_scale &= (frame.slope, frame.intercept) == (file.plane.slope, file.plane.intercept)


def _read(head: bytes) -> _File:
    data, file = _DataSet(head), _File()
    for e in data.elements(data.start, len(head)):
        if e.tag in (0x7FE00008, 0x7FE00009, 0x7FE00010):
            break
        if e.tag == 0x00080018:
            file.instance = data.text(e)
        elif e.tag == 0x00200013:
            file.number = data.real(e, 0)
        elif e.tag == 0x00280008:
            file.frames = max(1, int(data.real(e, 1)))
        elif e.tag == 0x3004000C:
            file.offsets = data.numbers(e)
        elif e.tag == 0x00080022:
            file.date = data.text(e)
        elif e.tag == 0x00080032:
            file.time = data.text(e)
        elif e.tag == 0x00180023:
            file.is_3d = data.text(e) == "3D"
        elif e.tag in (0x52009229, 0x52009230):
            _functional_groups(data, e, file)
        else:
            _set_plane(data, e, file.plane)
    acquired = _dicom_times.seconds_of_date_and_time(file.date, file.time)
    file.plane.times, *file.frame_times = (
        t._replace(acquired=acquired) if math.isnan(t.acquired) else t for t in (file.plane.times, *file.frame_times)
    )
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


def _same_places(a: _File, b: _File) -> bool:
    return (
        a.frames == b.frames and a.one_orientation == b.one_orientation and _near(a.offsets, b.offsets)
        and (not a.offsets or _near(a.plane.position, b.plane.position))
        and len(a.places) == len(b.places) and all(map(_near, a.places, b.places))
    )  # fmt: skip


def _leading(files: list[_File]) -> list[_File]:
    """Without those that stand behind: of another plane, or copies."""
    seen: set[Any] = set()
    plane = files[0].plane
    for count, f in enumerate(files):
        picture = (f.instance, f.number, f.plane.position)
        same = _near(f.plane.orientation, plane.orientation) and _near(f.plane.spacing, plane.spacing)
        if not same or (f.instance and picture in seen):
            return files[:count]
        seen.add(picture)
    return files


def _are_volumes(files: list[_File]) -> bool:
    first = files[0]
    has_places = first.frames > 1 and first.frames in (len(first.places), len(first.offsets))
    return has_places and all(_same_places(f, first) for f in files)


def _step_of_files_of_frames(files: list[_File]) -> Optional[Any]:
    """Each file is one volume or several, or all are parts of one."""
    first, files = files[0], _leading(files)
    if len(files) == 1 or _are_volumes(files):
        return _step_of_frames(first)
    places: list[tuple[float, ...]] = []
    for f in files:
        own = [f.plane.position] if f.frames == 1 and f.plane.has_place() else []
        places += f.places if len(f.places) == f.frames else own
    all_frames = sum(f.frames for f in files)
    one = all(f.one_orientation for f in files)
    step = _step_of_frames(replace(first, frames=all_frames, places=places, offsets=(), one_orientation=one))
    if step is not None:
        return step
    same = next((n for n, f in enumerate(files) if not _same_places(f, first)), len(files))
    return _step_of_frames(first) if 2 * same * first.frames > all_frames and _are_volumes(files[:same]) else None


def _time_step(files: list[_File], volumes: int) -> float:
    if volumes < 2:
        return 1.0
    frames = sum(f.frames for f in files)
    wanted = [v * (frames // volumes) for v in range(volumes)]
    times: list[Times] = []
    at = 0
    for f in files:
        for frame in wanted[len(times) :]:
            if frame >= at + f.frames:
                break
            own = frame - at
            times.append(f.frame_times[own] if own < len(f.frame_times) else f.plane.times)
        at += f.frames
    return _dicom_times.time_step(times, files[0].is_3d) if len(times) == volumes else 1.0


def place_of(heads: list[bytes], volumes: int = 1) -> Optional[Place]:
    """None if a header cannot be read. `volumes`: along the fourth axis, for the time between them."""
    try:
        files = [_read(head) for head in heads]
    except (struct.error, ValueError, OverflowError, RecursionError):
        return None
    plane = files[0].plane
    if all(f.frames == 1 for f in files):
        step = _step_of_files(files)
    else:
        step = _step_of_files_of_frames(files)
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
    return Place((columns, rows, distance, _time_step(files, volumes)), affine, None if own else scale)
