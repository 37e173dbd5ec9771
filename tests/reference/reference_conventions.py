"""Conventions for reference_decoder.py, written from the text of codec/FORMAT.md alone, section "Conventions"."""

from __future__ import annotations

import struct


class FormatError(Exception):
    """The decoder refuses the stream."""


def check(condition: bool, message: str) -> None:
    if not condition:
        raise FormatError(message)


def _crc_table() -> list[int]:
    table = []
    for value in range(256):
        for _ in range(8):
            value = (value >> 1) ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return table


CRC_TABLE = _crc_table()


def crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc = (crc >> 8) ^ CRC_TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


MASK64 = (1 << 64) - 1
PRIMES = (11400714785074694791, 14029467366897019727, 1609587929392839161, 9650029242287828579, 2870177450012600261)


def xxh64(data: bytes) -> int:
    """XXH64 with seed 0."""
    p1, p2, p3, p4, p5 = PRIMES

    def rotate(value: int, bits: int) -> int:
        return ((value << bits) | (value >> (64 - bits))) & MASK64

    def mix(lane: int, value: int) -> int:
        return rotate((lane + value * p2) & MASK64, 31) * p1 & MASK64

    position = 0
    if len(data) >= 32:
        lanes = [(p1 + p2) & MASK64, p2, 0, -p1 & MASK64]
        for values in struct.iter_unpack("<4Q", data[:len(data) // 32 * 32]):
            lanes = [mix(lane, value) for lane, value in zip(lanes, values)]
        position = len(data) // 32 * 32
        result = sum(rotate(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18))) & MASK64
        for lane in lanes:
            result = ((result ^ mix(0, lane)) * p1 + p4) & MASK64
    else:
        result = p5
    result = (result + len(data)) & MASK64
    while position + 8 <= len(data):
        result ^= mix(0, int.from_bytes(data[position:position + 8], "little"))
        result = (rotate(result, 27) * p1 + p4) & MASK64
        position += 8
    if position + 4 <= len(data):
        result ^= int.from_bytes(data[position:position + 4], "little") * p1 & MASK64
        result = (rotate(result, 23) * p2 + p3) & MASK64
        position += 4
    for byte in data[position:]:
        result = rotate(result ^ (byte * p5 & MASK64), 11) * p1 & MASK64
    result = (result ^ (result >> 33)) * p2 & MASK64
    result = (result ^ (result >> 29)) * p3 & MASK64
    return result ^ (result >> 32)


class ByteReader:
    def __init__(self, data: bytes, position: int = 0) -> None:
        self.data = data
        self.position = position

    def take(self, count: int) -> bytes:
        check(self.position + count <= len(self.data), "fields end too early")
        self.position += count
        return self.data[self.position - count:self.position]

    def unpack(self, layout: str) -> tuple:
        return struct.unpack("<" + layout, self.take(struct.calcsize("<" + layout)))

    def number(self, layout: str):
        return self.unpack(layout)[0]

    def varint(self) -> int:
        value, shift = 0, 0
        while True:
            byte = self.number("B")
            value |= (byte & 0x7F) << shift
            check(value <= MASK64 and shift < 70, "varint of more than 64 bits")
            check(byte or not shift, "varint longer than need be")
            shift += 7
            if not byte & 0x80:
                return value

    def svarint(self) -> int:
        value = self.varint()
        return -(value + 1 >> 1) if value & 1 else value >> 1

    def text(self) -> str:
        length = self.varint()
        check(length <= 4096, "text too long")
        try:
            return self.take(length).decode("utf-8")
        except UnicodeDecodeError:
            raise FormatError("text is not UTF-8") from None

    def crc(self, start: int = 0) -> None:
        """Read the crc of the bytes from start up to here."""
        expected = crc32c(self.data[start:self.position])
        check(self.number("I") == expected, "crc does not match")

    def room(self, end: int) -> None:
        """Pass over bytes for later versions."""
        check(self.position <= end <= len(self.data), "fields and their size do not agree")
        self.position = end

    def last_crc(self) -> None:
        """Read the crc at the end of a payload, behind its room."""
        self.room(len(self.data) - 4)
        self.crc()


class BitReader:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.position = 0

    def bit(self) -> int:
        check(self.position < 8 * len(self.data), "bits end too early")
        value = self.data[self.position >> 3] >> (self.position & 7) & 1
        self.position += 1
        return value

    def bits(self, count: int) -> int:
        return sum(self.bit() << i for i in range(count))

    def unary(self, most: int) -> int:
        value = 0
        while self.bit():
            value += 1
            check(value <= most, "more ones than can be")
        return value

    def rice(self, k: int, most: int) -> int:
        high = self.unary(most >> k)
        return high << k | self.bits(k)

    def unary_zz(self, most: int) -> int:
        value = self.unary(most)
        return (value + 1) // 2 if value & 1 else -(value // 2)

    def bytes_used(self) -> int:
        """The number of bytes touched; the rest of the last must be zeros."""
        while self.position & 7:
            check(self.bit() == 0, "padding is not zero")
        return self.position >> 3
