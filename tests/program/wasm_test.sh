#!/usr/bin/env bash
# Builds page and npm package as they are shipped (web/build.sh) and uses them: wasm_test.sh FOLDER NATIVE PROGRAM
# FOLDER keeps the builds. NATIVE is samples/roundtrip.cpp built for this machine: the encoder's bytes must be the same.
# PROGRAM is trivelet, whose frames and voxels those of node and of the page must be (tests/web/web_test.py). With
# TRIVELET_FULL alone, because it compiles the whole codec twice more.
set -euo pipefail
case "${TRIVELET_FULL-}" in "" | 0) echo "skipped: tests/run.sh --full builds for WebAssembly" && exit 77 ;; esac
command -v em++ >/dev/null && command -v node >/dev/null || { echo "skipped: em++ or node is not installed" && exit 77; }
[ $# -eq 3 ] || { echo "usage: $0 FOLDER NATIVE PROGRAM" >&2; exit 2; }
folder=$(realpath -m "$1")
native=$(realpath "$2")
program=$(realpath "$3")
cd "$(dirname "$0")/../.."
web/build.sh "$folder"

NODE_PATH=${NODE_PATH:-/usr/share/nodejs} cmake --build "$folder/one" --target web_roundtrip >"$folder/roundtrip.log" 2>&1 ||
  { tail -n 40 "$folder/roundtrip.log"; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
node "$folder/one/web/web_roundtrip.js" "$work/wasm.tvl"
"$native" "$work/native.tvl" >/dev/null
cmp "$work/wasm.tvl" "$work/native.tvl"

python3 tests/web/web_test.py "$folder/app" "$program"
