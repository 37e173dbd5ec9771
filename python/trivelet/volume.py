"""Volumes: encodes NumPy arrays into streams and decodes them, whole or in parts.

Axes are in NumPy's order: slices, rows, columns (`zyx`); `t` in front for several volumes; `c` at the end for
voxels of several scalars. The stream stores the axis names, so that the array is restored in its shape.
"""

from __future__ import annotations

import ctypes
import math
import operator
import re
from functools import cached_property
from typing import Any, Iterator, NamedTuple, Optional, Sequence, Union

import numpy as np
import numpy.typing as npt

from . import _envelope, _library
from ._arrays import OnDevice, on_device, on_host
from ._handles import Handle, decoder_of_batches, encoder_of_batches, error_of, log
from ._streams import Readable, Source
from .errors import ArgumentError, Error, StreamError

AXES = "tzyxc"
_TYPES = ["u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f4", "f8"]  # in the order of TVL_U8 ..
_STORED = {"b1": ["u1"], "f2": ["i2", "f4"]}  # types that streams hold as others; their settings name the array's
_NAMED = {"bool": "b1", "float16": "f2"}
_PROFILES = ["fast", "dense"]
_TRANSFORMS = ["auto", "wavelet", "prediction"]
_EFFORTS = ["fast", "medium", "slow"]
_ACCESSES = ["whole", "slices", "region"]

Array = npt.NDArray[Any]


def number_of(name: str, value: str, names: Sequence[str]) -> int:
    if value not in names:
        raise ArgumentError(f"{name} is {value!r}; there are {', '.join(names)}")
    return names.index(value)


def positive(name: str, value: float) -> float:
    """Refuses values that the library would take as "not set"."""
    if not (value > 0 and math.isfinite(value)):
        raise ArgumentError(f"{name} is {value}; it must be above 0 and finite")
    return value


def check_quality(value: float) -> float:
    if not 0 <= value <= 100:
        raise ArgumentError(f"quality is {value}; it must be 0..100")
    return value


def check_device(number: int) -> int:
    if operator.index(number) < 0:
        raise ArgumentError(f"device is {number}; GPUs are numbered from 0, and None is the CPU")
    return number


def set_limits(params: Any, **limits: Optional[int]) -> None:
    """Sets the given ones; the others keep the library's defaults."""
    for name, value in limits.items():
        if name not in ("max_memory", "max_samples", "max_frames", "max_samples_per_byte"):
            raise TypeError(f"an unexpected keyword argument '{name}'")
        if value is None:
            continue
        if operator.index(value) < 0:
            raise ArgumentError(f"{name} is {value}; it must not be below 0")
        setattr(params, name, value)


def at_most_one(**wants: Any) -> None:
    asked = [name for name, value in wants.items() if value is not None]
    if len(asked) > 1:
        raise ArgumentError(f"{' and '.join(asked)} together; ask for one of {', '.join(wants)}")


# ------------------------------------------------------------------------------------------------------------- encode


_said_colour = False


def _is_colour(array: Array) -> bool:
    """Whether the last axis is probably colour: three or four entries behind a picture."""
    whole = array.dtype.kind == "u" and array.dtype.itemsize <= 2
    return whole and array.ndim >= 3 and array.shape[-1] in (3, 4) and min(array.shape[-3:-1]) > 4


def _say_colour(array: Array, axes: str) -> None:
    global _said_colour
    if _said_colour:
        return
    _said_colour = True
    log.warning(
        "the last axis of an array of %s of shape %s is taken for colour: axes=%r; pass axes to say what it is",
        array.dtype,
        array.shape,
        axes,
    )


def _axes_of(array: Array, axes: Optional[str]) -> str:
    if axes is None:
        if not 1 <= array.ndim <= 5:
            raise ArgumentError(f"an array of {array.ndim} dimensions; volumes have 1 to 5: {AXES}")
        if array.ndim == 5:
            return AXES
        if _is_colour(array):
            _say_colour(array, AXES[5 - array.ndim :])
            return AXES[5 - array.ndim :]
        return AXES[4 - array.ndim : 4]
    if len(axes) != array.ndim:
        raise ArgumentError(f"axes {axes!r} of an array of {array.ndim} dimensions")
    if "x" not in axes or [a for a in AXES if a in axes] != list(axes):
        raise ArgumentError(f"axes {axes!r}; some of {AXES} in this order, x among them")
    return axes


def stored_types(dtype: np.dtype[Any]) -> list[np.dtype[Any]]:
    """The types of which streams hold an array of `dtype`: the first one exactly, the last one with errors, too."""
    names = _STORED.get(dtype.kind + str(dtype.itemsize))
    return [np.dtype(dtype.str[0].replace("|", "=") + name) for name in names] if names else [dtype]


def _ordered(bits: Array) -> Array:
    """The bits of float16 as numbers in the order of the values."""
    return np.where(bits < 0, ~(bits & np.int16(0x7FFF)), bits).astype(bits.dtype)


def to_stored(array: Array, stored: np.dtype[Any]) -> Array:
    """What a stream holds for an array: one of stored_types()."""
    if array.dtype.kind == "b":
        return array.view(stored)
    return _ordered(array.view(stored)) if stored.kind == "i" and array.dtype.kind == "f" else array.astype(stored, copy=False)


def as_type(array: Array, dtype: np.dtype[Any]) -> Array:
    """An array of `dtype` of what a stream holds for it."""
    if array.dtype == dtype:
        return array
    if dtype.kind == "b":
        mask: Array = array != 0
        return mask
    if array.dtype.kind == "i":
        bits = np.where(array < 0, ~array | np.int16(-0x8000), array)
        return bits.astype(dtype.str[0] + "i2").view(dtype)
    limit = float(np.finfo(np.float16).max)
    return np.where(np.isinf(array), array, np.clip(array, -limit, limit)).astype(dtype)


def _bound_of_half(array: Array, max_error: float) -> float:
    """The bound for float32, so that rounding to float16 keeps `max_error`: the rounded value errs by at most twice as
    much, because the original is a float16, and by at most half a step more."""
    finite = np.abs(array[np.isfinite(array)])
    half_step = float(np.spacing(finite.max())) / 2 if finite.size else 0.0
    return max(max_error / 2, max_error - half_step)


def _with_all_axes(array: Array, axes: str) -> Array:
    return array[tuple(slice(None) if a in axes else np.newaxis for a in AXES)]


def _rows_without_gaps(array: Array) -> bool:
    """The library has strides of rows, slices and volumes, and reads 0 as "none"."""
    item = array.itemsize
    columns, scalars = array.shape[3:]
    return (
        (scalars == 1 or array.strides[4] == item)
        and (columns == 1 or array.strides[3] == item * scalars)
        and all(n == 1 or s != 0 for n, s in zip(array.shape, array.strides))
    )


def _voxels(array: Array) -> Any:
    def stride(axis: int) -> int:
        return array.strides[axis] if array.shape[axis] > 1 else 0

    return _library.Voxels(array.ctypes.data, stride(2), stride(1), stride(0))


def _describe(array: Array) -> Any:
    """The tvl_volume of an array with all axes."""
    volume = _library.make(_library.Volume)
    code = array.dtype.kind + str(array.dtype.itemsize)
    if code not in _TYPES:
        raise ArgumentError(f"an array of {array.dtype}; there are bool, integers of 8 to 64 bits, and floats of 16 to 64")
    if array.size == 0:
        raise ArgumentError(f"an array without voxels, of shape {array.shape}")
    volume.type = _TYPES.index(code)
    volume.big_endian = array.dtype.str[0] == ">"
    limits = {"width": 65536, "height": 65536, "channels": 4}
    for name, extent in zip(("volumes", "slices", "height", "width", "channels"), array.shape):
        if extent > limits.get(name, extent):
            raise ArgumentError(f"{name} {extent}; at most {limits[name]}")
        setattr(volume, name, extent)
    return volume


class _Request(NamedTuple):
    """What the library is asked to encode."""

    volume: Any
    params: Any
    voxels: Any
    far: Optional[OnDevice]
    nbytes: int
    keeps: Any  # the memory of the voxels


def _request(
    array: npt.ArrayLike,
    *,
    max_error: Optional[float] = None,
    quality: Optional[float] = None,
    psnr: Optional[float] = None,
    bpp: Optional[float] = None,
    size: Optional[int] = None,
    ratio: Optional[float] = None,
    axes: Optional[str] = None,
    transform: str = "auto",
    effort: str = "medium",
    profile: str = "dense",
    access: str = "whole",
    block_size: Optional[int] = None,
    layers: Optional[int] = None,
    slab: Optional[int] = None,
    fill_values: Union[float, Sequence[float]] = (),
    verify: bool = False,
    threads: int = 0,
    device: Optional[int] = None,
) -> _Request:
    """The request for `encode`, which describes the parameters."""
    far = on_device(array)
    given = far.view if far else on_host(array)
    axes = _axes_of(given, axes)
    exact = all(want is None for want in (quality, psnr, bpp, size, ratio)) and not max_error
    stored = stored_types(given.dtype)[0 if exact else -1]
    if stored != given.dtype:
        if far:
            raise ArgumentError(f"an array on a GPU of {given.dtype}; there are integers of 8 to 64 bits, float32 and float64")
        if max_error and given.dtype.kind == "f":
            max_error = _bound_of_half(given, max_error)
    full = _with_all_axes(given if far else to_stored(given, stored), axes)
    volume = _describe(full)
    if not _rows_without_gaps(full):
        if far:
            raise ArgumentError(f"an array on a GPU of strides {given.strides}; its rows must have no gaps")
        full = np.ascontiguousarray(full)
    at_most_one(max_error=max_error, quality=quality, psnr=psnr, bpp=bpp, size=size, ratio=ratio)
    params = _library.make(_library.VolumeParams)
    if max_error is not None:
        if not (max_error >= 0 and math.isfinite(max_error)):
            raise ArgumentError(f"max_error is {max_error}; it must be finite and not below 0, which is lossless")
        params.max_error = max_error
    if quality is not None:
        params.quality = check_quality(quality)
    if psnr is not None:
        params.psnr = positive("psnr", psnr)
    if bpp is not None:
        params.bits_per_voxel = positive("bpp", bpp)
    if size is not None:
        params.total_bytes = int(positive("size", operator.index(size)))
    if ratio is not None:
        params.total_bytes = max(1, int(given.nbytes / positive("ratio", ratio)))
    params.transform = number_of("transform", transform, _TRANSFORMS)
    params.effort = number_of("effort", effort, _EFFORTS)
    params.profile = number_of("profile", profile, _PROFILES)
    params.access = number_of("access", access, _ACCESSES)
    params.block_size = block_size if block_size is not None else 0
    params.layers = layers if layers is not None else 0
    params.slab = slab if slab is not None else 0
    fills = [fill_values] if isinstance(fill_values, (int, float, np.number)) else list(fill_values)
    if stored != given.dtype:
        fills = [] if exact else [given.dtype.type(fill) for fill in fills]  # as the array has them
    params.fill_values = (ctypes.c_double * len(fills))(*map(float, fills))
    params.fill_count = len(fills)
    params.verify = verify
    params.threads = threads
    if device is not None:
        params.device = check_device(device)
    params.settings = b"axes " + axes.encode() + (b" " + given.dtype.name.encode() if stored != given.dtype else b"")
    return _Request(volume, params, _voxels(full), far, full.nbytes, (full, array))


def encode(
    array: npt.ArrayLike,
    *,
    max_error: Optional[float] = None,
    quality: Optional[float] = None,
    psnr: Optional[float] = None,
    bpp: Optional[float] = None,
    size: Optional[int] = None,
    ratio: Optional[float] = None,
    axes: Optional[str] = None,
    transform: str = "auto",
    effort: str = "medium",
    profile: str = "dense",
    access: str = "whole",
    block_size: Optional[int] = None,
    layers: Optional[int] = None,
    slab: Optional[int] = None,
    fill_values: Union[float, Sequence[float]] = (),
    verify: bool = False,
    threads: int = 0,
    device: Optional[int] = None,
) -> bytes:
    """Encodes an array, lossless unless one of `max_error` to `ratio` is given.

    >>> import numpy as np, trivelet
    >>> array = np.arange(8 * 32 * 32, dtype=np.int16).reshape(8, 32, 32)
    >>> stream = trivelet.encode(array)
    >>> np.array_equal(trivelet.decode(stream), array)
    True
    >>> about = trivelet.decode(trivelet.encode(array, max_error=5))
    >>> int(abs(about - array).max()) <= 5
    True

    array: bool, integers of 8 to 64 bits, float16, float32 or float64 in either byte order, with 1 to 5 axes. It is
    copied only if it is float16 or its rows have gaps. Bool is coded as a mask. Arrays of other libraries are accepted by DLPack. Arrays in GPU memory
    (`__cuda_array_interface__` or DLPack) must have rows without gaps.
    max_error: bound of every voxel's error, in units of the array.
    quality: 0..100. psnr: dB, with the largest minus the least value as the peak.
    bpp, size: limits of bits a voxel and bytes of the stream. ratio: least compression ratio.
    axes: names of the axes, a subsequence of "tzyxc". By default they follow from the number of axes, without "c".
    Exception: a last axis of 3 or 4 in unsigned arrays of 8 or 16 bits is taken for colour, with one warning in the
    log "trivelet".
    transform: "wavelet" contains smaller sizes and lower qualities; "prediction" does not, and is often smaller;
    "auto" takes the smaller one.
    effort: "fast", "medium" or "slow": how much is tried on a piece of the array first. profile: "fast" or "dense".
    access: what readers do: decode "whole" arrays, "slices" of them, or a "region" (a box), of which small ones then
    read little, for a few percent more bytes. It chooses the next and `slab`.
    block_size: 32, 64, 128 or 256, the smallest unit that is read for a region. layers: quality layers, 1..16.
    slab: slices of a GOP, 1..128. By default these are chosen.
    fill_values: one or several values that mean "no data". In lossy streams they are restored exactly and cost
    almost nothing. NaN and infinities are always treated so.
    verify: decodes and compares before it returns.
    threads: 0 = one for each core. The stream does not depend on it.
    device: the number of a GPU for the wavelet; None = the CPU. Prediction always runs on the CPU.
    """
    request = _request(
        array,
        max_error=max_error,
        quality=quality,
        psnr=psnr,
        bpp=bpp,
        size=size,
        ratio=ratio,
        axes=axes,
        transform=transform,
        effort=effort,
        profile=profile,
        access=access,
        block_size=block_size,
        layers=layers,
        slab=slab,
        fill_values=fill_values,
        verify=verify,
        threads=threads,
        device=device,
    )
    library = _library.library
    with Handle("encoder") as encoder:
        if request.far:
            encoder.call(library.tvl_encoder_set_memory, request.far.device, request.far.stream)
        encoder.call(
            library.tvl_encoder_write_volume,
            ctypes.byref(request.volume),
            ctypes.byref(request.params),
            ctypes.byref(request.voxels),
            None,
            None,
            None,
        )
        data, length = ctypes.c_void_p(), ctypes.c_uint64()
        encoder.call(library.tvl_encoder_stream, ctypes.byref(data), ctypes.byref(length))
        return ctypes.string_at(data.value or 0, length.value)


def encode_many(
    arrays: Sequence[Any],
    *,
    threads: int = 0,
    device: Optional[int] = None,
    out: Optional[Sequence[Any]] = None,
    **how: Any,
) -> list[Any]:
    """Encodes several arrays in parallel, each as `encode` does with the same keywords.

    >>> import numpy as np, trivelet
    >>> arrays = [np.full((4, 32, 32), n, np.uint8) for n in range(6)]
    >>> streams = trivelet.encode_many(arrays, transform="wavelet", effort="fast")
    >>> streams == [trivelet.encode(a, transform="wavelet", effort="fast") for a in arrays]
    True

    threads: total number; 0 = one for each core. device: the number of a GPU for wavelets. Arrays in the memory of one
    GPU are encoded there, if they are without gaps, of one scalar a voxel and at most 16 bits, and with
    effort="fast", transform="wavelet", lossless and without `verify`; others pass through host memory.
    out: arrays of uint8 in the same GPU's memory, for the streams; what is returned are then slices of them. The GPU's
    buffers are kept for the next call, until `release_gpus`. The first failure raises, with its index.
    """
    requests = [_request(array, **how) for array in arrays]
    far = _same_place([request.far for request in requests], "arrays")
    if out is not None:
        if len(out) != len(requests):
            raise ArgumentError(f"out has {len(out)} arrays for {len(requests)}")
        rooms = [on_device(room) for room in out]
        if far is None or _same_place([*rooms, far], "arrays and out") is None:
            raise ArgumentError("out is for arrays in memory of a GPU")
        buffers = [room.view.reshape(-1).view(np.uint8) for room in rooms if room]
    else:
        buffers = [np.empty(request.nbytes + request.nbytes // 8 + 65536, np.uint8) for request in requests]
    sizes = _encode_into(requests, buffers, threads, far.device if far and device is None else device, far, out is not None)
    if out is not None:
        return [room[:size] for room, size in zip(out, sizes)]
    return [buffer[:size].tobytes() for buffer, size in zip(buffers, sizes)]


def _same_place(fars: Sequence[Optional[OnDevice]], what: str) -> Optional[OnDevice]:
    if len({far and (far.device, far.stream) for far in fars}) > 1:
        raise ArgumentError(f"{what} are in several places; they must be in memory of the host, or of one GPU with one stream")
    return fars[0] if fars else None


def _encode_into(
    requests: list[_Request],
    buffers: list[Array],
    threads: int,
    device: Optional[int],
    far: Optional[OnDevice],
    streams_there: bool,
) -> list[int]:
    """The sizes of the streams in the buffers. Streams on the host may get larger buffers."""
    library = _library.library
    jobs = (_library.EncodeJob * len(requests))()
    for job, request, buffer in zip(jobs, requests, buffers):
        library.tvl_volume_encode_job_init(ctypes.byref(job), ctypes.sizeof(job))
        job.volume, job.params = ctypes.pointer(request.volume), ctypes.pointer(request.params)
        job.voxels = request.voxels
        job.stream, job.capacity = buffer.ctypes.data, buffer.nbytes
    params = _library.make(_library.BatchParams)
    params.threads = threads
    params.device = _library.CPU if device is None else check_device(device)
    params.streams_there = streams_there
    with encoder_of_batches(device) as encoder:
        encoder.call(library.tvl_encoder_set_memory, *((far.device, far.stream) if far else (_library.CPU, None)))
        failed = encoder.try_call(library.tvl_encode_volumes, jobs, len(jobs), ctypes.byref(params))
        for number, job in enumerate(jobs):
            if failed is None:
                break
            if job.result == _library.BUFFER_TOO_SMALL and not streams_there:
                bound = library.tvl_encode_volume_bound(job.volume, job.params)
                buffers[number] = np.empty(bound, np.uint8)
                job.stream, job.capacity = buffers[number].ctypes.data, bound
                encoder.call(library.tvl_encode_volumes, ctypes.byref(job), 1, ctypes.byref(params))
            elif job.result != 0:
                raise error_of(job.result, f"array {number}: {job.error.decode(errors='replace')}")
        if failed is not None and all(job.result == 0 for job in jobs):
            failed = None
        if failed is not None:
            raise failed
    return [job.size for job in jobs]


# ------------------------------------------------------------------------------------------------------------- decode


def _layout(volume: Any) -> tuple[Any, int, int, int, int, int]:
    """The scalar type and the extents of all axes."""
    dtype = np.dtype((">" if volume.big_endian else "<") + _TYPES[volume.type])
    return dtype, volume.volumes, volume.slices, volume.height, volume.width, volume.channels


class _Range(NamedTuple):
    """The part of one axis that an index selects: [first, end), and `within` that range."""

    first: int
    end: int
    within: Union[int, slice]

    @property
    def extent(self) -> int:
        return self.end - self.first


def _range_of(index: Any, extent: int, axis: int) -> _Range:
    if isinstance(index, slice):
        wanted = range(*index.indices(extent))
        if not wanted:
            return _Range(0, 0, slice(0, 0))
        first, last = min(wanted[0], wanted[-1]), max(wanted[0], wanted[-1])
        begin = wanted[0] - first
        stop = wanted[-1] - first + (1 if wanted.step > 0 else -1)
        return _Range(first, last + 1, slice(begin, stop if stop >= 0 else None, wanted.step))
    try:
        number = operator.index(index)
    except TypeError:
        raise IndexError(
            f"an index {index!r}; there are integers, slices and ... here. Other indices work on what these give"
        ) from None
    if not -extent <= number < extent:
        raise IndexError(f"index {number} is out of bounds for axis {axis} with size {extent}")
    number %= extent
    return _Range(number, number + 1, 0)


def _ranges_of(index: Any, shape: tuple[int, ...]) -> list[_Range]:
    given = list(index) if isinstance(index, tuple) else [index]
    dots = [i for i, part in enumerate(given) if part is Ellipsis]
    if len(dots) > 1:
        raise IndexError("an index with more than one ...")
    missing = len(shape) - (len(given) - len(dots))
    if missing < 0:
        raise IndexError(f"{len(given) - len(dots)} indices for {len(shape)} axes")
    at = dots[0] if dots else len(given)
    given[at : at + 1] = [slice(None)] * missing
    return [_range_of(part, extent, axis) for axis, (part, extent) in enumerate(zip(given, shape))]


class Volume:
    """An array in a stream. Only the parts that an index needs are read and decoded.

    >>> import numpy as np, trivelet
    >>> array = np.arange(40 * 50 * 60, dtype=np.float32).reshape(40, 50, 60)
    >>> v = trivelet.open(trivelet.encode(array, transform="wavelet"))
    >>> v.shape, v.dtype, v.exact
    ((40, 50, 60), dtype('float32'), True)
    >>> np.array_equal(v[10:20, ::-1, 5], array[10:20, ::-1, 5])
    True
    >>> v.at(reduce=2)[::2].shape[1:]
    (13, 15)

    A reduced volume has fewer slices if its encoder used a dyadic transform. Indices are integers, slices and
    `...`; for a step, the enclosing box is decoded. Any number of threads may read; reads of a Python file take
    turns. A volume of a path can be pickled.
    """

    def __init__(
        self,
        source: Readable,
        *,
        reduce: int = 0,
        layers: Optional[int] = None,
        threads: int = 0,
        device: Optional[int] = None,
        **limits: Optional[int],
    ) -> None:
        """Arguments are those of `trivelet.open` and `at`."""
        if layers is not None and layers < 1:
            raise ArgumentError(f"layers is {layers}; it must be at least 1, or None for all")
        self._source = source if isinstance(source, Source) else Source(source)
        self._options = {"reduce": reduce, "layers": layers, "threads": threads, "device": device}
        self._limits = limits
        with self._source.lock, Handle("decoder") as decoder:
            self._open(decoder, None)
            whole, output, info = self._describe(decoder)
            stream = _library.make(_library.StreamInfo)
            decoder.call(_library.library.tvl_decoder_stream, ctypes.byref(stream))
            settings = _library.library.tvl_decoder_settings(decoder.pointer) or b""
            data, length = ctypes.c_void_p(), ctypes.c_uint64()
            decoder.call(_library.library.tvl_decoder_envelope, ctypes.byref(data), ctypes.byref(length))
            self._envelope = ctypes.string_at(data.value or 0, length.value)
        self._full: tuple[int, ...] = _layout(whole)[1:]
        self._extents: tuple[int, ...] = _layout(output)[1:]
        self._step: tuple[int, ...] = (info.step_z, info.step_y, info.step_x)
        self._slab: int = stream.gop_frames
        self.axes = self._axes(settings)
        self.shape: tuple[int, ...] = tuple(n for n, a in zip(self._extents, AXES) if a in self.axes)
        self._stored: np.dtype[Any] = _layout(whole)[0]
        self.dtype: np.dtype[Any] = self._type(settings)
        self.exact = bool(info.exact and layers is None and reduce == 0)
        self.max_error: Optional[float] = None
        if info.has_bound and layers is None and reduce == 0:
            self.max_error = self._bound(info)
        self.layers: int = stream.layers
        self.reductions: int = 0 if info.prediction else stream.spatial_levels

    def _bound(self, info: Any) -> float:
        """The bound of the array: rounding to float16 adds at most half a step, or as much as there is."""
        if self.dtype == self._stored or self.dtype.kind == "b" or info.max_error == 0:
            return float(info.max_error)
        largest = min(max(abs(info.least), abs(info.largest)), float(np.finfo(np.float16).max))
        return float(min(2 * info.max_error, info.max_error + float(np.spacing(np.float16(largest))) / 2))

    def _type(self, settings: bytes) -> np.dtype[Any]:
        """The type that the encoder names if the stream holds that as it has it; else that of the stream."""
        named = re.fullmatch(r"axes t?z?y?xc? (bool|float16)", settings.decode(errors="replace"))
        dtype = np.dtype(self._stored.str[0] + _NAMED[named[1]]) if named else self._stored
        return dtype if self._stored in stored_types(dtype) else self._stored

    def _axes(self, settings: bytes) -> str:
        """The axis names from the encoder if they match the extents; else derived from the extents."""
        named = re.fullmatch(r"axes (t?z?y?xc?)(?: bool| float16)?", settings.decode(errors="replace"))
        if named and all(n == 1 or a in named[1] for n, a in zip(self._full, AXES)):
            return named[1]
        return ("t" if self._full[0] > 1 else "") + "zyx" + ("c" if self._full[4] > 1 else "")

    def _open(
        self, decoder: Handle, box: Optional[Sequence[tuple[int, int]]], far: Optional[OnDevice] = None
    ) -> None:
        """`box`: first voxel and extent along t, z, y, x, at full size."""
        params = _library.make(_library.VolumeDecodeParams)
        if box is not None:
            (params.first_volume, params.volumes), (params.z, params.depth) = box[:2]
            (params.y, params.height), (params.x, params.width) = box[2:]
        params.reduce = self._options["reduce"]
        params.max_layers = self._options["layers"] or 0
        params.threads = self._options["threads"]
        if far:
            params.device = far.device
        elif self._options["device"] is not None:
            params.device = check_device(self._options["device"])
        set_limits(params, **self._limits)
        source = self._source.structure(decoder)
        decoder.call(_library.library.tvl_decoder_open_volume, ctypes.byref(source), ctypes.byref(params))

    def _describe(self, decoder: Handle) -> tuple[Any, Any, Any]:
        whole, output = _library.make(_library.Volume), _library.make(_library.Volume)
        info = _library.make(_library.VolumeInfo)
        decoder.call(_library.library.tvl_decoder_volume, ctypes.byref(whole), ctypes.byref(output), ctypes.byref(info))
        return whole, output, info

    @property
    def envelope(self) -> bytes:
        """The bytes kept beside the voxels: the header of the original file (`volh` of FORMAT.md); b"" if there are
        none."""
        return self._envelope

    @cached_property
    def _header(self) -> Optional[_envelope.Envelope]:
        return _envelope.parse(self._envelope)

    @cached_property
    def spacing(self) -> Optional[tuple[float, ...]]:
        """Distance of voxels along each axis but channels, in millimetres (of time: 1 if unknown, else seconds) or the
        unit of the file; None if the header of the original file does not say it, or is of an unknown kind."""
        found = _envelope.spacing_of(self._header, self._full[0], self._full[4])
        if found is None:
            return None
        steps = dict(zip("xyzt", (d * s for d, s in zip(found, (*self._step[::-1], 1)))))
        return tuple(steps[a] for a in self.axes if a != "c")

    @cached_property
    def affine(self) -> Optional[np.ndarray[Any, Any]]:
        """4x4, from indices along x, y, z to millimetres to the right, anterior and superior, as of NIfTI, if the
        original file was NIfTI or DICOM and says it; else None. Of a reduced volume it is that of its voxels, the first
        of each group."""
        full = _envelope.affine_of(self._header)
        return None if full is None else full @ np.diag([*self._step[::-1], 1.0])

    @cached_property
    def scale(self) -> Optional[tuple[float, float]]:
        """Slope and intercept that the header of the original file gives stored values: v[...] * slope + intercept.
        (1.0, 0.0) if it has none, None if slices of DICOM files have their own. They are never applied."""
        return _envelope.scale_of(self._header)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        at_once = max(1, self._slab // self._step[0]) if self.axes[0] == "z" else 1
        for first in range(0, len(self), at_once):
            yield from self[first : first + at_once]

    def __repr__(self) -> str:
        view = "".join(f", {k}={self._options[k]}" for k in ("reduce", "layers") if self._options[k])
        return f"<trivelet.Volume {self.axes} {self.shape} {self.dtype}{view}>"

    def at(self, reduce: int = 0, layers: Optional[int] = None) -> Volume:
        """The same volume with its size halved `reduce` times and `layers` quality layers; None = all."""
        options = {**self._options, **self._limits, "reduce": reduce, "layers": layers}
        return Volume(self._source, **options)  # type: ignore[arg-type]

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> Array:
        if copy is False:
            raise ValueError("an array of a Trivelet volume is always a new one")
        array: Array = self[...]
        return array if dtype is None else array.astype(dtype, copy=False)

    def __getitem__(self, index: Any) -> Any:
        ranges = _ranges_of(index, self.shape)
        return self._without_other_axes(self._read(ranges))[tuple(r.within for r in ranges)]

    def _without_other_axes(self, array: Array) -> Array:
        named: Array = array[tuple(slice(None) if a in self.axes else 0 for a in AXES)]
        return named

    def _read(self, ranges: list[_Range], into: Optional[Array] = None, far: Optional[OnDevice] = None) -> Array:
        """Decodes the box of `ranges`, one for each axis of `shape`; into new memory or `into`, a view of `far` if
        that is given."""
        named = dict(zip(self.axes, ranges))
        t, z, y, x, c = (named.get(a, _Range(0, 1, 0)) for a in AXES)
        if 0 in (r.extent for r in ranges):
            return np.empty((t.extent, z.extent, y.extent, x.extent, c.extent), self.dtype)
        box = (z.extent, y.extent, x.extent, self._extents[4])
        array = np.empty((t.extent, *box), self._stored) if into is None else into
        with self._source.lock, Handle("decoder") as decoder:
            self._open(decoder, [(t.first, t.extent), *(self._full_range(axis, r) for axis, r in enumerate((z, y, x)))], far)
            _, output, _ = self._describe(decoder)
            given, expected = _layout(output), (self._stored, t.extent, *box)
            if given != expected:  # the source has been replaced by another stream
                raise StreamError(f"the stream gives {given} along {AXES}, where there was {expected}")
            if far:
                decoder.call(_library.library.tvl_decoder_set_memory, far.device, far.stream)
            for at in range(t.extent):
                _read_slices(decoder, array[at : at + 1])
        box_of_voxels: Array = array[..., c.first : c.end]
        return box_of_voxels if into is not None else as_type(box_of_voxels, self.dtype)

    def _reduced_ranges(self, region: Any) -> list[_Range]:
        """The part of a full-size box after reduction."""
        parts = (region,) if isinstance(region, slice) else tuple(region)
        full = tuple(n for n, a in zip(self._full, AXES) if a in self.axes)
        slices = [p for p in parts if p is not Ellipsis]
        if len(slices) > len(full) or not all(isinstance(p, slice) and p.step in (None, 1) for p in slices):
            raise ArgumentError(f"a region {region!r}; it is a slice without a step for each axis of {self.axes}")
        ranges = _ranges_of(parts, full)
        for i, axis in enumerate(self.axes):
            if axis in "zyx" and ranges[i].extent > 0:
                place = "zyx".index(axis)
                first, last = self._place(place, ranges[i].first), self._place(place, ranges[i].end - 1)
                ranges[i] = _Range(first, last + 1, slice(None))
        return ranges

    def _place(self, axis: int, full: int) -> int:
        """The reduced position that represents a full-size voxel."""
        step = self._step[axis]
        if axis > 0 or step == 1:
            return full // step
        return full // self._slab * -(-self._slab // step) + full % self._slab // step

    def _full_range(self, axis: int, wanted: _Range) -> tuple[int, int]:
        first = self._full_place(axis, wanted.first)
        return first, self._full_place(axis, wanted.end - 1) - first + 1

    def _full_place(self, axis: int, place: int) -> int:
        """The first full-size voxel that `place` represents. Along z every GOP is reduced separately, and its last
        voxel may represent fewer slices."""
        step = self._step[axis]
        if axis > 0 or step == 1:
            return place * step
        left = -(-self._slab // step)
        return place // left * self._slab + place % left * step


def _read_slices(decoder: Handle, volume: Array) -> None:
    voxels, count = _voxels(volume), ctypes.c_uint64()
    wanted = volume.shape[1]
    decoder.call(_library.library.tvl_decoder_read_slices, ctypes.byref(voxels), wanted, ctypes.byref(count))
    if count.value < wanted:
        raise StreamError(f"the stream ends after {count.value} of {wanted} slices")


def open(
    source: Readable,
    *,
    threads: int = 0,
    device: Optional[int] = None,
    max_memory: Optional[int] = None,
    max_samples: Optional[int] = None,
    max_frames: Optional[int] = None,
    max_samples_per_byte: Optional[int] = None,
) -> Volume:
    """A volume whose parts are read on access.

    source: a path, bytes or another buffer, or a seekable binary file, such as fsspec's for a URL. It stays in use
    as long as the volume.
    threads: for each read; 0 = one for each core. device: the number of a GPU, on which wavelets are decoded; None = the
      CPU.
    max_memory, max_samples, max_frames, max_samples_per_byte: limits; a stream that would exceed one is refused
    with UnsupportedError. Defaults: 8 GiB for decoding; 2**33 samples in a GOP; 100 million slices; 4096 samples
    for each byte of the stream.
    """
    limits: dict[str, Any] = {
        "max_memory": max_memory,
        "max_samples": max_samples,
        "max_frames": max_frames,
        "max_samples_per_byte": max_samples_per_byte,
    }
    return Volume(source, threads=threads, device=device, **limits)


def decode(
    stream: Readable,
    *,
    region: Any = None,
    reduce: int = 0,
    layers: Optional[int] = None,
    out: Any = None,
    threads: int = 0,
    device: Optional[int] = None,
    **limits: Optional[int],
) -> Any:
    """The array of a stream, or a part of it.

    >>> import numpy as np, trivelet
    >>> stream = trivelet.encode(np.ones((8, 64, 64), np.uint16), transform="wavelet")
    >>> trivelet.decode(stream, region=np.s_[2:4, :, 32:40]).shape
    (2, 64, 8)
    >>> trivelet.decode(stream, reduce=3).shape
    (1, 8, 8)

    stream: what `trivelet.open` takes.
    region: slices without a step, or `...`, in full-size voxels even with `reduce`.
    reduce: number of halvings of the size. layers: number of quality layers; None = all.
    out: an array of the result's shape and type, which is filled and returned; it may have gaps. An array in GPU
    memory (`__cuda_array_interface__` or DLPack) must have rows without gaps; that GPU then decodes wavelets.
    threads, device, max_memory and the other limits: as in `trivelet.open`.
    """
    volume = Volume(stream, reduce=reduce, layers=layers, threads=threads, device=device, **limits)
    ranges = _ranges_of(..., volume.shape) if region is None else volume._reduced_ranges(region)
    shape = tuple(r.extent for r in ranges)
    if out is None:
        return volume._without_other_axes(volume._read(ranges))
    far = on_device(out)
    if far:
        into = _with_all_axes(far.view, volume.axes) if far.view.ndim == len(shape) else far.view
        if far.view.shape != shape or far.view.dtype != volume.dtype or not _rows_without_gaps(into):
            raise ArgumentError(
                f"out is {far.view.dtype} of shape {far.view.shape} on a GPU; it must be an array of {volume.dtype} of shape "
                f"{shape} whose rows have no gaps"
            )
        if volume.dtype != volume._stored:
            raise ArgumentError(f"an array of {volume.dtype} cannot be decoded to a GPU")
        if into.shape[4] != volume._extents[4]:
            raise ArgumentError("some of the scalars of a voxel alone cannot be decoded to a GPU")
        if 0 not in shape:
            volume._read(ranges, into, far)
        return out
    if not isinstance(out, np.ndarray) or out.shape != shape or out.dtype != volume.dtype:
        seen = f"{out.dtype} of shape {out.shape}" if isinstance(out, np.ndarray) else type(out).__name__
        raise ArgumentError(f"out is {seen}; it must be an array of {volume.dtype} of shape {shape}")
    if not out.flags.writeable:
        raise ArgumentError("out is read-only")
    into = _with_all_axes(out, volume.axes)
    as_stored = into.shape[4] == volume._extents[4] and volume.dtype == volume._stored
    if 0 not in shape and as_stored and out.flags.aligned and _rows_without_gaps(into):
        volume._read(ranges, into)
    else:
        out[...] = volume._without_other_axes(volume._read(ranges))
    return out


def decode_many(
    streams: Sequence[Any], *, threads: int = 0, device: Optional[int] = None, out: Optional[Sequence[Any]] = None
) -> list[Any]:
    """Decodes several streams in parallel.

    >>> import numpy as np, trivelet
    >>> arrays = [np.full((4, 32, 32), n, np.uint8) for n in range(6)]
    >>> back = trivelet.decode_many([trivelet.encode(a) for a in arrays])
    >>> all(np.array_equal(a, b) for a, b in zip(arrays, back))
    True

    streams: bytes or other buffers; or arrays of uint8 in memory of the GPU that `out` is in, without gaps, for streams
    that are known to fit `out`: only their sizes are checked. threads: total number; 0 = one for each core. device: the number of a GPU for
    wavelets. out: arrays without gaps, which are filled and returned: NumPy arrays, or all in the memory of one
    GPU, which then decodes as in `decode`. That GPU's buffers are kept for the next call, until `release_gpus`. The
    first failure raises, with its index among the streams.
    """
    there = [on_device(stream) for stream in streams]
    if any(there):
        return _decode_there(there, out, threads, device)
    buffers = [np.frombuffer(stream, np.uint8) for stream in streams]
    volumes = []
    for number, buffer in enumerate(buffers):
        try:
            volumes.append(Volume(buffer, threads=1))
        except Error as error:
            raise type(error)(f"stream {number}: {error}") from error
    names = [f"stream {number}" for number in range(len(buffers))]
    if out is None:
        return _decode_all(volumes, buffers, names, threads, device)
    views, far = _room_in(out, volumes, names)
    _decode_into(views, buffers, names, threads, far.device if far and device is None else device, far)
    return list(out)


def _decode_there(
    streams: Sequence[Optional[OnDevice]], out: Optional[Sequence[Any]], threads: int, device: Optional[int]
) -> list[Any]:
    """Decodes streams in memory of a GPU to arrays there."""
    if out is None or len(out) != len(streams):
        raise ArgumentError("streams in memory of a GPU need out: as many arrays there")
    outs = [on_device(array) for array in out]
    far = _same_place([*streams, *outs], "streams and out")
    views = [one.view for one in outs if one]
    buffers = [stream.view for stream in streams if stream]
    if not all(view.flags.c_contiguous for view in [*views, *buffers]):
        raise ArgumentError("streams or out have gaps")
    names = [f"stream {number}" for number in range(len(buffers))]
    assert far is not None
    for name, view, needed in zip(
        names, views, _decode_into(views, buffers, names, threads, far.device if device is None else device, far, True)
    ):
        if needed != view.nbytes:
            raise ArgumentError(f"{name}: {needed} bytes of voxels for {view.nbytes} of out")
    return list(out)


def _room_in(out: Sequence[Any], volumes: list[Volume], names: list[str]) -> tuple[list[Array], Optional[OnDevice]]:
    """Views of the outputs of `decode_many`, and one of the outputs if they are on a GPU."""
    if len(out) != len(volumes):
        raise ArgumentError(f"out has {len(out)} arrays for {len(volumes)} streams")
    fars = [on_device(array) for array in out]
    views = [far.view if far else array for far, array in zip(fars, out)]
    for name, view, volume in zip(names, views, volumes):
        if not isinstance(view, np.ndarray) or view.shape != volume.shape or view.dtype != volume.dtype:
            seen = f"{view.dtype} of shape {view.shape}" if isinstance(view, np.ndarray) else type(view).__name__
            raise ArgumentError(f"{name}: out is {seen}; it must be an array of {volume.dtype} of shape {volume.shape}")
        if volume.dtype != volume._stored:
            raise ArgumentError(f"{name}: {volume.dtype} is decoded without out")
        if not (view.flags.c_contiguous and view.flags.writeable):
            raise ArgumentError(f"{name}: out has gaps, or must not be written to")
    if len({far and (far.device, far.stream) for far in fars}) > 1:
        raise ArgumentError("out is in several places; it must be in memory of the host, or of one GPU with one stream")
    return views, fars[0] if fars else None


def _decode_all(
    volumes: list[Volume], buffers: list[Array], names: list[str], threads: int = 0, device: Optional[int] = None
) -> list[Array]:
    arrays = [np.empty(volume._full, volume._stored) for volume in volumes]
    _decode_into(arrays, buffers, names, threads, device)
    return [as_type(volume._without_other_axes(array), volume.dtype) for volume, array in zip(volumes, arrays)]


def _decode_into(
    arrays: list[Array],
    buffers: list[Array],
    names: list[str],
    threads: int,
    device: Optional[int],
    far: Optional[OnDevice] = None,
    streams_there: bool = False,
) -> list[int]:
    """Returns the bytes of the voxels of each stream."""
    library = _library.library
    jobs = (_library.VolumeJob * len(buffers))()
    for job, buffer, array in zip(jobs, buffers, arrays):
        library.tvl_volume_job_init(ctypes.byref(job), ctypes.sizeof(job))
        job.stream, job.size = buffer.ctypes.data, buffer.nbytes
        job.voxels, job.capacity = array.ctypes.data, array.nbytes
    params = _library.make(_library.BatchParams)
    params.threads = threads
    params.device = _library.CPU if device is None else device
    params.streams_there = streams_there
    with decoder_of_batches(device) as decoder:
        memory = (far.device, far.stream) if far else (_library.CPU, None)
        decoder.call(library.tvl_decoder_set_memory, *memory)
        failed = decoder.try_call(library.tvl_decode_volumes, jobs, len(buffers), ctypes.byref(params))
        if failed is not None:
            for name, job in zip(names, jobs):
                if job.result != 0:
                    raise error_of(job.result, f"{name}: {job.error.decode(errors='replace')}")
            raise failed
    return [job.needed for job in jobs]
