"""Coding of chunks, for stores that divide arrays into chunks (Zarr, HDF5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Optional

import numpy as np

from .errors import ArgumentError
from .volume import _EFFORTS, _PROFILES, _TRANSFORMS, Array, check_quality, encode, number_of, positive

MODES = ["lossless", "max_error", "quality", "psnr", "bpp", "ratio"]


@dataclass(frozen=True)
class ChunkCoding:
    """All arguments, `mode` with its `value` included, are those of `trivelet.encode`."""

    mode: str = "lossless"
    value: Optional[float] = None
    transform: str = "auto"
    effort: str = "medium"
    profile: str = "dense"
    block_size: int = 128
    slab: Optional[int] = None
    layers: Optional[int] = None

    def __post_init__(self) -> None:
        number_of("mode", self.mode, MODES)
        number_of("transform", self.transform, _TRANSFORMS)
        number_of("effort", self.effort, _EFFORTS)
        number_of("profile", self.profile, _PROFILES)
        if (self.mode == "lossless") != (self.value is None):
            raise ArgumentError(f"mode {self.mode} with the value {self.value}; all modes but lossless have one")
        if self.mode == "quality":
            check_quality(self.value or 0)
        elif self.mode in ("psnr", "bpp", "ratio"):
            positive(self.mode, self.value or 0)
        bound = self.value if self.mode == "max_error" else None
        encode(
            np.zeros(1, np.uint8), max_error=bound, block_size=self.block_size, slab=self.slab, layers=self.layers, threads=1
        )  # refuses wrong settings

    def encode_chunk(self, array: Array, fill_value: Any = 0) -> bytes:
        """`fill_value`: for floats, a value that means "no data" and is restored even in lossy arrays; 0 is an
        ordinary number."""
        fills = [float(fill_value)] if self.value is not None and array.dtype.kind == "f" and fill_value != 0 else []
        wants = {} if self.value is None else {self.mode: self.value}
        shape = long_axes(array.shape)
        return encode(
            array.reshape(shape),
            axes="tzyx"[4 - len(shape) :],
            transform=self.transform,
            effort=self.effort,
            profile=self.profile,
            block_size=self.block_size,
            slab=self.slab,
            layers=self.layers,
            threads=1,
            fill_values=fills,
            **wants,  # type: ignore[arg-type]
        )


def long_axes(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The axes of a chunk longer than 1, which the library calls volumes, slices, rows and columns."""
    long = tuple(n for n in shape if n > 1)
    if len(long) > 4:
        raise ArgumentError(f"chunks of shape {shape} have {len(long)} axes longer than 1; at most 4")
    return long or (1,)
