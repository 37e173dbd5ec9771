#!/usr/bin/env bash
# The command line program: exit codes, pipes, standard output, files left behind.
#   tests/program/cli_test.sh path/to/trivelet
# Parts that need a program that is missing (ffmpeg, python3) are skipped and said so. Ends with the number of failures.
set -u
[ $# -eq 1 ] && [ -x "$1" ] || { echo "usage: $0 path/to/trivelet" >&2; exit 2; }
trivelet=$(realpath "$1")
script=$(realpath "$0")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
checks=0
failures=0
export NO_COLOR=1
PATH=/usr/bin:$PATH  # programs themselves, not scripts around them, which take longer to start

have() { command -v "$1" >/dev/null 2>&1; }
skip() { echo "SKIPPED: $1"; }
section() { echo "-- $1"; }

fail() {
  failures=$((failures + 1))
  echo "FAILED: $1"
  [ -s out.txt ] && { echo "  standard output:"; head -c 1000 out.txt | sed 's/^/    /'; }
  [ -s err.txt ] && { echo "  standard error:"; head -c 1000 err.txt | sed 's/^/    /'; }
}

# expect CODE ARGS...: runs trivelet with ARGS; out.txt and err.txt keep what it said.
expect() {
  local want=$1 got
  shift
  "$trivelet" "$@" >out.txt 2>err.txt </dev/null
  got=$?
  checks=$((checks + 1))
  [ "$got" -eq "$want" ] || fail "exit code $got instead of $want: trivelet $*"
  # A failure is explained; success says nothing on standard error but plain words.
  [ "$want" -eq 0 ] || [ -s err.txt ] || fail "no message: trivelet $*"
}

# check DESCRIPTION COMMAND...: COMMAND must succeed.
check() {
  local description=$1
  shift
  checks=$((checks + 1))
  "$@" >check.txt 2>&1 || { cp check.txt out.txt; fail "$description"; }
}

# expect_text FILE PATTERN: an extended regular expression in out.txt or err.txt.
expect_text() { check "'$2' is not in $1" grep -qE -- "$2" "$1"; }

size_of() { stat -c %s "$1"; }

# y4m WIDTH HEIGHT FRAMES BYTES_PER_FRAME C_TAG: a Y4M clip of a coarse texture that moves 64 samples a frame.
y4m() {
  local i
  seq 1000003 3001 99999999 | tr -d '\n' | LC_ALL=C tr 0-9 '\0\030\060\110\140\170\220\250\300\360' >texture
  printf 'YUV4MPEG2 W%d H%d F25:1 Ip A1:1 C%s\n' "$1" "$2" "$5"
  for ((i = 0; i < $3; i++)); do
    printf 'FRAME\n'
    tail -c +$((1 + 64 * i)) texture | head -c "$4"
  done
}
y4m 80 48 10 $((80 * 48 * 3 / 2)) 420jpeg >clip.y4m

# ------------------------------------------------------------------------------------------------------------------
section "help and usage"
expect 0 --help
expect_text out.txt '^  trivelet encode '
expect 0 bench gpu --help
expect_text out.txt "^Examples:$"
expect 0 --help-all
expect_text out.txt '--temporal-wavelet'
expect 0 --version
expect_text out.txt '^trivelet [0-9]+\.[0-9]+\.[0-9]+$'
expect_text out.txt '^stream format [0-9]+\.[0-9]+$'
for command in encode decode info verify compare bench; do
  expect 0 $command --help
  check "$command --help speaks on standard error" test ! -s err.txt
done
expect 2
expect 2 frobnicate
expect 2 encode
expect 2 encode clip.y4m
expect 2 encode clip.y4m a.tvl --no-such-flag
expect 2 encode clip.y4m a.tvl -q 101
expect 2 encode clip.y4m a.tvl -q fine
expect 2 encode clip.y4m a.tvl -q nan
expect 2 encode clip.y4m a.tvl --bpp 0,5
expect_text err.txt "'0,5' is not a number; write decimals with a point"
expect 2 encode clip.y4m a.tvl --bpp 0
expect_text err.txt '0 is not above 0'
check "a refusal of more than 200 characters" test "$(wc -c <err.txt)" -lt 200
expect 2 encode clip.y4m a.tvl --step nan
expect 2 encode clip.y4m a.tvl --step inf
expect 2 encode clip.y4m a.tvl -q 50 --lossless
expect 2 encode clip.y4m a.tvl -q 50 --step 2
expect 2 encode clip.y4m a.tvl --step 2 --lossless
expect 2 encode clip.y4m a.tvl --step 0
expect 2 encode clip.y4m a.tvl --gop 0
expect 2 encode clip.y4m a.tvl --gop 129
expect 2 encode clip.y4m a.tvl --levels 4
expect 2 encode clip.y4m a.tvl --levels 4x9
expect 2 encode clip.y4m a.tvl --wavelet 9/8
expect 2 encode clip.y4m a.tvl --lossless --wavelet 9/7
expect_text err.txt '5/3, 13/7 and haar'
expect 2 encode clip.y4m a.tvl --lossless --temporal-wavelet 9/7
expect 2 encode clip.y4m a.tvl --wavelet 13/7
expect 2 encode clip.y4m a.tvl --block-size 100
expect 2 encode clip.y4m a.tvl --layers 17
expect 2 encode clip.y4m a.tvl --simd sse9
expect 2 encode clip.y4m a.tvl --frames 5
expect 2 encode clip.y4m a.tvl --frames 5:5
expect 2 encode clip.y4m a.tvl --frames 100:
expect 2 encode clip.y4m a.tvl --frames 1:x
expect 2 encode clip.y4m a.tvl --size 80x48
expect 2 encode clip.y4m clip.y4m -y
expect 2 encode clip.y4m - --verify
expect 2 encode clip.y4m a.tvl --fps 0
expect 2 encode clip.y4m a.tvl -v --quiet
expect 2 decode a.tvl a.y4m --reduce 9
expect 2 decode a.tvl a.y4m --max-memory much
expect 2 compare - -
check "a refused command left a file" test ! -e a.tvl -a ! -e a.tvl.part

section "messages for words that are not understood"
# refuses PATTERN ARGS...: exit code 2 and this message.
refuses() {
  local pattern=$1
  shift
  expect 2 "$@"
  expect_text err.txt "$pattern"
}
refuses "unknown option '--no-such-flag'\$" encode clip.y4m a.tvl --no-such-flag
refuses "'--no-such-flag'\$" encode clip.y4m --no-such-flag a.tvl
refuses "'b.tvl' is too much: encode takes one input and one output" encode clip.y4m a.tvl b.tvl
refuses "'b.y4m' is too much: info takes IN" info clip.y4m b.y4m
refuses "OUT is missing: trivelet encode IN OUT" encode clip.y4m
refuses "IN is missing: trivelet info IN" info
refuses "'frobnicate' is not a command\$" frobnicate
refuses "'encod' is not a command; did you mean encode" encod
refuses "a command is missing: still takes one of encode, decode, info" still
refuses "--preset veryslow: choose one of fast, medium, slow" encode clip.y4m a.tvl --preset veryslow
refuses "'--lossles'; did you mean --lossless" encode clip.y4m a.tvl --lossles
refuses "'--crf'; use -q 38," encode clip.y4m a.tvl --crf 23
refuses "'--crf'; use -q 47," encode clip.y4m a.tvl --crf=18
refuses "'-crf'; use -q" encode clip.y4m a.tvl -crf 23
refuses "'-i'; the input stands without an option" encode -i clip.y4m a.tvl
refuses "'-b:v'; use --bitrate 8M" encode clip.y4m a.tvl -b:v 8M
refuses "'-q:v'; use -q, 0 to 100" encode clip.y4m a.tvl -q:v 3
refuses "'-vcodec'" encode clip.y4m a.tvl -vcodec libx264
refuses "'-vf'; filter with ffmpeg" encode clip.y4m a.tvl -vf scale=320:-1
refuses "'10X' is not a size; write bytes, or" encode clip.y4m a.tvl --size 10X
refuses "'8Q' is not a bit rate" encode clip.y4m a.tvl --bitrate 8Q
# -o, sizes of 1000 and of 1024, rates with their unit.
for size in 20kB 19.53125kiB 19.53125k 20000; do
  expect 0 encode clip.y4m -o a.tvl --size $size -y
  check "--size $size: $(size_of a.tvl) bytes" test "$(size_of a.tvl)" -le 20000 -a "$(size_of a.tvl)" -gt 19000
done
for rate in 400kbps 0.4Mbit/s 400k 400000; do
  expect 0 encode -y clip.y4m --output=b.tvl --bitrate $rate
  check "--bitrate $rate: $(size_of b.tvl) bytes" test "$(size_of b.tvl)" -le 20000 -a "$(size_of b.tvl)" -gt 19000
done
expect 0 encode clip.y4m c.tvl -q 90 --preset fast --gop 2 --max-rate 300kbps --rate-window 0.2
check "--max-rate 300k: $(size_of c.tvl) bytes" test "$(size_of c.tvl)" -le 15600 -a "$(size_of c.tvl)" -gt 13000
refuses "--rate-window is the window of --max-rate" encode clip.y4m a.tvl -y --rate-window 2
refuses "raise --max-rate" encode clip.y4m a.tvl -y --max-rate 1k
refuses "use one process and one GPU" encode clip.y4m a.tvl -y --max-rate 1M --resume
for preset in fast medium; do
  expect 0 encode clip.y4m c.tvl -y --preset $preset --bpp 24
  expect_text err.txt '^trivelet: warning: --bpp 24 is more than the video takes without loss, about [0-9]+ % of that by'
  expect 0 encode clip.y4m c.tvl -y --preset $preset --bpp 1
  check "a warning of a small target" test ! -s err.txt -o -z "$(grep 'without loss' err.txt)"
done
expect 0 decode a.tvl -o md5
rm -f a.tvl b.tvl c.tvl

section "help"
expect 0 encode -h
expect_text out.txt '^Examples:$'
expect_text out.txt "'trivelet encode --help' lists all options"
check "-h is short" test "$(wc -l <out.txt)" -lt 45
check "-h leaves rare options out" test "$(grep -c temporal-wavelet out.txt)" = 0
expect 0 help --table
cp out.txt table.txt
check "two examples for each command" awk -F '\t' '
  $2 == "about" && $1 != "" { known[$1] = 1 } $2 == "command" && $1 != "" { parent[$1] = 1 }
  $2 == "example" { n[$1]++ }
  END { for (c in known) if (n[c] < 2) { print c; bad = 1 } exit bad }' table.txt
# Every option in an example is one that its command has.
check "options in examples exist" awk -F '\t' '
  $2 == "option" { k = split($3, names, ","); for (i = 1; i <= k; ++i) has[$1, names[i]] = 1 }
  $2 == "example" { example[++m] = $1 "\t" $4 }
  END { for (i = 1; i <= m; ++i) { split(example[i], f, "\t"); sub(/ \|.*/, "", f[2]); k = split(f[2], w, " ")
    for (j = 1; j <= k; ++j) if (w[j] ~ /^-[-a-z]/ && !has[f[1], w[j]]) { print f[1] ": " w[j]; bad = 1 } } exit bad }' table.txt

section "many files"
mkdir -p archive/reels
cp clip.y4m archive/a.y4m
cp clip.y4m archive/reels/b.y4m
printf 'P5 4 2 255 01234567' >archive/scan.pgm
echo words >archive/notes.txt
: >archive/empty.txt
echo words >archive/torn.mp4
left=0
if "$trivelet" --version | grep -q "FFmpeg yes"; then left=2; fi
expect $((left > 0 ? 4 : 5)) encode archive --recursive --out-dir coded --lossless --verify --report report.json
check "what a folder gives" test "$(cd coded && find . -type f | sort | tr '\n' ' ')" = "./a.y4m.tvl ./reels/b.y4m.tvl ./scan.pgm.tvl "
if have python3; then
  check "the report" python3 - report.json archive coded $left <<'END'
import hashlib, json, pathlib, sys
report = json.load(open(sys.argv[1]))
files = {f["input"]: f for f in report["files"]}
left = int(sys.argv[4])  # without FFmpeg they are failures
assert (report["done"], report["failed"], report["other"], report["skipped"]) == (3, 3 - left, left, 0), report
for name in ("archive/a.y4m", "archive/reels/b.y4m", "archive/scan.pgm"):
    f = files[name]
    assert f["state"] == "done" and f["verified"], f
    for end in ("input", "output"):
        data = pathlib.Path(f[end]).read_bytes()
        assert f[end + "_md5"] == hashlib.md5(data).hexdigest() and f[end + "_bytes"] == len(data), f
for name in ("notes.txt", "empty.txt"):
    f = files["archive/" + name]
    assert f["state"] == ("other" if left else "failed") and (f["warnings"] if left else f["error"]), f
torn = files["archive/torn.mp4"]  # named like a film, so it is none of another kind
assert torn["state"] == "failed" and torn["error"], torn
END
fi
if [ $left -gt 0 ]; then
  rm archive/torn.mp4
  expect 0 encode archive --recursive --out-dir coded --lossless -y
  expect_text err.txt '^3 done, 0 skipped, 0 failed, 2 other files left$'
  expect_text err.txt "warning: archive/notes.txt is no video that FFmpeg knows.*it is left"
  expect 5 encode archive/notes.txt --out-dir coded -y  # which was named
fi
rm -f archive/*.txt archive/torn.mp4 report.json
cp coded/a.y4m.tvl before.tvl
rm coded/scan.pgm.tvl
expect 0 encode archive --recursive --out-dir coded --lossless --skip-existing --report report.json
expect_text report.json '"skipped": 2'
check "--skip-existing leaves files alone" cmp coded/a.y4m.tvl before.tvl
expect 2 encode archive --recursive --out-dir coded --lossless --report report.json
expect 2 encode archive --recursive --out-dir coded --lossless
expect 0 decode coded --recursive --out-dir back --out-ext y4m
check "back again" cmp back/reels/b.y4m archive/reels/b.y4m
# A folder is verified. A stream whose signature is damaged is not another kind of file, neither here nor in decoding.
expect 0 verify coded --recursive
expect_text err.txt '^3 intact, 0 failed$'
expect 0 verify coded/a.y4m.tvl coded/scan.pgm.tvl
expect_text out.txt '^coded/scan.pgm.tvl: OK'
expect 3 verify coded
expect_text err.txt "'coded' is a directory; --recursive"
refuses "no stream in the folder 'archive'" verify archive --recursive
refuses "are for one stream" verify coded --recursive --json
expect 0 verify coded --recursive --report verified.json
expect_text verified.json '"intact": 3'
expect 2 verify coded --recursive --report verified.json
expect 2 verify coded --recursive --report - -y
cp -r coded torn
printf X | dd of=torn/a.y4m.tvl conv=notrunc bs=1 2>dd.txt
echo words >torn/notes.txt
expect 4 verify torn --recursive --report verified.json -y
expect_text err.txt '^2 intact, 1 failed, 1 other file left$'
if have python3; then
  check "the report" python3 - verified.json <<'END'
import hashlib, json, pathlib, sys
report = json.load(open(sys.argv[1]))
files = {f["input"]: f for f in report["files"]}
assert (report["command"], report["intact"], report["failed"], report["other"]) == ("verify", 2, 1, 1), report
for name, f in files.items():
    data = pathlib.Path(name).read_bytes()
    assert f["input_md5"] == hashlib.md5(data).hexdigest() and f["input_bytes"] == len(data), f
    assert f["state"] == ("failed" if name == "torn/a.y4m.tvl" else "intact"), f
torn = files["torn/a.y4m.tvl"]
assert torn["exit_code"] == 4 and "is not a .tvl stream" in torn["error"], torn
END
fi
expect_text out.txt '^torn/scan.pgm.tvl: OK'
expect 4 decode torn --recursive --out-dir torn_back
expect_text err.txt '^2 done, 0 skipped, 1 failed, 1 other file left$'
expect_text err.txt "error: 'torn/a.y4m.tvl' is not a .tvl stream"
# A Matroska file whose signature is damaged fails, too, and others are named.
rm torn/a.y4m.tvl
echo words >torn/a.mkv
printf '\032\105\337\243words' >torn/b.mkv
expect 4 verify torn --recursive
expect_text err.txt '^2 intact, 1 failed, 2 other files left$'
expect_text err.txt "error: 'torn/a.mkv'"
expect_text err.txt "warning: 'torn/b.mkv' holds no Trivelet stream"
rm -rf torn_back
expect 4 decode torn --recursive --out-dir torn_back
expect_text err.txt "error: 'torn/a.mkv' is not a .tvl stream"
# --keep-partial is for the videos among many files.
cp -r coded mixed
tail -c 384 clip.y4m >v.raw
refuses "give it \(--size WxH; of a volume --size WxHxD --type T\)" encode v.raw v.tvl
expect 0 encode v.raw mixed/v.tvl --size 16x8x3 --type u8
expect 0 decode mixed --recursive --out-dir mixed_back --keep-partial
check "the volume among them" cmp mixed_back/v.raw v.raw
expect 0 info mixed/v.tvl
expect_text out.txt '^structure .*, 1 layer$'
refuses "'trivelet view' draws pictures" decode mixed/v.tvl v.png
rm -rf torn torn_back mixed mixed_back v.raw
expect 0 encode archive/a.y4m clip.y4m --out-dir two -q 30
check "two inputs" test -s two/a.y4m.tvl -a -s two/clip.y4m.tvl
mkdir -p other && cp clip.y4m other/a.y4m
refuses "would both be written to 'three/a.y4m.tvl'" encode archive/a.y4m other/a.y4m --out-dir three
refuses "need --out-dir" encode clip.y4m a.tvl --skip-existing
expect 3 encode archive/reels all.tvl
expect_text err.txt 'with --recursive --out-dir FOLDER'
# A folder that cannot be made fails one input after the other, and the report says so.
echo x >no_folder
expect 3 encode archive/a.y4m clip.y4m --out-dir no_folder --report no_folder.json
expect_text no_folder.json '"failed": 2'
rm no_folder no_folder.json
check "refused before any work" test ! -e three
rm -rf archive coded back two other report.json

section "purposes"
# A purpose is the options that --help says, and the stream names them.
for purpose in "mezzanine:--preset fast -q 70 --gop 8" "editing:--preset fast -q 70 --gop 1" \
  "proxy:--preset fast -q 26 --gop 8" "delivery:-q 46 --motion auto" "archive:--lossless --verify"; do
  read -ra options <<<"${purpose#*:}"
  expect 0 encode clip.y4m purpose.tvl -y --for "${purpose%%:*}"
  expect 0 encode clip.y4m typed.tvl -y "${options[@]}"
  check "--for ${purpose%%:*} is ${options[*]}" cmp purpose.tvl typed.tvl
done
rm -f purpose.tvl typed.tvl

section "digests, regions"
expect 0 encode clip.y4m a.tvl --lossless --transform wavelet --gop 5
expect 0 info a.tvl --digest
expect_text out.txt "^file MD5 +$(md5sum <a.tvl | cut -d' ' -f1)\$"
expect 0 decode a.tvl md5
expect_text out.txt '^MD5='
digest=$(sed 's/MD5=//' out.txt)
for file in a.tvl clip.y4m; do
  expect 0 info $file --digest --json
  expect_text out.txt "\"samples_md5\": \"$digest\""
done
expect 0 decode a.tvl framemd5
if have ffmpeg; then
  ffmpeg -v error -i clip.y4m -f framemd5 - | grep -v software >frames.txt
  check "framemd5 as FFmpeg has it" diff frames.txt out.txt
fi
expect 0 decode a.tvl whole.yuv
expect 0 decode a.tvl part.yuv --region 16,8,32,24
check "a region" test "$(size_of part.yuv)" = $((32 * 24 * 3 / 2 * 10))
if have python3; then
  check "its samples" python3 - <<'END'
whole, part = open("whole.yuv", "rb").read(), open("part.yuv", "rb").read()
at = 0
for frame in range(10):
    base = frame * 80 * 48 * 3 // 2
    for left, top, width, height, stride in ((16, 8, 32, 24, 80), (8, 4, 16, 12, 40), (8, 4, 16, 12, 40)):
        for y in range(top, top + height):
            row = base + y * stride + left
            assert whole[row:row + width] == part[at:at + width]
            at += width
        base += stride * (48 if stride == 80 else 24)
END
fi
expect 0 decode a.tvl half.yuv --region 16,8,32,24 --reduce 1
check "a region, reduced" test "$(size_of half.yuv)" = $((16 * 12 * 3 / 2 * 10))
refuses "begin and end at multiples of 2: 34 from 14 on" decode a.tvl part.yuv --region 15,8,33,24 -y
refuses "are not in the picture, which has 80" decode a.tvl part.yuv --region 64,8,32,24 -y
refuses "write X,Y,W,H" decode a.tvl part.yuv --region 64,8 -y
expect 0 encode clip.y4m p.tvl --lossless
refuses "encode with --transform wavelet" extract p.tvl half.tvl --reduce 1
expect 5 truncate p.tvl half.tvl --size 2k
expect_text err.txt 'encode with --transform wavelet'
rm -f a.tvl p.tvl whole.yuv part.yuv half.yuv

section "missing files and full disks"
expect 3 encode missing.y4m a.tvl
expect 3 decode missing.tvl a.y4m
expect 3 info missing.tvl
expect 3 verify missing.tvl
expect 3 compare missing.tvl clip.y4m
expect 3 truncate missing.tvl a.tvl --size 5k
expect_text err.txt "cannot open .missing.tvl.: No such file"
expect 3 join missing.tvl -o a.tvl
expect 3 plan missing.tvl
expect 3 thumbnail missing.tvl a.png
expect 3 encode clip.y4m no/such/folder/a.tvl
expect 3 encode . a.tvl
check "a failed command left a file" test ! -e a.tvl -a ! -e a.tvl.part
if [ -c /dev/full ]; then
  expect 3 encode clip.y4m /dev/full -y
  check "/dev/full.part exists" test ! -e /dev/full.part
  "$trivelet" encode clip.y4m - >/dev/full 2>err.txt
  check "encode to a full standard output does not exit with 3" test $? -eq 3
else
  skip "no /dev/full"
fi

section "lossy and lossless round trips"
expect 0 encode clip.y4m lossy.tvl --verify
expect_text err.txt '10 frames, [0-9]+ bytes, .* bits per pixel, .*frames/s, PSNR [0-9.]+ dB, verified'
check "encode speaks on standard output" test ! -s out.txt
expect_text err.txt " $(size_of lossy.tvl) bytes"
expect 0 encode clip.y4m lossless.tvl --lossless --verify
expect_text err.txt 'lossless, verified'
expect 2 encode clip.y4m lossless.tvl --lossless
expect_text err.txt 'lossless\.tvl'
expect 0 encode clip.y4m lossless.tvl --lossless -y --quiet
check "--quiet is not quiet" test ! -s err.txt
expect 0 decode lossless.tvl back.y4m
check "lossless: frames differ" cmp <(tail -n +2 clip.y4m) <(tail -n +2 back.y4m)
expect 2 decode lossless.tvl back.y4m
expect 0 decode lossless.tvl back.y4m -y
expect 2 decode lossless.tvl lossless.tvl -y --format raw
expect 0 decode lossless.tvl back.yuv
check "raw output has another size" test "$(size_of back.yuv)" -eq $((10 * 80 * 48 * 3 / 2))
expect 0 encode back.yuv from_raw.tvl --lossless --size 80x48 --pix-fmt yuv420p
expect 2 encode back.yuv from_raw2.tvl --lossless
expect 0 compare from_raw.tvl back.yuv --min-psnr inf
expect 0 verify lossless.tvl
expect_text out.txt 'OK, 10 frames'
expect 0 verify lossless.tvl --against clip.y4m
expect_text out.txt 'identical'
expect 0 verify lossless.tvl --against back.yuv
expect 0 verify lossy.tvl --against clip.y4m
expect_text out.txt 'PSNR [0-9.]+ dB'
expect 2 verify lossy.tvl --size 80x48
expect 0 decode lossless.tvl md5
cp out.txt md5.txt
expect_text md5.txt '^MD5=[0-9a-f]{32}$'
if have md5sum; then
  check "md5 is not the one of the raw samples" test "$(cut -d= -f2 md5.txt)" = "$(md5sum back.yuv | cut -d' ' -f1)"
fi
expect 0 decode lossless.tvl null
expect 0 decode lossless.tvl - --format md5
check "md5 by --format differs" cmp out.txt md5.txt
expect 0 encode lossless.tvl again.tvl --lossless --gop 4
expect 0 compare again.tvl clip.y4m --min-psnr inf

section "every structure gives the samples back"
for flags in "--gop 1" "--gop 3 --levels 1x2" "--levels 0x0" \
  "--wavelet 13/7 --temporal-wavelet haar" "--wavelet haar --temporal-wavelet 5/3" "--block-size 32" \
  "--layers 1" "--layers 16" "--simd scalar --threads 1" "--profile fast" "--motion on" "--motion auto --gop 4" "--transform wavelet" \
  "--transform wavelet --simd scalar --threads 1" "--preset slow --transform wavelet"; do
  # shellcheck disable=SC2086  # the flags are words
  expect 0 encode clip.y4m s.tvl -y --lossless --verify $flags
done
for flags in "-q 0" "-q 100" "--step 2.5" "--wavelet 5/3 --temporal-wavelet haar" "--profile fast" "--motion on" "--motion auto" "--motion on --bpp 1"; do
  # shellcheck disable=SC2086
  expect 0 encode clip.y4m s.tvl -y --verify $flags
done
"$trivelet" encode clip.y4m one.tvl --quiet -t 1 && "$trivelet" encode clip.y4m many.tvl --quiet -t 7
check "the number of threads changes the stream" cmp one.tvl many.tvl
"$trivelet" encode clip.y4m scalar.tvl --quiet --simd scalar
check "the instruction set changes the stream" cmp one.tvl scalar.tvl

section "motion"
expect 0 encode clip.y4m s.tvl -y --motion on
expect 0 info s.tvl
expect_text out.txt 'or with motion'
expect 0 verify s.tvl
expect 0 decode s.tvl half.y4m -y --temporal-reduce 1
expect 0 info half.y4m
expect_text out.txt '^length +5 frames'
expect 2 encode clip.y4m s.tvl -y --layout dyadic
expect 2 encode clip.y4m s.tvl -y --motion perhaps
# What is not typed follows from what is.
while read -r chosen options; do
  # shellcheck disable=SC2086  # the options are words
  expect 0 encode clip.y4m s.tvl -y $options
  expect 0 info s.tvl --json
  expect_text out.txt "\"motion\": $chosen"
done <<'END'
true
true --lossless --keyint 20
true --preset fast --motion auto
true --preset fast --profile dense --motion on
false --preset fast
false --preset fast --profile dense
false --profile fast
false --temporal-wavelet 9/7
false --gop 1
false --levels 0x3
false --lossless
END
expect 2 encode clip.y4m s.tvl -y --keyint 20 --preset fast
expect_text err.txt 'keyint needs GOPs that refer'
# Keys of a still scene are predicted from those before, unless that is impossible.
frame=$(dd if=/dev/urandom bs=3072 count=1 2>/dev/null | base64 -w0)
{ echo "YUV4MPEG2 W64 H48 F25:1 Ip Cmono"; for _ in $(seq 16); do echo FRAME; echo "$frame" | base64 -d; done; } >still.y4m
for options in "" "--key-prediction auto" "--key-prediction on" "--lossless"; do
  # shellcheck disable=SC2086
  expect 0 encode still.y4m s.tvl -y --motion on --gop 4 $options
  expect 0 info s.tvl
  expect_text out.txt 'predicted keys in 3 GOPs'
done
expect 0 info s.tvl --json
expect_text out.txt '"gops_with_predicted_keys": 3'
for options in "--key-prediction off" "--psnr 40" "--max-rate 10M" "--size 20k" "--keyint 4" "--joinable"; do
  # shellcheck disable=SC2086
  expect 0 encode still.y4m s.tvl -y --motion on --gop 4 $options
  expect 0 info s.tvl --json
  expect_text out.txt '"gops_with_predicted_keys": 0'
done
for options in "--psnr 40" "--max-rate 10M" "--size 20k" "--motion off"; do
  # shellcheck disable=SC2086
  expect 2 encode still.y4m s.tvl -y --gop 4 --key-prediction on $options
done

section "what limits"
expect 0 encode clip.y4m s.tvl -y -v
expect_text err.txt 'bottleneck: [a-z]'
expect 0 decode s.tvl null -v
expect_text err.txt 'bottleneck: [a-z]'

section "--preset slow"
# It chooses what is not typed, and nothing else.
expect 0 encode clip.y4m slow.tvl -y --preset slow --profile fast --gop 8 --temporal-wavelet haar --levels 2x2
expect 0 info slow.tvl
expect_text out.txt 'profile fast'
expect_text out.txt '2 temporal levels haar, 2 spatial levels'
expect_text out.txt 'GOPs of 8 frames'
expect 0 encode clip.y4m slow.tvl -y --preset slow --lossless --verify
check "--preset slow is larger" test "$(size_of slow.tvl)" -le "$(size_of lossless.tvl)"
expect 0 encode clip.y4m slow.tvl -y --preset slow --psnr 50
expect 0 compare slow.tvl clip.y4m --min-psnr 49.9
expect 0 encode clip.y4m slow.tvl -y --preset slow --size 20000
check "--preset slow with a size is larger than it" test "$(size_of slow.tvl)" -le 20000

expect 0 encode clip.y4m slow.tvl -y --preset slow --motion on -t 1
expect_text err.txt 'preset slow: with motion, (each GOP chooses its temporal levels, [0-9] spatial|[0-9]x[0-9]) levels'
expect 0 encode clip.y4m slow4.tvl -y --preset slow --motion on -t 4
check "--preset slow along motion depends on threads" cmp slow.tvl slow4.tvl
expect 0 compare slow.tvl clip.y4m --min-psnr 30
expect 0 encode clip.y4m slow.tvl -y --preset slow --motion auto --levels 2x1
expect 0 info slow.tvl
expect_text out.txt '2 temporal levels'

section "pipes"
cat clip.y4m | "$trivelet" encode - piped.tvl --lossless --verify 2>err.txt
check "encode from a pipe" test $? -eq 0
expect 0 compare piped.tvl clip.y4m --min-psnr inf
"$trivelet" encode clip.y4m - --lossless 2>err.txt | cat >piped_out.tvl
check "encode to a pipe gives another stream" cmp piped_out.tvl lossless.tvl
"$trivelet" decode lossless.tvl - --format y4m 2>err.txt | cmp - back.y4m
check "decode to a pipe" test $? -eq 0
cat lossless.tvl | "$trivelet" decode - - --format y4m 2>err.txt | cmp - back.y4m
check "decode from a pipe" test $? -eq 0
"$trivelet" encode - - --lossless <clip.y4m 2>err.txt | "$trivelet" decode - piped.y4m 2>err.txt
check "encode | decode" cmp piped.y4m back.y4m
cat lossless.tvl | "$trivelet" verify - >out.txt 2>err.txt
check "verify from a pipe" test $? -eq 0
cat lossless.tvl | "$trivelet" info - >out.txt 2>err.txt
check "info from a pipe" test $? -eq 0
cat lossless.tvl | "$trivelet" compare - clip.y4m --min-psnr inf >out.txt 2>err.txt
check "compare a piped stream" test $? -eq 0
cat clip.y4m | "$trivelet" compare lossless.tvl - --min-psnr inf >out.txt 2>err.txt
check "compare with a piped video" test $? -eq 0
cat clip.y4m | "$trivelet" encode - no.tvl --verify >out.txt 2>err.txt
check "--verify of a piped lossy encode is not refused" test $? -eq 2
expect 2 encode <(cat clip.y4m) no.tvl --verify
expect 0 encode <(cat clip.y4m) named_pipe.tvl --lossless --verify
expect 0 decode lossless.tvl -
check "standard output is Y4M where no format is named" cmp out.txt back.y4m
y4m 352 288 8 $((352 * 288 * 3 / 2)) 420jpeg >large.y4m
expect 0 encode large.y4m large.tvl --lossless
"$trivelet" decode large.tvl - --format raw --device cpu 2>err.txt | head -c 10 >/dev/null
check "a closed pipe is complained about" test ! -s err.txt

section "the transform of lossless streams"
expect_profile() {  # NAME OPTIONS...: what `encode clip.y4m` makes of them
  expect 0 encode clip.y4m s.tvl -y --lossless --verify "${@:2}"
  expect 0 info s.tvl
  expect_text out.txt "lossless, profile $1"
}
expect_profile predictive
check "auto is not prediction" cmp s.tvl lossless.tvl
expect_text out.txt 'encode --transform wavelet does'
expect_profile predictive --preset slow
expect_profile predictive --gop 3 --block-size 32
expect_profile dense --transform wavelet
expect_profile dense --layers 2
expect_profile dense --levels 2x2
expect_profile dense --motion on
expect_profile dense --profile dense
expect_profile fast --preset fast
expect 0 encode clip.y4m s.tvl -y --lossless --transform prediction
check "prediction by its name is another" cmp <(tail -c +500 s.tvl) <(tail -c +500 lossless.tvl)
head -c $((3 * 16 * 12 * 2)) /dev/urandom >colours.raw
expect 0 encode colours.raw s.tvl -y --lossless --format raw --size 16x12 --pix-fmt gbrp
expect 0 info s.tvl
expect_text out.txt 'lossless, profile dense'
expect 2 decode lossless.tvl r1.yuv --reduce 1
expect_text err.txt 'reduced 0..0 times, not 1; it is of the predictive profile'
expect 2 decode lossless.tvl r1.yuv --temporal-reduce 1
expect_text err.txt 'predictive profile'
expect 2 extract lossless.tvl s.tvl -y --reduce 1
expect_text err.txt 'predictive profile'
expect 5 truncate lossless.tvl s.tvl -y --size 1000
expect_text err.txt 'predictive profile'
"$trivelet" encode - s.tvl -y --lossless --preset slow <clip.y4m 2>err.txt
check "slow from a pipe, which prediction reads once" test $? -eq 0
"$trivelet" encode - s.tvl -y --motion on --preset slow <clip.y4m 2>err.txt
check "slow along motion from a pipe, which is read once" test $? -eq 0
expect_text err.txt 'a pipe cannot be read twice'
# Parts take what the first one took.
expect 0 encode clip.y4m first.tvl -y --lossless --joinable --gop 4 --frames :4
expect 0 encode clip.y4m second.tvl -y --lossless --joinable --gop 4 --frames 4: --pin-from first.tvl
expect 0 join first.tvl second.tvl -o s.tvl -y
expect 0 compare s.tvl clip.y4m --min-psnr inf
expect 0 encode clip.y4m first.tvl -y --lossless --transform wavelet --joinable --gop 4 --frames :4
expect 2 encode clip.y4m second.tvl -y --lossless --joinable --gop 4 --frames 4: --pin-from first.tvl
expect_text err.txt 'it was encoded with'

section "parts of a stream"
expect 0 encode clip.y4m wavelet.tvl --lossless --transform wavelet
expect 0 decode wavelet.tvl r1.yuv --reduce 1
check "--reduce 1" test "$(size_of r1.yuv)" -eq $((10 * 40 * 24 * 3 / 2))
expect 0 decode wavelet.tvl r2.yuv --reduce 2
check "--reduce 2" test "$(size_of r2.yuv)" -eq $((10 * 20 * 12 * 3 / 2))
expect 0 encode clip.y4m still.tvl --motion off
expect 0 decode still.tvl t1.yuv --temporal-reduce 1
check "--temporal-reduce 1" test "$(size_of t1.yuv)" -eq $((5 * 80 * 48 * 3 / 2))
expect 0 decode still.tvl t2r1.yuv --temporal-reduce 2 --reduce 1
check "--temporal-reduce 2 --reduce 1" test "$(size_of t2r1.yuv)" -eq $((3 * 40 * 24 * 3 / 2))
frame=$((80 * 48 * 3 / 2))
for range in 3:7 0:1 :4 8: 9:10 3:100; do
  first=${range%:*}
  end=${range#*:}
  first=${first:-0}
  end=${end:-10}
  [ "$end" -le 10 ] || end=10
  expect 0 decode again.tvl part.yuv -y --frames $range
  check "--frames $range" cmp part.yuv <(tail -c +$((1 + first * frame)) back.yuv | head -c $(((end - first) * frame)))
done
"$trivelet" decode - - --format raw --frames 5:9 <again.tvl 2>err.txt | cmp - <(tail -c +$((1 + 5 * frame)) back.yuv | head -c $((4 * frame)))
check "--frames from standard input" test $? -eq 0
cat again.tvl | "$trivelet" decode - - --format raw --frames 5:9 2>err.txt | cmp - <(tail -c +$((1 + 5 * frame)) back.yuv | head -c $((4 * frame)))
check "--frames from a pipe" test $? -eq 0
expect 2 decode again.tvl part.yuv -y --frames 10:
expect 0 encode clip.y4m part.tvl --lossless --verify --frames 2:6
expect 0 decode part.tvl part.yuv -y
check "encode --frames" cmp part.yuv <(tail -c +$((1 + 2 * frame)) back.yuv | head -c $((4 * frame)))
expect 0 decode lossy.tvl planes.yuv --max-planes 2
check "--max-planes" test "$(size_of planes.yuv)" -eq $((10 * frame))
expect 0 decode lossy.tvl layers.yuv --max-layers 1
check "--max-layers" test "$(size_of layers.yuv)" -eq $((10 * frame))
expect 5 decode lossy.tvl memory.yuv --max-memory 1k
check "a refused stream left a file" test ! -e memory.yuv -a ! -e memory.yuv.part

section "extract without a part"
expect 0 encode clip.y4m planned.tvl -y --transform wavelet
expect 0 extract planned.tvl whole.tvl
expect_text err.txt "warning: 'whole.tvl' will be a copy of the whole stream"
expect 0 extract planned.tvl whole.tvl --frames 0: -y
check "a part was asked for" test -z "$(grep "copy of the whole" err.txt)"

section "plan"
expect 0 encode clip.y4m planned.tvl -y --gop 4 --motion off
for options in "" "--reduce 1" "--temporal-reduce 1 --max-layers 2" "--frames 5:7"; do
  # shellcheck disable=SC2086  # the options are words
  {
    expect 0 plan planned.tvl $options
    cp out.txt ranges.txt
    rm -f sparse.tvl
    truncate -s "$(size_of planned.tvl)" sparse.tvl
    while read -r offset bytes; do
      tail -c +$((offset + 1)) planned.tvl | head -c "$bytes" | dd of=sparse.tvl oflag=seek_bytes seek="$offset" conv=notrunc status=none
    done <ranges.txt
    expect 0 decode sparse.tvl sparse.yuv -y $options
    expect 0 decode planned.tvl planned.yuv -y $options
  }
  check "a file of what is planned, $options" cmp sparse.yuv planned.yuv
done
check "not all is planned" test "$(awk '{ sum += $2 } END { print sum }' ranges.txt)" -lt "$(size_of planned.tvl)"
expect 0 plan planned.tvl --reduce 1 --json
expect_text out.txt '"rounds": 3'
expect 2 plan planned.tvl --reduce 8
expect 2 plan planned.tvl --slices 0:2
expect 4 plan clip.y4m

section "encoded in parts"
for options in "" "--lossless" "--preset slow"; do
  # shellcheck disable=SC2086  # the options are words
  {
    expect 0 encode clip.y4m whole.tvl -y --joinable --gop 4 $options
    expect 0 encode clip.y4m first.tvl -y --joinable --gop 4 $options --frames :4
    expect 0 encode clip.y4m second.tvl -y --joinable --gop 4 $options --frames 4:8 --pin-from first.tvl
    expect 0 encode clip.y4m third.tvl -y --joinable --gop 4 $options --frames 8: --pin-from first.tvl
  }
  expect 0 join first.tvl second.tvl third.tvl -o joined.tvl -y
  check "parts are the whole, $options" cmp whole.tvl joined.tvl
done
expect 2 encode clip.y4m part.tvl -y --joinable --gop 4 --frames 3:
expect_text err.txt 'multiple of 4'
expect 2 encode clip.y4m part.tvl -y --joinable --gop 4 --frames 4: --pin-from first.tvl -q 50
expect_text err.txt "encoded with '-q 60"
expect 2 encode clip.y4m part.tvl -y --pin-from first.tvl
expect 2 encode clip.y4m part.tvl -y --joinable --psnr 40
expect 2 encode clip.y4m part.tvl -y --joinable --size 10k
expect 2 join first.tvl lossless.tvl -o joined.tvl -y
expect_text err.txt "'lossless.tvl' does not fit 'first.tvl': lossless 0 and 1"
expect 2 join first.tvl joined.tvl -o joined.tvl -y
head -c 1000 second.tvl >cut.tvl
expect 4 join first.tvl cut.tvl -o cut_joined.tvl
check "a failed join left a file" test ! -e cut_joined.tvl -a ! -e cut_joined.tvl.part

section "conformance streams"
# conformance_test decodes them all; here some by the program, with every option once, from files and pipes.
streams=$(dirname "$script")/../conformance
seen=
while read -r md5 name options; do
  case "$name" in volume_*) continue ;; esac
  case "$seen" in *"|$options|"*) continue ;; esac
  seen="$seen|$options|"
  want=0
  [ "$options" != --keep-partial ] || want=4  # its end is lost
  # shellcheck disable=SC2086  # the options are words
  expect $want decode "$streams/$name.tvl" md5 --quiet $options
  check "$name $options: other samples" test "$(cat out.txt)" = "MD5=$md5"
  # shellcheck disable=SC2086
  cat "$streams/$name.tvl" | "$trivelet" decode - md5 --quiet $options >out.txt 2>err.txt
  check "$name $options from a pipe: other samples" test "$(cat out.txt)" = "MD5=$md5"
done <"$streams/streams.txt"
check "no conformance stream was decoded" test -n "$seen"

section "compare"
expect 0 compare lossless.tvl clip.y4m
expect_text out.txt '^PSNR +inf'
expect_text out.txt '^identical$'
expect 0 compare lossy.tvl clip.y4m
expect_text out.txt '^PSNR +[0-9.]+ dB'
expect 6 compare lossy.tvl clip.y4m --min-psnr 99
expect 6 compare lossless.tvl r1.yuv --size 40x24
expect 6 compare lossless.tvl part.tvl
expect_text err.txt 'length'
expect 2 compare lossless.tvl clip.y4m --frames 0
expect 0 compare lossless.tvl clip.y4m --frames 3 --min-psnr inf
expect_text out.txt '^frames +3 '
expect 0 compare lossy.tvl clip.y4m --frames-csv frames.csv
check "the CSV has another number of lines" test "$(wc -l <frames.csv)" -eq 11
expect 2 compare lossy.tvl clip.y4m --frames-csv frames.csv
expect 0 compare lossy.tvl clip.y4m --frames-csv frames.csv -y
expect 2 compare lossy.tvl clip.y4m -y
expect 6 verify lossless.tvl --against part.tvl
expect 0 encode clip.y4m coarse.tvl --step 40
expect 0 decode coarse.tvl coarse.y4m
expect 6 verify lossless.tvl --against coarse.y4m

section "JSON"
if have python3; then
  valid() { python3 -m json.tool <"$1" >/dev/null; }
  field() { python3 -c 'import json, sys; print(eval("d" + sys.argv[2], {"d": json.load(open(sys.argv[1]))}))' "$@"; }
  expect 0 info lossless.tvl --json
  check "info --json" valid out.txt
  check "info --json: frames" test "$(field out.txt '["video"]["frames"]')" = 10
  check "info --json: GOP sizes" test "$(field out.txt '["bytes"] >= sum(g["bytes"] for g in d["gops"])')" = True
  expect 0 info clip.y4m --json
  check "info --json of a video" valid out.txt
  check "info --json of a video: width" test "$(field out.txt '["video"]["width"]')" = 80
  cp lossless.tvl $'odd "name"\\\t.tvl'
  expect 0 info $'odd "name"\\\t.tvl' --json
  check "info --json escapes" test "$(field out.txt '["file"]')" = $'odd "name"\\\t.tvl'
  cp lossless.tvl $'caf\xc3\xa9 \xff.tvl'
  expect 0 info $'caf\xc3\xa9 \xff.tvl' --json
  check "info --json of a name that is not UTF-8" valid out.txt
  expect 0 compare lossless.tvl clip.y4m --json
  check "compare --json of identical videos" test "$(field out.txt '["identical"], d["psnr"]')" = "(True, None)"
  expect 0 compare lossy.tvl clip.y4m --json
  check "compare --json" test "$(field out.txt '["identical"], d["psnr"] > 10')" = "(False, True)"
  expect 0 bench clip.y4m --repeat 2 --json
  check "bench --json" test "$(field out.txt '["frames"], len(d["runs"])')" = "(10, 2)"
  expect 0 decode lossless.tvl null --progress json
  check "--progress json" python3 -c 'import json; [json.loads(line) for line in open("err.txt") if line.startswith("{")][-1]["frames"] == 10 or exit(1)'
  expect 0 encode clip.y4m told.tvl --progress json
  check "--progress json of encoding" python3 -c 'import json; d = [json.loads(line) for line in open("err.txt") if line.startswith("{")][-1]; d["frames"] == d["frames_read"] == 10 and "stage" not in d or exit(1)'
  cat lossless.tvl | "$trivelet" info - --json > out.txt
  check "info --json of a pipe: no size, no bit rate" test "$(field out.txt '["bytes"], d["bits_per_second"], d["bits_per_pixel"], d["video"]["frames"]')" = "(None, None, None, 10)"
else
  skip "JSON: no python3"
fi
expect 0 info lossless.tvl -v
expect_text out.txt '^ +GOP +offset'
expect 0 info lossy.tvl
expect_text out.txt '^settings +-q 60$'

section "bench"
expect 0 bench --size 70x50 --frames 9 --repeat 1
expect_text out.txt '^encode'
expect 0 bench --size 70x50 --frames 9 --repeat 1 --pix-fmt yuv422p10 --lossless --gop 4
expect_text out.txt 'identical to the input'
expect 2 bench --format y4m

section "damaged streams"
bytes=$(size_of lossless.tvl)
flip() { # flip FILE OFFSET: inverts a byte
  local byte
  byte=$(od -An -tu1 -j "$2" -N 1 "$1")
  printf "\\x$(printf %02x $((byte ^ 255)))" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}
for offset in 9 $((bytes / 4)) $((bytes / 2)) $((bytes * 3 / 4)); do
  cp again.tvl broken.tvl
  flip broken.tvl $((offset % $(size_of again.tvl)))
  expect 4 verify broken.tvl
  expect 4 decode broken.tvl broken.y4m
  check "a failed decode left a file" test ! -e broken.y4m -a ! -e broken.y4m.part
done
cp again.tvl broken.tvl
flip broken.tvl $(($(size_of again.tvl) / 2))
expect 4 decode broken.tvl partial.yuv --keep-partial
check "--keep-partial has another length" test "$(size_of partial.yuv)" -eq $((10 * frame))
expect 4 verify broken.tvl
check "verify says nothing about the damage" test -s out.txt
head -c $((bytes / 2)) lossless.tvl >short.tvl
expect 4 verify short.tvl
expect 4 decode short.tvl short.y4m
head -c 20 lossless.tvl >short.tvl
expect 4 decode short.tvl short.y4m
: >empty.tvl
expect 4 decode empty.tvl empty.y4m
# What a stream says does nothing to a terminal.
sed "s/trivelet/tri\x1b[31/" lossless.tvl >escape.tvl
"$trivelet" info escape.tvl >out.txt 2>err.txt
check "control characters are printed" sh -c '! grep -q "$(printf "\033")" out.txt err.txt'
# A cut tail, or an index with a flipped byte: nothing crashes, no half of a file is left, what is intact can be had.
expect 0 encode clip.y4m gops.tvl --gop 4 --profile fast
bytes=$(size_of gops.tvl)
for cut in $((bytes - 1)) $((bytes - 40)) $((bytes * 4 / 5)); do
  head -c "$cut" gops.tvl >cut.tvl
  expect 4 truncate cut.tvl cut_out.tvl --layers 1
  expect 4 extract cut.tvl cut_out.tvl --reduce 1
  check "a failed truncate left a file" test ! -e cut_out.tvl -a ! -e cut_out.tvl.part
  expect 4 decode cut.tvl cut.y4m --max-bytes $((bytes / 4))
  expect 4 verify cut.tvl
  expect 0 info cut.tvl
  expect_text out.txt 'cut short'
  expect 0 extract cut.tvl cut_out.tvl --frames 0:4
  expect_text err.txt 'the GOPs were found without it, by their packets'
  expect 0 verify cut_out.tvl
  expect 4 truncate cut.tvl cut_out.tvl -y --layers 1 --keep-partial
  expect 0 verify cut_out.tvl
  rm cut_out.tvl
done
expect 0 truncate gops.tvl whole_index.tvl --size $((bytes * 3 / 4))
cp gops.tvl broken.tvl
flip broken.tvl $((bytes - 60))
expect 4 verify broken.tvl
expect_text out.txt 'index'
expect 0 truncate broken.tvl rebuilt_index.tvl --size $((bytes * 3 / 4))
check "the warning comes not once" test "$(grep -c 'by their packets' err.txt)" -eq 1
expect 0 compare whole_index.tvl rebuilt_index.tvl --min-psnr inf
expect 2 truncate broken.tvl cut_out.tvl --psnr 30
expect 0 decode broken.tvl broken.y4m --max-bytes $((bytes / 2))
expect 4 verify clip.y4m
head -c 3000 clip.y4m >short.y4m
expect 4 encode short.y4m short.tvl -y
printf 'YUV4MPEG2 W80 H48 F25:1 C420jpeg\n' >none.y4m
expect 4 encode none.y4m none.tvl
check "an empty video left a file" test ! -e none.tvl -a ! -e none.tvl.part

section "interruption"
mkfifo fifo
(cat clip.y4m; exec sleep 30) >fifo &
feeder=$!
# env resets the signals that a script's background jobs ignore.
env --default-signal=INT "$trivelet" encode - interrupted.tvl --gop 4 <fifo >out.txt 2>err.txt &
victim=$!
for _ in $(seq 100); do
  [ -e interrupted.tvl.part ] && break
  sleep 0.1
done
check "no temporary file appeared" test -e interrupted.tvl.part
kill -INT $victim
wait $victim
check "an interrupted encode does not exit with 130" test $? -eq 130
check "an interrupted encode left a file" test ! -e interrupted.tvl.part -a ! -e interrupted.tvl
kill $feeder 2>/dev/null
wait $feeder 2>/dev/null

section "modules"
# FFmpeg, GDCM and MPI are loaded when first needed, not at every start.
if have ldd; then
  ldd "$trivelet" >libraries.txt
  check "FFmpeg, GDCM or MPI is loaded at every start" test -z "$(grep -E 'libav|libsw|libgdcm|libmpi' libraries.txt)"
  check "ldd lists nothing" grep -q libc libraries.txt
fi
if "$trivelet" --version | grep -q 'FFmpeg yes'; then
  mkdir alone
  cp "$trivelet" alone/
  printf 'no video' >other.mp4
  check "without its modules Y4M cannot be encoded" alone/trivelet encode clip.y4m alone.tvl -y --quiet
  alone/trivelet info other.mp4 >out.txt 2>err.txt
  check "a missing module does not exit with 5" test $? -eq 5
  check "a missing module is not named" grep -q 'other.mp4: needs libtrivelet-ffmpeg.so.*cmake --install' err.txt
  cp "$(dirname "$trivelet")"/libtrivelet-ffmpeg.so alone/
  alone/trivelet info other.mp4 >out.txt 2>err.txt
  check "a module beside the program is not loaded" test $? -eq 4
fi

section "pixel formats"
if have ffmpeg && "$trivelet" --version | grep -q 'FFmpeg yes'; then
  formats="gray gray10le gray12le gray16le ya8 yuv410p yuv411p yuv420p yuv422p yuv440p yuv444p yuv420p10le yuv422p10le
    yuv444p12le yuv420p16le yuva420p yuva444p10le gbrp gbrp10le gbrp12le gbrp16le gbrap gbrap12le"
  # One start of ffmpeg for all of them.
  outputs=()
  for format in $formats; do
    for size in 64x48 71x33; do
      outputs+=(-vf "noise=alls=8:allf=t,scale=${size/x/:}" -pix_fmt $format -f rawvideo "$format.$size.raw")
    done
  done
  ffmpeg -v error -nostdin -f lavfi -i testsrc2=size=128x96:rate=10:duration=0.7 "${outputs[@]}" 2>err.txt ||
    fail "ffmpeg cannot make the clips"
  for format in $formats; do
    for size in 64x48 71x33; do
      clip=$format.$size.raw
      expect 0 encode $clip format.tvl -y --lossless --size $size --pix-fmt $format --gop 4
      expect 0 decode format.tvl format.raw -y
      check "lossless $format $size: the frames differ" cmp $clip format.raw
    done
    expect 0 encode $clip format.tvl -y --size $size --pix-fmt $format --gop 4 -q 80 --verify
  done

  section "FFmpeg"
  ffmpeg -v error -nostdin -f lavfi -i testsrc2=size=128x96:rate=10:duration=1 -c:v ffv1 -y source.mkv
  expect 0 encode source.mkv source.tvl --lossless --verify
  expect 0 verify source.tvl --against source.mkv
  expect 0 decode source.tvl source_back.mkv
  expect 0 compare source.mkv source_back.mkv --min-psnr inf
  expect 0 encode source.mkv grey.tvl --pix-fmt gray --lossless --verify
  expect 0 encode source.mkv source_lossy.tvl -q 40
  expect 0 decode source_lossy.tvl source_lossy.y4m
  expect 0 compare source.mkv source_lossy.tvl --json
  if have python3; then
    ffmpeg -v info -nostdin -i source_lossy.y4m -i source.mkv -lavfi '[0][1]psnr' -f null - 2>psnr.txt
    ffmpeg -v info -nostdin -i source_lossy.y4m -i source.mkv -lavfi '[0][1]ssim' -f null - 2>ssim.txt
    check "PSNR and SSIM are not those of FFmpeg" python3 - <<'PYTHON'
import json, re
ours = json.load(open("out.txt"))
psnr = float(re.search(r"average:([0-9.]+)", open("psnr.txt").read())[1])
ssim = float(re.search(r"SSIM Y:([0-9.]+)", open("ssim.txt").read())[1])
print(ours["psnr"], psnr, ours["ssim"], ssim)
assert abs(ours["psnr"] - psnr) < 0.01 and abs(ours["ssim"] - ssim) < 0.001
PYTHON
  fi
  head -c 100000 "$trivelet" >noise.bin
  "$trivelet" info noise.bin >out.txt 2>err.txt
  code=$?
  check "noise is taken for a video" test $code -eq 4 -o $code -eq 5
else
  skip "pixel formats and FFmpeg: no ffmpeg program, or built without FFmpeg"
fi

section "memory"
# What is held of 960x544, 4:2:0, without motion: two GOPs of 33 frames (52 MB) and the coefficients of the luma of one (69 MB), which
# the other components and the measured errors share; 80 MB are left for the program and what was coded. For 1080p the
# same are 206, 274 and 100 MB. Sanitizers have memory of their own.
if have python3 && have ldd && ! ldd "$trivelet" | grep -qE 'lib[at]san'; then
  python3 - "$trivelet" >out.txt 2>err.txt <<'PYTHON'
import math, resource, subprocess, sys
W, H, FRAMES, LIMIT_MB = 960, 544, 99, 52 + 69 + 80
wave = bytes(int(128 + 70 * math.sin(i / 9) + 40 * math.sin(i / 37)) for i in range(12000))
with open("memory.y4m", "wb") as f:
    f.write(b"YUV4MPEG2 W%d H%d F25:1 Ip A1:1 C420jpeg\n" % (W, H))
    for t in range(FRAMES):
        f.write(b"FRAME\n")
        for width, rows in ((W, H), (W // 2, H // 2), (W // 2, H // 2)):
            f.write(b"".join(wave[(3 * y + 5 * t) % 11000 :][:width] for y in range(rows)))
for options in (["--motion", "off"], ["--lossless"]):
    subprocess.run([sys.argv[1], "encode", "memory.y4m", "memory.tvl", "-y", "--quiet", "--threads", "2", *options], check=True)
    used = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1000
    print(options, used, "MB of", LIMIT_MB)
    assert used <= LIMIT_MB
PYTHON
  code=$?
  cp out.txt memory.txt
  check "encoding takes more memory than it says" test $code -eq 0
  rm -f memory.y4m memory.tvl
else
  skip "memory: no python3, or sanitizers"
fi

# A system without memory: an exit code of its own, and nothing is left.
cat >no_memory.c <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
void* malloc(size_t size) {
  static void* (*next)(size_t);
  if (!next) next = (void* (*)(size_t))dlsym(RTLD_NEXT, "malloc");
  return size > 300000 ? NULL : next(size);
}
END
if cc -shared -fPIC no_memory.c -o no_memory.so -ldl 2>/dev/null; then
  printf 'YUV4MPEG2 W640 H360 F25:1 Ip A1:1 C420jpeg\n' >vast.y4m
  for _ in 1 2 3 4; do
    printf 'FRAME\n' >>vast.y4m
    head -c $((640 * 360 * 3 / 2)) /dev/zero >>vast.y4m
  done
  LD_PRELOAD=./no_memory.so "$trivelet" encode vast.y4m no_memory.tvl >out.txt 2>err.txt
  code=$?
  check "no memory: exit code $code" test $code -eq 7
  expect_text err.txt 'out of memory'
  check "no memory: a file is left" test ! -e no_memory.tvl -a ! -e no_memory.tvl.part
  rm -f vast.y4m
else
  skip "no memory: no compiler"
fi

# Where to code. Without a GPU asking for one fails; with one the bytes are the same.
expect 0 encode clip.y4m device_cpu.tvl -y --profile fast --device cpu
expect 2 encode clip.y4m device.tvl -y --device tpu
expect 2 decode device_cpu.tvl null --device gpu:x
expect 5 decode device_cpu.tvl null --device gpu:99
"$trivelet" encode clip.y4m device_gpu.tvl -y --profile fast --device gpu >out.txt 2>err.txt
code=$?
if [ $code -eq 5 ]; then
  expect 5 bench gpu --size 64x48 --frames 9
  expect_text err.txt 'GPU|CUDA'
else
  check "--device gpu: exit code $code" test $code -eq 0
  check "the GPU writes other bytes" cmp -s device_cpu.tvl device_gpu.tvl
fi
expect 0 decode device_cpu.tvl null --device auto

echo "$checks checks, $failures failed"
[ "$failures" -eq 0 ]
