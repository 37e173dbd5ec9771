#!/usr/bin/env python3
"""Several processes give the bytes and answers of one process, and one clear error when one of them fails.

    tests/program/cluster_test.py path/to/trivelet path/to/mpirun

Raw frames that each process reads for itself, films that all decode, inputs that the first one reads and sends, scenes
that end GOPs, motion, where GOPs go to processes in rows. More processes than GOPs. Decoding into files that all write, and
into what one writes; verify, compare and truncate.
"""

import concurrent.futures
import fcntl
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
from program import complain, failures  # noqa: E402

WIDTH, HEIGHT = 64, 48
SCENES = (21, 3, 40, 1, 18, 13)
GOPS = ["--gop", "8", "--motion", "off"]  # where motion, which takes its time, is not what is tested
IN_TIME = 60  # seconds, also under sanitizers
FULL = os.environ.get("TRIVELET_FULL", "0") not in ("", "0")

program, mpirun = "", ""
environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                   OMPI_MCA_pml="ob1")  # not to look for networks, which takes a third of a start


def frames(bits=8):
    """Textures that move; another one in every scene."""
    texture = bytes((x * x * 7 + (x >> 5) * 13 + (x % 91)) & 255 for x in range(1 << 15)) * 2
    size = WIDTH * HEIGHT * 3 // 2
    seen = 0
    for scene, length in enumerate(SCENES):
        level = bytes(min(255, (v >> 1) + 128 * (scene % 2)) for v in range(256))
        for _ in range(length):
            at = scene * 4999 + seen * 3
            frame = texture[at:at + size].translate(level)
            yield frame if bits == 8 else b"".join(bytes((v, v & 3)) for v in frame)
            seen += 1


def together(processes, *words):
    return [mpirun, "-n", str(processes), "--oversubscribe", "--bind-to", "none", *words]


def run(arguments, processes=0, stdin=None, talk="--quiet", **how):
    words = [program, *arguments, talk]
    if processes:
        words = together(processes, *words)
    if "input" not in how:
        how["stdin"] = stdin or subprocess.DEVNULL
    return subprocess.run(words, capture_output=True, timeout=IN_TIME, env=environment, **how)


def launcher_crashed(result):
    """mpirun itself, not what it started: Open MPI 4.1 does now and then, handing on standard input to who ends."""
    return result.returncode == -signal.SIGSEGV and b"orte_iof_hnp" in result.stderr


def same(name, arguments, counts, output="together.tvl"):
    """`arguments` of encode or truncate, with IN but without OUT."""
    one = run([*arguments[:2], f"one{Path(output).suffix}", *arguments[2:], "-y"])
    if one.returncode:
        return complain(f"{name}: one process", one)
    for n in counts:
        many = run([*arguments[:2], output, *arguments[2:], "-y"], n)
        if many.returncode:
            complain(f"{name}: {n} processes", many)
        elif Path(output).read_bytes() != Path(f"one{Path(output).suffix}").read_bytes():
            complain(f"{name}: {n} processes give other bytes than one")


def inputs():
    with open("a.y4m", "wb") as y4m, open("a.yuv", "wb") as raw:
        y4m.write(f"YUV4MPEG2 W{WIDTH} H{HEIGHT} F25:1 Ip C420jpeg\n".encode())
        for f in frames():
            y4m.write(b"FRAME\n" + f)
        for f in frames(10):
            raw.write(f)


def said_by(name, result, pattern):
    """What -v says, as numbers."""
    said = re.search(pattern, result.stderr.decode(errors="replace"))
    if result.returncode or not said:
        complain(f"{name}: nobody says '{pattern}'", result)
        return [0]
    return [int(n) for n in said.groups()] or [0]


def identity():
    y4m = ["encode", "a.y4m", "--gop", "8", "--threads", "1"]
    same("dense", y4m, (1, 2, 3, 7) if FULL else (3, 7))
    same("lossless fast, verified", [*y4m, "--lossless", "--preset", "fast", "--verify"], (3,))
    same("lossless by prediction, which the first process chose", [*y4m, "--lossless", "--verify"], (3,))
    same("motion", [*y4m, "--motion", "on", "--keyint", "20"], (3,))
    same("a part of ten bits, no scenes", ["encode", "a.yuv", "--size", f"{WIDTH}x{HEIGHT}", "--pix-fmt", "yuv420p10",
                                           "--frames", "5:70", "--no-scene-cuts", "--gop", "5", "--motion", "off", "-q", "80"], (2,))
    same("a PSNR", [*y4m[:2], "--gop", "2", "--motion", "off", "--psnr", "40"], (3,))
    same("a size", [*y4m[:2], "--gop", "2", "--motion", "off", "--size", "60k"], (2, 7) if FULL else (7,))
    same("more processes than GOPs", ["encode", "a.y4m", "--frames", ":7"], (3,))
    # Who codes a GOP reads it and writes it, also when the first process has divided bytes.
    one = run(["encode", "a.y4m", "one.tvl", *GOPS, "-y"])
    for options in ([], ["--size", "60k"]):
        many = run(["encode", "a.y4m", "many.tvl", *GOPS, *options, "-y"], 3, talk="-v")
        coded = said_by("written by all", many, r"coded ([0-9]+) \+ ([0-9]+) \+ ([0-9]+) GOPs")
        if said_by("written by all", many, r"each read its own frames, ([0-9]+) GOPs were written by the process that coded them") != [sum(coded)]:
            complain("written by all: not all GOPs were written by who coded them", many)
    # Where one of them does not see the output, it sends what it codes.
    os.mkdir("elsewhere")
    wrap = ["sh", "-c", f'[ "$OMPI_COMM_WORLD_RANK" != 1 ] || cd elsewhere; exec "{program}" encode "{os.getcwd()}/a.y4m" '
            'apart.tvl --gop 8 --motion off -v -y']
    many = subprocess.run(together(3, *wrap), capture_output=True, timeout=IN_TIME, env=environment,
                          stdin=subprocess.DEVNULL)
    coded = said_by("written elsewhere", many, r"coded ([0-9]+) \+ ([0-9]+) \+ ([0-9]+) GOPs")
    if len(coded) == 3 and said_by("written elsewhere", many, r", ([0-9]+) GOPs were written by the process that coded them") != [coded[0] + coded[2]]:
        complain("written elsewhere: other GOPs than those were written by who coded them", many)
    if one.returncode or Path("one.tvl").read_bytes() != Path("apart.tvl").read_bytes() or os.listdir("elsewhere"):
        complain("written elsewhere: other bytes than one process", many)
    # What cannot be found by its number is sent: a stream of our own here, motion pictures in rows.
    run(["encode", "a.y4m", "lossless.tvl", "--lossless", "--preset", "fast", "-y"])
    same("sent", ["encode", "lossless.tvl", "--gop", "8", "--motion", "auto"], (3,))
    # From a pipe into a pipe. Standard output of what mpirun starts is a terminal of its own.
    one = run(["encode", "-", "-", *GOPS], input=Path("a.y4m").read_bytes())
    os.mkfifo("pipe.tvl")
    for _ in range(3):
        with open("a.y4m", "rb") as source, open("piped.tvl", "wb") as piped:
            reader = subprocess.Popen(["cat", "pipe.tvl"], stdout=piped)
            many = run(["encode", "-", "pipe.tvl", *GOPS, "-y"], 2, stdin=source)
            reader.wait(IN_TIME)
        if not launcher_crashed(many):
            break
    if many.returncode or not one.stdout or one.stdout != Path("piped.tvl").read_bytes():
        complain("a pipe: other bytes than one process", many)


def make_film():
    """With three stretches between key frames, of which some are leaned on from both sides. False without ffmpeg."""
    if not shutil.which("ffmpeg") or b" libx264 " not in subprocess.run(["ffmpeg", "-v", "quiet", "-encoders"],
                                                                        capture_output=True).stdout:
        return False
    subprocess.run(["ffmpeg", "-v", "error", "-i", "a.y4m", "-c:v", "libx264", "-x264-params",
                    "keyint=20:open-gop=1:scenecut=0:threads=1", "film.mp4"], check=True)  # fmt: skip
    return True


def films():
    """Each process decodes every third stretch of a film, and who codes a GOP gets its frames from there."""
    if not make_film():
        return print("films of stretches: skipped, no ffmpeg with libx264")
    film = ["encode", "film.mp4", *GOPS]
    same("a film", film, (2, 3, 7) if FULL else (7,))
    same("a film, motion", [*film[:2], "--gop", "8", "--motion", "on", "--keyint", "20"], (3,))
    same("a film, plain GOPs and a size", [*film, "--no-scene-cuts", "--size", "60k"], (3,))
    same("a film into Matroska", film, (2,), output="together.mkv")
    many = run([*film[:2], "many.tvl", *film[2:], "-y"], 3, talk="-v")
    decoded_by = said_by("a film", many, r"decoded once, ([0-9]+) \+ ([0-9]+) \+ ([0-9]+) of ([0-9]+)")
    if len(decoded_by) != 4 or min(decoded_by) == 0 or sum(decoded_by[:3]) != sum(SCENES) or decoded_by[3] != sum(SCENES):
        complain(f"a film: not each frame was decoded once: {decoded_by}", many)
    # Damage in the stretch of each of them is what one process finds; one that does not see the film.
    whole = Path("film.mp4").read_bytes()
    found = set()
    for part in (0.1, 0.25, 0.45, 0.6, 0.75, 0.9) if FULL else (0.25, 0.45, 0.6, 0.75):
        bad = bytearray(whole)
        at = int(part * whole.index(b"moov"))  # behind the pictures
        bad[at:at + 400] = bytes(400)
        Path("bad.mp4").write_bytes(bad)
        if run(["encode", "bad.mp4", "one.tvl", *GOPS, "-y"]).returncode:
            nothing_left(f"a film damaged at {part}", run(["encode", "bad.mp4", "x.tvl", *GOPS], 3), "bad.mp4")
            found.add(int(3 * part))
        else:
            same(f"a film damaged at {part}", ["encode", "bad.mp4", *GOPS], (3,))
    if len(found) < 3:
        complain(f"films: damage was found in {found} of three stretches only")
    complaints()
    os.makedirs("elsewhere", exist_ok=True)
    wrap = ["sh", "-c", f'[ "$OMPI_COMM_WORLD_RANK" != 1 ] || cd elsewhere; exec "{program}" encode film.mp4 '
            f'"{os.getcwd()}/x.tvl" --gop 8 --quiet']
    nothing_left("a film that one does not see", subprocess.run(together(3, *wrap), capture_output=True, timeout=IN_TIME,
                                                                env=environment, stdin=subprocess.DEVNULL), "film.mp4")


def complaints():
    """What a decoder of the last stretch alone complains of, without damage: said once, whoever decodes it."""
    subprocess.run(["ffmpeg", "-v", "error", "-i", "a.y4m", "-c:v", "libx264", "-x264-params",
                    "keyint=20:bframes=0:scenecut=0:threads=1", "film.264"], check=True)  # fmt: skip
    stream = Path("film.264").read_bytes()
    keys = [m.start() for m in re.finditer(b"\0\0\1[\x65\x25\x45]", stream)]
    too_long = b"\0\0\1\6\5\xff\1" + bytes(range(33, 60)) + b"\x80"  # SEI, which says that it has 256 bytes
    Path("film.264").write_bytes(stream[:keys[-1]] + too_long + stream[keys[-1]:])
    subprocess.run(["ffmpeg", "-v", "error", "-r", "25", "-i", "film.264", "-c", "copy", "-bsf:v", "setts=ts=N*40",
                    "complaint.mkv"], stderr=subprocess.DEVNULL, check=True)  # fmt: skip
    for n in (0, 2, 3):
        result = run(["encode", "complaint.mkv", "x.tvl", *GOPS, "-y"], n, talk="--log-level=warn")
        said = result.stderr.decode(errors="replace").count("FFmpeg complained")
        if result.returncode or said != 1:
            complain(f"a complaint of a decoder was said {said} times by {max(n, 1)} processes", result)
    Path("x.tvl").unlink(missing_ok=True)


def decoded(name, arguments, output, n):
    """`arguments` of decode, with IN but without OUT."""
    kind = Path(output).suffix
    one = run(["decode", arguments[0], f"one{kind}", *arguments[1:], "-y"])
    many = run(["decode", arguments[0], output, *arguments[1:], "-y"], n)
    if one.returncode or many.returncode:
        return complain(f"decode, {name}", many if many.returncode else one)
    if Path(output).read_bytes() != Path(f"one{kind}").read_bytes():
        complain(f"decode, {name}: {n} processes give other bytes than one")


def answered(name, arguments, n, **how):
    """The same words and exit code."""
    one, many = run(arguments, **how), run(arguments, n, **how)
    if (one.returncode, one.stdout) != (many.returncode, many.stdout):
        complain(f"{name}: one process ended with {one.returncode} and said {one.stdout!r}, {n} {many.stdout!r}", many)
    if one.returncode and one.stderr.strip() not in many.stderr:
        complain(f"{name}: one process said {one.stderr!r}", many)


def reading():
    """Streams are decoded, checked and compared by several."""
    run(["encode", "a.y4m", "d.tvl", *GOPS, "-y"])
    run(["encode", "a.y4m", "m.tvl", "--gop", "8", "--motion", "on", "--keyint", "20", "-y"])
    run(["encode", "a.y4m", "l.tvl", "--gop", "8", "--lossless", "--preset", "fast", "-y"])
    decoded("a Y4M file", ["d.tvl"], "many.y4m", 3)
    decoded("motion, raw, a part at half the size and rate",
            ["m.tvl", "--frames", "5:70", "--reduce", "1", "--temporal-reduce", "1"], "many.yuv", 2)
    decoded("more processes than GOPs", ["d.tvl", "--frames", "3:5"], "many.y4m", 7)
    # What has no places for frames is written by one: here every second frame twice.
    decoded("gathered", ["m.tvl", "--temporal-reduce", "1", "--fill-cfr"], "many.y4m", 3)
    answered("md5", ["decode", "l.tvl", "md5"], 2)
    answered("md5 of a part, motion", ["decode", "m.tvl", "md5", "--frames", "11:70"], 3)
    # What goes nowhere is not sent either.
    dropped = run(["decode", "m.tvl", "null", "--frames", "11:70", "--temporal-reduce", "1"], 3, talk="-v")
    alone = run(["decode", "m.tvl", "null", "--frames", "11:70", "--temporal-reduce", "1"], talk="-v")
    if said_by("null", dropped, r"([0-9]+) frames, ") != said_by("null", alone, r"([0-9]+) frames, "):
        complain("null: other frames than one process", dropped)
    said_by("null", dropped, r"3 processes, each dropped what it decoded")
    answered("verify", ["verify", "l.tvl", "--against", "a.y4m"], 3)
    answered("compare", ["compare", "d.tvl", "a.y4m", "--json"], 3)
    Path("short.y4m").write_bytes(Path("a.y4m").read_bytes()[:-3 * (6 + WIDTH * HEIGHT * 3 // 2)])
    answered("compare with a shorter one", ["compare", "d.tvl", "short.y4m"], 3)
    damaged = bytearray(Path("l.tvl").read_bytes())
    damaged[len(damaged) * 2 // 3] ^= 16
    Path("damaged.tvl").write_bytes(damaged)
    answered("verify what is damaged", ["verify", "damaged.tvl"], 2)
    nothing_left("decode what is damaged", run(["decode", "damaged.tvl", "x.y4m"], 3), "wrong checksum")
    partial = ["decode", "damaged.tvl", "md5", "--keep-partial"]
    answered("decode what is intact", partial, 2)
    same("truncate", ["truncate", "d.tvl", "--psnr", "30"], (2,))
    # Two processes write; one finds no room.
    wrap = ["sh", "-c", f'ulimit -f 200; trap "" XFSZ; exec "{program}" decode d.tvl x.y4m --quiet']
    full = subprocess.run(together(2, *wrap), capture_output=True, timeout=IN_TIME, env=environment,
                          stdin=subprocess.DEVNULL)
    nothing_left("decode, a full disk", full, "x.y4m")


def volumes():
    """Decoded in pieces by all, to be verified, too, with a process that finds one damaged; encoded and compared by one."""
    voxels = b"".join(bytes(((x * x + 31 * z) >> 3) & 255 for x in range(32 * 24)) for z in range(40))
    Path("v.raw").write_bytes(voxels)
    shape = ["--size", "32x24x40", "--type", "u8"]
    for name, options in (("v", ["--slab", "8"]), ("w", ["--slab", "8", "--transform", "wavelet", "-q", "70"])):
        same(f"volume, {name}", ["encode", "v.raw", *shape, *options], (3,), f"many_{name}.tvl")
        shutil.copy(f"many_{name}.tvl", f"{name}.tvl")
        ways = ((2, []), (7, []), (3, ["--slices", "5:33"]), (3, ["--region", "3,2,6,9,7,30"]))
        for count, parts in ways if FULL else ways[name == "w" :: 2]:
            decoded(f"volume {name}, {parts}", [f"{name}.tvl", *parts], "many.raw", count)
        answered(f"md5 of volume {name}", ["decode", f"{name}.tvl", "md5"], 3)
        answered(f"halved volume {name}", ["decode", f"{name}.tvl", "md5", *(["--reduce", "1"] if name == "w" else [])], 2)
    same("volumes in time", ["encode", "v.raw", "--size", "32x24x5x8", "--type", "u8"], (2,), "many_t.tvl")
    decoded("volumes in time", ["many_t.tvl"], "many.raw", 3)
    answered("verify a volume", ["verify", "v.tvl", "--against", "v.raw", *shape], 2)
    answered("verify a lossy volume", ["verify", "w.tvl", "--against", "v.raw", *shape], 7)
    Path("other.raw").write_bytes(voxels[:-9] + bytes(9))
    answered("verify against another volume", ["verify", "v.tvl", "--against", "other.raw", *shape], 3)
    other = ["--size", "32x24x20", "--type", "u16"]
    answered("verify against a volume of another type", ["verify", "v.tvl", "--against", "v.raw", *other], 2)
    answered("compare volumes", ["compare", "v.tvl", "w.tvl"], 2)
    damaged = bytearray(Path("v.tvl").read_bytes())
    damaged[len(damaged) // 2] ^= 16
    Path("damaged.tvl").write_bytes(damaged)
    nothing_left("verify a damaged volume", run(["verify", "damaged.tvl"], 3), "checksum")
    nothing_left("decode a damaged volume", run(["decode", "damaged.tvl", "x.raw"], 3), "checksum")


def nothing_left(name, result, said):
    text = result.stderr.decode(errors="replace")
    if result.returncode == 0:
        complain(f"{name}: no failure")
    if text.count("trivelet: error:") != 1 or said not in text:
        complain(f"{name}: not one message with '{said}'", result)
    left = [p.name for p in Path(".").iterdir() if p.name.startswith("x.")]
    if left:
        complain(f"{name}: left {left}", result)


def failing():
    # A frame that only one process reads, and finds wrong: a sample of 11 bits.
    data = bytearray(Path("a.yuv").read_bytes())
    size = WIDTH * HEIGHT * 3
    data[61 * size + 101] = 7
    Path("bad.yuv").write_bytes(data)
    raw = ["--size", f"{WIDTH}x{HEIGHT}", "--pix-fmt", "yuv420p10", "--gop", "5"]
    nothing_left("a bad sample", run(["encode", "bad.yuv", "x.tvl", *raw], 3), "frame 61")
    nothing_left("no input", run(["encode", "none.y4m", "x.tvl"], 3), "none.y4m")
    Path("cut.y4m").write_bytes(Path("a.y4m").read_bytes()[:-100])
    nothing_left("a cut input", run(["encode", "cut.y4m", "x.tvl", "--gop", "5"], 3), "truncated")
    nothing_left("options", run(["encode", "a.y4m", "x.tvl", "--gop", "500"], 3), "--gop")
    each = ["sh", "-c", f'exec "{program}" encode a.y4m "x.tvl$OMPI_COMM_WORLD_RANK" --quiet']
    nothing_left("streams of their own", subprocess.run(together(2, *each), capture_output=True, timeout=IN_TIME,
                                                        env=environment, stdin=subprocess.DEVNULL),
                 "another input or output")
    # The disk is full, or only for one of those who write: that one tells the first, the others stop.
    for full in ("", "0", "1", "2") if FULL else ("", "0", "1"):
        wrap = ["sh", "-c", f'[ -n "{full}" -a "$OMPI_COMM_WORLD_RANK" != "{full}" ] || ulimit -f 20; trap "" XFSZ; '
                f'exec "{program}" encode a.y4m x.tvl --lossless --gop 4 --quiet']
        result = subprocess.run(together(3, *wrap), capture_output=True, timeout=IN_TIME, env=environment,
                                stdin=subprocess.DEVNULL)
        nothing_left(f"a full disk of {full or 'all'}", result, "x.tvl")


def children(pid):
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1]) == pid:
                found.append(int(entry.name))
        except (OSError, IndexError):
            pass
    return found


def killed_encoding():
    """Each process in turn, in the middle: of a pipe, which the first one reads, and all write."""
    for rank in (0, 1, 2):
        what = f"rank {rank} killed"
        for _ in range(3):
            with open("said", "wb+") as said:
                start = subprocess.Popen(together(3, program, "encode", "-", "x.tvl", "--gop", "2", "--quiet"),
                                         stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=said, env=environment)
                if encodes_from_pipe(start):
                    break
                said.seek(0)
                ended = subprocess.CompletedProcess(start.args, start.wait(IN_TIME), b"", said.read())
            if not launcher_crashed(ended):
                return complain(f"{what}: ended before", ended)
        kill_one(start, rank, what)
        start.stdin.close()
        # The first one has no time to tidy up when it is killed; the others do it for it, if the 2 ms that mpirun gives
        # them are enough.
        Path("x.tvl.part").unlink(missing_ok=True)
        left = [p.name for p in Path(".").iterdir() if p.name.startswith("x.tvl")]
        if left:
            complain(f"{what}: left {left}")


def encodes_from_pipe(start):
    """Whether it has written something of what it is sent, and waits for more."""
    try:
        start.stdin.write(f"YUV4MPEG2 W{WIDTH} H{HEIGHT} F25:1 Ip C420jpeg\n".encode())
        for f in frames():
            start.stdin.write(b"FRAME\n" + f)
        start.stdin.flush()
    except BrokenPipeError:
        return False
    begun = time.monotonic()
    part = Path("x.tvl.part")
    while (not part.exists() or part.stat().st_size < 4096) and time.monotonic() - begun < IN_TIME:
        if start.poll() is not None:
            return False
        time.sleep(0.01)
    return True


def alive(pid):
    try:
        return b"trivelet" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def kill_one(start, rank, what):
    """Of the processes of an mpirun, which is to end by itself, and the others with it. What it said."""
    ranks = children(start.pid)
    victims = [p for p in ranks if f"OMPI_COMM_WORLD_RANK={rank}\0".encode() in Path(f"/proc/{p}/environ").read_bytes()]
    if len(victims) != 1:
        complain(f"{what}: {len(victims)} processes of rank {rank}")
    for v in victims:
        os.kill(v, signal.SIGKILL)
    try:
        if start.wait(IN_TIME) == 0:
            complain(f"{what}: no failure")
    except subprocess.TimeoutExpired:
        start.kill()
        complain(f"{what}: the others went on")
    # mpirun tells them to end, and does not always wait for it.
    begun = time.monotonic()
    while any(alive(p) for p in ranks) and time.monotonic() - begun < IN_TIME:
        time.sleep(0.01)
    if any(alive(p) for p in ranks):
        complain(f"{what}: of {ranks} some went on")
    return start.stderr.read().decode(errors="replace") if start.stderr else ""


KILLED = ((0, "x.y4m"), (1, "x.y4m"), (2, "x.y4m"), (0, "x.pipe.y4m"), (2, "x.pipe.y4m")) if FULL else (
    (0, "x.y4m"), (1, "x.y4m"), (2, "x.pipe.y4m"))  # fmt: skip


def killed_decoding():
    """Each process in turn, while all write a file, and while one writes what the others send."""
    run(["encode", "a.y4m", "part.tvl", *GOPS, "--joinable", "-y"])
    joined = run(["join", *["part.tvl"] * 15, "-o", "long.tvl", "-y"])
    if joined.returncode:
        return complain("killed: no long stream", joined)
    os.mkfifo("x.pipe.y4m")
    for rank, output in KILLED:
        what = f"rank {rank} killed while it decodes into {output}"
        pipe = os.open("x.pipe.y4m", os.O_RDONLY | os.O_NONBLOCK)  # that is filled, and nobody reads
        start = subprocess.Popen(together(3, program, "decode", "long.tvl", output, "--threads", "1", "--quiet", "-y"),
                                 stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                 env=environment)
        begun = time.monotonic()
        filled = bytearray(4)
        while start.poll() is None and time.monotonic() - begun < IN_TIME:
            fcntl.ioctl(pipe, termios.FIONREAD, filled)
            if Path("x.y4m.part").exists() or int.from_bytes(filled, sys.byteorder) > 0:
                break
            time.sleep(0.001)
        said = kill_one(start, rank, what)
        os.close(pipe)
        if said.count("noticed that process") != 1 or "trivelet: error:" in said:
            complain(f"{what}: not one message, but {said}")
        # What has no time to tidy up, as mpirun gives it, leaves its file, but not by its name.
        Path("x.y4m.part").unlink(missing_ok=True)
        if Path("x.y4m").exists():
            complain(f"{what}: left a whole file")
            Path("x.y4m").unlink()
    Path("x.pipe.y4m").unlink()


def refused_journals(arguments, journal):
    """What another build left is not mixed with what this one codes, and what is not a journal is nobody's to write over."""
    left = journal.read_bytes()
    other_build = Path("other_build")
    shutil.copy(program, other_build)
    with open(other_build, "ab") as file:
        file.write(b"changed")
    for what, by, content, text in (
        ("of another build", str(other_build.resolve()), left, b"another build"),
        ("without a signature, as once", program, left[8:], b"not a journal"),
        ("of another version", program, left[:7] + bytes([left[7] + 1]) + left[8:], b"not a journal"),
        ("a file of the user's", program, b"my thesis", b"not a journal"),
    ):
        journal.write_bytes(content)
        result = subprocess.run([by, *arguments, "--resume", "-y"], env=environment, capture_output=True,
                                stdin=subprocess.DEVNULL, timeout=IN_TIME)
        if result.returncode != 2 or text not in result.stderr:
            complain(f"resumed: a journal {what}", result)
        if journal.read_bytes() != content:
            complain(f"resumed: a journal {what} was changed")
    journal.write_bytes(left)


def resumed():
    """A run that is killed leaves GOPs, which the next one takes; what was not written whole is coded again."""
    for name, options, processes in (("alone", [], 0), ("three, motion", ["--motion", "on", "--keyint", "20"], 3),
                                     ("a PSNR", ["--psnr", "40"], 0)):
        arguments = ["encode", "a.y4m", "r.tvl", "--gop", "3", "--threads", "1", *options]
        one = run(["encode", "a.y4m", "one.tvl", *arguments[3:], "-y"])
        head = together(processes) if processes else []
        journal = Path("r.tvl.resume")
        for least in (60000, 30000, 10000, 1000):  # bytes to wait for; a quick run may end before it is killed
            start = subprocess.Popen([*head, program, *arguments, "--resume", "--quiet", "-y"], env=environment,
                                     stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            begun = time.monotonic()
            while start.poll() is None and time.monotonic() - begun < IN_TIME:
                if journal.exists() and journal.stat().st_size > least:
                    break
                time.sleep(0.001)
            for victim in children(start.pid) if processes else [start.pid]:
                try:
                    os.kill(victim, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            start.wait(IN_TIME)
            if journal.exists():
                break
        if one.returncode or not journal.exists():
            complain(f"resumed, {name}: nothing was left to resume")
            continue
        with open(journal, "r+b") as j:  # the last entry is not whole
            j.truncate(journal.stat().st_size - 5)
        if name == "alone":
            refused_journals(arguments, journal)
        other = run([*arguments, "-q", "33", "--resume", "-y"])
        if "--psnr" not in options and (other.returncode != 2 or b"other options" not in other.stderr):
            complain(f"resumed, {name}: with other options", other)
        again = subprocess.run([*head, program, *arguments, "--resume", "-y"], env=environment, capture_output=True,
                               stdin=subprocess.DEVNULL, timeout=IN_TIME)
        if again.returncode or b"were not coded again" not in again.stderr:
            complain(f"resumed, {name}", again)
        elif Path("r.tvl").read_bytes() != Path("one.tvl").read_bytes():
            complain(f"resumed, {name}: other bytes")
        if journal.exists():
            complain(f"resumed, {name}: the journal was left")
            journal.unlink()
        Path("r.tvl").unlink(missing_ok=True)


def work(part):
    """In a folder of its own. What was wrong; it is printed when it is found."""
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        inputs()
        part()
        os.chdir("/")
    return failures


def main():
    global program, mpirun
    program, mpirun = (str(Path(a).resolve()) for a in sys.argv[1:3])
    parts = (resumed, failing, killed_encoding, killed_decoding, identity, films, reading, volumes)
    # Most of the time is that of starting and ending processes.
    with concurrent.futures.ProcessPoolExecutor(3) as pool:
        wrong = [w for found in [pool.submit(work, p) for p in parts] for w in found.result()]
    print("cluster_test:", f"{len(set(wrong))} failures" if wrong else "all good")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
