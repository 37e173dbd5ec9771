#!/usr/bin/env bash
# From a fresh Debian 12 to numbers:
#   samples/quickstart.sh [VIDEO]
# Installs missing packages (apt-get, as root or through sudo), builds Release in build/release, encodes VIDEO (without
# one: 3 seconds of 1280x720 that ffmpeg synthesises) at two qualities and losslessly, decodes, compares, and prints a
# table. The player and the plug-ins are left out of the build. Only the build folder is written; the
# streams stay in build/quickstart.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
video=${1:+$(realpath "$1")}
cd "$here/.."

# shellcheck source=samples/packages.sh
source samples/packages.sh
install_missing "${BUILD_PACKAGES[@]}" ffmpeg

echo "== building"
mkdir -p build
# The GPU at hand, if there is one: CUDA code for all of them takes many minutes.
cuda=(-DTRIVELET_CUDA=OFF)
if command -v nvidia-smi >/dev/null && nvidia-smi >/dev/null 2>&1; then cuda=(-DCMAKE_CUDA_ARCHITECTURES=native); fi
without=()
for part in TESTS PLAYER VLC GSTREAMER HDF5 ITK GDAL; do without+=("-DTRIVELET_$part=OFF"); done
cmake --preset release "${without[@]}" -DTRIVELET_PRECOMPILE=ON -DTRIVELET_UNITY=ON "${cuda[@]}" >build/quickstart.log || { cat build/quickstart.log; exit 1; }
cmake --build build/release -j "$(nproc)" --target trivelet | tail -n 1
trivelet=$PWD/build/release/apps/trivelet

out=build/quickstart
mkdir -p "$out"
if [ -z "$video" ]; then
  video=$out/clip.y4m
  echo "== synthesising $video"
  # A fractal that is zoomed into, a test picture with moving parts over its corner, and grain.
  ffmpeg -v error -nostdin -y -f lavfi -i mandelbrot=size=1280x720:rate=25 -f lavfi -i testsrc2=size=480x270:rate=25 \
    -filter_complex '[0][1]overlay=40:40,noise=alls=2:allf=t,format=yuv420p' -t 3 "$video"
fi

# json FILE KEY: the first value of KEY at the outermost level of our own JSON.
json() { sed -n "s/^  \"$2\": \"\{0,1\}\([^\",]*\)\"\{0,1\},\{0,1\}$/\1/p" "$1" | head -n 1; }
# timed COMMAND...: runs it, leaving the seconds it took in $seconds.
timed() {
  local begin end
  begin=$(date +%s.%N)
  "$@"
  end=$(date +%s.%N)
  seconds=$(awk "BEGIN { print $end - $begin }")
}

echo "== coding $video"
printf '\n%-10s %12s %10s %12s %12s %12s\n' "" bytes "bits/pixel" "PSNR dB" "encode fps" "decode fps"
for setting in "-q 40" "-q 60" "--lossless"; do
  stream=$out/$(echo "$setting" | tr -d ' -').tvl
  # shellcheck disable=SC2086  # the setting is words
  timed "$trivelet" encode "$video" "$stream" $setting -y --quiet
  encode=$seconds
  timed "$trivelet" decode "$stream" null --quiet
  decode=$seconds
  "$trivelet" info "$stream" --json >"$out/info.json"
  "$trivelet" compare "$video" "$stream" --json >"$out/compare.json"
  psnr=$(json "$out/compare.json" psnr)
  [ "$psnr" != null ] || psnr=identical
  awk -v name="$setting" -v bytes="$(json "$out/info.json" bytes)" -v bpp="$(json "$out/info.json" bits_per_pixel)" \
    -v psnr="$psnr" -v frames="$(json "$out/compare.json" frames)" -v encode="$encode" -v decode="$decode" 'BEGIN {
      if (psnr != "identical") psnr = sprintf("%.2f", psnr)
      printf "%-10s %12d %10.4f %12s %12.1f %12.1f\n", name, bytes, bpp, psnr, frames / encode, frames / decode }'
done
printf '\nWall-clock speed of the whole program, reading the input included, on %s cores.\n' "$(nproc)"
echo "Built without the player and what other programs load; with them: cmake -U 'TRIVELET_*' --preset release &&" \
  "cmake --build build/release"
echo "Streams: $out/*.tvl; play one with: $trivelet decode $out/q60.tvl - --format y4m | ffplay -i -"
