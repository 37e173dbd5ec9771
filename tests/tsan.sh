#!/usr/bin/env bash
# Runs parallel code under ThreadSanitizer: stages and their queues, the pool, devices that fail (pipeline_test's
# backend), and a full disk, a broken pipe, Ctrl-C and a reader that fails with all stages of the program busy:
#   tests/tsan.sh
# BUILD_DIR (default build/tsan) and JOBS (default: one per core) as in run.sh. Readers and writers of other formats are
# left out, because their libraries are not compiled for it.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${BUILD_DIR:-build/tsan}
mkdir -p "$(dirname "$build")"
without=()
for part in FFMPEG GDCM FFTW MPI PLAYER VLC GSTREAMER HDF5 ITK; do without+=("-DTRIVELET_$part=OFF"); done
cmake --preset tsan -B "$build" -DTRIVELET_UNITY=ON "${without[@]}" \
  "-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O1 -g1" >"$build.log" || { cat "$build.log"; exit 1; }
tests=(parallel_test worker_test pipeline_test gop_lanes_test faults_test motion_sections_test)
cmake --build "$build" -j "${JOBS:-$(nproc)}" --target trivelet "${tests[@]}" >"$build.log" || { tail -n 50 "$build.log"; exit 1; }
# A race ends the program with 66, which no test takes for one of its own codes. A thread that waits for a pipe is not
# joined after Ctrl-C: it cannot be woken, and the process ends.
export TSAN_OPTIONS=halt_on_error=1:exitcode=66:second_deadlock_stack=1:report_thread_leaks=0
ctest --test-dir "$build" --output-on-failure --no-tests=error \
  -R "^($(IFS='|'; echo "${tests[*]}")|failures_test)\$"
