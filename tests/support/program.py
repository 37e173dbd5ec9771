"""Helpers of the program's tests: run the program, query FFmpeg, print and count failures.

A test sets `program.path` and ends with 1 if there are `failures`."""

import functools
import shutil
import subprocess

import loaded_program

path = ""
loads_ffmpeg = False
failures: list[str] = []


def complain(what: str, result: subprocess.CompletedProcess | None = None) -> None:
    """`result`: of the run that went wrong, whose words are shown."""
    failures.append(what)
    print(f"FAILED: {what}")
    if result is not None:
        print(f"  exit code {result.returncode}, said: {result.stderr.decode(errors='replace')[:2000]}")


def check(good: bool, what: str) -> None:
    if not good:
        complain(what)


def process(*command, stdin: bytes = b"", check: bool = False) -> subprocess.CompletedProcess:
    """The program, ffmpeg or ffprobe; in a test of films with libraries that are loaded once."""
    if loads_ffmpeg and command[0] in (path, "ffmpeg", "ffprobe"):
        result = loaded_program.run(*command, stdin=stdin)
    else:
        result = subprocess.run([*map(str, command)], input=stdin, capture_output=True, timeout=120)
    if check:
        result.check_returncode()
    return result


def run(*arguments, code: int = 0, stdin: bytes = b"") -> str:
    """What the program said, on both outputs."""
    result = process(path, *arguments, stdin=stdin)
    said = result.stderr.decode(errors="replace") + result.stdout.decode(errors="replace")
    check(result.returncode == code, f"{' '.join(map(str, arguments))}: exit code {result.returncode}: {said[:400]}")
    return said


def has_ffmpeg() -> bool:
    """Of the machine and of the program; says if not."""
    global loads_ffmpeg
    has = shutil.which("ffmpeg") is not None and "FFmpeg no" not in run("--version")
    if not has:
        print("skipped: no ffmpeg")
    loads_ffmpeg = has
    return has


def ffmpeg(*arguments) -> subprocess.CompletedProcess:
    """What it decodes goes to `.stdout`, its report to `.stderr`. Throws if it fails."""
    return process("ffmpeg", "-v", "info", "-nostdin", "-y", *arguments, check=True)


@functools.cache
def encoders() -> bytes:
    """ffmpeg's list of them."""
    return process("ffmpeg", "-v", "quiet", "-encoders", check=True).stdout
