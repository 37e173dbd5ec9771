#!/usr/bin/env python3
"""Make the streams of this folder that no current encoder writes from others in it: make_boxes.py

What readers of 0.9 must pass over (boxes and fields of later versions, an index they do not know), what a header can say
without changing samples, and, in refused/, what they must refuse.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Callable

sys.dont_write_bytecode = True
FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER.parent / "reference"))
import reference_decoder as reference  # noqa: E402
from reference_extract import index_entry, svarint, varint, with_crc  # noqa: E402


def box(kind: bytes, content: bytes) -> bytes:
    """A box whose payload is the content and its crc."""
    return raw_box(kind, with_crc(content))


def raw_box(kind: bytes, payload: bytes) -> bytes:
    return with_crc(kind + len(payload).to_bytes(8, "little")) + payload


def text(words: str) -> bytes:
    return varint(len(words.encode())) + words.encode()


def same(content: bytes) -> bytes:
    return content


def remade(name: str, head: Callable[[bytes], bytes] = same, gop: Callable[[bytes], bytes] = same, before: bytes = b"",
           behind: bytes = b"", entry_room: bytes = b"", index_room: bytes = b"", index_version: int = 1,
           known: tuple[bytes, ...] = reference.KNOWN_BOXES) -> bytes:
    """The stream with other contents of Head, other fields of GOP headers, boxes before and behind each GOP, and room."""
    data = (FOLDER / f"{name}.tvl").read_bytes()
    boxes = list(reference.read_boxes(data, known))
    out = bytearray(reference.SIGNATURE + box(b"Head", head(boxes[0].payload[:-4])))
    parsed = reference.read_head(boxes[0].payload)
    out += before
    index, end, next_frame, time, count = b"", 0, 0, 0, 0
    for old in boxes:
        if old.kind != b"Gop ":
            continue
        size = int.from_bytes(old.payload[:4], "little")
        fields = gop(old.payload[4:size - 4])
        payload = with_crc((len(fields) + 8).to_bytes(4, "little") + fields) + old.payload[size:]
        found = reference.read_gop(payload, parsed)
        offset = len(out)
        out += raw_box(b"Gop ", payload)
        entry = index_entry(found, parsed, offset - end, len(out) - offset, next_frame, time) + entry_room
        index += varint(len(entry)) + entry
        end, next_frame, time, count = len(out), found.first_frame + found.frames, found.end, count + 1
        out += behind
    offset = len(out)
    out += box(b"Indx", bytes([index_version]) + varint(count) + index + index_room)
    out += box(b"Done", next_frame.to_bytes(8, "little") + offset.to_bytes(8, "little"))
    return bytes(out)


def front_table(name: str, offset: int = 0, lie: int = 0, repeat: bool = False, version: int = 1, more: int = 0,
                ahead: bytes = b"") -> bytes:
    """The stream with a table of copies of its index, end and headers of GOPs behind Head. Or with one that does not count,
    of which a decoder that takes it would be misled: copies XORed with `lie`, at other offsets, all of them twice, of
    another version, of a stream of `more` bytes, or behind the box `ahead`."""
    data = (FOLDER / f"{name}.tvl").read_bytes()
    known = reference.KNOWN_BOXES + (b"Volm",)
    boxes = list(reference.read_boxes(data, known))
    between = data[boxes[0].end:next(b.offset for b in boxes if b.kind == b"Gop ")]
    room = 96 + 400 * sum(b.kind == b"Gop " for b in boxes)
    plain = remade(name, before=ahead + box(b"tocF", bytes(room)) + between, known=known)
    boxes = list(reference.read_boxes(plain, known))
    at = next(b.offset for b in boxes if b.kind == b"Indx")
    copies = [(at, plain[at:])]
    for b in boxes:
        if b.kind == b"Gop ":
            copies.append((b.offset, plain[b.offset:b.offset + 16 + int.from_bytes(b.payload[:4], "little")]))
    copies *= 2 if repeat else 1
    content = bytes([version]) + (len(plain) + more).to_bytes(8, "little") + varint(len(copies))
    content += b"".join(varint(at + offset) + varint(len(of)) for at, of in copies)
    content += b"".join(bytes(byte ^ lie for byte in of) for _, of in copies)
    check = room - len(content)
    assert check >= 0, check
    return remade(name, before=ahead + box(b"tocF", content + bytes(check)) + between, known=known)


def irregular(fields: bytes) -> bytes:
    """With a time of its own for each frame."""
    reader = reference.ByteReader(fields)
    reader.varint(), reader.varint()
    frames = reader.varint()
    at = reader.position
    flags = reader.varint()
    reader.svarint(), reader.svarint()
    times = b"".join(svarint(i % 3 - 1) + svarint(2 - i % 4) for i in range(1, frames))
    return fields[:at] + varint(flags | 2) + fields[at + 1:reader.position] + times + fields[reader.position:]


def features(required: int, names: str, optional: int = 0, version: bytes = b"\x00\x09") -> Callable[[bytes], bytes]:
    def change(content: bytes) -> bytes:
        rest = content[19 + content[18]:]  # the names of the stream's own go
        return version + required.to_bytes(8, "little") + optional.to_bytes(8, "little") + text(names) + rest
    return change


def display(content: bytes) -> bytes:
    """Rotation, mirror, field order, colours and times as they seldom are, premultiplied alpha where there is some."""
    reader = reference.ByteReader(content, 19 + content[18] + 32)
    model, bits, chroma_x, chroma_y = reader.unpack("4B")
    alpha_at = reader.position
    reader.unpack("2B")
    for _ in range((1 if model == reference.GREY else 3) + (content[alpha_at] > 0)):
        levels = reader.unpack("ifB")[2]
        reader.take(levels + 1)
    numbers = (30000, 1001, 40, 33, 1, 90000)  # frame rate, sample aspect, time base
    fields = b"".join(n.to_bytes(4, "little") for n in numbers) + bytes([9, 16, 9, 1, 3, 0b111, 2])
    alpha = bytes([2 if content[alpha_at] else 0])
    return content[:alpha_at] + alpha + content[alpha_at + 1:reader.position] + fields + content[reader.position + 31:]


def metadata() -> bytes:
    mdcv = b"".join(n.to_bytes(2, "little") for n in (34000, 16000, 13250, 34500, 7500, 3000, 15635, 16450))
    mdcv += (10000000).to_bytes(4, "little") + (50).to_bytes(4, "little")
    chapters = (1).to_bytes(4, "little") + (1000).to_bytes(4, "little") + varint(2)
    chapters += svarint(0) + svarint(120) + text("First") + svarint(120) + svarint(400) + text("Zwei \u2013 \u4e09")
    meta = varint(2) + text("title") + text("A title") + text("comment") + text("")
    clli = (1000).to_bytes(2, "little") + (400).to_bytes(2, "little")
    return box(b"mdcv", mdcv) + box(b"clli", clli) + box(b"chap", chapters) + box(b"meta", meta)


def main() -> None:
    video, volume = "fast_lossy_yuv420p", "volume_t2d_u8"
    later = box(b"note", b"of an application") + box(b"notE", b"bound to what is coded") + box(b"zzz9", b"")
    streams = {
        "boxes_metadata": remade(video, before=metadata()),
        "boxes_unknown": remade(video, before=later, behind=later),
        # a crc that is wrong, of what may be passed over
        "boxes_damaged": remade(video, before=raw_box(b"note", b"12345678") + raw_box(b"meta", b"\x01\x05title\x00\x00\x00\x00\x00")),
        "room": remade("motion_open", lambda content: content + b"later", lambda fields: fields + b"\x00\xff",
                       entry_room=b"\x80\x80", index_room=b"more"),
        "index_of_later": remade(video, index_version=2),
        "version_0_200": remade(video, features(0, "", version=bytes([0, 200]))),
        "version_1_7": remade("motion_lossless_gbrp", features(1, "motion", 1 << 63 | 6, bytes([1, 7]))),
        "display_fields": remade("dense_lossy_yuva420p", display),
        "irregular_times": remade("motion_open", gop=irregular),
        "front_table": front_table("motion_tiny"),
        "volume_front_table": front_table("volume_t2d_u8"),
        # tables that do not count
        "front_table_beyond": front_table("motion_tiny", offset=1, lie=0x55),
        "front_table_later": front_table("motion_tiny", lie=0x55, ahead=box(b"note", b"first")),
        "front_table_of_another": front_table("motion_tiny", lie=0x55, more=1),
        "front_table_twice": front_table("motion_tiny", lie=0x55, repeat=True),
        "front_table_version": front_table("motion_tiny", lie=0x55, version=2),
    }
    data = (FOLDER / f"{video}.tvl").read_bytes()
    head = next(reference.read_boxes(data))
    first = head.end
    of_volume = (FOLDER / f"{volume}.tvl").read_bytes()
    map_at = of_volume.index(b"Volm")
    map_box = next(b for b in reference.read_boxes(of_volume, reference.KNOWN_BOXES + (b"Volm",)) if b.kind == b"Volm")
    refused = {
        "required_feature": (remade(video, features(1 << 40, "hovering")), "hovering"),
        "required_features": (remade("motion_lossless_gbrp", features(1 << 62 | 1, "motion time-travel")), "time-travel"),
        "feature_without_name": (remade(video, features(1 << 50, "")), "feature 50"),
        "critical_box": (remade(video, before=box(b"Must", b"be known")), "Must"),
        "version_0_3": (remade(video, lambda content: b"\x00\x03" + content[2:]), "0.3"),
        "version_2_0": (remade(video, lambda content: b"\x02\x00" + content[2:]), "2.0"),
        "head_twice": (remade(video, before=data[8:first]), "header"),
        "head_second": (data[:8] + box(b"note", b"") + data[8:], "note"),
        "volume_of_later": (of_volume[:map_at] + box(b"Volm", b"\x02" + map_box.payload[1:-4]) + of_volume[map_box.end:],
                            "version 2"),
        "mask_alone": (remade(video, before=box(b"Mask", b"\x01\x01" + b"\0" * 8 + b"\x01\0")), "Mask"),
        "volume_twice": (of_volume[:map_at] + of_volume[map_at:map_box.end] + of_volume[map_at:], "Volm"),
    }
    for name, content in streams.items():
        (FOLDER / f"{name}.tvl").write_bytes(content)
    (FOLDER / "refused").mkdir(exist_ok=True)
    with open(FOLDER / "refused.txt", "w", encoding="ascii") as sink:
        for name, (content, words) in refused.items():
            (FOLDER / "refused" / f"{name}.tvl").write_bytes(content)
            print(name, words, file=sink)
    for name in ("colour", "in_slice", "labels", "palette", "time", "times"):
        seed = (FOLDER.parent / "corrupt" / "volume_stream" / name).read_bytes()
        (FOLDER / f"volume_{name}.tvl").write_bytes(seed[8:])  # behind the options of the fuzzer


if __name__ == "__main__":
    main()
