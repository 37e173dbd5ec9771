#!/usr/bin/env python3
"""Make the damaged streams of this folder again after a change of the format: make.py path/to/trivelet

Each once did harm. They are made from one stream of two GOPs (Head, two Gop, Indx, Done), see corrupt_test.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER.parent / "reference"))
import reference_decoder as reference  # noqa: E402


def with_crc(data: bytes) -> bytes:
    return data + reference.crc32c(data).to_bytes(4, "little")


def box(kind: bytes, payload: bytes, length: int | None = None) -> bytes:
    return with_crc(kind + (len(payload) if length is None else length).to_bytes(8, "little")) + payload


FIELDS = 19  # of Head, behind the features, which have no names here


def patched(data: bytes, at: int, by: bytes) -> bytes:
    return data[:at] + by + data[at + len(by):]


def main(program: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        raw, stream = Path(folder) / "in.raw", Path(folder) / "out.tvl"
        raw.write_bytes(subprocess.run([sys.executable, FOLDER.parent / "conformance" / "clip.py", "8x8", "gray", "4", "moving"],
                                       check=True, capture_output=True).stdout)
        subprocess.run([program, "encode", "--quiet", "-t", "1", "--format", "raw", "--size", "8x8", "--pix-fmt", "gray",
                        "--lossless", "--profile", "fast", "--gop", "2", "--levels", "1x2", "--layers", "3",
                        "--block-size", "32", "--no-scene-cuts", raw, stream], check=True)
        data = stream.read_bytes()
    head, first, second, index, _ = reference.read_boxes(data)
    assert second.kind == b"Gop "

    damaged = {
        "packet_header_damaged": patched(data, first.offset, b"F"),
        "last_packet_and_index_damaged": patched(patched(data, second.offset, b"F"), index.offset, b"J"),
        "box_beyond_the_end": data[:second.offset] + box(b"note", b"", 1 << 63) + data[second.offset:],
        # what looks like boxes, again and again
        "damaged_boxes": data[:second.offset] + b"xxxxxIndx\0\0\0\0\0\0\0\0Gop " * 500,
        "promised_frames": reference.SIGNATURE + box(b"Head", with_crc(patched(head.payload[:-4], FIELDS + 24, b"\xff" * 4))),
    }
    # ... of GOPs of 128 frames
    one_sample = patched(patched(head.payload[:-4], FIELDS + 6, bytes([8, 8])), FIELDS + 14,
                         bytes([128, 0, 1, 0, 0, 0, 1, 0, 0, 0]))
    damaged["one_sample_eight_levels"] = reference.SIGNATURE + box(b"Head", with_crc(one_sample)) + data[head.end:]
    for name, content in damaged.items():
        (FOLDER / f"{name}.tvl").write_bytes(content)


if __name__ == "__main__":
    main(sys.argv[1])
