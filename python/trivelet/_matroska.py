"""The stream of a video in a Matroska file (codec/FORMAT.md, "In Matroska"), as a file."""

from __future__ import annotations

import bisect
import io
import struct
import threading
from typing import Any, BinaryIO, NamedTuple, Optional

from .errors import StreamError, UnsupportedError

_SIGNATURE = b"\x89TVL\r\n\x1a\n"
_EBML = b"\x1a\x45\xdf\xa3"
_BOX = 16  # bytes of a box before its payload
_SEGMENT, _CLUSTER, _TRACKS, _GROUP = 0x18538067, 0x1F43B675, 0x1654AE6B, 0xA0
_BLOCKS = (0xA3, 0xA1)  # simple block, block
_ENTRY, _NUMBER, _PRIVATE, _ENCODINGS = 0xAE, 0xD7, 0x63A2, 0x6D80
_MOST_OF_TRACKS = 1 << 24  # bytes


class _Element(NamedTuple):
    id: int
    begin: int  # of the payload
    end: Optional[int]  # None: not known


class _Extent(NamedTuple):
    at: int  # place in the stream
    begin: int  # place in the file
    size: int


def is_matroska(file: BinaryIO) -> bool:
    begin = file.seek(0)
    found = file.read(len(_EBML)) == _EBML
    file.seek(begin)
    return found


def _element(file: BinaryIO, at: int) -> Optional[_Element]:
    """None at the end of the file, and for what is no element."""
    file.seek(at)
    data = file.read(12)
    if not data or data[0] < 0x10:
        return None
    length = 9 - data[0].bit_length()
    if len(data) <= length or data[length] == 0:
        return None
    size_length = 9 - data[length].bit_length()
    if len(data) < length + size_length:
        return None
    size = int.from_bytes(data[length : length + size_length], "big") & ((1 << 7 * size_length) - 1)
    begin = at + length + size_length
    unknown = size == (1 << 7 * size_length) - 1
    return _Element(int.from_bytes(data[:length], "big"), begin, None if unknown else begin + size)


def _children(file: BinaryIO, parent: _Element) -> list[_Element]:
    found, at = [], parent.begin
    while parent.end is not None and at < parent.end:
        child = _element(file, at)
        if child is None or child.end is None or child.end > parent.end:
            raise StreamError("the tracks of the Matroska file are damaged")
        found.append(child)
        at = child.end
    return found


def _end_of_head(file: BinaryIO, begin: int, end: int) -> int:
    """Where the signature and the whole boxes before the first GOP end."""
    at = begin + len(_SIGNATURE)
    while at + _BOX <= end:
        file.seek(at)
        header = file.read(_BOX)
        if len(header) < _BOX or header[:4] == b"Gop ":
            break
        size = _BOX + int(struct.unpack_from("<Q", header, 4)[0])
        if at + size > end:
            break
        at += size
    return at


class SharedFile(io.RawIOBase):
    """A file with a place of its own in one that others read, too, under the same lock."""

    def __init__(self, file: Any, lock: threading.Lock) -> None:
        self._file, self._lock, self._place = file, lock, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        if whence == io.SEEK_END:
            with self._lock:
                self._place = self._file.seek(offset, whence)
        else:
            self._place = offset + (self._place if whence == io.SEEK_CUR else 0)
        return self._place

    def readinto(self, buffer: Any) -> Optional[int]:
        with self._lock:
            self._file.seek(self._place)
            part = self._file.read(len(buffer))
        if part is None:
            return None
        if len(part) > len(buffer):
            raise ValueError(f"{self._file!r} gave {len(part)} bytes where {len(buffer)} were wanted")
        buffer[: len(part)] = part
        self._place += len(part)
        return len(part)


class FilmStream(io.RawIOBase):
    """The blocks of the first track of ours, without the heads that they repeat. `film` must be able to seek."""

    def __init__(self, film: Any) -> None:
        self._film = film
        self._extents: list[_Extent] = []
        self._size = self._place = 0
        self._track: Optional[int] = None
        at = 0
        while (element := _element(film, at)) is not None:
            if element.id == _TRACKS:
                self._take_tracks(element)
            elif element.id in _BLOCKS and element.end is not None:
                self._take_block(element)
            if element.id in (_SEGMENT, _CLUSTER, _GROUP):
                at = element.begin
            elif element.end is None:
                break
            else:
                at = element.end
        if self._track is None:
            raise UnsupportedError("the Matroska file has no track of Trivelet")
        self._places: list[int] = [extent.at for extent in self._extents]

    def _add(self, begin: int, end: int) -> None:
        if end > begin:
            self._extents.append(_Extent(self._size, begin, end - begin))
            self._size += end - begin

    def _take_tracks(self, tracks: _Element) -> None:
        if self._track is not None or tracks.end is None or tracks.end - tracks.begin > _MOST_OF_TRACKS:
            return
        for entry in _children(self._film, tracks):
            fields = {field.id: field for field in _children(self._film, entry)} if entry.id == _ENTRY else {}
            private, number = fields.get(_PRIVATE), fields.get(_NUMBER)
            if private is None or private.end is None or number is None or number.end is None:
                continue
            self._film.seek(private.begin)
            begun = self._film.read(40 + len(_SIGNATURE))
            if begun[16:20] != b"TRVL" or begun[40:] != _SIGNATURE:
                continue
            if _ENCODINGS in fields:
                raise UnsupportedError("the track of Trivelet is packed once more")
            self._film.seek(number.begin)
            self._track = int.from_bytes(self._film.read(number.end - number.begin), "big")
            self._add(private.begin + 40, _end_of_head(self._film, private.begin + 40, private.end))
            return

    def _take_block(self, block: _Element) -> None:
        assert block.end is not None
        self._film.seek(block.begin)
        data = self._film.read(11 + len(_SIGNATURE))
        if not data or data[0] == 0:
            return
        length = 9 - data[0].bit_length()
        if int.from_bytes(data[:length], "big") & ((1 << 7 * length) - 1) != self._track or len(data) < length + 3:
            return
        if data[length + 2] & 6:
            raise UnsupportedError("the blocks of Trivelet are laced")
        begin = block.begin + length + 3
        if data[length + 3 :].startswith(_SIGNATURE):
            begin = _end_of_head(self._film, begin, block.end)
        self._add(begin, block.end)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._place

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._place = offset + (self._size if whence == io.SEEK_END else self._place if whence == io.SEEK_CUR else 0)
        return self._place

    def readinto(self, buffer: Any) -> int:
        if self._place >= self._size:
            return 0
        extent = self._extents[bisect.bisect_right(self._places, self._place) - 1]
        within = self._place - extent.at
        self._film.seek(extent.begin + within)
        part = self._film.read(min(len(buffer), extent.size - within))
        buffer[: len(part)] = part
        self._place += len(part)
        return len(part)

    def close(self) -> None:
        self._film.close()
        super().close()
