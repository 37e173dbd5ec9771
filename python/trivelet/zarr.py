"""The codec `trivelet` of Zarr 3: chunks of which a part is read by the ranges of bytes that it needs.

    zarr.create_array(store, shape=..., chunks=(64, 256, 256), dtype="int16", compressors=None,
                      serializer=TriveletCodec(mode="max_error", value=2, transform="wavelet"))

`compressors=None` matters: what stands behind the codec, such as Zarr's own default, would have chunks read whole,
and so does sharding. A chunk is a volume: its axes longer than 1, of which there are four at most, are volumes, slices,
rows and columns. It is coded by one thread, and two tasks must not write to the same chunk. The same values give the
same bytes on any machine.
"""

from __future__ import annotations

import asyncio
import ctypes
import math
from dataclasses import dataclass
from typing import Any, Optional

import numpy as np
from zarr.abc.codec import ArrayBytesCodec, ArrayBytesCodecPartialDecodeMixin
from zarr.abc.store import RangeByteRequest
from zarr.core.common import parse_named_configuration
from zarr.registry import register_codec
from zarr.storage import StorePath

from . import _library
from ._chunks import ChunkCoding, long_axes
from ._handles import Handle
from ._plans import Plan
from .errors import ArgumentError, Error, StreamError
from .volume import _TYPES, Array, Volume, _layout, _ranges_of, _read_slices

_WORTH_PARTS = 1 << 16  # bytes of a chunk: smaller ones come whole sooner than their parts come one after the other


@dataclass(frozen=True)
class TriveletCodec(ChunkCoding, ArrayBytesCodec, ArrayBytesCodecPartialDecodeMixin):
    """`mode` and its `value` are as the arguments of `trivelet.encode`; so are the others."""

    is_fixed_size = False

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> TriveletCodec:
        _, configuration = parse_named_configuration(data, "trivelet", require_configuration=False)
        members: dict[str, Any] = dict(configuration or {})
        return cls(**members)

    def to_dict(self) -> dict[str, Any]:
        configuration = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "is_fixed_size"}
        return {"name": "trivelet", "configuration": {k: v for k, v in configuration.items() if v is not None}}

    def validate(self, *, shape: tuple[int, ...], dtype: Any, chunk_grid: Any) -> None:
        native = dtype.to_native_dtype()
        if native.kind + str(native.itemsize) not in _TYPES:
            raise ArgumentError(f"an array of {native}; there are integers of 8 to 64 bits, float32 and float64")
        chunk = getattr(chunk_grid, "chunk_shape", None)
        if chunk is not None:
            long_axes(chunk)

    def compute_encoded_size(self, input_byte_length: int, chunk_spec: Any) -> int:
        raise NotImplementedError("the size of a stream depends on its voxels")

    def _encode_sync(self, chunk_array: Any, chunk_spec: Any) -> Any:
        return chunk_spec.prototype.buffer.from_bytes(self.encode_chunk(chunk_array.as_numpy_array()))

    def _decode_sync(self, chunk_bytes: Any, chunk_spec: Any) -> Any:
        volume = Volume(chunk_bytes.as_numpy_array(), threads=1)
        if volume.size != math.prod(chunk_spec.shape):
            raise StreamError(f"a chunk of shape {volume.shape}; it should have {chunk_spec.shape}")
        return _to_buffer(volume[...].reshape(chunk_spec.shape), chunk_spec)

    async def _encode_single(self, chunk_array: Any, chunk_spec: Any) -> Any:
        return await asyncio.to_thread(self._encode_sync, chunk_array, chunk_spec)

    async def _decode_single(self, chunk_bytes: Any, chunk_spec: Any) -> Any:
        return await asyncio.to_thread(self._decode_sync, chunk_bytes, chunk_spec)

    async def _decode_partial_single(self, byte_getter: Any, selection: Any, chunk_spec: Any) -> Any:
        try:
            box = _box_of(selection, chunk_spec.shape)
            size = await _size_of(byte_getter) if box is not None else 0
            if box is None or size <= _WORTH_PARTS:
                chunk_bytes = await byte_getter.get(chunk_spec.prototype)
                if chunk_bytes is None:
                    return None
                return (await self._decode_single(chunk_bytes, chunk_spec))[selection]
            array = await self._decode_box(byte_getter, size, box, chunk_spec)
        except FileNotFoundError:
            return None
        except Error as error:
            raise type(error)(f"chunk {byte_getter}: {error}") from error
        within = tuple(r.within for r in _ranges_of(selection, chunk_spec.shape))
        return _to_buffer(array[within], chunk_spec)

    async def _decode_box(self, byte_getter: Any, size: int, box: list[tuple[int, int]], chunk_spec: Any) -> Array:
        """The box, with all axes of the chunk."""
        extents = [extent for _, extent in box]
        places = [place for place, n in zip(box, chunk_spec.shape) if n > 1]
        volumes = places[0] if len(places) == 4 else (0, 1)
        z, y, x = [(0, 1)] * (3 - len(places)) + places[-3:]
        params = _library.make(_library.VolumeDecodeParams)
        (params.z, params.depth), (params.y, params.height), (params.x, params.width) = z, y, x
        params.threads = 1
        plan = await asyncio.to_thread(Plan, size, params)
        while wanted := await asyncio.to_thread(plan.wanted):
            gets = [
                byte_getter.get(chunk_spec.prototype, RangeByteRequest(offset, offset + count))
                for offset, count in wanted
            ]
            for (offset, count), data in zip(wanted, await asyncio.gather(*gets)):
                if data is None or len(data) != count:
                    raise StreamError(f"bytes {offset} to {offset + count} of {size} are not there")
                plan.give(offset, data.as_numpy_array())
        array = await asyncio.to_thread(_read_box, plan, params, volumes, chunk_spec)
        return array.reshape(extents)


def _box_of(selection: Any, shape: tuple[int, ...]) -> Optional[list[tuple[int, int]]]:
    """First and extent along each axis of a box that is less than the whole chunk; else None."""
    parts = selection if isinstance(selection, tuple) else (selection,)
    if not all(isinstance(part, (int, np.integer, slice)) for part in parts):
        return None
    ranges = _ranges_of(selection, shape)
    box = [(r.first, r.extent) for r in ranges]
    return None if [(0, n) for n in shape] == box or any(extent == 0 for _, extent in box) else box


async def _size_of(byte_getter: Any) -> int:
    """Of what can be read in ranges that save something; else 0. Of a shard, a chunk is in memory already."""
    if not isinstance(byte_getter, StorePath):
        return 0
    return int(await byte_getter.store.getsize(byte_getter.path))


def _read_box(plan: Plan, params: Any, volumes: tuple[int, int], chunk_spec: Any) -> Array:
    native = chunk_spec.dtype.to_native_dtype()
    first, extent = volumes
    with Handle("decoder") as decoder:
        source = plan.structure(decoder)
        decoder.call(_library.library.tvl_decoder_open_volume, ctypes.byref(source), ctypes.byref(params))
        output = _library.make(_library.Volume)
        decoder.call(_library.library.tvl_decoder_volume, None, ctypes.byref(output), None)
        dtype, *given = _layout(output)
        wanted = [params.depth, params.height, params.width, 1]
        if given[1:] != wanted or given[0] < first + extent or dtype.newbyteorder("=") != native.newbyteorder("="):
            raise StreamError(f"{dtype} of shape {given}; it should be {native} of {wanted}")
        array = np.empty((extent, *wanted), dtype)
        passed_over = np.empty((1, *wanted), dtype) if first > 0 else array
        for number in range(first + extent):
            at = number - first
            _read_slices(decoder, array[at : at + 1] if at >= 0 else passed_over)
    return array


def _to_buffer(array: Array, chunk_spec: Any) -> Any:
    native = chunk_spec.dtype.to_native_dtype()
    if array.dtype.newbyteorder("=") != native.newbyteorder("="):
        raise StreamError(f"a chunk of {array.dtype}; it should be of {native}")
    return chunk_spec.prototype.nd_buffer.from_numpy_array(np.asarray(array, dtype=native))


register_codec("trivelet", TriveletCodec)  # for packages that are not installed, which have no entry points
