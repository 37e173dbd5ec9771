"""Writes sections of motion with random decisions, which no encoder chooses.

    reference_motion_writer.py IN.tvl OUT.tvl SEED WILDNESS

Gives a stream with motion other motion. WILDNESS, 0..1: how probable it is that a vector's difference has another bit.
"""

from __future__ import annotations

import random
import sys

import reference_decoder as reference
import reference_motion as motion
from reference_dense import State, adapt, probability
from reference_extract import change_stream, varint


class Dice:
    """Stands where the decoder of a codeword does, and writes the codeword that has its decisions."""

    def __init__(self, generator: random.Random) -> None:
        self.generator = generator
        self.chances: dict[int, float] = {}  # of a 1, by id of a state; else what the state says
        self.low = 0
        self.range = (1 << 32) - 1
        self.bits = 32

    def decide(self, state: State, seen_limit: int) -> int:
        decision = self.bit(probability(state), self.chances.get(id(state)))
        adapt(state, decision, seen_limit)
        return decision

    def plain(self) -> int:
        return self.bit(1 << 15)

    def bit(self, p: int, chance: float | None = None) -> int:
        decision = int(self.generator.random() < (p / 65536 if chance is None else chance))
        split = self.range * p >> 16
        if decision:
            self.range = split
        else:
            self.low += split
            self.range -= split
        while self.range < 1 << 31:
            self.range *= 2
            self.low *= 2
            self.bits += 1
        return decision

    def codeword(self) -> bytes:
        """Without the zeros at its end."""
        padding = -self.bits % 8
        return (self.low << padding).to_bytes((self.bits + padding) // 8, "big").rstrip(b"\0")


class TooLong(Exception):
    """A vector is. Holds the section up to there."""


def invent_level(generator: random.Random, wildness: float, level: int, gop: reference.Gop, size: tuple[int, int],
                 components: int, coarser: list[motion.HighFrame]) -> tuple[bytes, list[motion.HighFrame]]:
    """A section and its motion."""
    def section() -> bytes:
        return b"".join(varint(len(codeword)) for codeword in codewords) + b"".join(codewords)

    highs = (motion.high_frames(level, gop.frames, gop.key) if level <= gop.levels
             else motion.predicted_keys(gop.levels, gop.frames, gop.key))
    parents = {frame.t: frame for frame in coarser}
    codewords = []
    for y in range(0, size[0] if highs else 0, motion.REGION):
        for x in range(0, size[1], motion.REGION):
            region = motion.Region(b"", (y, x), size, components)
            dice = region.coder = Dice(generator)
            dice.chances = {id(state): wildness for prefix in region.contexts.prefix for state in prefix}
            dice.chances |= {id(state): 0.3 for state in region.contexts.merge}
            dice.chances |= {id(state): 0.8 for state in region.contexts.guess}
            try:
                for frame in highs:
                    region.decode(frame, parents)
            except reference.FormatError:
                codewords.append(dice.codeword())
                raise TooLong(section()) from None
            codewords.append(dice.codeword())
    return section(), highs


def invent_motion(data: bytes, seed: int, wildness: float, damaged: bool = False) -> bytes:
    """A stream with motion with other motion. damaged: a vector of the finest level is too long."""
    generator = random.Random(seed)

    def change(head: reference.Head, gop: reference.Gop) -> None:
        if gop.motion is None:
            return
        size = reference.cells_of(head)
        highs: list[motion.HighFrame] = []
        for level in range(gop.levels + gop.predicted, 0, -1):
            done = False
            while not done:
                try:
                    parents = highs if level < gop.levels else []  # keys are none
                    gop.motion[level], highs = invent_level(generator, wildness, level, gop, size,
                                                            len(head.components), parents)
                    done = level > 1 or not damaged
                except TooLong as error:
                    gop.motion[level], = error.args
                    done = level == 1 and damaged

    return change_stream(data, change)


def main(arguments: list[str]) -> int:
    if len(arguments) != 5:
        print(__doc__, file=sys.stderr)
        return 2
    with open(arguments[1], "rb") as source:
        result = invent_motion(source.read(), int(arguments[3]), float(arguments[4]))
    with open(arguments[2], "wb") as sink:
        sink.write(result)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
