"""The byte ranges of a stream that a part of a volume needs, for callers that fetch them themselves."""

from __future__ import annotations

import ctypes
import weakref
from typing import Any

import numpy as np

from . import _library
from ._handles import Handle, error_of

_AT_ONCE = 256  # ranges, of which there are seldom more


class Plan:
    """Call `wanted` and `give` in turn until nothing is wanted; then a decoder can read from `structure`. Not
    thread-safe."""

    def __init__(self, stream_bytes: int, params: Any) -> None:
        """params: tvl_volume_decode_params."""
        library = _library.library
        self._pointer = library.tvl_plan_new()
        if not self._pointer:
            raise error_of(7, "")
        weakref.finalize(self, library.tvl_plan_free, self._pointer)
        self._check(library.tvl_plan_begin_volume(self._pointer, stream_bytes, ctypes.byref(params)))

    def _check(self, result: int) -> None:
        if result != 0:
            raise error_of(result, _library.library.tvl_plan_error(self._pointer).decode(errors="replace"))

    def wanted(self) -> list[tuple[int, int]]:
        """Offsets and sizes to give next; empty when the decoder can run."""
        count, room = ctypes.c_uint64(), _AT_ONCE
        while True:
            ranges = (_library.Range * room)()
            result = _library.library.tvl_plan_next(self._pointer, ranges, room, ctypes.byref(count))
            if result != _library.BUFFER_TOO_SMALL:
                self._check(result)
                return [(r.offset, r.size) for r in ranges[: count.value]]
            room = count.value

    def give(self, offset: int, data: Any) -> None:
        memory = np.frombuffer(data, np.uint8)
        self._check(_library.library.tvl_plan_give(self._pointer, offset, memory.ctypes.data, memory.size))

    def structure(self, handle: Handle) -> Any:
        """The source for `handle`, which keeps this plan alive."""
        source = _library.make(_library.Source)
        self._check(_library.library.tvl_plan_source(self._pointer, ctypes.byref(source)))
        handle.kept += [self, source]
        return source
