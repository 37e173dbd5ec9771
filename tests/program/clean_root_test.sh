#!/usr/bin/env bash
# Installs the packages of cpack in a fresh Debian and uses them:
#   tests/program/clean_root_test.sh BUILD [ROOT]
# ROOT: a fresh Debian 12, made with debootstrap where the folder is not there; it is changed. Without ROOT one is made and
# removed. Needs root, debootstrap and a mirror of Debian (MIRROR). There apt installs the program alone, then the
# libraries and all else; the C sample is built by pkg-config and find_package, encodes and decodes; the manual shows, and
# bash, zsh and fish complete; GStreamer, VLC and HDF5's tools find their plug-ins where the packages put them.
set -euo pipefail
[ $# -ge 1 ] || { echo "usage: $0 BUILD [ROOT]" >&2; exit 2; }
[ "$(id -u)" -eq 0 ] && command -v debootstrap >/dev/null || { echo "skipped: needs root and debootstrap"; exit 77; }
build=$(realpath "$1")
source=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$(realpath -m "${2:-$work/root}")
[ -e "$root/etc/debian_version" ] || debootstrap --variant=minbase bookworm "$root" "${MIRROR:-http://deb.debian.org/debian}" >"$work/log" ||
  { tail "$work/log"; exit 1; }
rm -rf "$root/try"
mkdir "$root/try"
(cd "$build" && cpack -G DEB -B "$root/try") >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
rm -rf "$root/try/_CPack_Packages"
cp "$source/samples/c_roundtrip.c" "$source/samples/roundtrip.cpp" "$root/try"
cat >"$root/try/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.22)
project(user LANGUAGES C CXX)
find_package(Trivelet 0.1 REQUIRED)
add_executable(c_sample c_roundtrip.c)
target_link_libraries(c_sample PRIVATE Trivelet::trivelet)
add_executable(cpp_sample roundtrip.cpp)
target_link_libraries(cpp_sample PRIVATE Trivelet::trivelet_static)
END
cat >"$root/try/try.sh" <<'END'
set -euo pipefail
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 MANPAGER=cat
cd /try
failed=0
check() { # check WHAT PATTERN COMMAND...: it succeeds and prints that
  local what=$1 pattern=$2
  shift 2
  if "$@" >log 2>&1 && { [ -z "$pattern" ] || grep -qE -- "$pattern" log; }; then echo "holds: $what"; else echo "FAILED: $what: $*"; head -n 20 log; failed=1; fi
}
install() { apt-get install -y --no-install-recommends "$@" >log 2>&1 || { tail -n 20 log; exit 1; }; }
apt-get update >log 2>&1 || { cat log; exit 1; }
install --reinstall ./trivelet_*.deb  # in a root that is used again, too
echo "holds: apt install of the program"
{ printf 'P5\n64 48\n255\n'; head -c 3072 /dev/urandom; } >a.pgm
check "the program encodes" "" trivelet encode a.pgm a.tvl --lossless --quiet
check "the program decodes" "" trivelet decode a.tvl b.pgm --quiet
check "what was encoded" "" cmp a.pgm b.pgm
install ./libtrivelet1_*.deb ./libtrivelet-dev_*.deb gcc g++ cmake make pkg-config man-db bash-completion zsh fish file shared-mime-info
check "pkg-config" "-ltrivelet" pkg-config --cflags --libs trivelet
check "C sample by pkg-config" "" sh -c 'cc -std=c11 c_roundtrip.c -o c_sample $(pkg-config --cflags --libs trivelet)'
check "C sample" "[0-9]" ./c_sample
check "find_package" "" cmake -S . -B build
check "samples by find_package" "" cmake --build build
check "C sample by find_package" "[0-9]" build/c_sample
check "C++ sample" "" build/cpp_sample c.tvl
check "its stream" "" trivelet verify c.tvl
check "man trivelet" "trivelet encode" man trivelet
check "bash completes" "^--reduce *$" bash -c '. /usr/share/bash-completion/bash_completion; _completion_loader trivelet || true
  COMP_WORDS=(trivelet decode --red) COMP_CWORD=2; _trivelet; printf "%s\n" "${COMPREPLY[@]}"'
check "zsh completes" "_trivelet" zsh -c 'autoload -U compinit; compinit -u; print $_comps[trivelet]'
check "fish completes" "^--reduce" fish -c 'complete -C "trivelet decode --red"'
check "MIME type" "video/x-trivelet" sh -c 'cat /usr/share/mime/globs2'
install --reinstall ./*.deb
echo "holds: apt install of all $(ls ./*.deb | wc -l)"
if [ -e "$(echo gstreamer1.0-trivelet_*.deb)" ]; then
  install gstreamer1.0-tools
  check "GStreamer's decoder" "Trivelet" gst-inspect-1.0 tvldec
  check "GStreamer's encoder" "Trivelet" gst-inspect-1.0 tvlenc
fi
if [ -e "$(echo vlc-plugin-trivelet_*.deb)" ]; then
  install vlc-bin vlc-plugin-base
  {
    printf 'YUV4MPEG2 W64 H48 F25:1 C420jpeg\n'
    for _ in $(seq 50); do printf 'FRAME\n' && head -c 4608 /dev/urandom; done
  } >film.y4m
  check "a film" "" trivelet encode film.y4m film.mkv --quiet
  mkdir -m 777 scene
  chmod 755 .
  check "VLC's decoder" "" env HOME=/try/scene setpriv --reuid=65534 --regid=65534 --clear-groups cvlc -I dummy --aout=dummy \
    --vout=dummy --video-filter=scene --no-spu --scene-path=/try/scene --scene-format=png --scene-ratio=1 film.mkv vlc://quit
  check "its pictures" "PNG image data, 64 x 48" sh -c 'file scene/*.png'
fi
if [ -e "$(echo hdf5-plugin-trivelet_*.deb)" ]; then
  install hdf5-tools
  seq 512 >n.txt
  check "a dataset" "" h5import n.txt -d 8,8,8 -p ct -t TEXTIN -s 32 -o plain.h5
  check "HDF5 compresses" "" h5repack -l ct:CHUNK=8x8x8 -f ct:UD=480,0,1,1 plain.h5 coded.h5
  check "with our filter" "FILTER_ID 480" h5dump -p -H coded.h5
  check "h5dump" "" sh -c 'h5dump -d ct plain.h5 | tail -n +2 >1; h5dump -d ct coded.h5 | tail -n +2 >2; grep -q 512 1 && cmp 1 2'
fi
check "removed again" "" apt-get purge -y trivelet libtrivelet1
exit $failed
END
# Its own mounts: nothing stays behind.
unshare --mount bash -c 'mount --bind /dev "$1/dev"; mount -t proc proc "$1/proc"; cp /etc/resolv.conf "$1/etc/"
  exec chroot "$1" bash /try/try.sh' - "$root"
