#!/usr/bin/env python3
"""Write the scalars of a synthetic volume to standard output: volume.py WIDTHxHEIGHTxDEPTH TYPE

TYPE: u8 s16 s16be u32 f32 f64; f32nan, with holes of NaN and infinity; u8regions, with labels but in one corner; u8mask, of two
values. Integers only but for a last division by a power of two, so that every machine gives the
same bytes.
"""

import struct
import sys

from clip import wave

# struct's letters, and the size of the values
TYPES = {"u8": ("<B", 200), "s16": ("<h", 3000), "s16be": (">h", 3000), "u32": ("<I", 4000000000), "f32": ("<f", 100000),
         "f32nan": ("<f", 100000), "f64": ("<d", 1 << 50), "u8regions": ("<B", 200), "u8mask": ("<B", 200)}


def main() -> None:
    size, name = sys.argv[1:]
    width, height, depth = map(int, size.split("x"))
    letters, peak = TYPES[name]
    state = 12345
    out = bytearray()
    for z in range(depth):
        for y in range(height):
            for x in range(width):
                state = (state * 1103515245 + 12345) & 0x7FFFFFFF
                value = 512 + wave(3 * x + 2 * z) * 5 // 8 + wave(4 * y - z) // 2
                value += 200 * ((x - 20) ** 2 + (y - 10 - z) ** 2 < 60)
                value = min(max(value, 0), 1023) * peak // 1024 + (state >> 16 & 1023) * peak // 65536
                if peak > 1 << 20:
                    value += state & 0xFFFFF
                if (x - width // 2) ** 2 * 2 > width ** 2:
                    value = 0  # air
                if name == "u8mask":
                    value = 255 * ((x - 20) ** 2 + (y - 10 - z) ** 2 < 90 or (x + y) % 29 == 0)
                elif name == "u8regions" and (x >= 32 or y >= 32):
                    value = 7 * ((x + z) // 9) + 31 * ((y - z + 8) // 11) + 13 * ((x * y) % 97 == 0)
                if name == "f32nan" and (x - 12 - z) ** 2 + (y - 9) ** 2 < 40 + 9 * (y % 3):
                    out += struct.pack("<I", 0x7FC00000)
                elif name == "f32nan" and x == 30 and y > z:
                    out += struct.pack("<I", 0xFF800000 if y % 2 else 0x7F800000)
                elif letters[1] in "fd":
                    out += struct.pack(letters, value / 1024 - 7)
                else:
                    out += struct.pack(letters, value - (1000 if letters[1] == "h" else 0))
    sys.stdout.buffer.write(out)


if __name__ == "__main__":
    main()
