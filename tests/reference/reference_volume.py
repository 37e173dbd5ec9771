#!/usr/bin/env python3
"""Decode a volume from a Trivelet stream, written from the text of codec/FORMAT.md alone, section "Volumes".

    reference_volume.py IN.tvl OUT.raw [--layers N] [--planes N] [--reduce N]

The output is the scalars in the order of slices, in the byte order of the file they came from.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass

import numpy as np

import reference_decoder as reference
from reference_conventions import ByteReader, FormatError, check
from reference_dense import RangeDecoder, State

UINT8, INT8, UINT16, INT16, UINT32, INT32, UINT64, INT64, FLOAT32, FLOAT64 = range(10)
BYTES = (1, 1, 2, 2, 4, 4, 8, 8, 4, 8)
AFFINE, PALETTE, REAL = range(3)
IN_SLICE, ACROSS = 1, 2
LARGEST_PALETTE = 65536


@dataclass
class VolumeMap:
    kind_of_scalar: int
    big_endian: int
    channels: int
    kind: int
    order: int
    prediction: int
    slices: int
    volumes: int
    last: int
    offset: int | float = 0
    scale: int | float = 1
    last_key: int = 0
    table: list[int] | None = None

    @property
    def width(self) -> int:
        """Bits of a scalar."""
        return 8 * BYTES[self.kind_of_scalar]

    @property
    def is_real(self) -> bool:
        return self.kind_of_scalar >= FLOAT32

    @property
    def bits(self) -> int:
        """B, of a number."""
        return max(1, self.last.bit_length())

    @property
    def planes(self) -> int:
        return -(-self.bits // 16)

    def component(self, channel: int, plane: int) -> int:
        if self.channels >= 3:
            return (2, 0, 1, 3)[channel]
        return channel * self.planes + plane

    def slice_of(self, frame: int) -> int:
        return frame // self.volumes + self.slices * (frame % self.volumes) if self.order else frame


def read_map(payload: bytes, head: reference.Head) -> VolumeMap:
    reader = ByteReader(payload)
    version = reader.number("B")
    check(version == 1, f"version {version} of Volm")
    kind_of_scalar, big_endian, channels, kind, order, prediction = reader.unpack("6B")
    check(kind_of_scalar <= FLOAT64 and big_endian <= 1 and 1 <= channels <= 4 and kind <= REAL and order <= 1, "Volm")
    check(prediction <= (ACROSS if channels <= 2 else 0), "prediction")
    slices, volumes = reader.varint(), reader.varint()
    check(slices >= 1 and volumes >= 1 and slices * volumes < 1 << 64, "slices")
    check(0 <= reader.number("d") < float("inf"), "maximum error")
    m = VolumeMap(kind_of_scalar, big_endian, channels, kind, order, prediction, slices, volumes, reader.varint())
    if kind == AFFINE:
        m.offset, m.scale, m.last_key = reader.varint(), reader.varint(), reader.varint()
        check(m.scale >= 1 and m.offset <= m.last_key < 1 << m.width, "affine map")
        check(m.last <= (m.last_key - m.offset) // m.scale + 1, "affine map")
    elif kind == PALETTE:
        check(m.last < LARGEST_PALETTE, "palette")
        m.table, key = [], 0
        while len(m.table) <= m.last:
            key += reader.varint()
            run = reader.varint()
            check(1 <= run <= m.last + 1 - len(m.table) and key + run <= 1 << m.width, "palette")
            m.table += range(key, key + run)
            key += run
    else:
        m.offset, m.scale = reader.unpack("dd")
        check(m.is_real and np.isfinite(m.offset) and 0 < m.scale < np.inf, "real map")
    reader.last_crc()
    check(m.planes * channels == len(head.components) and head.bits == min(m.bits, 16), "planes of the volume")
    check(head.signed == (prediction > 0), "prediction of unsigned samples")
    return m


# ----------------------------------------------------------------------------------------------------------------------
# Prediction
# ----------------------------------------------------------------------------------------------------------------------

def in_slice(a: int, b: int, c: int) -> int:
    """P, from the numbers left, above, above left."""
    if c >= max(a, b):
        return min(a, b)
    return max(a, b) if c <= min(a, b) else a + b - c


def undo_prediction(samples: np.ndarray, bits: int, across: bool) -> np.ndarray:
    """The numbers of a plane of a GOP, from its differences."""
    numbers = np.zeros(samples.shape, np.int64)
    for t, frame in enumerate(samples.astype(np.int64)):
        before = numbers[t - 1] if across and t > 0 else None
        n = numbers[t]
        for y in range(frame.shape[0]):
            for x in range(frame.shape[1]):
                def at(j: int, i: int) -> int:
                    return int(n[j, i]) - (0 if before is None else int(before[j, i]))

                if y == 0:
                    p = at(0, x - 1) if x else 0
                else:
                    p = in_slice(at(y, x - 1), at(y - 1, x), at(y - 1, x - 1)) if x else at(y - 1, 0)
                if before is not None:
                    p = min(max(p + int(before[y, x]), 0), (1 << bits) - 1)
                n[y, x] = p + int(frame[y, x]) & (1 << bits) - 1
    return numbers


# ----------------------------------------------------------------------------------------------------------------------
# Scalars
# ----------------------------------------------------------------------------------------------------------------------

def bits_of_keys(keys: np.ndarray, m: VolumeMap) -> np.ndarray:
    """The bits of scalars as unsigned integers of 64 bits, of which the lowest count."""
    sign = np.uint64(1 << m.width - 1)
    everything = np.uint64((1 << m.width) - 1)
    if m.is_real:
        return np.where(keys & sign, keys ^ sign, ~keys & everything)
    return keys ^ sign if m.kind_of_scalar & 1 else keys


def bits_of_numbers(numbers: np.ndarray, m: VolumeMap) -> np.ndarray:
    n = np.minimum(numbers.astype(np.uint64), np.uint64(m.last))
    if m.kind == REAL:
        value = np.float64(m.offset) + np.float64(m.scale) * n.astype(np.float64)
        return value.view(np.uint64) if m.kind_of_scalar == FLOAT64 else value.astype(np.float32).view(np.uint32).astype(
            np.uint64)
    if m.kind == PALETTE:
        return bits_of_keys(np.array(m.table, np.uint64)[n], m)
    # offset + n * scale, limited; the last number may lie beyond 64 bits
    most = np.uint64((m.last_key - m.offset) // m.scale)
    return bits_of_keys(np.where(n > most, np.uint64(m.last_key),
                                 np.uint64(m.offset) + np.minimum(n, most) * np.uint64(m.scale)), m)


def numbers_of_gop(samples: list[np.ndarray], m: VolumeMap) -> np.ndarray:
    """Frames, rows, columns, channels."""
    result = np.zeros((*samples[0].shape, m.channels), np.uint64)
    for channel in range(m.channels):
        low_bits = m.bits - 16  # of the planes behind the first
        for plane in range(m.planes):
            values = samples[m.component(channel, plane)]
            if m.prediction:
                values = undo_prediction(values, min(m.bits, 16), m.prediction == ACROSS)
            shift = 0 if m.planes == 1 else max(0, low_bits - 16 * plane)
            result[..., channel] |= values.astype(np.uint64) << np.uint64(shift)
    return result


# ----------------------------------------------------------------------------------------------------------------------
# Mask
# ----------------------------------------------------------------------------------------------------------------------

class Contexts:
    def __init__(self) -> None:
        def state() -> State:
            return [32768, 1]

        self.same, self.like = state(), state()
        self.above = [state() for _ in range(2)]
        self.set = [state() for _ in range(32)]


def slice_of_marks(coder: RangeDecoder, x: Contexts, before: np.ndarray) -> np.ndarray:
    """Of a channel."""
    if coder.decide(x.same):
        return before
    rows, columns = before.shape
    marks = np.zeros((rows + 1, columns + 2), np.int64)  # with what lies outside: above, left and right
    a = 0
    for y in range(1, rows + 1):
        a = coder.decide(x.above[a])
        if a:
            marks[y] = marks[y - 1]
            continue
        for i in range(1, columns + 1):
            left, above, old = marks[y, i - 1], marks[y - 1, i], before[y - 1, i - 1]
            c = (left != 0) + 2 * (above != 0) + 4 * (marks[y - 1, i - 1] != 0) + 8 * (marks[y - 1, i + 1] != 0)
            if not coder.decide(x.set[int(c + 16 * (old != 0))]):
                continue
            if coder.decide(x.like):
                marks[y, i] = left or above or old or 1
            else:
                marks[y, i] = 1 + sum(coder.plain() << bit for bit in range(7, -1, -1))
    return marks[1:, 1:-1]


def read_mask(payload: bytes, m: VolumeMap, rows: int, columns: int) -> tuple[np.ndarray, np.ndarray]:
    """The marked values, behind a 0, and the marks: slices, rows, columns, channels."""
    reader = ByteReader(payload)
    version = reader.number("B")
    check(version == 1, f"version {version} of Mask")
    n = reader.varint()
    check(1 <= n <= 255, "number of marked values")
    values = reader.unpack(f"{n}Q")
    check(len(set(values)) == n and max(values) < 1 << m.width, "marked values")
    group = reader.varint()
    check(1 <= group <= 128, "slices of a group")
    slices = m.slices * m.volumes
    sizes = [reader.varint() for _ in range(0, slices, group)]
    marks = np.zeros((slices, rows, columns, m.channels), np.int64)
    for first, size in zip(range(0, slices, group), sizes):
        codeword = reader.take(size)
        if size == 0:
            continue
        coder = RangeDecoder(codeword)
        contexts = [Contexts() for _ in range(m.channels)]
        before = np.zeros(marks.shape[1:], np.int64)
        for s in range(first, min(first + group, slices)):
            for channel in range(m.channels):
                marks[s, ..., channel] = slice_of_marks(coder, contexts[channel], before[..., channel])
            before = marks[s]
        check(coder.position - 32 <= 8 * size + 16, "a codeword that ends too early")
    check(marks.max() <= n, "mark")
    reader.last_crc()
    return np.array((0, *values), np.uint64), marks


def decode(data: bytes, options: reference.Options,
           region: tuple[int, int, int, int, int, int] | None = None) -> bytes:
    """The scalars; region: x, y, z and extents of what is wanted of each volume, of the full size."""
    boxes = {b"Volm": b"", b"Mask": b""}
    frames: list[np.ndarray] = []  # bits of scalars: rows, columns, channels
    places: list[int] = []         # of the frames, in the full stream
    found: list[tuple[VolumeMap, reference.Head]] = []
    gops = [0]  # so far

    def use(head: reference.Head, samples: list[np.ndarray]) -> None:
        if not found:
            check(bool(boxes[b"Volm"]), "no volume")
            found.append((read_map(boxes[b"Volm"], head), head))
        first = gops[0] * head.gop_frames  # all GOPs but the last are full
        gops[0] += 1
        halved = min(options.reduce, head.temporal_levels) if head.layout == reference.DYADIC else 0
        places.extend(first + (i << halved) for i in range(len(samples[0])))
        frames.extend(bits_of_numbers(numbers_of_gop(samples, found[0][0]), found[0][0]))

    check(reference.decode_gops(data, options, use, boxes) and bool(found), "no whole volume")
    m, head = found[0]
    slices = sorted(range(len(frames)), key=m.slice_of)
    volume = np.stack([frames[frame] for frame in slices])
    if boxes[b"Mask"]:
        values, marks = read_mask(boxes[b"Mask"], m, head.height, head.width)
        step = 1 << options.reduce
        marks = marks[sorted(m.slice_of(place) for place in places), ::step, ::step]
        volume = np.where(marks > 0, values[marks], volume)
    if region is not None:
        check(options.reduce == 0, "a region of a reduced volume")
        x, y, z, width, height, depth = region
        volume = volume.reshape(m.volumes, m.slices, *volume.shape[1:])
        volume = volume[:, z:z + depth, y:y + height, x:x + width]
    stored = volume.astype(("<u" if not m.big_endian else ">u") + str(BYTES[m.kind_of_scalar]))
    return stored.tobytes()


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Decode a Trivelet stream of a volume to raw scalars.")
    reference.add_arguments(parser, "OUT.raw")
    options = parser.parse_args(arguments)
    try:
        with open(options.input, "rb") as source:
            data = source.read()
        scalars = decode(data, reference.Options(options.layers, options.planes, options.reduce))
        with open(options.output, "wb") as sink:
            sink.write(scalars)
    except FormatError as error:
        print(f"{options.input}: {error}", file=sys.stderr)
        return 4
    except OSError as error:
        print(error, file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
