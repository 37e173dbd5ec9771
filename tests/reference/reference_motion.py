"""Motion for reference_decoder.py, written from the text of codec/FORMAT.md alone, section "Motion"."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from reference_conventions import ByteReader, check
from reference_dense import RangeDecoder, State

# ----------------------------------------------------------------------------------------------------------------------
# Frames
# ----------------------------------------------------------------------------------------------------------------------

PAST, OTHER, BOTH, PLAIN = range(4)  # modes
Vector = tuple[int, int]             # x, y in quarters of a sample
LONGEST = 8191


class Motion(NamedTuple):
    """What a cell has."""
    mode: int
    past: Vector = (0, 0)
    other: Vector = (0, 0)
    numbers: tuple[int, ...] = ()  # of a plain cell, by component

    def used(self) -> Motion:
        """Only what it predicts with."""
        return Motion(self.mode, self.past if self.mode in (PAST, BOTH) else (0, 0),
                      self.other if self.mode in (OTHER, BOTH) else (0, 0), self.numbers)


KEY_FIRST, KEY_LAST, KEY_OPEN = range(3)  # where the key frame of a GOP stands


def places_of(frames: int, key: int) -> int:
    """N, of a GOP of so many frames."""
    return frames if key == KEY_FIRST else frames + 1


@dataclass
class HighFrame:
    """A high frame of a level with its motion, by cell (row, column). Frames are known by their places."""
    t: int
    s: int             # of its level
    past: int
    other: int | None  # the other reference
    cells: dict[tuple[int, int], Motion] = field(default_factory=dict)
    sides: dict[tuple[int, int], int] = field(default_factory=dict)  # of the block that a cell belongs to, in cells

    @property
    def older(self) -> bool:
        return self.other is not None and abs(self.other - self.t) > self.s


def high_frames(level: int, frames: int, key: int = KEY_FIRST) -> list[HighFrame]:
    """Those of a level, of a GOP of so many frames."""
    s = 1 << level - 1
    places = range(1 if key == KEY_LAST else 0, places_of(frames, key))
    result = []
    for t in range(s, places.stop, 2 * s):
        if t - s not in places:
            past, other = t + s, t + 3 * s
        elif t + s in places:
            past, other = t - s, t + s
        else:
            past, other = t - s, t - 3 * s
        result.append(HighFrame(t, s, past, other if other in places else None))
    return result


def predicted_keys(levels: int, frames: int, key: int) -> list[HighFrame]:
    """Those of level levels + 1, of a GOP whose keys are predicted."""
    s = 1 << levels
    places = range(1 if key == KEY_LAST else 0, places_of(frames, key))
    return [HighFrame(t, s, t - s, None) for t in range(s, places.stop, s) if t - s in places]


# ----------------------------------------------------------------------------------------------------------------------
# Sections
# ----------------------------------------------------------------------------------------------------------------------

CELL = 8     # samples along a side
REGION = 32  # cells along a side
SQUARE = 8   # cells along a side of a tree
START_SEEN, SEEN_LIMIT = 6, 40
MOST_GUESSES = 6


def states(*numbers: int) -> list[State]:
    return [[256 * number, START_SEEN] for number in numbers]


class Contexts:
    """The states of a region."""

    def __init__(self) -> None:
        self.split = [states(46, 129, 198), states(73, 166, 223), states(123, 212, 228)]
        self.merge = states(131, 154, 193)
        self.guess = states(122, 87, 108, 86, 75)
        self.plain, self.both, self.other = states(27, 110, 97)
        self.zero = states(88, 88)
        self.prefix = [states(160, 148, 146, 158, 161, 161, 149, 79, 23, 20, 64, 64, 64, 64, 64) for _ in range(2)]
        self.second = [states(128, 107, 109, 105, 102, 101, 115, 120, 55, 64, 110, 128, 128, 128, 128, 128)
                       for _ in range(2)]


def limit(x: int, y: int) -> Vector:
    return min(max(x, -LONGEST), LONGEST), min(max(y, -LONGEST), LONGEST)


def toward_zero(a: int, b: int) -> int:
    return a // b if a >= 0 else -(-a // b)


def complete(motion: Motion, older: bool) -> Motion:
    """Set the vector that is not used."""
    mode, past, other, _ = motion
    if mode == PAST:
        factor = 3 if older else -1
        return motion._replace(other=limit(factor * past[0], factor * past[1]))
    if mode == OTHER:
        return motion._replace(past=limit(*(toward_zero(v, 3) if older else -v for v in other)))
    return motion


def read_level(section: bytes, result: list[HighFrame], size: tuple[int, int], components: int,
               coarser: list[HighFrame]) -> list[HighFrame]:
    """Decode a section, of these high frames. size: rows and columns of cells; coarser: the high frames of the level
    above."""
    rows, columns = size
    corners = [(y, x) for y in range(0, rows, REGION) for x in range(0, columns, REGION)]
    if not result:
        check(not section, "a section of motion for a level without frames")
        return result
    reader = ByteReader(section)
    sizes = [reader.varint() for _ in corners]
    check(reader.position + sum(sizes) == len(section), "sizes of regions and section do not agree")
    parents = {frame.t: frame for frame in coarser}
    for corner, length in zip(corners, sizes):
        region = Region(reader.take(length), corner, size, components)
        for frame in result:
            region.decode(frame, parents)
    return result


class Region:
    """The decoder of a region's codeword."""

    def __init__(self, codeword: bytes, corner: tuple[int, int], size: tuple[int, int], components: int) -> None:
        self.top, self.left = corner
        self.bottom, self.right = (min(begin + REGION, end) for begin, end in zip(corner, size))
        self.components = components
        self.coder = RangeDecoder(codeword)
        self.contexts = Contexts()

    def decode(self, frame: HighFrame, parents: dict[int, HighFrame]) -> None:
        """Read the motion of a frame. parents: the high frames of the level above."""
        self.frame = frame
        self.parents = parents
        for y in range(self.top, self.bottom, SQUARE):
            for x in range(self.left, self.right, SQUARE):
                self.tree(y, x, 3)

    def decide(self, state: State) -> int:
        return self.coder.decide(state, SEEN_LIMIT)

    def plain_bits(self, count: int) -> int:
        """Highest first."""
        value = 0
        for _ in range(count):
            value = 2 * value + self.coder.plain()
        return value

    def cell(self, y: int, x: int) -> Motion | None:
        """The motion of a cell, if it is there."""
        inside = self.top <= y < self.bottom and self.left <= x < self.right
        return self.frame.cells.get((y, x)) if inside else None

    def tree(self, y: int, x: int, k: int) -> None:
        if y >= self.bottom or x >= self.right:
            return
        n = 1 << k
        split = k > 0
        if k > 0 and y + n <= self.bottom and x + n <= self.right:
            smaller = sum(self.cell(*where) is not None and self.frame.sides[where] < n
                          for where in ((y - 1, x), (y, x - 1)))
            split = bool(self.decide(self.contexts.split[k - 1][smaller]))
        if not split:
            motion = self.block(y, x, k)
            for where in ((y + j, x + i) for j in range(n) for i in range(n)):
                self.frame.cells[where] = motion
                self.frame.sides[where] = n
            return
        half = n >> 1
        for j in (0, half):
            for i in (0, half):
                self.tree(y + j, x + i, k - 1)

    def block(self, y: int, x: int, k: int) -> Motion:
        contexts, n = self.contexts, 1 << k
        if self.decide(contexts.merge[min(k, 2)]):
            guesses = self.guesses(y, x, n)
            i = 0
            while i < len(guesses) - 1 and self.decide(contexts.guess[i]):
                i += 1
            return guesses[i]
        if self.decide(contexts.plain):
            return Motion(PLAIN, numbers=tuple(self.plain_bits(6) - 32 for _ in range(self.components)))
        mode = PAST
        if self.frame.other is not None:
            mode = BOTH if self.decide(contexts.both) else OTHER if self.decide(contexts.other) else PAST
        vectors = {}
        for name in ("past", "other"):
            if mode == BOTH or (mode == PAST) == (name == "past"):
                differences = [self.difference(axis) for axis in range(2)]
                vectors[name] = tuple(d + e for d, e in zip(differences, self.expected(name, y, x, n)))
                check(max(map(abs, vectors[name])) <= LONGEST, f"vector {vectors[name]}")
        return complete(Motion(mode, **vectors), self.frame.older)

    def difference(self, axis: int) -> int:
        contexts = self.contexts
        if self.decide(contexts.zero[axis]):
            return 0
        m = 0
        while m < 15 and self.decide(contexts.prefix[axis][m]):
            m += 1
        magnitude = 1
        if m > 0:
            magnitude = 2 + self.decide(contexts.second[axis][m])
            magnitude = (magnitude << m - 1) + self.plain_bits(m - 1)
        return -magnitude if self.coder.plain() else magnitude

    def parent_vectors(self, y: int, x: int) -> tuple[Vector, Vector] | None:
        """Past and other vector, made from the motion of the level above."""
        t, s = self.frame.t, self.frame.s
        after, before = self.parents.get(t + s), self.parents.get(t - s)
        parent = after if after is not None else before
        beyond = t - s if after is not None else t + s
        if parent is None or beyond not in (parent.past, parent.other):
            return None
        motion = parent.cells[y, x]
        if motion.mode == PLAIN:
            return None
        vector = motion.past if parent.past == beyond else motion.other
        half = limit(*(toward_zero(v, 2) for v in vector))
        back = limit(-half[0], -half[1])
        return (half, back) if after is not None else (back, half)

    def guesses(self, y: int, x: int, n: int) -> list[Motion]:
        candidates = [self.cell(y + n - 1, x - 1), self.cell(y - 1, x + n - 1), self.cell(y - 1, x + n),
                      self.cell(y + n, x - 1), self.cell(y - 1, x - 1)]
        parents = self.parent_vectors(y + n // 2, x + n // 2)
        if parents is not None:
            candidates.append(Motion(BOTH, *parents))
        candidates.append(Motion(BOTH))
        result: list[Motion] = []
        for motion in candidates:
            if motion is None or motion.mode == PLAIN:
                continue
            if self.frame.other is None:
                motion = Motion(PAST, motion.past)
            if all(motion.used() != before.used() for before in result):
                result.append(complete(motion, self.frame.older))
        return result[:MOST_GUESSES]

    def expected(self, name: str, y: int, x: int, n: int) -> Vector:
        """The vector that is expected for a reference, "past" or "other"."""
        around = [self.cell(y, x - 1), self.cell(y - 1, x), self.cell(y - 1, x + n), self.cell(y - 1, x - 1)]
        vectors = [getattr(motion, name) for motion in around if motion is not None and motion.mode != PLAIN]
        if len(vectors) >= 3:
            return tuple(sorted(vector[axis] for vector in vectors[:3])[1] for axis in range(2))
        if vectors:
            return vectors[0]
        parents = self.parent_vectors(y, x)
        return (0, 0) if parents is None else parents[name == "other"]


# ----------------------------------------------------------------------------------------------------------------------
# Integers
# ----------------------------------------------------------------------------------------------------------------------

LOSSY_PLACES = 4                # F in lossy streams
LARGEST_COEFFICIENT = (1 << 22) - 1


def to_integers(frames: np.ndarray, factor: np.float32) -> np.ndarray:
    """Lossy frames after the inverse transform in space."""
    scaled = frames * (np.float32(1 << LOSSY_PLACES) * factor)
    return np.rint(np.clip(scaled, -LARGEST_COEFFICIENT, LARGEST_COEFFICIENT)).astype(np.int32)


def to_samples(frames: np.ndarray) -> np.ndarray:
    """Lossy frames after the inverse transform along motion."""
    return (frames + (1 << LOSSY_PLACES - 1)) >> LOSSY_PLACES


# ----------------------------------------------------------------------------------------------------------------------
# Prediction
# ----------------------------------------------------------------------------------------------------------------------

TAPS = [(0, 0, 0, 64, 0, 0, 0, 0), (0, 2, -6, 62, 8, -3, 1, 0), (-1, 4, -10, 58, 17, -5, 1, 0),
        (-1, 4, -11, 49, 29, -8, 3, -1), (-1, 4, -11, 40, 40, -11, 4, -1)]
TAPS += [TAPS[8 - f][::-1] for f in (5, 6, 7)]

WINDOWS = {1: (16,), 2: (2, 14), 4: (1, 5, 11, 15), 8: (0, 1, 4, 6, 10, 12, 15, 16)}  # w(r), by samples of a cell


@dataclass
class Plane:
    """A component as motion sees it."""
    index: int               # of the component
    scale: tuple[int, int]   # (sx, sy)
    size: tuple[int, int]    # rows, columns
    cells: tuple[int, int]   # rows and columns of cells
    bits: int
    places: int              # F


def scaled(v: np.ndarray, s: int) -> np.ndarray:
    """Components of vectors in eighths of a sample of an axis of scale s."""
    return 2 * v if s == 0 else v if s == 1 else v + (1 << s - 2) >> s - 1


def cell_numbers(places: np.ndarray, s: int, count: int) -> np.ndarray:
    """The cells of places along an axis of scale s."""
    return np.clip(places if s <= 3 else places << s - 3, 0, count - 1)


class Reference:
    """A reference frame, looked up between its samples. What is further outside than MARGIN is all the same."""
    MARGIN = 8

    def __init__(self, frame: np.ndarray, places: int) -> None:
        self.size = frame.shape
        self.places = places
        self.padded = np.pad(frame, self.MARGIN + 4, mode="edge")
        self.rows: dict[int, np.ndarray] = {}                    # h, by fx
        self.tables: dict[tuple[int, int], np.ndarray] = {}      # P, by fx and fy

    def h(self, fx: int) -> np.ndarray:
        if fx not in self.rows:
            columns = self.size[1] + 2 * self.MARGIN
            row = sum(np.int32(tap) * self.padded[:, 1 + i:1 + i + columns] for i, tap in enumerate(TAPS[fx]) if tap)
            self.rows[fx] = (row * np.int32(1 << 4 - self.places) + np.int32(32)) >> 6
        return self.rows[fx]

    def table(self, fx: int, fy: int) -> np.ndarray:
        if (fx, fy) not in self.tables:
            h, rows = self.h(fx), self.size[0] + 2 * self.MARGIN
            if fy == 0:
                self.tables[fx, fy] = h[4:4 + rows]
            else:
                total = sum(np.int32(tap) * h[1 + i:1 + i + rows] for i, tap in enumerate(TAPS[fy]) if tap)
                self.tables[fx, fy] = (total + np.int32(32)) >> 6
        return self.tables[fx, fy]

    def look_up(self, ex: np.ndarray, ey: np.ndarray) -> np.ndarray:
        """P for the vectors of all samples."""
        rows, columns = self.size
        margin = self.MARGIN
        y = np.clip(np.arange(rows)[:, None] + (ey >> 3), -margin, rows + margin - 1) + margin
        x = np.clip(np.arange(columns) + (ex >> 3), -margin, columns + margin - 1) + margin
        phases = (ey & 7) * 8 + (ex & 7)
        result = np.empty(self.size, np.int32)
        for phase in np.unique(phases):
            chosen = phases == phase
            result[chosen] = self.table(phase & 7, phase >> 3)[y[chosen], x[chosen]]
        return result


class Field:
    """The motion of a high frame in arrays, zeros where something is not used."""

    def __init__(self, frame: HighFrame, plane: Plane) -> None:
        rows, columns = plane.cells
        cells = [frame.cells[y, x].used() for y in range(rows) for x in range(columns)]
        self.mode = np.array([motion.mode for motion in cells], np.int32).reshape(rows, columns)
        number = [motion.numbers[plane.index] if motion.mode == PLAIN else 0 for motion in cells]
        self.number = np.array(number, np.int32).reshape(rows, columns)
        vectors = np.array([[motion.past, motion.other] for motion in cells], np.int32).reshape(rows, columns, 2, 2)
        self.vectors = [[scaled(vectors[:, :, reference, axis], plane.scale[axis]) for axis in range(2)]
                        for reference in range(2)]  # past and other; x and y, in eighths


def predict(motion: Field, plane: Plane, past: Reference, other: Reference | None) -> np.ndarray:
    """q for all samples of a high frame."""
    cells, weights = [], []  # by axis, y first: of cell b - 1 and of cell b
    for axis in range(2):
        s, count = plane.scale[1 - axis], plane.cells[axis]
        n = max(1, CELL >> s)
        places = np.arange(plane.size[axis]) + n // 2
        b, w = places // n, np.array(WINDOWS[n], np.int32)[places % n]
        cells.append((cell_numbers(b - 1, s, count), cell_numbers(b, s, count)))
        weights.append((16 - w, w))
    total = np.zeros(plane.size, np.int32)
    first: list[np.ndarray] = []
    same = np.ones(plane.size, bool)
    for j in range(2):
        for i in range(2):
            corner = np.ix_(cells[0][j], cells[1][i])
            mode, number = motion.mode[corner], motion.number[corner]
            (past_x, past_y), (other_x, other_y) = ([v[corner] for v in vectors] for vectors in motion.vectors)
            p = past.look_up(past_x, past_y)
            if other is not None:
                p_other = other.look_up(other_x, other_y)
                p = np.where(mode == OTHER, p_other, np.where(mode == BOTH, (p + p_other + np.int32(1)) >> 1, p))
            constant = number << plane.bits - 2 if plane.bits > 1 else number >> 1
            p = np.where(mode == PLAIN, constant, p)
            total += weights[0][j][:, None] * weights[1][i] * p
            arrays = [mode, number, past_x, past_y, other_x, other_y]
            if not first:
                first, p_first = arrays, p
            for a, b in zip(first, arrays):
                same &= a == b
    q = np.where(same, p_first, (total + np.int32(128)) >> 8)
    return q >> LOSSY_PLACES - plane.places


# ----------------------------------------------------------------------------------------------------------------------
# Update
# ----------------------------------------------------------------------------------------------------------------------

LARGEST_SUM = 205


def spread(high: np.ndarray, motion: Field, plane: Plane, is_past: bool, a: np.ndarray, s: np.ndarray) -> None:
    """Add the samples of a high frame, times their weights, to the places of a low frame that predicted them."""
    rows, columns = (cell_numbers(np.arange(size) // max(1, CELL >> scale), scale, count)
                     for size, scale, count in zip(plane.size, plane.scale[::-1], plane.cells))
    corner = np.ix_(rows, columns)
    mode = motion.mode[corner]
    ex, ey = (v[corner] for v in motion.vectors[0 if is_past else 1])
    used = (mode == BOTH) | (mode == (PAST if is_past else OTHER))
    share = np.where(mode == BOTH, 1, 2)
    y = np.arange(plane.size[0])[:, None] + (ey >> 3)
    x = np.arange(plane.size[1]) + (ex >> 3)
    for j in range(2):
        for i in range(2):
            wx, wy = (ex & 7 if i else 8 - (ex & 7)), (ey & 7 if j else 8 - (ey & 7))
            inside = used & (y + j >= 0) & (y + j < plane.size[0]) & (x + i >= 0) & (x + i < plane.size[1])
            weight = (share * wx * wy)[inside].astype(np.int32)
            where = (y + j)[inside], (x + i)[inside]
            np.add.at(a, where, weight * high[inside])
            np.add.at(s, where, weight)


def update(a: np.ndarray, s: np.ndarray, plane: Plane) -> np.ndarray:
    """u for all samples of a low frame."""
    factor = LARGEST_SUM * 32768 // np.maximum(s, 1).astype(np.int64)
    a = np.where(s > LARGEST_SUM, (a * factor) >> 15, a).astype(np.int32)
    shift = plane.places + plane.bits - 8
    clip = 12 << shift if shift >= 0 else max(1, 12 >> -shift)
    return np.clip((a + np.int32(128)) >> 8, -clip, clip)


Keys = dict[int, np.ndarray]  # key(l) of a component, by level, and its low key
MOST_LEVELS = 8
LOW_KEY = 0


def inverse_motion(frames: dict[int, np.ndarray], levels: list[list[HighFrame]], plane: Plane, coarsest: int,
                   key: int = KEY_FIRST, before: Keys | None = None, predicted: list[HighFrame] | None = None) -> Keys:
    """Undo the transform along motion, in place. frames: by place; levels: high frames, from level `coarsest` on down;
    before: of an open GOP, what this returned for the GOP before; predicted: keys that are."""
    keys: Keys = {}
    for frame in predicted or []:
        past = before[LOW_KEY] if key == KEY_OPEN and frame.past == 0 else frames[frame.past]
        frames[frame.t] += predict(Field(frame, plane), plane, Reference(past, plane.places), None)
    if frames:
        keys[LOW_KEY] = frames[max(frames)].copy()
        keys |= {level: frames[max(frames)].copy() for level in range(coarsest + 1, MOST_LEVELS + 1)}
    for number, highs in enumerate(levels):
        level = coarsest - number
        fields = [Field(frame, plane) for frame in highs]
        low_frames = {frame.past for frame in highs} | {frame.other for frame in highs if frame.other is not None}
        for t in sorted(low_frames - ({0} if key != KEY_FIRST else set())):
            a, s = np.zeros(plane.size, np.int32), np.zeros(plane.size, np.int32)
            for frame, motion in zip(highs, fields):
                if frame.past == t or (frame.other == t and not frame.older):
                    spread(frames[frame.t], motion, plane, frame.past == t, a, s)
            frames[t] -= update(a, s, plane)
        if frames:
            keys[level] = frames[max(frames)].copy()
        if key == KEY_OPEN:
            frames[0] = before[level]
        references = {}
        for frame, motion in zip(highs, fields):
            for t in (frame.past, frame.other):
                if t is not None and t not in references:
                    references[t] = Reference(frames[t], plane.places)
            other = None if frame.other is None else references[frame.other]
            frames[frame.t] += predict(motion, plane, references[frame.past], other)
    return keys
