#!/bin/sh
# trivelet ccsds from outside: pictures in and out, every option once, exit codes.
# Usage: ccsds_cli_test.sh TRIVELET
set -eu
trivelet=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
fail() { echo "ccsds_cli_test: $*" >&2; exit 1; }
same() { cmp -s "$1" "$2" || fail "$1 and $2 differ"; }
expect() {  # expect CODE command...
  want=$1; shift
  code=0; "$@" > out.txt 2> err.txt || code=$?
  [ "$code" -eq "$want" ] || { cat err.txt >&2; fail "exit code $code instead of $want: $*"; }
}

# A picture of 96 x 80 in 8 bits and, from the same bytes, one of 48 x 80 in 16.
awk 'BEGIN { printf "P5\n96 80\n255\n"; for (y = 0; y < 80; y++) for (x = 0; x < 96; x++) printf "%c", 48 + (x * 3 + y * y / 7) % 64 }' > a.pgm
tail -c 7680 a.pgm > a.raw
{ printf 'P5\n48 80\n65535\n'; cat a.raw; } > b.pgm

for options in "" "--strip" "--frame --transpose" "--segment-size 16 --word-bytes 3 --all-headers" \
               "--opt heuristic --custom-weights 2301322311" "--segment-size 17 --threads 3 --simd scalar"; do
  # shellcheck disable=SC2086
  expect 0 "$trivelet" ccsds encode a.pgm a.c122 -y $options
  expect 0 "$trivelet" ccsds decode a.c122 out.pgm -y
  same a.pgm out.pgm
done
expect 0 "$trivelet" ccsds encode b.pgm b.c122 --index b.idx
expect 0 "$trivelet" ccsds decode b.c122 out.pgm --index b.idx -y
same b.pgm out.pgm
expect 0 "$trivelet" ccsds encode a.raw s.c122 --size 48x80 --type s16le
expect 0 "$trivelet" ccsds decode s.c122 out.raw
same a.raw out.raw

# Limits hold.
expect 0 "$trivelet" ccsds encode a.pgm l.c122 --dwt float --bpp 2 --segment-size 64
[ "$(wc -c < l.c122)" -le 1920 ] || fail "--bpp is exceeded"
expect 0 "$trivelet" ccsds encode a.pgm f.c122 --segment-size 60 --segment-bytes 500 --fill
[ "$(wc -c < f.c122)" -eq 1000 ] || fail "--fill does not fill"
for options in "--bit-plane-stop 2 --stage-stop 1" "--dc-stop" "--segment-bytes 200"; do
  # shellcheck disable=SC2086
  expect 0 "$trivelet" ccsds encode a.pgm l.c122 -y $options
  expect 0 "$trivelet" ccsds decode l.c122 out.pgm -y
done

# What is said about a stream.
expect 0 "$trivelet" ccsds info f.c122 --json
grep -q '"width": 96' out.txt && grep -q '"use_fill": true' out.txt || fail "info --json lacks something"
expect 0 "$trivelet" ccsds info f.c122 -v

# Exit codes: usage, missing file, existing file, damage.
expect 2 "$trivelet" ccsds encode a.pgm x.c122 --lossless --bpp 1
expect 2 "$trivelet" ccsds encode a.raw x.c122
expect 3 "$trivelet" ccsds decode nothing.c122 x.pgm
expect 2 "$trivelet" ccsds encode a.pgm a.c122
expect 4 "$trivelet" ccsds decode a.pgm x.pgm
head -c 1500 a.c122 > cut.c122
expect 4 "$trivelet" ccsds decode cut.c122 cut.pgm
[ -s cut.pgm ] || fail "a cut stream gives no picture"
expect 4 "$trivelet" ccsds decode cut.c122 strict.pgm --strict
[ ! -e strict.pgm ] || fail "--strict wrote a picture"
echo "ccsds_cli_test: all good"
