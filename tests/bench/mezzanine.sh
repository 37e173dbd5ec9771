#!/usr/bin/env bash
# Compares the fast profile with the codecs that editors use, at 4:2:2 and 10 bits on one core:
#   tests/bench/mezzanine.sh TRIVELET CLIP... >table.md
# CLIPs are files that ffmpeg reads. Each codec writes its usual rate; Trivelet writes the size of ProRes 422 (its PSNR is
# then higher), and the PSNR of ProRes 422 (its size is then smaller). Speeds are frames over user seconds of the whole
# program, the best of REPEAT (default 3) runs. Needs ffmpeg with prores_ks, dnxhd, cfhd, ffv1, libopenjpeg, libx264.
set -euo pipefail
[ $# -ge 2 ] || { echo "usage: $0 TRIVELET CLIP..." >&2; exit 2; }
trivelet=$(realpath "$1")
shift
repeat=${REPEAT:-3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# user_seconds COMMAND...: the least of $repeat runs.
user_seconds() {
  local i best=
  for ((i = 0; i < repeat; i++)); do
    /usr/bin/time -f %U -o "$work/seconds" "$@" >/dev/null 2>"$work/log" || { cat "$work/log" >&2; return 1; }
    best=$(awk -v a="$(tail -n 1 "$work/seconds")" -v b="$best" 'BEGIN { print b == "" || a < b ? a : b }')
  done
  echo "$best"
}
json() { sed -n "s/^  \"$2\": \"\{0,1\}\([^\",]*\)\"\{0,1\},\{0,1\}$/\1/p" "$1" | head -n 1; }
psnr_of() { # psnr_of FILE
  "$trivelet" compare "$work/clip.y4m" "$1" --json >"$work/compare.json" 2>/dev/null || true
  json "$work/compare.json" psnr
}
# row NAME FILE ENCODE DECODE: a line of the table, from seconds.
row() {
  local bytes psnr
  bytes=$(stat -c %s "$2")
  psnr=$(psnr_of "$2")
  awk -v name="$1" -v bytes="$bytes" -v psnr="$psnr" -v e="$3" -v d="$4" -v frames="$frames" -v pixels="$pixels" 'BEGIN {
    shown = psnr == "null" ? "exact" : sprintf("%.1f", psnr)
    printf "| %s | %.2f | %s | %.0f | %.0f |\n", name, 8 * bytes / pixels / frames, shown, frames / e, frames / d }'
}
ffmpeg_row() { # ffmpeg_row NAME FILE OPTIONS...
  local name=$1 file=$work/$2 e d
  shift 2
  e=$(user_seconds ffmpeg -v error -nostdin -y -threads 1 -i "$work/clip.y4m" -threads 1 "$@" "$file")
  d=$(user_seconds ffmpeg -v error -nostdin -threads 1 -i "$file" -f null -)
  row "$name" "$file" "$e" "$d"
}
our_row() { # our_row NAME OPTIONS...
  local name=$1 e d
  shift
  e=$(user_seconds "$trivelet" encode "$work/clip.y4m" "$work/x.tvl" -y --quiet -t 1 --device cpu "$@")
  d=$(user_seconds "$trivelet" decode "$work/x.tvl" null --quiet -t 1 --device cpu)
  row "$name" "$work/x.tvl" "$e" "$d"
}

for clip in "$@"; do
  ffmpeg -v error -nostdin -y -i "$clip" -an -pix_fmt yuv422p10le -strict -1 "$work/clip.y4m"
  "$trivelet" compare "$work/clip.y4m" "$work/clip.y4m" --json >"$work/self.json"
  frames=$(json "$work/self.json" frames)
  read -r width height < <(head -n 1 "$work/clip.y4m" | sed 's/.* W\([0-9]*\) H\([0-9]*\).*/\1 \2/')
  pixels=$((width * height))
  printf '\n**%s**, %sx%s, %s frames\n\n| | bits/pixel | PSNR | encode | decode |\n|-|-|-|-|-|\n' \
    "$(basename "$clip" | sed 's/_.*//')" "$width" "$height" "$frames"
  ffmpeg_row "ProRes 422" prores.mov -c:v prores_ks -profile:v 2
  size=$(stat -c %s "$work/prores.mov")
  psnr=$(psnr_of "$work/prores.mov")
  ffmpeg_row "ProRes 422 HQ" proreshq.mov -c:v prores_ks -profile:v 3
  ffmpeg_row "DNxHR HQX" dnxhr.mov -c:v dnxhd -profile:v dnxhr_hqx
  ffmpeg_row "CineForm" cineform.mov -c:v cfhd
  ffmpeg_row "JPEG 2000 (OpenJPEG)" jpeg2000.mov -c:v libopenjpeg -compression_level 10
  ffmpeg_row "x264, intra, --crf 12" x264.mkv -c:v libx264 -preset medium -g 1 -crf 12
  ffmpeg_row "FFV1" ffv1.mkv -c:v ffv1 -level 3 -coder 1 -g 1
  our_row "Trivelet fast, ProRes 422's size" --preset fast --size "$size"
  our_row "Trivelet fast, ProRes 422's PSNR" --preset fast --psnr "$psnr"
  our_row "Trivelet fast, GOPs of one frame, its PSNR" --preset fast --gop 1 --psnr "$psnr"
  our_row "Trivelet, ProRes 422's PSNR" --psnr "$psnr"
  our_row "Trivelet fast, lossless" --preset fast --lossless
  our_row "Trivelet, lossless" --lossless
done
