#!/usr/bin/env bash
# Lossless sizes and speeds on volumes, side by side with JPEG-LS (CharLS), JPEG 2000 (OpenJPEG), FFV1 and xz:
#   tests/bench/volumes.sh TRIVELET VOLUME_PEERS VOLUME... [-- OPTIONS OF ENCODE]
# TRIVELET and VOLUME_PEERS are the programs of the build (apps/trivelet, tests/bench/volume_peers). Volumes are 8 and
# 16-bit integers in any format that can be read. CharLS and OpenJPEG code slice by slice, with no more bits than the
# range of values needs; FFV1 (FFmpeg, level 3, range coder, large contexts) and xz -6 get the same samples. Speeds: MB of
# these samples for each second of processor time, so of one core; the whole process with its reading, choosing and writing for ours
# (without the verification), the coder alone in memory for CharLS and OpenJPEG. At the end: geometric mean of the sizes
# over those of each other coder.
set -euo pipefail
[ $# -ge 3 ] || { sed -n '2,10s/^# \{0,1\}//p' "$0"; exit 2; }
trivelet=$1 peers=$2
shift 2
volumes=() options=()
while [ $# -gt 0 ]; do
  if [ "$1" = -- ]; then shift; options=("$@"); break; fi
  volumes+=("$1")
  shift
done
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
TIMEFORMAT='%U %S'
cpu_of() {  # COMMAND...: its seconds of processor time
  { time "$@" >"$scratch/out" 2>&1; } 2>"$scratch/time" || { cat "$scratch/out" >&2; return 1; }
  awk '{ print $1 + $2 }' "$scratch/time"
}

printf '%-36s %10s %8s %8s | %10s %8s %8s | %10s %8s %8s | %10s | %10s | %6s\n' volume trivelet enc dec jpegls enc dec \
  openjpeg enc dec ffv1 xz ratio
for volume in "${volumes[@]}"; do
  encode=$(cpu_of "$trivelet" encode "$volume" "$scratch/v.tvl" -y --quiet --no-verify "${options[@]}")
  decode=$(cpu_of "$trivelet" decode "$scratch/v.tvl" null --quiet)
  ours=$(stat -c %s "$scratch/v.tvl")
  read -r width height bits < <("$peers" "$volume" --raw "$scratch/v.raw")
  bytes=$(stat -c %s "$scratch/v.raw")
  "$peers" "$volume" >"$scratch/peers"
  ffv1=0
  if command -v ffmpeg >/dev/null; then
    format=gray
    [ "$bits" -le 8 ] || format=gray16le
    # FFV1 codes 16 bits as such: give it the samples in the low bits, as everyone else gets them
    ffmpeg -v error -y -f rawvideo -pix_fmt $format -s "${width}x$height" -i "$scratch/v.raw" -c:v ffv1 -level 3 \
      -coder 1 -context 1 -slices 4 -f nut "$scratch/v.nut"
    ffv1=$(stat -c %s "$scratch/v.nut")
  fi
  xz -6 -T1 -k -f "$scratch/v.raw"
  xz=$(stat -c %s "$scratch/v.raw.xz")
  awk -v name="$(basename "$volume")" -v ours="$ours" -v bytes="$bytes" -v encode="$encode" \
    -v decode="$decode" -v ffv1="$ffv1" -v xz="$xz" '
    $1 == "jpegls" { ls = $2; lse = $3; lsd = $4 }
    $1 == "openjpeg" { j2 = $2; j2e = $3; j2d = $4 }
    /DIFFERS/ { print name ": " $1 " does not give back what it got" > "/dev/stderr" }
    function speed(s) { return (s > 0 ? bytes / s / 1e6 : 0) }
    END {
      printf "%-36s %10d %8.1f %8.1f | %10d %8.1f %8.1f | %10d %8.1f %8.1f | %10d | %10d | %6.3f\n", name, ours,
        speed(encode), speed(decode), ls, speed(lse), speed(lsd), j2, speed(j2e), speed(j2d), ffv1, xz,
        (ls > 0 ? ours / ls : 0)
      print ours, ls, j2, ffv1, xz >> "'"$scratch"'/all"
    }' "$scratch/peers"
done
awk '{
  for (i = 2; i <= NF; ++i) if ($i > 0) { sum[i] += log($1 / $i); n[i]++ }
  if ($2 > 0 && $1 / $2 > worst) worst = $1 / $2
} END {
  split("x jpegls openjpeg ffv1 xz", name, " ")
  printf "geometric mean of the sizes over those of"
  for (i = 2; i <= 5; ++i) if (n[i]) printf " %s %.3f", name[i], exp(sum[i] / n[i])
  printf "; worst against jpegls %.3f\n", worst
}' "$scratch/all"
