"""The header of the original file, which a stream keeps (`volh` of codec/FORMAT.md)."""

from __future__ import annotations

import re
import struct
import zlib
from typing import NamedTuple, Optional

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


def spacing_of(envelope: Optional[Envelope]) -> Optional[tuple[float, ...]]:
    """Distance of voxels along x, y, z and volumes, in millimetres or the unit of the file; None if unknown."""
    if envelope is None or not envelope.files:
        return None
    head = envelope.files[0].head
    found: list[float] = []
    try:
        if envelope.format == "nifti-1":
            order = "<" if 1 <= struct.unpack_from("<h", head, 40)[0] <= 7 else ">"
            found = [*struct.unpack_from(order + "4f", head, 80)]
        elif envelope.format == "nifti-2":
            order = "<" if 1 <= struct.unpack_from("<q", head, 16)[0] <= 7 else ">"
            found = [*struct.unpack_from(order + "4d", head, 112)]
        elif envelope.format in ("metaimage", "nrrd"):
            line = re.search(rb"^(?:ElementSpacing\s*=|spacings:)([-+.\deE \t]+)", head, re.MULTILINE | re.IGNORECASE)
            found = [float(number) for number in line[1].split()] if line else []
    except (struct.error, ValueError):
        return None
    return tuple(abs(f) or 1.0 for f in (found + [1.0] * 4)[:4]) if found else None
