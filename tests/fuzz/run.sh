#!/usr/bin/env bash
# run.sh SECONDS [TARGET...]: all fuzzers (or those named) for so long together, JOBS at a time (default: all cores), one
# round after the other. A round goes to the fuzzer that has the least time to go until it has the executions that are
# asked of it, so that as many as possible have them in the end; when all do, to the one that has the smallest multiple of
# them. Prints a table; findings, corpora and logs stay in the folder OUT (default: fuzz_out).
#
#   FUZZERS   folder of the programs (default: build/fuzz/tests/fuzz)
#   SEEDS     folder with a folder of seeds for each target (default: tests/corrupt); with MERGE=1 what adds coverage
#             is merged into it at the end
#   ROUND     seconds of a round (default: 60)
#   COUNTS    file of lines "TARGET EXECUTIONS [A_SECOND]": what was done elsewhere, which counts when one is chosen, and
#             how fast that was
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
speed_elsewhere() { [ -z "${COUNTS:-}" ] && echo 0 || awk -v name="$1" '$1 == name && $3 > 0 {n = $3} END {print int(n)}' "$COUNTS"; }
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
declare -A running=() log_of=() time_of=()     # by process: target, log, seconds
declare -A done_of=() speed=() ahead=()        # by target: executions, a second, and those of rounds that run
declare -A guessed=()                          # by target: its speed is none of here
ratio=1000                                     # thousandths of the guessed speeds that this machine has
for name in "${targets[@]}"; do
  done_of[$name]=$(($(units "$OUT/$name"/*.log) + $(elsewhere "$name"))) ahead[$name]=0
  speed[$name]=$(cat "$OUT/$name"/*.log 2>/dev/null | awk '/^stat::average_exec_per_sec/ {s += $2; k++} END {print k ? int(s / k) : 0}')
  [ "${speed[$name]}" -gt 0 ] || { guessed[$name]=1; speed[$name]=$(speed_elsewhere "$name"); }
  [ "${speed[$name]}" -gt 0 ] || speed[$name]=$((400 * ${wanted[$name]:-20}))
done
while left=$((seconds - (SECONDS - begin))); [ "$left" -gt 2 ]; do
  best='' least=0 best_share=0
  for name in "${targets[@]}"; do
    [ "$(ls "$OUT/$name/findings" 2>/dev/null | wc -l)" -ge 10 ] && continue  # it would only find the same again
    all=$((${wanted[$name]:-20} * 1000000)) n=$((done_of[$name] + ahead[$name]))
    fast=$((speed[$name] * (${guessed[$name]:-0} ? ratio : 1000) / 1000 + 1))
    time=$(((all - n) / fast + 1)) share=$((n * 1000 / all))
    if [ "$n" -lt "$all" ]; then
      [ -n "$best" ] && [ "$best_share" -lt 1000 ] && [ "$time" -ge "$least" ] && continue
    else
      [ -n "$best" ] && [ "$share" -ge "$best_share" ] && continue
      time=$ROUND
    fi
    best=$name least=$time best_share=$share best_fast=$fast
  done
  [ -n "$best" ] || break
  # A little more than what it seems to need: seeds and corpus are read first.
  length=$((least + least / 8 + 5))
  [ "$length" -le "$ROUND" ] || length=$ROUND
  [ "$length" -le "$left" ] || length=$left
  round=$((round + 1))
  number=$(date +%s)_$round
  one_round "$best" "$number" "$length" &
  running[$!]=$best log_of[$!]=$OUT/$best/$number.log time_of[$!]=$length
  ahead[$best]=$((ahead[$best] + length * best_fast))
  while [ "${#running[@]}" -ge "$JOBS" ]; do
    wait -n
    for pid in "${!running[@]}"; do
      kill -0 "$pid" 2>/dev/null && continue
      name=${running[$pid]} n=$(units "${log_of[$pid]}") length=${time_of[$pid]}
      unset "running[$pid]" "log_of[$pid]" "time_of[$pid]"
      done_of[$name]=$((done_of[$name] + n))
      if [ "$n" -gt "$length" ]; then
        [ "${guessed[$name]:-0}" = 1 ] && ratio=$(((3 * ratio + 1000 * n / length / speed[$name]) / 4))
        speed[$name]=$((n / length)) guessed[$name]=0
      fi
      ahead[$name]=0
      for other in "${!running[@]}"; do
        [ "${running[$other]}" = "$name" ] && ahead[$name]=$((ahead[$name] + time_of[$other] * speed[$name]))
      done
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
