#!/usr/bin/env python3
"""The rules of CONTRIBUTING.md ("Style") that a program can check: includes go one way; lines, functions and folders are
small; every file says what it is for; private words of earlier versions do not come back.

    layers_test.py
"""
import re
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCES = {".h", ".cpp", ".cu", ".cuh", ".c"}
# A folder of codec/ sees itself and what stands before it.
CODEC = "base threads predict transform entropy motion format backend.h rate cpu measure encoder volume decoder edit".split()
GPU = "device transform plan entropy motion pipeline".split()
# What a top folder may include beside itself and include/trivelet.
TOP = {
    "include": set(),
    "codec": set(),
    "gpu": {"codec"},
    "io": {"codec"},
    "capi": set(),
    "web": set(),
    "plugins": {"io", "codec"},
    "apps": {"codec", "gpu", "io", "apps"},
}
# Only kernels and the seam know the processor that runs them.
NOT_CPU = {"predict", "motion", "rate", "edit"}
# The private headers of the codec that the program uses, but for apps/bench, which measures single stages. What the
# program needs beside them belongs into include/trivelet; docs/ARCHITECTURE.md names them.
PROGRAM = {
    "base": {"bytes", "limits", "stream_header", "temporaries"},
    "threads": {"parallel", "prefetch", "stage_queue", "stopwatch", "trace", "worker"},
    "format": {"container", "stream_input", "stream_layout"},
    "backend.h": {""},
    "rate": {"spool"},
    "encoder": {"encoder_params", "encoder_part"},
    "edit": {"header_difference"},
    "still": {"ccsds122/ccsds122", "dct/dct", "vstc/vstc", "vstc/vstc_wave"},
}
MAX_COLUMNS = 120
SCRIPTS = {".js", ".ts", ".mjs", ".html", ".py"}  # of web/ and tests/web/
MAX_FILES = 32
# A function longer than MAX_LINES counts as long. MAX_LONG is how many there are: lower it when one is divided.
MAX_LINES = 60
MAX_LONG = 70
# Names of earlier versions (lookahead, SideStreams, WorkerGroup and so on replaced them), and words that name nothing.
PRIVATE = "Company|Crew|Dealing|Errand|Finisher|Judgement|Patience|Placing|Summons|Told"
PRIVATE_WORDS = (
    "anew|company|crews?|dealing|errands?|everybody|judgements?|leans?|lends?|lent|likewise|somebody|summons|whoever"
)
# A name is a verb or a noun.
HALF_NAME = r"\bof_[a-z]\w*"


def sources(top):
    return sorted(p for p in (ROOT / top).rglob("*") if p.suffix in SOURCES)


def scripts(top):
    """Of web/ those of the browser, and the tests of them."""
    found = [p for folder in (ROOT / "web", ROOT / "tests/web") for p in folder.rglob("*") if p.suffix in SCRIPTS]
    return sorted(found) if top == "web" else []


def includes(path):
    return re.findall(r'^#include "([^"]+)"', path.read_text(), re.M)


def layer(parts):
    """The floor of codec/ that a path below codec/ belongs to; None for still/, which has rules of its own."""
    return None if parts[0] == "still" else CODEC.index(parts[0])


def codec_complaints(path, shown, inc):
    own, other = shown.parts[1:], inc.split("/")[1:]
    if own[0] == "still":
        if other[0] not in {"still", "base", "threads", "transform", "entropy"}:
            yield f"{shown} includes {inc}; still pictures know base, threads, transforms and entropy coders alone"
    elif other[0] == "still":
        yield f"{shown} includes {inc}; the video codec does not know still pictures"
    elif other[0] not in CODEC:
        yield f"{shown} includes {inc}, of a folder without a floor"
    elif layer(other) > layer(own):
        yield f"{shown} includes {inc}, which stands above it"
    elif own[0] in NOT_CPU and other[0] == "cpu":
        yield f"{shown} includes {inc}; {own[0]}/ does not know the backend"


def gpu_complaints(shown, inc):
    own, other = shown.parts[1:], inc.split("/")[1:]
    if own[0] in GPU and other[0] in GPU and GPU.index(other[0]) > GPU.index(own[0]):
        yield f"{shown} includes {inc}, which stands above it"


def include_complaints():
    for top, allowed in TOP.items():
        for path in sources(top):
            shown = path.relative_to(ROOT)
            for inc in includes(path):
                other = inc.split("/")[0]
                if other not in TOP or other == "include":
                    continue
                if other != top and other not in allowed:
                    yield f"{shown} includes {inc}; {top}/ may include {sorted(allowed) or 'include/trivelet'} alone"
                elif top == other == "codec":
                    yield from codec_complaints(path, shown, inc)
                elif top == other == "gpu":
                    yield from gpu_complaints(shown, inc)
                elif top == "gpu" and re.match(r"codec/(encoder|decoder|measure)/", inc):
                    yield f"{shown} includes {inc}; a backend stands below encoder, decoder and measuring"


def program_complaints():
    allowed = {f"codec/{folder}" + (f"/{name}.h" if name else "") for folder, names in PROGRAM.items() for name in names}
    used = set()
    for path in sources("apps"):
        shown = path.relative_to(ROOT)
        if shown.parts[1] == "bench":
            continue
        used |= {inc for inc in includes(path) if inc.startswith("codec/")}
        for inc in includes(path):
            if inc.startswith("codec/") and inc not in allowed:
                yield f"{shown} includes {inc}, a private header of the codec that the program has done without"
    for inc in sorted(allowed - used):
        yield f"no program includes {inc}: take it from the list in this test and in docs/ARCHITECTURE.md"
    named = (ROOT / "docs/ARCHITECTURE.md").read_text()
    for inc in sorted(allowed):
        if f"`{Path(inc).name}`" not in named:
            yield f"docs/ARCHITECTURE.md does not name {Path(inc).name}, which the program includes"


def size_complaints():
    for top in TOP:
        for path in sources(top) + scripts(top):
            for number, line in enumerate(path.read_text().splitlines(), 1):
                if len(line) > MAX_COLUMNS:
                    yield f"{path.relative_to(ROOT)}:{number}: {len(line)} columns, of {MAX_COLUMNS} at most"
        folders = Counter(path.parent.relative_to(ROOT) for path in sources(top))
        for folder, files in folders.items():
            if files > MAX_FILES:
                yield f"{folder}: {files} sources, of {MAX_FILES} at most"


def has_head(path):
    """A comment at the top; a source may leave it to the header of the same name."""
    headers = [path.with_suffix(".h"), path.with_suffix(".cuh"), ROOT / "include/trivelet" / (path.stem + ".h")]
    return path.read_text().startswith(("//", "/*")) or any(header.exists() and header != path for header in headers)


def english_complaints():
    for path in scripts("web"):
        if path.suffix in {".js", ".mjs"} and not path.read_text().startswith("//"):
            yield f"{path.relative_to(ROOT)}: no comment at the top says what the file is for"
    for path in [p for top in (*TOP, "tests") for p in sources(top)]:
        shown = path.relative_to(ROOT)
        if not has_head(path):
            yield f"{shown}: no comment at the top says what the file is for"
        for number, line in enumerate(path.read_text().splitlines(), 1):
            found = re.search(rf"\b({PRIVATE})\b", line) or re.search(rf"(?://|/\*|^ \*).*\b({PRIVATE_WORDS})\b", line)
            if found:
                yield f"{shown}:{number}: '{found[1]}': name the thing by the field's term"
            half = re.search(HALF_NAME, line.split("//")[0])
            if half:
                yield f"{shown}:{number}: '{half[0]}': a name is a verb or a noun"
    for path in sorted((ROOT / "python/trivelet").glob("*.py")):
        if not path.read_text().startswith('"""'):
            yield f"{path.relative_to(ROOT)}: no docstring at the top says what the module is for"


def code_of(text):
    """The same lines with blanks in place of comments, strings and directives."""

    def blank(match):
        return re.sub(r"[^\n]", " ", match[0])

    quoted = r'"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])+\''
    text = re.sub(rf'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|{quoted}', blank, text, flags=re.S)
    return re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", blank, text, flags=re.M)


def functions(text):
    """First line and number of lines of every function body."""
    text = code_of(text)
    open_braces, begin, first = [], 0, 0
    for match in re.finditer(r"[{};]", text):
        at = match.start()
        if match[0] == "{":
            head = text[begin:at].strip()
            scope = re.search(r"\b(namespace|class|struct|union|enum|extern)\b", head)
            is_signature = re.search(r"\)\s*(const|noexcept|override|final)?\s*$", head)
            if "function" in open_braces or (not scope and ")" not in head):
                open_braces.append("other")
            elif scope and not is_signature:
                open_braces.append("scope")
            else:
                open_braces.append("function")
                first = text.count("\n", 0, at) + 1
        elif match[0] == "}" and open_braces and open_braces.pop() == "function":
            yield first, text.count("\n", 0, at) + 2 - first
        begin = at + 1


def function_complaints():
    found = [
        f"{path.relative_to(ROOT)}:{first}: {lines} lines"
        for top in TOP
        for path in sources(top)
        for first, lines in functions(path.read_text())
        if lines > MAX_LINES
    ]
    if len(found) > MAX_LONG:
        yield f"{len(found)} functions of more than {MAX_LINES} lines, of {MAX_LONG} at most: " + "; ".join(found)


def main():
    complaints = [
        *include_complaints(),
        *program_complaints(),
        *size_complaints(),
        *english_complaints(),
        *function_complaints(),
    ]
    for complaint in complaints:
        print(complaint)
    print(f"{len(complaints)} complaints")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
