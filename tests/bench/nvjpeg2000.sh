#!/usr/bin/env bash
# nvJPEG2000 beside Trivelet, in two steps, because the machine with the GPU may have no network and no FFmpeg:
#   tests/bench/nvjpeg2000.sh prepare          here: fetches the library from PyPI and the clips from $TRIVELET_DATA
#                                              (else ../shared/data) into build/nvjpeg2000
#   tests/bench/nvjpeg2000.sh run [CSV]        there: builds nvjpeg2000.cpp with nvcc's headers and measures every clip
# CSV: [$OUT/nvjpeg2000.csv, without $OUT tests/bench/data/nvjpeg2000.csv], from which draw_pictures.sh and figures.py
# take what is shown. Needs CUDA 12 or 13 (PACKAGE=nvidia-nvjpeg2k-cu12 for 12), a C++ compiler, python3.
set -euo pipefail
cd "$(dirname "$0")/../.."
folder=build/nvjpeg2000
case ${1:-} in
prepare)
  data=${TRIVELET_DATA:-../shared/data}/video
  mkdir -p "$folder"
  python3 -m pip download -q --no-deps --only-binary=:all: -d "$folder" "${PACKAGE:-nvidia-nvjpeg2k-cu13}"
  python3 -m zipfile -e "$folder"/nvidia_nvjpeg2k*.whl "$folder"
  rm -f "$folder"/*.whl
  while read -r name frames file; do
    size=$(ffprobe -v error -select_streams v:0 -show_entries stream=width,height -of csv=p=0:s=x "$data/$file")
    ffmpeg -v error -nostdin -y -i "$data/$file" -frames:v "$frames" -pix_fmt yuv420p -f rawvideo - |
      xz -3 -T0 >"$folder/${name}_$size.yuv.xz"
  done <<'CLIPS'
mobile_cif 65 mobile_cif_352x288_30f_yuv420p.mkv
calendar 65 calendar_720x576_24f_yuv420p.mkv
walk 65 walk_720x480_32f_yuv420p.mkv
BasketballPass 65 BasketballPass_416x240_100f_yuv420p.mkv
bbb 24 bbb_1920x1080_24f_yuv420p.x264ll.mkv
CLIPS
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
  for packed in "$folder"/*.yuv.xz; do
    clip=$(basename "$packed" .xz)
    python3 -c 'import lzma, shutil, sys; shutil.copyfileobj(lzma.open(sys.argv[1]), open(sys.argv[2], "wb"))' \
      "$packed" "$scratch/$clip"
    echo "$clip" >&2
    # Speeds are of interest for 1080p only.
    options=(--seconds 0)
    [[ $clip != *1920x1080* ]] || options=(--seconds 2 --rates 0.25,0.4,0.5,1)
    "$scratch/nvjpeg2000" "$scratch/$clip" "${options[@]}" | sed "s/^/${clip%_*},/" >>"$csv"
    rm "$scratch/$clip"
  done
  cat "$csv"
  ;;
*)
  sed -n '2,8s/^# \{0,1\}//p' "$0"
  exit 2
  ;;
esac
