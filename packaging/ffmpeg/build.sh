#!/usr/bin/env bash
# Builds FFmpeg with Trivelet in it:
#   packaging/ffmpeg/build.sh [--minimal] PREFIX
# Gets the source package of Debian (12: FFmpeg 5.1), or takes the folder that FFMPEG_SOURCE names, of 5.1 or 7.1; adds the
# files of this folder and the patch; builds Trivelet's library and FFmpeg, and installs both under PREFIX. Nothing else is
# changed but the build folder (BUILD_DIR, default build/ffmpeg). --minimal: Trivelet, raw video, Matroska and what tests
# need, in a minute; otherwise all that FFmpeg has without further libraries. SANITIZE=1 in the environment: both under
# AddressSanitizer, for tests. Programs that are linked against Debian's FFmpeg, such as mpv, take this one with
# LD_LIBRARY_PATH=PREFIX/lib.
set -euo pipefail
minimal=
if [ "${1:-}" = --minimal ]; then
  minimal=1
  shift
fi
[ $# = 1 ] || { echo "usage: $0 [--minimal] PREFIX" >&2; exit 2; }
mkdir -p "$1"
prefix=$(cd "$1" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."
build=${BUILD_DIR:-build/ffmpeg}
mkdir -p "$build"
build=$(cd "$build" && pwd)
jobs=${JOBS:-$(nproc)}

# shellcheck source=samples/packages.sh
source samples/packages.sh
install_missing "${BUILD_PACKAGES[@]}" dpkg-dev pkg-config patch nasm

quiet() {
  local log=$1
  shift
  "$@" >"$log" 2>&1 || { grep -E "rror" "$log" | head -n 20 >&2; echo "see $log" >&2; exit 1; }
}

# The source package, by lists of packages of our own that name the sources beside what the system's lists name.
fetch() {
  local apt=$build/apt
  rm -rf "$apt"
  mkdir -p "$apt/sources" "$apt/lists/partial"
  local file
  for file in /etc/apt/sources.list /etc/apt/sources.list.d/*; do
    [ -e "$file" ] || continue
    case $file in
      *.sources) sed 's/^Types:.*/Types: deb-src/' "$file" >"$apt/sources/$(basename "$file")" ;;
      *.list) sed -n 's/^deb /deb-src /p' "$file" >"$apt/sources/$(basename "$file")" ;;
    esac
  done
  local options=(-o "Dir::Etc::sourcelist=/dev/null" -o "Dir::Etc::sourceparts=$apt/sources" -o "Dir::State::lists=$apt/lists")
  # Sources of others may have no list of source packages: what counts is whether FFmpeg is found.
  apt-get "${options[@]}" update >"$build/update.log" 2>&1 || true
  (cd "$build" && quiet "$build/source.log" apt-get "${options[@]}" source --download-only ffmpeg)
  quiet "$build/unpack.log" dpkg-source -x "$build"/ffmpeg_*.dsc "$source"
}

source=$build/source
if [ ! -e "$source/configure" ]; then
  if [ -n "${FFMPEG_SOURCE:-}" ]; then
    cp -r "$FFMPEG_SOURCE" "$source"
  else
    fetch
  fi
fi
if [ ! -e "$source/.trivelet" ]; then
  release=$(cut -d. -f1,2 "$source/RELEASE")
  [ -e "$here/$release.patch" ] || { echo "$0: no patch for FFmpeg $release, only for 5.1 and 7.1" >&2; exit 5; }
  quiet "$build/patch.log" patch -d "$source" -p1 -i "$here/$release.patch"
  touch "$source/.trivelet"
fi
cp "$here"/libavcodec/* "$source/libavcodec/"
cp "$here"/libavformat/* "$source/libavformat/"

launcher=()
more=(--enable-shared --disable-static)
if [ "${SANITIZE:-}" ]; then
  launcher=("-DCMAKE_CXX_FLAGS=-fsanitize=address" -DTRIVELET_HARDEN=OFF)
  more=(--toolchain=gcc-asan --disable-stripping --disable-asm)  # whose assembly takes no instrumented data
fi
! command -v ccache >/dev/null || launcher+=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
quiet "$build/library.log" cmake -S . -B "$build/library" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX="$prefix" \
  -DCMAKE_INSTALL_LIBDIR=lib -DTRIVELET_PROGRAM=OFF -DTRIVELET_TESTS=OFF -DTRIVELET_{CUDA,FFMPEG,MPI,GSTREAMER,VLC,HDF5,ITK,GDAL,PLAYER,GDCM}=OFF "${launcher[@]}"
quiet "$build/library.log" cmake --build "$build/library" -j "$jobs" --target trivelet_shared trivelet_static
for part in library development; do
  quiet "$build/library.log" cmake --install "$build/library" --component $part
done

some=()
if [ "$minimal" ]; then
  some=(--disable-everything --disable-doc --disable-ffplay --enable-decoder=libtrivelet,rawvideo,wrapped_avframe,h264,ffv1
    --enable-encoder=libtrivelet,rawvideo,wrapped_avframe,ffv1 --enable-demuxer=trivelet,matroska,rawvideo,yuv4mpegpipe,mov
    --enable-muxer=trivelet,matroska,rawvideo,framemd5,framecrc,null,yuv4mpegpipe --enable-protocol=file,pipe
    --enable-parser=h264 --enable-indev=lavfi --enable-bsf=null
    --enable-filter=scale,format,null,trim,testsrc2,psnr,copy,setpts,setsar,select,color,aformat,noise)
fi
cd "$source"
PKG_CONFIG_PATH=$prefix/lib/pkgconfig quiet "$build/configure.log" ./configure --prefix="$prefix" --enable-version3 \
  --enable-libtrivelet --extra-ldflags="-Wl,-rpath,$prefix/lib" "${more[@]}" "${some[@]}"
quiet "$build/make.log" make -j "$jobs"
quiet "$build/install.log" make install
echo "built: $prefix/bin/ffmpeg"
