#!/usr/bin/env bash
# Makes the tag of a version, vX.Y.Z, where all places agree on it:
#   packaging/tag.sh            of the version in CMakeLists.txt, whose section of CHANGELOG.md bears a date
#   packaging/tag.sh --check    only looks whether the places agree, released or not
set -euo pipefail
cd "$(dirname "$0")/.."
fail() {
  echo "$1" >&2
  exit 1
}
version=$(sed -nE 's/^project\(trivelet VERSION ([0-9.]+) .*/\1/p' CMakeLists.txt)
[ -n "$version" ] || fail "CMakeLists.txt names no version"
library=$(sed -nE 's/.*kLibraryVersion = "([^"]+)".*/\1/p' include/trivelet/parameters.h)
[ "$library" = "$version" ] || fail "include/trivelet/parameters.h says $library, CMakeLists.txt $version"
section=$(grep -m 1 '^## ' CHANGELOG.md)
case "$section" in
  "## $version (not yet released)" | "## $version ("????-??-??")") ;;
  *) fail "CHANGELOG.md begins with '$section'; it should be '## $version (YYYY-MM-DD)' or '(not yet released)'" ;;
esac
[ "${1:-}" != --check ] || exit 0
[ $# -eq 0 ] || fail "usage: $0 [--check]"
[[ $section != *"not yet"* ]] || fail "CHANGELOG.md: give $version its date first"
[ -z "$(git status --porcelain)" ] || fail "there are changes that are not committed"
! git rev-parse -q --verify "refs/tags/v$version" >/dev/null || fail "v$version is there already"
sign=-a
if git config user.signingkey >/dev/null; then sign=-s; else echo "not signed: git knows no user.signingkey"; fi
git tag $sign "v$version" -m "Trivelet $version"
echo "v$version; now: git push origin v$version"
