#!/usr/bin/env python3
"""Every layout of samples in a DICOM file: transfer syntaxes, bits allocated and stored, signs, colours, planes,
frames, bits beside the values. Files are made here; what decoding gives must be the values that went in, and the DICOM
file the same again or, where pixels were compressed, one with the same attributes. A sample of all, or with
TRIVELET_FULL=1 each. JPEG and JPEG-LS are coded by DCMTK's dcmcjpeg and dcmcjpls, where they are.

    dicom_matrix_test.py TRIVELET
"""
import base64
import itertools
import json
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path

try:
    import numpy as np
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import program  # noqa: E402
from program import check, run  # noqa: E402

program.path = sys.argv[1]
ROWS, COLUMNS = 6, 10
ROOT = "1.2.840.10008.1.2"
IMPLICIT, EXPLICIT, BIG, DEFLATED, RUNS = ROOT, ROOT + ".1", ROOT + ".2", ROOT + ".1.99", ROOT + ".5"
# The values of test_without_identifiers(), coded by CharLS.
JPEG_LS = "/9j/9wALCAAGAAoBAREA/9oACAEBAAAAAIoCgAUAAFNxS9k0vgAAYwDAAYKExIAABQ4AAAwAAGQ4qePkmPCgo5pE0bI5GaExMjHSxHclyPCTLaILAqUIsP/Z"
# The values of test_numbers_beyond_bits_stored(), by FFmpeg's encoder of JPEG 2000 with the 9/7 wavelet, 16 bits.
JPEG_2000 = (
    "/0//UQApAAAAAAAKAAAABgAAAAAAAAAAAAAAEAAAABAAAAAAAAAAAAABDwEB/1IADAAAAAEABgICAAD/XAApIr8gvuC+4L6gtvC28LbArwCvAK7gp1CnUKdokAWQBZBHl9OX05di/2QAEQABTGF2YzU5Lj"
    "M3LjEwMP+QAAoAAAAAAGoAAf+Tz/zAEAmVkT8AAMAAHyAQAsAAPkAwAAfCHAAPqAgJCP9/Ac/AA+EKAA+UFAA+oDAHbQoEBKg/wAfEEgD6w+AB8QgG+pq/Db2OtStorfKiDSCGkUmvIk8jQ5tLC3//2Q==")
TOOLS = {"jpeg": ["dcmcjpeg", "+e1"], "jpeg-ls": ["dcmcjpls", "+el"]}  # lossless


def element(group, number, vr, value, syntax):
    order = ">" if syntax == BIG and group != 2 else "<"
    value += (b"\0" if vr in ("UI", "OB", "OW") else b" ") * (len(value) % 2)
    head = struct.pack(order + "HH", group, number)
    if syntax == IMPLICIT and group != 2:
        return head + struct.pack("<I", len(value)) + value
    length = struct.pack(order + "HI", 0, len(value)) if vr in ("OB", "OW") else struct.pack(order + "H", len(value))
    return head + vr.encode() + length + value


def packed_runs(row):
    """PS3.5 G.3: repeats and literals."""
    out, at = b"", 0
    while at < len(row):
        run_ = 1
        while at + run_ < len(row) and run_ < 128 and row[at + run_] == row[at]:
            run_ += 1
        if run_ > 1:
            out += bytes([257 - run_, row[at]])
            at += run_
            continue
        end = at + 1
        while end < len(row) and end - at < 128 and (end + 1 >= len(row) or row[end] != row[end + 1]):
            end += 1
        out += bytes([end - at - 1]) + row[at:end]
        at = end
    return out + b"\0" * (len(out) % 2)


def run_length_frame(words):
    """`words`: unsigned, (pixels, samples)."""
    size = words.dtype.itemsize
    segments = [packed_runs(((words[:, c] >> (8 * b)) & 255).astype("u1").tobytes())
                for c in range(words.shape[1]) for b in reversed(range(size))]
    starts = [64 + sum(map(len, segments[:i])) for i in range(len(segments))]
    return struct.pack("<16I", len(segments), *(starts + [0] * (15 - len(starts)))) + b"".join(segments)


def encapsulated(frames):
    item = lambda data: struct.pack("<HHI", 0xFFFE, 0xE000, len(data)) + data
    return (struct.pack("<HH2sHI", 0x7FE0, 0x10, b"OB", 0, 0xFFFFFFFF) + item(b"") + b"".join(map(item, frames)) +
            struct.pack("<HHI", 0xFFFE, 0xE0DD, 0))


class Case:
    def __init__(self, syntax, allocated, stored, top, signed, samples, planar, frames, beside):
        self.__dict__.update({k: v for k, v in locals().items() if k != "self"})

    def name(self):
        return (f"{self.syntax} {self.stored} of {self.allocated} bits{' at the top' if self.top else ''}"
                f"{' signed' if self.signed else ''}, {self.samples} samples{' in planes' if self.planar else ''}, "
                f"{self.frames} frames, beside: {self.beside}")

    def exists(self):
        """Whether the standard, or the coder, has it."""
        if self.planar and self.samples == 1:
            return False
        if self.stored == self.allocated and (self.top or self.beside != "zeros"):
            return False
        if self.beside == "signs" and (not self.signed or self.top):
            return False
        if self.samples == 3 and (self.signed or self.allocated == 32):
            return False
        if self.syntax in TOOLS:
            # DCMTK codes what is there without bits beside it, 16 bits of a sample at most.
            return (self.allocated < 32 and not self.top and self.beside == "zeros" and not self.signed and
                    (self.samples == 1 or self.allocated == 8) and not self.planar)
        return True

    def make(self, seed):
        """The values, (frames, rows, columns, samples), and the file."""
        rng = np.random.default_rng(seed)
        low = -(1 << (self.stored - 1)) if self.signed else 0
        shape = (self.frames, ROWS, COLUMNS, self.samples)
        values = rng.integers(low, low + (1 << self.stored), shape, dtype="i8")
        values[:, 1:3] = values[:, :1]  # something to repeat
        words = (values & ((1 << self.stored) - 1)) << (self.allocated - self.stored if self.top else 0)
        if self.beside == "signs":
            words = values & ((1 << self.allocated) - 1)
        if self.beside == "overlay":
            unused = ((1 << self.allocated) - 1) ^ (((1 << self.stored) - 1) << (self.allocated - self.stored if self.top else 0))
            words = words | (rng.integers(0, 1 << self.allocated, shape, dtype="i8") & unused * (rng.random(shape) < 0.2))
        uid = {IMPLICIT: IMPLICIT, BIG: BIG, DEFLATED: DEFLATED, RUNS: RUNS}.get(self.syntax, EXPLICIT)
        return values, self.file(uid, words.astype(f"u{self.allocated // 8}"))

    def file(self, syntax, words):
        short = lambda e, v: element(0x28, e, "US", struct.pack((">" if syntax == BIG else "<") + "H", v), syntax)
        text = lambda g, e, vr, v: element(g, e, vr, v.encode(), syntax)
        meta = b"".join([text(2, 2, "UI", "1.2.840.10008.5.1.4.1.1.7"), text(2, 3, "UI", "1.2.3.4.5"), text(2, 0x10, "UI", syntax),
                         text(2, 0x12, "UI", "1.2.3.4")])
        version = struct.pack("<HH2sHI", 2, 1, b"OB", 0, 2) + b"\0\1"
        meta = element(2, 0, "UL", struct.pack("<I", len(version + meta)), syntax) + version + meta
        data = b"".join([
            text(8, 0x16, "UI", "1.2.840.10008.5.1.4.1.1.7"), text(8, 0x18, "UI", "1.2.3.4.5"), text(0x10, 0x10, "PN", "Doe^Jane"),
            text(0x20, 0xD, "UI", "1.2.3.6"), text(0x20, 0xE, "UI", "1.2.3.7"), short(2, self.samples),
            text(0x28, 4, "CS", "RGB" if self.samples == 3 else "MONOCHROME2"), short(6, self.planar) if self.samples == 3 else b"",
            text(0x28, 8, "IS", str(self.frames)), short(0x10, ROWS), short(0x11, COLUMNS), short(0x100, self.allocated),
            short(0x101, self.stored), short(0x102, (self.allocated if self.top else self.stored) - 1),
            short(0x103, int(self.signed))])
        if syntax == RUNS:
            data += encapsulated([run_length_frame(f.reshape(-1, self.samples)) for f in words])
        else:
            pixels = words.transpose(0, 3, 1, 2) if self.planar else words
            raw = pixels.astype(pixels.dtype.newbyteorder(">" if syntax == BIG else "<")).tobytes()
            if syntax == BIG and self.allocated == 8:  # OW: two samples to a word
                raw = np.frombuffer(raw, "u2").byteswap().tobytes()
            data += element(0x7FE0, 0x10, "OW", raw, syntax)
        data += element(0xFFFC, 0xFFFC, "OB", b"end", syntax)
        if syntax == DEFLATED:
            packer = zlib.compressobj(wbits=-15)
            data = packer.compress(data) + packer.flush()
        return bytes(128) + b"DICM" + meta + data


def all_cases():
    syntaxes = [IMPLICIT, EXPLICIT, BIG, DEFLATED, RUNS] + [t for t, c in TOOLS.items() if shutil.which(c[0])]
    for syntax, (allocated, stored), top, signed, samples, planar, frames, beside in itertools.product(
            syntaxes, [(8, 8), (8, 6), (16, 16), (16, 12), (16, 9), (32, 32), (32, 20)], [False, True], [False, True], [1, 3],
            [0, 1], [1, 3], ["zeros", "signs", "overlay"]):
        case = Case(syntax, allocated, stored, top, signed, samples, planar, frames, beside)
        if case.exists():
            yield case


def attributes(path):
    import pydicom
    ds = pydicom.dcmread(path)
    return {e.tag: e.value for e in ds if e.tag not in (0x7FE00010, 0x00280006)}


def try_case(folder, case, seed, with_pydicom):
    values, data = case.make(seed)
    path, coded, again, raw = (
        os.path.join(folder, n) for n in ("a.dcm" if seed % 2 else "IM000001", "a.tvl", "again.dcm", "a.raw"))
    with open(path, "wb") as f:
        f.write(data)
    if case.syntax in TOOLS:
        subprocess.run([*TOOLS[case.syntax], path, path + ".c"], check=True, capture_output=True)
        os.replace(path + ".c", path)
    run("encode", path, coded, "-y", "--quiet")
    first = open(coded, "rb").read()
    run("encode", path, coded, "-y", "--quiet")
    check(first == open(coded, "rb").read(), f"{case.name()}: another stream the second time")
    check("identical" in run("verify", coded, "--against", path), f"{case.name()}: verify")
    run("decode", coded, raw, "-y", "--quiet")
    run("decode", coded, again, "-y", "--quiet")
    kind = f"{'>' if case.syntax == BIG else '<'}{'i' if case.signed else 'u'}{case.allocated // 8}"
    found = np.frombuffer(open(raw, "rb").read(), kind)
    good = found.size == values.size and np.array_equal(found.reshape(values.shape), values)
    check(good, f"{case.name()}: other values")
    if case.syntax in (IMPLICIT, EXPLICIT, BIG):
        check(open(again, "rb").read() == data, f"{case.name()}: another file came back")
    elif with_pydicom:
        check(attributes(path) == attributes(again), f"{case.name()}: other attributes")
        run("encode", again, coded, "-y", "--quiet")
        run("decode", coded, raw, "-y", "--quiet")
        check(np.array_equal(np.frombuffer(open(raw, "rb").read(), kind), found), f"{case.name()}: the file that came back")


def test_unknown_syntaxes(folder):
    """Nobody's decoder gets what the standard does not know, and no library's words are ours."""
    path, coded = os.path.join(folder, "u.dcm"), os.path.join(folder, "u.tvl")
    case = Case(EXPLICIT, 8, 8, False, False, 1, 0, 1, "zeros")
    for uid, code in (("1.2.3.4.5.6", 5), (ROOT + ".4.100", 5), (ROOT + ".4.70", 4)):
        data = case.file(EXPLICIT, np.zeros((1, ROWS, COLUMNS, 1), "u1"))
        data = data.replace(element(2, 0x10, "UI", EXPLICIT.encode(), EXPLICIT), element(2, 0x10, "UI", uid.encode(), EXPLICIT))
        for size in (len(data), 157, 158, 133):
            with open(path, "wb") as f:
                f.write(data[:size])
            r = subprocess.run([program.path, "encode", path, coded, "-y", "--max-memory", "100M"], capture_output=True, text=True)
            check(r.returncode in ((code,) if size == len(data) else (4, 5)), f"{uid}, {size} bytes: {r.returncode} {r.stderr}")
            check(r.stderr.count("\n") == 1, f"{uid}, {size} bytes: {r.stderr}")


def test_without_end(folder):
    """Compressed pixels whose delimiter is missing are read, with a warning; whose last fragment is short, refused."""
    path, coded, raw = (os.path.join(folder, n) for n in ("e.dcm", "e.tvl", "e.raw"))
    end = struct.pack("<HHI", 0xFFFE, 0xE0DD, 0)
    for frames in (1, 3):
        values, data = Case(RUNS, 16, 12, False, False, 1, 0, frames, "zeros").make(frames)
        at = data.rindex(end)
        cut, behind = data[:at], data[at + len(end):]
        for name, content, told in (("whole", data, 0), ("no end", cut, 1), ("others behind", cut + behind, 1), ("3 bytes behind", cut + b"\0\0\0", 1)):
            with open(path, "wb") as f:
                f.write(content)
            said = run("encode", path, coded, "-y")
            check(said.count("without their delimiter") == told, f"{frames} frames, {name}: {said}")
            warnings = json.loads(run("info", path, "--json", "--quiet"))["warnings"]
            check(sum("e.dcm" in w and "delimiter" in w for w in warnings) == told, f"{frames} frames, {name}: {warnings}")
            run("decode", coded, raw, "-y", "--quiet")
            found = np.frombuffer(open(raw, "rb").read(), "<u2")
            check(np.array_equal(found, values.ravel()), f"{frames} frames, {name}: other values")
        for size in (at - 2, at - 8 * frames - 30):
            with open(path, "wb") as f:
                f.write(data[:size])
            run("encode", path, coded, "-y", "--quiet", code=4)


def test_without_identifiers(folder):
    """A compressed file that names neither study nor series: nothing is made up, and each run gives the same."""
    path, coded, again, raw = (os.path.join(folder, n) for n in ("i.dcm", "i.tvl", "i_again.dcm", "i.raw"))
    case = Case(EXPLICIT, 8, 8, False, False, 1, 0, 1, "zeros")
    values = ((37 * np.arange(ROWS)[:, None] + 5 * np.arange(COLUMNS)[None, :] ** 2) % 256).astype("u1")
    study, series = (element(0x20, e, "UI", uid, EXPLICIT) for e, uid in ((0xD, b"1.2.3.6"), (0xE, b"1.2.3.7")))
    for syntax, frame in ((ROOT + ".4.80", base64.b64decode(JPEG_LS)), (RUNS, run_length_frame(values.reshape(-1, 1)))):
        data = case.file(EXPLICIT, values[None, :, :, None]).replace(study, b"").replace(series, b"")
        data = data.replace(element(2, 0x10, "UI", EXPLICIT.encode(), EXPLICIT), element(2, 0x10, "UI", syntax.encode(), EXPLICIT))
        data = data[:data.index(b"\xe0\x7f\x10\0")] + encapsulated([frame + b"\0" * (len(frame) % 2)])
        with open(path, "wb") as f:
            f.write(data)
        coded_ones, files = set(), set()
        for i in range(80 if os.environ.get("TRIVELET_FULL") else 5):
            r = subprocess.run([program.path, "encode", path, coded, "-y", "--quiet"], capture_output=True, text=True)
            if r.returncode == 5 and "GDCM" in r.stderr:
                print(f"skipped: JPEG-LS, {r.stderr}")
                break
            check(r.returncode == 0, f"{syntax}, no identifiers: {r.stderr}")
            run("info", coded)
            run("verify", coded, "--against", path)
            run("decode", coded, again, "-y", "--quiet")
            run("decode", coded, raw, "-y", "--quiet")
            coded_ones.add(open(coded, "rb").read())
            files.add(open(again, "rb").read())
            check(open(raw, "rb").read() == values.tobytes(), f"{syntax}, no identifiers: other values")
        else:
            check(len(coded_ones) == 1 and len(files) == 1, f"{syntax}: {len(coded_ones)} streams, {len(files)} files")
            back = files.pop()
            made_up = [e for e in (0xD, 0xE) if struct.pack("<HH", 0x20, e) + b"UI" in back]
            check(not made_up and b"Doe^Jane" in back, f"{syntax}: made up {made_up}")


def test_numbers_beyond_bits_stored(folder):
    """A codestream of 16 bits that was coded with loss exceeds the 12 Bits Stored a little: its numbers stay."""
    path, coded, again, raw = (os.path.join(folder, n) for n in ("b.dcm", "b.tvl", "b_again.dcm", "b.raw"))
    values = (4000 + 200 * np.sin(np.arange(ROWS * COLUMNS) / 3)).astype("<u2")
    values[0] = 4200
    frame = base64.b64decode(JPEG_2000)
    data = Case(EXPLICIT, 16, 12, False, False, 1, 0, 1, "zeros").file(EXPLICIT, np.zeros((1, ROWS, COLUMNS, 1), "u2"))
    lossy = (ROOT + ".4.91").encode()
    data = data.replace(element(2, 0x10, "UI", EXPLICIT.encode(), EXPLICIT), element(2, 0x10, "UI", lossy, EXPLICIT))
    with open(path, "wb") as f:
        f.write(data[:data.index(b"\xe0\x7f\x10\0")] + encapsulated([frame + b"\0" * (len(frame) % 2)]))
    r = subprocess.run([program.path, "encode", path, coded, "-y", "--quiet"], capture_output=True, text=True)
    if r.returncode == 5 and "GDCM" in r.stderr:
        return print(f"skipped: JPEG 2000, {r.stderr}")
    check(r.returncode == 0, r.stderr)
    run("verify", coded, "--against", path)
    run("decode", coded, raw, "-y", "--quiet")
    run("decode", coded, again, "-y", "--quiet")
    found = np.frombuffer(open(raw, "rb").read(), "<u2")
    check(found.max() > 4095 and np.abs(found.astype(int) - values).max() <= 10, f"beyond Bits Stored: {found}")
    check(found.tobytes() in open(again, "rb").read(), "beyond Bits Stored: other pixels in the DICOM file")


def test_colours_of_codestreams(folder):
    """A JPEG that says by its markers what its colours are, and a header that says otherwise: the markers count."""
    jpeg = subprocess.run(["ffmpeg", "-v", "error", "-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{COLUMNS}x{ROWS}", "-i", "-",
                           "-pix_fmt", "yuvj444p", "-q:v", "1", "-f", "mjpeg", "-"],
                          input=bytes([250, 10, 20] * (ROWS * COLUMNS)), capture_output=True).stdout if shutil.which("ffmpeg") else b""
    if not jpeg:
        return print("skipped: colours of codestreams, no ffmpeg")
    jfif = b"\xff\xe0\0\x10JFIF\0\1\1\0\0\1\0\1\0\0"
    adobe = lambda transform: b"\xff\xee\0\x0eAdobe\0\x64\0\0\0\0" + bytes([transform])
    bare = jpeg[:2] + jpeg[jpeg.index(b"\xff\xdb"):]
    path, coded, again, image = (os.path.join(folder, n) for n in ("c.dcm", "c.tvl", "c_again.dcm", "c.nii"))
    for header, marker, due in (("RGB", jfif, "YBR_FULL"), ("RGB", adobe(1), "YBR_FULL"), ("RGB", adobe(0), "RGB"), ("RGB", b"", "RGB"),
                                ("YBR_FULL", adobe(0), "RGB"), ("YBR_FULL", jfif, "YBR_FULL"), ("YBR_FULL_422", b"", "YBR_FULL")):
        syntax = (ROOT + ".4.50").encode()
        data = b"".join([bytes(128), b"DICM", element(2, 0x10, "UI", syntax, EXPLICIT), element(0x28, 2, "US", b"\3\0", EXPLICIT),
                         element(0x28, 4, "CS", header.encode(), EXPLICIT), element(0x28, 6, "US", b"\0\0", EXPLICIT),
                         element(0x28, 0x10, "US", struct.pack("<H", ROWS), EXPLICIT),
                         element(0x28, 0x11, "US", struct.pack("<H", COLUMNS), EXPLICIT),
                         *(element(0x28, e, "US", struct.pack("<H", v), EXPLICIT) for e, v in ((0x100, 8), (0x101, 8), (0x102, 7), (0x103, 0)))])
        frame = bare[:2] + marker + bare[2:]
        with open(path, "wb") as f:
            f.write(data + encapsulated([frame + b"\0" * (len(frame) % 2)]))
        r = subprocess.run([program.path, "encode", path, coded, "-y"], capture_output=True, text=True)
        if r.returncode == 5 and "GDCM" in r.stderr:
            return print(f"skipped: JPEG, {r.stderr}")
        check(r.returncode == 0, r.stderr)
        what = f"{header} with {marker[4:9]}"
        check(("says otherwise and is corrected" in r.stderr) == (due[:3] != header[:3]), f"{what}: {r.stderr}")
        check(("colours are YBR_FULL, luminance" in r.stderr) == (due == "YBR_FULL"), f"{what}: {r.stderr}")
        run("decode", coded, again, "-y", "--quiet")
        found = open(again, "rb").read()
        check(element(0x28, 4, "CS", due.encode(), EXPLICIT) in found, f"{what}: another Photometric Interpretation")
        check(max(abs(a - b) for a, b in zip(found[-3:], (83, 92, 247))) <= 3, f"{what}: {tuple(found[-3:])}")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        try:
            import pydicom  # noqa: F401
            with_pydicom = True
        except ImportError:
            with_pydicom = False
        cases = list(all_cases())
        chosen = cases if os.environ.get("TRIVELET_FULL") else random.Random(1).sample(cases, 40)
        for number, case in enumerate(chosen):
            before = len(program.failures)
            try_case(folder, case, number, with_pydicom)
            if len(program.failures) > before:
                print(f"  in the case {case.name()}")
        test_unknown_syntaxes(folder)
        test_without_end(folder)
        test_without_identifiers(folder)
        test_numbers_beyond_bits_stored(folder)
        test_colours_of_codestreams(folder)
    if program.failures:
        sys.exit(1)
    print(f"{len(chosen)} of {len(cases)} cases came back")


if __name__ == "__main__":
    main()
