#!/usr/bin/env bash
# Compares whole programs, Trivelet and x264 (ffmpeg's): same frames from a file in memory, same threads, in turns:
#   tests/bench/beside_x264.sh TRIVELET CLIP [FRAMES [ROUNDS [THREADS]]]
# A row is the best round: frames/s by the clock, CPU seconds, bits per pixel. On a machine where other
# programs run, compare CPU seconds.
set -euo pipefail
trivelet=$(realpath "$1")
clip=$2
frames=${3:-120}
rounds=${4:-5}
threads=${5:-2}
work=$(mktemp -d -p "${TMPDIR:-/dev/shm}")
trap 'rm -rf "$work"' EXIT

ffmpeg -v error -nostdin -y -i "$clip" -frames:v "$frames" -pix_fmt yuv420p "$work/in.y4m"
pixels=$("$trivelet" info "$work/in.y4m" --json | awk -F'[:,]' '/"width"/ { w = $2 } /"height"/ { h = $2 } END { print w * h }')
frames=$(ffprobe -v error -count_packets -show_entries stream=nb_read_packets -of csv=p=0 "$work/in.y4m")

ours() { "$trivelet" "$@" -y --quiet --threads "$threads"; }
x264() { ffmpeg -v error -nostdin -y -threads "$threads" "$@"; }
names=("fast encode" "x264 ultrafast encode" "fast decode" "x264 ultrafast decode" "dense encode" "x264 medium encode"
  "dense decode" "x264 medium decode" "lossless encode" "lossless decode")
commands=(
  "ours encode in.y4m fast.tvl --preset fast"
  "x264 -i in.y4m -c:v libx264 -threads $threads -preset ultrafast ultrafast.mkv"
  "ours decode fast.tvl null"
  "x264 -i ultrafast.mkv -f null -"
  "ours encode in.y4m dense.tvl"
  "x264 -i in.y4m -c:v libx264 -threads $threads -preset medium medium.mkv"
  "ours decode dense.tvl null"
  "x264 -i medium.mkv -f null -"
  "ours encode in.y4m lossless.tvl --lossless --transform wavelet"
  "ours decode lossless.tvl null")
cd "$work"
TIMEFORMAT='%R %U %S'
for ((round = 0; round < rounds; ++round)); do
  for i in "${!names[@]}"; do
    # shellcheck disable=SC2086  # commands are words
    took=$( { time ${commands[i]} >"$work/said" 2>&1; } 2>&1) || { cat "$work/said"; exit 1; }
    echo "$i $took" >>"$work/times"
  done
done
printf '%s frames, %s threads, best of %s\n%-22s %10s %12s %11s\n' "$frames" "$threads" "$rounds" "" frames/s "CPU seconds" bits/pixel
for i in "${!names[@]}"; do
  file=
  for word in ${commands[i]}; do
    case $word in *.tvl | *.mkv) file=$word ;; esac
  done
  awk -v i="$i" -v name="${names[i]}" -v frames="$frames" -v bits="$(($(stat -c %s "$file") * 8))" -v pixels="$pixels" '
    $1 == i { cpu = $3 + $4; if (!best || $2 < best) best = $2; if (!least || cpu < least) least = cpu }
    END { printf "%-22s %10.1f %12.2f %11.3f\n", name, frames / best, least, bits / pixels / frames }' "$work/times"
done
