"""Paths, memory and Python files as sources and sinks of the library."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import io
import os
import selectors
import threading
import weakref
from typing import Any, Union

import numpy as np

from . import _library
from ._handles import Handle

# A path, an object with the buffer protocol, or an open binary file; Python files have no common type.
Readable = Union[str, "os.PathLike[str]", bytes, bytearray, memoryview, Any]
Writable = Union[str, "os.PathLike[str]", Any]


def path_bytes(path: Any) -> bytes:
    encoded = os.fsencode(path)
    return b"./-" if encoded == b"-" else encoded  # which the library takes for standard input


def is_path(given: Any) -> bool:
    return isinstance(given, (str, os.PathLike))


def _wait(file: Any, event: int) -> None:
    """Waits until a non-blocking file can be read or written. Files without a descriptor raise."""
    with selectors.DefaultSelector() as selector:
        try:
            selector.register(file, event)
        except ValueError:
            raise BlockingIOError(errno.EAGAIN, f"{file!r} would block, and has no descriptor to wait for") from None
        selector.select()


def _write_all(file: Any, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        try:
            taken = file.write(rest)
        except BlockingIOError as full:
            taken = full.characters_written  # of a buffer before a file that does not block
            if not taken:
                _wait(file, selectors.EVENT_WRITE)
        else:
            if taken is None and isinstance(file, io.RawIOBase):
                _wait(file, selectors.EVENT_WRITE)
                taken = 0
            elif taken is None:  # a file by its methods alone, which may return nothing
                taken = len(rest)
            elif not 0 < taken <= len(rest):
                raise OSError(f"{file!r} took {taken} of {len(rest)} bytes")
        rest = rest[taken:]


_sources: weakref.WeakSet[Source] = weakref.WeakSet()


class Source:
    """A stream that can be opened repeatedly; openings of one file take turns."""

    def __init__(self, given: Any) -> None:
        if is_path(given):
            os.stat(given)  # raises Python's exception for missing files
        elif not hasattr(given, "read"):
            given = memoryview(given).cast("B")
        self.given = given
        self.lock: contextlib.AbstractContextManager[Any] = contextlib.nullcontext()
        if hasattr(given, "read"):
            self.lock = threading.Lock()
            _sources.add(self)

    def __getstate__(self) -> dict[str, Any]:
        return {"given": bytes(self.given) if isinstance(self.given, memoryview) else self.given}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["given"])  # type: ignore[misc]

    def structure(self, handle: Handle) -> Any:
        """For `handle`, which keeps the objects that it points to."""
        source = _library.make(_library.Source)
        if is_path(self.given):
            source.path = path_bytes(self.given)
        elif isinstance(self.given, memoryview):
            memory = np.frombuffer(self.given, np.uint8) if self.given.nbytes else np.zeros(1, np.uint8)
            handle.kept.append(memory)
            source.data, source.size = memory.ctypes.data, self.given.nbytes
        else:
            self._use_file(source, handle)
        handle.kept.append(source)
        return source

    def _use_file(self, source: Any, handle: Handle) -> None:
        file: Any = self.given
        raised = handle.raised

        def read(_user: Any, data: int, size: int) -> int:
            try:
                done = 0
                while done < size:
                    part = file.read(size - done)
                    if part is None:
                        _wait(file, selectors.EVENT_READ)
                        continue
                    if not part:
                        break
                    if len(part) > size - done:
                        raise ValueError(f"{file!r} gave {len(part)} bytes where {size - done} were wanted")
                    ctypes.memmove(data + done, bytes(part), len(part))
                    done += len(part)
                return done
            except BaseException as error:
                raised.append(error)
                return -1

        def seek(_user: Any, position: int) -> int:
            try:
                file.seek(position)
                return 0
            except BaseException as error:
                raised.append(error)
                return -1

        source.read = _library.READ(read)
        if not hasattr(file, "seekable") or file.seekable():
            source.size = file.seek(0, os.SEEK_END)
            file.seek(0)
            source.seek = _library.SEEK(seek)


def sink_for(target: Writable, overwrite: bool, handle: Handle) -> Any:
    """For `handle`, which keeps the objects that it points to."""
    sink = _library.make(_library.Sink)
    handle.kept.append(sink)
    if is_path(target):
        sink.path, sink.overwrite = path_bytes(target), overwrite
        return sink

    file: Any = target
    raised = handle.raised

    def write(_user: Any, data: int, size: int) -> int:
        try:
            _write_all(file, ctypes.string_at(data, size))
            return 0
        except BaseException as error:
            raised.append(error)
            return -1

    sink.write = _library.WRITE(write)
    return sink


def _new_locks() -> None:
    """Replaces locks in a forked process, where their owners do not exist."""
    for source in list(_sources):
        source.lock = threading.Lock()


os.register_at_fork(after_in_child=_new_locks)
