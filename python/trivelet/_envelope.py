"""The header of the original file, which a stream keeps (`volh` of codec/FORMAT.md)."""

from __future__ import annotations

import math
import re
import struct
import zlib
from typing import Any, NamedTuple, Optional

import numpy as np

from . import _dicom
from .errors import StreamError, UnsupportedError

_MAX_BYTES = 1 << 28  # the format's


class File(NamedTuple):
    name: str
    head: bytes  # before the scalars
    tail: bytes


class Envelope(NamedTuple):
    format: str  # "nifti-1", "nifti-2", "nrrd", "metaimage", "dicom", "raw"
    files: list[File]


class _Fields:
    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def take(self, size: int) -> bytes:
        if size > len(self._data) - self._at:
            raise StreamError("the header of the volume's file ends early")
        self._at += size
        return self._data[self._at - size : self._at]

    def varint(self) -> int:
        value = 0
        for shift in range(0, 64, 7):
            byte = self.take(1)[0]
            value |= (byte & 127) << shift
            if byte < 128:
                return value
        raise StreamError("the header of the volume's file has a number of more than 64 bits")

    def bytes(self) -> bytes:
        return self.take(self.varint())


def parse(data: bytes) -> Optional[Envelope]:
    """None if the stream has none."""
    if not data:
        return None
    if data[0] != 1 or len(data) < 2 or data[1] > 1:
        raise UnsupportedError(f"the header of the volume's file is of version and packing {[*data[:2]]}; known: 1, 0 or 1")
    plain = data[2:]
    if data[1] == 1:
        inflater = zlib.decompressobj()
        try:
            plain = inflater.decompress(plain, _MAX_BYTES + 1)
        except zlib.error as error:
            raise StreamError(f"the header of the volume's file: {error}") from error
        if len(plain) > _MAX_BYTES or not inflater.eof:
            raise StreamError(f"the header of the volume's file is cut or of more than {_MAX_BYTES} bytes")
    fields = _Fields(plain)
    name = fields.bytes().decode(errors="replace")
    files = []
    for _ in range(fields.varint()):
        file = fields.bytes().decode(errors="replace")
        flags = fields.varint()  # how it was packed, and how samples lie in it
        fields.varint()  # scalars in it
        files.append(File(file, fields.bytes(), fields.bytes()))
        if flags & 0xC0:
            fields.bytes()  # bits of samples outside their values
    return Envelope(name, files)


def dicom_place(envelope: Optional[Envelope], volumes: int = 1) -> Optional[_dicom.Place]:
    """None for other files, and for headers that cannot be read."""
    if envelope is None or envelope.format != "dicom" or not envelope.files:
        return None
    return _dicom.place_of([file.head for file in envelope.files], volumes)


class _Nifti(NamedTuple):
    reals: str  # how a real number is stored, with its order
    at: dict[str, int]
    head: bytes

    def numbers(self, name: str, count: int) -> tuple[float, ...]:
        kind = "hi"[self.reals[1] == "d"] if name.endswith("code") else self.reals[1]
        return struct.unpack_from(f"{self.reals[0]}{count}{kind}", self.head, self.at[name])


def _nifti_of(envelope: Envelope) -> Optional[_Nifti]:
    head = envelope.files[0].head
    if envelope.format == "nifti-1":
        order = "<" if 1 <= struct.unpack_from("<h", head, 40)[0] <= 7 else ">"
        at = {"pixdim": 76, "scale": 112, "qform_code": 252, "sform_code": 254, "quatern": 256, "srow": 280}
        return _Nifti(order + "f", at, head)
    if envelope.format == "nifti-2":
        order = "<" if 1 <= struct.unpack_from("<q", head, 16)[0] <= 7 else ">"
        at = {"pixdim": 104, "scale": 176, "qform_code": 344, "sform_code": 348, "quatern": 352, "srow": 400}
        return _Nifti(order + "d", at, head)
    return None


def is_nifti(envelope: Optional[Envelope]) -> bool:
    """False of Analyze, whose streams say nifti-1: it has no magic, and an origin where NIfTI has codes of matrices."""
    if envelope is None or not envelope.files:
        return False
    magic = envelope.files[0].head[344:348]
    return envelope.format == "nifti-2" or (envelope.format == "nifti-1" and magic != bytes(4))


def affine_of(envelope: Optional[Envelope]) -> Optional[np.ndarray[Any, Any]]:
    """From x, y, z to the coordinates of NIfTI; of NIfTI and DICOM, None of other files."""
    if place := dicom_place(envelope):
        return place.affine
    try:
        nifti = _nifti_of(envelope) if envelope is not None and is_nifti(envelope) else None
        return _nifti_affine(nifti) if nifti else None
    except struct.error:
        return None


def _nifti_affine(nifti: _Nifti) -> Optional[np.ndarray[Any, Any]]:
    affine = np.eye(4)
    if nifti.numbers("sform_code", 1)[0] > 0:
        affine[:3] = np.reshape(nifti.numbers("srow", 12), (3, 4))
    elif nifti.numbers("qform_code", 1)[0] > 0:
        b, c, d, *corner = nifti.numbers("quatern", 6)
        squared = 1 - b * b - c * c - d * d
        a = math.sqrt(squared) if squared >= 1e-7 else 0.0  # half a turn; the format's library has this limit
        if a == 0 and (length := math.sqrt(b * b + c * c + d * d)) > 0:
            b, c, d = b / length, c / length, d / length
        flip, *zooms = nifti.numbers("pixdim", 4)
        rotation = [
            [a * a + b * b - c * c - d * d, 2 * (b * c - a * d), 2 * (b * d + a * c)],
            [2 * (b * c + a * d), a * a + c * c - b * b - d * d, 2 * (c * d - a * b)],
            [2 * (b * d - a * c), 2 * (c * d + a * b), a * a + d * d - b * b - c * c],
        ]
        steps = [abs(z) or 1.0 for z in zooms]
        affine[:3, :3] = np.array(rotation) * [steps[0], steps[1], -steps[2] if flip < 0 else steps[2]]
        affine[:3, 3] = corner
    else:
        return None
    return affine if np.isfinite(affine).all() else None


def scale_of(envelope: Optional[Envelope]) -> Optional[tuple[float, float]]:
    """Slope and intercept that the header gives stored values; None if slices of DICOM have their own."""
    if place := dicom_place(envelope):
        return place.scale
    slope, intercept = 1.0, 0.0
    if envelope is None or not envelope.files:
        return slope, intercept
    try:
        if nifti := _nifti_of(envelope):
            slope, intercept = nifti.numbers("scale", 2)
        elif envelope.format == "metaimage":
            names = (rb"ElementToIntensityFunctionSlope", rb"ElementToIntensityFunctionOffset")
            found = [re.search(rb"^" + name + rb"\s*[=:]\s*(\S+)", envelope.files[0].head, re.MULTILINE) for name in names]
            slope, intercept = (float(line[1]) if line else v for line, v in zip(found, (1.0, 0.0)))
    except (struct.error, ValueError):
        return 1.0, 0.0
    return (slope, intercept) if slope and math.isfinite(slope) and math.isfinite(intercept) else (1.0, 0.0)


def _has_values_first(envelope: Envelope, channels: int) -> bool:
    """Of a MetaImage file: the values of a voxel are the first axis of the stream."""
    said = re.search(rb"^ElementNumberOfChannels\s*=\s*(\d+)", envelope.files[0].head, re.MULTILINE)
    return envelope.format == "metaimage" and said is not None and int(said[1]) > 1 == channels


def spacing_of(envelope: Optional[Envelope], volumes: int, channels: int = 1) -> Optional[tuple[float, ...]]:
    """Distance of voxels along x, y, z and volumes, in millimetres or the unit of the file; None if unknown."""
    if envelope is None or not envelope.files:
        return None
    if place := dicom_place(envelope, volumes):
        return place.spacing
    head = envelope.files[0].head
    found: list[float] = []
    try:
        if nifti := _nifti_of(envelope):
            found = [*nifti.numbers("pixdim", 5)[1:]]
        elif envelope.format in ("metaimage", "nrrd"):
            line = re.search(rb"^(?:ElementSpacing\s*=|spacings:)([-+.\deE \t]+)", head, re.MULTILINE | re.IGNORECASE)
            found = [float(number) for number in line[1].split()] if line else []
            if _has_values_first(envelope, channels):
                found = [1.0, *found[:3]]
    except (struct.error, ValueError):
        return None
    return tuple(abs(f) or 1.0 for f in (found + [1.0] * 4)[:4]) if found else None
