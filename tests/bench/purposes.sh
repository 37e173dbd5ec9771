#!/usr/bin/env bash
# Measures the qualities of encode --for: which -q has the PSNR of a codec that is usual for the purpose.
#   tests/bench/purposes.sh TRIVELET CLIP... >table.md
# mezzanine: ProRes 422 HQ, proxy: ProRes Proxy, both of the first 16 frames at 4:2:2 and 10 bits; delivery: x264 medium,
# --crf 20, of the clip as it is. -q is interpolated between the two values tried that are next to that PSNR.
# Needs ffmpeg with prores_ks and libx264.
set -euo pipefail
[ $# -ge 2 ] || { echo "usage: $0 TRIVELET CLIP..." >&2; exit 2; }
trivelet=$(realpath "$1")
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

psnr() { # psnr CLIP FILE
  "$trivelet" compare "$1" "$2" --json 2>/dev/null | sed -n 's/^  "psnr": \([0-9.]*\),*$/\1/p' | head -n 1
}
# quality CLIP FILE OPTIONS...: the -q at which CLIP, encoded with OPTIONS, has the PSNR of FILE.
quality() {
  local clip=$1 wanted q now before=
  wanted=$(psnr "$1" "$2")
  shift 2
  for q in 10 20 30 40 50 60 70 80 90 100; do
    "$trivelet" encode "$clip" "$work/x.tvl" -y --quiet -q "$q" "$@"
    now=$(psnr "$clip" "$work/x.tvl")
    if awk "BEGIN { exit !($now >= $wanted) }"; then
      awk "BEGIN { printf \"%.0f (%.1f dB)\", ${before:+1} ? $q - 10 * ($now - $wanted) / ($now - ${before:-0}) : $q, $wanted }"
      return
    fi
    before=$now
  done
  printf 'above 100 (%.1f dB)' "$wanted"
}

printf '| -q with the PSNR of | ProRes 422 HQ | ProRes Proxy | x264 --crf 20 |\n|-|-|-|-|\n'
for clip in "$@"; do
  ffmpeg -v error -nostdin -y -i "$clip" -an -frames:v 16 -pix_fmt yuv422p10le -strict -1 "$work/edit.y4m"
  ffmpeg -v error -nostdin -y -i "$clip" -an "$work/clip.y4m"
  ffmpeg -v error -nostdin -y -i "$work/edit.y4m" -c:v prores_ks -profile:v 3 "$work/hq.mov"
  ffmpeg -v error -nostdin -y -i "$work/edit.y4m" -c:v prores_ks -profile:v 0 "$work/proxy.mov"
  ffmpeg -v error -nostdin -y -i "$work/clip.y4m" -c:v libx264 -preset medium -crf 20 "$work/x264.mkv"
  printf '| %s | %s | %s | %s |\n' "$(basename "$clip" | sed 's/_.*//')" \
    "$(quality "$work/edit.y4m" "$work/hq.mov" --preset fast --gop 8)" \
    "$(quality "$work/edit.y4m" "$work/proxy.mov" --preset fast --gop 8)" \
    "$(quality "$work/clip.y4m" "$work/x264.mkv" --motion auto)"
done
