#!/usr/bin/env python3
"""One version everywhere: the program, the libraries, Python, the packages and the first section of CHANGELOG.md say
what CMakeLists.txt says; packaging/tag.sh makes a tag only where they agree; SECURITY.md has a way to report.

    version_test.py TRIVELET BUILD [LIBTRIVELET]
"""
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAM, BUILD, LIBRARY = sys.argv[1], Path(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else ""
failures = []


def found(name: str, pattern: str, text: str) -> None:
    """Notes what `pattern` finds in `text`, which is to be the version."""
    match = re.search(pattern, text, flags=re.M)
    value = match.group(1) if match else None
    if value != VERSION:
        failures.append(f"{name}: {value}, CMakeLists.txt: {VERSION}")


def output(*command: str, **options) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True, **options).stdout


VERSION = re.search(r"^project\(trivelet VERSION ([0-9.]+) ", (ROOT / "CMakeLists.txt").read_text(), flags=re.M).group(1)


def test_places() -> None:
    packaging = BUILD / "packaging"
    found("trivelet --version", r"\Atrivelet (\S+)$", output(PROGRAM, "--version"))
    found("CHANGELOG.md", r"^## (\S+) \((?:\d{4}-\d\d-\d\d|not yet released)\)$", first_section())
    found("CMakeCache.txt", r"^CMAKE_PROJECT_VERSION:STATIC=(.*)$", (BUILD / "CMakeCache.txt").read_text())
    found("CPackConfig.cmake", r'CPACK_PACKAGE_VERSION "(.*)"', (BUILD / "CPackConfig.cmake").read_text())
    found("trivelet.pc", r"^Version: (.*)$", (packaging / "trivelet.pc").read_text())
    found("TriveletConfigVersion.cmake", r'^set\(PACKAGE_VERSION "(.*)"\)$',
          (packaging / "TriveletConfigVersion.cmake").read_text())
    page = packaging / "described" / "trivelet.1"
    if page.exists():
        found("trivelet.1", r'^\.TH .*"Trivelet (\S+)"', page.read_text())
    # The wheel takes its version by this expression.
    wheel = re.search(r"\[tool\.scikit-build\.metadata\.version\].*?input = \"(.*?)\".*?regex = '''(.*?)'''",
                      (ROOT / "pyproject.toml").read_text(), flags=re.S)
    found("pyproject.toml", wheel.group(2).replace("?P<value>", ""), (ROOT / wheel.group(1)).read_text())
    if LIBRARY:
        said = subprocess.run(["/usr/bin/env", f"TRIVELET_LIBRARY={LIBRARY}", f"PYTHONPATH={ROOT / 'python'}",
                               sys.executable, "-c", "import trivelet; print(trivelet.__version__)"],
                              capture_output=True, text=True)
        if "No module named 'numpy'" not in said.stderr:
            found("trivelet.__version__", r"\A(\S+)$", said.stdout)


def first_section() -> str:
    return next(line for line in (ROOT / "CHANGELOG.md").read_text().splitlines() if line.startswith("## "))


def test_tag() -> None:
    """In a copy: no tag without a date or with another version, one where all agree."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        for name in ("CMakeLists.txt", "CHANGELOG.md", "include/trivelet/parameters.h", "packaging/tag.sh"):
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, copy / name)
        git = ("git", "-c", "user.name=a", "-c", "user.email=a@localhost", "-c", "commit.gpgsign=false")

        def tagged(section: str, header_version: str = VERSION) -> bool:
            changes = (ROOT / "CHANGELOG.md").read_text().replace(first_section(), section, 1)
            (copy / "CHANGELOG.md").write_text(changes)
            header = (ROOT / "include/trivelet/parameters.h").read_text()
            (copy / "include/trivelet/parameters.h").write_text(
                header.replace(f'kLibraryVersion = "{VERSION}"', f'kLibraryVersion = "{header_version}"'))
            output(*git, "add", "-A", cwd=copy)
            output(*git, "commit", "-q", "--allow-empty", "-m", "a", cwd=copy)
            names = {"GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@localhost", "GIT_CONFIG_GLOBAL": "/dev/null",
                     "PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": folder}
            code = subprocess.run([copy / "packaging/tag.sh"], capture_output=True, env=names).returncode
            there = output(*git, "tag", "--list", cwd=copy).split()
            if (code == 0) != (there == [f"v{VERSION}"]):
                failures.append(f"tag.sh of '{section}' ends with {code}, and the tags are {there}")
            return code == 0

        output(*git, "init", "-q", cwd=copy)
        for section, header in ((f"## {VERSION} (not yet released)", VERSION), ("## 99.1.0 (2026-01-01)", VERSION),
                                (f"## {VERSION} (2026-01-01)", "99.1.0"), (f"## {VERSION}", VERSION)):
            if tagged(section, header):
                failures.append(f"tag.sh accepts '{section}' and the library's version {header}")
        if not tagged(f"## {VERSION} (2026-01-01)"):
            failures.append("tag.sh refuses a version whose places agree")


def test_contact() -> None:
    """A place to report to, none of whose addresses is made up."""
    section = (ROOT / "SECURITY.md").read_text().split("## How to report\n")[1].split("\n## ")[0]
    if "Report a vulnerability" not in section:
        failures.append("SECURITY.md does not name the form for reports")
    if re.search(r"[\w.+-]+@[\w-]+\.\w+|\bexample\.|\.example\b", section):
        failures.append("SECURITY.md has an address that nobody answers for")


test_places()
test_tag()
test_contact()
print("\n".join(failures) or f"version_test: {VERSION} everywhere")
sys.exit(bool(failures))
