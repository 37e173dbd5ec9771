#!/bin/bash -eu
# Builds every fuzzer into $OUT, with its seeds and dictionary. OSS-Fuzz sets CC, CXX, CFLAGS, CXXFLAGS (the sanitizers
# and what the engine needs) and LIB_FUZZING_ENGINE.
cd "$SRC/zlib"
./configure --static && make -j"$(nproc)" libz.a

cmake -S "$SRC/trivelet" -B "$WORK/build" -G Ninja -DCMAKE_BUILD_TYPE=None -DTRIVELET_FUZZ=ON \
  -DTRIVELET_FUZZ_ENGINE="$LIB_FUZZING_ENGINE" -DTRIVELET_UNITY=ON -DTRIVELET_CUDA=OFF \
  -DTRIVELET_PROGRAM=OFF -DTRIVELET_FFMPEG=OFF -DTRIVELET_GDCM=OFF -DTRIVELET_FFTW=OFF -DTRIVELET_MPI=OFF \
  -DTRIVELET_EMULATION="$([ "$SANITIZER" = memory ] && echo OFF || echo ON)" \
  -DZLIB_LIBRARY="$SRC/zlib/libz.a" -DZLIB_INCLUDE_DIR="$SRC/zlib"
cmake --build "$WORK/build" --target fuzzers

for program in "$WORK"/build/tests/fuzz/*_fuzz; do
  name=$(basename "$program" _fuzz)
  cp "$program" "$OUT/"
  zip -q -j "$OUT/${name}_fuzz_seed_corpus.zip" "$SRC/trivelet/tests/corrupt/$name"/*
  dictionary=$SRC/trivelet/tests/fuzz/dictionaries/$name.dict
  case $name in decode|region|plan|rewrite|verify|layout|volume_stream|gpu) dictionary=${dictionary%/*}/stream.dict ;; esac
  [ ! -f "$dictionary" ] || cp "$dictionary" "$OUT/${name}_fuzz.dict"
done
