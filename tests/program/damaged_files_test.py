#!/usr/bin/env python3
"""Every command that reads streams, on truncated and changed ones: the right answer, or one error and no output.

    tests/program/damaged_files_test.py path/to/trivelet

Streams of both profiles, with motion, by prediction and of a volume; stills of all three codecs. Where a command says that
all went well, its output is that of the intact file, but for those that are told to keep what is left. play is in
play_test.py, Matroska in film_test.py, every single byte in damage_test.cpp.
"""

import os
import random
import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import loaded_program  # noqa: E402
from program import complain, failures  # noqa: E402

FULL = os.environ.get("TRIVELET_FULL", "0") not in ("", "0")
WIDTH, HEIGHT, FRAMES = 40, 30, 8
GOOD = (0, 2, 4, 5, 6)  # done; usage; damaged; limits and the like; another content

program = ""


def run(arguments) -> subprocess.CompletedProcess:
    return loaded_program.run(program, *arguments)


def make(folder: Path, name: str, arguments) -> Path:
    result = run([*arguments, folder / name])
    if result.returncode != 0:
        raise RuntimeError(f"{name}: {result.stderr.decode(errors='replace')}")
    return folder / name


def texture(frame: int, size: int) -> bytes:
    return bytes((x * x // 7 + 5 * frame + (x * 2654435761 >> 29)) & 255 for x in range(size))


def damaged(whole: bytes, times: int, generator: random.Random):
    """Nothing, beginnings, and changed bytes: a few, many, a run of zeros; each in the head of the file or anywhere."""
    for size in (0, 5, len(whole) // 3, len(whole) - 1):
        yield whole[:size]
    for i in range(times):
        data = bytearray(whole)
        reach = len(data) if i % 2 else min(len(data), 250)
        if i % 3 == 2:
            at = generator.randrange(reach)
            data[at : at + 40] = bytes(min(40, len(data) - at))
        for _ in range((1, 30, 0)[i % 3]):
            data[generator.randrange(reach)] ^= 1 << generator.randrange(8)
        yield bytes(data)


def check(what: str, command, out: Path, strict: bool, intact) -> None:
    """`intact`: what it printed and wrote for the intact file, None to find out."""
    out.unlink(missing_ok=True)
    result = run([out if a == "OUT" else a for a in command])
    said = result.stderr.decode(errors="replace")
    written = out.read_bytes() if out.exists() else None
    answer = (result.stdout, written)
    if intact is None:
        if result.returncode != 0:
            complain(f"{what}: the intact file gives exit code {result.returncode}: {said[:300]}")
        return answer
    if result.returncode not in GOOD or "internal" in said or said.count("error:") > 1:
        complain(f"{what}: exit code {result.returncode}: {said[:300]}")
    if result.returncode in (2, 5) and written is not None:
        complain(f"{what}: an error, and a file of {len(written)} bytes")
    if strict and result.returncode == 0 and answer != intact:
        complain(f"{what}: it says nothing, and gives something else")
    return answer


def check_copies(folder: Path, kinds, generator: random.Random) -> int:
    """What copies GOPs finds the damage that verify finds. Nothing is written then, but demux gives the bytes as they are."""
    runs = 0
    for kind, source in kinds.items():
        whole, film = source.read_bytes(), folder / f"{kind}.mkv"
        if run(["mux", source, film, "-y"]).returncode != 0:
            complain(f"{kind}: mux of an intact stream fails")
        muxed, bad, out = film.read_bytes(), folder / "bad.mkv", folder / "copied.tvl"
        gop = whole.index(b"Gop ") + 16  # behind the head of the box are the size of the GOP's header, that, and the chunks
        body = gop + int.from_bytes(whole[gop : gop + 4], "little") + 20
        for i in range(100 if FULL else 5):
            runs += 1
            at = body if i == 0 else generator.randrange(12, len(whole))
            torn = whole[:at] + bytes([whole[at] ^ 1 << generator.randrange(8)]) + whole[at + 1 :]
            (folder / "torn.tvl").write_bytes(torn)
            torn_film, seen = folder / "torn.mkv", run(["verify", folder / "torn.tvl"]).returncode
            torn_film.unlink(missing_ok=True)
            code = run(["mux", folder / "torn.tvl", torn_film]).returncode
            if (i == 0 and code != 4) or (seen == 0) != (code == 0) or (code != 0 and torn_film.exists()):
                complain(f"{kind}, byte {at}: verify {seen}, mux {code}, a film: {torn_film.exists()}")
            for command in (["truncate", folder / "torn.tvl", out, "--layers", "1"], ["extract", folder / "torn.tvl", out],
                            ["join", folder / "torn.tvl", source, "-o", out]) if i == 0 else ():  # fmt: skip
                out.unlink(missing_ok=True)
                if (code := run(command).returncode) != 4 or out.exists():
                    complain(f"{kind}: {command[0]} of a damaged GOP: exit code {code}, a file: {out.exists()}")
            # The bytes of the stream around the damage, where the film has them for the first time.
            place = muxed.find(whole[max(at - 20, 0) : at + 20])
            if place < 0:
                continue
            place += at - max(at - 20, 0)
            bad.write_bytes(muxed[:place] + torn[at : at + 1] + muxed[place + 1 :])
            seen, result = run(["verify", bad]).returncode, run(["demux", bad, out, "-y"])
            if (i == 0 and result.returncode != 4) or (seen == 0) != (result.returncode == 0):
                complain(f"{kind}, byte {at}: verify {seen}, demux {result.returncode}: {result.stderr.decode()[:300]}")
            if i == 0 and (out.read_bytes() != torn or b"wrong checksum" not in result.stderr):
                complain(f"{kind}: demux of a damaged GOP: {result.stderr.decode()[:300]}")
    return runs


def main() -> int:
    global program
    if len(sys.argv) != 2:
        print(__doc__)
        return 2
    program = os.path.realpath(sys.argv[1])
    generator = random.Random(19)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        bad = folder / "bad"
        clip, picture, voxels = folder / "clip.y4m", folder / "picture.pgm", folder / "volume.nrrd"
        size = WIDTH * HEIGHT
        clip.write_bytes(b"YUV4MPEG2 W%d H%d F25:1 C420jpeg\n" % (WIDTH, HEIGHT)
                         + b"".join(b"FRAME\n" + texture(f, size * 3 // 2) for f in range(FRAMES)))  # fmt: skip
        picture.write_bytes(b"P5 %d %d 255\n" % (WIDTH, HEIGHT) + texture(0, size))
        voxels.write_bytes(b"NRRD0004\ntype: uint16\ndimension: 3\nsizes: 20 15 12\nendian: little\nencoding: raw\n\n"
                           + texture(3, 20 * 15 * 12 * 2))  # fmt: skip
        encode = ["encode", clip, "--gop", "4", "--quiet"]
        kinds = {
            "fast": make(folder, "fast.tvl", [*encode, "--preset", "fast"]),
            "dense": make(folder, "dense.tvl", [*encode, "--layers", "3", "--motion", "off"]),
            "motion": make(folder, "motion.tvl", [*encode, "--motion", "on", "--keyint", "8"]),
            "prediction": make(folder, "prediction.tvl", [*encode, "--lossless", "--transform", "prediction"]),
            "volume": make(folder, "volume.tvl", ["encode", voxels, "--quiet"]),
            "ccsds": make(folder, "picture.c122", ["ccsds", "encode", picture]),
            "vstc": make(folder, "vstc.tvs", ["still", "encode", picture, "--codec", "vstc", "--effort", "fast"]),
            "dct": make(folder, "dct.tvs", ["still", "encode", picture, "--codec", "dct"]),
        }
        # Command, and whether it may say "done" only where all is as it was. OUT is a new file.
        of_video = [
            (["decode", bad, "md5"], True), (["decode", bad, "OUT", "--format", "raw", "--frames", "2:6"], True),
            (["decode", bad, "null", "--keep-partial"], False), (["decode", bad, "OUT", "--format", "y4m", "--reduce", "1"], True),
            (["verify", bad], True), (["verify", bad, "--against", clip, "--json"], False), (["info", bad, "-v"], False),
            (["info", bad, "--json"], False), (["plan", bad, "--frames", "0:4"], False), (["compare", bad, clip], True),
            (["compare", clip, bad, "--json"], True), (["truncate", bad, "OUT", "--layers", "2"], False),
            (["truncate", bad, "OUT", "--size", "1200", "--keep-partial"], False), (["extract", bad, "OUT", "--reduce", "1"], False),
            (["extract", bad, "OUT", "--frames", "4:8", "--keep-partial"], False), (["join", bad, bad, "-o", "OUT"], False),
            (["thumbnail", bad, "OUT"], False), (["mux", bad, folder / "out.mkv", "-y"], False), (["demux", bad, "OUT"], False),
            (["encode", bad, "OUT", "--gop", "4", "--preset", "fast"], False),
            (["encode", clip, "OUT", "--gop", "4", "--joinable", "--pin-from", bad], False),
            (["bench", bad, "--preset", "fast", "--repeat", "1"], False),
        ]  # fmt: skip
        of_volume = [
            (["decode", bad, "OUT"], True), (["verify", bad], True), (["info", bad, "--show-private"], False),
            (["verify", bad, "--against", voxels], False), (["compare", bad, voxels], True), (["compare", voxels, bad], True),
            (["view", bad, "-o", folder / "out.pgm", "-y", "--montage"], False), (["plan", bad], False),
            (["truncate", bad, "OUT", "--layers", "1"], False), (["extract", bad, "OUT", "--reduce", "1"], False),
            (["encode", bad, "OUT"], False), (["thumbnail", bad, "OUT"], False),
        ]  # fmt: skip
        of_ccsds = [
            (["ccsds", "decode", bad, folder / "out.pgm", "-y"], False), (["ccsds", "info", bad, "--json"], False),
            (["ccsds", "decode", bad, folder / "out.pgm", "-y", "--strict"], False), (["ccsds", "compare", bad, picture], False),
            (["ccsds", "compare", picture, bad], False),
        ]  # fmt: skip
        of_still = [(["still", "decode", bad, folder / "out.pgm", "-y"], True), (["still", "info", bad, "--json"], False)]
        told = run(["--help"]).stdout.decode()
        tested = {c[0][0] for c in [*of_video, *of_volume, *of_ccsds, *of_still]} | {"play", "help"}
        for command in re.findall(r"^  ([a-z]+) {2,}", told, re.M):
            if command not in tested:
                complain(f"'{command}' reads no damaged file here")
        commands = {"volume": of_volume, "ccsds": of_ccsds, "vstc": of_still, "dct": of_still}
        runs = 0
        for kind, source in kinds.items():
            whole = source.read_bytes()
            mine = [c for c in commands.get(kind, of_video) if kind != "prediction" or "--reduce" not in c[0]]
            out = folder / ("out.nrrd" if kind == "volume" else "out")
            bad.write_bytes(whole)
            answers = [check(f"{kind}, {' '.join(map(str, c))}", c, out, strict, None) if strict else ((), ())
                       for c, strict in mine]  # fmt: skip
            # Each command has its turn at each kind of damage before the next round begins.
            turns = []
            for i, data in enumerate(damaged(whole, 60 if FULL else 6, generator)):
                bad.write_bytes(data)
                if len(turns) < 4:
                    turns += generator.sample(range(len(mine)), len(mine))
                several, turns = (range(len(mine)), turns) if FULL else (turns[:4], turns[4:])
                for j in several:
                    command, strict = mine[j]
                    runs += 1
                    check(f"{kind}, damage {i}, {' '.join(map(str, command))}", command, out, strict, answers[j])
        runs += check_copies(folder, {k: kinds[k] for k in ("fast", "dense", "motion", "prediction")}, generator)
    print(f"{runs} runs, {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
