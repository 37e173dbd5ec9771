#!/usr/bin/env bash
# Compares lossless video by prediction with FFV1 (version 3, 4 slices), x264 and x265: docs/RESULTS.md "Lossless video":
#   tests/bench/lossless_video.sh TRIVELET CLIP...
# CLIPs are what FFmpeg reads, at most 100 frames of each; raw ones are named NAME_WIDTHxHEIGHT….yuv, with yuv420p10le in it
# for 10 bits, otherwise 8-bit 4:2:0. All codecs get the same Y4M file and two threads.
# Prints bytes and user seconds of encoding and decoding, the least of two. Our frames are compared with the originals,
# those of x264, x265 and FFV1 are not. -: FFmpeg refuses; the reason is beside the table.
set -euo pipefail
[ $# -ge 2 ] || { sed -n '2,7s/^# \{0,1\}//p' "$0"; exit 2; }
trivelet=$1
shift
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# run COMMAND...: sets cpu (user seconds)
run() {
  cpu=1e9
  for _ in 1 2; do
    /usr/bin/time -f %U -o "$scratch/time" "$@" >/dev/null 2>"$scratch/errors" || { tail -3 "$scratch/errors" >&2; return 1; }
    cpu=$(awk "{ print (\$1 < $cpu ? \$1 : $cpu) }" "$scratch/time")
  done
}
peer() {  # NAME FFMPEG'S OPTIONS...: sets entry and size
  local name=$1 encode
  shift
  entry='- | -' size=0
  run ffmpeg -v error -nostdin -y -threads 2 -i "$scratch/in.y4m" "$@" -threads 2 "$scratch/$name.mkv" ||
    { echo "$name does not code $(basename "$clip")" >&2; return 0; }
  encode=$cpu
  run ffmpeg -v error -nostdin -y -threads 2 -i "$scratch/$name.mkv" -f null - ||
    { echo "$name does not decode what it coded of $(basename "$clip")" >&2; return 0; }
  size=$(stat -c %s "$scratch/$name.mkv")
  entry="$size | $(printf '%.2f, %.2f' "$encode" "$cpu")"
}

echo '| | bytes | enc, dec | FFV1 | enc, dec | x264 | enc, dec | x265 | enc, dec |'
echo '|-|-|-|-|-|-|-|-|-|'
for clip in "$@"; do
  raw=()
  if [[ $clip == *.yuv ]]; then
    raw=(-f rawvideo -video_size "$(basename "$clip" | grep -oE '[0-9]+x[0-9]+' | head -1)")
    [[ $clip == *yuv420p10le* ]] && raw+=(-pix_fmt yuv420p10le)
  fi
  ffmpeg -v error -nostdin -y "${raw[@]}" -i "$clip" -frames:v 100 -strict -1 -f yuv4mpegpipe "$scratch/in.y4m"
  run "$trivelet" encode "$scratch/in.y4m" "$scratch/s.tvl" -y --quiet --lossless -t 2
  encode=$cpu
  run "$trivelet" decode "$scratch/s.tvl" null --quiet -t 2
  decode=$cpu
  "$trivelet" decode "$scratch/s.tvl" "$scratch/back.y4m" -y --quiet
  "$trivelet" compare "$scratch/in.y4m" "$scratch/back.y4m" | grep -qi 'identical' ||
    { echo "$clip does not come back" >&2; exit 1; }
  ours=$(stat -c %s "$scratch/s.tvl")
  row="| $(basename "$clip") | $ours | $(printf '%.2f, %.2f' "$encode" "$decode")"
  peer ffv1 -c:v ffv1 -level 3 -coder 1 -context 1 -slices 4
  row+=" | $entry" sizes="$ours $size"
  peer x264 -c:v libx264 -preset medium -qp 0
  row+=" | $entry" sizes+=" $size"
  peer x265 -c:v libx265 -preset medium -x265-params lossless=1:log-level=none
  echo "$row | $entry |"
  echo "$sizes $size" >>"$scratch/all"
done
awk '{ for (i = 2; i <= 4; ++i) if ($i > 0) { sum[i] += log($1 / $i); n[i]++ } }
END { printf "| geometric mean of our bytes over theirs | | "
      for (i = 2; i <= 4; ++i) printf " | %s | ", (n[i] ? sprintf("%.3f", exp(sum[i] / n[i])) : "-")
      print "|" }' "$scratch/all"
