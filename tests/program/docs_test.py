#!/usr/bin/env python3
"""Checks the documents: links resolve, the files they name exist, README.md stays short.

In every *.md of the tree the target of a relative link exists, and the heading it names. What stands in backticks or in
an indented line and looks like a file (codec/transform/dwt.h, dwt.h, tests/bench/rd) is one: by its path from the root or from the
document, or, without a folder, anywhere. README.md has at most 117 lines, and its C++ lines occur in
samples/roundtrip.cpp in that order.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SKIPPED = {"build"}
SOURCES = {".h", ".cpp", ".inc", ".cu", ".cuh", ".py", ".sh", ".md"}  # by these a name without folder is known as ours


def tree() -> list[Path]:
    found, folders = [], [ROOT]
    while folders:
        for path in folders.pop().iterdir():
            if path.is_dir() and not path.is_symlink():
                if path.name not in SKIPPED and not path.name.startswith((".", "build-")):
                    folders.append(path)
            else:
                found.append(path)
    return found


def anchors(document: Path) -> set[str]:
    """Headings as they are linked to: lower case, spaces are hyphens, other punctuation is gone."""
    headings = re.findall(r"^#+ (.*)$", document.read_text(), flags=re.M)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}


def missing_link(document: Path, link: str) -> bool:
    target, _, anchor = link.partition("#")
    path = (document.parent / target).resolve() if target else document
    return not path.exists() or (bool(anchor) and path.suffix == ".md" and anchor not in anchors(path))


def looks_like_file(word: str, tops: set[str]) -> bool:
    if not re.fullmatch(r"[\w.*-]+(/[\w.*-]+)*/?", word):
        return False
    return word.split("/")[0] in tops if "/" in word else Path(word).suffix in SOURCES


def missing_file(document: Path, word: str, names: set[str]) -> bool:
    if "/" not in word and "*" not in word:
        return word not in names
    return not any(any(base.glob(word.rstrip("/"))) for base in (ROOT, document.parent))


def main() -> int:
    files = tree()
    names = {path.name for path in files}
    tops = {path.name for path in ROOT.iterdir() if path.is_dir()} - SKIPPED
    complaints = []
    for document in sorted(path for path in files if path.suffix == ".md"):
        shown = document.relative_to(ROOT)
        prose = re.sub(r"^```.*?^```", "", document.read_text(), flags=re.M | re.S)
        for link in re.findall(r"\]\(([^)\s]+)\)", prose):
            if not re.match(r"[a-z]+:", link) and missing_link(document, link):
                complaints.append(f"{shown}: the link {link} leads nowhere")
        for code in re.findall(r"`([^`\n]+)`|^    (.*)$", prose, flags=re.M):
            for word in " ".join(code).split():
                if looks_like_file(word, tops) and missing_file(document, word, names):
                    complaints.append(f"{shown}: there is no {word}")

    readme = (ROOT / "README.md").read_text()
    lines = readme.count("\n")
    if lines > 117:
        complaints.append(f"README.md has {lines} lines, of 117 at most")
    sample = [line.strip() for line in (ROOT / "samples/roundtrip.cpp").read_text().splitlines()]
    for block in re.findall(r"^```cpp\n(.*?)^```", readme, flags=re.M | re.S):
        at = 0
        for line in filter(None, map(str.strip, block.splitlines())):
            if line not in sample[at:]:
                complaints.append(f"README.md: '{line}' is not in samples/roundtrip.cpp (or not in this order)")
                break
            at = sample.index(line, at) + 1
    for complaint in complaints:
        print(complaint)
    print(f"{len(complaints)} complaints")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
