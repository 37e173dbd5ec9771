"""Handles of encoders and decoders: calls raise exceptions, including those of callbacks, and Ctrl-C cancels them."""

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
    """Runs work() in another thread, so that Python's main thread still handles signals. An exception from a signal
    handler cancels the work and is raised again when the work has ended, because the work uses the caller's memory."""
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

    # Only `outcome` proves the end: a signal may arrive right after `done` was acquired.
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


_handles: weakref.WeakSet[Handle] = weakref.WeakSet()


class Handle:
    """An encoder or decoder of the library, with the objects that it uses while it is open."""

    def __init__(self, kind: str) -> None:
        library = _library.library
        self._error = getattr(library, f"tvl_{kind}_error")
        self._cancel = getattr(library, f"tvl_{kind}_cancel")
        self.pointer = getattr(library, f"tvl_{kind}_new")()
        if not self.pointer:
            raise error_of(7, "")
        # The library allows one thread at a time. A signal handler runs in the thread that it interrupts.
        self._lock = threading.RLock()
        self._running = False
        self._close_after = False  # a signal handler closed the object during a call of its thread
        self._why_closed = "is closed"
        self.kept: list[Any] = []  # memory and callbacks
        self.raised: list[BaseException] = []  # by callbacks, which refer to this list, not to the handle
        self._finalizer = weakref.finalize(self, _free, getattr(library, f"tvl_{kind}_free"), self.pointer, self.kept)
        getattr(library, f"tvl_{kind}_set_log")(self.pointer, _LOG, None)
        _handles.add(self)

    def try_call(self, function: Any, *arguments: Any) -> Optional[BaseException]:
        """Calls function(handle, ...); returns the exception to raise, if any."""

        def work() -> int:
            return int(function(self.pointer, *arguments))

        with self._lock:
            if self._running:
                raise RuntimeError("a signal's handler uses a stream while the call that it interrupted uses it")
            self._running = True
            try:
                if self.closed:
                    raise ValueError(f"what reads or writes this stream {self._why_closed}")
                if threading.get_ident() == threading.main_thread().ident:
                    result = _in_other_thread(work, lambda: self._cancel(self.pointer))
                else:
                    result = work()
                raised = self.raised[0] if self.raised else None
                self.raised.clear()
                if self._close_after:
                    return ValueError("what reads or writes this stream was closed by a signal's handler")
                if result == 0:
                    return None
                return raised or error_of(result, self._error(self.pointer).decode(errors="replace"))
            finally:
                self._running = False
                if self._close_after:
                    self._finalizer()

    def call(self, function: Any, *arguments: Any) -> None:
        failed = self.try_call(function, *arguments)
        if failed is not None:
            raise failed

    def close(self) -> None:
        """Closes at once. A signal handler that interrupted a call cancels the call, and the handle is closed when
        the call ends."""
        with self._lock:
            if not self._running:
                self._finalizer()
                return
            self._close_after = True
            self._cancel(self.pointer)

    def _leave_to_parent(self) -> None:
        """Forgets the handle in a forked process, which lacks the handle's threads; closing would wait for them."""
        self._finalizer.detach()
        self._lock, self._running, self._close_after = threading.RLock(), False, False
        self._why_closed = "was opened before this process was forked, and belongs to the one before"

    def __enter__(self) -> Handle:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    @property
    def closed(self) -> bool:
        return not self._finalizer.alive


# An idle encoder and decoder for each GPU. Taking one out and putting it back are atomic operations, so no lock is needed.
_kept: dict[tuple[str, int], Handle] = {}


@contextlib.contextmanager
def _of_batches(kind: str, device: Optional[int]) -> Iterator[Handle]:
    handle = None if device is None else _kept.pop((kind, device), None)
    if handle is None:
        handle = Handle(kind)
    try:
        yield handle
        if device is not None and _kept.setdefault((kind, device), handle) is handle:
            return
    except BaseException:
        handle.close()
        raise
    handle.close()  # another batch went on at the same time


def decoder_of_batches(device: Optional[int]) -> contextlib.AbstractContextManager[Handle]:
    """Provides the decoder of GPU `device` and keeps it, with its device memory, for the next batch. After an error
    it is closed, because the GPU may lack memory."""
    return _of_batches("decoder", device)


def encoder_of_batches(device: Optional[int]) -> contextlib.AbstractContextManager[Handle]:
    """The same of encoders."""
    return _of_batches("encoder", device)


def release_gpus() -> None:
    """Frees the memory that `encode_many` and `decode_many` keep on GPUs between batches."""
    while _kept:
        with contextlib.suppress(KeyError):
            _kept.popitem()[1].close()


def _after_fork() -> None:
    for handle in list(_handles):
        handle._leave_to_parent()
    _kept.clear()


os.register_at_fork(after_in_child=_after_fork)
