#!/usr/bin/env bash
# Compares one GPU of a host with all of them, and one core with many:
#   tests/bench/gpus.sh TRIVELET VIDEO.y4m|STREAM.tvl [--seconds 290] [--one gpu:0] [--all gpu:all] [--each gpu]
#                       [--ranks N] [--cores "1 2 4 8 16"] [--frames N | --longer TIMES] [--clip-frames N] [--rounds N]
#                       [--encode "OPTIONS"] [--parts "memory files cores"] [--films "fast dense-motion dense fast-motion"]
# Frames a second, `fast` and `dense`, without motion and with it: from memory to memory (`trivelet bench gpu`), from a Y4M
# file to a stream and back to a file and to nowhere, all in a memory file system, by one process on --one, by one process
# on --all, and by mpirun with --ranks processes (as many as there are GPUs) on --each, which take the GPUs in turn. Runs
# alternate, the best of two (--rounds) counts. A film has to be long (--longer): to start and end a GPU takes 0.5 to 1 s.
# "Whole" is the process from its start to its end, "work" the time that the program prints.
# All streams and all decoded files are compared. Then `dense` on the CPU by processes of one thread each.
# The video is looped. After --seconds no further run is started. Needs neither FFmpeg nor Python.
set -uo pipefail
export LC_ALL=C OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
[ $# -ge 2 ] || { sed -n '2,5s/^# *//p' "$0"; exit 2; }
trivelet=$(realpath "$1") input=$(realpath "$2")
shift 2
seconds=290 one=gpu:0 all=gpu:all each=gpu ranks="" cores="1 2 4 8 16" frames="" longer=1 clip_frames=200 rounds=2
coding="--gop 32" parts="memory files cores" films="fast dense-motion dense fast-motion"
while [ $# -gt 0 ]; do
  case $1 in
    --seconds) seconds=$2 ;;
    --one) one=$2 ;;
    --all) all=$2 ;;
    --each) each=$2 ;;
    --ranks) ranks=$2 ;;
    --cores) cores=$2 ;;
    --frames) frames=$2 ;;
    --longer) longer=$2 ;;
    --clip-frames) clip_frames=$2 ;;
    --rounds) rounds=$2 ;;
    --films) films=$2 ;;
    --encode) coding=$2 ;;
    --parts) parts=$2 ;;
    *) echo "$1: not an option; see the head of $0" >&2; exit 2 ;;
  esac
  shift 2
done
begun=$(date +%s)
left() { echo $((seconds - $(date +%s) + begun)); }
[ -n "$ranks" ] || ranks=$(nvidia-smi -L 2> /dev/null | grep -c ^GPU || true)
[ "$ranks" -ge 2 ] || ranks=2
mpirun="mpirun --oversubscribe --bind-to none"
command -v mpirun > /dev/null || mpirun=""
"$trivelet" --version | grep -q MPI || mpirun=""
[ -z "$mpirun" ] || $mpirun -n 2 true > /dev/null 2>&1 || mpirun=""
work=$(mktemp -d -p "$([ -w /dev/shm ] && echo /dev/shm || echo /tmp)")
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
: > figures
failures=0
fault() { echo "FAILED: $*"; failures=$((failures + 1)); }

# A clip of at most so many frames, and a file of at least $1 frames with the clip again and again.
case $input in
  *.y4m) "$trivelet" encode "$input" clip.tvl --lossless --preset fast --device cpu --frames ":$clip_frames" --quiet &&
           "$trivelet" decode clip.tvl clip.y4m --device cpu --quiet ;;
  *) "$trivelet" decode "$input" clip.y4m --device cpu --frames ":$clip_frames" --quiet ;;
esac || exit 1
header=$(head -n 1 clip.y4m | wc -c)
[[ $(head -n 1 clip.y4m) =~ \ W([0-9]+)\ H([0-9]+)\  ]] || exit 1
width=${BASH_REMATCH[1]} height=${BASH_REMATCH[2]}
have=$("$trivelet" info clip.y4m --json | sed -n 's/.*"frames": *\([0-9]*\).*/\1/p' | head -n 1)
[ "${have:-0}" -gt 0 ] || { echo "no frames in $input"; exit 1; }
frame_bytes=$((($(stat -c %s clip.y4m) - header) / have))
tail -c "+$((header + 1))" clip.y4m > frames.raw
free=$(df -B1 --output=avail . | tail -n 1)
# A third of what is free is left to two decoded files, of fewer frames, and to three streams.
most=$((free * 2 / 3 / frame_bytes))
scaled() { # $1 frames of 1080p
  local n=${frames:-$(($1 * longer * 1920 * 1080 / width / height))}
  echo $((n > most ? most : n))
}
long=0
lengthen() {
  while [ "$long" -lt "$1" ]; do
    [ "$long" -gt 0 ] || head -c "$header" clip.y4m > in.y4m
    cat frames.raw >> in.y4m || { fault "no room for in.y4m"; exit 1; }
    long=$((long + have))
  done
}

echo "$("$trivelet" --version | head -n 1); $(nproc) cores; $(nvidia-smi -L 2> /dev/null | head -n 1 | sed 's/ (UUID.*//')"
echo "${width}x$height, $have frames looped; $ranks processes ${mpirun:-cannot be had: no mpirun, or a build without MPI}"
echo

# timed NAME FRAMES COMMAND...: a figure of both kinds for NAME; the command within 45 s.
timed() {
  local name=$1 count=$2 start end said
  shift 2
  [ "$(left)" -gt 5 ] || { echo "  $name: no time left"; return 1; }
  start=$EPOCHREALTIME
  if ! timeout 45 "$@" -v -y > said.txt 2>&1 < /dev/null; then
    fault "$name: $*"
    tail -n 5 said.txt | sed 's/^/    /'
    return 1
  fi
  end=$EPOCHREALTIME
  said=$(grep -o '[0-9.,]* frames/s' said.txt | tail -n 1 | tr -d , | cut -d' ' -f1)
  [[ ${said:-x} =~ ^[0-9.]+$ ]] || said=0
  grep -E 'GPUs (de)?coded|processes coded|limits' said.txt | sed 's/.*debug: /    /' | head -n 3
  awk -v n="$count" -v a="$start" -v b="$end" -v said="$said" -v name="$name" 'BEGIN {
    printf "  %-44s %7.2f s  %8.1f frames/s whole, %8.1f work\n", name, b - a, n / (b - a), said
    printf "%s\t%s\t%s\n", name, n / (b - a), said >> "figures" }'
}
# best NAME COLUMN: the highest figure so far; 0 without one.
best() { awk -F'\t' -v name="$1" -v c="$2" '$1 == name && $c > m { m = $c } END { print m + 0 }' figures; }
times() { awk -v a="$1" -v b="$2" 'BEGIN { if (a > 0 && b > 0) printf "%.2f", b / a; else printf "-" }'; }
same() { cmp "$1" "$2" > /dev/null 2>&1 || fault "$3: $2 has other bytes than $1"; }
by() { # the words before the program, or what to say of --device
  case $1 in
    many) echo "$mpirun -n $ranks $trivelet" ;;
    *) echo "$trivelet" ;;
  esac
}
device() { case $1 in one) echo "$one" ;; all) echo "$all" ;; many) echo "$each" ;; esac; }
ways="one all ${mpirun:+many}"

memory() { # NAME OPTIONS...
  local name=$1 device in_flight=3
  [[ $name != dense* ]] || in_flight=32
  shift
  for device in "$one" "$all"; do
    [ "$(left)" -gt 15 ] || { echo "  $name, memory to memory: no time left"; return; }
    # shellcheck disable=SC2086
    if ! timeout 30 "$trivelet" bench gpu clip.y4m --frames 96 --repeat 2 --codec-only --device "$device" $coding "$@" \
      --in-flight "$in_flight" --progress never > said.txt 2>&1; then
      echo "  $name, memory to memory, $device: not measured"
      tail -n 2 said.txt | sed 's/^/    /'
      continue
    fi
    awk -v name="$name memory" -v device="$device" '$1 == "encode" || $1 == "decode" {
        gsub(",", "", $3)
        printf "  %-44s %2d in flight  %8.1f frames/s\n", name " " $1 " " device, $2, $3
        printf "%s %s %s\t%s\t0\n", name, $1, device, $3, 0 >> "figures" }
      /AS ON THE CPU/ { print "FAILED:", $0 }' said.txt
  done
}

measure() { # NAME FRAMES OPTIONS...
  local name=$1 count
  count=$(scaled "$2")
  shift 2
  [[ $parts != *files* ]] || lengthen "$count"
  echo "$name: $* $coding, $count frames"
  [[ $parts != *memory* ]] || memory "$name" "$@"
  [[ $parts == *files* ]] && files "$name" "$count" "$@"
  table "$name"
}

files() { # NAME FRAMES OPTIONS...
  local name=$1 count=$2 w decoded
  shift 2
  decoded=$((count / 4 > 1500 ? 1500 : count / 4))
  for _ in $(seq "$rounds"); do
    for w in $ways; do
      # shellcheck disable=SC2046,SC2086
      timed "$name encode $w" "$count" $(by $w) encode in.y4m $w.tvl --frames ":$count" $coding "$@" --device "$(device $w)" ||
        continue
      [ "$w" = one ] || same one.tvl "$w.tvl" "$name encode"
    done
  done
  [ -e one.tvl ] || { echo "  $name: no stream to decode"; return; }
  for _ in $(seq "$rounds"); do
    for w in $ways; do
      # shellcheck disable=SC2046,SC2086
      timed "$name decode $w" "$decoded" $(by $w) decode one.tvl $w.y4m --frames ":$decoded" --device "$(device $w)" || continue
      [ "$w" = one ] || { same one.y4m "$w.y4m" "$name decode"; rm -f "$w.y4m"; }
      # shellcheck disable=SC2046,SC2086
      timed "$name null $w" "$count" $(by $w) decode one.tvl null --device "$(device $w)"
    done
  done
  rm -f ./*.tvl one.y4m
}

table() { # NAME
  local kind what a b c
  printf '\n%-28s %10s %10s %6s %10s %6s\n' "frames/s" "$one" "$all" "times" "$ranks ranks" "times"
  for what in "memory encode" "memory decode"; do
    a=$(best "$1 $what $one" 2) b=$(best "$1 $what $all" 2)
    printf '%-28s %10.0f %10.0f %6s\n' "$1 $what" "$a" "$b" "$(times "$a" "$b")"
  done
  for what in encode decode null; do
    for kind in 2 3; do
      a=$(best "$1 $what one" $kind) b=$(best "$1 $what all" $kind) c=$(best "$1 $what many" $kind)
      printf '%-28s %10.0f %10.0f %6s %10.0f %6s\n' "$1 $what, $([ $kind = 2 ] && echo whole || echo work)" "$a" "$b" \
        "$(times "$a" "$b")" "$c" "$(times "$a" "$c")"
    done
  done
  echo
}

# Processes of one thread each on cores, and one process with as many threads.
on_cores() {
  local n count first a t
  count=$(scaled 512)
  lengthen "$count"
  first=${cores%% *}
  echo "cores: dense on the CPU, $count frames in GOPs of 8"
  for n in $cores; do
    [ "$n" -le "$(nproc)" ] || { echo "  $n processes: $(nproc) cores only"; continue; }
    # shellcheck disable=SC2086
    timed "cores threads $n" "$count" "$trivelet" encode in.y4m threads.tvl --frames ":$count" --gop 8 --motion off \
      --device cpu --threads "$n"
    [ -n "$mpirun" ] || continue
    # shellcheck disable=SC2086
    timed "cores processes $n" "$count" $mpirun -n "$n" "$trivelet" encode in.y4m many.tvl --frames ":$count" --gop 8 \
      --motion off --device cpu --threads 1 && same threads.tvl many.tvl "$n processes"
  done
  printf '\n%-10s %10s %6s %10s %6s %10s %6s\n' cores threads times processes times "work" times
  for n in $cores; do
    t=$(best "cores threads $n" 2) a=$(best "cores processes $n" 2)
    printf '%-10s %10.1f %6s %10.1f %6s %10.1f %6s\n' "$n" "$t" "$(times "$(best "cores threads $first" 2)" "$t")" "$a" \
      "$(times "$(best "cores processes $first" 2)" "$a")" "$(best "cores processes $n" 3)" \
      "$(times "$(best "cores processes $first" 3)" "$(best "cores processes $n" 3)")"
  done
  rm -f ./*.tvl
}

for film in $films; do
  case $film in
    fast) measure "fast" 6000 --profile fast -q 60 ;;
    dense-motion) measure "dense motion" 2000 --profile dense -q 60 --motion on ;;
    dense) measure "dense" 3000 --profile dense -q 60 --motion off ;;
    fast-motion) measure "fast motion" 3000 --profile fast -q 60 --motion on ;;
    *) fault "$film: none of the films" ;;
  esac
done
[[ $parts != *cores* ]] || on_cores
echo "$(($(date +%s) - begun)) s in all; $failures failures"
[ "$failures" -eq 0 ]
