#!/usr/bin/env bash
# Builds the page and the npm package: web/build.sh [FOLDER]   (default: build/web; JOBS, default: one per core)
# Needs em++ (Debian: emscripten), cmake and ninja. FOLDER/app is the page, ready to be served (samples/serve.py), and the
# package at the same time: package.json says which of its files `npm pack` takes. It holds the module twice: for one
# thread, and for several.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$(realpath -m "${1:-build/web}")
command -v em++ >/dev/null || { echo "em++ is missing (Debian: apt-get install --no-install-recommends emscripten)" >&2; exit 1; }
# Debian's emscripten finds acorn where Debian has it; the node of others does not look there.
export NODE_PATH=${NODE_PATH:-/usr/share/nodejs}
cache=()
if command -v ccache >/dev/null && [ -z "${CCACHE_DISABLE:-}${CI:-}" ]; then
  cache=(-DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
  export CCACHE_BASEDIR=${CCACHE_BASEDIR:-$PWD} CCACHE_NOHASHDIR=${CCACHE_NOHASHDIR:-1}
fi
mkdir -p "$folder"
for threads in OFF ON; do
  build=$folder/one
  [ $threads = OFF ] || build=$folder/threads
  { emcmake cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DTRIVELET_WERROR=ON -DTRIVELET_CUDA=OFF \
    -DTRIVELET_FFTW=OFF -DTRIVELET_TESTS=OFF -DTRIVELET_UNITY=ON \
    -DTRIVELET_WEB_THREADS=$threads "${cache[@]}" &&
    cmake --build "$build" -j "${JOBS:-$(nproc)}" --target trivelet_web; } >"$build.log" 2>&1 ||
    { tail -n 60 "$build.log" >&2; exit 1; }
done
app=$folder/app
rm -rf "$app"
mkdir -p "$app"
cp -r web/index.html web/*.js web/*.d.ts web/package.json web/module LICENSE "$app"
cp web/package.md "$app/README.md"
cp "$folder"/one/web/trivelet-one.{js,wasm} "$folder"/threads/web/trivelet-threads.{js,wasm,worker.js} "$app/module"
echo "$app: $(gzip -9 -c "$app/module/trivelet-one.wasm" | wc -c) bytes of WebAssembly for one thread and" \
  "$(gzip -9 -c "$app/module/trivelet-threads.wasm" | wc -c) for several, compressed by gzip"
