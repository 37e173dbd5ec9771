"""Datasets of HDF5 whose chunks are streams, over h5py.

    with h5py.File("brain.h5", "w") as file:
        made = file.create_dataset("ct", shape, "int16", chunks=(64, 256, 256), **trivelet.hdf5.filter())
        trivelet.hdf5.write(made, volume)            # chunks are coded in parallel
    trivelet.hdf5.read(h5py.File("brain.h5")["ct"], np.s_[10:20, :, 5])

After this import h5py reads such datasets itself, `file["ct"][10:20]`. Other programs find the filter if
HDF5_PLUGIN_PATH names the folder `plugin_path()`. HDF5 filters one whole chunk after the other; `write` and `read`
use threads, and `read` decodes only the needed part of a chunk. A chunk is a volume: its axes
longer than 1, of which there are four at most, are volumes, slices, rows and columns.
"""

from __future__ import annotations

import itertools
import os
import struct
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Callable, Iterator, Optional

import h5py
import numpy as np
import numpy.typing as npt

from ._chunks import MODES, ChunkCoding, long_axes
from .errors import ArgumentError, Error, StreamError, UnsupportedError
from .volume import _TYPES, Array, Volume, _ranges_of

FILTER_ID = 480  # from the range for testing, until one is assigned
_VERSION = 1
_TRANSFORMS = ["auto", "wavelet", "prediction"]
_EFFORTS = ["medium", "fast", "slow"]
_PROFILES = ["dense", "fast"]


def plugin_path() -> str:
    """The folder of this package with the filter, for HDF5_PLUGIN_PATH; "" if it was built without."""
    path = Path(__file__).with_name("hdf5_plugin")
    return str(path) if path.is_dir() else ""


if plugin_path():
    h5py.h5pl.prepend(os.fsencode(plugin_path()))


def client_data(**coding: Any) -> tuple[int, ...]:
    """The client data of the filter (`h5repack -f UD=480,0,8,...`) for the arguments of `filter`.

    >>> client_data()
    (1, 0, 0, 0, 0, 128, 0, 0)
    """
    return _words(ChunkCoding(**coding))


def filter(**coding: Any) -> dict[str, Any]:
    """Arguments for `create_dataset`: `file.create_dataset("ct", data=v, chunks=(64, 64, 64), **filter())`.

    coding: mode ("lossless", "max_error", "quality", "psnr", "bpp", "ratio") and its value, transform, effort, profile,
      block_size, slab and layers, as of `trivelet.encode`.
    """
    if not h5py.h5z.filter_avail(FILTER_ID):
        raise UnsupportedError(
            "HDF5 does not find the filter: this package was built where HDF5's headers were not (libhdf5-dev); let "
            "HDF5_PLUGIN_PATH name the folder of libh5trivelet.so before Python starts"
        )
    properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    # Mandatory, unlike h5py's default, because HDF5 silently stores chunks unfiltered if an optional filter refuses
    # them.
    properties.set_filter(FILTER_ID, h5py.h5z.FLAG_MANDATORY, client_data(**coding))
    return {"dcpl": properties}


def write(dataset: h5py.Dataset, array: npt.ArrayLike, start: Optional[tuple[int, ...]] = None, *, workers: int = 0) -> None:
    """`dataset[start : start + array.shape] = array`, in whole chunks, coded in parallel and written past HDF5's
    own pipeline. The bytes are those of the filter.

    start: index of the first element, a multiple of the chunk size along each axis; None = 0. The array must end at
    the end of a chunk or of the dataset.
    workers: threads; 0 = one for each core.
    """
    coding = _coding_of(dataset)
    given = np.asarray(array)
    if not np.can_cast(given.dtype, dataset.dtype, "same_kind"):
        raise ArgumentError(f"an array of {given.dtype} for a dataset of {dataset.dtype}")
    first = start or (0,) * dataset.ndim
    if len(first) != dataset.ndim or given.ndim != dataset.ndim:
        raise ArgumentError(f"an array of {given.ndim} axes at {first}; the dataset has {dataset.ndim}")
    for axis, (begin, extent, chunk, whole) in enumerate(zip(first, given.shape, dataset.chunks, dataset.shape)):
        end = begin + extent
        if begin < 0 or begin % chunk or end > whole or (end % chunk and end != whole):
            raise ArgumentError(
                f"{begin} to {end} of axis {axis}, which has {whole} in chunks of {chunk}; whole chunks are written"
            )

    def encode(offset: tuple[int, ...]) -> tuple[tuple[int, ...], bytes]:
        within = tuple(slice(o - b, min(o - b + c, n)) for o, b, c, n in zip(offset, first, dataset_chunks, given.shape))
        part = given[within].astype(dataset_type, casting="same_kind", copy=False)
        if part.shape != dataset_chunks:  # voxels outside the dataset get its fill value, as in HDF5
            chunk = np.full(dataset_chunks, fill, dataset_type)
            chunk[tuple(slice(n) for n in part.shape)] = part
            part = chunk
        return offset, coding.encode_chunk(part)

    # Read here rather than in threads, because h5py has a global lock.
    dataset_chunks, dataset_type, fill = dataset.chunks, dataset.dtype, dataset.fillvalue
    ends = [b + n for b, n in zip(first, given.shape)]
    offsets = itertools.product(*(range(b, e, c) for b, e, c in zip(first, ends, dataset_chunks)))
    for offset, stream in _in_order(encode, offsets, workers):
        dataset.id.write_direct_chunk(offset, stream)


def read(dataset: h5py.Dataset, index: Any = ..., *, layers: Optional[int] = None, workers: int = 0) -> Any:
    """`dataset[index]`: decodes the needed part of every chunk, several chunks in parallel.

    index: integers, slices and `...`. layers: number of quality layers; None = all. workers: threads; 0 = one for each
      core.
    """
    _coding_of(dataset)
    chunks, shape, native, fill = dataset.chunks, dataset.shape, dataset.dtype, dataset.fillvalue
    ranges = _ranges_of(index, shape)
    result = np.empty([r.extent for r in ranges], native)
    within = tuple(r.within for r in ranges)
    if result.size == 0:
        return result[within]

    def raw(offset: tuple[int, ...]) -> tuple[tuple[int, ...], int, Optional[bytes]]:
        info = dataset.id.get_chunk_info_by_coord(offset)
        there = info.byte_offset is not None
        return offset, info.filter_mask, dataset.id.read_direct_chunk(offset)[1] if there else None

    def decode(fetched: tuple[tuple[int, ...], int, Optional[bytes]]) -> None:
        offset, mask, data = fetched
        begins = [max(r.first, o) for r, o in zip(ranges, offset)]
        ends = [min(r.end, o + c) for r, o, c in zip(ranges, offset, chunks)]
        into = tuple(slice(b - r.first, e - r.first) for r, b, e in zip(ranges, begins, ends))
        wanted = tuple(slice(b - o, e - o) for b, e, o in zip(begins, ends, offset))
        if data is None:
            result[into] = fill
        elif mask & 1:  # the filter was skipped
            result[into] = np.frombuffer(data, native).reshape(chunks)[wanted]
        else:
            try:
                result[into] = _decode_part(data, wanted, chunks, native, layers)
            except Error as error:
                raise type(error)(f"chunk {offset} of {dataset_name}: {error}") from error

    dataset_name = dataset.name
    starts = itertools.product(*(range(r.first // c * c, r.end, c) for r, c in zip(ranges, chunks)))
    for _ in _in_order(decode, map(raw, starts), workers):
        pass
    return result[within]


def _decode_part(data: bytes, wanted: tuple[slice, ...], chunks: tuple[int, ...], native: Any, layers: Optional[int]) -> Array:
    volume = Volume(data, layers=layers, threads=1)
    if volume.shape != long_axes(chunks) or volume.dtype != native:
        raise StreamError(f"{volume.dtype} of shape {volume.shape}; the dataset has {native} in chunks of {chunks}")
    part: Array = volume[tuple(w for w, n in zip(wanted, chunks) if n > 1)]
    return part.reshape([w.stop - w.start for w in wanted])


def _in_order(work: Callable[[Any], Any], items: Iterator[Any], workers: int) -> Iterator[Any]:
    """Results of work(item) in order, computed by threads that run a few items ahead."""
    if workers < 0:
        raise ArgumentError(f"workers is {workers}; it must be 0, one for each core, or more")
    count = workers or len(os.sched_getaffinity(0))
    with ThreadPoolExecutor(count) as pool:
        ahead: deque[Future[Any]] = deque()
        try:
            for item in items:
                ahead.append(pool.submit(work, item))
                if len(ahead) > 2 * count:
                    yield ahead.popleft().result()
            while ahead:
                yield ahead.popleft().result()
        finally:
            for future in ahead:
                future.cancel()


# ------------------------------------------------------------------------------------------------------- client data


def _words(coding: ChunkCoding) -> tuple[int, ...]:
    mode = MODES.index(coding.mode)
    low, high = struct.unpack("<2I", struct.pack("<d", coding.value or 0))
    how = _TRANSFORMS.index(coding.transform) + 16 * _EFFORTS.index(coding.effort) + 256 * _PROFILES.index(coding.profile)
    return (_VERSION, mode, low, high, how, coding.block_size, coding.slab or 0, coding.layers or 0)


def _coding_of(dataset: h5py.Dataset) -> ChunkCoding:
    """Decodes the client data in the file; refuses datasets with further filters."""
    properties = dataset.id.get_create_plist()
    filters = [properties.get_filter(i) for i in range(properties.get_nfilters())]
    if [f[0] for f in filters] != [FILTER_ID]:
        raise ArgumentError(
            f"{dataset.name} has the filters {[f[0] for f in filters]}, not {FILTER_ID} alone; index it as h5py does"
        )
    words = filters[0][2]
    if len(words) < 8 or words[0] != _VERSION or words[1] >= len(MODES):
        raise UnsupportedError(f"{dataset.name} has client data that this package does not know: {words[:8]}")
    if dataset.dtype.kind + str(dataset.dtype.itemsize) not in _TYPES:
        raise UnsupportedError(f"{dataset.name} is of {dataset.dtype}; index it as h5py does")
    (value,) = struct.unpack("<d", struct.pack("<2I", *words[2:4]))
    how = words[4]
    return ChunkCoding(
        MODES[words[1]],
        value if words[1] else None,
        _TRANSFORMS[how & 15],
        _EFFORTS[how >> 4 & 15],
        _PROFILES[how >> 8],
        words[5] or 128,
        words[6] or None,
        words[7] or None,
    )
