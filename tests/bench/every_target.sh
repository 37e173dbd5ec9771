#!/usr/bin/env bash
# Every kind of target on every video of a folder: sizes are met from below within 0.1 %, PSNR within 0.1 dB, truncated files
# have at most the requested size, decode, and are not worse than smaller ones.
#   tests/bench/every_target.sh TRIVELET FOLDER [FRAMES]
set -euo pipefail
trivelet=$1
folder=$2
frames=${3:-40}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

psnr() { "$trivelet" compare "$1" "$2" --json | awk -F'[:,]' '/"psnr"/ { print $2 + 0; exit }'; }
check() { # check NAME CONDITION(awk)
  if ! awk "BEGIN { exit !($2) }"; then
    echo "  FAILED: $1: $2"
    failures=$((failures + 1))
  fi
}

for clip in "$folder"/*; do
  case $clip in *.yuv) continue ;; esac # raw video needs its size
  "$trivelet" encode "$clip" "$work/whole.tvl" -y --quiet --lossless --profile fast --frames ":$frames"
  "$trivelet" decode "$work/whole.tvl" "$work/clip.nut" -y --quiet
  "$trivelet" encode "$work/whole.tvl" "$work/q.tvl" -y --quiet -q 70
  full=$(stat -c %s "$work/q.tvl")
  line="$(basename "$clip"): -q 70 $full"
  for part in 50 10; do
    size=$((full * part / 100))
    "$trivelet" encode "$work/whole.tvl" "$work/s.tvl" -y --quiet --size "$size"
    got=$(stat -c %s "$work/s.tvl")
    check "$(basename "$clip") --size" "$got <= $size && $got >= 0.999 * $size - 8"
    line+=", --size $size $got ($(psnr "$work/whole.tvl" "$work/s.tvl"))"
  done
  for target in 34 40; do
    "$trivelet" encode "$work/whole.tvl" "$work/s.tvl" -y --quiet --psnr "$target"
    got=$(psnr "$work/whole.tvl" "$work/s.tvl")
    check "$(basename "$clip") --psnr" "$got >= $target - 0.1 && $got <= $target + 0.1"
    line+=", --psnr $target $got"
  done
  echo "$line"
  before=0
  line="  truncated:"
  for part in 6 10 15 20 30 40 55 70 85 95; do
    size=$((full * part / 100))
    "$trivelet" truncate "$work/q.tvl" "$work/t.tvl" -y --size "$size" 2>"$work/said" || { cat "$work/said"; continue; }
    got=$(stat -c %s "$work/t.tvl")
    now=$(psnr "$work/whole.tvl" "$work/t.tvl")
    predicted=$(sed -n 's/.*predicted PSNR \([0-9.]*\).*/\1/p' "$work/said")
    check "truncate to $size" "$got <= $size && $now >= $before - 0.02"
    before=$now
    line+=" $part% $now"
    if [ -n "$predicted" ]; then
      line+=" ($predicted)"
      check "truncate to $size: predicted" "$predicted - $now < 0.2 && $now - $predicted < 0.2"
    fi
  done
  echo "$line"
done
[ "$failures" = 0 ] || { echo "$failures failures"; exit 1; }
echo "all targets met"
