"""The predictive profile for reference_decoder.py, written from the text of codec/FORMAT.md alone, section "Predictive
profile".

decode_block() turns the codeword of a block into its numbers, an array of frames, rows and columns; with moved it is one of a
stream with that feature, section "Moved frames".

decode_block_ahead() does so with codewords whose contexts are known ahead, section "Known ahead"; decode_block_labels() with
codewords of labels, section "Labels".
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from reference_conventions import BitReader, ByteReader, check
from reference_dense import RangeDecoder, State, adapt

TAPS = [(0, 0, -1), (0, 0, -2), (0, -1, -2), (0, -1, -1), (0, -1, 0), (0, -1, 1), (0, -1, 2), (0, -2, -1), (0, -2, 0),
        (0, -2, 1),
        (1, -1, -1), (1, -1, 0), (1, -1, 1), (1, 0, -1), (1, 0, 0), (1, 0, 1), (1, 1, -1), (1, 1, 0), (1, 1, 1),
        (2, -1, 0), (2, 0, -1), (2, 0, 0), (2, 0, 1), (2, 1, 0),
        (1, -2, 0), (1, 0, -2), (1, 0, 2), (1, 2, 0)]
FIRST_FRAME_TAPS = 10
TAP_SETS = [10, 19, 24, 28]
LEVELS = [0, 1, 3, 6, 10, 15, 22, 32, 45, 64, 89, 124, 171, 236, 325, 447, 614, 843, 1157, 1587, 2176, 2976, 4096, 5600,
          7680, 10528, 14432, 19776, 27104, 37120, 50880]
TOKENS, CONTEXTS = 76, 75
AHEAD_CONTEXTS, AHEAD_STATES = 32, 16
LARGEST_WEIGHT, LARGEST_SUM = 32767, 65535
LARGEST_VECTOR, VECTOR_CONTEXTS = 4095, 4
LOWEST_STATE = 1 << 16


def unzigzag(u: int) -> int:
    return (u + 1) // 2 if u % 2 else -(u // 2)


def read_frequencies(bits: BitReader, symbols: int) -> list[int]:
    """Empty: there are none."""
    if not bits.bits(1):
        return []
    last = bits.bits(7)
    check(last < symbols, "frequencies of too many symbols")
    result = []
    length = 0
    for _ in range(last + 1):
        length += unzigzag(bits.unary(24))
        check(0 <= length <= 12, "frequency out of range")
        result.append(1 << length - 1 | bits.bits(length - 1) if length > 1 else length)
    check(sum(result) == 2048, "frequencies do not add up")
    return result


def read_weights(bits: BitReader, k: int, count: int) -> list[int]:
    weights = [unzigzag(bits.rice(k, 2 * LARGEST_WEIGHT)) for _ in range(count)]
    check(all(abs(w) <= LARGEST_WEIGHT for w in weights) and sum(map(abs, weights)) <= LARGEST_SUM,
          "weights out of range")
    return weights


@dataclass
class Head:
    edge: int
    group: int
    first: list[int]
    classes: list[list[int]]
    class_frequencies: list[list[int]]
    zero: list[int]
    frequencies: list[list[int]]
    first_zero: list[int]  # of frame 0
    first_frequencies: list[list[int]]
    cell: int = 0  # C
    moves: list[bool] = field(default_factory=list)
    vector_frequencies: list[list[int]] = field(default_factory=list)


def read_zeros(bits: BitReader) -> list[int]:
    zero = [bits.bits(17) for _ in range(2)]
    check(max(zero) <= 65536, "frequency of zeros out of range")
    return zero


def read_head(bits: BitReader, frames: int, moved: bool) -> Head:
    taps, edge, group, classes, k = TAP_SETS[bits.bits(2)], bits.bits(4), bits.bits(3), bits.bits(5) + 1, bits.bits(4)
    check(3 <= edge <= 8 and (frames > 1 or classes == 1), "tiles or classes out of range")
    first = read_weights(bits, k, FIRST_FRAME_TAPS)
    weights = [read_weights(bits, k, taps) for _ in range(classes if frames > 1 else 0)]
    class_frequencies = [read_frequencies(bits, classes) for _ in range(classes if classes > 1 else 0)]
    zero = read_zeros(bits)
    frequencies = [read_frequencies(bits, TOKENS) for _ in range(CONTEXTS)]
    head = Head(edge, group, first, weights, class_frequencies, zero, frequencies, zero, frequencies)
    if not moved or frames == 1:
        return head
    if bits.bits(1):
        head.first_zero = read_zeros(bits)
        head.first_frequencies = [read_frequencies(bits, TOKENS) for _ in range(CONTEXTS)]
    if bits.bits(1):
        head.cell = 3 + bits.bits(2)
        head.moves = [False] + [bits.bits(1) == 1 for _ in range(frames - 1)]
        head.vector_frequencies = [read_frequencies(bits, TOKENS) for _ in range(VECTOR_CONTEXTS)]
    return head


class Codeword:
    """What is behind the head: extra bits and the state."""

    def __init__(self, data: bytes) -> None:
        reader = ByteReader(data)
        size = reader.varint()
        check(size + 4 <= len(data) - reader.position, "a codeword ends early")
        self.extra = BitReader(data[reader.position:reader.position + size])
        self.extra_bytes = size
        rest = data[reader.position + size:]
        self.state = int.from_bytes(rest[:4], "little")
        check(self.state >= LOWEST_STATE and len(rest) % 2 == 0, "no state")
        self.words = [int.from_bytes(rest[i:i + 2], "little") for i in range(4, len(rest), 2)][::-1]

    def take(self, frequencies: list[int], n: int) -> int:
        check(frequencies != [], "a symbol without frequencies")
        slot = self.state % (1 << n)
        begin = 0
        for symbol, frequency in enumerate(frequencies):
            if slot < begin + frequency:
                break
            begin += frequency
        self.state = frequency * (self.state >> n) + slot - begin
        if self.state < LOWEST_STATE:
            check(self.words != [], "a codeword ends early")
            self.state = self.state << 16 | self.words.pop()
        return symbol

    def finish(self) -> None:
        check(self.state == LOWEST_STATE and not self.words and self.extra.bytes_used() == self.extra_bytes,
              "a codeword does not end where its block does")


def read_tiles(codeword: Codeword, head: Head, shape: tuple[int, int, int]) -> np.ndarray:
    """The class of every tile, by group of frames, row and column."""
    size = [-(-length // (1 << bits)) for length, bits in zip(shape, (head.group, head.edge, head.edge))]
    in_group = size[1] * size[2]
    classes: list[int] = []
    for i in range(size[0] * in_group):
        if not head.class_frequencies:
            classes.append(0)
            continue
        before = classes[i - in_group] if i >= in_group else classes[i - 1] if i else 0
        classes.append(codeword.take(head.class_frequencies[before], 11))
    return np.array(classes).reshape(size)


def code_of_token(codeword: Codeword, token: int) -> int:
    if token < 24:
        return token
    e = 2 + (token - 24) // 4
    return (4 + (token - 24) % 4 << e) + 8 + codeword.extra.bits(e)


Vector = tuple[int, int]  # x, y


def read_vectors(codeword: Codeword, head: Head, shape: tuple[int, int, int]) -> dict[int, list[list[Vector]]]:
    """The vectors of the frames that move, by row and column of cells."""
    side = 1 << head.cell
    rows, columns = -(-shape[1] // side), -(-shape[2] // side)
    result: dict[int, list[list[Vector]]] = {}
    for z in [z for z, moves in enumerate(head.moves) if moves]:
        field_of_frame: list[list[Vector]] = []
        for r in range(rows):
            row: list[Vector] = []
            field_of_frame.append(row)
            for c in range(columns):
                left = row[c - 1] if c > 0 else None
                above = field_of_frame[r - 1][c] if r > 0 else None
                beside = field_of_frame[r - 1][c + 1] if r > 0 and c + 1 < columns else None
                neighbours = [left or above or (0, 0), above or left or (0, 0), beside or above or left or (0, 0)]
                context = 0 if len(set(neighbours)) == 1 else 2
                vector = []
                for axis in range(2):
                    token = codeword.take(head.vector_frequencies[context + axis], 11)
                    guess = sorted(n[axis] for n in neighbours)[1]
                    vector.append(guess + unzigzag(code_of_token(codeword, token)))
                check(max(map(abs, vector)) <= LARGEST_VECTOR, "a vector out of range")
                row.append((vector[0], vector[1]))
        result[z] = field_of_frame
    return result


class Between:
    """A frame at quarters of samples."""

    def __init__(self, frame: np.ndarray, low: int, high: int) -> None:
        self.frame, self.low, self.high = frame, low, high

    def whole(self, y: int, x: int) -> int:
        rows, columns = self.frame.shape
        return int(self.frame[min(max(y, 0), rows - 1), min(max(x, 0), columns - 1)])

    @staticmethod
    def six(v: list[int]) -> int:
        return v[0] - 5 * v[1] + 20 * v[2] + 20 * v[3] - 5 * v[4] + v[5]

    def limited(self, v: int) -> int:
        return min(max(v, self.low), self.high)

    def half(self, y2: int, x2: int) -> int:
        y, x, around = y2 // 2, x2 // 2, range(-2, 4)
        if y2 % 2 == 0 and x2 % 2 == 0:
            return self.whole(y, x)
        if y2 % 2 == 0:
            return self.limited(self.six([self.whole(y, x + i) for i in around]) + 16 >> 5)
        if x2 % 2 == 0:
            return self.limited(self.six([self.whole(y + i, x) for i in around]) + 16 >> 5)
        sums = [self.six([self.whole(y + j, x + i) for i in around]) for j in around]
        return self.limited(self.six(sums) + 512 >> 10)

    def quarter(self, y4: int, x4: int) -> int:
        if y4 % 2 == 0 and x4 % 2 == 0:
            return self.half(y4 // 2, x4 // 2)
        if y4 % 2 == 0:
            places = [(y4 // 2, (x4 - 1) // 2), (y4 // 2, (x4 + 1) // 2)]
        elif x4 % 2 == 0:
            places = [((y4 - 1) // 2, x4 // 2), ((y4 + 1) // 2, x4 // 2)]
        else:
            even_y, odd_y = sorted([(y4 - 1) // 2, (y4 + 1) // 2], key=lambda y2: y2 % 2)
            even_x, odd_x = sorted([(x4 - 1) // 2, (x4 + 1) // 2], key=lambda x2: x2 % 2)
            places = [(even_y, odd_x), (odd_y, even_x)]
        return sum(self.half(*place) for place in places) + 1 >> 1


def moved_frame(frame: np.ndarray, vectors: list[list[Vector]], cell: int, low: int, high: int) -> np.ndarray:
    between = Between(frame, low, high)
    result = np.zeros(frame.shape, np.int64)
    for y, x in np.ndindex(*frame.shape):
        vx, vy = vectors[y >> cell][x >> cell]
        result[y, x] = between.quarter(4 * y + vy, 4 * x + vx)
    return result


def moved_errors(errors: np.ndarray, vectors: list[list[Vector]], cell: int) -> np.ndarray:
    rows, columns = errors.shape
    result = np.zeros(errors.shape, np.int64)
    for y, x in np.ndindex(rows, columns):
        vx, vy = vectors[y >> cell][x >> cell]
        result[y, x] = errors[min(max(y + (vy + 2 >> 2), 0), rows - 1), min(max(x + (vx + 2 >> 2), 0), columns - 1)]
    return result


class Numbers:
    """The numbers of a block with what stands for those outside it."""

    def __init__(self, shape: tuple[int, int, int]) -> None:
        self.frames, self.rows, self.columns = shape
        self.values = np.zeros(shape, np.int64)
        self.moved: dict[int, np.ndarray] = {}  # what stands before frames that move

    def before(self, z: int) -> int:
        """The frame before; of one that moves the number -z."""
        return -z if z in self.moved else max(z - 1, 0)

    def row(self, z: int, y: int) -> tuple[int, int] | None:
        """What a row stands for; None: zeros."""
        if y >= 0:
            return z, y
        return (self.before(z), 0) if z > 0 else None

    def at(self, where: tuple[int, int] | None, x: int) -> int:
        if where is None:
            return 0
        z, y = where
        if z < 0:
            return int(self.moved[-z][y, min(max(x, 0), self.columns - 1)])
        if x < 0:
            return self.at(self.row(z, y - 1), 0)
        return int(self.values[z, y, min(x, self.columns - 1)])

    def tap(self, z: int, y: int, x: int, tap: tuple[int, int, int]) -> int:
        before, rows, columns = tap
        if before == 0:
            return self.at(self.row(z, y + rows), x + columns)
        frame = self.before(z) if before == 1 else max(z - before, 0)
        return self.at((frame, min(max(y + rows, 0), self.rows - 1)), x + columns)


def level_of(s: int) -> int:
    return max(level for level, begin in enumerate(LEVELS) if begin <= s)


def errors_around(errors: np.ndarray, errors_before: np.ndarray, z: int, y: int, x: int) -> int:
    def a(before: int, rows: int, columns: int) -> int:
        row, column = y + rows, x + columns
        inside = 0 <= row < errors.shape[1] and 0 <= column < errors.shape[2]
        return int(errors_before[row, column] if before else errors[z, row, column]) if inside else 0

    s = 2 * a(0, 0, -1) + a(0, 0, -2) + 2 * a(0, -1, 0) + a(0, -1, -1) + a(0, -1, 1) + a(0, -2, 0)
    if z == 0:
        return 7 * s >> 2
    return s + 2 * a(1, 0, 0) + a(1, 0, -1) + a(1, 0, 1) + a(1, -1, 0) + a(1, 1, 0)


def decode_block(data: bytes, shape: tuple[int, int, int], bits: int, moved: bool) -> np.ndarray:
    head_bits = BitReader(data)
    head = read_head(head_bits, shape[0], moved)
    codeword = Codeword(data[head_bits.bytes_used():])
    tiles = read_tiles(codeword, head, shape)
    vectors = read_vectors(codeword, head, shape)
    low, high = -(1 << bits - 1), (1 << bits - 1) - 1
    numbers = Numbers(shape)
    errors = np.zeros(shape, np.int64)
    errors_before = errors[0]
    for z, y, x in np.ndindex(*shape):
        if y == x == 0:
            errors_before = errors[z - 1]
            if z in vectors:
                numbers.moved[z] = moved_frame(numbers.values[z - 1], vectors[z], head.cell, low, high)
                errors_before = moved_errors(errors[z - 1], vectors[z], head.cell)

        def tap(place: tuple[int, int, int]) -> int:
            return numbers.tap(z, y, x, place)

        left = tap((0, 0, -1))
        flat = all(tap(place) == left for place in [(0, -1, -1), (0, -1, 0), (0, -1, 1)] + [(1, 0, 0)] * (z > 0))
        if flat:
            p = 16 * left
            context = 0 if z > 0 and tap((1, 0, 1)) == left and tap((1, 1, 0)) == left else 1
        else:
            weights = head.classes[tiles[z >> head.group, y >> head.edge, x >> head.edge]] if z > 0 else head.first
            total = sum(w * tap(place) for w, place in zip(weights, TAPS))
            p = min(max(total + 256 >> 9, 16 * low), 16 * high)
        r = p + 8 >> 4
        f = p - 16 * r
        if not flat:
            s = errors_around(errors, errors_before, z, y, x)
            q = level_of(s)
            context = 2 + 4 * q + min(abs(f) >> 1, 3) if q < 14 else 58 + q - 14
        zero, frequencies = (head.first_zero, head.first_frequencies) if z == 0 else (head.zero, head.frequencies)
        if flat and codeword.take([zero[context], 65536 - zero[context]], 16) == 0:
            u = 0
        else:
            u = code_of_token(codeword, codeword.take(frequencies[context], 11))
        d = unzigzag(u)
        v = r + (-d if f < 0 else d)
        check(low <= v <= high, "a number out of range")
        numbers.values[z, y, x] = v
        errors[z, y, x] = min(abs(16 * v - p) >> 2, 4095)
    codeword.finish()
    return numbers.values


class AheadCodeword:
    """What is behind the head of a codeword known ahead."""

    def __init__(self, data: bytes) -> None:
        reader = ByteReader(data)
        self.extra_bytes = reader.varint()
        check(self.extra_bytes + 4 * AHEAD_STATES <= len(data) - reader.position, "a codeword ends early")
        self.extra = BitReader(reader.take(self.extra_bytes))
        self.states = list(reader.unpack(f"{AHEAD_STATES}I"))
        check(min(self.states) >= LOWEST_STATE, "a state is too low")
        rest = data[reader.position:]
        check(len(rest) % 2 == 0, "half a word")
        self.words = [int.from_bytes(rest[i:i + 2], "little") for i in range(0, len(rest), 2)][::-1]

    def take(self, lane: int, frequencies: list[int]) -> int:
        check(frequencies != [], "a symbol without frequencies")
        state = self.states[lane]
        slot = state % 2048
        begin = 0
        for symbol, frequency in enumerate(frequencies):
            if slot < begin + frequency:
                break
            begin += frequency
        state = frequency * (state >> 11) + slot - begin
        if state < LOWEST_STATE:
            check(self.words != [], "a codeword ends early")
            state = state << 16 | self.words.pop()
        self.states[lane] = state
        return symbol

    def finish(self) -> None:
        check(set(self.states) == {LOWEST_STATE} and not self.words and self.extra.bytes_used() == self.extra_bytes,
              "a codeword does not end where its block does")


def decode_block_ahead(data: bytes, shape: tuple[int, int, int], bits: int) -> np.ndarray:
    head = BitReader(data)
    taps, k = TAP_SETS[head.bits(2)], head.bits(4)
    first = read_weights(head, k, FIRST_FRAME_TAPS)
    others = read_weights(head, k, taps) if shape[0] > 1 else []
    frequencies = [read_frequencies(head, TOKENS) for _ in range(AHEAD_CONTEXTS)]
    codeword = AheadCodeword(data[head.bytes_used():])
    low, high = -(1 << bits - 1), (1 << bits - 1) - 1
    numbers = Numbers(shape)
    errors = np.zeros(shape, np.int64)

    def context_of(z: int, y: int, x: int) -> int:
        def tap(place: tuple[int, int, int]) -> int:
            return numbers.tap(z, y, x, place)

        def a(before: int, rows: int, columns: int) -> int:
            row, column = y + rows, x + columns
            inside = 0 <= row < shape[1] and 0 <= column < shape[2]
            return int(errors[z - before, row, column]) if inside else 0

        above = tap((0, -1, 0))
        if all(tap(place) == above for place in [(0, -1, -1), (0, -1, 1)] + [(1, 0, 0)] * (z > 0)):
            return 0 if z > 0 and tap((1, 0, 1)) == above and tap((1, 1, 0)) == above else 1
        s = 2 * a(0, -1, 0) + a(0, -1, -1) + a(0, -1, 1) + a(0, -2, 0)
        if z == 0:
            return 2 + level_of(9 * s >> 2)
        return 2 + level_of(s + 2 * a(1, 0, 0) + a(1, 0, -1) + a(1, 0, 1) + a(1, -1, 0) + a(1, 1, 0))

    for z, y in np.ndindex(*shape[:2]):
        differences = []
        for context, x in [(context_of(z, y, x), x) for x in range(shape[2])]:
            token = codeword.take(x % AHEAD_STATES, frequencies[context])
            if token >= 24:
                e = 2 + (token - 24) // 4
                token = (4 + (token - 24) % 4 << e) + 8 + codeword.extra.bits(e)
            differences.append(unzigzag(token))
        for x, d in enumerate(differences):
            total = sum(w * numbers.tap(z, y, x, place) for w, place in zip(others if z else first, TAPS))
            v = min(max(total + 4096 >> 13, low), high) + d
            check(low <= v <= high, "a number out of range")
            numbers.values[z, y, x] = v
            p = min(max(total + 256 >> 9, 16 * low), 16 * high)
            errors[z, y, x] = min(abs(16 * v - p) >> 2, 4095)
    codeword.finish()
    return numbers.values


LABEL_NEIGHBOURS = [(0, 0, -1), (0, -1, 0), (1, 0, 0), (0, -1, -1), (0, -1, 1), (1, 0, 1), (1, 1, 0),
                    (0, 0, -2), (0, -2, 0), (1, 0, -1), (1, -1, 0), (1, 1, 1), (0, -1, 2), (2, 0, 0),
                    (1, 1, -1), (1, -1, 1)]
LABEL_WORTH = [6, 6, 6, 2, 2, 3, 3, 1, 1, 1, 1, 1, 1, 1, 0, 0]
IN_ROW = (0, 7)


class Labels:
    """What decodes a block of labels."""

    def __init__(self, data: bytes, shape: tuple[int, int, int], bits: int) -> None:
        self.coder = RangeDecoder(data)
        self.bits, self.low = bits, -(1 << bits - 1)
        self.numbers = Numbers(shape)
        self.states: dict[tuple[object, ...], State] = {}

    def state(self, *name: object) -> State:
        return self.states.setdefault(name, [32768, 1])

    def decide_beside(self, first: State, other: State) -> bool:
        trusted = first[1] >= 4
        decision = self.coder.decide(first if trusted else other)
        adapt(other if trusted else first, decision, 126)
        return decision == 1

    def neighbours(self, z: int, y: int, x: int) -> list[int]:
        return [self.numbers.tap(z, y, x, (0, -1, place[2]) if z == 0 and place[0] > 0 else place)
                for place in LABEL_NEIGHBOURS]

    def new_number(self, refused: int) -> int:
        if self.bits == 1:
            return -1 - refused
        n = 1
        for _ in range(self.bits):
            n = 2 * n + self.coder.decide(self.state("Tree", n))
        return n - (1 << self.bits) + self.low

    def number(self, around: list[int]) -> int:
        candidates = sorted(dict.fromkeys(around), key=lambda c: -sum(w for w, v in zip(LABEL_WORTH, around) if v == c))
        p = [sum((v == c) << k for k, v in enumerate(around)) for c in candidates]
        if self.decide_beside(self.state("First", p[0]), self.state("FirstNear", p[0] % 128)):
            return candidates[0]
        for i in range(1, min(len(candidates), 4) if self.bits > 1 else 1):
            if self.decide_beside(self.state("Later", i, p[i] % 128, p[0] % 128),
                                  self.state("LaterNear", i, p[i] % 8, p[0] % 8)):
                return candidates[i]
        return self.new_number(candidates[0])

    def row(self, z: int, y: int) -> None:
        row = self.numbers.values[z, y]
        columns = len(row)
        alike = [len({v for k, v in enumerate(self.neighbours(z, y, x)) if k not in IN_ROW}) == 1 for x in range(columns)]
        x = asked_until = 0
        while x < columns:
            around = self.neighbours(z, y, x)
            if not alike[x] or len(set(around)) > 1:
                row[x] = self.number(around)
                x += 1
                continue
            m = around[0]
            if x >= asked_until:
                e = x + next((i for i, a in enumerate(alike[x:]) if not a), columns - x)
                if self.coder.decide(self.state("Run", min((e - x).bit_length() - 1, 7))):
                    row[x:e] = m
                    x = e
                    continue
                asked_until = e
            if self.coder.decide(self.state("Flat")):
                row[x] = m
            else:
                row[x] = self.new_number(m)
                asked_until = 0
            x += 1


def decode_block_labels(data: bytes, shape: tuple[int, int, int], bits: int) -> np.ndarray:
    labels = Labels(data, shape, bits)
    for z, y in np.ndindex(*shape[:2]):
        labels.row(z, y)
        check(labels.coder.position - 32 <= 8 * len(data) + 16, "a codeword ends early")
    check(labels.coder.position - 32 >= 8 * len(data) - 64, "a codeword goes on behind its block")
    return labels.numbers.values
