#!/usr/bin/env bash
# The same sources in two folders give the same bytes: an object, or with TRIVELET_FULL=1 the shared library.
#   reproducible_test.sh
set -euo pipefail
source=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export CCACHE_DISABLE=1 LC_ALL=C
options=(-G Ninja -DCMAKE_BUILD_TYPE=Release -DTRIVELET_TESTS=OFF -DTRIVELET_PROGRAM=OFF)
for part in CUDA FFMPEG GDCM MPI GSTREAMER VLC HDF5 ITK GDAL PLAYER FFTW; do options+=("-DTRIVELET_$part=OFF"); done
if [ -n "${TRIVELET_FULL:-}" ]; then
  target=packaging/libtrivelet.so.1.0.0
else
  target=codec/CMakeFiles/codec.dir/base/file_sink.cpp.o
fi
for folder in one "another folder, of a longer name"; do
  mkdir "$work/$folder"
  tar -C "$source" -cf - --exclude=./build --exclude=./.git --exclude=./tests . | tar -C "$work/$folder" -xf -
  mkdir "$work/$folder/tests"
  cmake -S "$work/$folder" -B "$work/$folder/build" "${options[@]}" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
  cmake --build "$work/$folder/build" -j 2 --target "$target" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
done
if ! cmp "$work/one/build/$target" "$work/another folder, of a longer name/build/$target"; then
  echo "FAILED: $target differs between two folders"
  exit 1
fi
