#!/bin/sh
# The command trivelet ccsds: pictures in and out, every option once, exit codes.
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

# Two pictures or streams compared.
expect 0 "$trivelet" ccsds compare a.pgm a.c122 --min-psnr inf
grep -q '^identical$' out.txt || fail "compare does not say identical"
expect 0 "$trivelet" ccsds compare a.pgm l.c122 --json
grep -q '"identical": false' out.txt && grep -q '"psnr": [1-9]' out.txt || fail "compare --json lacks something"
expect 6 "$trivelet" ccsds compare a.pgm l.c122 --min-psnr 99
expect 6 "$trivelet" ccsds compare a.pgm b.pgm

# Many at once, into a folder.
mkdir many pictures
expect 0 "$trivelet" ccsds encode a.pgm b.pgm many
expect 0 "$trivelet" ccsds encode a.pgm single.c122
same single.c122 many/a.c122
expect 0 "$trivelet" ccsds decode many/a.c122 many/b.c122 pictures
same a.pgm pictures/a.pgm
same b.pgm pictures/b.pgm
expect 2 "$trivelet" ccsds encode a.pgm b.pgm nowhere
expect 2 "$trivelet" ccsds encode a.pgm ./a.pgm many -y
expect 2 "$trivelet" ccsds encode a.pgm b.pgm many   # exist already

# Where to compute. Without a GPU, asking for one is refused.
expect 0 "$trivelet" ccsds encode a.pgm device.c122 --device cpu
same single.c122 device.c122
expect 2 "$trivelet" ccsds encode a.pgm device.c122 -y --device tpu
expect 5 "$trivelet" ccsds encode a.pgm device.c122 -y --device gpu:99
code=0; "$trivelet" ccsds encode a.pgm device.c122 -y --device gpu > out.txt 2> err.txt || code=$?
if [ "$code" -eq 0 ]; then
  same single.c122 device.c122
  expect 0 "$trivelet" ccsds decode device.c122 out.pgm -y --device gpu
  same a.pgm out.pgm
else
  [ "$code" -eq 5 ] || { cat err.txt >&2; fail "exit code $code instead of 5 without a GPU"; }
  expect 5 "$trivelet" ccsds decode single.c122 out.pgm -y --device gpu
  expect 5 "$trivelet" bench ccsds --side 64 --repeat 1 --device gpu
fi
expect 0 "$trivelet" bench ccsds --side 64 --repeat 1 --device auto --segment-size 16
grep -q 'integer lossless' out.txt || fail "bench ccsds prints no table"

# PNG and TIFF go through FFmpeg.
if "$trivelet" --version | grep -q 'FFmpeg yes'; then
  expect 0 "$trivelet" ccsds decode a.c122 a.png
  expect 0 "$trivelet" ccsds encode a.png png.c122
  same single.c122 png.c122
  expect 0 "$trivelet" ccsds decode b.c122 b.png
  expect 0 "$trivelet" ccsds encode b.png png16.c122
  expect 0 "$trivelet" ccsds compare b.pgm png16.c122 --min-psnr inf
  # Grey, 8 bits, one strip: nine tags, then the samples at byte 122.
  tag() { printf "\\$1\\001\\$2\\000\\001\\000\\000\\000\\$3\\$4\\000\\000"; }  # octal: number, type, value
  { printf 'II*\0\010\0\0\0\011\0'
    tag 000 003 140 000; tag 001 003 120 000; tag 002 003 010 000; tag 003 003 001 000; tag 006 003 001 000
    tag 021 004 172 000; tag 025 003 001 000; tag 026 003 120 000; tag 027 004 000 036
    printf '\0\0\0\0'; cat a.raw; } > a.tif
  expect 0 "$trivelet" ccsds encode a.tif tif.c122
  same single.c122 tif.c122
fi

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
