#!/usr/bin/env bash
# The whole test suite, from a fresh checkout on Debian 12 to ctest's summary:
#   tests/run.sh
# Installs what is missing (apt-get, as root or through sudo; no network is needed when nothing is), builds Release with
# warnings as errors and once more with AddressSanitizer and UBSan, runs the unit tests of the latter and everything of
# the former. BUILD_DIR (default build/test) and JOBS (default: one per core) can be set in the environment.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${BUILD_DIR:-build/test}
jobs=${JOBS:-$(nproc)}

# shellcheck source=samples/packages.sh
source samples/packages.sh
install_missing "${BUILD_PACKAGES[@]}" "${TEST_PACKAGES[@]}"

configure_and_build() { # configure_and_build FOLDER OPTIONS...
  cmake -S . -B "$@" -G Ninja -DTRIVELET_WERROR=ON >"$build.log" || { cat "$build.log"; exit 1; }
  cmake --build "$1" -j "$jobs" >"$build.log" || { grep -vE '^\[[0-9]+/[0-9]+\]' "$build.log" | head -n 200; exit 1; }
  tail -n 1 "$build.log"
}
mkdir -p "$(dirname "$build")"

echo "== AddressSanitizer and UBSan: unit tests"
# Less optimised, which compiles in half the time, and without the program, whose tests are those of the release build.
configure_and_build "$build-asan" -DCMAKE_BUILD_TYPE=RelWithDebInfo "-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O1 -g1" \
  -DTRIVELET_SANITIZE=address,undefined -DTRIVELET_PROGRAM=OFF -DTRIVELET_CUDA=OFF -DTRIVELET_FFTW=OFF
ctest --test-dir "$build-asan" --output-on-failure -j "$jobs" -LE cli || sanitized=failed

echo "== Release: all tests"
# CUDA, where nvcc is: for the GPU at hand, else for the oldest one only and not optimised, to see that it compiles.
cuda=(-DCMAKE_CUDA_ARCHITECTURES=75-real "-DCMAKE_CUDA_FLAGS_RELEASE=-O0 -Xcicc=-O0 -Xptxas=-O0")
if command -v nvidia-smi >/dev/null && nvidia-smi >/dev/null 2>&1; then cuda=(-DCMAKE_CUDA_ARCHITECTURES=native); fi
configure_and_build "$build" -DCMAKE_BUILD_TYPE=Release -DTRIVELET_EMULATION=OFF -DTRIVELET_REPLAY=OFF \
  -DTRIVELET_MPI=AUTO "${cuda[@]}"
ctest --test-dir "$build" --output-on-failure -j "$jobs"

echo "== Release without MPI: its tests"
configure_and_build "$build" -DTRIVELET_MPI=OFF
ctest --test-dir "$build" --output-on-failure -R '^still_cli_test$'
[ -z "${sanitized:-}" ] || { echo "the tests under AddressSanitizer and UBSan failed, see above"; exit 1; }
