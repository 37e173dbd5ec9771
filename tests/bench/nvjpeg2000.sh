#!/usr/bin/env bash
# Compares nvJPEG2000 with Trivelet in two steps, because the GPU machine may lack network and FFmpeg:
#   tests/bench/nvjpeg2000.sh prepare          here: fetches the library from PyPI, and the clips from $TRIVELET_DATA (else
#                                              ../shared/data) as lossless streams, into build/gpu and build/gpu/video
#   tests/bench/nvjpeg2000.sh run [CSV]        there: builds nvjpeg2000.cpp against the library and measures every clip
# CSV: [$OUT/nvjpeg2000.csv, without $OUT tests/bench/data/nvjpeg2000.csv], from which draw_pictures.sh and figures.py
# take what is shown. $TRIVELET is the program. Needs CUDA 13 (or 12, with PACKAGE=nvidia-nvjpeg2k-cu12), a C++ compiler
# and python3. readme_figures.sh --gpu finds its clip there, too, with TRIVELET_DATA=build/gpu.
set -euo pipefail
cd "$(dirname "$0")/../.."
folder=build/gpu
trivelet=${TRIVELET:-build/release/apps/trivelet}
clips() { # name, width x height, frames, file
  cat <<'LIST'
bbb 1920x1080 24 bbb_1920x1080_24f_yuv420p.x264ll.mkv
mobile_cif 352x288 65 mobile_cif_352x288_30f_yuv420p.mkv
calendar 720x576 65 calendar_720x576_24f_yuv420p.mkv
walk 720x480 65 walk_720x480_32f_yuv420p.mkv
BasketballPass 416x240 65 BasketballPass_416x240_100f_yuv420p.mkv
LIST
}
case ${1:-} in
prepare)
  data=${TRIVELET_DATA:-../shared/data}/video
  mkdir -p "$folder/video"
  python3 -m pip download -q --no-deps --only-binary=:all: -d "$folder" "${PACKAGE:-nvidia-nvjpeg2k-cu13}"
  python3 -m zipfile -e "$folder"/nvidia_nvjpeg2k*.whl "$folder"
  rm "$folder"/*.whl
  clips | while read -r _ _ frames file; do
    "$trivelet" encode "$data/$file" "$folder/video/${file%%.*}.tvl" --lossless --frames ":$frames" -y --quiet </dev/null
  done
  du -sh "$folder"
  ;;
run)
  csv=${2:-${OUT:-tests/bench/data}/nvjpeg2000.csv}
  cuda=${CUDA_HOME:-/usr/local/cuda}
  library=$folder/nvidia/nvjpeg2k
  scratch=$(mktemp -d)
  trap 'rm -rf "$scratch"' EXIT
  "${CXX:-g++}" -std=c++20 -O2 tests/bench/nvjpeg2000.cpp -o "$scratch/nvjpeg2000" -I"$library/include" \
    -I"$cuda/include" "$PWD/$library/lib/libnvjpeg2k.so.0" -L"$cuda/lib64" -lcudart -lpthread \
    -Wl,-rpath,"$PWD/$library/lib:$cuda/lib64"
  {
    echo "# $(date +%F), ${TRIVELET_COMMIT:-$(git rev-parse --short HEAD 2>/dev/null || echo unknown)};" \
      "$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | head -n 1)"
    echo "# tests/bench/nvjpeg2000.sh run; nvJPEG2000 $(sed -n 's/^#define NVJPEG2K_VER_[A-Z]* //p' \
      "$library/include/nvjpeg2k_version.h" | paste -sd. -)"
    echo "clip,codec,step,frames,bpp,psnr,psnr_y,encode_fps,decode_fps"
  } >"$csv"
  clips | while read -r name size _ file; do
    echo "$name" >&2
    raw=$scratch/${name}_$size.yuv
    "$trivelet" decode "$folder/video/${file%%.*}.tvl" "$raw" -y --quiet </dev/null
    # Speeds are of interest for 1080p only.
    options=(--seconds 0)
    [ "$size" != 1920x1080 ] || options=(--seconds 2 --rates 0.25,0.4,0.5,1)
    "$scratch/nvjpeg2000" "$raw" "${options[@]}" </dev/null | sed "s/^/$name,/" >>"$csv"
    rm "$raw"
  done
  cat "$csv"
  ;;
*)
  sed -n '2,10s/^# \{0,1\}//p' "$0"
  exit 2
  ;;
esac
