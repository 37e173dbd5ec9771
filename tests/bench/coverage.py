#!/usr/bin/env python3
"""Line and branch coverage of source folders, from gcov's output in a build folder:

    coverage.py BUILD FOLDER...      e.g. coverage.py build/coverage codec io

A line counts once however often it was compiled; a branch once for every function it is in, templates for each of their
arguments. Branches that only exceptions take are left out."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def main(arguments: list[str]) -> int:
    if len(arguments) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    build = Path(arguments[0]).resolve()
    lines: dict[tuple[str, int], int] = defaultdict(int)
    branches: dict[tuple, list[int]] = {}
    for notes in sorted(build.rglob("*.gcno")):
        said = subprocess.run(["gcov", "--branch-probabilities", "--json-format", "--stdout", notes.name],
                              cwd=notes.parent, capture_output=True, check=False).stdout
        for report in map(json.loads, said.splitlines()):
            where = Path(report["current_working_directory"])
            for source in report["files"]:
                path = (where / source["file"]).resolve()
                if not path.is_relative_to(ROOT) or path.is_relative_to(build):
                    continue
                name = str(path.relative_to(ROOT))
                for line in source["lines"]:
                    lines[name, line["line_number"]] += line["count"]
                    taken = [int(b["count"] > 0) for b in line["branches"] if not b["throw"]]
                    key = (name, line["line_number"], line.get("function_name"), len(taken))
                    branches[key] = [a | b for a, b in zip(branches.get(key, taken), taken)]
    if not lines:
        print(f"no coverage in {build}", file=sys.stderr)
        return 1
    for folder in arguments[1:]:
        counts = [count > 0 for (name, _), count in lines.items() if name.startswith(folder + "/")]
        taken = [b for key, found in branches.items() if key[0].startswith(folder + "/") for b in found]
        print(f"{folder}: lines {100 * sum(counts) / len(counts):.1f} % ({sum(counts)} of {len(counts)}), "
              f"branches {100 * sum(taken) / len(taken):.1f} % ({sum(taken)} of {len(taken)})")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
