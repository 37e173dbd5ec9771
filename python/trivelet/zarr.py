"""The Zarr 3 codec `trivelet`, which reads a part of a chunk by byte ranges.

    zarr.create_array(store, shape=..., chunks=(64, 256, 256), dtype="int16", compressors=None,
                      serializer=TriveletCodec(mode="max_error", value=2, transform="wavelet"))

`compressors=None` matters: any codec behind this one, such as Zarr's default, makes Zarr read chunks whole, which a
warning tells. Zarr's
shards do so, too, except with `read_shards_by_ranges`. A chunk is a volume: its axes longer than 1, of which there
are four at most, are volumes, slices, rows and columns. One thread codes a chunk, and two tasks must not write to the
same chunk. The same values give the same bytes on any machine.
"""

from __future__ import annotations

import asyncio
import ctypes
import itertools
import math
import sys
import threading
import warnings
from dataclasses import dataclass, replace
from typing import Any, Iterable, NamedTuple, Optional, Sequence, cast

import numpy as np
import zarr
from zarr.abc.codec import ArrayBytesCodec, ArrayBytesCodecPartialDecodeMixin
from zarr.abc.store import RangeByteRequest, SuffixByteRequest
from zarr.buffer import cpu
from zarr.codecs import ShardingCodec
from zarr.core.array_spec import ArraySpec
from zarr.core.common import parse_named_configuration
from zarr.core.sync import sync
from zarr.registry import register_codec
from zarr.storage import StorePath

from . import _library
from ._arrays import OnDevice, on_device
from ._chunks import ChunkCoding, long_axes
from ._handles import Handle
from ._plans import Plan
from .errors import ArgumentError, Error, StreamError, UnsupportedError
from .volume import _TYPES, Array, Volume, _decode_all, _decode_into, _layout, _ranges_of, _read_slices, as_type, stored_types

_WORTH_PARTS = 1 << 16  # bytes of a chunk; a smaller one is read whole, because one request is faster than several
_LEAST_HEAD = 1024  # bytes at the beginning that the library reads first
_HEAD = 512  # bytes of headers and front table without the entries of slabs; excess bytes are mostly needed anyway
_TAIL = 4608  # bytes with the index, and mostly with the sizes of the last group of slices
_WITH_TABLE = 1 << 20  # bytes of voxels from which on the library writes a front table
_SLAB = 64  # default number of slices of a GOP
_LAYERS = 9  # default number of layers of wavelets
_MOST_OF_HEADS = 1 << 16  # most bytes of chunk headers in the table
_MOST_AT_ONCE = 64  # requests for parts of a chunk; more would wait for each other
_GAP = 1 << 8  # bytes between two ranges that cost less than a request
_MOST_GAP = 1 << 14  # that cost less than waiting for other requests


@dataclass(frozen=True)
class TriveletCodec(ChunkCoding, ArrayBytesCodec, ArrayBytesCodecPartialDecodeMixin):
    """All arguments, `mode` with its `value` included, are those of `trivelet.encode`."""

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
        if any(stored.kind + str(stored.itemsize) not in _TYPES for stored in stored_types(native)):
            raise ArgumentError(f"an array of {native}; there are bool, integers of 8 to 64 bits, and floats of 16 to 64")
        chunk = getattr(chunk_grid, "chunk_shape", None)
        if chunk is not None:
            long_axes(chunk)

        _warn_of_followers(self)

    def evolve_from_array_spec(self, array_spec: Any) -> TriveletCodec:
        _warn_of_followers(self)
        return self

    def compute_encoded_size(self, input_byte_length: int, chunk_spec: Any) -> int:
        raise NotImplementedError("the size of a stream depends on its voxels")

    def _encode_sync(self, chunk_array: Any, chunk_spec: Any) -> Any:
        return chunk_spec.prototype.buffer.from_bytes(self.encode_chunk(chunk_array.as_numpy_array(), chunk_spec.fill_value))

    def _decode_sync(self, chunk_bytes: Any, chunk_spec: Any) -> Any:
        volume = _volume_of(chunk_bytes.as_numpy_array(), chunk_spec)
        return _to_buffer(volume[...].reshape(chunk_spec.shape), chunk_spec)

    async def decode(self, chunks_and_specs: Iterable[tuple[Any, Any]]) -> Iterable[Any]:
        """A batch of chunks (`codec_pipeline.batch_size`) in one call of the library, which has threads for them."""
        batch = list(chunks_and_specs)
        if sum(chunk is not None for chunk, _ in batch) < 2:
            return await super().decode(batch)
        return await asyncio.to_thread(self._decode_batch, batch)

    def _decode_batch(self, batch: list[tuple[Any, Any]], names: Optional[list[str]] = None) -> list[Any]:
        """`names`: of the chunks, for errors."""
        there = [i for i, (chunk, _) in enumerate(batch) if chunk is not None]
        named = [names[i] if names else f"chunk {i} of a batch" for i in there]
        buffers = [batch[i][0].as_numpy_array() for i in there]
        volumes = []
        for i, name, buffer in zip(there, named, buffers):
            try:
                volumes.append(_volume_of(buffer, batch[i][1]))
            except Error as error:
                raise type(error)(f"{name}: {error}") from error
        specs = [batch[i][1] for i in there]
        if rooms := _rooms_on_gpu(volumes, specs):
            far = rooms[0][1]
            with _turn:
                _decode_into([place.view for _, place in rooms], buffers, named, 0, far.device, far)
            made = iter([room for room, _ in rooms])
        else:
            arrays = _decode_all(volumes, buffers, named)
            made = iter([_to_buffer(array.reshape(spec.shape), spec) for array, spec in zip(arrays, specs)])
        return [None if chunk is None else next(made) for chunk, _ in batch]

    async def decode_partial(self, batch_info: Iterable[tuple[Any, Any, Any]]) -> Iterable[Any]:
        """The same, for chunks of a store that are read whole."""
        batch = list(batch_info)
        whole = [i for i, (_, selection, spec) in enumerate(batch) if _box_of(selection, spec.shape) is None]
        if len(whole) < 2:
            return await super().decode_partial(batch)

        async def decode_whole() -> list[Any]:
            chunks = await asyncio.gather(*(batch[i][0].get(_prototype(*batch[i][::2])) for i in whole))
            coded = [(chunk, batch[i][2]) for i, chunk in zip(whole, chunks)]
            names = [f"chunk {batch[i][0]}" for i in whole]
            decoded = await asyncio.to_thread(self._decode_batch, coded, names)
            return [None if array is None else array[batch[i][1]] for i, array in zip(whole, decoded)]

        others = [i for i in range(len(batch)) if i not in set(whole)]
        parts = await asyncio.gather(decode_whole(), super().decode_partial([batch[i] for i in others]))
        found = dict(zip((*whole, *others), itertools.chain(*parts)))
        return [found[i] for i in range(len(batch))]

    async def _encode_single(self, chunk_array: Any, chunk_spec: Any) -> Any:
        return await asyncio.to_thread(self._encode_sync, chunk_array, chunk_spec)

    def _ends(self, chunk_spec: Any) -> tuple[int, int]:
        """Bytes at the beginning and end of a chunk that locate the rest, for most reads of a part. Large chunks have a
        table of their parts at the front, with the size of FORMAT.md (tocF), as estimated for the likely outcome of
        trials. Missing bytes are requested when they are needed.
        """
        native = chunk_spec.dtype.to_native_dtype()
        if math.prod(chunk_spec.shape) * native.itemsize < _WITH_TABLE:
            return _LEAST_HEAD, _TAIL
        volumes, slices, rows, columns = (1, 1, 1, 1, *(n for n in chunk_spec.shape if n > 1))[-4:]
        slabs = -(-volumes * slices // self.slab) if self.slab else volumes * -(-slices // _SLAB)
        layers = self.layers or _LAYERS
        distances = 1 + (5 if max(rows, columns) >= 720 else 4)
        chunks = layers * distances
        blocks = -(-rows // self.block_size) * -(-columns // self.block_size)
        of_segment = 19 + 4 * layers if self.mode in ("lossless", "max_error") else 24 + 8 * layers
        if native.kind == "f" and self.mode == "lossless":
            blocks, of_segment = blocks * native.itemsize // 2, 24 + 8 * layers  # in components of 16 bits
        heads = slabs * (8 * chunks + blocks * distances * of_segment // 16)
        table = slabs * (80 + 6 * layers + 6 * chunks) + (heads if heads <= _MOST_OF_HEADS else 0)
        return max(_LEAST_HEAD, _HEAD + table), 0

    async def _decode_single(self, chunk_bytes: Any, chunk_spec: Any) -> Any:
        return await asyncio.to_thread(self._decode_sync, chunk_bytes, chunk_spec)

    async def _decode_partial_single(self, byte_getter: Any, selection: Any, chunk_spec: Any) -> Any:
        box = _box_of(selection, chunk_spec.shape)
        prototype = _prototype(byte_getter, chunk_spec)
        begun = await _begin(byte_getter, prototype, None if box is None else self._ends(chunk_spec))
        if begun is None:
            return None
        try:
            if begun.whole is not None or box is None:
                return (await self._decode_single(begun.whole, chunk_spec))[selection]
            array = await self._decode_box(byte_getter, begun, box, chunk_spec)
        except Error as error:
            raise type(error)(f"chunk {byte_getter}: {error}") from error
        within = tuple(r.within for r in _ranges_of(selection, chunk_spec.shape))
        return _to_buffer(array[within], chunk_spec)

    async def _decode_box(self, byte_getter: Any, begun: _Begun, box: list[tuple[int, int]], chunk_spec: Any) -> Array:
        """The box, with all axes of the chunk."""
        extents = [extent for _, extent in box]
        places = [place for place, n in zip(box, chunk_spec.shape) if n > 1]
        volumes = places[0] if len(places) == 4 else (0, 1)
        z, y, x = [(0, 1)] * (3 - len(places)) + places[-3:]
        params = _library.make(_library.VolumeDecodeParams)
        (params.z, params.depth), (params.y, params.height), (params.x, params.width) = z, y, x
        params.first_volume, params.volumes = volumes
        params.threads = 1
        plan = await _fetch(byte_getter, begun, params, _prototype(byte_getter, chunk_spec))
        array, _ = await asyncio.to_thread(_read_box, plan, params, volumes[1], chunk_spec)
        if array.shape != (volumes[1], z[1], y[1], x[1], 1):
            raise StreamError(f"the stream gives {array.shape}; it should be {volumes[1], z[1], y[1], x[1]}")
        return array.reshape(extents)


def _warn_of_followers(codec: TriveletCodec) -> None:
    """Warns of codecs behind this one, such as Zarr's default. Zarr tells a codec nothing of the others, but it calls it
    from methods of the object that has them all; where it does not, nothing is said."""
    frame = sys._getframe(2)
    for _ in range(3):
        codecs = getattr(frame.f_locals.get("self"), "codecs", ())
        if isinstance(codecs, tuple) and codec in codecs:
            behind = [type(c).__name__ for c in codecs[codecs.index(codec) + 1 :]]
            if behind:
                warnings.warn(
                    f"{', '.join(behind)} behind TriveletCodec: chunks hardly get smaller and are read whole; pass "
                    "compressors=None to zarr.create_array",
                    stacklevel=2,
                )
            return
        if frame.f_back is None:
            return
        frame = frame.f_back


async def _fetch(byte_getter: Any, begun: _Begun, params: Any, prototype: Any) -> Plan:
    """What a decoder with `params` reads."""
    plan = Plan(begun.size, params)
    for offset, data in begun.parts:
        plan.give(offset, data.as_numpy_array())
    at_once = asyncio.Semaphore(_MOST_AT_ONCE)

    async def fetch(first: int, end: int) -> None:
        async with at_once:
            data = await byte_getter.get(prototype, RangeByteRequest(first, end))
        if data is None or len(data) != end - first:
            raise StreamError(f"bytes {first} to {end} of {begun.size} are not there")
        plan.give(first, data.as_numpy_array())

    while wanted := await asyncio.to_thread(plan.wanted):
        await asyncio.gather(*(fetch(first, end) for first, end in _coalesced(wanted)))
    return plan


class _Begun(NamedTuple):
    """A chunk that was read whole, or the bytes that most reads of a part need."""

    size: int
    whole: Any = None
    parts: Sequence[tuple[int, Any]] = ()


@dataclass(frozen=True)
class _Window:
    """A chunk within a shard."""

    shard: Any
    first: int
    size: int

    def __str__(self) -> str:
        return f"at byte {self.first} of {self.shard}"

    async def get(self, prototype: Any, byte_range: Any = None) -> Any:
        first, end = (0, self.size) if byte_range is None else (byte_range.start, byte_range.end)
        return await self.shard.get(prototype, RangeByteRequest(self.first + first, self.first + end))


async def _begin(byte_getter: Any, prototype: Any, ends: Optional[tuple[int, int]]) -> Optional[_Begun]:
    """None if there is no chunk. `ends` are the bytes of beginning and end that are requested together with the
    size, which saves a round trip; None = all bytes. A source that is neither a store's nor a window is already in
    memory, as Zarr's chunks of shards are."""
    if ends is not None and isinstance(byte_getter, (StorePath, _Window)):
        head, tail = ends
        wanted: list[Any] = [RangeByteRequest(0, head)]
        if isinstance(byte_getter, _Window):
            size = byte_getter.size
            if tail:
                wanted.append(RangeByteRequest(max(0, size - tail), size))
            read = [] if size <= _WORTH_PARTS else await asyncio.gather(*(byte_getter.get(prototype, w) for w in wanted))
        else:
            if tail:
                wanted.append(SuffixByteRequest(tail))
            try:
                length, *read = await asyncio.gather(
                    byte_getter.store.getsize(byte_getter.path), *(byte_getter.get(prototype, w) for w in wanted)
                )
            except FileNotFoundError:
                return None
            size = cast(int, length)
        if size > _WORTH_PARTS:
            if any(part is None for part in read):
                return None
            return _Begun(size, parts=[(0, read[0]), *((size - len(end), end) for end in read[1:])])
    whole = await byte_getter.get(prototype)
    return None if whole is None else _Begun(len(whole), whole)


def _prototype(byte_getter: Any, chunk_spec: Any) -> Any:
    """The buffer prototype for the bytes of a stream: the library reads them in host memory, wherever Zarr needs the
    voxels. Sources that are not stores have them there already."""
    return cpu.buffer_prototype if isinstance(byte_getter, (StorePath, _Window)) else chunk_spec.prototype


def _at_once() -> asyncio.Semaphore:
    return asyncio.Semaphore(zarr.config.get("async.concurrency") or 64)


def _coalesced(ranges: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Merges ascending ranges with small gaps between them, and larger gaps if there are so many ranges that some would
    have to wait. Returns first bytes and ends."""
    gaps = sorted(offset - first - size for (first, size), (offset, _) in zip(ranges, ranges[1:]))
    too_many = len(ranges) - _MOST_AT_ONCE
    most = max(_GAP, min(gaps[too_many - 1], _MOST_GAP)) if too_many > 0 else _GAP
    found: list[tuple[int, int]] = []
    for offset, size in ranges:
        if found and offset - found[-1][1] <= most:
            found[-1] = (found[-1][0], offset + size)
        else:
            found.append((offset, offset + size))
    return found


def _box_of(selection: Any, shape: tuple[int, ...]) -> Optional[list[tuple[int, int]]]:
    """First and extent along each axis of a box that is less than the whole chunk; else None."""
    parts = selection if isinstance(selection, tuple) else (selection,)
    if not all(isinstance(part, (int, np.integer, slice)) for part in parts):
        return None
    ranges = _ranges_of(selection, shape)
    box = [(r.first, r.extent) for r in ranges]
    return None if [(0, n) for n in shape] == box or any(extent == 0 for _, extent in box) else box


def _read_box(plan: Plan, params: Any, volumes: int, chunk_spec: Any) -> tuple[Array, tuple[int, ...]]:
    """All axes of the part in the params, of this many volumes; and the number of voxels that one stands for along them."""
    native = chunk_spec.dtype.to_native_dtype()
    with Handle("decoder") as decoder:
        source = plan.structure(decoder)
        decoder.call(_library.library.tvl_decoder_open_volume, ctypes.byref(source), ctypes.byref(params))
        output, info = _library.make(_library.Volume), _library.make(_library.VolumeInfo)
        decoder.call(_library.library.tvl_decoder_volume, None, ctypes.byref(output), ctypes.byref(info))
        dtype, *given = _layout(output)
        whole = (params.depth or given[1]) * (params.height or given[2]) * (params.width or given[3])
        stored = [one.newbyteorder("=") for one in stored_types(native)]
        if math.prod(given[1:]) > whole or given[0] != volumes or dtype.newbyteorder("=") not in stored:
            raise StreamError(f"{dtype} of shape {given}; it should be {native} of {volumes} volumes of {whole} voxels")
        array = np.empty(given, dtype)
        for at in range(volumes):
            _read_slices(decoder, array[at : at + 1])
    return array if native.newbyteorder("=") in stored else as_type(array, native), (1, info.step_z, info.step_y, info.step_x)


def _volume_of(stream: Array, chunk_spec: Any) -> Volume:
    volume = Volume(stream, threads=1)
    if volume.size != math.prod(chunk_spec.shape):
        raise StreamError(f"a chunk of shape {volume.shape}; it should have {chunk_spec.shape}")
    return volume


# For a GPU: one batch at a time has all cores and reuses the memory of the one before.
_turn = threading.Lock()


def _rooms_on_gpu(volumes: Sequence[Volume], specs: Sequence[Any]) -> list[tuple[Any, OnDevice]]:
    """Where Zarr has its arrays in memory of a GPU, new ones for chunks that are decoded there; else nothing."""
    on_host = [issubclass(spec.prototype.nd_buffer, cpu.NDBuffer) for spec in specs]
    if not specs or any(on_host) or _library.library.tvl_gpu_count() == 0:
        return []
    types = [spec.dtype.to_native_dtype() for spec in specs]
    if any(volume.dtype != native for volume, native in zip(volumes, types)):
        return []
    rooms = [spec.prototype.nd_buffer.create(shape=spec.shape, dtype=native) for spec, native in zip(specs, types)]
    found = [(room, place) for room in rooms if (place := on_device(room.as_ndarray_like()))]
    return found if len(found) == len(rooms) and len({(at.device, at.stream) for _, at in found}) == 1 else []


def _to_buffer(array: Array, chunk_spec: Any) -> Any:
    native = chunk_spec.dtype.to_native_dtype()
    if array.dtype.newbyteorder("=") != native.newbyteorder("="):
        raise StreamError(f"a chunk of {array.dtype}; it should be of {native}")
    return chunk_spec.prototype.nd_buffer.from_numpy_array(np.asarray(array, dtype=native))


class RangedShardingCodec(ShardingCodec):
    """Zarr's shards, with parts of their chunks read by byte ranges; Zarr itself reads every needed chunk whole. They are
    written and stored as by Zarr. See `read_shards_by_ranges`."""

    async def _decode_partial_single(self, byte_getter: Any, selection: Any, shard_spec: Any) -> Any:
        box = _box_of(selection, shard_spec.shape)
        codec = self.codecs[0]
        if box is None or len(self.codecs) > 1 or not isinstance(codec, TriveletCodec):
            return await super()._decode_partial_single(byte_getter, selection, shard_spec)
        index = await self._load_shard_index_maybe(byte_getter, self._get_chunks_per_shard(shard_spec))
        if index is None:
            return None
        chunk_spec = replace(self._get_chunk_spec(shard_spec), prototype=cpu.buffer_prototype)
        native = shard_spec.dtype.to_native_dtype()
        out = np.full([extent for _, extent in box], shard_spec.fill_value, native)

        at_once = _at_once()

        async def read(place: tuple[int, ...]) -> None:
            async with at_once:
                await read_chunk(place)

        async def read_chunk(place: tuple[int, ...]) -> None:
            span = index.get_chunk_slice(place)
            if span is None:
                return
            first = [p * n for p, n in zip(place, self.chunk_shape)]
            begins = [max(b, f) for (b, _), f in zip(box, first)]
            ends = [min(b + e, f + n) for (b, e), f, n in zip(box, first, self.chunk_shape)]
            part = tuple(slice(b - f, e - f) for b, e, f in zip(begins, ends, first))
            window = _Window(byte_getter, span[0], span[1] - span[0])
            decoded = await codec._decode_partial_single(window, part, chunk_spec)
            if decoded is None:
                raise StreamError(f"chunk {window}: {window.size} bytes are not there")
            out[tuple(slice(b - f, e - f) for b, e, (f, _) in zip(begins, ends, box))] = decoded.as_numpy_array()

        places = (range(b // n, -(-(b + e) // n)) for (b, e), n in zip(box, self.chunk_shape))
        await asyncio.gather(*(read(place) for place in itertools.product(*places)))
        within = tuple(r.within for r in _ranges_of(selection, shard_spec.shape))
        return _to_buffer(out[within], shard_spec)


def read_smaller(array: Any, reduce: int, *, layers: Optional[int] = None) -> Array:
    """A whole Zarr array with its size halved `reduce` times, from the needed ranges of its chunks: an overview without a
    separate pyramid.

    layers: number of quality layers; None = all. Chunks must be coded by wavelets and be divisible by 2^reduce along axes
    on which there are several.
    """
    if reduce < 0 or (layers is not None and layers < 1):
        raise ArgumentError(f"reduce is {reduce}, layers {layers}; from 0 and 1 on")
    behind = array.async_array if hasattr(array, "async_array") else array._async_array  # up to Zarr 3.1.3 at least
    result: Array = sync(_read_smaller(behind, reduce, layers or 0))
    return result


async def _read_smaller(array: Any, reduce: int, layers: int) -> Array:
    codecs, chunks = array.metadata.codecs, array.metadata.chunk_grid.chunk_shape
    outer = codecs[0] if isinstance(codecs[0], ShardingCodec) else None
    inner = outer.chunk_shape if outer else chunks
    codec = (outer.codecs if outer else codecs)[0]
    if len(codecs) > 1 or not isinstance(codec, TriveletCodec) or (outer and len(outer.codecs) > 1):
        raise ArgumentError(f"an array with the codecs {codecs}; one with the codec trivelet alone, in shards or not, is read so")
    prototype = cpu.buffer_prototype
    config = array.config if hasattr(array, "config") else array._config  # the same of older versions
    described = array.metadata.data_type, array.metadata.fill_value, config, prototype
    spec, spec_of_shard = ArraySpec(inner, *described), ArraySpec(chunks, *described)
    params = _library.make(_library.VolumeDecodeParams)
    params.reduce, params.max_layers, params.threads = reduce, layers, 1
    long = [axis for axis, n in enumerate(inner) if n > 1]
    volumes = inner[long[0]] if len(long) == 4 else 1
    found: dict[tuple[int, ...], Array] = {}
    steps: set[tuple[int, ...]] = set()
    at_once = _at_once()

    async def read(place: tuple[int, ...], getter: Any) -> None:
        async with at_once:
            begun = await _begin(getter, prototype, codec._ends(spec))
            if begun is None:
                return
            try:
                if begun.whole is not None:
                    begun = _Begun(begun.size, parts=((0, begun.whole),))
                plan = await _fetch(getter, begun, params, prototype)
                part, step = await asyncio.to_thread(_read_box, plan, params, volumes, spec)
            except Error as error:
                raise type(error)(f"chunk {getter}: {error}") from error
        all_steps = [1] * array.ndim
        for axis, n in zip(reversed(long), reversed(step)):
            all_steps[axis] = n
        steps.add(tuple(all_steps))
        extents = [1] * array.ndim
        for axis, n in zip(reversed(long), reversed(part.shape[:4])):
            extents[axis] = n
        found[place] = part.reshape(extents)

    async def read_object(place: tuple[int, ...]) -> None:
        path = array.store_path / array.metadata.encode_chunk_key(place)
        if not outer:
            await read(place, path)
            return
        index = await outer._load_shard_index_maybe(path, outer._get_chunks_per_shard(spec_of_shard))
        if index is None:
            return
        per_shard = [c // n for c, n in zip(chunks, inner)]
        windows = []
        for within in itertools.product(*map(range, per_shard)):
            span = index.get_chunk_slice(within)
            if span is not None:
                at = tuple(p * m + w for p, m, w in zip(place, per_shard, within))
                windows.append(read(at, _Window(path, span[0], span[1] - span[0])))
        await asyncio.gather(*windows)

    places = itertools.product(*(range(-(-n // c)) for n, c in zip(array.shape, chunks)))
    await asyncio.gather(*(read_object(place) for place in places))
    step = steps.pop() if steps else tuple(1 if n == 1 else 1 << reduce for n in inner)
    uneven = [n % s for n, s, whole in zip(inner, step, array.shape) if whole > n]
    if steps or any(uneven) or any(a.shape != tuple(-(-n // s) for n, s in zip(inner, step)) for a in found.values()):
        raise UnsupportedError(f"chunks of {inner}, of which one of {step} voxels is left along the axes: they leave gaps")
    shape = [-(-n // s) for n, s in zip(array.shape, step)]
    result = np.full(shape, spec.fill_value, spec.dtype.to_native_dtype())
    for place, part in found.items():
        first = [p * (n // s) if n < whole else 0 for p, n, s, whole in zip(place, inner, step, array.shape)]
        into = result[tuple(slice(f, f + n) for f, n in zip(first, part.shape))]
        into[...] = part[tuple(slice(n) for n in into.shape)]
    return result


def read_shards_by_ranges() -> Any:
    """Of arrays that are opened from now on, shards are read by `RangedShardingCodec`; in a `with`, those opened in it."""
    return zarr.config.set({"codecs.sharding_indexed": "trivelet.zarr.RangedShardingCodec"})


register_codec("sharding_indexed", RangedShardingCodec)  # beside Zarr's, which is taken unless the configuration says else
register_codec("trivelet", TriveletCodec)  # for packages that are not installed, which have no entry points
