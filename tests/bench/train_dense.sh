#!/bin/bash
# Trains the four sets of start tables and writes codec/entropy/dense/dense_tables.h. Needs ffmpeg and python3 (to
# unpack NIfTI).
#   tests/bench/train_dense.sh BUILD_FOLDER DATA_FOLDER
# Trained on: trees, foreman, flower, park_joy; volumes CT_pitch, engine, mr_brain. Everything else is for testing.
set -e
train=$1/tests/bench/train_dense
data=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
raw() { ffmpeg -v error -y -i "$data/video/$1" -frames:v "$3" -pix_fmt yuv420p -f rawvideo "$work/$2"; }
raw trees_cif_352x288_39f_yuv420p.mkv trees 32
raw foreman_cif_BA1_FT_C.264 foreman 96
raw flower_1280x720_16f_yuv420p.x264ll.mkv flower 16
raw park_joy_480x270_10f.y4m park 10
python3 - "$data/volume" "$work" <<'P'
import gzip, struct, sys
for name, out in ("CT_pitch", "pitch"), ("engine_256x256x128_u8", "engine"), ("mr_brain_seg3d_160x232x160_u8", "brain"):
    d = gzip.open(f"{sys.argv[1]}/{name}.nii.gz").read()
    open(f"{sys.argv[2]}/{out}", "wb").write(d[int(struct.unpack("<f", d[108:112])[0]):])
P
videos="trees=$work/trees:352x288:yuv420p foreman=$work/foreman:352x288:yuv420p flower=$work/flower:1280x720:yuv420p park=$work/park:480x270:yuv420p"
volumes="pitch=$work/pitch:175x248:gray engine=$work/engine:256x256:gray brain=$work/brain:160x232:gray"
$train --out "$work/0" --steps 6,12,24,44 $videos
$train --out "$work/1" --lossless $videos
$train --out "$work/2" --dyadic --steps 3,8,24 $videos $volumes
$train --out "$work/3" --dyadic --lossless --gop 64 $volumes
{
  cat <<'H'
// The trained start tables, Annex A of codec/FORMAT.md. Written by tests/bench/train_dense.sh.
#pragma once

#include <string_view>

namespace trivelet::dense {

inline constexpr std::string_view kTableText[] = {
H
  for set in 0 1 2 3; do
    cat "$work/$set"
    echo ","
  done
  printf '};\n\n}  // namespace trivelet::dense\n'
} > "$(dirname "$0")/../../codec/entropy/dense/dense_tables.h"
