"""Helpers of the program's tests: run the program, query FFmpeg, print and count failures.

A test sets `program.path` and ends with 1 if there are `failures`."""

import shutil
import subprocess

path = ""
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


def run(*arguments, code: int = 0, stdin: bytes = b"") -> str:
    """What the program said, on both outputs."""
    result = subprocess.run([path, *map(str, arguments)], input=stdin, capture_output=True, timeout=120)
    said = result.stderr.decode(errors="replace") + result.stdout.decode(errors="replace")
    check(result.returncode == code, f"{' '.join(map(str, arguments))}: exit code {result.returncode}: {said[:400]}")
    return said


def has_ffmpeg() -> bool:
    """Of the machine and of the program; says if not."""
    has = shutil.which("ffmpeg") is not None and "FFmpeg no" not in run("--version")
    if not has:
        print("skipped: no ffmpeg")
    return has


def ffmpeg(*arguments) -> subprocess.CompletedProcess:
    """What it decodes goes to `.stdout`, its report to `.stderr`. Throws if it fails."""
    command = ["ffmpeg", "-v", "info", "-nostdin", "-y", *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True)
