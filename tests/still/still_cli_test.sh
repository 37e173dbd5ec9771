#!/bin/sh
# The command trivelet still: pictures in and out, exit codes and, with MPIRUN given, several processes.
# Usage: still_cli_test.sh TRIVELET [MPIRUN]
set -eu
trivelet=$1
mpirun=${2:-}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
fail() { echo "still_cli_test: $*" >&2; exit 1; }
same() { cmp -s "$1" "$2" || fail "$1 and $2 differ"; }
expect() {  # expect CODE command...
  want=$1; shift
  code=0; "$@" > out.txt 2> err.txt || code=$?
  [ "$code" -eq "$want" ] || { cat err.txt >&2; fail "exit code $code instead of $want: $*"; }
}
# As small as four blocks are.
awk 'BEGIN { printf "P5\n40 36\n255\n"; for (y = 0; y < 36; y++) for (x = 0; x < 40; x++) printf "%c", 48 + (x * 3 + y * y / 7) % 64 }' > a.pgm
awk 'BEGIN { printf "P6\n34 33\n255\n"; for (y = 0; y < 33; y++) for (x = 0; x < 102; x++) printf "%c", 40 + (x + 2 * y) % 80 }' > c.ppm

expect 0 "$trivelet" still encode a.pgm a.tvs -q 27 -t 1
expect 0 "$trivelet" still decode a.tvs a2.pgm
expect 0 "$trivelet" compare a.pgm a2.pgm
for options in "-t 3" "--simd scalar"; do
  # shellcheck disable=SC2086
  expect 0 "$trivelet" still encode a.pgm b.tvs -q 27 -y $options
  same a.tvs b.tvs
done
for options in "--block 16" "--block 64 --effort fast" "--effort full --plain-levels -q 40" "-q 0"; do
  # shellcheck disable=SC2086
  expect 0 "$trivelet" still encode a.pgm b.tvs -y $options
  expect 0 "$trivelet" still decode b.tvs b.pgm -y
done
expect 0 "$trivelet" compare a.pgm b.pgm --json
expect 0 "$trivelet" still encode c.ppm c.tvs -q 20
expect 0 "$trivelet" still decode c.tvs c2.ppm
expect 0 "$trivelet" still info c.tvs --json
grep -q '"pixel_format": "gbrp"' out.txt && grep -q '"qp": 20' out.txt || fail "info --json lacks something"
expect 0 "$trivelet" still info a.tvs
expect 0 "$trivelet" still encode a.pgm d.tvs --json
grep -q '"residual_trials"' out.txt || fail "encode --json lacks something"

# Without --codec the name says which: CCSDS 122.0, as "ccsds" writes it.
expect 0 "$trivelet" still encode a.pgm a.c122
expect 0 "$trivelet" ccsds encode a.pgm b.c122
same a.c122 b.c122
expect 0 "$trivelet" still decode a.c122 exact.pgm
same a.pgm exact.pgm
expect 0 "$trivelet" still info a.c122 --json
grep -q '"type": "ccsds122"' out.txt || fail "info does not know a CCSDS stream"
expect 0 "$trivelet" still encode a.pgm a.c122 --bpp 1 -y
[ "$(wc -c < a.c122)" -le 180 ] || fail "--bpp 1 gave $(wc -c < a.c122) bytes"
expect 2 "$trivelet" still encode a.pgm x.c122 -q 20
expect 2 "$trivelet" still encode a.pgm x.tvs --bpp 1
expect 2 "$trivelet" still encode a.pgm x.c122 --codec vstc
expect 2 "$trivelet" still encode a.pgm x.tvs --codec ccsds
# Progress, in a form that programs read.
expect 0 "$trivelet" still encode a.pgm b.tvs -q 27 --progress json -y
grep -q '"blocks": 4,.*"total": 4' err.txt || { cat err.txt >&2; fail "no progress"; }

expect 0 "$trivelet" still encode a.pgm e.tvs --codec dct -q 4
expect 0 "$trivelet" still decode e.tvs e.pgm
expect 0 "$trivelet" still encode c.ppm e.tvs --codec dct --keep 0.3 -y
expect 0 "$trivelet" still decode e.tvs e.ppm
expect 0 "$trivelet" still encode c.ppm f.tvs --codec dct --keep 0.3 --device auto
same e.tvs f.tvs
expect 0 "$trivelet" still decode f.tvs f.ppm --device auto
same e.ppm f.ppm
expect 5 "$trivelet" still encode a.pgm x.tvs --codec dct --device gpu:99
expect 5 "$trivelet" still encode a.pgm x.tvs --device gpu:99
expect 0 "$trivelet" still encode a.pgm f.tvs -q 27 --device auto -y
same a.tvs f.tvs
expect 5 "$trivelet" still decode a.tvs x.pgm --device gpu:99
expect 2 "$trivelet" still encode a.pgm x.tvs --codec dct --device tpu
expect 2 "$trivelet" still encode a.pgm x.tvs --codec dct --block 16
expect 2 "$trivelet" still encode a.pgm x.tvs --keep 0.5

# Several pictures into a folder.
mkdir folder
expect 0 "$trivelet" still encode a.pgm c.ppm folder --codec vstc -q 27
same a.tvs folder/a.tvs
expect 2 "$trivelet" still encode a.pgm c.ppm nofolder --codec vstc

# The papers' measurements, small.
expect 0 "$trivelet" bench dwt2d --sizes 64x32 --repeat 1 -t 2 --csv
grep -q '^64x32,1,cpu,SMDWT,2,' out.txt || fail "bench dwt2d lacks a row"
expect 0 "$trivelet" bench dwt2d --sizes 64x32 --repeat 1 -t 2 --csv --schedule both
grep -q '^64x32,1,cpu,lifting static,2,' out.txt || fail "bench dwt2d --schedule both lacks a row"
expect 2 "$trivelet" bench dwt2d --sizes 63x32
expect 0 "$trivelet" bench dct2d --sizes 32,50 --repeat 1 -t 2
expect 0 "$trivelet" bench dct2d --sizes 32 --repeat 1 -t 2 --table
grep -q 'table, bpp' out.txt || fail "bench dct2d --table has no columns"
expect 0 "$trivelet" bench papers --side 64 --dct-side 32 --vstc-side 16 --frame-sizes 64x32 --gops 8,16 --repeat 1 -t 2 \
  --energy-seconds 0.02
[ "$(grep -c '^Energy by platform' out.txt)" -eq 1 ] || fail "bench papers says nothing of energy"
grep -q '^not measured\|^1 thread ' out.txt || fail "bench papers neither measures energy nor says why not"
expect 0 "$trivelet" bench papers --side 64 --dct-side 32 --vstc-side 16 --frame-sizes 64x32 --gops 8,16 --repeat 1 -t 2 \
  --energy-seconds 0
! grep -q '^Energy' out.txt || fail "bench papers --energy-seconds 0 counts energy"
grep -q '^64x32x16  *[0-9]' out.txt || fail "bench papers lacks a GOP"
expect 2 "$trivelet" bench papers --side 64 --dct-side 32 --vstc-side 16 --frame-sizes 60x32 --gops 8 --repeat 1 -t 2
expect 5 "$trivelet" bench dwt2d --sizes 64x32 --device cpu --blocks

# Exit codes: usage, existing file, missing file, damage, a codec unknown.
expect 2 "$trivelet" still encode a.pgm x.tvs -q 52
expect 2 "$trivelet" still encode a.pgm x.tvs --block 8
expect 2 "$trivelet" still encode a.pgm a.tvs
expect 3 "$trivelet" still decode nothing.tvs x.pgm
expect 4 "$trivelet" still decode a.pgm x.pgm
head -c 100 a.tvs > cut.tvs
expect 4 "$trivelet" still decode cut.tvs x.pgm
[ ! -e x.pgm ] && [ ! -e x.tvs ] || fail "a failed run wrote its output"

# Without the module that wraps MPI: alone as ever, but not one of several processes.
mkdir alone
cp "$trivelet" alone/trivelet
expect 0 alone/trivelet still encode a.pgm alone.tvs -q 27
same a.tvs alone.tvs
expect 5 env OMPI_COMM_WORLD_SIZE=2 alone/trivelet still encode a.pgm x.tvs -q 27
grep -qi mpi err.txt || fail "what lacks is not named"
[ ! -e x.tvs ] || fail "a process of several wrote a file without MPI"

if [ -n "$mpirun" ]; then
  # Within one host no network is looked for, which takes a third of a start.
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_pml=ob1
  for share in rows candidates modes; do
    for n in 2; do
      expect 0 "$mpirun" -n $n --oversubscribe "$trivelet" still encode a.pgm m.tvs -q 27 -y --share $share
      same a.tvs m.tvs
    done
  done
  expect 0 "$mpirun" -n 2 --oversubscribe "$trivelet" still encode c.ppm m.tvs -q 20 -y --share rows
  same c.tvs m.tvs
  # Pictures dealt out; one picture of dct cannot be shared.
  expect 0 "$mpirun" -n 2 --oversubscribe "$trivelet" still encode a.pgm c.ppm folder --codec vstc -q 27 -y
  same a.tvs folder/a.tvs
  expect 0 "$mpirun" -n 2 --oversubscribe "$trivelet" still encode a.pgm c.ppm folder --codec dct --keep 0.3 -y
  same e.tvs folder/c.tvs
  code=0; "$mpirun" -n 2 --oversubscribe "$trivelet" still encode a.pgm x.tvs --codec dct > out.txt 2>&1 || code=$?
  [ "$code" -ne 0 ] && [ ! -e x.tvs ] || fail "processes shared a picture of dct"
fi
echo "still_cli_test: all good"
