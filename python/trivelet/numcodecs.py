"""The codec `trivelet` of numcodecs: for Zarr 2, kerchunk and other users of numcodecs.

    zarr.create_array("brain.zarr", shape=..., chunks=(64, 256, 256), dtype="int16", zarr_format=2,
                      compressors=trivelet.numcodecs.Trivelet(mode="max_error", value=2))

Chunks are decoded whole. For Zarr 3, `trivelet.zarr` reads parts of chunks.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Optional

import numpy as np
from numcodecs.abc import Codec
from numcodecs.compat import ensure_contiguous_ndarray, ndarray_copy
from numcodecs.registry import register_codec

from ._chunks import ChunkCoding
from .volume import Array, Volume


class Trivelet(Codec):  # type: ignore[misc]
    """Arguments are those of `trivelet.zarr.TriveletCodec`. A chunk has at most four axes longer than 1."""

    codec_id = "trivelet"

    def __init__(self, **coding: Any) -> None:
        self.coding = ChunkCoding(**coding)

    def encode(self, buf: Any) -> bytes:
        array = np.asarray(buf)
        # The memory order counts: in Fortran order the first axis is that of the columns.
        in_columns = array.flags.f_contiguous and not array.flags.c_contiguous
        return self.coding.encode_chunk(array.T if in_columns else array)

    def decode(self, buf: Any, out: Optional[Any] = None) -> Array:
        chunk = Volume(ensure_contiguous_ndarray(buf), threads=1)[...]
        if out is not None:
            return ndarray_copy(chunk, out)  # type: ignore[no-any-return]
        return chunk  # type: ignore[no-any-return]

    def get_config(self) -> dict[str, Any]:
        given = {k: v for k, v in dataclasses.asdict(self.coding).items() if v is not None}
        return {"id": self.codec_id, **given}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Trivelet:
        return cls(**{k: v for k, v in config.items() if k != "id"})


register_codec(Trivelet)
