#!/usr/bin/env bash
# The golden streams must decode to the samples they always decoded to, with every instruction set and number of threads:
#   tests/golden_test.sh path/to/trivelet
# golden/golden.txt: MD5 of the samples, name of the stream, options of "trivelet decode".
set -u
[ $# -eq 1 ] && [ -x "$1" ] || { echo "usage: $0 path/to/trivelet" >&2; exit 2; }
trivelet=$(realpath "$1")
cd "$(dirname "$0")/golden" || exit 1
ways=("--simd scalar -t 1" "--simd auto -t 1" "--simd auto -t 2")
grep -qw avx512bw /proc/cpuinfo 2>/dev/null && ways+=("--simd avx2 -t 2")  # auto is more than this
compared=0
failed=0

# check MD5 FOUND WHAT
check() {
  compared=$((compared + 1))
  [ "$2" = "MD5=$1" ] && return
  failed=$((failed + 1))
  echo "FAILED $3: '$2' instead of MD5=$1"
}

# compare MD5 NAME OPTIONS...: also from a pipe, where nothing can be looked up in the index
compare() {
  local want=$1 name=$2 way
  shift 2
  for way in "${ways[@]}"; do
    # shellcheck disable=SC2086
    check "$want" "$("$trivelet" decode --quiet $way "$@" "$name.tvl" md5 2>/dev/null)" "$name $* $way"
  done
  check "$want" "$("$trivelet" decode --quiet --simd scalar -t 2 "$@" - md5 <"$name.tvl" 2>/dev/null)" "$name $* from a pipe"
}

while read -r md5 name options; do
  # shellcheck disable=SC2086
  compare "$md5" "$name" $options
done <golden.txt
[ "$(cut -d ' ' -f 2 golden.txt | sort -u)" = "$(basename -s .tvl ./*.tvl | sort)" ] || {
  failed=$((failed + 1))
  echo "FAILED: the streams are not those of golden.txt"
}
echo "$compared compared, $failed failed"
[ "$failed" -eq 0 ] && [ "$compared" -gt 0 ]
