#!/usr/bin/env bash
# Compares encoding and decoding by several processes with threads alone:
#   tests/bench/cluster.sh TRIVELET [VIDEO.y4m] ["1 2 4"] ["medium fast"] [SECONDS]
# For 1, 2, 4 … processes of one thread each, and one process with as many threads: frames a second from the start of the
# programs to their end, CPU seconds, times the frames a second of the first row, and what the program itself says ("work", without
# starting MPI). Every process has the same number of frames, so many that one codes them in about SECONDS (10), in GOPs
# of 8; the video is looped for that. Then the most processes again, but half as many with two threads each, and two with
# a half of the threads each. Streams of as many frames are compared. Last, the longest stream is decoded to a file and to
# nowhere, by one process of all threads and by the most of one thread.
# Everything lies in a memory file system where there is one. Without a VIDEO one of 1080p is made by ffmpeg.
set -euo pipefail
export LC_ALL=C OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
[ $# -ge 1 ] || { sed -n '2,3s/^# *//p' "$0"; exit 2; }
trivelet=$(realpath "$1") video=${2:-} counts=${3:-"1 2 4"} presets=${4:-"medium fast"} seconds=${5:-10}
work=$(mktemp -d -p "$([ -w /dev/shm ] && echo /dev/shm || echo /tmp)")
trap 'rm -rf "$work"' EXIT
if [ -z "$video" ]; then
  video=$work/made.y4m
  ffmpeg -v error -f lavfi -i "testsrc2=size=1920x1080:rate=25:duration=4,noise=alls=6:allf=t" -pix_fmt yuv420p "$video"
fi
video=$(realpath "$video")
cd "$work"
most=${counts##* }
mpirun=(mpirun --oversubscribe --bind-to none)

# Frames of the video, and a file of at least $1 of them, again and again.
have=$("$trivelet" info "$video" --json | sed -n 's/.*"frames": *\([0-9]*\).*/\1/p' | head -n 1)
header=$(head -n 1 "$video" | wc -c)
[ "${have:-0}" -gt 0 ] || { echo "no frames in $video"; exit 1; }
frame_bytes=$((($(stat -c %s "$video") - header) / have))
input=$video long=$have
lengthen() {
  [ "$long" -lt "$1" ] || return 0
  [ "$input" = in.y4m ] || { input=in.y4m; head -c "$header" "$video" > in.y4m; long=0; }
  while [ "$long" -lt "$1" ]; do
    tail -c "+$((header + 1))" "$video" | { head -c $((frame_bytes * ($1 - long))) >> in.y4m; cat > /dev/null; }
    long=$((($(stat -c %s in.y4m) - header) / frame_bytes))
  done
}

# timed NAME FRAMES COMMAND...: a row of the table, and "frames/s" in NAME.fps.
timed() {
  local name=$1 count=$2 taken said
  shift 2
  TIMEFORMAT='%R %U %S'
  { time "$@" --verbose -y > said.txt 2>&1 < /dev/null || { cat said.txt >&2; exit 1; }; } 2> time.txt
  taken=$(tail -n 1 time.txt)
  said=$(grep -o '[0-9.]* frames/s' said.txt | tail -n 1 | cut -d' ' -f1)
  awk -v n="$count" -v t="$taken" -v said="$said" -v name="$name" -v base="$(cat base.fps 2> /dev/null || echo 0)" 'BEGIN {
    split(t, a); fps = n / a[1]
    printf "  %-40s %6d frames %7.2f s %8.2f CPU s %9.1f frames/s %6s times %9.1f work\n", name, n, a[1], a[2] + a[3], fps,
           (base > 0 ? sprintf("%.2f", fps / base) : "-"), said
    print fps > "last.fps" }'
}
coded() { # NAME FRAMES PROCESSES THREADS: the stream is compared with that of before of as many frames
  local by=()
  [ "$3" = 0 ] || by=("${mpirun[@]}" -n "$3")
  timed "$1" "$2" "${by[@]}" "$trivelet" encode "$input" out.tvl --preset "$preset" --gop 8 --motion off \
    --frames ":$2" --device cpu --threads "$4"
  [ -e "$preset.$2.tvl" ] || mv out.tvl "$preset.$2.tvl"
  [ ! -e out.tvl ] || cmp out.tvl "$preset.$2.tvl"
  rm -f out.tvl
}

echo "$("$trivelet" --version | head -n 1); $(nproc) cores; $(basename "$video"), $have frames"
for preset in $presets; do
  rm -f base.fps ./*.tvl
  "$trivelet" encode "$video" out.tvl --preset "$preset" --gop 8 --motion off --frames :24 --device cpu \
    --threads 1 -y > said.txt 2>&1
  each=$(grep -o '[0-9.]* frames/s' said.txt | awk -v s="$seconds" '{ n = int($1 * s / 8) * 8; print n < 16 ? 16 : n }')
  free=$(df -B1 --output=avail . | tail -n 1)
  [ $((each * most)) -le $((free / 3 / frame_bytes)) ] || each=$((free / 3 / frame_bytes / most / 8 * 8))
  rm -f out.tvl
  lengthen $((each * most))
  echo "--preset $preset --gop 8 --motion off, $each frames for each process or thread"
  for n in $counts; do
    coded "$n processes of a thread" $((each * n)) "$n" 1
    [ -e base.fps ] || cp last.fps base.fps
    coded "one process of $n threads" $((each * n)) 0 "$n"
  done
  [ "$most" -lt 4 ] || coded "$((most / 2)) processes of 2 threads" $((each * most)) $((most / 2)) 2
  [ "$most" -lt 2 ] || coded "2 processes of $((most / 2)) threads" $((each * most)) 2 $((most / 2))
  stream=$preset.$((each * most)).tvl
  rm -f base.fps
  for output in out.y4m null; do
    timed "decode to $output, $most threads" $((each * most)) "$trivelet" decode "$stream" $output --device cpu --threads "$most"
    [ ! -e out.y4m ] || mv out.y4m one.y4m
    cp last.fps base.fps
    timed "decode to $output, $most processes" $((each * most)) "${mpirun[@]}" -n "$most" "$trivelet" decode "$stream" $output \
      --device cpu --threads 1
    [ ! -e out.y4m ] || cmp out.y4m one.y4m
    rm -f base.fps ./out.y4m ./one.y4m
  done
done
