"""Encoders and decoders of the library: calls that raise, that Ctrl-C ends, and whose callbacks may raise."""

from __future__ import annotations

import _thread
import contextlib
import logging
import os
import threading
import weakref
from typing import Any, Callable, Iterator, Optional

from . import _library
from .errors import BY_RESULT, Error

log = logging.getLogger("trivelet")


def _write_log(_user: Any, level: int, text: bytes) -> None:
    log.log(logging.WARNING if level > 0 else logging.DEBUG, "%s", text.decode(errors="replace"))


_LOG = _library.LOG(_write_log)


def error_of(result: int, text: str) -> Error:
    return BY_RESULT.get(result, Error)(text or _library.library.tvl_result_text(result).decode())


def _in_other_thread(work: Callable[[], int], cancel: Callable[[], None]) -> int:
    """work() in a thread of its own, so that this one, Python's first, still hears signals. What a signal raises here
    cancels the work, and goes on when the work has ended: it uses memory of the caller's."""
    claim, done = threading.Lock(), threading.Lock()
    done.acquire()
    outcome: list[Any] = []

    def run() -> None:
        if not claim.acquire(blocking=False):
            return  # interrupted before it began
        try:
            outcome.append(work())
        except BaseException as error:
            outcome.append(error)
        finally:
            done.release()

    # Only `outcome` tells that it is over: a signal may come right after `done` was taken.
    try:
        try:
            _thread.start_new_thread(run, ())
        except RuntimeError:  # no threads are begun when Python ends
            return work()
        while not outcome:
            done.acquire(timeout=1)
    except BaseException:
        if not claim.acquire(blocking=False):
            cancel()
            while not outcome:
                try:
                    done.acquire(timeout=1)
                except BaseException as again:
                    log.debug("%r while the library ends what it does", again)
        raise
    if isinstance(outcome[0], BaseException):
        raise outcome[0]
    return int(outcome[0])


def _free(free: Any, pointer: int, _kept: list[Any]) -> None:
    free(pointer)


class Handle:
    """An encoder or a decoder of the library, and what it uses while it is open."""

    def __init__(self, kind: str) -> None:
        library = _library.library
        self._error = getattr(library, f"tvl_{kind}_error")
        self._cancel = getattr(library, f"tvl_{kind}_cancel")
        self.pointer = getattr(library, f"tvl_{kind}_new")()
        if not self.pointer:
            raise error_of(7, "")
        self._lock = threading.Lock()  # the library wants one thread at a time
        self.kept: list[Any] = []  # memory and callbacks
        self.raised: list[BaseException] = []  # by callbacks; these know this list and not the handle, which may go
        self._finalizer = weakref.finalize(self, _free, getattr(library, f"tvl_{kind}_free"), self.pointer, self.kept)
        getattr(library, f"tvl_{kind}_set_log")(self.pointer, _LOG, None)

    def try_call(self, function: Any, *arguments: Any) -> Optional[BaseException]:
        """Calls function(handle, ...); what is to be raised, if anything."""

        def work() -> int:
            return int(function(self.pointer, *arguments))

        with self._lock:
            if self.closed:
                raise ValueError("what reads or writes this stream is closed")
            if threading.get_ident() == threading.main_thread().ident:
                result = _in_other_thread(work, lambda: self._cancel(self.pointer))
            else:
                result = work()
            raised = self.raised[0] if self.raised else None
            self.raised.clear()
            if result == 0:
                return None
            return raised or error_of(result, self._error(self.pointer).decode(errors="replace"))

    def call(self, function: Any, *arguments: Any) -> None:
        failed = self.try_call(function, *arguments)
        if failed is not None:
            raise failed

    def close(self) -> None:
        with self._lock:
            self._finalizer()

    def __enter__(self) -> Handle:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    @property
    def closed(self) -> bool:
        return not self._finalizer.alive


# By GPU, a decoder that no batch uses. Each is taken out and put back at once, which needs no lock.
_kept: dict[int, Handle] = {}


@contextlib.contextmanager
def decoder_of_batches(device: Optional[int]) -> Iterator[Handle]:
    """That of GPU `device` is kept, with what it made there, for the batch after this one. After an error it is not: the GPU
    may have too little memory."""
    decoder = None if device is None else _kept.pop(device, None)
    if decoder is None:
        decoder = Handle("decoder")
    try:
        yield decoder
        if device is not None and _kept.setdefault(device, decoder) is decoder:
            return
    except BaseException:
        decoder.close()
        raise
    decoder.close()  # another batch was decoded at the same time


def release_gpus() -> None:
    """Gives back what `decode_many` keeps on GPUs, memory and decoders, from one batch to the next."""
    while _kept:
        with contextlib.suppress(KeyError):
            _kept.popitem()[1].close()


def _forget_gpus() -> None:
    """In a process that was forked, where nothing of CUDA's may be touched."""
    for decoder in _kept.values():
        decoder._finalizer.detach()
    _kept.clear()


os.register_at_fork(after_in_child=_forget_gpus)
