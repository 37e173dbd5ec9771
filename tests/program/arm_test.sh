#!/usr/bin/env bash
# Builds and packs for 64-bit ARM (packaging/arm64.sh) and runs that under qemu-user: arm_test.sh FOLDER PROGRAM
# FOLDER keeps the build. PROGRAM is trivelet of this machine: the bytes of streams and frames must be the same. With
# TRIVELET_FULL alone, because it compiles everything once more and emulates a processor; grids of cases are sampled.
set -euo pipefail
case "${TRIVELET_FULL-}" in "" | 0) echo "skipped: tests/run.sh --full builds for ARM" && exit 77 ;; esac
for tool in aarch64-linux-gnu-g++ qemu-aarch64 dpkg-deb ffmpeg; do
  command -v "$tool" >/dev/null || { echo "skipped: $tool is not installed" && exit 77; }
done
[ $# -eq 2 ] || { echo "usage: $0 FOLDER PROGRAM" >&2; exit 2; }
folder=$(realpath -m "$1")
program=$(realpath "$2")
cd "$(dirname "$0")/../.."
rm -f "$folder"/*.deb
packaging/arm64.sh "$folder" identities || {
  [ $? -eq 3 ] && echo "skipped: no network, and so no arm64 libraries" && exit 77
  exit 1
}

echo "== tests that compare with what streams always decoded to, and instruction sets with each other"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
TRIVELET_FULL='' ctest --test-dir "$folder/build" -j "${JOBS:-$(nproc)}" --output-on-failure --timeout 3000 -L identity ||
  { echo "FAILED: tests under qemu"; exit 1; }

echo "== the packages"
root=$work/root
mkdir "$root"
for package in "$folder"/*.deb; do
  [ "$(dpkg-deb -f "$package" Architecture)" = arm64 ] || { echo "FAILED: $package is not for arm64"; exit 1; }
  dpkg-deb -x "$package" "$root"
done
[ -s "$root/usr/share/man/man1/trivelet.1.gz" ] || [ -s "$root/usr/share/man/man1/trivelet.1" ] || { echo "FAILED: no man page"; exit 1; }
file=$root/usr/bin/trivelet
[ "$(od -An -tx1 -j18 -N2 "$file" | tr -d ' ')" = b700 ] || { echo "FAILED: $file is not for AArch64"; exit 1; }
arm() { qemu-aarch64 -L "$folder/root" -E LD_LIBRARY_PATH="$root/usr/lib/aarch64-linux-gnu" "$file" "$@"; }

echo "== the same bytes as on this machine"
ffmpeg -v error -f lavfi -i testsrc2=size=176x144:rate=25,trim=end_frame=40,format=yuv420p -c:v ffv1 "$work/clip.mkv"
ffmpeg -v error -f lavfi -i testsrc2=size=65x49:rate=25,trim=end_frame=12,format=yuv444p12le -c:v ffv1 "$work/deep.mkv"
failed=0
same() { # same NAME OPTIONS...: encoded here and there, decoded here and there
  local name=$1
  shift
  "$program" encode "$work/$name.mkv" "$work/here.tvl" -y --quiet "$@"
  arm encode "$work/$name.mkv" "$work/there.tvl" -y --quiet "$@"
  # The header names the program that wrote the stream, which is the same.
  cmp "$work/here.tvl" "$work/there.tvl" || { echo "FAILED: $name $*: other bytes"; failed=1; }
  local frames
  frames=$(arm decode "$work/here.tvl" md5 --quiet)
  [ "$("$program" decode "$work/here.tvl" md5 --quiet)" = "$frames" ] || { echo "FAILED: $name $*: other frames"; failed=1; }
  echo "$name $*: $(stat -c %s "$work/there.tvl") bytes, $frames"
}
same clip
same clip --preset fast
same clip --motion on --gop 16
same clip --lossless
same clip --size 60k
same deep --lossless --transform wavelet
same deep -q 90 --profile dense
exit $failed
