#!/usr/bin/env bash
# Every video of a folder through encode, decode and compare:
#   tests/bench/every_clip.sh TRIVELET FOLDER [FRAMES]
# For each clip (the first FRAMES frames, default all): size and PSNR at five qualities, which must both rise, and a
# lossless round trip, proved by --verify and by comparing the raw frames with those ffmpeg decodes. Raw planar files need
# their geometry in the name: NAME_WIDTHxHEIGHT….yuv, with yuv420p10le in it for 10 bits, else 8-bit 4:2:0.
set -euo pipefail
trivelet=$(realpath "$1")
folder=$(realpath "$2")
frames=${3:-100000}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
passed=0
failed=0

json() { sed -n "s/^  \"$2\": \"\{0,1\}\([^\",]*\)\"\{0,1\},\{0,1\}$/\1/p" "$1" | head -n 1; }

printf '%-46s %s\n' clip 'bytes / PSNR dB of all planes at -q 5, 25, 45, 65, 85; lossless bytes'
for clip in "$folder"/*; do
  name=$(basename "$clip")
  options=()
  probe=()
  if [[ $name == *.yuv ]]; then
    size=$(grep -oE '[0-9]+x[0-9]+' <<<"$name" | head -n 1)
    format=yuv420p
    [[ $name == *yuv420p10le* ]] && format=yuv420p10le
    options=(--size "$size" --pix-fmt "$format")
    probe=(-f rawvideo -video_size "$size" -pix_fmt "$format")
  fi
  line=
  bytes_before=0
  psnr_before=-1000
  ok=yes
  for q in 5 25 45 65 85; do
    "$trivelet" encode "$clip" q.tvl "${options[@]}" -q "$q" --frames "0:$frames" -y --quiet
    "$trivelet" compare "$clip" q.tvl "${options[@]}" --frames "$frames" --json >q.json || { ok=no; break; }
    bytes=$(stat -c %s q.tvl)
    psnr=$(json q.json psnr)
    [ "$psnr" != null ] || psnr=999
    awk "BEGIN { exit !($bytes > $bytes_before && $psnr >= $psnr_before) }" || ok=no
    line+=" $bytes/$(printf %.1f "$psnr")"
    bytes_before=$bytes
    psnr_before=$psnr
  done
  "$trivelet" encode "$clip" l.tvl "${options[@]}" --lossless --frames "0:$frames" --verify -y --quiet || ok=no
  "$trivelet" decode l.tvl l.yuv -y --quiet || ok=no
  format=$("$trivelet" info l.tvl --json | sed -n 's/.*"pixel_format": "\([^"]*\)".*/\1/p' | head -n 1)
  count=$("$trivelet" info l.tvl --json | sed -n 's/^ *"frames": \([0-9]*\).*/\1/p' | head -n 1)
  if command -v ffmpeg >/dev/null; then
    ffmpeg -v error -nostdin -y "${probe[@]}" -i "$clip" -map 0:v:0 -fps_mode passthrough -frames:v "$count" -pix_fmt "$format" -f rawvideo o.yuv
    cmp o.yuv l.yuv || ok=no
  fi
  line+=" | $(stat -c %s l.tvl)"
  [ "$ok" = yes ] && passed=$((passed + 1)) || { failed=$((failed + 1)); line+="  FAILED"; }
  printf '%-46s%s\n' "$name" "$line"
  rm -f -- *.tvl *.yuv
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
