#!/usr/bin/env bash
# Builds FFmpeg with Trivelet in a fresh Debian and plays with it:
#   tests/program/clean_root_ffmpeg_test.sh [ROOT]
# ROOT: a fresh Debian 12, made with debootstrap where the folder is not there; it is changed. Without ROOT one is made and
# removed. Needs root, debootstrap and a mirror of Debian (MIRROR). There packaging/ffmpeg/build.sh, which installs what it
# needs, builds the checked-in files; that ffmpeg encodes, seeks and decodes, and Debian's mpv plays over its libraries.
set -euo pipefail
[ $# -le 1 ] || { echo "usage: $0 [ROOT]" >&2; exit 2; }
[ "$(id -u)" -eq 0 ] && command -v debootstrap >/dev/null || { echo "skipped: needs root and debootstrap"; exit 77; }
source=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$(realpath -m "${1:-$work/root}")
[ -e "$root/etc/debian_version" ] ||
  debootstrap --variant=minbase bookworm "$root" "${MIRROR:-http://deb.debian.org/debian}" >"$work/log" ||
  { tail "$work/log"; exit 1; }
rm -rf "$root/try"
mkdir "$root/try"
git -C "$source" archive HEAD | tar -x -C "$root/try"
cat >"$root/try/try.sh" <<'END'
set -euo pipefail
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 HOME=/try
cd /try
failed=0
check() { # check WHAT PATTERN COMMAND...: it succeeds and prints that
  local what=$1 pattern=$2
  shift 2
  if "$@" >log 2>&1 && { [ -z "$pattern" ] || grep -qE -- "$pattern" log; }; then
    echo "holds: $what"
  else
    echo "FAILED: $what: $*"
    head -n 20 log
    failed=1
  fi
}
md5_of() { /try/ffmpeg/bin/ffmpeg -v error "$@" -pix_fmt yuv420p -f rawvideo - | md5sum; }
apt-get update >log 2>&1 || { cat log; exit 1; }
packaging/ffmpeg/build.sh --minimal /try/ffmpeg
echo "holds: packaging/ffmpeg/build.sh"
ffmpeg="ffmpeg/bin/ffmpeg -v error -y"
clip="-f lavfi -i testsrc2=size=176x144:rate=25,trim=end_frame=150,format=yuv420p"
check "the decoder" "libtrivelet" ffmpeg/bin/ffmpeg -v error -decoders
check "without loss" "" $ffmpeg $clip -c:v libtrivelet -lossless 1 exact.tvl
check "what was encoded" "" [ "$(md5_of $clip)" = "$(md5_of -i exact.tvl)" ]
check "with motion" "" $ffmpeg $clip -c:v libtrivelet -motion on -g 16 moving.mkv
check "the demuxer's copy" "" $ffmpeg -i moving.mkv -c copy moving.tvl
check "a jump" "" [ "$(md5_of -ss 4 -i moving.tvl -frames:v 3)" = "$(md5_of -i moving.mkv -vf trim=start_frame=100:end_frame=103,setpts=PTS-STARTPTS)" ]
apt-get install -y --no-install-recommends mpv >log 2>&1 || { tail -n 20 log; exit 1; }
for film in moving.tvl moving.mkv; do
  rm -rf shown
  LD_LIBRARY_PATH=/try/ffmpeg/lib mpv --no-config --vo=image --vo-image-outdir=shown --ao=null --frames=5 "$film" >mpv.log 2>&1 || true
  check "mpv plays $film" "^5$" sh -c 'ls shown | wc -l; cat mpv.log'
done
exit $failed
END
# Its own mounts: nothing stays behind.
unshare --mount bash -c 'mount --bind /dev "$1/dev"; mount -t proc proc "$1/proc"; cp /etc/resolv.conf "$1/etc/"
  exec chroot "$1" bash /try/try.sh' - "$root"
