#!/usr/bin/env python3
"""Decode a Trivelet stream: an independent decoder written from the text of codec/FORMAT.md alone.

Meant to be read next to that text, whose sections it follows; it is slow. Needs numpy. It refuses damaged streams
instead of delivering what remains of them; a stream without its Done box is decoded as far as its GOPs are complete.

    reference_decoder.py IN.tvl OUT.yuv [--layers N] [--planes N] [--reduce N] [--temporal-reduce N]

The output is raw: frame by frame, component by component, 1 byte a sample up to 8 bits, else 2, little-endian.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Callable, Iterator

import numpy as np

from reference_conventions import MASK64, BitReader, ByteReader, FormatError, check, crc32c, xxh64
from reference_dense import Known, PassDecoder
from reference_mixed import decode_block_mixed
from reference_predictive import decode_block, decode_block_ahead, decode_block_labels
from reference_motion import (CELL, KEY_FIRST, KEY_LAST, KEY_OPEN, LOSSY_PLACES, HighFrame, Keys, Plane, high_frames,
                              inverse_motion, places_of, predicted_keys, read_level, to_integers, to_samples)

# ----------------------------------------------------------------------------------------------------------------------
# Stream
# ----------------------------------------------------------------------------------------------------------------------

SIGNATURE = bytes.fromhex("8954564C0D0A1A0A")
BOX_HEADER = 16
FAST, DENSE, PREDICTIVE = 0, 1, 2
RAW, STAGED = 0, 1
T_PLUS_2D, DYADIC = 0, 1
HAAR, CDF_5_3, CDF_9_7, CRF_13_7 = 0, 1, 2, 3
GREY, YUV, RGB = 0, 1, 2
LARGEST_GOP = 1 << 22  # samples: a limit of this decoder, which spends hundreds of bytes on each


@dataclass
class Box:
    kind: bytes
    offset: int
    payload: bytes

    @property
    def end(self) -> int:
        return self.offset + BOX_HEADER + len(self.payload)


KNOWN_BOXES = (b"Head", b"Gop ", b"Indx", b"Done")


def read_boxes(data: bytes, known: tuple[bytes, ...] = KNOWN_BOXES) -> Iterator[Box]:
    """All complete boxes of the stream, of which the critical ones must be known."""
    check(data[:8] == SIGNATURE, "not a Trivelet stream")
    reader = ByteReader(data, 8)
    while len(data) - reader.position >= BOX_HEADER:
        offset = reader.position
        kind, length = reader.unpack("4sQ")
        reader.crc(offset)
        if length > len(data) - reader.position:
            return
        check(kind in known or not kind[:1].isupper(), f"unknown critical box {kind!r}")
        check(all(32 <= character <= 126 for character in kind), "type of a box")
        yield Box(kind, offset, reader.take(length))


@dataclass
class ComponentInfo:
    index: int
    offset: int
    weight: np.float32
    levels: int
    scales: list[int]  # by resolution
    width: int
    height: int
    chroma_x: int  # log2 subsampling
    chroma_y: int


@dataclass
class Head:
    profile: int
    mode: int
    lossless: bool
    layout: int
    temporal_wavelet: int
    spatial_wavelet: int
    temporal_levels: int
    spatial_levels: int
    block: int
    layers: int
    centroid: int
    ycocg: bool
    dropped: int           # finest spatial levels that were left out
    temporal_dropped: int
    gop_frames: int
    width: int
    height: int
    frames: int
    bits: int
    signed: bool
    components: list[ComponentInfo]
    motion: bool  # GOPs may have motion
    ahead: bool  # codewords of the predictive profile are known ahead
    moved: bool  # they may have motion
    levels_by_gop: bool  # GOPs with motion say how many temporal levels they have
    labels: bool  # codewords of the predictive profile may be of labels
    mixed: bool  # they may have mixed contexts
    keys: bool  # keys of GOPs may be predicted

    @property
    def bands(self) -> int:
        """B, the temporal bands; of a GOP with motion those of of_gop()."""
        return self.temporal_levels + 1 if self.layout == T_PLUS_2D else 1

    def of_gop(self, gop: Gop) -> Head:
        """The same with the temporal levels of a GOP."""
        return replace(self, temporal_levels=gop.levels)

    @property
    def sample_range(self) -> tuple[int, int]:
        return (-1 << self.bits - 1, (1 << self.bits - 1) - 1) if self.signed else (0, (1 << self.bits) - 1)

    @property
    def sample_type(self) -> str:
        return ("i" if self.signed else "u") + ("1" if self.bits <= 8 else "2")


MOTION, AHEAD, MOVED, LEVELS, LABELS, MIXED, KEYS = 1, 2, 4, 8, 16, 32, 64  # required features
FEATURE_NAMES = {MOTION: "motion", AHEAD: "ahead", MOVED: "moved", LEVELS: "levels", LABELS: "labels",
                 MIXED: "mixed", KEYS: "keys"}


def read_features(reader: ByteReader) -> int:
    """The required features, all of them known."""
    required, _optional = reader.unpack("QQ")
    names = reader.text()
    for number, bit in enumerate(bit for bit in range(64) if required >> bit & 1):
        words = names.split(" ")
        name = words[number] if number < len(words) else "without a name"
        check(1 << bit in FEATURE_NAMES, f"required feature {bit}: {name}")
    check(names == " ".join(name for bit, name in FEATURE_NAMES.items() if required & bit), "names of features")
    return required


def read_head(payload: bytes) -> Head:
    reader = ByteReader(payload)
    major, minor = reader.unpack("2B")
    check((major == 0 and minor >= 9) or major == 1, f"version {major}.{minor}")
    features = read_features(reader)
    motion, ahead, moved, levels_by_gop, labels, mixed, keys = (
        bool(features & feature) for feature in (MOTION, AHEAD, MOVED, LEVELS, LABELS, MIXED, KEYS))
    profile, mode, lossless, layout = reader.unpack("4B")
    check(profile <= PREDICTIVE and mode <= STAGED and lossless <= 1 and layout <= 1, "unknown profile, mode or layout")
    wavelet_t, wavelet_s, lt, ls, log2_block, layers, centroid, colour = reader.unpack("8B")
    check(max(wavelet_t, wavelet_s) <= 3, "unknown wavelet")
    check((CDF_9_7 if lossless else CRF_13_7) not in (wavelet_t, wavelet_s), "wavelet and lossless do not agree")
    check(max(lt, ls) <= 8 and (layout == T_PLUS_2D or lt <= ls), "levels")
    check(5 <= log2_block <= 8 and 1 <= layers <= 16 and colour <= 1, "block, layers or colour transform")
    dropped, temporal_dropped = reader.unpack("2B")
    check(temporal_dropped <= (lt if layout == T_PLUS_2D else 0), "dropped temporal levels")
    gop_frames, width, height, frames = reader.unpack("HIIQ")
    check(1 <= gop_frames <= 128 and 1 <= width <= 65536 and 1 <= height <= 65536, "size")
    model, bits, chroma_x, chroma_y, alpha, signed = reader.unpack("6B")
    check(model <= RGB and 1 <= bits <= 16 and alpha <= 2 and signed <= 1, "colour model")
    check(max(chroma_x, chroma_y) <= 2 and (model == YUV or chroma_x == chroma_y == 0), "subsampling")
    check(model == RGB or not colour, "YCoCg-R of something other than RGB")
    check(model != RGB or not signed, "signed RGB")
    components = []
    for c in range((1 if model == GREY else 3) + (alpha > 0)):
        offset, weight, levels = reader.unpack("ifB")
        check(abs(offset) <= 65536 and 1e-6 < weight < 1e6 and levels <= ls, "component")
        check(layout == T_PLUS_2D or levels >= lt, "component levels")
        check(dropped <= levels, "dropped spatial levels")
        scales = list(reader.take(levels + 1))
        check(0 not in scales and (not lossless or set(scales) == {64}), "scale")
        x, y = (chroma_x, chroma_y) if model == YUV and c in (1, 2) else (0, 0)
        components.append(ComponentInfo(c, offset, np.float32(weight), levels, scales, -(-width >> x), -(-height >> y),
                                        x, y))
    check(not colour or len({c.levels for c in components[:3]}) == 1, "levels with YCoCg-R")
    if profile == PREDICTIVE:
        check(lossless == 1 and layout == T_PLUS_2D and lt == ls == colour == 0 and layers == 1, "predictive profile")
        check({c.offset for c in components} == {0 if signed else 1 << bits - 1}, "offset of the predictive profile")
    for numerator, denominator in (reader.unpack("ii"), reader.unpack("ii")):
        check(denominator > 0 and numerator >= 0, "frame rate or sample aspect")
    check(min(reader.unpack("ii")) > 0, "time base")
    reader.unpack("3B")  # primaries, transfer, matrix
    _range, _location, rotation, field_order = reader.unpack("4B")
    check(_range <= 2 and rotation <= 7 and field_order <= 2, "range, rotation or field order")
    reader.text()  # writer
    reader.text()  # settings
    check(not ahead or profile == PREDICTIVE, "contexts known ahead in another profile")
    check(not (labels or mixed) or profile == PREDICTIVE, "kinds of codewords in another profile")
    check(not moved or (profile == PREDICTIVE and not ahead), "moved frames in another profile")
    check(not motion or (layout == T_PLUS_2D and profile != PREDICTIVE), "motion")
    check(not levels_by_gop or (motion and lt > 0), "levels by GOP without motion or levels")
    check(not keys or (motion and lt > 0), "predicted keys without motion or levels")
    reader.last_crc()
    return Head(profile, mode, bool(lossless), layout, wavelet_t, wavelet_s, lt, ls, 1 << log2_block, layers, centroid,
                bool(colour), dropped, temporal_dropped, gop_frames, width, height, frames, bits, bool(signed),
                components, motion, ahead, moved, levels_by_gop, labels, mixed, keys)


@dataclass
class Gop:
    index: int
    first_frame: int
    frames: int
    hash: int | None
    step: np.float32
    gains: dict[int, int]  # by frame of the interleaved volume
    motion: dict[int, bytes] | None  # the sections, by temporal level, of predicted keys that of level levels + 1
    planes: int
    layer_tops: list[int]
    chunks: dict[tuple[int, int, int], bytes]  # by layer, temporal band, distance; those of size 0 are left out
    key: int = KEY_FIRST  # where its key frame stands
    begin: int = 0        # pts of the first frame
    end: int = 0          # pts + duration of the last one
    levels: int = 0       # temporal ones
    predicted: bool = False  # its keys are

    @property
    def places(self) -> int:
        return places_of(self.frames, self.key)

    @property
    def index_key(self) -> int:
        """What the index says of its key."""
        return 3 if self.key == KEY_OPEN and self.predicted else self.key


def read_gop(payload: bytes, head: Head) -> Gop:
    reader = ByteReader(payload)
    header_bytes = reader.number("I")
    index, first_frame, frames = reader.varint(), reader.varint(), reader.varint()
    check(1 <= frames <= head.gop_frames, "frames of the GOP")
    samples = frames * sum(c.width * c.height for c in head.components)
    check(samples <= LARGEST_GOP, f"a GOP of {samples} samples is too large for this decoder")
    flags = reader.varint()
    check(flags < (128 if head.keys else 64 if head.motion else 8), "reserved flags")
    check(not flags & 16 or flags & 8, "a last key without motion")
    check(not flags & 32 or flags & 16, "an open GOP whose key is not last")
    place = KEY_OPEN if flags & 32 else KEY_LAST if flags & 16 else KEY_FIRST
    levels = head.temporal_levels
    if flags & 8 and head.levels_by_gop:
        levels = reader.number("B")
        check(1 <= levels <= head.temporal_levels, "temporal levels of the GOP")
    check(place != KEY_LAST or frames >= 1 << levels, "too few frames for a last key")
    predicted = bool(flags & 64)
    check(not predicted or (flags & 8 and predicted_keys(levels, frames, place)), "no keys that are predicted")
    check(not flags & 4 or not (head.lossless or head.layout == DYADIC or flags & 8), "frame gains out of place")
    check(not flags & 8 or head.temporal_levels > 0, "motion without temporal levels")
    pts, duration = reader.svarint(), reader.svarint()
    end = pts + duration
    for _ in range(frames - 1):
        gap, change = (reader.svarint(), reader.svarint()) if flags & 2 else (0, 0)
        duration += change
        end += gap + duration
    digest = reader.number("Q") if flags & 1 else None
    step = np.float32(1)
    if not head.lossless:
        step = np.float32(reader.number("f"))
        check(bool(1e-6 <= step <= 1e9), "step")
    gains: dict[int, int] = {}
    frame = -1
    for _ in range(reader.varint() if flags & 4 else 0):
        frame += reader.varint() + 1
        gains[frame] = reader.number("B")
        check(frame < frames and gains[frame] > 0, "frame gain")
    motion_table = []
    for level in range(levels + predicted, 0, -1) if flags & 8 else []:
        size = reader.varint()
        motion_table.append((level, size, reader.number("I") if size else 0))
    planes = reader.number("B")
    check(planes <= 30, "planes")
    layer_tops = list(reader.take(head.layers))
    check(max(layer_tops) <= planes, "top of a layer")
    table = []
    for layer in range(head.layers):
        for band in range(levels + 1 if flags & 8 else head.bands):
            for distance in range(head.spatial_levels, -1, -1):
                size = reader.varint()
                table.append(((layer, band, distance), size, reader.number("I") if size else 0))
    reader.room(header_bytes - 4)
    reader.crc()
    motion = {} if flags & 8 else None
    for level, size, crc in motion_table:
        motion[level] = reader.take(size)
        check(size == 0 or crc32c(motion[level]) == crc, f"crc of the motion of level {level}")
    chunks = {}
    for key, size, crc in table:
        if size:
            chunks[key] = reader.take(size)
            check(crc32c(chunks[key]) == crc, f"crc of chunk {key}")
    check(reader.position == len(payload), "size of the GOP")
    return Gop(index, first_frame, frames, digest, step, gains, motion, planes, layer_tops, chunks, place, pts, end,
               levels, predicted)


def check_index(index: Box, gops: list[tuple[Box, Gop]], layers: int) -> None:
    """Compare the Indx box with the boxes that the stream has."""
    def wrapped(time: int) -> int:
        return time & MASK64

    reader = ByteReader(index.payload)
    if reader.number("B") != 1:
        return  # lost
    check(reader.varint() == len(gops), "count of the index")
    end, next_frame, time = 0, 0, 0
    for box, gop in gops:
        entry_end = reader.varint() + reader.position
        entry = tuple(reader.varint() for _ in range(4)) + (reader.number("B"),)
        check(entry == (box.offset - end, box.end - box.offset, gop.first_frame - next_frame,
                        gop.frames, gop.index_key), f"index of GOP {gop.index}")
        times = wrapped(reader.svarint()), wrapped(reader.svarint())
        check(times == (wrapped(gop.begin - time), wrapped(gop.end - gop.begin)), f"times of GOP {gop.index}")
        time = gop.end
        for layer in range(layers):
            size = sum(len(chunk) for key, chunk in gop.chunks.items() if key[0] == layer)
            check(reader.varint() == size, f"bytes of layer {layer} of GOP {gop.index} in the index")
            reader.number("H")  # error
        reader.room(entry_end)
        end, next_frame = box.end, gop.first_frame + gop.frames
    reader.last_crc()


# ----------------------------------------------------------------------------------------------------------------------
# Transform
# ----------------------------------------------------------------------------------------------------------------------

def low(n: int, levels: int) -> int:
    """n halved so many times, rounding up."""
    return -(-n >> levels)


def inverse_ycocg(y: np.ndarray, co: np.ndarray, cg: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """G, B, R."""
    t = y - (cg >> 1)
    g = cg + t
    b = t - (co >> 1)
    return g, b, b + co


def mirror(i: np.ndarray, n: int) -> np.ndarray:
    """Positions i of a signal of n > 1 samples extended on both sides."""
    period = 2 * (n - 1)
    i = i % period
    return np.minimum(i, period - i)


def inverse_real(x: np.ndarray, wavelet: int) -> None:
    """Undo the split of a signal along the first axis, in place; all arithmetic is binary32."""
    n = len(x)
    odd, even = np.arange(1, n, 2), np.arange(0, n, 2)
    if wavelet == HAAR:
        even = even[even + 1 < n]
        x[even] = x[even] + np.float32(-0.5) * x[even + 1]
        x[odd] = x[odd] + np.float32(1) * x[odd - 1]
        return
    steps = {
        CDF_5_3: [(odd, -0.5), (even, 0.25)],
        CDF_9_7: [(odd, -1.586134342), (even, -0.05298011854), (odd, 0.8829110762), (even, 0.4435068522)],
    }[wavelet]
    for i, c in reversed(steps):
        x[i] = x[i] + -np.float32(c) * (x[mirror(i - 1, n)] + x[mirror(i + 1, n)])


def inverse_integer(x: np.ndarray, wavelet: int) -> None:
    """The same for the reversible wavelets; 32-bit arithmetic that wraps around."""
    n = len(x)
    odd, even = np.arange(1, n, 2), np.arange(0, n, 2)
    if wavelet == HAAR:
        even = even[even + 1 < n]
        x[even] -= x[even + 1] >> 1
        x[odd] += x[odd - 1]
        return

    def pair(i: np.ndarray, distance: int) -> np.ndarray:
        return x[mirror(i - distance, n)] + x[mirror(i + distance, n)]

    if wavelet == CDF_5_3:
        x[even] -= (pair(even, 1) + 2) >> 2
        x[odd] += pair(odd, 1) >> 1
    else:
        x[even] -= (9 * pair(even, 1) - pair(even, 3) + 16) >> 5
        x[odd] += (9 * pair(odd, 1) - pair(odd, 3) + 8) >> 4


def merge(low_part: np.ndarray, high_part: np.ndarray, axis: int, wavelet: int) -> np.ndarray:
    """The inverse of one split along an axis: interleave the low-pass and high-pass parts, then undo the steps."""
    shape = list(low_part.shape)
    shape[axis] += high_part.shape[axis]
    result = np.empty(shape, low_part.dtype)
    signal = np.moveaxis(result, axis, 0)  # a view
    signal[0::2] = np.moveaxis(low_part, axis, 0)
    signal[1::2] = np.moveaxis(high_part, axis, 0)
    if len(signal) > 1:
        (inverse_real if result.dtype == np.float32 else inverse_integer)(signal, wavelet)
    return result


TIME, ROWS, COLUMNS = 0, 1, 2  # the axes of a volume: along time, along y, along x
Subbands = dict[tuple[int, int, int], np.ndarray]  # by temporal band, resolution and orientation


def merge_spatially(parts: list[np.ndarray], wavelet: int) -> np.ndarray:
    """The inverse of a level along y, then x. The parts are in the order of their orientations."""
    base, high_x, high_y, high_xy = parts
    low_x = merge(base, high_y, ROWS, wavelet)
    return merge(low_x, merge(high_x, high_xy, ROWS, wavelet), COLUMNS, wavelet)


def undo_gains(frames: np.ndarray, first: int, distance: int, gains: dict[int, int]) -> None:
    """Frames of a temporal band, which stand at every distance-th frame of the volume from the first on."""
    for frame, gain in gains.items():
        if frame >= first and (frame - first) % distance == 0:
            frames[(frame - first) // distance] *= np.float32(64 / gain)


def inverse_frames(bands: Subbands, b: int, levels: int, reduce: int, wavelet: int) -> np.ndarray:
    """The frames of temporal band b (t+2D), all spatial levels but the finest reduce."""
    frames = bands[b, 0, 0]
    for k in range(1, levels - reduce + 1):
        frames = merge_spatially([frames, *(bands[b, k, o] for o in (1, 2, 3))], wavelet)
    return frames


def inverse_volume(bands: Subbands, head: Head, levels: int, gains: dict[int, int], reduce: int,
                   temporal_reduce: int) -> np.ndarray:
    """All levels of a component but the finest reduce and temporal_reduce."""
    spatial, temporal = head.spatial_wavelet, head.temporal_wavelet
    if head.layout == DYADIC:
        volume = bands[0, 0, 0]
        for level in range(levels, reduce, -1):
            k = levels - level + 1
            volume = merge_spatially([volume, *(bands[0, k, o] for o in (1, 2, 3))], spatial)
            if level <= head.temporal_levels:
                high = merge_spatially([bands[0, k, o] for o in (4, 5, 6, 7)], spatial)
                volume = merge(volume, high, TIME, temporal)
        return volume
    for b in range(head.temporal_levels + 1 - temporal_reduce):
        frames = inverse_frames(bands, b, levels, reduce, spatial)
        level = head.temporal_levels - max(b, 1) + 1  # of the split that made the band
        if head.temporal_levels == 0:
            undo_gains(frames, 0, 1, gains)
        else:
            undo_gains(frames, 0 if b == 0 else 1 << level - 1, 1 << level, gains)
        volume = frames if b == 0 else merge(volume, frames, TIME, temporal)
    return volume


# ----------------------------------------------------------------------------------------------------------------------
# Subbands
# ----------------------------------------------------------------------------------------------------------------------

NORMS = {  # low[0..8], high[1..8]
    HAAR: ((1, 1.41421356, 2, 2.82842712, 4, 5.65685425, 8, 11.3137085, 16),
           (0.707106781, 1, 1.41421356, 2, 2.82842712, 4, 5.65685425, 8)),
    CDF_5_3: ((1, 1.22474487, 1.6583124, 2.31840462, 3.26917421, 4.61992965, 6.53237132, 9.23774526, 13.0639951),
              (0.847791248, 0.960143218, 1.2593401, 1.74441072, 2.4538713, 3.46565177, 4.89952764, 6.92839704)),
    CDF_9_7: ((1, 1.13976398, 1.34165977, 1.55837611, 1.79693992, 2.06740939, 2.37718114, 2.73295585, 3.14185768),
              (0.887277092, 0.983471306, 1.17216121, 1.37033071, 1.58317245, 1.82239848, 2.09573134, 2.4094623)),
    CRF_13_7: ((1, 1.28086885, 1.79158528, 2.53151344, 3.57988771, 5.06270591, 7.15974555, 10.1254091, 14.3194909),
               (0.809253958, 0.966665795, 1.33939897, 1.89114887, 2.67418922, 3.78184676, 5.34833644, 7.5636897)),
}
MOTION_NORMS = ((1, 1.1869, 1.66167, 2.32633, 3.25687, 4.55961, 6.38346, 8.93684, 12.5116),
                (0.847791, 1.1869, 1.66167, 2.32633, 3.25687, 4.55961, 6.38346, 8.93684))
ORIENTATION_X, ORIENTATION_Y, ORIENTATION_T = 1, 2, 4


class Geometry:
    """Sizes, norms and tree shape of a component of a GOP."""

    def __init__(self, head: Head, info: ComponentInfo, frames: int, motion: bool, key_first: bool = True) -> None:
        self.head = head
        self.motion = motion
        self.key_first = key_first
        self.levels = info.levels
        self.size = (frames, info.height, info.width)
        self.dyadic = head.layout == DYADIC
        self.lt = head.temporal_levels
        self.shape = cache(self.shape)  # these are often asked for
        self.low_size = cache(self.low_size)
        self.arity = cache(self.arity)

    def level(self, k: int) -> int:
        """Level l of resolution k >= 1; for the lowest band that of k = 1."""
        return self.levels - max(k, 1) + 1

    def orientations(self, k: int) -> range:
        if k == 0:
            return range(1)
        return range(1, 8 if self.dyadic and self.lt > 0 else 4)

    def shape(self, b: int, k: int, o: int) -> tuple[int, int, int]:
        """Frames, rows and columns of a subband."""
        frames, height, width = self.size
        level = self.level(k)
        if not self.dyadic:
            t = low(frames, self.lt) - (not self.key_first) if b == 0 else low(frames, self.lt - b) // 2
        elif k == 0:
            t = low(frames, self.lt)
        elif o & ORIENTATION_T:
            t = low(frames, level - 1) // 2 if level <= self.lt else 0
        else:
            t = low(frames, min(level, self.lt))
        if k == 0:
            return t, low(height, self.levels), low(width, self.levels)
        return (t, low(height, level - 1) // 2 if o & ORIENTATION_Y else low(height, level),
                low(width, level - 1) // 2 if o & ORIENTATION_X else low(width, level))

    def low_size(self, k: int) -> tuple[int, int]:
        """Rows and columns of the low-low part of the level of resolution k."""
        return tuple(low(n, self.level(k)) for n in self.size[ROWS:])

    def has_frames(self, b: int) -> bool:
        return self.shape(b, 0, 0)[TIME] > 0

    def temporal_parent(self, b: int) -> int | None:
        """b', the family whose root groups are parents of those of b."""
        return next((parent for parent in range(b - 1, -1, -1) if self.has_frames(parent)), None)

    # Norms and quantiser

    def norm(self, b: int, k: int, o: int) -> float:
        def axis(norms: tuple, n: int, high_level: int | None, splits: int) -> float:
            lows, highs = norms
            if high_level is not None:
                return float(highs[high_level - 1])
            return float(lows[sum(low(n, j) > 1 for j in range(splits))])

        level = self.level(k)
        splits = self.levels if k == 0 else level
        if not self.dyadic:
            time_level = self.lt - b + 1 if b > 0 else None
            time_splits = self.lt
        else:
            time_level = level if o & ORIENTATION_T else None
            time_splits = self.lt if k == 0 else min(level, self.lt)
        frames, height, width = self.size
        spatial = NORMS[self.head.spatial_wavelet]
        time = axis(MOTION_NORMS if self.motion else NORMS[self.head.temporal_wavelet], frames, time_level, time_splits)
        rows = axis(spatial, height, level if o & ORIENTATION_Y else None, splits)
        columns = axis(spatial, width, level if o & ORIENTATION_X else None, splits)
        return (time * rows) * columns

    # Trees

    def arity(self, k: int) -> int:
        if not self.dyadic:
            return 4
        if k <= 1:
            return 8 if self.lt == self.levels > 0 else 4
        return 8 if self.level(k) < self.lt else 4

    @property
    def block_groups(self) -> int:
        """g: the root groups along the side of a code block."""
        return max(1, self.head.block >> (self.levels + 1))

    @property
    def block_grid(self) -> tuple[int, int]:
        """Rows and columns of code blocks."""
        def blocks(n: int) -> int:
            groups = -(-n // 2)
            return max(1, -(-groups // self.block_groups))

        _, rows, columns = self.shape(0, 0, 0)
        return blocks(rows), blocks(columns)


def dequantise(magnitude: np.ndarray, negative: np.ndarray, plane: np.ndarray, head: Head,
               step: np.float32) -> np.ndarray:
    """Integers whose bits below plane are not known, to what they stand for."""
    if head.lossless:
        centre = np.where(plane == 0, 0, head.centroid << plane >> 8)
        value = np.where(magnitude > 0, magnitude + centre, 0)
        return np.where(negative, -value, value).astype(np.int32)
    r = np.float32(head.centroid) / np.float32(256) * (1 << plane).astype(np.float32)
    value = np.where(magnitude > 0, (magnitude.astype(np.float32) + r) * step, np.float32(0))
    return np.where(negative, -value, value).astype(np.float32)


# ----------------------------------------------------------------------------------------------------------------------
# Trees
# ----------------------------------------------------------------------------------------------------------------------

@dataclass(eq=False)
class Group:
    """A group that exists, with what is known of it and of its coefficients."""
    number: int
    where: tuple[int, int, int]
    places: list[tuple[int, int, int]]               # coordinates of its coefficients, valid or not
    coefficients: list[tuple[int, int, int] | None]  # by place: coordinates in the subband, None if not valid
    children: list[Group | None]                     # by place; of a root group by orientation
    parent: Group | None = None                      # in space
    parent_place: int = 0                            # of the coefficient whose child it is; of level 1 without meaning
    temporal_parent: Group | None = None
    activated: int = -1                              # the plane at which it became active
    open: bool = False
    magnitudes: list[int] = field(default_factory=list)
    signs: list[int] = field(default_factory=list)
    cells: list[int] = field(default_factory=list)   # dense: its coefficients in Known
    around: list[Group] = field(default_factory=list)  # dense: left, right, above and below

    def __post_init__(self) -> None:
        self.magnitudes = [0] * len(self.coefficients)
        self.signs = [0] * len(self.coefficients)
        self.full = None not in self.coefficients
        self.valid = [place for place, where in enumerate(self.coefficients) if where is not None]
        self.has_children = any(self.children)
        for place, child in enumerate(self.children):
            if child is not None:
                child.parent, child.parent_place = self, place

    def __bool__(self) -> bool:
        return True

    def active(self, p: int) -> bool:
        return self.activated >= p

    def significant(self, p: int) -> bool:
        """Whether it has a significant coefficient: M > p."""
        return any(magnitude >> p for magnitude in self.magnitudes)


@dataclass
class Segment:
    """The coefficients of a family at level k of a block."""
    k: int
    levels: int  # LSc
    groups: list[list[Group]] = field(default_factory=list)  # by orientation in ascending order, then by number
    spatial_parent: Segment | None = None
    temporal_parent: Segment | None = None
    top: int = 0
    low: int = 0      # of the last layer read; dense: a cut
    decoded: int = 0  # the lowest plane known; dense: a cut
    codeword: bytearray = field(default_factory=bytearray)            # not fast
    # dense only:
    ordered: list[list[Group]] = field(default_factory=list)          # groups in the order of decisions
    known: list[Known] = field(default_factory=list)                  # by orientation

    @property
    def parent(self) -> Segment | None:
        return self.spatial_parent or self.temporal_parent


@cache
def z_order(g: int) -> list[tuple[int, int, int]]:
    """The numbers of g x g groups in Z order, with their rows and columns."""
    def every_second_bit(z: int) -> int:
        return sum((z >> 2 * i & 1) << i for i in range(8))

    return [(z, every_second_bit(z >> 1), every_second_bit(z)) for z in range(g * g)]


class Block:
    """A code block of a component: the segments by temporal band and level."""

    def __init__(self, geometry: Geometry, row: int, column: int) -> None:
        self.geometry = geometry
        self.segments: dict[tuple[int, int], Segment] = {}
        g = geometry.block_groups
        roots: dict[int, dict[tuple[int, int, int], Group]] = {}
        for b in range(geometry.head.bands):
            if not geometry.has_frames(b):
                continue
            parent = geometry.temporal_parent(b)
            for k in range(geometry.levels + 1):
                self.segments[b, k] = Segment(k, geometry.levels, [[] for _ in geometry.orientations(k)])
                if k > 0:
                    self.segments[b, k].spatial_parent = self.segments[b, k - 1]
                elif parent is not None:
                    self.segments[b, k].temporal_parent = self.segments[parent, 0]
            roots[b] = {}
            frames = geometry.shape(b, 0, 0)[TIME]
            for t in range(-(-frames // 2) if geometry.arity(0) == 8 else frames):
                for z, y, x in z_order(g):
                    where = (t, row * g + y, column * g + x)
                    root = self.build(b, 0, 0, where, t * g * g + z)
                    if root is None:
                        continue
                    roots[b][where] = root
                    if parent is not None:
                        parent_frames = geometry.shape(parent, 0, 0)[TIME]
                        parent_t = min(t if parent == 0 else t >> 1, parent_frames - 1)
                        root.temporal_parent = roots[parent][parent_t, where[1], where[2]]

    def build(self, b: int, k: int, o: int, where: tuple[int, int, int], number: int) -> Group | None:
        """The group at a place and its descendants, or None if it does not exist.

        Called in the order of the numbers of the root groups, it fills every level in the order of its numbers.
        """
        geometry = self.geometry
        t, y, x = where
        rows, columns = geometry.low_size(k)
        if 2 * y >= rows or 2 * x >= columns:
            return None  # a shortcut: no coefficient there, and none of its descendants, is inside its subband
        arity = geometry.arity(k)
        frames, rows, columns = geometry.shape(b, k, o)
        places, coefficients, children = [], [], []
        for place in range(arity):
            i, j, h = place & 1, place >> 1 & 1, place >> 2
            coefficient = (2 * t + h if arity == 8 else t, 2 * y + j, 2 * x + i)
            places.append(coefficient)
            valid = coefficient[0] < frames and coefficient[1] < rows and coefficient[2] < columns
            coefficients.append(coefficient if valid else None)
            if 1 <= k < geometry.levels:
                children.append(self.build(b, k + 1, o, coefficient, arity * number + place))
        if k == 0 and geometry.levels > 0:
            children = [self.build(b, 1, child_o, where, number) for child_o in geometry.orientations(1)]
        if not any(coefficients) and not any(children):
            return None
        group = Group(number, where, places, coefficients, children)
        self.segments[b, k].groups[o - geometry.orientations(k)[0]].append(group)
        return group


# ----------------------------------------------------------------------------------------------------------------------
# Segments
# ----------------------------------------------------------------------------------------------------------------------

class Component:
    def __init__(self, head: Head, info: ComponentInfo, gop: Gop) -> None:
        self.head = head
        self.info = info
        self.geometry = Geometry(head, info, gop.places, gop.motion is not None, gop.key == KEY_FIRST)
        rows, columns = self.geometry.block_grid
        self.blocks = [Block(self.geometry, row, column) for row in range(rows) for column in range(columns)]

    def last_plane(self, magnitude: int, decoded: int) -> int:
        """The last plane of which the bit of a coefficient is known."""
        if self.head.profile == FAST:
            return decoded
        p = decoded >> 1
        return p if decoded % 2 == 0 or magnitude < 2 << p else p + 1

    def subbands(self, step: np.float32) -> Subbands:
        """The dequantised coefficients."""
        result: Subbands = {}
        for b in range(self.head.bands):
            for k in range(self.info.levels + 1):
                for index, o in enumerate(self.geometry.orientations(k)):
                    shape = self.geometry.shape(b, k, o)
                    magnitude = np.zeros(shape, np.int64)
                    negative = np.zeros(shape, bool)
                    plane = np.zeros(shape, np.int64)
                    for block in self.blocks if self.geometry.has_frames(b) else []:
                        segment = block.segments[b, k]
                        for group in segment.groups[index]:
                            for place in group.valid:
                                where = group.coefficients[place]
                                magnitude[where] = group.magnitudes[place]
                                negative[where] = group.signs[place]
                                plane[where] = self.last_plane(group.magnitudes[place], segment.decoded)
                    norm = self.geometry.norm(b, k, o)
                    subband_step = np.float32(float(step) * float(self.info.weight) / norm * (64 / self.info.scales[k]))
                    result[b, k, o] = dequantise(magnitude, negative, plane, self.head, subband_step)
        return result


def read_chunk(data: bytes, layer: int, b: int, distance: int, components: list[Component], gop: Gop,
               first_plane: int) -> None:
    """Read a chunk and decode its parts; planes below first_plane are passed over."""
    bits = BitReader(data)
    fast = components[0].head.profile != DENSE  # cuts are planes
    parts: list[tuple[Segment, int, int, int]] = []
    for component in components:
        k = component.info.levels - distance
        if k < 0 or not component.geometry.has_frames(b):
            continue
        nominal, uniform, parameter = bits.bits(6), bits.bits(1), bits.bits(5)
        top_before = 0
        for block in component.blocks:
            segment = block.segments[b, k]
            if layer == 0:
                if segment.parent is None:
                    segment.top = top_before + bits.unary_zz(60)
                    top_before = segment.top
                elif segment.parent.top > 0:
                    segment.top = segment.parent.top - bits.unary(segment.parent.top)
                check(0 <= segment.top <= gop.planes, "top out of range")
                segment.low = segment.decoded = segment.top if fast else 2 * segment.top
            begin = segment.low
            segment.low = min(begin, nominal)
            if not uniform and begin > 0:
                segment.low += bits.unary_zz(120)
            check(0 <= segment.low <= begin, "planes of a part out of range")
            if segment.low < begin:
                check((begin if fast else begin + 1 >> 1) <= gop.layer_tops[layer], "planes above the top of the layer")
                check(segment.parent is None or segment.low >= lowest_cut(segment.parent.low, fast),
                      "more planes than the parent has")
                parts.append((segment, begin, segment.low, bits.rice(parameter, len(data))))
    position = bits.bytes_used()
    check(position + sum(size for *_, size in parts) == len(data), "sizes of parts and chunk do not agree")
    for segment, begin, end, size in parts:
        if components[0].head.profile != FAST:
            segment.codeword += data[position:position + size]
            position += size
            continue
        decode_part(data[position:position + size], segment, begin, end, first_plane, components[0].head)
        position += size


def predictive_samples(component: Component, gop: Gop) -> np.ndarray:
    """The samples of a component without their offset."""
    head, info, side = component.head, component.info, component.head.block
    numbers = np.zeros((gop.frames, info.height, info.width), np.int64)
    _, columns = component.geometry.block_grid
    for i, block in enumerate(component.blocks):
        segment = block.segments[0, 0]
        check(segment.top <= 1 and segment.low == 0, "planes of a block")
        part = numbers[:, i // columns * side:, i % columns * side:][:, :side, :side]
        if segment.top > 0:
            codeword = bytes(segment.codeword)
            kind = 0
            if head.labels or head.mixed:
                check(len(codeword) > 0 and codeword[0] in [0] + [1] * head.labels + [2] * head.mixed,
                      "kind of a codeword")
                kind, codeword = codeword[0], codeword[1:]
            part[...] = (decode_block_labels(codeword, part.shape, head.bits) if kind == 1 else
                         decode_block_mixed(codeword, part.shape, head.bits) if kind == 2 else
                         decode_block_ahead(codeword, part.shape, head.bits) if head.ahead else
                         decode_block(codeword, part.shape, head.bits, head.moved))
    return numbers


def lowest_cut(needed: int, fast: bool) -> int:
    """Where a segment can end at most if the one it needs ends at a cut."""
    return needed if fast else needed - needed % 2


def decode_dense(component: Component, first_plane: int) -> None:
    """All codewords of a component; planes below first_plane are passed over."""
    head, geometry = component.head, component.geometry
    table_set = 2 * (head.layout == DYADIC) + head.lossless
    for block in component.blocks:
        for (b, k), segment in block.segments.items():
            needed = lowest_cut(segment.parent.decoded, False) if segment.parent else 0
            segment.decoded = min(max(segment.low, needed, 2 * first_plane), 2 * segment.top)
            PassDecoder(segment, table_set, geometry.orientations(k), b > 0).decode(segment.decoded)


def decode_part(data: bytes, segment: Segment, begin: int, end: int, first_plane: int, head: Head) -> None:
    """Planes begin - 1 down to end, or to first_plane if that is greater."""
    bits = BitReader(data)
    for p in range(begin - 1, max(end, first_plane) - 1, -1):
        decode_plane(bits, segment, p, head.mode == STAGED, segment.k >= segment.levels - 1)
        segment.decoded = p
    if end >= first_plane:
        check(bits.bytes_used() == len(data), "a part does not end in its last byte")


# ----------------------------------------------------------------------------------------------------------------------
# Fast profile
# ----------------------------------------------------------------------------------------------------------------------

def decode_plane(bits: BitReader, segment: Segment, p: int, staged: bool, finest: bool) -> None:
    """One bit plane of a segment. finest: the segment is one of the two finest levels."""
    if segment.k == 0:
        decode_root_activity(bits, segment, p)
    else:
        decode_activity(bits, segment, p)
    active = [[group for group in groups if group.active(p)] for groups in segment.groups]

    # R: of the coefficients significant before
    for group in (group for groups in active for group in groups):
        for place in group.valid:
            if group.magnitudes[place]:
                group.magnitudes[place] |= bits.bit() << p

    # F: flags, of full groups that have no significant coefficient before
    flags: dict[Group, int] = {}
    if staged:
        for group in (group for groups in active for group in groups):
            if group.full and not any(group.magnitudes):
                flags[group] = bits.bit()

    # S: which coefficients become significant
    becoming: dict[Group, set[int]] = {}
    for group in (group for groups in active for group in groups):
        becoming[group] = set()
        new = group.activated == p
        if group in flags and flags[group] == (1 if finest and new else 0):
            continue
        for place in group.valid:
            if not group.magnitudes[place] >> p + 1 and bits.bit():
                becoming[group].add(place)

    # P: the place of the only coefficient that becomes significant
    if staged and finest:
        for groups in active:
            words: dict[int, list[Group]] = {}
            for group in groups:
                if group.activated == p and flags.get(group) == 1:
                    words.setdefault(group.number * len(group.coefficients) // 64, []).append(group)
            for word in words.values():
                places = [0] * len(word)
                for i in range(3 if len(word[0].coefficients) == 8 else 2):
                    for n in range(len(word)):
                        places[n] |= bits.bit() << i
                for group, place in zip(word, places):
                    becoming[group].add(place)

    # N: signs
    for group in (group for groups in active for group in groups):
        for place in sorted(becoming[group]):
            group.magnitudes[place] |= 1 << p
            group.signs[place] = bits.bit()


def decode_root_activity(bits: BitReader, segment: Segment, p: int) -> None:
    """A: which root groups become active."""
    for group in segment.groups[0]:
        if group.activated < 0:
            if segment.temporal_parent is None:
                group.activated = segment.top - 1  # new at the first plane
            elif group.temporal_parent and group.temporal_parent.active(p) and bits.bit():
                group.activated = p


def decode_activity(bits: BitReader, segment: Segment, p: int) -> None:
    """B and D: which groups of level k >= 1 become active."""
    parent = segment.spatial_parent
    assert parent is not None
    for groups in parent.groups:
        for group in groups:
            if group.active(p) and group.has_children and not group.open:
                implied = parent.k >= 1 and group.activated == p and not group.significant(p)
                group.open = implied or bool(bits.bit())
    if parent.k == 0:
        opened = [group for group in parent.groups[0] if group.open]
        children = [[group.children[o] for group in opened] for o in range(len(segment.groups))]
    else:
        children = [[child for group in groups if group.open for child in group.children] for groups in parent.groups]
    for orientation in children:
        for child in orientation:
            if child is not None and child.activated < 0 and bits.bit():
                child.activated = p


# ----------------------------------------------------------------------------------------------------------------------
# Decoding less, and the samples
# ----------------------------------------------------------------------------------------------------------------------

@dataclass
class Options:
    layers: int = 0  # 0: all
    planes: int = 0  # from the top; 0: all
    reduce: int = 0
    temporal_reduce: int = 0

    def first_plane(self, gop: Gop) -> int:
        """The lowest plane to decode."""
        return max(0, gop.planes - self.planes) if self.planes else 0


def dividing_splits(length: int, splits: int) -> int:
    """How many of so many splits find more than one sample."""
    count = 0
    while count < splits and length > 1:
        length = (length + 1) // 2
        count += 1
    return count


def reduced_scale(head: Head, info: ComponentInfo, frames: int, temporal: int, spatial: int) -> np.float32:
    def gain(wavelet: int) -> float:
        return 1.230174105 if wavelet == CDF_9_7 else 1.0

    product = 1.0
    for _ in range(dividing_splits(frames, temporal)):
        product *= gain(head.temporal_wavelet)
    for _ in range(dividing_splits(info.width, spatial) + dividing_splits(info.height, spatial)):
        product *= gain(head.spatial_wavelet)
    return np.float32(1 / product)


def cells_of(head: Head) -> tuple[int, int]:
    """Rows and columns of the cells of motion."""
    return -(-head.height // CELL), -(-head.width // CELL)


def read_motion(gop: Gop, head: Head, temporal_reduce: int) -> list[list[HighFrame]]:
    """The high frames of the levels that are left, the coarsest first."""
    result: list[list[HighFrame]] = []
    for level in range(head.temporal_levels, temporal_reduce, -1):
        coarser = result[-1] if result else []
        highs = high_frames(level, gop.frames, gop.key)
        result.append(read_level(gop.motion[level], highs, cells_of(head), len(head.components), coarser))
    return result


def read_motion_of_keys(gop: Gop, head: Head) -> list[HighFrame]:
    """The predicted keys, if there are any."""
    if not gop.predicted:
        return []
    highs = predicted_keys(gop.levels, gop.frames, gop.key)
    return read_level(gop.motion[gop.levels + 1], highs, cells_of(head), len(head.components), [])


def component_samples_with_motion(component: Component, gop: Gop, motion: list[list[HighFrame]],
                                  predicted: list[HighFrame], options: Options,
                                  before: Keys | None) -> tuple[np.ndarray, Keys]:
    """The same for a GOP with motion, and the key frame that it leaves. before: that of the GOP before."""
    head, info = component.head, component.info
    bands = component.subbands(gop.step)
    frames: dict[int, np.ndarray] = {}  # by place
    for b in range(head.bands - options.temporal_reduce):
        if not component.geometry.has_frames(b):
            continue
        decoded = inverse_frames(bands, b, info.levels, options.reduce, head.spatial_wavelet)
        if not head.lossless:
            decoded = to_integers(decoded, reduced_scale(head, info, 1, 0, options.reduce))
        distance = 1 << head.temporal_levels - max(b - 1, 0)
        first = distance // 2 if b > 0 else 0 if gop.key == KEY_FIRST else distance
        frames.update(zip(range(first, gop.places, distance), decoded))
    scale = info.chroma_x + options.reduce, info.chroma_y + options.reduce
    size = low(info.height, options.reduce), low(info.width, options.reduce)
    plane = Plane(info.index, scale, size, cells_of(head), head.bits, 0 if head.lossless else LOSSY_PLACES)
    keys = inverse_motion(frames, motion, plane, gop.levels, gop.key, before, predicted)
    if gop.key == KEY_OPEN:
        frames.pop(0, None)
    volume = np.stack([frames[t] for t in sorted(frames)]) if frames else np.zeros((0, *size), np.int32)
    return (volume if head.lossless else to_samples(volume)).astype(np.int64), keys


def component_samples(component: Component, gop: Gop, options: Options) -> np.ndarray:
    """The transformed samples, in lossy streams rounded, without their offset."""
    head = component.head
    volume = inverse_volume(component.subbands(gop.step), head, component.info.levels, gop.gains, options.reduce,
                            options.temporal_reduce)
    if not head.lossless:
        dropped = min(options.reduce, head.temporal_levels) if head.layout == DYADIC else options.temporal_reduce
        volume = np.rint(volume * reduced_scale(head, component.info, gop.frames, dropped, options.reduce))
    return volume.astype(np.int64)


def read_components(gop: Gop, head: Head, options: Options) -> list[Component]:
    """The components with the coefficients that are asked for."""
    components = [Component(head, info, gop) for info in head.components]
    first_plane = options.first_plane(gop)
    bands = head.bands - options.temporal_reduce
    layers = min(head.layers, options.layers or head.layers)
    for (layer, b, distance), data in gop.chunks.items():
        if layer < layers and b < bands and distance >= options.reduce:
            read_chunk(data, layer, b, distance, components, gop, first_plane)
    if head.profile == DENSE:
        for component in components:
            decode_dense(component, first_plane)
    return components


def decode_gop(gop: Gop, head: Head, options: Options,
               keys: list[Keys] | None = None) -> tuple[list[np.ndarray], list[Keys] | None]:
    """The components, each an array of frames, rows and columns; and of each its key frame, if an open GOP may follow.
    keys: those of the GOP before."""
    more = 0  # halvings of the frame rate for which the GOP has no levels
    if gop.motion is not None:
        head = head.of_gop(gop)
        more = max(0, options.temporal_reduce - gop.levels)
        options = replace(options, temporal_reduce=options.temporal_reduce - more)
    components = read_components(gop, head, options)
    left = None
    if head.profile == PREDICTIVE:
        samples = [predictive_samples(component, gop) for component in components]
    elif gop.motion is None:
        samples = [component_samples(component, gop, options) for component in components]
    else:
        check(gop.key != KEY_OPEN or keys is not None, "an open GOP behind one without a key")
        motion = read_motion(gop, head, options.temporal_reduce)
        predicted = read_motion_of_keys(gop, head)
        both = [component_samples_with_motion(component, gop, motion, predicted, options, keys[c] if keys else None)
                for c, component in enumerate(components)]
        samples = [volume for volume, _ in both]
        first = 0 if gop.key == KEY_FIRST else (1 << more) - 1
        samples = [volume[first::1 << more] for volume in samples]
        if (gop.places - 1) % (1 << gop.levels) == 0:
            left = [key for _, key in both]
    if head.ycocg:
        samples[:3] = inverse_ycocg(samples[0] + head.components[0].offset, samples[1], samples[2])
    for c, info in enumerate(head.components):
        if c > 2 or not head.ycocg:
            samples[c] = samples[c] + info.offset
        samples[c] = np.clip(samples[c], *head.sample_range).astype("<" + head.sample_type)

    all_layers = options.layers == 0 or options.layers >= head.layers
    complete = all_layers and not (options.first_plane(gop) or options.reduce or options.temporal_reduce or more)
    if gop.hash is not None and complete:
        check(xxh64(b"".join(component.tobytes() for component in samples)) == gop.hash, "samples do not have the hash")
    return samples, left


def decode(data: bytes, options: Options, write: Callable[[bytes], object]) -> bool:
    """Decode a stream of a video and write its samples. Returns whether it is finished."""
    def write_frames(_head: Head, samples: list[np.ndarray]) -> None:
        for frame in range(len(samples[0])):
            for component in samples:
                write(component[frame].tobytes())

    return decode_gops(data, options, write_frames)


def decode_gops(data: bytes, options: Options, use: Callable[[Head, list[np.ndarray]], object],
                of_volume: dict[bytes, bytes] | None = None) -> bool:
    """Call use() with the samples of each GOP. Returns whether the stream is finished. of_volume: takes the payloads of
    the critical boxes of a volume, whose types are its keys; without it they are not known."""
    known = KNOWN_BOXES + tuple(of_volume or ())
    head: Head | None = None
    gops: list[tuple[Box, Gop]] = []
    index: Box | None = None
    next_frame = 0
    keys: list[Keys] | None = None  # by component, of the GOP before
    for box in read_boxes(data, known):
        if head is None:
            check(box.kind == b"Head", "Head is not first")
            head = read_head(box.payload)
            check(options.temporal_reduce == 0 or head.layout == T_PLUS_2D, "dyadic: no lower frame rate alone")
            options = replace(options, reduce=options.reduce + head.dropped)
            options.temporal_reduce += head.temporal_dropped
            check(options.reduce <= min(c.levels for c in head.components), "cannot be reduced so often")
            check(options.temporal_reduce <= head.temporal_levels, "frame rate cannot be reduced so often")
            continue
        check(box.kind != b"Head", "two Head boxes")
        if box.kind == b"Gop ":
            gop = read_gop(box.payload, head)
            check(gop.index == len(gops) and gop.first_frame >= next_frame, "GOPs out of order")
            check(gop.key != KEY_OPEN or gop.first_frame == next_frame, "a gap before an open GOP")
            next_frame = gop.first_frame + gop.frames
            gops.append((box, gop))
            samples, keys = decode_gop(gop, head, options, keys)
            use(head, samples)
        elif of_volume is not None and box.kind in of_volume:
            check(not gops and not of_volume[box.kind], f"box {box.kind!r} out of place")
            of_volume[box.kind] = box.payload
        elif box.kind == b"Indx":
            index = box
            check_index(box, gops, head.layers)
        elif box.kind == b"Done":
            reader = ByteReader(box.payload)
            frames, offset = reader.unpack("QQ")
            reader.crc()
            check(index is not None and offset == index.offset, "Done does not point to the index")
            check(frames == next_frame and head.frames in (0, frames), "number of frames")
            return True
    check(head is not None, "no Head")
    return False


def add_arguments(parser: argparse.ArgumentParser, output: str) -> None:
    """What the decoders of videos and of volumes have in common."""
    parser.add_argument("input", metavar="IN.tvl")
    parser.add_argument("output", metavar=output)
    parser.add_argument("--layers", type=int, default=0, metavar="N", help="only so many layers; 0 = all")
    parser.add_argument("--planes", type=int, default=0, metavar="N", help="only so many planes of a GOP; 0 = all")
    parser.add_argument("--reduce", type=int, default=0, metavar="N", help="halve width and height N times")


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Decode a Trivelet stream to raw samples.")
    add_arguments(parser, "OUT.yuv")
    parser.add_argument("--temporal-reduce", type=int, default=0, metavar="N", help="halve frame rate N times")
    options = parser.parse_args(arguments)
    try:
        with open(options.input, "rb") as source:
            data = source.read()
        with open(options.output, "wb") as sink:
            chosen = Options(options.layers, options.planes, options.reduce, options.temporal_reduce)
            if not decode(data, chosen, sink.write):
                print(f"{options.input}: unfinished; decoded its complete GOPs", file=sys.stderr)
    except FormatError as error:
        print(f"{options.input}: {error}", file=sys.stderr)
        return 4
    except OSError as error:
        print(error, file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
