#!/usr/bin/env bash
# Builds the codec for WebAssembly and runs it: wasm_test.sh FOLDER NATIVE
# FOLDER keeps the objects; NATIVE is samples/roundtrip.cpp built for this machine, whose bytes must be the same. With
# TRIVELET_FULL alone, for it compiles the whole codec once more.
set -euo pipefail
case "${TRIVELET_FULL-}" in "" | 0) echo "skipped: tests/run.sh --full builds for WebAssembly" && exit 77 ;; esac
command -v em++ >/dev/null && command -v node >/dev/null || { echo "skipped: em++ or node is not installed" && exit 77; }
[ $# -eq 2 ] || { echo "usage: $0 FOLDER NATIVE" >&2; exit 2; }
folder=$(realpath -m "$1")
native=$(realpath "$2")
cd "$(dirname "$0")/../.."
mkdir -p "$folder"
# No threads: those that the codec would start do not start, and their work is done by the one there is.
flags=(-std=c++20 -O2 -fexceptions -msimd128 -ffp-contract=off -Iinclude -I. -include codec/base/older_libcxx.h)
sources=(samples/roundtrip.cpp)
for file in codec/*/*.cpp codec/entropy/*/*.cpp; do
  case "$file" in codec/still/*) ;; *) sources+=("$file") ;; esac
done
export flags_text="${flags[*]}" folder
compile() {
  object=$folder/$(basename "$1" .cpp).o
  # shellcheck disable=SC2086  # the flags are words
  [ "$object" -nt "$1" ] || em++ $flags_text -c "$1" -o "$object"
}
export -f compile
printf '%s\n' "${sources[@]}" | xargs -P "${JOBS:-$(nproc)}" -I{} bash -euc 'compile {}'
em++ -O1 -fexceptions -s ALLOW_MEMORY_GROWTH=1 -s EXIT_RUNTIME=1 -s SINGLE_FILE=1 -s NODERAWFS=1 -o "$folder/roundtrip.js" "$folder"/*.o
cd "$folder"
node roundtrip.js wasm.tvl
"$native" native.tvl >/dev/null
cmp wasm.tvl native.tvl
