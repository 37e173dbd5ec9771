#!/usr/bin/env bash
# Measures and prints every figure of README.md and of the tables of docs/RESULTS.md and docs/GPU.md, each with its command:
#   tests/bench/readme_figures.sh [--gpu] [--write]
# On the CPU: rate and distortion beside x264, x265 and OpenJPEG, speed, memory, targets, truncation, lossless sizes; about
# ten minutes on two idle cores. --gpu: the codec and the whole program on a GPU instead. --write: the measured CSV files
# go into tests/bench/data, the tables into the documents, and the pictures are drawn again; otherwise the CSV files go into
# build/figures ($OUT if set) and nothing else changes. Clips are read from $TRIVELET_DATA (else
# ../shared/data); a missing one is named and skipped. The program is $TRIVELET, otherwise the newest build of this
# tree. nvJPEG2000's figures come from nvjpeg2000.sh. Needs ffmpeg with libx264, libx265 and libopenjpeg, python3, gnuplot.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."
gpu=no write=no
for option in "$@"; do
  case $option in
    --gpu) gpu=yes ;;
    --write) write=yes ;;
    *) sed -n '2,11s/^# \{0,1\}//p' "$0"; exit 2 ;;
  esac
done
out=${OUT:-build/figures}
[ $write = no ] || out=tests/bench/data
mkdir -p "$out"
video=${TRIVELET_DATA:-../shared/data}/video

curves() { # curves NAME ARGUMENTS… CLIP…: tests/bench/rd, its points with date, commit, machine and command before them
  local name=$1 clips=() arguments=() argument
  shift
  for argument in "$@"; do
    case $argument in
      *.mkv)
        if [ -f "$video/$argument" ]; then clips+=("$video/$argument"); else echo "$name: no $video/$argument, skipped" >&2; fi ;;
      *) arguments+=("$argument") ;;
    esac
  done
  [ ${#clips[@]} -gt 0 ] || return 0
  tests/bench/rd --anchor x264-intra --csv "$out/$name.points" "${arguments[@]}" "${clips[@]}"
  {
    echo "# $(date +%F), $(git rev-parse --short HEAD 2>/dev/null || echo unknown);" \
      "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $(nproc) cores"
    echo "# tests/bench/rd --anchor x264-intra ${arguments[*]} CLIP…"
    cat "$out/$name.points"
  } >"$out/$name.csv"
  rm "$out/$name.points"
}

if [ $gpu = yes ]; then
  tests/bench/measure_figures.py gpu --out "$out"
  tests/bench/program_files.py --out "$out"
else
  curves rd --codecs "trivelet --motion off,x264-medium,x265-medium,x264-intra,openjpeg" --rates 0.1,0.25,0.5,1,2 --frames 65 \
    mobile_cif_352x288_30f_yuv420p.mkv calendar_720x576_24f_yuv420p.mkv walk_720x480_32f_yuv420p.mkv \
    BasketballPass_416x240_100f_yuv420p.mkv
  curves peers --codecs x264-medium,x265-medium,x264-intra,openjpeg --rates 0.4 bbb_1920x1080_24f_yuv420p.x264ll.mkv
  tests/bench/measure_figures.py cpu --out "$out"
fi
tests/bench/figures.py print --data "$out"
if [ $write = yes ]; then
  tests/bench/figures.py write
  tests/bench/draw_pictures.sh
fi
