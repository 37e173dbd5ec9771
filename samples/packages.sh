# shellcheck shell=bash disable=SC2034
# Sourced by the scripts: installs the packages that a fresh Debian 12 lacks. If none is missing, it needs no network.
BUILD_PACKAGES=(g++ cmake ninja-build pkg-config libcli11-dev libspdlog-dev libgtest-dev libavformat-dev libavcodec-dev
  libavutil-dev libswscale-dev libswresample-dev zlib1g-dev libdeflate-dev libbz2-dev libgdcm-dev libopenmpi-dev openmpi-bin
  libfftw3-dev)
# Not installed by the scripts: the player is built where they are.
# The modules for VLC and GStreamer: libvlccore-dev, libgstreamer-plugins-base1.0-dev.
PLAYER_PACKAGES=(libsdl2-dev libimgui-dev libgl-dev libswresample-dev xvfb)
PLUGIN_PACKAGES=(libhdf5-dev python3-h5py hdf5-tools libinsighttoolkit5-dev libgdal-dev gdal-bin)  # not installed by the scripts either
TEST_PACKAGES=(ffmpeg python3 python3-numpy python3-nibabel python3-pydicom dcmtk)

install_missing() { # install_missing PACKAGE...
  local missing=() package as_root=()
  if ! command -v apt-get >/dev/null; then
    echo "== not a Debian system; taken to be installed: $*"
    return 0
  fi
  for package in "$@"; do
    dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  [ "$(id -u)" -eq 0 ] || as_root=(sudo)
  echo "== installing ${missing[*]}"
  local log
  log=$(mktemp)
  if ! { "${as_root[@]}" apt-get update -qq && "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq \
    --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
    cat "$log"
    echo "== the packages above could not be installed"
    return 1
  fi
  rm -f "$log"
}
