#!/usr/bin/env python3
"""Make a stream smaller without coding it again, as codec/FORMAT.md says in "Extracts".

    reference_extract.py IN.tvl OUT.tvl SPATIAL TEMPORAL LAYERS

SPATIAL and TEMPORAL are the finest levels to drop, LAYERS those to keep. The input must not be an extract itself.
"""

from __future__ import annotations

import sys
from typing import Callable

import reference_decoder as reference

Change = Callable[[reference.Head, reference.Gop], None]


def varint(value: int) -> bytes:
    result = bytearray()
    while value > 127:
        result.append(value & 127 | 128)
        value >>= 7
    return bytes(result) + bytes([value])


def svarint(value: int) -> bytes:
    return varint(2 * value if value >= 0 else -2 * value - 1)


def with_crc(data: bytes) -> bytes:
    return data + reference.crc32c(data).to_bytes(4, "little")


def change_gop(payload: bytes, head: reference.Head, change: Change) -> tuple[reference.Gop, bytes]:
    """A Gop box with other sections and chunks, and without its hash."""
    gop = reference.read_gop(payload, head)
    reader = reference.ByteReader(payload, 4)
    for _ in range(3):
        reader.varint()
    flags = reader.varint()
    fields = payload[4:reader.position - 1] + bytes([flags & ~1])
    start = reader.position
    reader.take(1 if flags & 8 and head.levels_by_gop else 0)
    for _ in range(2 * gop.frames if flags & 2 else 2):
        reader.varint()
    fields += payload[start:reader.position]
    reader.take(8 if flags & 1 else 0)  # the hash goes
    start = reader.position
    reader.take(0 if head.lossless else 4)
    for _ in range(reader.varint() if flags & 4 else 0):
        reader.varint()
        reader.number("B")
    fields += payload[start:reader.position]
    for size in (reader.varint() for _ in gop.motion or {}):
        reader.take(4 if size else 0)
    tops = reader.take(1 + head.layers)

    change(head, gop)
    body = b""

    def add(part: bytes) -> None:
        nonlocal fields, body
        fields += varint(len(part)) + (reference.crc32c(part).to_bytes(4, "little") if part else b"")
        body += part

    for level in range(gop.levels + gop.predicted, 0, -1) if gop.motion is not None else []:
        add(gop.motion[level])
    fields += tops
    for layer in range(head.layers):
        for band in range(head.bands if gop.motion is None else gop.levels + 1):
            for distance in range(head.spatial_levels, -1, -1):
                add(gop.chunks.get((layer, band, distance), b""))
    return gop, with_crc((len(fields) + 8).to_bytes(4, "little") + fields) + body


def index_entry(gop: reference.Gop, head: reference.Head, gap: int, size: int, next_frame: int, time: int) -> bytes:
    """What stands in the index of a GOP, without its size. next_frame, time: where the GOP before ends."""
    entry = b"".join(map(varint, (gap, size, gop.first_frame - next_frame, gop.frames))) + bytes([gop.index_key])
    entry += svarint(gop.begin - time) + svarint(gop.end - gop.begin)
    for layer in range(head.layers):
        entry += varint(sum(len(chunk) for key, chunk in gop.chunks.items() if key[0] == layer)) + b"\xff\xff"
    return entry


def change_stream(data: bytes, change: Change, dropped: int = 0, temporal_dropped: int = 0) -> bytes:
    """The stream with change(head, gop) applied to the sections and chunks of every GOP."""
    result = bytearray(reference.SIGNATURE)
    index = b""
    end = next_frame = time = 0

    def add(kind: bytes, payload: bytes) -> None:
        result.extend(with_crc(kind + len(payload).to_bytes(8, "little")))
        result.extend(payload)

    for box in reference.read_boxes(data):
        if box.kind == b"Head":
            head = reference.read_head(box.payload)
            at = 18 + 1 + box.payload[18] + 12  # behind the features, their names, and what stands before these two
            add(b"Head", with_crc(box.payload[:at] + bytes([dropped, temporal_dropped]) + box.payload[at + 2:-4]))
        elif box.kind == b"Gop ":
            gop, payload = change_gop(box.payload, head, change)
            offset = len(result)
            add(b"Gop ", payload)
            entry = index_entry(gop, head, offset - end, len(result) - offset, next_frame, time)
            index += varint(len(entry)) + entry
            end, next_frame, time = len(result), gop.first_frame + gop.frames, gop.end
            count = gop.index + 1
    offset = len(result)
    add(b"Indx", with_crc(b"\x01" + varint(count) + index))
    add(b"Done", with_crc(next_frame.to_bytes(8, "little") + offset.to_bytes(8, "little")))
    return bytes(result)


def extract(data: bytes, dropped: int, temporal_dropped: int, layers: int) -> bytes:
    """The stream without its finest levels and with the last layers empty, see "Extracts" in FORMAT.md."""
    def change(head: reference.Head, gop: reference.Gop) -> None:
        bands = head.bands - temporal_dropped if gop.motion is None else max(1, gop.levels + 1 - temporal_dropped)
        gop.chunks = {(layer, band, distance): chunk for (layer, band, distance), chunk in gop.chunks.items()
                      if layer < layers and distance >= dropped and band < bands}
        if gop.motion is not None:
            gop.motion = {level: b"" if level <= min(temporal_dropped, gop.levels) else section for level, section in gop.motion.items()}

    return change_stream(data, change, dropped, temporal_dropped)


def main(arguments: list[str]) -> int:
    if len(arguments) != 5:
        print(__doc__, file=sys.stderr)
        return 2
    with open(arguments[0], "rb") as source:
        result = extract(source.read(), *map(int, arguments[2:]))
    with open(arguments[1], "wb") as sink:
        sink.write(result)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
