"""The dense profile for reference_decoder.py, written from the text of codec/FORMAT.md alone, section "Dense profile".

The only other source is codec/entropy/dense/dense_tables.h, the start states that the text refers to.
"""

from __future__ import annotations

from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING

from reference_conventions import crc32c

if TYPE_CHECKING:
    from reference_decoder import Group, Segment

# ----------------------------------------------------------------------------------------------------------------------
# Range coder and states
# ----------------------------------------------------------------------------------------------------------------------

State = list[int]  # one, seen


def probability(state: State) -> int:
    return min(max(state[0], 24), 65512)


def adapt(state: State, decision: int, seen_limit: int) -> None:
    one, seen = state
    state[0] = one + (((65535 if decision else 0) - one) * (131072 // (2 * seen + 3)) >> 16)
    state[1] = min(seen + 1, seen_limit)


class RangeDecoder:
    """Decisions of a codeword; behind its bytes are zeros."""

    def __init__(self, codeword: bytes) -> None:
        self.codeword = codeword
        self.position = 32  # of the next bit of V
        self.range = (1 << 32) - 1
        self.window = int.from_bytes(codeword[:4].ljust(4, b"\0"), "big")

    def decide(self, state: State, seen_limit: int = 126) -> int:
        decision = self.bit(probability(state))
        adapt(state, decision, seen_limit)
        return decision

    def plain(self) -> int:
        """A decision as probable as not."""
        return self.bit(1 << 15)

    def bit(self, p: int) -> int:
        split = self.range * p >> 16
        decision = int(self.window < split)
        if decision:
            self.range = split
        else:
            self.window -= split
            self.range -= split
        while self.range < 1 << 31:
            self.range *= 2
            byte = self.position >> 3
            following = self.codeword[byte] >> (7 - (self.position & 7)) & 1 if byte < len(self.codeword) else 0
            self.window = 2 * self.window + following
            self.position += 1
        return decision


SIZES = {"Significance": 900, "Refinement": 45, "Sign": 14, "Any": 80, "Child": 300, "Root": 8}
START_ONE = (96, 150, 236, 369, 576, 899, 1399, 2168, 3338, 5088, 7642, 11240, 16062, 22110, 29097,
             36439, 43426, 49474, 54296, 57894, 60448, 62198, 63368, 64137, 64637, 64960, 65167, 65300, 65386, 65440)
START_SEEN = (2, 10, 50)
DIGITS = [chr(code) for code in range(ord("!"), ord("~") + 1) if chr(code) not in '"?\\']


TABLE_CRCS = (0x54A8FB6C, 0x68C5C1C5, 0x73B79484, 0x6FEDBA43)


def read_tables() -> list[dict[tuple[int, int], str]]:
    """The four sets of tables, each by class (r, c)."""
    path = Path(__file__).resolve().parents[2] / "codec/entropy/dense/dense_tables.h"
    sets, text = [], ""
    for line in path.read_text(encoding="ascii").splitlines():
        if line == ",":
            orientations = (1, 2, 3, 5, 6, 7) if len(sets) < 2 else range(1, 8)
            classes = [(r, c) for r in range(3) for c in orientations]
            classes += [(3, c) for c in ((0, 4) if len(sets) < 2 else (0,))]
            size = sum(SIZES.values())
            assert len(text) == size * len(classes) and crc32c(text.encode("ascii")) == TABLE_CRCS[len(sets)]
            sets.append({name: text[i * size:(i + 1) * size] for i, name in enumerate(classes)})
            text = ""
        elif line.startswith('"'):
            assert line[-1] == '"'
            text += line[1:-1]
    assert len(sets) == 4 and not text
    return sets


TABLES: list[dict[tuple[int, int], str]] = []


class States(dict[int, State]):
    """The states of a kind of contexts by number, made when they are first asked for."""

    def __init__(self, table: str) -> None:
        super().__init__()
        self.table = table

    def __missing__(self, number: int) -> State:
        digit = DIGITS.index(self.table[number])
        state = self[number] = [START_ONE[digit // 3], START_SEEN[digit % 3]]
        return state


class Contexts:
    """The states of an orientation of a segment."""

    def __init__(self, table_set: int, name: tuple[int, int]) -> None:
        if not TABLES:
            TABLES.extend(read_tables())
        table, ends = TABLES[table_set][name], list(accumulate(SIZES.values()))
        self.significance, self.refinement, self.sign, self.any, self.child, self.root = (
            States(table[begin:end]) for begin, end in zip([0, *ends], ends))


# ----------------------------------------------------------------------------------------------------------------------
# What is known of a subband
# ----------------------------------------------------------------------------------------------------------------------

class Known:
    """K of the coefficients of an orientation of a segment, with a border of zeros, and their signs as +1, -1 or 0.

    Coefficients are named by their place in these arrays; left, above and before are that many places away.
    """

    LEFT = 1

    def __init__(self, groups: list[Group]) -> None:
        places = [place for group in groups for place in group.places]
        corner = [min((where[axis] for where in places), default=0) - 1 for axis in range(3)]
        size = [max((where[axis] for where in places), default=0) + 2 - corner[axis] for axis in range(3)]
        self.above = size[2]
        self.before = size[2] * size[1]
        self.magnitudes = [0] * (size[0] * self.before)
        self.signs = [0] * (size[0] * self.before)
        for group in groups:
            group.cells = [sum((n - first) * step for n, first, step
                               in zip(where, corner, (self.before, self.above, self.LEFT)))
                           for where in group.places]

    def cross(self, values: list[int], cell: int) -> tuple[int, int, int]:
        """Sums of the neighbours of a cell: left and right, above and below, frame before and after."""
        return (values[cell - 1] + values[cell + 1], values[cell - self.above] + values[cell + self.above],
                values[cell - self.before] + values[cell + self.before])

    def diagonal(self, cell: int) -> int:
        k = self.magnitudes
        return (k[cell - self.above - 1] + k[cell - self.above + 1] + k[cell + self.above - 1]
                + k[cell + self.above + 1])


def prepare(segment: Segment) -> None:
    """Put groups in the order of decisions, find their neighbours, and begin with nothing known."""
    segment.ordered, segment.known = [], []
    for groups in segment.groups:
        segment.ordered.append(sorted(groups, key=lambda group: group.where))
        places = {group.where: group for group in groups}
        for group in groups:
            t, y, x = group.where
            around = [places.get(where) for where in ((t, y, x - 1), (t, y, x + 1), (t, y - 1, x), (t, y + 1, x))]
            group.around = [neighbour for neighbour in around if neighbour is not None]
        segment.known.append(Known(groups))


# ----------------------------------------------------------------------------------------------------------------------
# Order of decisions
# ----------------------------------------------------------------------------------------------------------------------

def stage(known: int, p: int) -> int:
    return min(known >> p, 2)


def octave(n: int) -> int:
    return min(n.bit_length(), 4)


ENERGY_BOUNDS = (1, 2, 3, 4, 5, 6, 8, 10, 13, 17, 25, 40, 64, 128)
ENERGY = [sum(n >= bound for bound in ENERGY_BOUNDS) for n in range(129)]


def energy(n: int) -> int:
    return ENERGY[min(n, 128)]


def near(group: Group, p: int) -> int:
    return sum(neighbour.active(p) for neighbour in group.around)


class PassDecoder:
    """The passes of a segment, from the first plane down."""

    def __init__(self, segment: Segment, table_set: int, orientations: range, later_band: bool) -> None:
        self.segment = segment
        self.orientations = orientations
        r = 3 if segment.k == 0 else min(segment.levels - segment.k, 2)
        self.contexts = [Contexts(table_set, (r, o + (4 if later_band else 0))) for o in orientations]
        self.coder = RangeDecoder(bytes(segment.codeword))
        self.weights = {1: (2, 3), 2: (3, 2)}
        prepare(segment)

    def decode(self, cut: int) -> None:
        """All passes above a cut."""
        for number in range(2 * self.segment.top - 1, cut - 1, -1):
            p = number >> 1
            if number & 1:
                if self.segment.k == 0:
                    self.root_sets(p)
                elif self.segment.k == 1:
                    self.first_sets(p)
                else:
                    self.further_sets(p)
                for index in range(len(self.orientations)):
                    self.significance(index, p)
            else:
                for index in range(len(self.orientations)):
                    self.refinement(index, p)

    # Step 1, sets

    def root_sets(self, p: int) -> None:
        for group in self.segment.ordered[0]:
            if group.activated >= 0:
                continue
            parent = group.temporal_parent
            if self.segment.temporal_parent is None:
                group.activated = p  # the first plane
            elif parent is not None and parent.active(p):
                context = min(near(group, p), 3) * 2 + (parent.activated == p)
                if self.coder.decide(self.contexts[0].root[context]):
                    group.activated = p

    def first_sets(self, p: int) -> None:
        for index, groups in enumerate(self.segment.ordered):
            for group in groups:
                root = group.parent
                if group.activated >= 0 or not root.active(p):
                    continue
                m = max(stage(magnitude, p) for magnitude in root.magnitudes)
                siblings = sum(child is not None and child.active(p) for child in root.children[:index])
                context = (((m * 2 + (root.activated == p)) * 5 + near(group, p)) * 5 + min(siblings, 4)) * 2
                if self.coder.decide(self.contexts[index].child[context]):
                    group.activated = p

    def further_sets(self, p: int) -> None:
        parent = self.segment.spatial_parent
        for index, groups in enumerate(parent.ordered):
            for group in groups:
                children = [child for child in group.children if child is not None]
                if group.active(p) and any(not child.active(p) for child in children):
                    self.children(group, children, index, p)

    def children(self, group: Group, children: list[Group], index: int, p: int) -> None:
        """The child groups of one group of level k - 1 >= 1."""
        contexts, known = self.contexts[index], self.segment.spatial_parent.known[index]
        new = group.activated == p
        stages = [stage(magnitude, p) for magnitude in group.magnitudes]
        opens = not group.open
        if opens:
            a = sum(s > 0 for s in stages)
            w = sum(neighbour.open for neighbour in group.around)
            context = ((min(a, 3) * 2 + new) * 5 + w) * 2 + (max(stages) > 1)
            if not (new and a == 0) and not self.coder.decide(contexts.any[context]):
                return
            group.open = True
        for child in children:
            if child.active(p):
                continue
            f = opens and not any(other.active(p) for other in children)
            if f and child is children[-1]:
                child.activated = p
                continue
            place = child.parent_place
            cell = group.cells[place]
            u = sum(stage(known.magnitudes[neighbour], p)
                    for neighbour in (cell - 1, cell + 1, cell - known.above, cell + known.above))
            context = (((stages[place] * 2 + opens) * 5 + near(child, p)) * 5 + octave(u)) * 2 + f
            if self.coder.decide(contexts.child[context]):
                child.activated = p

    # Step 2 and refinement

    def visits(self, index: int, p: int) -> list[tuple[Group, list[int]]]:
        """Active groups and places of their valid coefficients in one frame, frame by frame, row by row."""
        result = []
        for group in self.segment.ordered[index]:
            if group.active(p):
                for first in range(0, len(group.coefficients), 4):
                    places = [place for place in group.valid if first <= place < first + 4]
                    if places:
                        result.append((group.coefficients[places[0]][0], *group.where[1:], group, places))
        result.sort(key=lambda visit: visit[:3])
        return [visit[3:] for visit in result]

    def energy(self, index: int, cell: int, p: int) -> tuple[int, int]:
        """E and T."""
        known = self.segment.known[index]
        h, v, t = known.cross(known.magnitudes, cell)
        a, b = self.weights.get(self.orientations[index] % 4, (2, 2))
        return (energy((a * h + b * v + known.diagonal(cell)) % (1 << 32) >> p), t % (1 << 32) >> p)

    def significance(self, index: int, p: int) -> None:
        known, contexts, segment = self.segment.known[index], self.contexts[index], self.segment
        for group, places in self.visits(index, p):
            new = group.activated == p
            q = stage(group.parent.magnitudes[group.parent_place], p) if segment.k >= 2 else 0
            for place in places:
                if group.magnitudes[place]:
                    continue
                cell = group.cells[place]
                found = any(group.magnitudes)
                implied = segment.k == segment.levels > 0 and new and not found and place == group.valid[-1]
                if not implied:
                    z = 0 if not new else 3 if found else 2 if place % 4 == 3 else 1
                    e, t = self.energy(index, cell, p)
                    if not self.coder.decide(contexts.significance[((e * 5 + octave(t)) * 3 + q) * 4 + z]):
                        continue
                group.magnitudes[place] = known.magnitudes[cell] = 1 << p
                h, v, u = (1 + (n > 0) - (n < 0) for n in known.cross(known.signs, cell))
                i = 9 * h + 3 * v + u
                if i <= 13:
                    group.signs[place] = self.coder.decide(contexts.sign[i])
                else:
                    group.signs[place] = 1 - self.coder.decide(contexts.sign[26 - i])
                known.signs[cell] = -1 if group.signs[place] else 1

    def refinement(self, index: int, p: int) -> None:
        known, contexts = self.segment.known[index], self.contexts[index]
        for group, places in self.visits(index, p):
            for place in places:
                magnitude = group.magnitudes[place]
                if magnitude >> p + 1:
                    cell = group.cells[place]
                    s = 0 if magnitude < 1 << p + 2 else 1 if magnitude < 1 << p + 3 else 2
                    if self.coder.decide(contexts.refinement[s * 15 + self.energy(index, cell, p)[0]]):
                        group.magnitudes[place] = known.magnitudes[cell] = magnitude | 1 << p
