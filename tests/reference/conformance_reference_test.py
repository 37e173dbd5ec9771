#!/usr/bin/env python3
"""Decode the conformance streams with the reference decoders (reference_decoder.py, reference_volume.py): the MD5s of
their samples must be those of conformance/streams.txt, and what conformance/refused.txt lists must be refused.

    conformance_reference_test.py                compare
    conformance_reference_test.py --write LIST   write streams.txt; a line of LIST is the name of a stream and options of
                                                 "trivelet decode" (conformance/make.sh does this)
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
import reference_volume  # noqa: E402

FOLDER = Path(__file__).resolve().parents[1] / "conformance"
NAMES = {"--max-layers": "layers", "--max-planes": "planes", "--reduce": "reduce",
         "--temporal-reduce": "temporal_reduce"}


def digest(name: str, options: list[str]) -> str:
    options = [option for option in options if option != "--keep-partial"]  # complete GOPs are always kept
    chosen = dict(zip(options[::2], options[1::2]))
    region = tuple(map(int, chosen.pop("--region").split(","))) if "--region" in chosen else None
    less = reference.Options(**{NAMES[key]: int(value) for key, value in chosen.items()})
    data = (FOLDER / f"{name}.tvl").read_bytes()
    if name.startswith("volume_"):
        return hashlib.md5(reference_volume.decode(data, less, region)).hexdigest()
    md5 = hashlib.md5()
    reference.decode(data, less, md5.update)
    return md5.hexdigest()


def refusal(name: str) -> str:
    """Of a stream; empty if it was taken."""
    data = (FOLDER / "refused" / f"{name}.tvl").read_bytes()
    try:
        if name.startswith("volume_"):
            reference_volume.decode(data, reference.Options())
        else:
            reference.decode(data, reference.Options(), lambda _: None)
    except reference.FormatError as error:
        return str(error)
    return ""


def main(arguments: list[str]) -> int:
    if len(arguments) == 2 and arguments[0] == "--write":
        with open(FOLDER / "streams.txt", "w", encoding="ascii") as sink:
            for line in Path(arguments[1]).read_text(encoding="ascii").splitlines():
                name, *options = line.split()
                print(digest(name, options), name, *options, file=sink)
        return 0
    compared = failed = 0
    names = set()
    # Every third stream whole, of the ways to decode less every seventeenth one: Python takes its time. The programs
    # decode all of them every day.
    full = os.environ.get("TRIVELET_FULL", "0") not in ("", "0")
    whole = 0
    for number, line in enumerate((FOLDER / "streams.txt").read_text(encoding="ascii").splitlines()):
        expected, name, *options = line.split()
        names.add(name)
        whole += not options
        if not full and (number % 17 if options else whole % 3 != 1):
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
        print("FAILED: the streams are not those of streams.txt")
    refused = [line.split(" ", 1) for line in (FOLDER / "refused.txt").read_text(encoding="ascii").splitlines()]
    for name, words in refused:
        compared += 1
        why = refusal(name)
        # What a reader does not know is named; other texts are a reader's own.
        if not why or (name.startswith(("required", "feature", "critical", "version")) and words not in why):
            failed += 1
            print(f"FAILED {name}: {why or 'decoded'}")
    if {name for name, _ in refused} != {path.stem for path in (FOLDER / "refused").glob("*.tvl")}:
        failed += 1
        print("FAILED: the streams are not those of refused.txt")
    print(f"{compared} compared, {failed} failed")
    return 1 if failed or not compared else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
