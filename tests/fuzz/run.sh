#!/usr/bin/env bash
# run.sh SECONDS [TARGET...]: all fuzzers (or those named) for so long together, JOBS at a time (default: all cores), one
# round after the other. A round goes to the fuzzer that is furthest behind the executions that are asked of it. Prints a
# table; findings, corpora and logs stay in the folder OUT (default: fuzz_out).
#
#   FUZZERS   folder of the programs (default: build/fuzz/tests/fuzz)
#   SEEDS     folder with a folder of seeds for each target (default: tests/corrupt); with MERGE=1 what adds coverage
#             is merged into it at the end
#   ROUND     seconds of a round (default: 60)
#   COUNTS    file of lines "TARGET EXECUTIONS": what was done elsewhere, which counts when the one behind is chosen
set -u
[ $# -ge 1 ] && [ "$1" -gt 0 ] 2>/dev/null || { echo "usage: run.sh SECONDS [TARGET...]" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
seconds=$1; shift
JOBS=${JOBS:-$(nproc)} OUT=${OUT:-fuzz_out} ROUND=${ROUND:-60} MERGE=${MERGE:-0}
FUZZERS=${FUZZERS:-$here/../../build/fuzz/tests/fuzz}
SEEDS=${SEEDS:-$here/../corrupt}
DICTIONARIES=${DICTIONARIES:-$here/dictionaries}
export ASAN_OPTIONS=malloc_context_size=0:quarantine_size_mb=4:allocator_may_return_null=0 UBSAN_OPTIONS=print_stacktrace=1
mkdir -p "$OUT"

# Longest input, executions asked for in millions.
declare -A longest=([decode]=1000 [region]=1000 [plan]=1000 [rewrite]=1000 [verify]=1000 [layout]=1000 [volume_stream]=1000 [gpu]=1000
  [roundtrip]=200 [header]=300 [block]=200 [dense]=60 [predictive]=300 [motion]=300 [ccsds]=400 [ccsds_index]=80 [vstc]=48 [dct]=48
  [predict]=200 [nifti]=600 [nrrd]=250 [metaimage]=200 [dicom]=1500 [envelope]=200 [map]=120 [cuts]=300 [mask]=600 [front_table]=300 [y4m]=300
  [matroska]=6000 [pnm]=120 [raw]=300)
declare -A wanted=([decode]=5 [region]=5 [plan]=5 [rewrite]=5 [verify]=5 [layout]=5 [volume_stream]=5 [gpu]=5 [roundtrip]=5)
targets=()
for program in "$FUZZERS"/*_fuzz; do
  name=$(basename "$program" _fuzz)
  [ $# -eq 0 ] || [[ " $* " == *" $name "* ]] || continue
  targets+=("$name")
done
[ ${#targets[@]} -gt 0 ] || { echo "no fuzzers in $FUZZERS" >&2; exit 2; }

elsewhere() { [ -z "${COUNTS:-}" ] && echo 0 || awk -v name="$1" '$1 == name {n += $2} END {print n + 0}' "$COUNTS"; }
units() { cat "$@" 2>/dev/null | awk '/^stat::number_of_executed_units/ {n += $2} END {print n + 0}'; }

one_round() {  # TARGET NUMBER SECONDS
  local name=$1 folder=$OUT/$1 dictionary=
  mkdir -p "$folder/corpus" "$folder/findings"
  for d in "$name" stream; do
    [ "$d" = stream ] && [[ " decode region plan rewrite verify layout volume_stream gpu " != *" $name "* ]] && continue
    [ -f "$DICTIONARIES/$d.dict" ] && { dictionary=-dict=$DICTIONARIES/$d.dict; break; }
  done
  local seeds=(); [ -d "$SEEDS/$name" ] && seeds=("$SEEDS/$name")
  local lines=$folder/$2.log
  # Beside the changed inputs the seeds: a corpus that others write to at the same time is read again every round. That is
  # no part of its time: it is interrupted where it would take much longer, and says what it did.
  timeout -s INT -k 5 $(($3 + 5)) "$FUZZERS/${name}_fuzz" -max_total_time="$3" -print_final_stats=1 -entropic=0 -len_control=0 -timeout=25 -report_slow_units=25 \
    -rss_limit_mb=2048 -malloc_limit_mb=1024 -max_len="${longest[$name]:-400}" -reload=0 -use_value_profile=0 $dictionary \
    -artifact_prefix="$folder/findings/" "$folder/corpus" "${seeds[@]}" >"$lines" 2>&1
  local status=$?
  # Only what the table and a reader of a failure need is kept.
  if [ $status -eq 0 ] || [ $status -eq 124 ]; then
    { grep '^stat::' "$lines"; grep -E '[[:space:]]cov: [0-9]+' "$lines" | tail -n 1; } >"$lines.short"
    mv "$lines.short" "$lines"
  fi
}

begin=$SECONDS round=0
declare -A running=() log_of=()               # target and log by process
declare -A done_of=() per_round=() busy=()    # by target: executions, those of a round, rounds that run
for name in "${targets[@]}"; do
  here_done=$(units "$OUT/$name"/*.log)
  done_of[$name]=$((here_done + $(elsewhere "$name"))) busy[$name]=0
  rounds=$(ls "$OUT/$name"/*.log 2>/dev/null | wc -l)
  per_round[$name]=$((rounds > 0 ? here_done / rounds : 100000 * ${wanted[$name]:-20}))
done
while left=$((seconds - (SECONDS - begin))); [ "$left" -gt 2 ]; do
  # The one furthest behind; a round that runs counts as one that brings what the last one brought.
  best='' least=0
  for name in "${targets[@]}"; do
    share=$(((done_of[$name] + busy[$name] * per_round[$name]) * 1000 / ${wanted[$name]:-20}))
    [ -n "$best" ] && [ "$share" -ge "$least" ] && continue
    [ "$(ls "$OUT/$name/findings" 2>/dev/null | wc -l)" -ge 10 ] && continue  # it would only find the same again
    best=$name least=$share
  done
  [ -n "$best" ] || break
  round=$((round + 1))
  number=$(date +%s)_$round
  one_round "$best" "$number" "$((left < ROUND ? left : ROUND))" &
  running[$!]=$best log_of[$!]=$OUT/$best/$number.log busy[$best]=$((busy[$best] + 1))
  while [ "${#running[@]}" -ge "$JOBS" ]; do
    wait -n
    for pid in "${!running[@]}"; do
      kill -0 "$pid" 2>/dev/null && continue
      name=${running[$pid]} n=$(units "${log_of[$pid]}")
      done_of[$name]=$((done_of[$name] + n)) busy[$name]=$((busy[$name] - 1))
      [ "$n" -gt 0 ] && per_round[$name]=$n
      unset "running[$pid]" "log_of[$pid]"
    done
  done
done
wait

if [ "$MERGE" = 1 ]; then
  for name in "${targets[@]}"; do
    mkdir -p "$SEEDS/$name"
    "$FUZZERS/${name}_fuzz" -merge=1 -max_len="${longest[$name]:-400}" "$SEEDS/$name" "$OUT/$name/corpus" >"$OUT/$name/merge.txt" 2>&1
  done
fi

bad=0 all=0
{
  printf '| %-14s | %12s | %8s | %8s | %8s | %8s |\n' program executions "a second" edges inputs findings
  printf '|-|-:|-:|-:|-:|-:|\n'
  for name in "${targets[@]}"; do
    n=$(units "$OUT/$name"/*.log)
    rate=$(cat "$OUT/$name"/*.log 2>/dev/null | awk '/^stat::average_exec_per_sec/ {s += $2; k++} END {print k ? int(s / k) : 0}')
    edges=$(cat "$OUT/$name"/*.log 2>/dev/null | grep -oE '[[:space:]]cov: [0-9]+' | awk '$2 > m {m = $2} END {print m + 0}')
    inputs=$(ls "$OUT/$name/corpus" 2>/dev/null | wc -l)
    findings=$(ls "$OUT/$name/findings" 2>/dev/null | wc -l)
    bad=$((bad + findings)) all=$((all + n))
    printf '| %-14s | %12s | %8s | %8s | %8s | %8s |\n' "$name" "$n" "$rate" "$edges" "$inputs" "$findings"
  done
  printf '%s executions, %s findings\n' "$all" "$bad"
} | tee "$OUT/table.md"
[ "$bad" -eq 0 ]
