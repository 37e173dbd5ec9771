#!/usr/bin/env bash
# Line and branch coverage of the library by all tests, those of the program included:
#   tests/bench/coverage.sh [FOLDER]
# Builds into FOLDER (build/coverage) with the counters of gcov, runs every test once and prints what coverage.py makes of
# codec/ and io/. With TRIVELET_FULL=1 in the environment for the full grids.
set -euo pipefail
cd "$(dirname "$0")/../.."
folder=${1:-build/coverage}
mkdir -p "$(dirname "$folder")"

# Counters are atomic: GCC counts loops by them, and what another thread adds makes such a loop endless.
cmake -S . -B "$folder" -G Ninja -DTRIVELET_UNITY=ON -DTRIVELET_PRECOMPILE=ON -DTRIVELET_CUDA=OFF -DTRIVELET_ITK=OFF \
  -DCMAKE_BUILD_TYPE=Debug "-DCMAKE_CXX_FLAGS_DEBUG=-O1 -g0" "-DCMAKE_CXX_FLAGS=--coverage -fprofile-update=atomic" >"$folder.log" || { cat "$folder.log"; exit 1; }
cmake --build "$folder" -j "${JOBS:-$(nproc)}" >"$folder.log" || { tail -n 50 "$folder.log"; exit 1; }
find "$folder" -name '*.gcda' -delete
# What install_test links with the static library needs the counters, too.
LDFLAGS=--coverage ctest --test-dir "$folder" --output-on-failure -j "${JOBS:-$(nproc)}" --timeout 3000 || echo "some tests failed"
python3 tests/bench/coverage.py "$folder" codec io
