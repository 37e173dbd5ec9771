"""The exceptions of the package: one for each error code of the library.

Each is an `Error` and also the most similar exception of Python. The text comes from the library: the value seen,
the limit, what to do.
"""

from __future__ import annotations


class Error(Exception):
    """Base class of the errors below."""


class InternalError(Error, RuntimeError):
    """A broken invariant of the library."""


class ArgumentError(Error, ValueError):
    """The caller asked for something outside the documented range."""


class IoError(Error, OSError):
    """The system could not read or write."""


class StreamError(Error, ValueError):
    """The stream is corrupt, truncated or not what it claims to be."""


class UnsupportedError(Error, NotImplementedError):
    """Valid, but this build, version, device or limit does not allow it."""


class MismatchError(Error):
    """A verification failed."""


class OutOfMemoryError(Error, MemoryError):
    """The system has no memory left."""


class CancelledError(Error):
    """The call was cancelled."""


BY_RESULT: dict[int, type[Error]] = {
    1: InternalError,
    2: ArgumentError,
    3: IoError,
    4: StreamError,
    5: UnsupportedError,
    6: MismatchError,
    7: OutOfMemoryError,
    8: CancelledError,
    9: ArgumentError,  # the caller's memory does not hold the result
}
