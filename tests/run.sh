#!/usr/bin/env bash
# The whole test suite, from a fresh checkout on Debian 12 to the ten slowest tests:
#   tests/run.sh [--full]
# Installs missing packages (apt-get, as root or through sudo; without any no network is needed) and builds twice with
# warnings as errors: under AddressSanitizer and UBSan for the unit tests, and as a release for the program, its tests and
# those that compare instruction sets, as far as cores are idle while the others are built and run. Grids
# of cases are sampled; --full tries all of them and also builds
# CUDA, the ITK plug-in and the benchmarks. BUILD_DIR (default build/test), JOBS (default: one per core),
# CCACHE_DISABLE=1 and CI=1 (no compiler's cache) can be set in the environment.
set -euo pipefail
full=
case "$*" in
  "") ;;
  --full) full=1 ;;
  *) echo "usage: $0 [--full]" >&2; exit 2 ;;
esac
cd "$(dirname "$0")/.."
build=${BUILD_DIR:-build/test}
jobs=${JOBS:-$(nproc)}
export TRIVELET_FULL=$full

# shellcheck source=samples/packages.sh
source samples/packages.sh
install_missing "${BUILD_PACKAGES[@]}" "${TEST_PACKAGES[@]}"
[ -d "${TRIVELET_DATA:-../shared/data}" ] || echo "== no folder of real clips and volumes: the tests that read some are skipped"

mkdir -p "$(dirname "$build")"
common=(-G Ninja -DTRIVELET_WERROR=ON)
# ITK's headers and packages take longer than what is there for them, which is rarely changed.
[ "$full" ] || common+=(-DTRIVELET_UNITY=ON -DTRIVELET_ITK=OFF)
# Without a compiler's cache the standard headers are read once and units are as large as they can be; --full lets every
# file read what it includes itself. A cache that lacks most of what is compiled costs more than none, and continuous
# integration has no other.
if command -v ccache >/dev/null && [ -z "${CCACHE_DISABLE:-}${CI:-}" ]; then
  common+=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache -DCMAKE_CUDA_COMPILER_LAUNCHER=ccache)
  # What was compiled in another checkout is found, too.
  export CCACHE_BASEDIR=${CCACHE_BASEDIR:-$PWD} CCACHE_NOHASHDIR=${CCACHE_NOHASHDIR:-1}
elif [ -z "$full" ]; then
  common+=(-DTRIVELET_PRECOMPILE=ON)
fi

# configure FOLDER OPTIONS...
configure() {
  cmake -S . -B "$@" "${common[@]}" >"$1.log" || { cat "$1.log"; exit 1; }
}

# build FOLDER TARGETS...
build() {
  local folder=$1
  shift
  cmake --build "$folder" -j "$jobs" --target "$@" >"$folder.log" ||
    { grep -vE '^\[[0-9]+/[0-9]+\]' "$folder.log" | head -n 200; exit 1; }
}

# run_tests FOLDER OPTIONS...: remembers a failure, for the other tests are to run all the same
failed=
: >"$build.tests"
run_tests() {
  local folder=$1
  shift
  ctest --test-dir "$folder" --output-on-failure --no-tests=error -j "$jobs" "$@" | tee -a "$build.tests" || failed=1
}

# What is built as a release.
release_targets=(trivelet identity_tests measuring_tests)
release_labels='cli|identity|measuring'
# CUDA where a GPU is. Elsewhere its kernels are tested as C++ below, and only --full sees whether nvcc takes them too:
# not optimised, for they are not run.
cuda=(-DTRIVELET_CUDA=OFF)
if command -v nvidia-smi >/dev/null && nvidia-smi >/dev/null 2>&1; then
  cuda=(-DCMAKE_CUDA_ARCHITECTURES=native -DCMAKE_CUDA_FLAGS_RELEASE=-O3)
  release_targets+=(gpu_tests)
  release_labels+='|gpu'
elif [ "$full" ]; then
  cuda=(-DCMAKE_CUDA_ARCHITECTURES=75-real "-DCMAKE_CUDA_FLAGS_RELEASE=-O0 -Xcicc=-O0 -Xptxas=-O0")
fi
[ -z "$full" ] || release_targets+=(all)
build_release() {
  renice -n 19 "$BASHPID" >/dev/null
  configure "$build" -DCMAKE_BUILD_TYPE=Release -DTRIVELET_EMULATION=OFF -DTRIVELET_REPLAY=OFF "${cuda[@]}"
  build "$build" "${release_targets[@]}"
}
set -m  # a group of processes, which ends with this script
build_release >"$build.release" 2>&1 &
release=$!
set +m
trap 'kill -- "-$release" 2>/dev/null || true' EXIT

echo "== AddressSanitizer and UBSan: unit tests, the GPU's kernels emulated"
# Less optimised, which compiles in half the time, and without the program, whose tests are those of the release build.
# Alignment, which x86 does not mind, is checked with --full: a fifth of the time to compile. So are the lines of what
# fails told: a sixth. So are objects used behind the block that they belong to: a sixth, too. Functions are told always,
# and CMake's preset asan tells lines and checks blocks.
less=()
flags="-O1 -g1"
if [ -z "$full" ]; then
  less=(-DTRIVELET_NO_SANITIZE=null,vptr,object-size,pointer-overflow,alignment)
  flags="-O1 -g0 -fno-sanitize-address-use-after-scope"
fi
configure "$build-asan" "${less[@]}" -DCMAKE_BUILD_TYPE=RelWithDebInfo "-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=$flags" \
  -DTRIVELET_SANITIZE=address,undefined,float-cast-overflow -DTRIVELET_PROGRAM=OFF -DTRIVELET_CUDA=OFF -DTRIVELET_FFTW=OFF
# Shorter stacks of where memory was taken, and less of it kept apart once it is free: a sixth of the time.
[ "$full" ] || export ASAN_OPTIONS=${ASAN_OPTIONS:-malloc_context_size=4:quarantine_size_mb=16}
targets=(unit_tests)
labels=unit
if [ "$full" ]; then
  targets+=(measuring_tests)
  labels+='|measuring'
fi
build "$build-asan" "${targets[@]}"
run_tests "$build-asan" -L "$labels"

echo "== Release: the program, and instruction sets against each other"
wait "$release" || { cat "$build.release"; exit 1; }
trap - EXIT
run_tests "$build" -L "$release_labels"

echo "== The slowest tests, in seconds"
awk '/ Test +#[0-9]+: .* sec/ { print $(NF - 1), $4 }' "$build.tests" | sort -rn | head
[ -z "$failed" ] || { echo "tests failed, see above"; exit 1; }
