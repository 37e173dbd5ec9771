#!/usr/bin/env bash
# Builds for 64-bit ARM on a Debian 12 of another architecture, and packs it: packaging/arm64.sh [FOLDER] [TARGET...]
# FOLDER (default: build/arm64) gets root/, Debian's arm64 libraries, which apt fetches without changing this system; build/;
# and the packages (.deb). TARGETs are built besides what is installed. JOBS: default one per core.
# Needs g++-aarch64-linux-gnu, cmake, ninja, pkg-config and, for man page and completions, qemu-user.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$(realpath -m "${1:-build/arm64}")
shift || true
for tool in aarch64-linux-gnu-g++ qemu-aarch64 cmake ninja apt-get; do
  command -v "$tool" >/dev/null || { echo "$tool is missing (Debian: g++-aarch64-linux-gnu qemu-user cmake ninja-build)" >&2; exit 1; }
done
packages=(libcli11-dev libspdlog-dev libgtest-dev zlib1g-dev libdeflate-dev libfftw3-dev libavformat-dev libavcodec-dev
  libavutil-dev libswscale-dev libswresample-dev)
root=$folder/root
if [ ! -e "$root/complete" ]; then
  echo "== fetching Debian's arm64 libraries"
  apt=$folder/apt
  rm -rf "$root" "$apt"
  mkdir -p "$root" "$apt"/{state/lists/partial,cache/archives/partial}
  : >"$apt/status"
  cat >"$apt/conf" <<END
APT::Architecture "arm64";
APT::Architectures "arm64";
APT::Install-Recommends "false";
Dir::State "$apt/state";
Dir::State::status "$apt/status";
Dir::Cache "$apt/cache";
Debug::NoLocking "true";
END
  { APT_CONFIG=$apt/conf apt-get update -qq && APT_CONFIG=$apt/conf apt-get install -qq -y --download-only "${packages[@]}"; } \
    >"$apt/log" 2>&1 || { tail -n 20 "$apt/log" >&2; echo "Debian's arm64 packages could not be fetched" >&2; exit 3; }
  for package in "$apt"/cache/archives/*.deb; do
    # The compiler has these headers itself.
    case $(basename "$package") in libc6-dev_* | linux-libc-dev_* | libcrypt-dev_* | libstdc++-*-dev_* | libgcc-*-dev_*) continue ;; esac
    dpkg -x "$package" "$root"
  done
  # Absolute links would lead to this system.
  find "$root" -type l -lname '/*' -printf '%p\t%l\n' | while IFS=$'\t' read -r link target; do ln -sfn "$root$target" "$link"; done
  rm -rf "$apt"
  touch "$root/complete"
fi
cache=()
if command -v ccache >/dev/null && [ -z "${CCACHE_DISABLE:-}${CI:-}" ]; then
  cache=(-DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
  export CCACHE_BASEDIR=${CCACHE_BASEDIR:-$PWD} CCACHE_NOHASHDIR=${CCACHE_NOHASHDIR:-1}
fi
tests=OFF
[ $# -eq 0 ] || tests=ON
build=$folder/build
{ cmake -S . -B "$build" -G Ninja -DCMAKE_TOOLCHAIN_FILE="$PWD/packaging/aarch64-linux-gnu.cmake" -DTRIVELET_ARM_ROOT="$root" \
  -DCMAKE_BUILD_TYPE=Release -DTRIVELET_WERROR=ON -DTRIVELET_UNITY=ON -DTRIVELET_PRECOMPILE=ON -DTRIVELET_TESTS=$tests \
  -DTRIVELET_EMULATION=OFF -DTRIVELET_REPLAY=OFF -DTRIVELET_CUDA=OFF -DTRIVELET_MPI=OFF -DTRIVELET_GDCM=OFF \
  -DTRIVELET_PLAYER=OFF -DTRIVELET_VLC=OFF -DTRIVELET_GSTREAMER=OFF -DTRIVELET_HDF5=OFF -DTRIVELET_ITK=OFF -DTRIVELET_GDAL=OFF \
  "${cache[@]}" && cmake --build "$build" -j "${JOBS:-$(nproc)}" --target installable "$@"; } >"$folder/build.log" 2>&1 ||
  { grep -vE '^\[[0-9]+/[0-9]+\]' "$folder/build.log" | head -n 80 >&2; exit 1; }
(cd "$build" && cpack -G DEB -B "$folder") >"$folder/pack.log" 2>&1 || { cat "$folder/pack.log" >&2; exit 1; }
ls "$folder"/*.deb
