#!/usr/bin/env python3
"""Small hostile inputs take little memory and time, or are refused.

    tests/program/limits_test.py path/to/trivelet

Prints a table: the input, its bytes, the answer (exit code), seconds of the processor, peak memory. Where a thread, a
file or an output was the trouble instead, the case is done as it happened and its end is what counts.
"""

import os
import re
import resource
import struct
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path

sys.dont_write_bytecode = True
sys.path += [str(Path(__file__).resolve().parents[1] / name) for name in ("reference", "support")]
from boxes import boxes_of, with_size  # noqa: E402
from reference_conventions import crc32c  # noqa: E402

SECONDS = 2.0
MEGABYTES = 300
CORRUPT = Path(__file__).resolve().parents[1] / "corrupt"
failures = []
program = ""


def run(name: str, size: int, arguments, codes, folder: Path, setup=None, text: str = "") -> str:
    """The program on an input; `codes`: the exit codes that are right, of which 0 only where nothing was promised."""
    said, out = folder / "said", folder / "out"
    with open(said, "wb") as err, open(out, "wb") as stdout:
        process = subprocess.Popen(
            [program, *map(str, arguments)], stdin=subprocess.DEVNULL, stdout=stdout, stderr=err, preexec_fn=setup
        )
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    message = said.read_text(errors="replace")
    seconds, peak = usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024
    bad = []
    if process.returncode not in codes:
        bad.append(f"exit code {process.returncode}, not one of {codes}")
    if seconds > SECONDS:
        bad.append("too long")
    if peak > MEGABYTES:
        bad.append("too much memory")
    if text not in message:
        bad.append(f"does not say '{text}'")
    print(f"{name:44} {size:9} bytes  exit {process.returncode:2}  {seconds:5.2f} s  {peak:6.0f} MB  {'; '.join(bad)}")
    if bad:
        failures.append(f"{name}: {'; '.join(bad)}; it said: {message[:300]}")
    return message + out.read_text(errors="replace")


def still(codec: int, side_bytes: bytes, parameters: bytes) -> bytes:
    data = b"\x89TVS" + bytes([codec, 1]) + side_bytes + bytes([7]) + parameters  # grey, 8 bits
    return data + crc32c(data).to_bytes(4, "little")


def leb(value: int) -> bytes:
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def sparse_volume(stream: bytes) -> bytes:
    """Of a volume of one slice: it says that there are 2 x 2,048, of both volumes in turn, and ends behind the first."""
    out = stream[:8]
    for kind, at, length in boxes_of(stream):
        payload = bytearray(stream[at + 16 : at + 16 + length])
        if kind in (b"volh", b"volq", b"tocF"):
            continue  # what decoding does not need: the headers of its files, the errors at its cuts, a table of GOPs
        if kind == b"Head":
            fields = 19 + payload[18]
            payload[fields + 24 : fields + 32] = (2 * 2048).to_bytes(8, "little")
        if kind == b"Volm":
            assert payload[5] == 0 and bytes(payload[7:9]) == b"\1\1"
            payload[5:9] = bytes([1, payload[6]]) + leb(2048) + leb(2)  # the order, prediction, slices, volumes
        if kind != b"Gop ":  # whose checks are its own
            payload = payload[:-4] + crc32c(bytes(payload[:-4])).to_bytes(4, "little")
        head = kind + len(payload).to_bytes(8, "little")
        out += head + crc32c(head).to_bytes(4, "little") + payload
        if kind == b"Gop ":
            return out
    raise AssertionError("there is no GOP")


def with_envelope(stream: bytes, content: bytes) -> bytes:
    """The stream of a volume with another box of the headers of its files."""
    out = stream[:8]
    for kind, at, length in boxes_of(stream):
        if kind == b"volh":
            head = kind + (len(content) + 4).to_bytes(8, "little")
            out += head + crc32c(head).to_bytes(4, "little") + content + crc32c(content).to_bytes(4, "little")
        else:
            out += stream[at : at + 16 + length]
    return out


def expect_options() -> None:
    """What SECURITY.md says of the commands is what their help says."""
    options = {"--max-memory", "--max-samples", "--max-frames", "--max-files", "--max-unpacked", "--max-work"}
    table = (Path(__file__).resolve().parents[2] / "SECURITY.md").read_text().split("| command | options |")[1]
    known = set()
    for row in table.split("\n\n")[0].splitlines()[2:]:
        commands, which = (cell.strip() for cell in row.strip("|").split("|", 1))
        wanted = set() if which.startswith("none") else options - set(re.findall(r"`(--[a-z-]+)`", which))
        for command in re.findall(r"`([^`]+)`", commands):
            known.add(command.split()[0])
            told = subprocess.run([program, *command.split(), "--help"], check=True, capture_output=True, text=True).stdout
            group = told.split("Limits of what an input may cost")[-1] if wanted else told
            found = {o for o in options if re.search(rf"^ +{o} ", group, re.M)}
            if command == "encode":
                found.discard("--max-memory")
            if found != wanted:
                failures.append(f"'{command} --help' has {sorted(found)} and SECURITY.md {sorted(wanted)}")
    told = subprocess.run([program, "--help"], check=True, capture_output=True, text=True).stdout
    for command in re.findall(r"^  ([a-z]+) {2,}", told, re.M):
        if command not in known | {"help"}:
            failures.append(f"SECURITY.md does not say what limits '{command}' takes")


def main() -> int:
    expect_options()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)

        def put(name: str, data: bytes) -> Path:
            (folder / name).write_bytes(data)
            return folder / name

        def make(name: str, arguments, source: bytes, extension: str) -> Path:
            path = put(name + extension, source)
            target = folder / (name + ".tvl")
            subprocess.run([program, "encode", path, target, "--quiet", *arguments], check=True)
            return target

        def y4m(width: int, height: int, frames: int, chroma: str = "mono") -> bytes:
            return b"YUV4MPEG2 W%d H%d F25:1 C%s\n" % (width, height, chroma.encode()) + frames * (
                b"FRAME\n" + bytes(width * height)
            )

        # 1: of 2 x 2,048 promised slices, 4 GiB, one is there. The volumes take turns: to write one after the other, a
        # decoder that trusts the header keeps 2,047 slices that are not there.
        nrrd = b"NRRD0004\ntype: uint8\ndimension: 3\nsizes: 1024 1024 1\nencoding: raw\n\n" + bytes(1 << 20)
        volume = make("volume", "--profile dense --block-size 256 --layers 1".split(), nrrd, ".nrrd").read_bytes()
        sparse = put("sparse.tvl", sparse_volume(volume))
        size = sparse.stat().st_size
        run("1 slices that are missing", size, ["decode", sparse, folder / "a.nrrd", "--max-memory", "50M"], [4, 5], folder)
        run("1 the same, verified", size, ["verify", sparse, "--max-memory", "50M"], [4, 6], folder)
        run("1 the same, without a limit", size, ["decode", sparse, folder / "a.nrrd", "--max-memory", "64G"], [4], folder)
        # 2: threads that cannot start.
        small = put("small.y4m", y4m(64, 64, 4))

        def few_threads():
            resource.setrlimit(resource.RLIMIT_AS, (1_500_000_000, 1_500_000_000))

        run("2 threads that cannot start", 0, ["encode", small, folder / "t.tvl", "-y", "-t", "1024", "--quiet"], [0, 1, 5], folder, few_threads)
        # 3: pictures that a header promises and nothing pays for.
        stream = make("stream", ["--preset", "fast"], y4m(64, 64, 33), ".y4m").read_bytes()
        promised = put("promised.tvl", with_size(stream, 65536, 65536))
        run("3 pictures that are promised", len(stream), ["decode", promised, "null"], [4, 5], folder)
        large = put("large.tvl", with_size(stream, 2800, 2800))
        run("3 the same, smaller", len(stream), ["decode", large, "null", "--max-memory", "200M"], [4, 5], folder, text="--max-memory")
        # Empty blocks, whose GOPs are many; planes whose codewords have no byte.
        for bomb, memory, text in (("empty_gop", "250M", "--max-memory"), ("empty_gops", "16G", "--max-work"),
                                   ("empty_codewords", "250M", "take time")):
            path = put(bomb + ".tvl", (CORRUPT / (bomb + ".bomb")).read_bytes())
            size = path.stat().st_size
            run(f"3 {bomb}", size, ["decode", path, "null", "--quiet", "--max-memory", memory], [5], folder, text=text)
            run(f"3 {bomb}, verified", size, ["verify", path, "--max-memory", memory], [5], folder, text=text)
        # 4: reducing dyadic streams of short groups (a table that was too short on GPUs).
        dyadic = CORRUPT.parent / "conformance" / "dense_dyadic_lossless_gbrp.tvl"
        run("4 reduced twice", dyadic.stat().st_size, ["decode", dyadic, "null", "--reduce", "2", "--quiet"], [0], folder)
        # 5: a part of a stream of promised pictures.
        run("5 truncated", len(stream), ["truncate", promised, folder / "t.tvl", "-y", "--size", "900"], [2, 4, 5], folder)
        run("5 extracted", len(stream), ["extract", promised, folder / "t.tvl", "-y", "--reduce", "1"], [2, 4, 5], folder)
        # 6: files of the user that a header names.
        secret = put("secret", b"secret" * 100)
        inside = folder / "inside"
        inside.mkdir()
        header = b"NRRD0004\ntype: uint8\ndimension: 3\nsizes: 10 10 2\nencoding: raw\ndata file: %s\n" % str(secret).encode()
        (inside / "a.nhdr").write_bytes(header)
        run("6 a file elsewhere", len(header), ["encode", inside / "a.nhdr", folder / "t.tvl", "-y"], [5], folder, text="--allow-outside")
        playlist = put("list.mp4", b"#EXTM3U\n#EXTINF:1,\nfile://%s\n" % str(secret).encode())
        run("6 a playlist", playlist.stat().st_size, ["encode", playlist, folder / "t.tvl", "-y"], [3, 4, 5], folder)
        # 7: lists of data files, and lines to skip.
        listed = b"NRRD0004\ntype: uint8\ndimension: 3\nsizes: 10 10 200000\nencoding: raw\ndata file: LIST\n" + b"a\n" * 200000
        (inside / "list.nhdr").write_bytes(listed)
        run("7 a list of files", len(listed), ["info", inside / "list.nhdr"], [4, 5], folder, text="--max-files")
        (inside / "lines.raw").write_bytes(b"\n" * 5000)
        lines = b"NRRD0004\ntype: uint8\ndimension: 3\nsizes: 1 1 700\nline skip: 4000\nencoding: raw\ndata file: LIST\n" + b"lines.raw\n" * 700
        (inside / "lines.nhdr").write_bytes(lines)
        run("7 lines to skip", len(lines), ["info", inside / "lines.nhdr"], [0, 4, 5], folder)
        # 8: compressed lists, tails that repeat, headers that promise.
        packer = zlib.compressobj(9, zlib.DEFLATED, 31)
        packed = packer.compress(b"NRRD0004\ntype: uint8\ndimension: 3\nsizes: 10 10 2\nencoding: raw\ndata file: LIST\n")
        packed += b"".join(packer.compress(b"a\n" * (1 << 20)) for _ in range(100)) + packer.flush()
        (inside / "list.nhdr.gz").write_bytes(packed)
        os.replace(inside / "list.nhdr.gz", inside / "packed.nhdr")
        run("8 a compressed list", len(packed), ["info", inside / "packed.nhdr"], [4, 5], folder)
        nifti = bytearray(544)
        struct.pack_into("<I8s", nifti, 0, 540, b"n+2\0\r\n\x1a\n")
        struct.pack_into("<hh8q", nifti, 12, 2, 8, 3, 65536, 65536, 4, 1, 1, 1, 1)
        struct.pack_into("<q", nifti, 168, 544)
        promise = put("promise.nii", bytes(nifti))
        run("8 a header of a huge volume", 544, ["encode", promise, folder / "t.tvl", "-y"], [4, 5], folder)
        run("8 the same, information", 544, ["info", promise], [0, 4, 5], folder)
        # What one MiB becomes, again and again: a tail of 100 MiB, and one of 16 in a file that is named 40 times.
        packer = zlib.compressobj(1, zlib.DEFLATED, -15)
        begin = packer.compress(bytes(64)) + packer.flush(zlib.Z_FULL_FLUSH)
        mebibyte = packer.compress(bytes(1 << 20)) + packer.flush(zlib.Z_FULL_FLUSH)
        end = packer.flush()

        def tailed(name: str, mebibytes: int) -> int:
            checked = zlib.crc32(bytes(64))
            for _ in range(mebibytes):
                checked = zlib.crc32(bytes(1 << 20), checked)
            data = bytes([31, 139, 8, 0, 0, 0, 0, 0, 2, 255]) + begin + mebibytes * mebibyte + end
            (inside / name).write_bytes(data + struct.pack("<II", checked, 64 + (mebibytes << 20)))
            return len(data)

        size = tailed("tail.raw", 100)
        (inside / "tail.nhdr").write_bytes(b"NRRD0004\ntype: uint8\ndimension: 3\nsizes: 4 4 4\nencoding: raw\ndata file: tail.raw\n")
        run("8 a long tail", size, ["encode", inside / "tail.nhdr", folder / "t.tvl", "-y"], [4, 5], folder, text="behind the voxels")
        size = tailed("often.raw", 16)
        (inside / "often.nhdr").write_bytes(b"NRRD0004\ntype: uint8\ndimension: 3\nsizes: 4 4 160\nencoding: raw\ndata file: LIST\n"
                                            + 40 * b"often.raw\n")
        run("8 one file again and again", size, ["encode", inside / "often.nhdr", folder / "t.tvl", "-y"], [4, 5], folder, text="twice")
        names = [f"often{i}.raw" for i in range(40)]
        for name in names:
            os.link(inside / "often.raw", inside / name)
        often = (inside / "often.nhdr").read_bytes().split(b"often.raw")[0] + "\n".join(names).encode() + b"\n"
        (inside / "often.nhdr").write_bytes(often)
        run("8 the same under many names", size, ["encode", inside / "often.nhdr", folder / "t.tvl", "-y"], [4, 5], folder,
            text="behind the voxels")
        tail = put("tail.nii.gz", (CORRUPT / "nifti" / "long_tail").read_bytes())
        run("8 a long tail, packed", tail.stat().st_size, ["encode", tail, folder / "t.tvl", "-y"], [4, 5], folder, text="behind the voxels")
        (folder / "four.nrrd").write_bytes(b"NRRD0004\ntype: uint8\ndimension: 3\nsizes: 4 4 4\nencoding: raw\n\n" + bytes(64))
        subprocess.run([program, "encode", folder / "four.nrrd", folder / "four.tvl", "--quiet"], check=True)
        four = (folder / "four.tvl").read_bytes()
        plain = leb(4) + b"nrrd" + leb(1) + leb(6) + b"a.nrrd" + leb(0) + leb(64) + leb(64) + (folder / "four.nrrd").read_bytes()[:64]
        tail = 250 << 20
        packer = zlib.compressobj(1)
        content = packer.compress(plain + leb(tail)) + b"".join(packer.compress(bytes(1 << 20)) for _ in range(250)) + packer.flush()
        stored = put("tail.tvl", with_envelope(four, b"\1\1" + content))
        run("8 a long tail in a stream", len(content), ["info", stored], [0, 4, 5], folder)
        # 9: the head of a DICOM file in a stream says that its pixels, of 65,535 x 65,535, are compressed: nobody unpacks it.
        stored = put("dicom.tvl", with_envelope(four, (CORRUPT / "envelope" / "dicom_compressed").read_bytes()))
        run("9 a stored head of compressed pixels", stored.stat().st_size, ["info", stored], [4], folder, text="stored header")
        run("9 the same, decoded", stored.stat().st_size, ["decode", stored, folder / "d.nii"], [4], folder, text="stored header")
        # 10: still pictures out of a few bytes.
        vstc = put("vstc.tvs", still(1, leb(65536) + leb(4096), bytes([4, 20])))
        run("10 vstc", vstc.stat().st_size, ["still", "decode", vstc, folder / "t.pgm", "-y"], [5], folder, text="--max-work")
        dct = put("dct.tvs", still(2, leb(16384) + leb(16384), bytes([20])) )
        run("10 dct", dct.stat().st_size, ["still", "decode", dct, folder / "t.pgm", "-y"], [5], folder, text="--max-work")
        run("10 dct, the limit raised", dct.stat().st_size,
            ["still", "decode", dct, folder / "t.pgm", "-y", "--max-work", "1000M", "--max-memory", "100M"], [5], folder, text="--max-memory")
        # 11: more files than a process may have open. 12: what stands at the temporary's name. 13: a name from the stream.
        def few_files():
            resource.setrlimit(resource.RLIMIT_NOFILE, (128, 128))

        slices = folder / "slices"
        slices.mkdir()
        detached = b"NRRD0004\ntype: uint8\ndimension: 3\nsizes: 4 4 300\nencoding: raw\ndata file: s%03d.raw 0 299 1 2\n"
        for i in range(300):
            (slices / f"s{i:03d}.raw").write_bytes(bytes(16))
        (slices / "a.nhdr").write_bytes(detached)
        subprocess.run([program, "encode", slices / "a.nhdr", folder / "slices.tvl", "--quiet"], check=True)
        os.makedirs(folder / "many")
        run("11 many files", 0, ["decode", folder / "slices.tvl", folder / "many" / "a.nhdr", "--quiet"], [0], folder, few_files)
        os.mkfifo(folder / "pipe.tvl.part")
        run("12 a pipe at the temporary's name", 0, ["encode", small, folder / "pipe.tvl", "--quiet"], [3], folder)
        (folder / "taken").mkdir()
        (folder / "taken" / "s005.raw").write_bytes(b"mine")
        run("13 a name that the stream chose", 0, ["decode", folder / "slices.tvl", folder / "taken" / "a.nhdr", "-y", "--quiet"], [2, 3], folder)
        if (folder / "taken" / "s005.raw").read_bytes() != b"mine":
            failures.append("13: the file was replaced")
        # 14: texts of a stream that would command the terminal.
        escape = put("escape.tvl", b"")
        data = bytearray(stream)
        at = data.find(b"Trivelet ")
        data[at : at + 4] = b"\x1b[2J"
        for kind, place, length in boxes_of(stream):
            if kind == b"Head":
                end = place + 16 + length - 4
                data[end : end + 4] = crc32c(bytes(data[place + 16 : end])).to_bytes(4, "little")
        escape.write_bytes(data)
        if "\x1b" in run("14 escapes in texts", len(data), ["info", escape], [0], folder):
            failures.append("14: an escape was printed")
        # 16: a folder that is looked at has its files shown, unasked.
        entry = (Path(__file__).resolve().parents[2] / "packaging" / "trivelet.thumbnailer").read_text()
        version = subprocess.run([program, "--version"], capture_output=True, text=True).stdout
        picture = "t.ppm" if "FFmpeg no" in version else "t.png"  # .png is written by FFmpeg
        bounds = re.search(r"^Exec=trivelet (thumbnail .*)$", entry, re.M).group(1).split()
        for name, codes in (("large.tvl", [4, 5]), ("promised.tvl", [4, 5]), ("stream.tvl", [0, 4])):
            shown = [{"%i": folder / name, "%o": folder / picture, "%s": "128"}.get(word, word) for word in bounds]
            run(f"16 a thumbnail of {name}", len(stream), shown, codes, folder)
        if not {"--max-memory", "--max-samples"} <= set(bounds):
            failures.append("16: thumbnails have no limits of their own")
        # 15: blocks of Matroska that each claim all that follows, in groups that end before.
        known = (CORRUPT / "matroska" / "blocks_beyond_their_group").read_bytes()[1:]
        tracks = known[known.index(b"\x16\x54\xae\x6b") : known.index(b"\x1f\x43\xb6\x75")]
        unknown = b"\x01" + b"\xff" * 7
        groups = b"".join(b"\xa0\x89\xa1" + (0x10000000 | 4 + 11 * i).to_bytes(4, "big") + b"\x81\0\0\x80" for i in range(12000, -1, -1))
        film = put("bomb.mkv", b"\x1a\x45\xdf\xa3\x80\x18\x53\x80\x67" + unknown + tracks + b"\x1f\x43\xb6\x75" + unknown + groups)
        run("15 blocks beyond their group", film.stat().st_size, ["demux", film, folder / "b.tvl", "-y"], [0, 4, 5], folder)
        if (folder / "b.tvl").exists() and (folder / "b.tvl").stat().st_size > film.stat().st_size:
            failures.append(f"15: {film.stat().st_size} bytes become {(folder / 'b.tvl').stat().st_size}")
    for line in failures:
        print("FAILED:", line)
    return 1 if failures else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    program = str(Path(sys.argv[1]).resolve())
    sys.exit(main())
