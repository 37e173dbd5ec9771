"""Codewords with mixed contexts for reference_decoder.py, written from the text of codec/FORMAT.md alone, section "Mixed"."""

from __future__ import annotations

import numpy as np

from reference_conventions import BitReader, check
from reference_dense import RangeDecoder, State, adapt
from reference_predictive import FIRST_FRAME_TAPS, TAP_SETS, TAPS, Numbers, level_of, read_weights, unzigzag

POINTS = [1, 2, 3, 6, 10, 16, 27, 45, 73, 120, 194, 310, 488, 747, 1101, 1546, 2047, 2549, 2994, 3348, 3607, 3785, 3901,
          3975, 4022, 4050, 4068, 4079, 4085, 4089, 4092, 4093, 4094]
TEXTURE = [(0, 0, -1), (0, 0, -2), (0, -1, -1), (0, -1, 0), (0, -1, 1), (0, -2, 0)]


def squash(x: int) -> int:
    i, w = (x >> 7) + 16, x % 128
    return POINTS[i] * (128 - w) + POINTS[i + 1] * w + 64 >> 7


def limited(x: int, most: int) -> int:
    return min(max(x, -most), most)


def stretches() -> list[int]:
    result = []
    x = -2047
    for e in range(4096):
        while x < 2047 and squash(x) < e:
            x += 1
        result.append(x)
    return result


STRETCH = stretches()


class Mixed:
    """What decodes a block with mixed contexts."""

    def __init__(self, data: bytes, shape: tuple[int, int, int], bits: int) -> None:
        head = BitReader(data)
        taps, k = TAP_SETS[head.bits(2)], head.bits(4)
        self.first = read_weights(head, k, FIRST_FRAME_TAPS)
        self.others = read_weights(head, k, taps) if shape[0] > 1 else []
        self.coded = data[head.bytes_used():]
        self.coder = RangeDecoder(self.coded)
        self.shape, self.bits = shape, bits
        self.low, self.high = -(1 << bits - 1), (1 << bits - 1) - 1
        self.numbers = Numbers(shape)
        self.errors = np.zeros(shape, np.int64)
        self.classes = np.zeros(shape, np.int64)
        self.estimates: dict[tuple[int, int, int], State] = {}
        self.weights: dict[int, list[int]] = {}

    def decide(self, contexts: list[int], node: int, number_of_set: int) -> int:
        states = [self.estimates.setdefault((kind, context, node), [32768, 0]) for kind, context in enumerate(contexts)]
        weights = self.weights.setdefault(number_of_set, [22000] * 6)
        stretched = [STRETCH[state[0] >> 4] for state in states]
        m = squash(limited(sum(w * s for w, s in zip(weights, stretched)) >> 16, 2047))
        decision = self.coder.bit(16 * m + 8)
        e = 6 * (4095 - m) if decision else -6 * m
        weights[:] = [limited(w + (s * e + 8192 >> 14), 131072) for w, s in zip(weights, stretched)]
        for state in states:
            adapt(state, decision, 255)
        return decision

    def code(self, contexts: list[int]) -> int:
        c = 0
        while c <= self.bits and self.decide(contexts, c, c):
            c += 1
        if c < 2:
            return c
        n = 1
        for i in range(c - 1):
            n = 2 * n + (self.decide(contexts, 20 + 7 * c + n - 1, 18 + i) if i < 3 else self.coder.plain())
        return n

    def inside(self, values: np.ndarray, z: int, y: int, x: int) -> int:
        return int(values[z, y, x]) if z >= 0 and 0 <= y < self.shape[1] and 0 <= x < self.shape[2] else 0

    def contexts(self, z: int, y: int, x: int, p: int, r: int, f: int) -> list[int]:
        def a(before: int, rows: int, columns: int) -> int:
            return self.inside(self.errors, z - before, y + rows, x + columns)

        def t(before: int, rows: int, columns: int) -> int:
            return min(self.inside(self.classes, z - before, y + rows, x + columns), 15)

        beside = 2 * a(0, 0, -1) + a(0, 0, -2)
        s = beside + 2 * a(0, -1, 0) + a(0, -1, -1) + a(0, -1, 1) + a(0, -2, 0)
        if z == 0:
            v = 2 * a(0, -1, 0) + a(0, -1, 1)
            s = 7 * s >> 2
        else:
            v = 2 * a(1, 0, 0) + a(1, 0, -1) + a(1, 0, 1) + a(1, -1, 0) + a(1, 1, 0)
            s += v
        q = level_of(s)
        fraction = min(abs(f) >> 1, 3)
        g = sum((16 * self.numbers.tap(z, y, x, place) > p) << i for i, place in enumerate(TEXTURE))
        return [4 * q + fraction,
                4 * min(r - self.low, 255) + min(q // 4, 3),
                256 * t(0, 0, -1) + 16 * t(0, -1, 0) + t(1, 0, 0),
                8 * level_of(v) + level_of(beside) // 4,
                fraction,
                q // 4 + 8 * g]

    def sample(self, z: int, y: int, x: int) -> None:
        total = sum(w * self.numbers.tap(z, y, x, place) for w, place in zip(self.others if z else self.first, TAPS))
        p = min(max(total + 256 >> 9, 16 * self.low), 16 * self.high)
        r = p + 8 >> 4
        f = p - 16 * r
        u = self.code(self.contexts(z, y, x, p, r, f))
        v = r - unzigzag(u) if f < 0 else r + unzigzag(u)
        check(self.low <= v <= self.high, "a number out of range")
        self.numbers.values[z, y, x] = v
        self.errors[z, y, x] = min(abs(16 * v - p) >> 2, 4095)
        self.classes[z, y, x] = u.bit_length()


def decode_block_mixed(data: bytes, shape: tuple[int, int, int], bits: int) -> np.ndarray:
    mixed = Mixed(data, shape, bits)
    size = 8 * len(mixed.coded)
    for z, y in np.ndindex(*shape[:2]):
        for x in range(shape[2]):
            mixed.sample(z, y, x)
        check(mixed.coder.position - 32 <= size + 16, "a codeword ends early")
    check(mixed.coder.position - 32 >= size - 64, "a codeword goes on behind its block")
    return mixed.numbers.values
