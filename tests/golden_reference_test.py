#!/usr/bin/env python3
"""Decode the golden streams with reference_decoder.py: the MD5s of their samples must be those of golden/golden.txt.

    golden_reference_test.py           compare
    golden_reference_test.py --write LIST   write golden.txt; a line of LIST is the name of a stream and options of
                                            "trivelet decode" (golden/make.sh does this)
"""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path

sys.dont_write_bytecode = True
SKIPPED = 77
try:
    import numpy  # noqa: F401
except ImportError:
    print("skipped: the reference decoder needs numpy")
    sys.exit(SKIPPED)

import reference_decoder as reference  # noqa: E402

FOLDER = Path(__file__).resolve().parent / "golden"
NAMES = {"--max-layers": "layers", "--max-planes": "planes", "--reduce": "reduce",
         "--temporal-reduce": "temporal_reduce"}


def digest(name: str, options: list[str]) -> str:
    options = [option for option in options if option != "--keep-partial"]  # complete GOPs are always kept
    chosen = {NAMES[key]: int(value) for key, value in zip(options[::2], options[1::2])}
    md5 = hashlib.md5()
    reference.decode((FOLDER / f"{name}.tvl").read_bytes(), reference.Options(**chosen), md5.update)
    return md5.hexdigest()


def main(arguments: list[str]) -> int:
    if len(arguments) == 2 and arguments[0] == "--write":
        with open(FOLDER / "golden.txt", "w", encoding="ascii") as sink:
            for line in Path(arguments[1]).read_text(encoding="ascii").splitlines():
                name, *options = line.split()
                print(digest(name, options), name, *options, file=sink)
        return 0
    compared = failed = 0
    names = set()
    # Whole streams all, of the ways to decode less every ninth one.
    full = os.environ.get("TRIVELET_FULL", "0") not in ("", "0")
    for number, line in enumerate((FOLDER / "golden.txt").read_text(encoding="ascii").splitlines()):
        expected, name, *options = line.split()
        names.add(name)
        if options and number % 9 and not full:
            continue
        compared += 1
        try:
            found = digest(name, options)
        except reference.FormatError as error:
            found = str(error)
        if found != expected:
            failed += 1
            print(f"FAILED {name} {' '.join(options)}: {found} instead of {expected}")
    if names != {path.stem for path in FOLDER.glob("*.tvl")}:
        failed += 1
        print("FAILED: the streams are not those of golden.txt")
    print(f"{compared} compared, {failed} failed")
    return 1 if failed or not compared else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
