#!/usr/bin/env python3
"""Runs of a program that has loaded its libraries (tests/support/loaded_program.py) are as those of their own process.

    tests/program/loaded_program_test.py path/to/trivelet
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import loaded_program  # noqa: E402
from program import check, failures  # noqa: E402

CLIP = b"YUV4MPEG2 W16 H8 F25:1 Ip A1:1 Cmono\nFRAME\n" + bytes(128)
ORPHAN = "import sys; sys.path.insert(0, sys.argv[1]); import loaded_program as l, os, signal; " \
         "print(l.LoadedProgram(sys.argv[2]).process.pid, flush=True); os.kill(os.getpid(), signal.SIGKILL)"


def ends(process: int) -> bool:
    for _ in range(200):
        try:
            if "\nState:\tZ" in Path(f"/proc/{process}/status").read_text():
                return True
        except FileNotFoundError:
            return True
        time.sleep(0.05)
    return False


def main() -> int:
    path = os.path.abspath(sys.argv[1])
    if not loaded_program.LIBRARY:
        print("skipped: no FFmpeg to load")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        Path("a.y4m").write_bytes(CLIP)
        Path("cut.y4m").write_bytes(CLIP[:-1])
        for words, code in ((["--version"], 0), (["encode", "a.y4m", "a.tvl", "--lossless", "--quiet", "-y"], 0), (["decode", "a.tvl", "-", "--quiet"], 0),
                            (["encode", "cut.y4m", "b.tvl"], 4), (["info", "-"], 4), (["info", "none"], 3), (["--wrong", ""], 2)):  # fmt: skip
            found = loaded_program.run(path, *words)
            alone = subprocess.run([path, *words], input=b"", capture_output=True)
            check(found.returncode == alone.returncode == code, f"{words}: exit codes {found.returncode} and {alone.returncode}")
            check((found.stdout, found.stderr) == (alone.stdout, alone.stderr), f"{words}: {found} and {alone}")
        check(list(loaded_program.loaded) == [path], "it was loaded")
        check(loaded_program.run(path, "decode", "a.tvl", "-").stdout == CLIP, "what goes to standard output")
        check(loaded_program.run(path, "decode", "-", "-", stdin=Path("a.tvl").read_bytes()).stdout == CLIP, "standard input")
        os.mkfifo("nothing.y4m")
        try:
            loaded_program.run(path, "encode", "nothing.y4m", "c.tvl", timeout=0.2)
            check(False, "a run that does not end")
        except subprocess.TimeoutExpired:
            pass
        check(loaded_program.run(path, "--version").returncode == 0, "runs behind one that was ended")
        os.environ["TZ"] = "UTC"
        process = loaded_program.loaded[path].process
        process.send_signal(signal.SIGSTOP)  # not asked with another environment
        check(loaded_program.run(path, "--version").returncode == 0, "another environment")
        process.send_signal(signal.SIGCONT)
        told = subprocess.run([sys.executable, "-c", ORPHAN, loaded_program.__file__.rsplit("/", 1)[0], path], capture_output=True)
        check(ends(int(told.stdout)), "it ends with whoever started it")
    print(f"{len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
