#!/usr/bin/env bash
# Real-time playback: plays a film with motion and sound for a minute on a screen in memory, drawn by the CPU.
#
#     tests/bench/playback.sh path/to/trivelet FILM [SECONDS] [OPTIONS OF PLAY...]
#
# The film's pictures are encoded once, with --motion on, and joined to the wanted length, with a tone as sound.
# Prints the number of late frames and the CPU seconds of the player. Needs ffmpeg and xvfb-run.
set -euo pipefail

[ $# -ge 2 ] || { sed -n '2,7s/^# \{0,1\}//p' "$0"; exit 2; }
program=$(realpath "$1") film=$(realpath "$2") seconds=${3:-60}
shift $(($# < 3 ? $# : 3))
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$program" encode "$film" "$work/part.tvl" --motion on --quiet
length=$("$program" info "$work/part.tvl" --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["video"]["duration_seconds"])')
parts=$(python3 -c "import math, sys; print(math.ceil(float(sys.argv[1]) / float(sys.argv[2])))" "$seconds" "$length")
list=()
for ((i = 0; i < parts; ++i)); do list+=("$work/part.tvl"); done
"$program" join "${list[@]}" -o "$work/long.tvl" --quiet
ffmpeg -v error -nostdin -f lavfi -i "sine=440:duration=$(python3 -c "print($length * $parts)")" -c:a libopus "$work/tone.mka"
"$program" mux "$work/long.tvl" "$work/film.mkv" --tracks-from "$work/tone.mka" --quiet
"$program" info "$work/long.tvl" | sed -n 1,6p
export SDL_AUDIODRIVER=dummy LIBGL_ALWAYS_SOFTWARE=1
TIMEFORMAT='player and screen: %U + %S CPU s in %R s'
time xvfb-run -a -s "-screen 0 1920x1080x24" "$program" play "$work/film.mkv" --stats --quit-after "$seconds" "$@"
