#!/usr/bin/env bash
# Makes the conformance streams and the list of their MD5s:
#   tests/conformance/make.sh [--all] path/to/trivelet
# Streams that are there stay: they bind the decoder. With --all, when the format changes on purpose, all are made again.
# The MD5s are those of the reference decoder (tests/reference/reference_decoder.py), which is written from FORMAT.md alone;
# conformance_test compares the library with them.
set -euo pipefail
all=
if [ "${1-}" = --all ]; then
  all=yes
  shift
fi
[ $# -eq 1 ] && [ -x "$1" ] || { echo "usage: $0 [--all] path/to/trivelet" >&2; exit 2; }
trivelet=$(realpath "$1")
cd "$(dirname "$0")"
python=${PYTHON:-/usr/bin/python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# Of those that nothing can make again the decoder stays bound, whatever changes.
kept=$(sed -n "s/^kept \([a-z0-9_]*\) .*/\1.tvl/p" make.sh)
[ -z "$all" ] || find . -name "*.tvl" $(printf "! -name %s " $kept) -delete
: >"$work/list"

# stream NAME SIZE FORMAT FRAMES CONTENT "ENCODER OPTIONS" "DECODER OPTIONS"...: without the latter whole only
stream() {
  local name=$1 size=$2 format=$3 frames=$4 content=$5 settings=$6
  shift 6
  if [ ! -e "$name.tvl" ]; then
    "$python" clip.py "$size" "$format" "$frames" "$content" >"$work/in.raw"
    # shellcheck disable=SC2086
    "$trivelet" encode --quiet -t 1 --format raw --size "$size" --pix-fmt "$format" $settings "$work/in.raw" "$name.tvl"
  fi
  pin "$name" "$@"
}
# kept NAME SIZE FORMAT FRAMES CONTENT "ENCODER OPTIONS OF THEN" "DECODER OPTIONS"...: there is no encoder any more
kept() {
  local name=$1
  shift 6
  [ -e "$name.tvl" ] || { echo "$name.tvl is missing, and nothing can make it again" >&2; exit 1; }
  pin "$name" "$@"
}
# volume NAME SIZE TYPE "ENCODER OPTIONS" "DECODER OPTIONS"...
volume() {
  local name=$1 size=$2 type=$3 settings=$4
  shift 4
  if [ ! -e "$name.tvl" ]; then
    "$python" -B volume.py "$size" "$type" >"$work/in.raw"
    # shellcheck disable=SC2086
    "$trivelet" encode --quiet -t 1 --size "$size" --type "${type%%[nrm]*}" $settings "$work/in.raw" "$name.tvl"
  fi
  pin "$name" "$@"
}
# other NAME PROGRAM ARGUMENTS...: what a program of tests/ makes of another stream
other() {
  local name=$1 program=$2
  shift 2
  [ -e "$name.tvl" ] || PYTHONPATH=../reference "$python" -B "../reference/$program.py" "$@"
}
pin() { # pin NAME "DECODER OPTIONS"...
  local name=$1
  shift
  for options in "" "$@"; do echo "$name $options" >>"$work/list"; done
}
r1="--reduce 1"
t1="--temporal-reduce 1"
r1t1="--reduce 1 --temporal-reduce 1"
l1="--max-layers 1"
l2="--max-layers 2"
p4="--max-planes 4"
all="--reduce 1 --temporal-reduce 1 --max-layers 2 --max-planes 5"
dyadic_all="--reduce 1 --max-layers 2 --max-planes 5"

# Dense, t+2D
stream dense_lossless_yuv420p 40x24 yuv420p 6 moving "--motion off --lossless --gop 6 --levels 2x3" "$r1" "$t1" "$l2" "$p4" "$all"
stream dense_lossless_gray16 24x17 gray16 5 noise "--lossless --gop 4 --levels 2x2 --wavelet 13/7 --temporal-wavelet 13/7" "$r1t1"
stream dense_lossless_gbrp 24x16 gbrp 4 moving "--motion off --lossless --gop 4 --levels 1x2 --layers 2" "$r1t1" "$l1"
stream dense_lossless_haar 24x16 gray10 7 moving "--lossless --gop 4 --levels 2x2 --wavelet haar --temporal-wavelet haar" "$r1t1" "$p4"
stream dense_lossy_yuv420p 48x32 yuv420p 20 moving "--motion off -q 55 --gop 16 --levels 4x3 --layers 4" "$r1" "$t1" "$r1t1" "$l1" "$l2" "$p4" "$all"
stream dense_lossy_gbrp10 32x24 gbrp10 8 moving "-q 50 --gop 8 --levels 2x3 --wavelet 5/3 --temporal-wavelet 5/3" "$r1t1" "$l1"
stream dense_lossy_yuva420p 24x16 yuva420p 5 moving "--motion off -q 60 --gop 5 --levels 2x2" "$r1t1" "$p4"
stream dense_visual 48x32 yuv420p 8 moving "--motion off -q 60 --gop 8 --levels 2x4 --tune visual" "$r1t1" "$l2"
stream dense_rate 48x32 yuv420p 16 moving "--motion off --bpp 1 --gop 8 --levels 3x3 --layers 5" "$r1" "$t1" "$l1" "$l2" "$all"
stream dense_rate_blocks 100x70 gray 4 moving "--motion off --bpp 1.2 --gop 4 --levels 2x3 --block-size 32 --layers 3" "$r1t1" "$l1"
stream dense_stills 100x70 gray 2 moving "-q 45 --gop 1 --levels 0x5 --block-size 64" "$r1" "--reduce 5"
# Fast
stream fast_lossless_yuv420p 40x24 yuv420p 6 moving "--profile fast --lossless --gop 6 --levels 2x3 --layers 3" "$r1" "$t1" "$l2" "$p4" "$all"
stream fast_lossy_yuv420p 48x32 yuv420p 20 moving "--profile fast -q 50 --gop 16 --levels 4x3 --layers 4" "$r1" "$t1" "$r1t1" "$l1" "$l2" "$p4" "$all"
stream fast_rate 48x32 yuv422p10 8 moving "--profile fast --bpp 2 --gop 8 --levels 3x3 --layers 5" "$r1t1" "$l1" "$l2" "$all"
stream fast_blocks 100x70 gray 2 moving "--profile fast -q 45 --gop 2 --levels 1x3 --block-size 32 --tune visual" "$r1t1" "$l1"
# What the encoder wrote before and only decoders know: the raw mode of the fast profile, videos in the dyadic layout, GOPs
# without frame gains
kept dense_lossy_yuv422p10 33x17 yuv422p10 9 moving "-q 50 --gop 8 --levels 3x4 --plain-ends" "$r1" "$t1" "$all"
kept dense_dyadic_lossless 24x17 gray 8 moving "--lossless --gop 8 --layout dyadic --levels 3x3" "$r1" "$p4" "$dyadic_all"
kept dense_dyadic_lossless_gbrp 20x12 gbrp 5 moving "--lossless --gop 5 --layout dyadic --levels 1x3" "$r1" "$l1"
kept dense_dyadic_lossy 40x24 yuv420p 8 moving "-q 60 --gop 8 --layout dyadic --levels 2x4" "$r1" "--reduce 3" "$l1" "$dyadic_all"
kept dense_dyadic_rate 40x24 gray10 16 moving "--bpp 1.5 --gop 16 --layout dyadic --levels 3x3 --layers 4" "$r1" "$l1" "$l2"
kept fast_lossless_raw_gray16 24x17 gray16 4 noise "--profile fast --mode raw --lossless --gop 4 --levels 2x2 --wavelet 13/7" "$r1t1"
kept fast_lossy_raw_gbrp 32x24 gbrp 8 moving "--profile fast --mode raw -q 45 --gop 8 --levels 2x3" "$r1t1" "$l1"
kept fast_dyadic_lossless 24x17 gray 8 moving "--profile fast --lossless --gop 8 --layout dyadic --levels 3x3" "$r1" "$p4" "$dyadic_all"
kept fast_dyadic_lossy 40x24 yuv420p 8 moving "--profile fast -q 55 --gop 8 --layout dyadic --levels 2x4" "$r1" "$l1" "$dyadic_all"
kept dense_dyadic_levels 20x12 yuv420p 9 moving "-q 80 --gop 8 --layout dyadic --levels 5x5" "$r1" "--reduce 2" "$dyadic_all"
kept dense_dyadic_flat 40x24 gray 3 moving "-q 70 --gop 3 --layout dyadic --levels 0x3" "$r1" "--reduce 2" "$dyadic_all"
kept dense_dyadic_gbrp10 17x31 gbrp10 7 moving "-q 70 --gop 7 --layout dyadic --levels 2x4 --wavelet 5/3" "$r1" "--reduce 3" "$p4"
kept dense_dyadic_blocks 140x70 gray 3 moving "--lossless --gop 3 --layout dyadic --levels 2x2 --block-size 64" "$r1" "$l1"
kept dense_dyadic_visual 24x16 gbrp 4 moving "-q 60 --gop 4 --layout dyadic --levels 2x3 --tune visual" "$r1" "$dyadic_all"
kept fast_dyadic_rate 33x17 gray 8 moving "--profile fast --bpp 2 --gop 8 --layout dyadic --levels 3x3 --layers 6" "$r1" "$l1" "$l2" "$dyadic_all"
kept fast_raw_yuv420p 40x24 yuv420p 12 moving "--profile fast --mode raw -q 60 --gop 8 --levels 3x3" "$r1" "--temporal-reduce 2" "$all"
kept fast_raw_dyadic_lossless 40x24 gray 12 moving "--profile fast --mode raw --lossless --gop 8 --layout dyadic --levels 3x3 --wavelet haar --temporal-wavelet haar" "$r1" "--reduce 3" "--max-planes 2"
kept fast_raw_dyadic_lossy 40x24 yuv420p 6 moving "--profile fast --mode raw -q 70 --gop 6 --layout dyadic --levels 2x4" "$r1" "--reduce 2" "$dyadic_all"
kept fast_plain_ends 24x16 yuv420p 9 moving "--profile fast -q 60 --gop 9 --levels 3x3 --plain-ends" "$t1" "$all"
# Motion
stream motion_lossy_yuv420p 64x48 yuv420p 11 moving "--motion on -q 45 --gop 8 --levels 3x3 --layers 4" "$r1" "$t1" "$r1t1" "$l1" "$p4" "$all"
stream motion_lossless_yuv420p 40x24 yuv420p 6 moving "--motion on --lossless --gop 4 --levels 2x2" "$r1" "$t1" "$l2"
stream motion_lossless_gbrp 24x16 gbrp 5 moving "--motion on --lossless --gop 8 --levels 2x2" "$r1t1"
stream motion_lossy_yuv422p10 33x17 yuv422p10 9 moving "--motion on -q 50 --gop 9 --levels 3x4" "$r1" "--reduce 3" "$all"
stream motion_lossy_gbrp10 32x24 gbrp10 4 moving "--motion on -q 50 --gop 4 --levels 2x3" "$r1t1"
stream motion_lossy_yuva420p 24x16 yuva420p 5 moving "--motion on -q 60 --gop 5 --levels 2x2" "$r1t1"
stream motion_gray16 24x17 gray16 5 noise "--motion on -q 60 --gop 4 --levels 2x2" "$r1t1"
stream motion_rate 48x32 yuv420p 16 moving "--motion on --bpp 1 --gop 16 --levels 4x3 --layers 5" "$r1t1" "$l1" "$l2"
stream motion_fast 48x32 yuv420p 8 moving "--motion on --profile fast -q 50 --gop 8 --levels 3x3 --layers 4" "$r1t1" "$l1"
stream motion_regions 300x20 gray 3 moving "--motion on -q 35 --gop 3 --levels 1x3" "$r1" "$t1"
stream motion_tiny 5x3 gray 6 moving "--motion on -q 60 --gop 6 --levels 2x2" "$t1"
stream motion_open 40x24 yuv420p 21 moving "--motion on -q 45 --gop 4 --levels 2x3 --layers 3 --keyint 12" "$r1" "$t1" "$r1t1" "$l1" "$p4" "$all"
stream motion_open_lossless 24x16 gbrp 11 moving "--motion on --lossless --gop 4 --levels 2x2" "$t1"
stream motion_levels 40x32 yuv420p 29 mixed "--motion on -q 45 --gop 8 --layers 3" "$r1" "$t1" "--temporal-reduce 2" "--temporal-reduce 3" "$l1" "$all"
stream motion_levels_lossless 25x18 gbrp 21 mixed "--motion on --lossless --gop 8" "$t1" "--temporal-reduce 2"
stream motion_keys 40x24 yuv420p 29 moving "--motion on -q 45 --gop 4 --levels 2x3 --layers 3 --keyint 16 --key-prediction on" "$r1" "$t1" "$r1t1" "$l1" "$p4" "$all"
stream motion_keys_many 40x32 yuv420p 33 moving "--motion on -q 45 --gop 9 --levels 1x3 --layers 2 --key-prediction on" "$r1" "$t1" "$l1" "$all"
stream motion_keys_lossless 24x16 gbrp 14 moving "--motion on --lossless --gop 5 --levels 1x2 --key-prediction on" "$t1"
# Predictive
stream predictive_yuv420p 70x44 yuv420p 6 moving "--lossless --gop 5 --transform prediction"
stream predictive_slow 72x64 gray10 9 moving "--lossless --gop 9 --transform prediction --preset slow"
stream predictive_gray16 33x17 gray16 4 noise "--lossless --gop 4 --block-size 32 --transform prediction --preset fast"
stream moved_yuv420p 70x44 yuv420p 6 moving "--lossless --gop 5 --transform prediction"
stream moved_slow 72x64 gray10 9 moving "--lossless --gop 9 --block-size 64 --transform prediction --preset slow"
stream moved_gray16 33x17 gray16 4 noise "--lossless --gop 4 --block-size 32 --transform prediction"
stream moved_page 200x120 gray 3 page "--lossless --gop 3 --transform prediction"
stream ahead_yuv420p 70x44 yuv420p 6 moving "--lossless --gop 5 --transform prediction --preset fast"
stream ahead_gray16 33x17 gray16 4 noise "--lossless --gop 4 --block-size 32 --transform prediction --preset fast"
stream ahead_still 24x16 gray10 3 still "--lossless --gop 1 --transform prediction --preset fast"
# Sizes
stream one_sample 1x1 gray 3 moving "--motion off --lossless --gop 3 --levels 1x2"
stream one_column 1x33 gray 6 moving "--motion off -q 60 --gop 6 --levels 2x3" "$r1t1"
stream still_frames 24x16 yuv420p 8 still "--motion off -q 60 --gop 8 --levels 3x3" "$all"

# Extracts, and a stream whose end is lost
other extract_dense reference_extract dense_rate.tvl extract_dense.tvl 1 1 3
pin extract_dense "$r1" "$t1"
other extract_fast_dyadic reference_extract fast_dyadic_lossy.tvl extract_fast_dyadic.tvl 1 0 2
pin extract_fast_dyadic "$r1"
other extract_motion reference_extract motion_rate.tvl extract_motion.tvl 1 1 3
pin extract_motion "$t1"
other motion_wild reference_motion_writer motion_lossy_gbrp10.tvl motion_wild.tvl 1 0.6
pin motion_wild "$r1" "$t1"
other motion_open_wild reference_motion_writer motion_open.tvl motion_open_wild.tvl 2 0.5
pin motion_open_wild "$r1" "$t1"
other motion_keys_wild reference_motion_writer motion_keys.tvl motion_keys_wild.tvl 3 0.5
pin motion_keys_wild "$r1" "$t1"
other extract_motion_keys reference_extract motion_keys.tvl extract_motion_keys.tvl 1 2 2
pin extract_motion_keys "$r1"
[ -e unfinished.tvl ] ||
  head -c $(($(stat -c %s dense_lossy_yuv420p.tvl) - 60)) dense_lossy_yuv420p.tvl >unfinished.tvl
echo "unfinished --keep-partial" >>"$work/list"
# A stream of two that were joined
if [ ! -e joined.tvl ]; then
  "$python" clip.py 40x24 yuv420p 8 moving >"$work/in.raw"
  for part in 0:4 4:8; do
    "$trivelet" encode --quiet -t 1 --format raw --size 40x24 --pix-fmt yuv420p --motion off --joinable --gop 4 --levels 2x3 --layers 3 \
      --frames $part ${first:+--pin-from "$first"} "$work/in.raw" "$work/${part%:*}.tvl"
    first=$work/0.tvl
  done
  "$trivelet" join --quiet "$work/0.tvl" "$work/4.tvl" -o joined.tvl
fi
pin joined "$r1" "$l1"

# Volumes
volume volume_predictive_s16 40x36x6 s16 "--slab 4" "--region 7,5,1,20,11,4"
volume volume_ahead_s16 40x36x6 s16 "--preset fast --slab 4" "--region 7,5,1,20,11,4"
volume volume_regions_u8 60x44x6 u8regions "--slab 4 --block-size 32" "--region 30,5,1,20,30,4"
volume volume_regions_ahead_u8 60x44x6 u8regions "--preset fast --slab 4 --block-size 32" "--region 30,5,1,20,30,4"
volume volume_two_values_u8 40x36x6 u8mask "--slab 4" "--region 7,5,1,20,11,4"
volume volume_mixed_s16 28x20x5 s16 "--slab 3" "--region 7,5,1,20,11,4"
volume volume_mixed_u8 72x40x2 u8 "--preset slow --block-size 32" "--region 30,5,0,20,30,1"
volume volume_wavelet_s16be 80x44x7 s16be "--levels 2x2 --block-size 32 --slab 4 --layers 3" "$r1" "$l1" "--region 40,3,2,20,9,3"
volume volume_fast_u8 33x20x7 u8 "--preset fast --transform wavelet --slab 7" "$r1" "$l1" "$p4"
volume volume_t2d_u8 33x20x6 u8 "--layout t+2d --levels 1x2 --slab 3 --layers 2" "$r1" "--region 0,19,5,33,1,1"
volume volume_planes_u32 16x12x4 u32 "--levels 2x2 --slab 4 --layers 3" "--region 1,1,1,2,2,2"
volume volume_planes_f64 12x10x4 f64 "--levels 1x1 --slab 4"
volume volume_bound_s16 40x24x6 s16 "--max-error 12 --slab 6"
volume volume_bound_f32 40x24x6 f32 "--max-error 0.25 --transform wavelet --slab 6 --layers 4" "$r1" "$l2"
volume volume_lossy_f32 40x24x6 f32 "-q 40 --slab 6" "$r1" "$l2"
volume volume_lossy_u32 40x24x6 u32 "--bpp 3 --slab 3 --layers 5" "$l1"
volume volume_mask_f32 40x24x7 f32nan "--max-error 2 --levels 2x2 --slab 4 --layers 3 --block-size 32" "$r1" "--reduce 2" "$l1" \
  "--region 5,3,2,20,9,4"
volume volume_mask_lossy_f32 40x24x6 f32nan "-q 50 --slab 6" "$r1"
volume volume_mask_s16 40x24x5 s16 "--max-error 9 --fill-value -1000" "--region 1,3,2,20,9,2"

# What no encoder of today writes; and the volumes among the seeds of the fuzzers
"$python" -B make_boxes.py
pin boxes_metadata
pin boxes_unknown "$r1"
pin boxes_damaged
pin room "$t1"
pin index_of_later "$l1"
pin version_0_200
pin version_1_7
pin display_fields
pin irregular_times "$t1"
pin front_table "$t1"
pin front_table_beyond
pin front_table_later
pin front_table_of_another
pin front_table_twice
pin front_table_version
pin volume_front_table "$r1" "--region 5,3,1,20,9,4"
pin volume_colour "$r1" "$l1"
pin volume_in_slice "--region 3,2,1,5,3,2"
pin volume_labels "--region 3,2,1,5,3,2"
pin volume_palette "$l2"
pin volume_time "--region 1,1,1,3,4,2"
pin volume_times "--region 1,1,1,3,4,2"

"$python" -B ../reference/conformance_reference_test.py --write "$work/list"
du -bc ./*.tvl refused/*.tvl | tail -n 1
