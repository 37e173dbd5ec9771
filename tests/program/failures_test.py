#!/usr/bin/env python3
"""Failures while all stages of the program are busy: one clear error, no file left, and the program ends in time.

    tests/program/failures_test.py path/to/trivelet

A process that is killed leaves what stood there before, or the whole new file. A disk that is full (a limit on the size of files), a reader of the output that goes away, an interrupt, an input that
ends or is damaged in the middle; encoding and decoding, both profiles, GOPs of few frames so that many are on their way.
"""

import gzip
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
from program import complain, failures  # noqa: E402

WIDTH, HEIGHT, FRAMES = 224, 160, 120
FULL = os.environ.get("TRIVELET_FULL", "0") not in ("", "0")
IN_TIME = 120  # seconds, also under sanitizers
GOPS = ["--gop", "5", "--quiet"]

program = ""


def clip(path: Path) -> None:
    """A texture that moves, with a cut in the middle: GOPs end there, and frames are given back to the reader."""
    texture = bytes((x * x * 7 + (x >> 5) * 13) & 255 for x in range(1 << 16)) * 3
    size = WIDTH * HEIGHT * 3 // 2
    with open(path, "wb") as out:
        out.write(b"YUV4MPEG2 W%d H%d F25:1 C420jpeg\n" % (WIDTH, HEIGHT))
        for frame in range(FRAMES):
            at = 3 * frame + (20011 if frame > 61 else 0)
            out.write(b"FRAME\n" + texture[at : at + size].ljust(size, b"\x50"))


def run(arguments, **more) -> subprocess.CompletedProcess:
    return subprocess.run(
        [program, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=IN_TIME, **more
    )


def expect_error(what: str, result: subprocess.CompletedProcess, code: int, text: str, folder: Path) -> None:
    said = result.stderr.decode(errors="replace")
    errors = [line for line in said.splitlines() if "error:" in line]
    if result.returncode != code or len(errors) != 1 or text not in said:
        complain(f"{what}: exit code {code} and one error with '{text}'", result)
    expect_nothing_left(what, folder)


def expect_nothing_left(what: str, folder: Path) -> None:
    left = sorted(p.name for p in folder.iterdir())
    if left:
        complain(f"{what}: left {left}")
    for path in folder.iterdir():
        path.unlink()


def small_files() -> None:
    """A write beyond 100 kB fails as on a full disk; the program does not let it end the process."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))


def interrupted(arguments, folder: Path, what: str) -> None:
    """Ctrl-C once the output has begun to grow."""
    process = subprocess.Popen(
        [program, *map(str, arguments)], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    try:
        source = open(folder.parent / "clip.y4m", "rb").read()
        process.stdin.write(source[: len(source) * 2 // 3])  # and then nothing: all stages wait for more
        process.stdin.flush()
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        process.stdin.close()
        process.wait(IN_TIME)
        if process.returncode != 130:
            complain(f"{what}: exit code {process.returncode} instead of 130")
    finally:
        process.kill()
        process.wait()
        process.stderr.close()
    expect_nothing_left(what, folder)


def changed_meanwhile(arguments, target: Path, what: str) -> None:
    """A byte of the header changes on the disk while the rest is written: what is done is read again before it has its name."""
    process = subprocess.Popen([program, *map(str, arguments), target], stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    part = target.with_name(target.name + ".part")
    try:
        source = open(target.parent.parent / "clip.y4m", "rb").read()
        process.stdin.write(source[: len(source) * 2 // 3])
        process.stdin.flush()
        begun = time.monotonic()
        while (not part.exists() or part.stat().st_size < 1000) and time.monotonic() - begun < IN_TIME:
            time.sleep(0.01)
        with open(part, "r+b") as file:
            file.seek(60)
            byte = file.read(1)[0]
            file.seek(60)
            file.write(bytes([byte ^ 1]))
        process.stdin.write(source[len(source) * 2 // 3 :])
        process.stdin.close()
        said = process.stderr.read().decode(errors="replace")
        if process.wait(IN_TIME) != 6 or "cannot be read again, nothing is kept" not in said:
            complain(f"{what}: exit code {process.returncode}, said: {said[:300]}")
    finally:
        process.kill()
        process.wait()
        process.stderr.close()
    expect_nothing_left(what, target.parent)


def closed_pipe(arguments, what: str, folder: Path) -> None:
    """Whoever reads the output takes a little of it and goes."""
    process = subprocess.Popen([program, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.read(20_000)
    process.stdout.close()
    try:
        said = process.stderr.read().decode(errors="replace")
        process.wait(IN_TIME)
        if process.returncode != 128 + signal.SIGPIPE or "error" in said:
            complain(f"{what}: exit code {process.returncode}, said: {said[:300]}")
    finally:
        process.kill()
        process.wait()
        process.stderr.close()
    expect_nothing_left(what, folder)


def killed(arguments, target: Path, what: str) -> None:
    """Killed at any moment: the old file, or the new one, and the next run is not disturbed by what is left."""
    begin = time.monotonic()
    if run([*arguments, target, "-y"]).returncode != 0:
        return complain(f"{what}: it does not work at all")
    whole_time, whole = time.monotonic() - begin, target.read_bytes()
    old = b"what stood there before"
    times = 100 if FULL else 4
    outcomes = {old: 0, whole: 0}
    while sum(outcomes.values()) < times or (outcomes[old] == 0 and whole_time > 1e-4):
        target.write_bytes(old)
        process = subprocess.Popen(
            [program, *map(str, arguments), str(target), "-y"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        # The last moments are the interesting ones.
        time.sleep(whole_time * (1.1 - (random.random() ** 2) * 1.1))
        process.kill()
        process.wait()
        found = target.read_bytes()
        if found not in outcomes:
            return complain(f"{what}: killed, and {len(found)} bytes are left that are neither old nor new")
        outcomes[found] += 1
        if found == whole:  # it may have taken longer when it was timed: the machine does other things, too
            whole_time *= 0.8
    if outcomes[old] == 0:
        complain(f"{what}: never killed before its end")
    if run([*arguments, target, "-y"]).returncode != 0 or target.read_bytes() != whole:
        complain(f"{what}: the run after a kill gives something else")
    for path in target.parent.iterdir():
        path.unlink()


def without_memory(base: Path, out: Path) -> None:
    """With less memory than is needed (ulimit -v), a run succeeds or ends with 7, and no file is called damaged."""

    def limited(arguments, mebibytes: int) -> subprocess.CompletedProcess:
        def limit() -> None:
            resource.setrlimit(resource.RLIMIT_AS, (mebibytes << 20, mebibytes << 20))

        return run(arguments, preexec_fn=limit)

    if limited(["--version"], 1 << 12).returncode != 0:
        return  # the shadow memory of a sanitizer cannot be limited
    least = 8
    while limited(["--version"], least).returncode != 0:
        least += 2
    packed = base / "volume.nrrd"
    voxels = b"".join((x * x % 997).to_bytes(2, "little") for x in range(256 * 256 * 8))
    head = b"NRRD0004\ntype: uint16\ndimension: 3\nsizes: 256 256 8\nendian: little\nencoding: gzip\n\n"
    packed.write_bytes(head + gzip.compress(voxels))
    stream = base / "memory.tvl"
    run(["encode", "--preset", "fast", packed, stream])
    ends = []
    for what, arguments in (
        ("a video", ["encode", base / "clip.y4m", out / "a.tvl"]),
        ("a packed volume", ["encode", packed, out / "a.tvl"]),
        ("decoding", ["decode", stream, out / "a.nii.gz"]),
        ("looking", ["verify", stream]),
        ("Matroska", ["decode", base / "fast.tvl", out / "a.mkv"]),
    ):
        if what == "Matroska" and b"FFmpeg no" in run(["--version"]).stdout:
            continue  # written by FFmpeg
        for more in range(1, 160, 3) if FULL else (1, 5, 12, 30):
            result = limited([*arguments, "--quiet"], least + more)
            ends.append(result.returncode)
            if result.returncode == 7:
                if b"memory" not in result.stderr or result.stderr.count(b"\n") != 1:
                    complain(f"{what}, {least + more} MiB: one error", result)
            elif result.returncode != 0:
                complain(f"{what}, {least + more} MiB: the exit code is 7", result)
            else:
                (out / arguments[-1].name).unlink(missing_ok=True)
            expect_nothing_left(f"{what}, {least + more} MiB", out)
    if 7 not in ends or 0 not in ends:
        complain(f"little memory: exit codes {ends}")


def damaged(source: Path, target: Path, at: float, cut: bool) -> Path:
    data = bytearray(source.read_bytes())
    place = int(len(data) * at)
    if cut:
        del data[place:]
    else:
        for i in range(place, place + 64):
            data[i] ^= 0x5A
    target.write_bytes(data)
    return target


def main() -> int:
    global program
    if len(sys.argv) != 2:
        print(__doc__)
        return 2
    program = os.path.realpath(sys.argv[1])
    with tempfile.TemporaryDirectory() as name:
        base = Path(name)
        out = base / "out"
        out.mkdir()
        source = base / "clip.y4m"
        clip(source)
        cut_clip = damaged(source, base / "cut.y4m", 0.7, True)
        for profile in ("fast", "dense"):
            encode = ["encode", "--profile", profile, "--motion", "off", *GOPS]
            stream = base / f"{profile}.tvl"
            result = run([*encode, source, stream])
            if result.returncode != 0:
                complain(f"{profile}: the clip is encoded", result)
                continue
            for where, file in (("file", cut_clip), ("pipe", "-")):
                with open(cut_clip, "rb") as pipe:
                    result = run([*encode, file, out / "a.tvl"], stdin=pipe if where == "pipe" else None)
                expect_error(f"{profile}: a {where} that ends in a frame", result, 4, "truncated", out)
            result = run([*encode, source, out / "a.tvl"], preexec_fn=small_files)
            expect_error(f"{profile}: a full disk while encoding", result, 3, "cannot write", out)
            temporary = {**os.environ, "TMPDIR": str(base / "none")}
            result = run([*encode, source, out / "a.tvl", "--size", "20k"], env=temporary)
            expect_error(f"{profile}: TMPDIR is missing", result, 3, "as TMPDIR says", out)
            (base / "temporary").mkdir(exist_ok=True)
            temporary["TMPDIR"] = str(base / "temporary")
            result = run([*encode, source, base / "sized.tvl", "--size", "20k", "-y"], env=temporary)
            if result.returncode != 0:
                complain(f"{profile}: temporary files in TMPDIR", result)
            expect_nothing_left(f"{profile}: temporary files in TMPDIR", base / "temporary")
            result = run(["decode", "--quiet", stream, out / "a.y4m"], preexec_fn=small_files)
            expect_error(f"{profile}: a full disk while decoding", result, 3, "cannot write", out)
            closed_pipe([*encode, source, "-"], f"{profile}: nobody reads the stream", out)
            decode = ["decode", "--quiet", "--format", "y4m", stream, "-"]
            closed_pipe(decode, f"{profile}: nobody reads the video", out)
            if profile == "fast" or FULL:
                killed([*encode, source], out / "a.tvl", f"{profile}: killed while encoding")
                killed(["decode", "--quiet", stream], out / "a.y4m", f"{profile}: killed while decoding")
                cut = ["truncate", "--quiet", stream, "--layers", "2"]
                killed(cut, out / "a.tvl", f"{profile}: killed while truncating")
            interrupted([*encode, "-", out / "a.tvl"], out, f"{profile}: an interrupt while encoding")
            changed_meanwhile([*encode, "-"], out / "a.tvl", f"{profile}: a disk that errs while encoding")
            bad = damaged(stream, base / "bad.tvl", 0.6, False)
            result = run(["decode", "--quiet", bad, out / "a.y4m"])
            expect_error(f"{profile}: a damaged stream", result, 4, "wrong checksum", out)
            bad = damaged(stream, base / "bad.tvl", 0.6, True)
            with open(bad, "rb") as pipe:
                result = run(["decode", "--quiet", "-", out / "a.y4m"], stdin=pipe)
            expect_error(f"{profile}: a stream that ends", result, 4, "ends", out)
        without_memory(base, out)
        if FULL:
            short = base / "short.y4m"
            with open(source, "rb") as whole:
                short.write_bytes(whole.readline() + whole.read(10 * (6 + WIDTH * HEIGHT * 3 // 2)))
            killed(["encode", "--motion", "on", *GOPS, short], out / "a.tvl", "motion: killed while encoding")
            volume, stream = base / "volume.nrrd", base / "volume.tvl"
            volume.write_bytes(
                b"NRRD0004\ntype: uint16\ndimension: 3\nsizes: 128 128 40\nendian: little\nencoding: raw\n\n"
                + b"".join((x * x % 997 + x % 13).to_bytes(2, "little") for x in range(128 * 128 * 40))
            )
            for preset in ("fast", "medium"):
                encode = ["encode", "--preset", preset, volume]
                killed(encode, out / "v.tvl", f"volume, {preset}: killed while encoding")
                if run([*encode, stream, "-y"]).returncode != 0:
                    complain(f"volume, {preset}: it is encoded")
                killed(["decode", "--quiet", stream], out / "v.nrrd", f"volume, {preset}: killed while decoding")
    print(f"{len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
