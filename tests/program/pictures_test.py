#!/usr/bin/env python3
"""Pixel formats of outputs, sequences and folders of pictures.

    tests/program/pictures_test.py path/to/trivelet

FFmpeg makes the clips and judges what comes out. Skipped without ffmpeg.
"""

import base64
import hashlib
import json
import os
import re
import shutil
import struct
import sys
import tempfile
import zlib
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import program  # noqa: E402
from program import check, failures, ffmpeg, run  # noqa: E402

FRAMES = 5
def probe(file: Path, entries: str) -> str:
    command = ["ffprobe", "-v", "error", "-count_frames", "-show_entries", f"stream={entries}", "-of", "csv=p=0", str(file)]
    return program.process(*command, check=True).stdout.decode().strip()


def psnr(a: Path, b: Path, pixel_format: str) -> float:
    filters = f"[0]format={pixel_format}[x];[1]format={pixel_format}[y];[x][y]psnr"
    said = ffmpeg("-i", a, "-i", b, "-lavfi", filters, "-f", "null", "-").stderr.decode(errors="replace")
    return float(re.search(r"average:(\S+)", said).group(1))


def test_formats(folder: Path, clips: dict) -> None:
    # Output, codec, what FFmpeg must call the samples, least PSNR as RGB. Alpha survives where it can.
    cases = {
        ("yuv", "p%02d.png"): ("rgb24", 99),
        ("yuv", "p%d.jpg"): ("yuvj420p", 35),
        ("yuv", "t%d.tif"): ("yuv420p", 99),
        ("yuv", "a.gif"): ("bgra", 20),
        ("yuv", "a.ppm"): ("rgb24", 99),
        ("rgba", "p%02d.png"): ("rgba", 99),
        ("rgba", "p%d.jpg"): ("yuvj444p", 32),
        ("rgba", "a.y4m"): ("yuva444p", 40),
        ("rgba", "a.mov"): ("yuva444p12le", 40),
        ("deep", "p%02d.png"): ("rgb48be", 55),
        ("deep", "p%d.jpg"): ("yuvj444p", 35),
    }
    for (clip, name), (pixels, least) in cases.items():
        out = folder / clip / name
        out.parent.mkdir(exist_ok=True)
        codec = ["--codec", "prores_ks"] if name.endswith(".mov") else []
        run("decode", folder / f"{clip}.tvl", out, "--pix-fmt", "auto", "--quiet", *codec)
        if name == "a.ppm":
            check(out.read_bytes().count(b"P6\n") == FRAMES, "pictures one after the other in one file")
            continue
        found = probe(out, "pix_fmt,nb_read_frames").split(",")
        check(found == [pixels, str(FRAMES)], f"{clip} to {name}: {found}")
        got = psnr(out, clips[clip], "gbrp")
        check(got >= least, f"{clip} to {name}: {got} dB, at least {least} expected")
    # A format by name, also where the output would hold the samples as they are.
    run("decode", folder / "rgba.tvl", folder / "n.y4m", "--pix-fmt", "yuv420p")
    check(probe(folder / "n.y4m", "pix_fmt") == "yuv420p", "rgba to yuv420p by name")
    run("decode", folder / "yuv.tvl", folder / "n.apng", "--pix-fmt", "auto")
    data = (folder / "n.apng").read_bytes()
    check(data[(at := data.index(b"acTL")) + 8 : at + 12] == bytes(4), "an animation in PNG is shown for ever")
    run("decode", folder / "yuv.tvl", folder / "n.mkv", "--pix-fmt", "rgb24")
    check(psnr(folder / "n.mkv", clips["yuv"], "gbrp") > 99, "yuv420p to rgb24 is what swscale makes")
    check("YUV4MPEG2 W98 H66 F25:1 Ip A1:1 Cmono" in run("decode", folder / "yuv.tvl", "-", "--pix-fmt", "gray"),
          "a pipe gets the format, too")
    # What an output does not hold is refused with the way out, and leaves no file.
    for clip, name in (("rgba", "x.y4m"), ("yuv", "x.png"), ("yuv", "x.jpg"), ("yuv", "x.gif"), ("yuv", "x%d.pgm")):
        out = folder / "refused" / name
        out.parent.mkdir(exist_ok=True)
        check("--pix-fmt" in run("decode", folder / f"{clip}.tvl", out, code=5) or name == "x.y4m",
              f"{clip} to {name}: the option is named")
        check(not list(out.parent.iterdir()), f"{clip} to {name}: nothing is left")
    # Raw bytes have the order that the name says.
    for name in ("rgb24", "bgra", "rgb48le", "gbrp"):
        raw = folder / "raw.rgb"
        run("decode", folder / "rgba.tvl", raw, "--pix-fmt", name, "-y")
        wanted = ffmpeg("-i", clips["rgba"], "-pix_fmt", name, "-f", "rawvideo", "-").stdout
        check(raw.read_bytes() == wanted, f"raw {name} is that of ffmpeg")
        told = run("decode", folder / "rgba.tvl", "md5", "--pix-fmt", name, "--quiet").split("MD5=")[1][:32]
        check(told == hashlib.md5(wanted).hexdigest(), f"the MD5 of {name}")
        run("encode", raw, folder / "raw.tvl", "--size", "98x66", "--pix-fmt", name, "--lossless", "-y")
        run("decode", folder / "raw.tvl", folder / "again.rgb", "--pix-fmt", name, "-y")
        check((folder / "again.rgb").read_bytes() == wanted, f"{name} is read as it is written")
    check("rgb25" in run("decode", folder / "yuv.tvl", folder / "x.y4m", "--pix-fmt", "rgb25", code=2), "a wrong name")


def test_sequences(folder: Path, clips: dict) -> None:
    made = folder / "made"
    made.mkdir()
    ffmpeg("-i", clips["rgba"], "-start_number", 8, made / "shot%d.png")
    back = folder / "back.tvl"
    for source in (made, made / "shot%d.png"):
        run("encode", source, back, "--lossless", "--verify", "--fps", 24, "-y")
        run("decode", back, folder / "back.mkv", "-y")
        check(psnr(folder / "back.mkv", clips["rgba"], "gbrap") > 99, f"{source}: in the order of the numbers")
        said = run("info", source)
        check("5 frames" in said and "gbrap" in said, f"info {source}: {said}")
    check("24 frames/s" in run("info", back), "--fps of pictures")
    ffmpeg("-f", "lavfi", "-i", "sine=duration=0.2", "-c:a", "flac", folder / "tone.mka")
    said = run("encode", made, folder / "sound.mkv", "--fps", 25, "--tracks-from", folder / "tone.mka")
    check("flac" in run("info", folder / "sound.mkv").lower() and "warning" not in said, "pictures with sound")
    run("encode", made, folder / "part.tvl", "--frames", "2:4", "--lossless")
    check("2 frames" in run("info", folder / "part.tvl"), "--frames of pictures")
    # Written and read again, with other numbers; nothing is replaced, and then nothing is left half done.
    run("decode", back, folder / "out%03d.png")
    check(len(list(folder.glob("out*.png"))) == FRAMES, "a file a frame")
    (folder / "out001.png").unlink()
    check("out002.png exists" in run("decode", back, folder / "out%03d.png", code=2), "an existing picture is named")
    check(not (folder / "out001.png").exists() and not list(folder.glob("*.part")), "and none is written")
    run("decode", back, folder / "out%03d.png", "-y")
    run("compare", folder / "out%03d.png", made, "--min-psnr", 99)
    # A gap, several kinds, another size, nothing at all.
    shutil.copy(made / "shot9.png", made / "shot20.png")
    check("shot13.png is missing" in run("encode", made / "shot%d.png", back, "-y", code=4), "a gap is named")
    (made / "shot20.png").unlink()
    ffmpeg("-i", clips["rgba"], "-vf", "scale=50:40", "-frames:v", 1, made / "shot13.png")
    check("shot13.png is 50x40" in run("encode", made, back, "-y", code=5), "another size is named")
    (made / "shot13.png").write_bytes((made / "shot9.png").read_bytes()[:300])
    check("shot13.png" in run("encode", made, back, "-y", code=4), "a cut picture is named")
    (made / "shot13.png").rename(made / "shot13.tif")
    check("several kinds" in run("encode", made, back, "-y", code=5), "pictures of several kinds")
    empty = folder / "empty"
    empty.mkdir()
    check("without" in run("encode", empty, back, "-y", code=3), "an empty folder")


def tiff(pages: int, fields: dict, order: str = "<", bits: int = 8) -> bytes:
    """Pictures of 4 x 3: what is in `fields` (tags and numbers, or lists of fractions), or RGB."""
    fields = {256: 4, 257: 3, 258: 8, 259: 1, 262: 2, 277: 3, 278: 3, **fields}
    strip = bytes(i % 256 for i in range(12 * fields[277] * max(bits, 8) // 8))
    data = (b"II*\0" if order == "<" else b"MM\0*") + struct.pack(order + "I", 8)
    for page in range(pages):
        entries = sorted({**fields, 273: 0, 279: len(strip)}.items())
        at = len(data) + 2 + 12 * len(entries) + 4
        data += struct.pack(order + "H", len(entries))
        fractions = b""
        for tag, value in entries:
            if tag == 258 and fields[277] < 3:
                data += struct.pack(order + "HHIHH", tag, 3, fields[277], bits, bits)
            elif tag == 258:  # as many as there are samples, behind the strip
                data += struct.pack(order + "HHII", tag, 3, fields[277], at + len(strip))
            elif isinstance(value, list):
                place = at + len(strip) + 2 * fields[277] + len(fractions)
                data += struct.pack(order + "HHII", tag, 5, len(value), place)
                fractions += b"".join(struct.pack(order + "II", *pair) for pair in value)
            elif tag == 273:
                data += struct.pack(order + "HHII", tag, 4, 1, at)
            else:
                data += struct.pack(order + "HHIHH", tag, 3, 1, value, 0)
        behind = at + len(strip) + 2 * fields[277] + len(fractions)
        data += struct.pack(order + "I", behind if page + 1 < pages else 0) + strip
        data += struct.pack(order + "H", bits) * fields[277] + fractions
    return data


def grey_rows() -> bytes:
    return zlib.compress(b"".join(bytes([0, 1, 2, 3, row]) for row in range(3)))


def animation(has_default: bool, plays: int = 0) -> bytes:
    """PNG of two pictures in motion. The first may be shown in their place instead, and one is left."""
    control = [(b"fcTL", struct.pack(">IIIIIHHBB", i, 4, 3, 0, 0, 1, 10, 0, 0)) for i in (0, 1)]
    count = (b"acTL", struct.pack(">II", 1 if has_default else 2, plays))
    second = (b"fdAT", struct.pack(">I", 1 if has_default else 2) + grey_rows())
    return png(count, behind=(control[0], second)) if has_default else png(count, control[0], behind=(control[1], second))


def jpeg(images: int, folder: Path) -> bytes:
    """A JPEG whose application segment lists so many pictures, as cameras of several lenses write them (MPO)."""
    path = folder / "listed.jpg"
    ffmpeg("-f", "lavfi", "-i", "testsrc=size=32x24", "-frames:v", "1", path)
    data = path.read_bytes()
    listed = b"MPF\0MM\0*" + struct.pack(">IHHHIIHHIII", 8, 2, 0xB000, 7, 4, 0x30313030, 0xB001, 4, 1, images, 0)
    return data[:2] + b"\xff\xe2" + struct.pack(">H", len(listed) + 2) + listed + data[2:] * images


def png(*chunks: tuple, behind: tuple = (), bits: int = 8) -> bytes:
    """A grey picture of 4 x 3, with more chunks before and behind its samples."""
    head = (b"IHDR", struct.pack(">IIBBBBB", 4, 3, bits, 0, 0, 0, 0))
    rows = grey_rows() if bits == 8 else zlib.compress(b"\0\xa0" * 3)
    all_chunks = [head, *chunks, (b"IDAT", rows), *behind, (b"IEND", b"")]
    coded = (struct.pack(">I", len(c)) + n + c + struct.pack(">I", zlib.crc32(n + c)) for n, c in all_chunks)
    return b"\x89PNG\r\n\x1a\n" + b"".join(coded)


def icon(bits: int) -> bytes:
    """2 x 2 pixels of 8 or 24 bits and the mask of what is transparent."""
    bitmap = struct.pack("<IiiHHIIiiII", 40, 2, 4, 1, bits, 0, 0, 0, 0, 0, 0) + (bytes(1024 + 8) if bits == 8 else bytes(16))
    bitmap += bytes([0x80, 0, 0, 0]) * 2
    return struct.pack("<HHHBBBBHHII", 0, 1, 1, 2, 2, 0, 0, 1, bits, len(bitmap), 22) + bitmap


def webp(exif: bytes) -> bytes:
    """A pixel without loss."""
    pixel = bytes.fromhex("2f00000010071011118888fe0700")
    chunks = ((b"VP8X", bytes([8]) + bytes(9)), (b"VP8L", pixel), (b"EXIF", exif))
    data = b"WEBP" + b"".join(n + struct.pack("<I", len(d)) + d + bytes(len(d) % 2) for n, d in chunks)
    return b"RIFF" + struct.pack("<I", len(data)) + data


def test_misread(folder: Path) -> None:
    """What FFmpeg's decoders take for something else without a word is refused, also in a sequence."""
    coded = folder / "misread.tvl"
    cases = {"in tiles": {322: 16, 323: 16}, "with JPEG inside": {259: 7}, "of signed samples": {339: 2}, "of floats": {339: 3},
             "of a palette with more samples": {262: 3, 277: 2}, "with the bits of a byte in reverse": {266: 2, 277: 1}}  # fmt: skip
    for i, (told, fields) in enumerate(cases.items()):
        (folder / f"misread_{i:02}.tif").write_bytes(tiff(1, fields, "<>"[i % 2], 4 if 266 in fields else 8))
        said = run("encode", folder / f"misread_{i:02}.tif", coded, "-y", code=5)
        check(f"a TIFF picture {told}, which FFmpeg reads wrong" in said, f"{told}: {said}")
    for order, code in (("<", 5), (">", 0)):
        (folder / "inks.tif").write_bytes(tiff(1, {262: 5, 277: 4}, order, 16))
        said = run("encode", folder / "inks.tif", coded, "-y", code=code)
        check(("of inks (CMYK) with 16 bits" in said) == (code == 5), f"inks with 16 bits, {order}: {said}")
    for told, fields, bits, code in (("in planes", {262: 2, 277: 3}, 16, 5), ("in planes", {262: 5, 277: 4}, 8, 5), ("", {262: 2, 277: 3}, 8, 0)):
        (folder / "planes.tif").write_bytes(tiff(1, {**fields, 284: 2}, ">", bits))
        said = run("encode", folder / "planes.tif", coded, "-y", code=code)
        check(("in planes" in said) == bool(told), f"planes of {fields} with {bits} bits: {said}")
    for i in (1, 3):
        (folder / f"row_{i}.tif").write_bytes(tiff(1, {}))
    (folder / "row_2.tif").write_bytes(tiff(1, cases["in tiles"]))
    check("in tiles" in run("encode", folder / "row_%d.tif", coded, "-y", code=5), "the second of a sequence")
    chunks = b"".join(n + struct.pack("<I", len(d)) + d for n, d in ((b"VP8X", bytes([2]) + bytes(9)), (b"ANIM", bytes(6))))
    (folder / "moves.webp").write_bytes(b"RIFF" + struct.pack("<I", len(chunks) + 4) + b"WEBP" + chunks)
    check("an animation in WebP" in run("encode", folder / "moves.webp", coded, "-y", code=5), "an animation in WebP")
    (folder / "new.tif").write_bytes(tiff(1, {259: 50000}))
    check("Unknown compression" in run("encode", folder / "new.tif", coded, "-y", code=5), "a compression of TIFF")


def test_bgra(folder: Path) -> None:
    """Targa says how many bits of alpha there are, and DirectDraw which colour is first; FFmpeg passes over both."""
    coded, raw = folder / "bgra.tvl", folder / "bgra.raw"
    pixels = bytes(range(7, 7 + 4 * 6))  # 3 x 2, four bytes each
    swapped = b"".join(bytes([p[2], p[1], p[0], p[3]]) for p in (pixels[i : i + 4] for i in range(0, len(pixels), 4)))
    targa = lambda bits: bytes([0, 0, 2]) + bytes(9) + struct.pack("<HHBB", 3, 2, 32, 0x20 | bits) + pixels
    dxgi = lambda kind: (b"DDS " + struct.pack("<7I44x2I4s5I4I4x", 124, 0x1007, 2, 3, 12, 0, 1, 32, 4, b"DX10", 0, 0, 0, 0, 0,
                         0x1000, 0, 0, 0) + struct.pack("<5I", kind, 3, 0, 1, 0) + pixels)  # fmt: skip
    without = lambda rgba: b"".join(rgba[i : i + 3] for i in range(0, len(rgba), 4))
    cases = {"none.tga": (targa(0), "rgb24", without(swapped)), "eight.tga": (targa(8), "rgba", swapped),
             "rgba.dds": (dxgi(28), "rgba", pixels), "srgb.dds": (dxgi(29), "rgba", pixels), "bgra.dds": (dxgi(87), "rgba", swapped),
             "bgrx.dds": (dxgi(88), "rgb24", without(swapped))}  # fmt: skip
    for name, (data, form, wanted) in cases.items():
        (folder / name).write_bytes(data)
        run("encode", folder / name, coded, "-y", "--lossless")
        run("decode", coded, raw, "-y", "--format", "raw", "--pix-fmt", form)
        check(raw.read_bytes() == wanted, f"{name}: {raw.read_bytes().hex()}, not {wanted.hex()}")
        is_opaque = "gbrap" not in run("info", coded, "--json")
        check(is_opaque == (form == "rgb24"), f"{name}: alpha")
    constant = targa(0)[:18] + b"\1\2\3\0" * 6
    for data, is_named in ((targa(0), True), (constant, False), (targa(8), False)):
        (folder / "fourth.tga").write_bytes(data)
        said = run("encode", folder / "fourth.tga", coded, "-y", "--lossless")
        check(("left out: the fourth byte of pixels" in said) == is_named, f"a fourth byte that varies: {said}")
    for kind in (3, 11):
        grey = bytes([0, 0, kind]) + bytes(9) + struct.pack("<HHBB", 3, 2, 16, 0x28) + pixels
        (folder / "grey.tga").write_bytes(grey)
        said = run("encode", folder / "grey.tga", coded, "-y", code=5)
        check("a Targa picture of grey with transparency" in said, f"Targa of two samples: {said}")
    (folder / "a.blp").write_bytes(b"BLP1" + bytes(160) + jpeg(1, folder))
    check("a BLP picture" in run("encode", folder / "a.blp", coded, "-y", code=5), "BLP")
    (folder / "a.wbmp").write_bytes(b"\0\0\x20\x08" + bytes(32))
    check("a WBMP picture" in run("encode", folder / "a.wbmp", coded, "-y", code=5), "WBMP")
    (folder / "a.hdr").write_bytes(b"#?RADIANCE\nFORMAT=32-bit_rle_rgbe\n\n-Y 1 +X 1\n" + bytes(4))
    check("a Radiance picture" in run("encode", folder / "a.hdr", coded, "-y", code=5), "Radiance")


def test_comments(folder: Path) -> None:
    """A comment of a PNM file may follow a number at once."""
    coded, raw = folder / "comment.tvl", folder / "comment.raw"
    samples = bytes(range(30, 42))
    for header in (b"P6\n2 2# two\n255\n", b"P6#\n2#two\n2 255#\n", b"P6\n2 #two\n2\n255\n"):
        (folder / "comment.ppm").write_bytes(header + samples)
        run("encode", folder / "comment.ppm", coded, "-y", "--lossless")
        run("decode", coded, raw, "-y", "--format", "raw", "--pix-fmt", "rgb24")
        check(raw.read_bytes() == samples, f"{header!r}: {raw.read_bytes().hex()}")


def jfif(unit: int, across: int, down: int, folder: Path) -> bytes:
    """JPEG with a density: 0 = only the shape of a pixel, 1 = in inches, 2 = in centimetres."""
    data = jpeg(1, folder)
    at = data.index(b"JFIF\0")
    return data[: at + 7] + struct.pack(">BHH", unit, across, down) + data[at + 12 :]


def said_gif(comments: int, folder: Path, more: bytes = b"") -> bytes:
    ffmpeg("-f", "lavfi", "-i", "testsrc2=size=16x16", "-frames:v", 2, folder / "plain.gif")
    data = (folder / "plain.gif").read_bytes()
    at = 13 + 3 * (2 << (data[10] & 7)) * (data[10] >> 7)
    return data[:at] + more + b"!\xfe\4text\5 more\0" * comments + data[at:]


def jpeg_2000(comment: bytes, folder: Path) -> bytes:
    """A codestream with one comment."""
    ffmpeg("-f", "lavfi", "-i", "testsrc2=size=32x32", "-frames:v", 1, "-pix_fmt", "rgb24", "-c:v", "jpeg2000", "-format", "j2k",
           "-f", "image2pipe", folder / "plain.j2k")  # fmt: skip
    data = (folder / "plain.j2k").read_bytes()
    while (at := data.find(b"\xff\x64", 0, data.index(b"\xff\x90"))) > 0:
        data = data[:at] + data[at + 2 + int.from_bytes(data[at + 2 : at + 4], "big") :]
    at = data.index(b"\xff\x52")
    return data[:at] + b"\xff\x64" + struct.pack(">HH", 4 + len(comment), 1) + comment + data[at:]


def jp2(codestream: bytes) -> bytes:
    def box(name: bytes, content: bytes) -> bytes:
        return struct.pack(">I", 8 + len(content)) + name + content

    header = box(b"ihdr", struct.pack(">IIHBBBB", 32, 32, 3, 7, 7, 0, 0)) + box(b"colr", b"\1\0\0\0\0\0\x10")
    density = box(b"res ", box(b"resc", struct.pack(">HHHHbb", 59055, 1000, 11811, 1000, 2, 3)))
    return (box(b"jP  ", b"\r\n\x87\n") + box(b"ftyp", b"jp2 \0\0\0\0jp2 ") + box(b"jp2h", header + density)
            + box(b"xml ", b"<a/>") + box(b"jp2c", codestream))  # fmt: skip


# A JPEG XL animation of two pictures of 8x8.
MOVING_JXL = base64.b64decode("/wpBBE0AICYIBAEAYABLGIsVwkmC5AVCANj//rcBAQAAAAAAAAAIBAUAYABLGIsVwklDSrxACACQf2UHAAAAGAAAAAA=")


def jxl_boxes(*boxes: tuple) -> bytes:
    """A file of JPEG XL's boxes."""
    all_boxes = (b"ftyp", b"jxl \0\0\0\0jxl "), *boxes
    head = struct.pack(">I4s4s", 12, b"JXL ", b"\r\n\x87\n")
    return head + b"".join(struct.pack(">I4s", 8 + len(data), name) + data for name, data in all_boxes)


def test_names(folder: Path) -> None:
    """Files called .rgb may be pictures of Silicon Graphics. What FFmpeg cannot read is unsupported, not damaged."""
    coded = folder / "named.tvl"
    ffmpeg("-f", "lavfi", "-i", "testsrc2=size=24x16", "-frames:v", 1, "-pix_fmt", "rgb24", folder / "plain.sgi")
    pixels = ffmpeg("-i", folder / "plain.sgi", "-f", "rawvideo", "-pix_fmt", "gbrp", "-").stdout
    picture = folder / "picture.rgb"
    picture.write_bytes((folder / "plain.sgi").read_bytes())
    run("encode", picture, coded, "-y", "--lossless")
    run("decode", coded, folder / "named.yuv", "-y", "--format", "raw")
    check((folder / "named.yuv").read_bytes() == pixels, "a picture called .rgb")
    for command in (["verify", coded, "--against", picture], ["compare", picture, coded, "--min-psnr", "99"]):
        run(*command)
    raw = folder / "raw.rgb"  # of a size that is typed it is raw, whatever its samples are
    raw.write_bytes(b"\x01\xda\1\1\0\3" + bytes(range(6)) * 2)
    run("encode", raw, coded, "-y", "--lossless", "--size", "3x2", "--pix-fmt", "rgb24")
    run("decode", coded, folder / "again.rgb", "-y", "--pix-fmt", "rgb24")
    check((folder / "again.rgb").read_bytes() == raw.read_bytes(), "raw frames that begin as a picture does")

    def unit(*cards: str) -> bytes:
        return b"".join(c.ljust(80).encode() for c in (*cards, "END")).ljust(2880)

    first = unit("SIMPLE  =                    T", "BITPIX  =                    8", "NAXIS   =                    0")
    table = ("XTENSION= 'BINTABLE'", "BITPIX  =                    8", "NAXIS   =                    2",
             "NAXIS1  =                    8", "NAXIS2  =                    2", "PCOUNT  =                 3000",
             "GCOUNT  =                    1", "TFIELDS =                    1", "TFORM1  = '1PB(9)  '")  # fmt: skip
    packed = unit(*table, "ZIMAGE  =                    T", "ZCMPTYPE= 'GZIP_1  '")
    for name, data, told in (("packed", first + packed + bytes(5760), "compressed FITS"),
                             ("table", first + unit(*table) + bytes(5760), "without a picture"), ("none", first, "without a picture")):  # fmt: skip
        (folder / f"{name}.fits").write_bytes(data)
        for command in (["encode", folder / f"{name}.fits", coded, "-y"], ["info", folder / f"{name}.fits"]):
            said = run(*command, code=5)
            check(told in said, f"{command[0]} of FITS, {name}: {said}")
    cards = ("SIMPLE  =                    T", "BITPIX  =                   16", "NAXIS   =                    2",
             "NAXIS1  =                    8", "NAXIS2  =                    2")  # fmt: skip
    (folder / "picture.fits").write_bytes(unit(*cards) + struct.pack(">16h", *range(100, 116)).ljust(2880, b"\0"))
    check("which FFmpeg stretches" in run("encode", folder / "picture.fits", coded, "-y"), "values of FITS")
    rows = bytes([0xFE, 7, 0x80])  # three of a kind, and nothing
    head = b"8BPS\0\1" + bytes(6) + struct.pack(">HIIHH", 3, 2, 3, 8, 3) + bytes(12) + b"\0\1"
    (folder / "nothing.psd").write_bytes(head + b"\0\3" * 6 + rows * 6)
    (folder / "plain.psd").write_bytes(head + b"\0\2" * 6 + rows[:2] * 6)
    said = run("encode", folder / "nothing.psd", coded, "-y", code=5)
    check("reads wrong" in said, f"PackBits that FFmpeg reads wrong: {said}")
    run("encode", folder / "plain.psd", coded, "-y")


def test_jxl(folder: Path) -> None:
    """JPEG XL that FFmpeg does not read is not called damaged, unless a box is cut; what it prints itself is not ours."""
    coded = folder / "unread.tvl"
    for name, data, code in (
        ("unread.jxl", MOVING_JXL[:14] + bytes(54), 5),
        ("boxed.jxl", jxl_boxes((b"jxlc", MOVING_JXL[:14] + bytes(54))), 5),
        ("cut.jxl", jxl_boxes((b"jxlc", MOVING_JXL))[:-54], 4),
    ):
        (folder / name).write_bytes(data)
        said = run("encode", folder / name, coded, "-y", code=code)
        check(("JPEG XL" in said) == (code == 5), f"{name}: {said}")
        check(not any("jxl/" in line for line in said.splitlines()), f"{name}: {said}")


def test_orientations(folder: Path) -> None:
    """The turn of each of EXIF's orientations; of those that mirror, the turn behind the mirroring. A film keeps both, and
    of a picture that has no place for them they are named."""
    ffmpeg("-f", "lavfi", "-i", "testsrc2=size=16x8", "-frames:v", 1, folder / "plain.jpg")
    plain, coded = (folder / "plain.jpg").read_bytes(), folder / "turned.tvl"
    for orientation, turn in enumerate((0, 0, 180, 180, 270, 90, 90, 270), 1):
        exif = b"Exif\0\0MM\0*" + struct.pack(">IHHHIHHI", 8, 1, 274, 3, 1, orientation, 0, 0)
        (folder / "turned.jpg").write_bytes(plain[:2] + b"\xff\xe1" + struct.pack(">H", 2 + len(exif)) + exif + plain[2:])
        said = run("encode", folder / "turned.jpg", coded, "-y")
        check("left out" not in said, f"orientation {orientation}: {said}")
        mirrored = orientation in (2, 4, 5, 7)
        video = json.loads(run("info", "--json", coded))["video"]
        found = video["rotation"], video["mirrored"]
        check(found == (turn, mirrored), f"orientation {orientation}: {found}, not {turn}, {mirrored}")
        run("decode", coded, folder / "turned.mp4", "-y", "--pix-fmt", "auto")
        run("encode", folder / "turned.mp4", folder / "again.tvl", "-y")
        video = json.loads(run("info", "--json", folder / "again.tvl"))["video"]
        found = video["rotation"], video["mirrored"]
        check(found == (turn, mirrored), f"orientation {orientation} by MP4: {found}, not {turn}, {mirrored}")
        said = run("decode", coded, folder / "turned.png", "-y", "--pix-fmt", "auto")
        check(("mirroring" in said) == mirrored and ("rotation" in said) == (turn != 0), f"orientation {orientation}, PNG: {said}")
        tags = exif[6:]
        for name, data in (("t.tif", tiff(1, {274: orientation})), ("t.png", png((b"eXIf", tags))), ("t.webp", webp(exif))):
            (folder / name).write_bytes(data)
            said = run("encode", folder / name, coded, "-y")
            check("rientation" not in said, f"orientation {orientation} of {name}: {said}")
            video = json.loads(run("info", "--json", coded))["video"]
            found = video["rotation"], video["mirrored"]
            check(found == (turn, mirrored), f"orientation {orientation} of {name}: {found}, not {turn}, {mirrored}")


def four_inks(transform: int) -> bytes:
    """A grey JPEG of 8x8 in CMYK (transform 0) or YCCK (2), as Adobe's marker says."""
    def segment(marker: int, body: bytes) -> bytes:
        return bytes([0xFF, marker]) + struct.pack(">H", 2 + len(body)) + body

    inks = b"\1\2\3\4"
    return b"\xff\xd8" + b"".join([
        segment(0xEE, b"Adobe\0\x64" + bytes(4) + bytes([transform])), segment(0xDB, b"\0" + b"\1" * 64),
        segment(0xC0, struct.pack(">BHHB", 8, 8, 8, 4) + b"".join(bytes([i, 0x11, 0]) for i in inks)),
        segment(0xC4, b"\0\1" + bytes(16)), segment(0xC4, b"\x10\1" + bytes(16)),
        segment(0xDA, b"\4" + b"".join(bytes([i, 0]) for i in inks) + b"\0\x3f\0")]) + b"\0\xff\xd9"  # fmt: skip


def test_left_out(folder: Path) -> None:
    """What a picture's file holds beside the samples that FFmpeg gives is named once, by encode and by info."""
    exif = b"MM\0*" + struct.pack(">IHHHIHHI", 8, 1, 274, 3, 1, 6, 0, 0)
    profile = b"p\0\0" + zlib.compress(bytes(128))
    photoshop = b"8BPS\0\1" + bytes(6) + struct.pack(">HIIHH", 4, 3, 4, 8, 4) + bytes(12) + b"\0\0" + bytes(48)
    layers = b"8BPS\0\1" + bytes(6) + struct.pack(">HIIHH", 3, 3, 4, 8, 3) + bytes(4)
    layers += struct.pack(">I4sHHI2sIIh", 14, b"8BIM", 1039, 0, 2, b"ab", 10, 6, -2) + bytes(4) + b"\0\0" + bytes(36)
    described = b"8BPS\0\1" + bytes(6) + struct.pack(">HIIHH", 3, 3, 4, 8, 3) + bytes(4)
    described += struct.pack(">I", 42) + b"".join(struct.pack(">4sHHI2s", b"8BIM", n, 0, 2, b"ab") for n in (1028, 1058, 1060))
    described += bytes(4) + b"\0\0" + bytes(36)
    cmyk = "CMYK, of which FFmpeg makes RGB"
    ffmpeg("-f", "lavfi", "-i", "testsrc2=size=16x16", "-frames:v", 1, folder / "still.jxl")
    still = (folder / "still.jxl").read_bytes()
    ffmpeg("-f", "lavfi", "-i", "testsrc2=size=16x16", "-frames:v", 1, folder / "plain.pcx")
    dense = (folder / "plain.pcx").read_bytes()
    dense = dense[:12] + struct.pack("<HH", 100, 100) + dense[16:]
    ffmpeg("-f", "lavfi", "-i", "testsrc2=size=16x16", "-frames:v", 1, folder / "upright.jpg")
    upright = (folder / "upright.jpg").read_bytes()
    turned = [upright[:2] + b"\xff\xe1" + struct.pack(">H", 8 + len(e)) + b"Exif\0\0" + e + upright[2:]
              for e in (exif, exif.replace(b"\0\6", b"\0\7"))]  # fmt: skip
    cases = {
        "one.tif": (tiff(1, {274: 1}), ""),
        "three.tif": (tiff(3, {}), "2 more pictures"),
        "two.tif": (tiff(2, {274: 6}, ">"), "1 more picture"),
        "cmyk.tif": (tiff(1, {262: 5, 277: 4}), cmyk),
        "cmyk.psd": (photoshop, cmyk),
        "cmyk.jpg": (four_inks(0), cmyk),
        "ycck.jpg": (four_inks(2), cmyk),
        "plain.png": (png(), ""),
        "turned.png": (png((b"eXIf", exif)), ""),
        "profile.png": (png((b"iCCP", profile), (b"tEXt", b"Title\0A picture")), "colour profile (ICC, 128 bytes), the text Title"),
        "turned.jpg": (turned[0], ""),  # kept as the rotation of the stream
        "mirrored.jpg": (turned[1], ""),
        "mask.ico": (icon(24), "transparency (its mask)"),
        "palette.ico": (icon(8), "transparency (its mask)"),
        "turned.webp": (webp(b"Exif\0\0" + exif), ""),
        "moved.png": (animation(False), ""),
        "shown.png": (animation(True), "the default picture, which is not part of the animation"),
        "one.jpg": (jpeg(1, folder), ""),
        "two.jpg": (jpeg(2, folder), "1 more picture"),
        "said.jpg": (b"\xff\xd8\xff\xfe\0\4hi" + jpeg(1, folder)[2:], "comment"),
        "layers.psd": (layers, "colour profile (ICC, 2 bytes), 2 layers, of which it is the sum"),
        "described.psd": (described, "IPTC, Exif, XMP"),
        "xmp.tif": (tiff(1, {700: 1, 277: 4, 338: 1}), "that the colours are premultiplied by alpha, XMP"),
        "three.mpo": (jpeg(3, folder), "2 more pictures"),
        "dense.jpg": (jfif(1, 300, 150, folder), "density (300x150 dpi)"),
        "metric.jpg": (jfif(2, 118, 118, folder), "density (300 dpi)"),
        "aspect.jpg": (jfif(0, 3, 2, folder), ""),  # kept as the shape of a pixel
        "usual.jpg": (jfif(1, 72, 72, folder), ""),
        "dense.png": (png((b"pHYs", struct.pack(">IIB", 11811, 11811, 1))), "density (300 dpi)"),
        "wide.png": (png((b"cHRM", struct.pack(">8I", 31270, 32900, 68000, 32000, 26500, 69000, 15000, 6000))),
                     "the chromaticities of its colours"),
        "usual.png": (png((b"cHRM", struct.pack(">8I", 31269, 32899, 63999, 33001, 30000, 60000, 15000, 5999))), ""),
        "dense.tif": (tiff(1, {282: [(600, 2)], 283: [(300, 1)], 296: 2}), "density (300 dpi)"),
        "metric.tif": (tiff(1, {282: [(100, 1)], 283: [(50, 1)], 296: 3}, ">"), "density (254x127 dpi)"),
        "usual.tif": (tiff(1, {282: [(1, 1)], 283: [(1, 1)], 296: 1}), ""),
        "bt709.tif": (tiff(1, {262: 6, 529: [(2126, 10000), (7152, 10000), (722, 10000)], 531: 2}),
                      "YCbCr coefficients, YCbCr positioning"),
        "studio.tif": (tiff(1, {262: 6, 532: [(v, 1) for v in (16, 235, 128, 240, 128, 240)]}), "reference black and white"),
        "bt601.tif": (tiff(1, {262: 6, 529: [(299, 1000), (587, 1000), (114, 1000)], 531: 1}), ""),
        "srgb.png": (png((b"sRGB", b"\0")), ""),  # kept as the colours of the stream
        "absolute.png": (png((b"sRGB", b"\3")), "rendering intent (absolute)"),
        "clear.png": (png((b"tRNS", b"\0\1"), bits=1), "transparency (tRNS)"),
        "said.gif": (said_gif(1, folder), "comment"),
        "said_twice.gif": (said_gif(2, folder), "2 comments"),
        "silent.gif": (said_gif(0, folder), ""),
        "thrice.gif": (said_gif(0, folder).replace(b"NETSCAPE2.0\3\1\0\0", b"NETSCAPE2.0\3\1\2\0"), "that it is shown 3 times"),
        "twice.png": (animation(False, 2), "that it is shown 2 times"),
        "fields.gif": (said_gif(1, folder, b"".join(b"!\xff\x0b" + name + b"\4text\0" for name in (
            b"XMP DataXMP", b"ICCRGBG1012", b"PROGRAM 1.0"))), "XMP, colour profile (ICC), fields of a program (PROGRAM ), comment"),
        "repeated.gif": (said_gif(0, folder, b"!\xff\x0bPROGRAM 1.0\4text\0" * 3), "fields of a program (PROGRAM )"),
        "chunks.png": (png((b"tIME", bytes([7, 232, 1, 2, 3, 4, 5])), (b"bKGD", b"\0\1"), (b"oFFs", bytes(9))),
                       "date (tIME), background colour (bKGD), offset (oFFs)"),
        "said.j2k": (jpeg_2000(b"A comment", folder), "comment"),
        "encoder.j2k": (jpeg_2000(b"Created by OpenJPEG version 2.5.0", folder), ""),
        "said.jp2": (jp2(jpeg_2000(b"A comment", folder)), "density (300x150 dpi), XML, comment"),
        "itxt.png": (png((b"iTXt", b"XML:com.adobe.xmp\0\0\0\0\0<a/>"), (b"iTXt", b"Title\0\0\0\0\0A picture")),
                     "XMP, the text Title"),
        "extra.tif": (tiff(1, {277: 4, 338: 0}), "that its last sample is not said to be transparency"),
        "alpha.tif": (tiff(1, {277: 4, 338: 2}), ""),
        "dense.pcx": (dense, "density (100 dpi)"),
        "plain.bmp": (bmp(0, 8, bytes(16)), ""),
        "four.bmp": (bmp(0, 32, b"\1\2\3\x80" * 16), "that its fourth byte is not said to be transparency"),
        "three.bmp": (bmp(0, 32, b"\1\2\3\0" * 16), ""),
        "masks.bmp": (masked(bytes(range(64))), "the fourth byte of pixels, which is not said to be transparency"),
        "masks_0.bmp": (masked(b"\1\2\3\0" * 16), ""),
        "dense.bmp": (bmp(0, 8, bytes(16), dense=11811), "density (300 dpi)"),
        "profile.bmp": (bmp(0, 8, bytes(16), profile=20), "colour profile (ICC, 20 bytes)"),
        "moving.jxl": (MOVING_JXL, "the pictures of the animation behind the first"),
        "moving_in_parts.jxl": (jxl_boxes((b"jxlp", bytes(4) + MOVING_JXL[:44]), (b"jxlp", b"\x80\0\0\1" + MOVING_JXL[44:])),
                                "the pictures of the animation behind the first"),
        "said.jxl": (jxl_boxes((b"Exif", bytes(4) + exif), (b"jxlc", still), (b"xml ", b"<a/>")), "Exif, XMP"),
        "packed.jxl": (jxl_boxes((b"jxlc", still), (b"brob", b"Exif" + bytes(9))), "Exif"),
        "still.jxl": (still, ""),
    }  # fmt: skip
    coded = folder / "left_out.tvl"
    for name, (data, _) in cases.items():
        (folder / name).write_bytes(data)
    run("encode", *(folder / name for name in cases), "--out-dir", folder / "coded", "--lossless", "--report", folder / "report")
    encoded = {Path(f["input"]).name: f["warnings"] for f in json.loads((folder / "report").read_text())["files"]}
    said = [w for w in run("encode", folder / "said.jpg", coded, "-y", "--lossless").splitlines() if "warning" in w]
    check(len(said) == 1 and said[0].endswith(encoded["said.jpg"][0]), f"a warning is printed: {said}")
    for name, (_, told) in cases.items():
        warnings = json.loads(run("info", folder / name, "--json", "--quiet"))["warnings"]
        for which in (encoded[name], warnings):
            found = [w.split("left out: ")[1] for w in which if "left out: " in w]
            check(found == ([told] if told else []), f"{name}: {which}")
    for name, chunks, codes in (("srgb", ((b"sRGB", b"\0"),), [1, 13]), ("p3", ((b"sRGB", b"\0"), (b"cICP", b"\x0c\x0d\0\1")), [12, 13]),
                                ("profile", ((b"iCCP", profile), (b"sRGB", b"\0")), [2, 2])):  # fmt: skip
        (folder / "named.png").write_bytes(png(*chunks))
        run("encode", folder / "named.png", coded, "-y", "--lossless")
        colours = json.loads(run("info", coded, "--json"))["video"]["colour"]
        check([colours["primaries"], colours["transfer"]] == codes, f"colours of PNG, {name}: {colours}")
        if name == "srgb":
            said = run("decode", coded, folder / "back.png", "-y")
            check(b"sRGB" in (folder / "back.png").read_bytes(), f"PNG gets its colours again: {said}")
    ffmpeg("-f", "lavfi", "-i", "testsrc2=size=16x16", "-frames:v", 1, "-pix_fmt", "rgb24", "-compression_algo", "raw",
           folder / "strip.tif")  # fmt: skip
    data = (folder / "strip.tif").read_bytes()
    count = struct.pack("<HHI", 279, 4, 1)  # bytes of its only strip
    check(data.count(count) == 1, "the strip of a TIFF")
    at = data.index(count) + 8
    (folder / "short.tif").write_bytes(data[:at] + struct.pack("<I", 254) + data[at + 4 :])
    run("encode", folder / "strip.tif", coded, "-y")
    said = run("encode", folder / "short.tif", coded, "-y", code=5)
    check("whose strip is shorter than its lines" in said, f"TIFF of which FFmpeg leaves lines black: {said}")
    data = tiff(3, {})
    for size in range(0, len(data), 29):  # no directory leads astray
        (folder / "cut.tif").write_bytes(data[:size])
        result = program.process(program.path, "encode", folder / "cut.tif", coded, "-y")
        check(result.returncode in (0, 4, 5), f"{size} bytes of a TIFF: {result.returncode} {result.stderr.decode()}")
    for name in ("big.tif", "big.other"):  # as much as tells what it is
        (folder / name).write_bytes(b"II+\0\x08\0\0\0\x10" + bytes(100))
        said = run("encode", folder / name, coded, "-y", code=5)
        check("BigTIFF" in said and "tiffcp" in said, f"BigTIFF is not damage: {said}")
    said = run("encode", "-", coded, "-y", code=5, stdin=tiff(2, {}))
    check("from files alone" in said, f"pictures that FFmpeg reads from no pipe: {said}")
    ffmpeg("-f", "lavfi", "-i", "color=size=4x3,format=gray", "-frames:v", 1, folder / "small.png")
    for side, code in ((20000, 5), (1 << 30, 4)):  # larger than FFmpeg reads, and than any picture is
        head = b"IHDR" + struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)
        whole = (folder / "small.png").read_bytes()
        (folder / "huge.png").write_bytes(whole[:12] + head + struct.pack(">I", zlib.crc32(head)) + whole[33:])
        said = run("encode", folder / "huge.png", coded, "-y", code=code)
        check(f"{side}x{side}" in said and ("damaged" in said) == (code == 4), f"a PNG of {side} pixels: {said}")
    (folder / "lab.tif").write_bytes(tiff(1, {262: 8}))
    said = run("encode", folder / "lab.tif", coded, "-y", code=5)
    check("decoder does not read it" in said and "damaged" not in said, f"what FFmpeg does not decode is not damaged: {said}")


def bmp(coding: int, bits: int, data: bytes, height: int = 4, dense: int = 0, profile: int = 0) -> bytes:
    """A BMP of 4 pixels a line with a grey palette; `profile`: bytes of a colour profile behind."""
    size = 124 if profile else 40
    colours = 1 << bits if bits <= 8 else 0
    at = 14 + size + 4 * colours
    head = struct.pack("<2sIHHI", b"BM", at + len(data), 0, 0, at)
    head += struct.pack("<IiiHHIIiiII", size, 4, height, 1, bits, coding, len(data), dense, dense, colours, 0)
    if profile:
        head += bytes(16) + b"DEBM" + bytes(48) + struct.pack("<IIII", 4, size + 4 * colours + len(data), profile, 0)
    return head + b"".join(bytes([255 * i // (colours - 1)] * 3 + [0]) for i in range(colours)) + data + bytes(profile)


def masked(data: bytes) -> bytes:
    """A BMP of 4 x 4 pixels of 32 bits with masks of red, green and blue, and none of transparency."""
    plain = bmp(3, 32, struct.pack("<III", 0xFF0000, 0xFF00, 0xFF) + data)
    return plain[:10] + struct.pack("<I", 14 + 40 + 12) + plain[14:]


def test_pnm(folder: Path) -> None:
    """White that is not the greatest number of its bits is named; line breaks at the end are no picture."""
    path, coded = folder / "a.pgm", folder / "pgm.tvl"
    for greatest, end, told in ((255, b"", False), (255, b"\n", False), (255, b" \r\n\n", False), (200, b"", True), (1023, b"", False)):
        path.write_bytes(b"P5\n4 1\n%d\n" % greatest + b"\0\1\0\1\0\1\0\1"[: 8 if greatest > 255 else 4] + end)
        said = run("encode", path, coded, "-y", "--lossless")
        check(("that of white, is 200" in said) == told, f"a greatest value of {greatest}: {said}")
        check(json.loads(run("info", "--json", coded))["video"]["frames"] == 1, f"an end of {end!r}")
    path.write_bytes(b"P5\n4 1\n255\n1234\nP")
    run("encode", path, coded, "-y", code=4)


def test_bilevel(folder: Path) -> None:
    """Pictures in black and white become such files again; what has greys is refused."""
    bits, coded = bytes([0xA5, 0x80, 0x3C, 0, 0xFF, 0x80]), folder / "bilevel.tvl"  # nine pixels a line, 1 is black
    (folder / "bits.pbm").write_bytes(b"P4\n9 3\n" + bits)
    run("encode", folder / "bits.pbm", coded, "-y", "--lossless")
    for options in ([], ["--pix-fmt", "auto"]):
        run("decode", coded, folder / "again.pbm", "-y", *options)
        check((folder / "again.pbm").read_bytes() == b"P4\n9 3\n" + bits, f"black and white {options}")
    for options, suffix in (["--lossless"], "pbm"), ([], "pgm"):  # with loss it has greys
        shutil.rmtree(folder / "of_bits", ignore_errors=True)
        run("encode", folder / "bits.pbm", "--out-dir", folder / "of_bits", *options)
        run("decode", folder / "of_bits" / "bits.pbm.tvl", "--out-dir", folder / "of_bits")
        check((folder / "of_bits" / f"bits.{suffix}").exists(), f"the name of an output: {list((folder / 'of_bits').iterdir())}")
    ffmpeg("-i", folder / "bits.pbm", folder / "bits.xbm")
    run("decode", coded, folder / "again.xbm", "-y")
    wanted, found = (ffmpeg("-i", folder / name, "-pix_fmt", "gray", "-f", "md5", "-").stdout for name in ("bits.xbm", "again.xbm"))
    check(wanted == found, "black and white in XBM")
    (folder / "greys.pgm").write_bytes(b"P5\n4 1\n255\n\0\xff\x80\xff")
    run("encode", folder / "greys.pgm", coded, "-y", "--lossless")
    said = run("decode", coded, folder / "greys.pbm", "-y", code=5)
    check("holds black and white only" in said and not (folder / "greys.pbm").exists(), f"greys in PBM: {said}")


def test_odd_depths(folder: Path) -> None:
    """Of depths for which FFmpeg has no pixels, --pix-fmt writes wider ones, with values times a power of two, or
    of few bits times what makes white of white."""
    coded, out, raw = folder / "deep.tvl", folder / "deep.mkv", folder / "deep.raw"
    for bits in (1, 4, 7, 11, 13, 15):
        most = (1 << bits) - 1
        values = [most * i // 255 for i in range(256)]
        (folder / "deep.pgm").write_bytes(
            b"P5\n16 16\n%d\n" % most + b"".join(v.to_bytes(1 + (most > 255), "big") for v in values))
        run("encode", folder / "deep.pgm", coded, "-y", "--lossless")
        said = run("decode", coded, out, "-y", code=5)
        check("--pix-fmt auto" in said, f"{bits} bits: {said}")
        for name, wide, options in (("deep.mkv", {11: 12}.get(bits, 8 if bits < 8 else 16), ("auto",)),
                                    ("deep.png", 8 if bits < 8 else 16, ("auto",)), ("deep.mkv", 16, ("gray16le",)),
                                    ("d%02d.tif", 8 if bits < 8 else 16, ("auto",))):  # fmt: skip
            said = run("decode", coded, folder / name, "-y", "--pix-fmt", *options)
            found = ffmpeg("-i", folder / name, "-f", "rawvideo", "-pix_fmt", "gray" if wide == 8 else "gray16le", "-").stdout
            found = list(found) if wide == 8 else list(struct.unpack("<256H", found))
            # 12 bits come as 16 from FFmpeg, which repeats the upper bits in the lower ones.
            times, shift = 1 << (wide - bits), 16 - wide if wide == 12 else 0
            if bits < 7:
                times = ((1 << wide) - 1) // most
            check([v >> shift for v in found] == [v * times for v in values], f"{bits} bits as {name}, {options}: {found[-4:]}")
            if options == ("auto",):
                check(f"of {wide} bits, every value times {times}" in said, f"{bits} bits as {name}: {said}")
    run("decode", coded, raw, "-y")
    check(len(raw.read_bytes()) == 512, "raw samples are as they are")


def test_bmp(folder: Path) -> None:
    """Lines that are missing from runs are damage; FFmpeg makes black ones."""
    path, coded = folder / "runs.bmp", folder / "runs.tvl"
    line, end = b"\4\1\0\0", b"\0\1"
    for name, runs, code in (
        ("whole", 4 * line + end, 0), ("without an end", 4 * line, 0), ("without the last code", 3 * line + b"\4\1", 0),
        ("moved", line + b"\0\2\0\3\4\1", 0), ("ended early", line + end, 0),
        ("as they are", 3 * (b"\0\4\1\2\3\4\0\0") + b"\0\3\0\0\0\0" + end, 0), ("cut", 2 * line, 4),
        ("cut in a line", line + b"\4\1", 4)):  # fmt: skip
        path.write_bytes(bmp(1, 8, runs))
        said = run("encode", path, coded, "-y", code=code)
        check(("before its last line" in said) == (code == 4), f"runs, {name}: {said}")
    path.write_bytes(bmp(2, 4, 4 * b"\4\x12\0\0" + end))
    run("encode", path, coded, "-y")
    path.write_bytes(bmp(2, 4, b"\0\4\x12\x34\0\0"))
    run("encode", path, coded, "-y", code=4)
    run("encode", path, coded, "-y", "--recover")
    # Bits of colours that FFmpeg does not know are no damage; masks that make no sense are.
    for name, header, bits, masks, code in (
        ("usual", 40, 32, (0xFF0000, 0xFF00, 0xFF), 0), ("alpha", 56, 32, (0xFF0000, 0xFF00, 0xFF, 0xFF000000), 0),
        ("ten bits", 56, 32, (0x3FF00000, 0xFFC00, 0x3FF, 0xC0000000), 5), ("V5", 124, 32, (0xFF00, 0xFF0000, 0xFF, 0), 5),
        ("four each", 56, 16, (0xF00, 0xF0, 0xF, 0xF000), 0), ("no alpha", 56, 16, (0xF00, 0xF0, 0xF, 0), 0),
        ("high nibbles", 40, 16, (0xF000, 0xF00, 0xF0), 5), ("none", 40, 32, (0, 0, 0), 4),
        ("one in the other", 40, 32, (0xFF00, 0xFF00, 0xFF), 4), ("Huffman", 64, 1, (0, 0, 0), 5)):  # fmt: skip
        head = struct.pack("<IiiHHIIiiII", header, 4, 4, 1, bits, 3, 64, 0, 0, 0, 0) + struct.pack(f"<{len(masks)}I", *masks)
        head = head.ljust(header, b"\0")
        path.write_bytes(struct.pack("<2sIHHI", b"BM", 78 + len(head), 0, 0, 14 + len(head)) + head + bytes(range(64)))
        said = run("encode", path, coded, "-y", code=code)
        check(("which FFmpeg does not read" in said) == (code == 5), f"bits of colours, {name}: {said}")
        check(("left out: transparency" in said) == (name == "four each"), f"bits of alpha, {name}: {said}")


def test_damaged(folder: Path) -> None:
    """What FFmpeg's decoder of JPEG cannot read it leaves black."""
    path, coded = folder / "scan.jpg", folder / "scan.tvl"
    ffmpeg("-f", "lavfi", "-i", "testsrc2=size=160x96", "-frames:v", 1, path)
    whole = path.read_bytes()
    begin = whole.index(b"\xff\xda") + 14
    for place in (0.25, 0.5, 0.75):
        at = begin + int(place * (len(whole) - begin))
        path.write_bytes(whole[:at] + b"\xbf" * 60 + whole[at + 60 :])
        said = run("encode", path, coded, "-y", code=4)
        check("is damaged or missing" in said and not coded.exists(), f"a scan damaged at {place}: {said}")
        path.write_bytes(whole[:at])
        run("encode", path, coded, "-y", code=4)
    # Decoders return -1 for such a picture, which is no error of the system (exit code 3).
    screen, image = struct.pack("<HHBBB", 4, 4, 0x80, 0, 0) + b"\0\0\0\xff\xff\xff", struct.pack("<BHHHHB", 0x2C, 0, 0, 4, 4, 0)
    (folder / "codes.gif").write_bytes(b"GIF89a" + screen + image + b"\x0d\4\x84\x8f\xa9\xcb\0;")
    said = run("encode", folder / "codes.gif", coded, "-y", code=4)
    check("is damaged or missing" in said, f"codes of 13 bits in a GIF: {said}")
    nested = folder / "nested.jp2"  # boxes in boxes, deeper than any stack
    count = 200_000
    boxes = b"".join(struct.pack(">I4s", 8 * (count - i), b"jp2h") for i in range(count))
    nested.write_bytes(struct.pack(">I4s4s", 12, b"jP  ", b"\r\n\x87\n") + boxes)
    run("encode", nested, coded, "-y", code=4)


def test_grey(folder: Path) -> None:
    """Grey of a picture has all values, also where its file does not say so; outputs of YCbCr do not take it for luma."""
    coded = folder / "ramp.tvl"
    (folder / "ramp.pgm").write_bytes(b"P5\n256 64\n255\n" + bytes(range(256)) * 64)
    for source in ("ramp.pgm", "ramp.tif", "ramp.tga", "ramp.jp2"):
        if source != "ramp.pgm":
            ffmpeg("-i", folder / "ramp.pgm", "-pix_fmt", "gray", folder / source)
        run("encode", folder / source, coded, "-y", "--lossless")
        told = json.loads(run("info", coded, "--json"))["video"]
        check((told["pixel_format"], told["colour"]["range"]) == ("gray", "full"), f"{source}: {told}")
        for name in ("back.mp4", "back.jpg", "back.png", "back.webp"):
            said = run("decode", coded, folder / name, "-y", "--pix-fmt", "auto")
            row = ffmpeg("-i", folder / name, "-vf", "format=gray", "-f", "rawvideo", "-").stdout[256 * 10 : 256 * 11]
            wrong = max(abs(value - i) for i, value in enumerate(row))
            check(len(row) == 256 and wrong <= 8, f"{source} to {name}: values differ by up to {wrong}: {said}")


def test_piped(folder: Path) -> None:
    """A picture's stream takes as much memory from a pipe as from a file: nothing moves in it."""
    picture, coded = folder / "large.png", folder / "large.tvl"
    ffmpeg("-f", "lavfi", "-i", "color=size=800x600", "-frames:v", 1, "-pix_fmt", "rgba", picture)
    for options in (["--motion", "on"], ["--lossless"]):
        run("encode", picture, coded, "-y", *options)
        needed = []
        for source, data in ((coded, b""), ("-", coded.read_bytes())):
            said = run("decode", source, folder / "large.mkv", "-y", "--max-memory", "100k", code=5, stdin=data)
            needed.append(re.search(r"needs about (\d+ \S+);", said)[1])
        check(needed[0] == needed[1], f"{options}: memory from a file and from a pipe: {needed}")


def main() -> int:
    program.path = os.path.abspath(sys.argv[1])
    if not program.has_ffmpeg():
        return 77
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        clips = {}
        for clip, pixels in (("yuv", "yuv420p"), ("rgba", "gbrap"), ("deep", "yuv444p10le")):
            clips[clip] = folder / f"{clip}.mkv"
            ffmpeg("-f", "lavfi", "-i", f"testsrc2=size=98x66:rate=25:duration={FRAMES / 25}", "-pix_fmt", pixels,
                   "-c:v", "ffv1", clips[clip])  # fmt: skip
            run("encode", clips[clip], folder / f"{clip}.tvl", "--lossless")
        test_formats(folder, clips)
        test_sequences(folder, clips)
        test_orientations(folder)
        test_jxl(folder)
        test_left_out(folder)
        test_names(folder)
        test_misread(folder)
        test_bgra(folder)
        test_comments(folder)
        test_pnm(folder)
        test_bilevel(folder)
        test_odd_depths(folder)
        test_bmp(folder)
        test_damaged(folder)
        test_grey(folder)
        test_piped(folder)
    print("failed" if failures else "passed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
