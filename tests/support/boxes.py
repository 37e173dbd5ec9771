"""Reads and writes the boxes of a stream, and makes streams with a changed header."""

import struct
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "reference"))
from reference_conventions import crc32c  # noqa: E402


def boxes_of(data: bytes):
    """Type, place and length of each."""
    at = 8
    while at + 16 <= len(data):
        length = int.from_bytes(data[at + 4 : at + 12], "little")
        yield data[at : at + 4], at, length
        at += 16 + length


def with_size(stream: bytes, width: int, height: int) -> bytes:
    """The same stream, but its header says other pictures."""
    data = bytearray(stream)
    for kind, at, length in boxes_of(stream):
        if kind == b"Head":
            fields = at + 16 + 19 + data[at + 16 + 18]  # behind the features and their names
            data[fields + 16 : fields + 24] = struct.pack("<II", width, height)
            end = at + 16 + length - 4
            data[end : end + 4] = crc32c(bytes(data[at + 16 : end])).to_bytes(4, "little")
    return bytes(data)
