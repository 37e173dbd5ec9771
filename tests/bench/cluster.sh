#!/usr/bin/env bash
# Encoding by several processes beside threads alone:
#   tests/bench/cluster.sh TRIVELET [VIDEO.y4m] ["1 2 4"]
# For 1, 2, 4 … processes of one thread each: seconds, CPU seconds and times the frames a second of one, `dense` and
# `fast`; and one process with as many threads. Runs alternate, the best of three counts. Without a VIDEO one of 1080p is
# made of ffmpeg's test pictures. All streams are compared with that of one process. It is written and read in a memory
# file system where there is one.
set -euo pipefail
trivelet=$(realpath "$1")
video=${2:-}
counts=${3:-"1 2 4"}
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
work=$(mktemp -d -p "$([ -w /dev/shm ] && echo /dev/shm || echo /tmp)")
trap 'rm -rf "$work"' EXIT
if [ -z "$video" ]; then
  video=$work/in.y4m
  ffmpeg -v error -f lavfi -i "testsrc2=size=1920x1080:rate=25:duration=12,noise=alls=6:allf=t" -pix_fmt yuv420p "$video"
fi
video=$(realpath "$video")
cd "$work"

# seconds NAME COMMAND...: of the best of three so far in NAME.best, with its CPU seconds.
seconds() {
  local name=$1 taken
  shift
  /usr/bin/time -f '%e %U %S' -o time.txt "$@" 2> said.txt || { cat said.txt; exit 1; }
  taken=$(awk '{printf "%.2f %.2f", $1, $2 + $3}' time.txt)
  if [ ! -e "$name.best" ] || awk -v a="${taken% *}" -v b="$(cut -d' ' -f1 "$name.best")" 'BEGIN {exit !(a < b)}'; then
    echo "$taken" > "$name.best"
    grep -o 'took .*' said.txt > "$name.said" || true
  fi
}

for preset in medium fast; do
  rm -f ./*.best
  "$trivelet" encode "$video" one.tvl --preset $preset --quiet -y
  for _ in 1 2 3; do
    for n in $counts; do
      seconds "p$n" mpirun -n "$n" --oversubscribe --bind-to none "$trivelet" encode "$video" many.tvl --preset $preset \
        --device cpu --threads 1 --verbose -y
      cmp one.tvl many.tvl
      seconds "t$n" "$trivelet" encode "$video" many.tvl --preset $preset --device cpu --threads "$n" --verbose -y
      cmp one.tvl many.tvl
    done
  done
  first=${counts%% *}
  echo "--preset $preset, $(basename "$video")"
  printf '%10s %9s %9s %7s   %9s %9s %7s   %s\n' "" processes CPU times threads CPU times "of the first process"
  for n in $counts; do
    awk -v n="$n" -v one="$(cut -d' ' -f1 "p$first.best")" -v alone="$(cut -d' ' -f1 "t$first.best")" \
      -v p="$(cat "p$n.best")" -v t="$(cat "t$n.best")" -v said="$(cat "p$n.said")" 'BEGIN {
        split(p, a); split(t, b)
        printf "%10d %7.2f s %7.2f s %7.2f   %7.2f s %7.2f s %7.2f   %s\n", n, a[1], a[2], one / a[1], b[1], b[2],
               alone / b[1], said }'
  done
done
