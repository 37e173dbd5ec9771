#!/usr/bin/env bash
# Finds reads of uninitialised memory, which the sanitizers of the tests do not detect:
#   tests/fuzz/memcheck.sh [FOLDER]
# Builds the fuzz targets without sanitizers into FOLDER (build/memcheck) and runs each over its files of tests/corrupt
# under valgrind (package valgrind). MemorySanitizer would be faster, but wants a C++ library that is built with it, too.
set -euo pipefail
cd "$(dirname "$0")/../.."
folder=${1:-build/memcheck}
command -v valgrind >/dev/null || { echo "there is no valgrind" >&2; exit 1; }
mkdir -p "$folder"
cmake -S . -B "$folder" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo "-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O1 -g1" \
  -DTRIVELET_UNITY=ON -DTRIVELET_PROGRAM=OFF -DTRIVELET_CUDA=OFF -DTRIVELET_FFTW=OFF -DTRIVELET_FFMPEG=OFF \
  -DTRIVELET_GDCM=OFF >"$folder.log" || { cat "$folder.log"; exit 1; }
cmake --build "$folder" -j "${JOBS:-$(nproc)}" --target fuzz_replay >"$folder.log" || { tail -n 50 "$folder.log"; exit 1; }
failed=0
inputs=0
for inputs_of in tests/corrupt/*/; do
  target=$(basename "$inputs_of")
  if valgrind -q --error-exitcode=9 --suppressions=tests/fuzz/memcheck.supp "$folder/tests/fuzz/fuzz_replay" "$target" "$inputs_of" >"$folder.log" 2>&1; then
    inputs=$((inputs + $(find "$inputs_of" -type f | wc -l)))
  else
    echo "== $target"
    tail -n 40 "$folder.log"
    failed=1
  fi
done
[ $failed -eq 0 ] || exit 1
echo "$inputs inputs: nothing was read that nothing was written to"
