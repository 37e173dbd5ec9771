#!/usr/bin/env python3
"""Write a synthetic clip of raw samples to standard output: clip.py WIDTHxHEIGHT FORMAT FRAMES CONTENT

FORMAT: gray, gray10, gray16, yuv420p, yuv422p10, yuva420p, gbrp, gbrp10. CONTENT: moving, noise, still, page, which stands
still without noise, or mixed: eight frames that move, eight of noise, and so on. Integers only, so that every machine
gives the same bytes.
"""

import sys

# bits, components, log2 subsampling of columns and rows
FORMATS = {
    "gray": (8, 1, 0, 0),
    "gray10": (10, 1, 0, 0),
    "gray16": (16, 1, 0, 0),
    "yuv420p": (8, 3, 1, 1),
    "yuv422p10": (10, 3, 1, 0),
    "yuva420p": (8, 4, 1, 1),
    "gbrp": (8, 3, 0, 0),
    "gbrp10": (10, 3, 0, 0),
}


def wave(n: int) -> int:
    """A parabola up and one down, period 64, -256..256."""
    n %= 64
    return n * (32 - n) if n < 32 else -(n - 32) * (64 - n)


def main() -> None:
    size, name, frames, content = sys.argv[1:]
    width, height = map(int, size.split("x"))
    bits, components, chroma_x, chroma_y = FORMATS[name]
    peak = (1 << bits) - 1
    state = 12345
    out = bytearray()
    for frame in range(int(frames)):
        time = 0 if content == "still" else frame
        for component in range(components):
            chroma = component in (1, 2)
            shift_x, shift_y = (chroma_x, chroma_y) if chroma else (0, 0)
            for y in range(-(-height >> shift_y)):
                for x in range(-(-width >> shift_x)):
                    state = (state * 1103515245 + 12345) & 0x7FFFFFFF
                    random = state >> 16 & 1023
                    if content == "noise" or (content == "mixed" and frame // 8 % 2 == 1):
                        value = random * peak // 1023
                    elif content == "page":
                        spot = (x * 73856093 ^ y * 19349663) * 1103515245 >> 12 & 31
                        value = (700 - 300 * (spot == 0)) * peak // 1023
                    else:
                        px, py = x << shift_x, y << shift_y
                        value = 512 + wave(3 * px + 5 * time + 11 * component) * 5 // 8 + wave(4 * py - 3 * time) // 2
                        value += 200 * ((px + time) % 17 == 6) - 150 * ((px - 20) ** 2 + (py - 10 - time) ** 2 < 30)
                        value += random >> 6
                        value = min(max(value, 0), 1023) * peak // 1023
                    out += value.to_bytes(1 if bits <= 8 else 2, "little")
    sys.stdout.buffer.write(out)


if __name__ == "__main__":
    main()
