"""Trivelet: a wavelet codec for volumes and videos, lossy to lossless.

>>> import numpy as np, trivelet
>>> volume = np.random.default_rng(1).integers(0, 999, (20, 64, 64), dtype=np.uint16)
>>> stream = trivelet.encode(volume)                       # bit for bit; or max_error=, psnr=, bpp=, size=, ratio=
>>> bool((trivelet.decode(stream) == volume).all())
True
>>> trivelet.open(stream)[4:6, :, 10].shape                # decodes what it needs
(2, 64)

`open` takes paths, bytes and files and is sliced like an array; `VideoWriter` and `VideoReader` are for frames. Errors
are `Error` and one of Python's; damage that is passed over and remarks go to the log "trivelet". Calls let
other threads run, and Ctrl-C ends one after the group of frames or slices at hand.
"""

from ._handles import release_gpus
from ._library import library as _loaded
from .errors import (
    ArgumentError,
    CancelledError,
    Error,
    InternalError,
    IoError,
    MismatchError,
    OutOfMemoryError,
    StreamError,
    UnsupportedError,
)
from .metadata import Chapter, ContentLight, MasteringDisplay, Metadata
from .nifti import nibabel_image
from .video import Frame, VideoInfo, VideoReader, VideoWriter
from .volume import Volume, decode, decode_many, encode, encode_many, open

__all__ = [
    "ArgumentError",
    "CancelledError",
    "Chapter",
    "ContentLight",
    "Error",
    "Frame",
    "InternalError",
    "IoError",
    "MasteringDisplay",
    "Metadata",
    "MismatchError",
    "OutOfMemoryError",
    "StreamError",
    "UnsupportedError",
    "VideoInfo",
    "VideoReader",
    "VideoWriter",
    "Volume",
    "decode",
    "decode_many",
    "encode",
    "encode_many",
    "library_version",
    "nibabel_image",
    "open",
    "release_gpus",
]


def library_version() -> str:
    """Of the library that was loaded."""
    return str(_loaded.tvl_version().decode())


__version__ = library_version()
