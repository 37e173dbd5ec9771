"""Videos: writes frames to a stream and reads them back.

A frame is planes of samples: grey; Y, U, V; or G, B, R; then alpha. Planes are arrays of rows and columns, uint8
of up to 8 bits a sample, else uint16.
"""

from __future__ import annotations

import bisect
import builtins
import collections
import ctypes
import io
import math
import operator
import re
import sys
import threading
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Callable, Iterator, Optional, Sequence, Union

import numpy as np

from . import _library
from ._handles import Handle
from ._matroska import FilmStream, SharedFile, is_matroska
from ._streams import Readable, Source, Writable, is_path, sink_for
from .errors import ArgumentError, StreamError, UnsupportedError
from .metadata import Metadata, of_decoder, to_structure
from .volume import Array, at_most_one, check_device, check_quality, number_of, positive, set_limits

_GREY, _YUV, _RGB = range(3)
_SUBSAMPLINGS = {(0, 0): "444", (1, 0): "422", (1, 1): "420", (0, 1): "440", (2, 0): "411", (2, 2): "410"}
_PROFILES = ["fast", "dense", "predictive"]
_MOTIONS = ["off", "on", "auto", "default"]
_KEY_PREDICTIONS = ["off", "on", "auto"]
_RATIONAL_LIMIT = 2**31 - 1

Rational = Union[int, float, str, Fraction]


@dataclass(frozen=True)
class VideoInfo:
    """The description of a video without its samples."""

    width: int
    height: int
    format: str  #: as FFmpeg's, with the number of bits above 8: "yuv420p10"
    rate: Optional[Fraction] = Fraction(25)  #: frames a second; None = not known
    time_base: Optional[Fraction] = None  #: seconds in a unit of time; None = those of a frame
    aspect: Optional[Fraction] = Fraction(1)  #: width of a sample by its height; None = not known
    primaries: int = 2  #: this and the next two: code points of ITU-T H.273, 2 = unspecified
    transfer: int = 2
    matrix: int = 2
    range: int = 0  #: 0 unspecified, 1 limited, 2 full
    chroma_location: int = 0  #: 0 unspecified, otherwise H.273's type + 1
    rotation: int = 0  #: clockwise degrees for display
    field_order: int = 0  #: 0 progressive or unknown, 1 top field first, 2 bottom field first
    is_signed: bool = False
    mirrored: bool = False  #: for display left and right change places, before the picture is turned
    premultiplied: bool = False  #: the colours were multiplied by alpha
    frames: Optional[int] = None  #: None = not known


@dataclass(frozen=True)
class Frame:
    planes: tuple[Array, ...]
    pts: int  #: presentation time in units of the time base
    duration: int
    time_base: Fraction
    format: str
    info: Optional[VideoInfo] = None  #: of the video; None for frames that were made by hand

    @property
    def time(self) -> float:
        """Seconds."""
        return float(self.pts * self.time_base)

    def pixels(self) -> Array:
        """One array of rows and columns; unless grey, with a last axis Y, U, V or R, G, B, then alpha."""
        planes = self.planes
        if len(planes) == 1:
            return planes[0]
        if any(p.shape != planes[0].shape for p in planes):
            raise ArgumentError(f"{self.format} has chroma of another size than luma, and no array of pixels")
        if self.format.startswith("gbr"):
            planes = (planes[2], planes[0], planes[1], *planes[3:])
        return np.stack(planes, axis=-1)


    def rgb(self) -> Array:
        """Rows and columns with a last axis R, G, B, of as many bits as the planes. YUV is converted by the matrix and the
        range of `info`; without them, by those usual for the size. Chroma is repeated, alpha left out."""
        info = self.info or VideoInfo(self.planes[0].shape[1], self.planes[0].shape[0], self.format)
        if info.is_signed:
            raise ArgumentError("signed samples have no colours")
        planes = self.planes
        if self.format.startswith("gbr"):
            return np.stack((planes[2], planes[0], planes[1]), axis=-1)
        if not self.format.startswith("yuv"):
            return np.stack((planes[0],) * 3, axis=-1)
        return _to_rgb(planes[:3], info)


# -------------------------------------------------------------------------------------------------------------- format

# By matrix (H.273): the shares of red and blue in luma.
_LUMA = {1: (0.2126, 0.0722), 4: (0.3, 0.11), 5: (0.299, 0.114), 6: (0.299, 0.114), 7: (0.212, 0.087), 9: (0.2627, 0.0593)}
_LEAST_OF_HD = 720  # rows; pictures of unknown matrix have BT.709 from there on, else BT.601


def _bits_of(format: str) -> int:
    named = re.fullmatch(r"(?:gray|ya|yuva?\w*p|gbra?p)(\d*)", format)
    return int(named[1]) if named and named[1] else 8


def _to_rgb(planes: Sequence[Array], info: VideoInfo) -> Array:
    matrix = info.matrix if info.matrix != 2 else 1 if info.height >= _LEAST_OF_HD else 6
    if matrix not in _LUMA:
        raise UnsupportedError(f"matrix {info.matrix} of H.273 is not converted to RGB; there are {[*_LUMA]}")
    red, blue = _LUMA[matrix]
    bits = _bits_of(info.format)
    peak = (1 << bits) - 1
    step = 1 << max(0, bits - 8)
    rows, columns = planes[0].shape
    y, u, v = (plane.astype(np.float32) for plane in planes)
    u, v = (
        c.repeat(-(-rows // c.shape[0]), 0)[:rows].repeat(-(-columns // c.shape[1]), 1)[:, :columns] - (1 << (bits - 1))
        for c in (u, v)
    )
    if info.range != 2:
        y = (y - 16 * step) * (peak / (219 * step))
        u, v = u * (peak / (224 * step)), v * (peak / (224 * step))
    r = y + 2 * (1 - red) * v
    b = y + 2 * (1 - blue) * u
    g = (y - red * r - blue * b) / (1 - red - blue)
    return np.stack([(c + 0.5).clip(0, peak) for c in (r, g, b)], axis=-1).astype(planes[0].dtype)


def _rational(name: str, value: Rational) -> Fraction:
    exact = Fraction(value)
    fraction = exact.limit_denominator(1001 * 1000) if isinstance(value, float) else exact
    if not 0 < fraction.numerator <= _RATIONAL_LIMIT or fraction.denominator > _RATIONAL_LIMIT:
        raise ArgumentError(f"{name} is {value}; it must be above 0, with numbers of 31 bits")
    return fraction


def _to_structure(info: VideoInfo) -> Any:
    video = _library.make(_library.Video)
    if _library.library.tvl_video_set_format(ctypes.byref(video), info.format.encode()) != 0:
        raise ArgumentError(
            f"unknown pixel format {info.format!r}; there are gray, yuv420p, yuv422p, yuv444p, yuv440p, yuv411p, "
            "yuv410p, gbrp, and with alpha ya8, yuva420p and so on, gbrap; a number of bits may follow (yuv420p10)"
        )
    for name in ("width", "height"):
        value = operator.index(getattr(info, name))
        if not 1 <= value <= 65536:
            raise ArgumentError(f"{name} is {value}; it must be 1..65536")
        setattr(video, name, value)
    for name in ("primaries", "transfer", "matrix", "range", "chroma_location", "rotation", "field_order"):
        setattr(video, name, getattr(info, name))
    video.is_signed, video.mirrored = info.is_signed, info.mirrored
    if info.premultiplied and not video.alpha:
        raise ArgumentError(f"premultiplied, but {info.format} has no alpha")
    video.alpha += info.premultiplied
    rate = _rational("rate", info.rate) if info.rate is not None else Fraction(0)
    aspect = _rational("aspect", info.aspect) if info.aspect is not None else Fraction(0)
    base = _rational("time_base", info.time_base) if info.time_base is not None else 1 / (rate or Fraction(25))
    video.frame_rate_num, video.frame_rate_den = rate.numerator, rate.denominator
    video.sample_aspect_num, video.sample_aspect_den = aspect.numerator, aspect.denominator
    video.time_base_num, video.time_base_den = base.numerator, base.denominator
    video.frames = info.frames or 0
    return video


def _to_info(video: Any) -> VideoInfo:
    def fraction(name: str) -> Optional[Fraction]:
        number, by = getattr(video, name + "_num"), getattr(video, name + "_den")
        return Fraction(number, by) if number > 0 and by > 0 else None

    return VideoInfo(
        width=video.width,
        height=video.height,
        format=_format_name(video),
        rate=fraction("frame_rate"),
        time_base=fraction("time_base"),
        aspect=fraction("sample_aspect"),
        primaries=video.primaries,
        transfer=video.transfer,
        matrix=video.matrix,
        range=video.range,
        chroma_location=video.chroma_location,
        rotation=video.rotation,
        field_order=video.field_order,
        is_signed=bool(video.is_signed),
        mirrored=bool(video.mirrored),
        premultiplied=video.alpha == 2,
        frames=video.frames or None,
    )


def _format_name(video: Any) -> str:
    bits = "" if video.bits == 8 else str(video.bits)
    if video.colour_model == _GREY:
        return f"ya{video.bits}" if video.alpha else "gray" + bits
    if video.colour_model == _RGB:
        return ("gbrap" if video.alpha else "gbrp") + bits
    sampling = _SUBSAMPLINGS.get((video.log2_chroma_w, video.log2_chroma_h))
    if sampling is None:  # the library supports it, but FFmpeg has no name for it
        sampling = f"[{video.log2_chroma_w},{video.log2_chroma_h}]"
    return ("yuva" if video.alpha else "yuv") + sampling + "p" + bits


def _plane_shapes(video: Any) -> list[tuple[int, int]]:
    full = (video.height, video.width)
    if video.colour_model == _GREY:
        shapes = [full]
    elif video.colour_model == _RGB:
        shapes = [full] * 3
    else:
        chroma = (-(-video.height // (1 << video.log2_chroma_h)), -(-video.width // (1 << video.log2_chroma_w)))
        shapes = [full, chroma, chroma]
    return shapes + [full] * bool(video.alpha)


def _sample_type(video: Any) -> np.dtype[Any]:
    return np.dtype(("i" if video.is_signed else "u") + ("1" if video.bits <= 8 else "2"))


def _point_to(frame: Any, planes: Sequence[Array]) -> None:
    for to, plane in zip(frame.planes, planes):
        to.data = plane.ctypes.data
        to.row_stride = plane.strides[0] if plane.shape[0] > 1 else 0
        to.sample_stride = plane.strides[1] if plane.shape[1] > 1 else 0


# ------------------------------------------------------------------------------------------------------------- writer


class VideoWriter:
    """Writes frames to a stream.

    >>> import io, numpy as np, trivelet
    >>> file = io.BytesIO()
    >>> with trivelet.VideoWriter(file, 64, 48, "yuv420p", rate=30, quality=80) as writer:
    ...     for t in range(10):
    ...         writer.write([np.full((48, 64), 20 * t, np.uint8), *[np.full((24, 32), 128, np.uint8)] * 2])
    >>> reader = trivelet.VideoReader(file.getvalue())
    >>> [round(frame.time, 3) for frame in reader][:4]
    [0.0, 0.033, 0.067, 0.1]

    The stream is complete when the `with` block ends or `close` returns. If the block raises, no file is left; data
    written to a Python file is incomplete. Frames are held until their GOP is full.
    """

    def __init__(
        self,
        target: Writable,
        width: int,
        height: int,
        format: str = "yuv420p",
        rate: Optional[Rational] = None,
        *,
        quality: Optional[float] = None,
        psnr: Optional[float] = None,
        bpp: Optional[float] = None,
        bitrate: Optional[float] = None,
        size: Optional[int] = None,
        max_rate: Optional[float] = None,
        rate_window: float = 1,
        lossless: bool = False,
        profile: str = "dense",
        gop: Optional[int] = None,
        layers: Optional[int] = None,
        motion: str = "default",
        key_prediction: str = "auto",
        info: Optional[VideoInfo] = None,
        metadata: Optional[Metadata] = None,
        threads: int = 0,
        device: Optional[int] = None,
        overwrite: bool = True,
    ) -> None:
        """target: a path, or a binary file that is written to in order.
        width, height, format: of the pictures; formats by FFmpeg's names.
        rate: frames a second; the default is that of `info`, or 25.
        quality: 0..100, by default 60. psnr: target in dB. bpp, bitrate, size: limits of bits a pixel, bits a
        second and bytes of the stream. lossless: every sample is restored. At most one of these.
        max_rate: most bits a second of any stretch of rate_window seconds or more, beside a quality, bpp, bitrate or
        size: GOPs that would take more are cut.
        profile: "dense", "fast", or lossless also "predictive", which has no layers. gop: frames of a GOP, 1..128; by
        default 64 or 32 with motion, else 33 to 66.
        layers: quality layers, 1..16; by default they depend on the size.
        motion: "off", "on", "auto" = in the GOPs that then take fewer bits; the default is "auto" for the dense profile,
        "off" for the others.
        key_prediction: whether keys are predicted from those of the GOP before, where that takes fewer bits, with motion
        and no target: "auto" = from the same places of pictures, "on" = along motion, which makes smaller pictures less
        exact, "off" = never.
        info: times, colours and so on, for instance of a reader; its size and format are overridden by those above.
        metadata: stored beside the pictures.
        threads: 0 = one for each core. device: the number of a GPU; None = the CPU.
        overwrite: False refuses an existing path.
        """
        given = replace(
            info or VideoInfo(width, height, format), width=width, height=height, format=format, frames=None
        )
        if rate is not None:
            given = replace(given, rate=_rational("rate", rate))
        self._video = _to_structure(given)
        self.info = _to_info(self._video)
        self._shapes, self._type = _plane_shapes(self._video), _sample_type(self._video)
        at_most_one(
            quality=quality, psnr=psnr, bpp=bpp, bitrate=bitrate, size=size, lossless=True if lossless else None
        )
        params = _library.make(_library.EncodeParams)
        params.lossless = lossless
        if quality is not None:
            params.quality = check_quality(quality)
        if psnr is not None:
            params.psnr = positive("psnr", psnr)
        if bpp is not None:
            params.bits_per_pixel = positive("bpp", bpp)
        if bitrate is not None:
            params.bit_rate = positive("bitrate", bitrate)
        if size is not None:
            params.target_bytes = int(positive("size", operator.index(size)))
        if max_rate is not None:
            params.max_rate = positive("max_rate", max_rate)
        params.rate_window = positive("rate_window", rate_window)
        params.profile = number_of("profile", profile, _PROFILES)
        params.motion = number_of("motion", motion, _MOTIONS)
        params.key_prediction = number_of("key_prediction", key_prediction, _KEY_PREDICTIONS)
        params.gop_frames = gop if gop is not None else 0
        params.layers = layers if layers is not None else 0
        params.threads = threads
        if device is not None:
            params.device = check_device(device)
        if metadata is not None:
            params.metadata = ctypes.pointer(to_structure(metadata))
        self._next = 0
        self._encoder = Handle("encoder")
        sink = sink_for(target, overwrite, self._encoder)
        self._call("tvl_encoder_open", ctypes.byref(self._video), ctypes.byref(params), ctypes.byref(sink))

    def write(
        self, frame: Union[Frame, Array, Sequence[Array]], pts: Optional[int] = None, duration: Optional[int] = None
    ) -> None:
        """Codes a frame: a `Frame`, with its times; planes; or one array of pixels, as `Frame.pixels` gives.
        pts, duration: in units of the time base; by default frames follow each other at the rate."""
        if isinstance(frame, Frame):
            pts = frame.pts if pts is None else pts
            duration = frame.duration if duration is None else duration
        given = _library.Frame()
        planes = self._planes(frame)
        _point_to(given, planes)
        given.pts = self._time(self._next) if pts is None else pts
        given.duration = self._time(self._next + 1) - self._time(self._next) if duration is None else duration
        self._call("tvl_encoder_write", ctypes.byref(given), 1)
        self._next += 1

    def end_gop(self) -> None:
        """Ends the current GOP, for instance at a scene cut."""
        self._call("tvl_encoder_end_gop")

    def close(self) -> None:
        """Finishes the stream."""
        if not self._encoder.closed:
            self._call("tvl_encoder_finish")
            self._encoder.close()

    def __enter__(self) -> VideoWriter:
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        if kind is None:
            self.close()
        else:
            self._encoder.close()

    def _call(self, name: str, *arguments: Any) -> None:
        try:
            self._encoder.call(getattr(_library.library, name), *arguments)
        except BaseException:
            self._encoder.close()  # the stream is lost
            raise

    def _time(self, number: int) -> int:
        base = self.info.time_base or Fraction(1, 25)
        return round(number / ((self.info.rate or Fraction(25)) * base))

    def _planes(self, frame: Any) -> list[Array]:
        if isinstance(frame, Frame):
            planes = list(frame.planes)
        elif isinstance(frame, np.ndarray) and len(self._shapes) > 1 and frame.ndim == 3 and frame.shape[2] <= 4:
            planes = [frame[..., i] for i in range(frame.shape[2])]
            if self._video.colour_model == _RGB and len(planes) >= 3:
                planes = [planes[1], planes[2], planes[0], *planes[3:]]
        elif isinstance(frame, np.ndarray) and frame.ndim == 2:
            planes = [frame]
        else:
            planes = [np.asarray(plane) for plane in frame]
        shapes = [plane.shape for plane in planes]
        if shapes != self._shapes or any(plane.dtype != self._type for plane in planes):
            types = " and ".join(sorted({str(plane.dtype) for plane in planes}))
            raise ArgumentError(
                f"planes {shapes} of {types}; those of {self.info.format} at {self.info.width}x{self.info.height} are "
                f"{self._shapes} of {self._type}"
            )
        # The library reads a stride of 0 as "none", and samples must be aligned.
        return [p if all(p.strides) and p.flags.aligned else np.ascontiguousarray(p) for p in planes]


# ------------------------------------------------------------------------------------------------------------- reader


class VideoReader(Iterator[Frame]):
    """Iterates over the frames of a stream, or of the video of a Matroska file. Each is in separate memory. `info`
    describes them; `metadata` has the rest. Damage raises an exception after the intact frames before it; with
    `keep_partial` later frames follow.

    `len(reader)` is the number of frames; `reader[-1]` is a frame, `reader[10:20:2]` a list. Indices do not move the
    iterator. Each decodes the GOP of its frame, which is kept for the next one.
    """

    def __init__(
        self,
        source: Readable,
        *,
        reduce: int = 0,
        temporal_reduce: int = 0,
        layers: Optional[int] = None,
        region: Optional[tuple[slice, slice]] = None,
        start: int = 0,
        stop: Optional[int] = None,
        keep_partial: bool = False,
        threads: int = 0,
        device: Optional[int] = None,
        max_memory: Optional[int] = None,
        max_samples: Optional[int] = None,
        max_frames: Optional[int] = None,
        max_samples_per_byte: Optional[int] = None,
    ) -> None:
        """source: a path, bytes or another buffer, or a binary file, which is read in order if it cannot seek: of a .tvl
        stream, or of a Matroska file, which must be able to seek.
        reduce, temporal_reduce: number of halvings of the size and of the frame rate. layers: quality layers; None
        = all.
        region: rows and columns after reduction; it must begin at whole chroma samples.
        start, stop: frames of the stream, [start, stop).
        keep_partial: deliver the intact part of a damaged stream and log the damage to "trivelet".
        threads: 0 = one for each core. device: the number of a GPU; None = the CPU.
        max_memory, max_samples, max_frames, max_samples_per_byte: limits as in `trivelet.open`: bytes for decoding,
        samples of a GOP, frames, samples for each byte of the stream.
        """
        if layers is not None and layers < 1:
            raise ArgumentError(f"layers is {layers}; it must be at least 1, or None for all")
        params = _library.make(_library.DecodeParams)
        params.reduce, params.temporal_reduce = reduce, temporal_reduce
        params.max_layers = layers or 0
        params.first_frame = _not_negative("start", start)
        if stop is not None:
            params.end_frame = _not_negative("stop", stop)
        params.keep_partial = keep_partial
        params.threads = threads
        if device is not None:
            params.device = check_device(device)
        set_limits(
            params,
            max_memory=max_memory,
            max_samples=max_samples,
            max_frames=max_frames,
            max_samples_per_byte=max_samples_per_byte,
        )
        self._decoder = Handle("decoder")
        self._ready: collections.deque[Frame] = collections.deque()
        self._failed: Optional[BaseException] = None
        self._new_source, self._params = _sources_of(source), params
        self._first, self._last = start, stop
        self._gops: list[tuple[int, int]] = []
        self._kept: dict[int, Frame] = {}
        self._open()
        if region is not None:
            self._take_region(params, region)
            self._open()

    def _open(self) -> None:
        library, decoder, source, params = _library.library, self._decoder, self._new_source(), self._params
        try:
            structure = source.structure(decoder)
            decoder.call(library.tvl_decoder_open, ctypes.byref(structure), ctypes.byref(params))
            self._video = _library.make(_library.Video)
            decoder.call(library.tvl_decoder_video, ctypes.byref(self._video))
        except BaseException:
            decoder.close()
            raise
        self.info = _to_info(self._video)
        self.metadata: Metadata = of_decoder(decoder)
        self._shapes, self._type = _plane_shapes(self._video), _sample_type(self._video)
        self._at_once = max(1, library.tvl_decoder_gop_frames(decoder.pointer))

    def _take_region(self, params: Any, region: tuple[slice, slice]) -> None:
        places = []
        for part, extent in zip(region, (self.info.height, self.info.width)):
            wanted = range(*part.indices(extent))
            if part.step not in (None, 1) or not wanted:
                raise ArgumentError(f"a region {region}; it is two slices without a step, none of them empty")
            places.append((wanted[0], len(wanted)))
        (params.y, params.region_height), (params.x, params.region_width) = places

    def __len__(self) -> int:
        if self.info.frames is None:
            self._read_index()
            if self._params.temporal_reduce:
                raise TypeError("the number of frames after temporal_reduce is not known")
            stop = self._gops[-1][1] if self._last is None else min(self._last, self._gops[-1][1])
            return max(0, stop - self._first)
        return self.info.frames

    def __getitem__(self, index: Any) -> Any:
        if self._params.temporal_reduce:
            raise TypeError("frames have no index with temporal_reduce")
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        number, count = operator.index(index), len(self)
        if not -count <= number < count:
            raise IndexError(f"frame {number} of {count}")
        frame = self._first + number % count
        if frame not in self._kept:
            self._keep_gop_of(frame)
        return self._kept[frame]

    def _read_index(self) -> None:
        """Sets `_gops`: first frame and end of each."""
        if self._gops:
            return
        decoder, library = self._decoder, _library.library
        stream, gop = _library.make(_library.StreamInfo), _library.make(_library.Gop)
        decoder.call(library.tvl_decoder_stream, ctypes.byref(stream))
        if not stream.has_index:
            raise TypeError("the source cannot seek, so that its frames are not counted before the end")
        for number in range(stream.gops):
            decoder.call(library.tvl_decoder_gop, number, ctypes.byref(gop))
            self._gops.append((gop.first_frame, gop.first_frame + gop.frames))
        if not self._gops:
            self._gops.append((0, 0))

    def _keep_gop_of(self, frame: int) -> None:
        self._read_index()
        first, end = self._gops[bisect.bisect_right(self._gops, (frame, sys.maxsize)) - 1]
        params = type(self._params).from_buffer_copy(self._params)
        params.first_frame = max(first, self._first)
        params.end_frame = end if self._last is None else min(end, self._last)
        with Handle("decoder") as decoder:
            source = self._new_source().structure(decoder)
            decoder.call(_library.library.tvl_decoder_open, ctypes.byref(source), ctypes.byref(params))
            frames, failed = self._decode_frames(decoder)
        self._kept = {params.first_frame + i: found for i, found in enumerate(frames)}
        if frame not in self._kept:
            raise failed or StreamError(f"frame {frame} is missing")

    def __iter__(self) -> VideoReader:
        return self

    def __next__(self) -> Frame:
        if not self._ready and self._failed is None:
            self._decode()
        if self._ready:
            return self._ready.popleft()
        if self._failed is not None:
            failed, self._failed = self._failed, None
            raise failed
        raise StopIteration

    def _decode(self) -> None:
        """The frames of a GOP, and an error that follows them."""
        try:
            frames, self._failed = self._decode_frames(self._decoder)
        except KeyboardInterrupt:
            self.close()
            raise
        self._ready.extend(frames)

    def _decode_frames(self, decoder: Handle) -> tuple[list[Frame], Optional[BaseException]]:
        planes = [[np.empty(shape, self._type) for shape in self._shapes] for _ in range(self._at_once)]
        frames = (_library.Frame * self._at_once)()
        for frame, memory in zip(frames, planes):
            _point_to(frame, memory)
        count = ctypes.c_uint64()
        failed = decoder.try_call(_library.library.tvl_decoder_read, frames, self._at_once, ctypes.byref(count))
        base = self.info.time_base or Fraction(1, 25)
        read = zip(frames[: count.value], planes)
        return [Frame(tuple(m), f.pts, f.duration, base, self.info.format, self.info) for f, m in read], failed

    def close(self) -> None:
        """Closes the reader and releases the source."""
        self._decoder.close()
        self._ready.clear()
        self._kept.clear()

    def __enter__(self) -> VideoReader:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


def _sources_of(given: Any) -> Callable[[], Source]:
    """Makes sources of a stream (Readable), or of the one in a Matroska file, each with a place of its own."""
    if is_path(given):
        with builtins.open(given, "rb") as file:
            if not (file.seekable() and is_matroska(file)):
                return lambda: Source(given)
        film: Any = FilmStream(builtins.open(given, "rb"))
    elif not hasattr(given, "read"):
        memory = memoryview(given).cast("B")
        if not is_matroska(io.BytesIO(memory[:4])):
            return lambda: Source(given)
        film = FilmStream(io.BytesIO(memory))
    elif hasattr(given, "seekable") and not given.seekable():
        return lambda: Source(given)
    else:
        film = FilmStream(given) if is_matroska(given) else given
    lock = threading.Lock()
    return lambda: Source(SharedFile(film, lock))


def _not_negative(name: str, value: int) -> int:
    if operator.index(value) < 0:
        raise ArgumentError(f"{name} is {value}; it must not be below 0")
    return value
