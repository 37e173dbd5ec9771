#!/usr/bin/env bash
# Uses what 'cmake --install' and cpack give, without the build folder:
#   install_test.sh BUILD
# The exported functions are those of a committed list and of the header; the samples are built with pkg-config and with
# find_package and run; the program finds its modules; man page, completions, MIME type and magic entry do what they are
# for; the packages unpack into a root of their own where the program and the C sample run.
set -euo pipefail
export LC_ALL=C  # the order of names
build=$(realpath "$1")
source=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
check() { # check WHAT COMMAND...
  local what=$1
  shift
  if ! "$@" >"$work/log" 2>&1; then
    echo "FAILED: $what: $*"
    head -n 20 "$work/log"
    failed=1
  fi
}
has() { grep -qE -- "$2" "$1"; }

stage=$work/stage
cmake --install "$build" --prefix "$stage" >"$work/log" || { cat "$work/log"; exit 1; }
lib=$(dirname "$(find "$stage" -name libtrivelet.so.1)")
export PKG_CONFIG_PATH=$lib/pkgconfig

# ---- the interface
nm -D --defined-only "$lib/libtrivelet.so.1" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort >"$work/exported"
grep -oE '^TVL_API [^;(]*\(' "$source/include/trivelet/trivelet.h" | grep -oE 'tvl_[a-z0-9_]+\($' | tr -d '(' | sort >"$work/declared"
check "exported functions" diff "$source/capi/exports.txt" "$work/exported"
check "declared functions" diff "$source/capi/exports.txt" "$work/declared"
check "name of the library" has <(objdump -p "$lib/libtrivelet.so.1") 'SONAME +libtrivelet\.so\.1$'

# ---- what distributions ask of every file that is run: see TRIVELET_HARDEN
check "versions agree" "$source/packaging/tag.sh" --check
stack_guarded=0
fortified=0
hardened=
if grep -q '^TRIVELET_HARDEN:BOOL=ON' "$build/CMakeCache.txt"; then hardened=1; fi
while IFS= read -r file; do
  [ "$hardened" ] || break
  name=${file#"$stage"/}
  readelf -W -l -d --dyn-syms "$file" >"$work/elf" 2>/dev/null || continue
  check "$name: bound at once" has "$work/elf" 'FLAGS.*NOW'
  check "$name: read-only after binding" has "$work/elf" 'GNU_RELRO'
  check "$name: no code on the stack" has "$work/elf" 'GNU_STACK.* RW '
  check "$name: at any address" has "$work/elf" 'Elf file type is DYN'
  if has "$work/elf" __stack_chk_fail; then stack_guarded=$((stack_guarded + 1)); fi
  if has "$work/elf" '__[a-z]+_chk'; then fortified=$((fortified + 1)); fi
  check "$name: names no folder of the build" test -z "$(strings -a "$file" | grep -F -m 1 -e "$source/" -e "$build/")"
done < <(find "$stage" -type f \( -name '*.so*' -o -path '*/bin/*' \))
if [ "$hardened" ]; then
  check "stacks are protected" test $stack_guarded -ge 2
  check "calls of the C library are checked" test $fortified -ge 2
fi

# ---- the samples
compiler=${CC:-cc}
read -ra flags < <(pkg-config --cflags --libs trivelet)
check "C by pkg-config" "$compiler" -std=c11 "$source/samples/c_roundtrip.c" -o "$work/c_sample" "${flags[@]}"
check "C sample" env LD_LIBRARY_PATH="$lib" "$work/c_sample"
mkdir "$work/user"
cat >"$work/user/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.22)
project(user LANGUAGES C CXX)
find_package(Trivelet 0.1 REQUIRED)
add_executable(c_sample $source/samples/c_roundtrip.c)
target_link_libraries(c_sample PRIVATE Trivelet::trivelet)
add_executable(cpp_sample $source/samples/roundtrip.cpp)
target_link_libraries(cpp_sample PRIVATE Trivelet::trivelet_static)
END
check "find_package" cmake -S "$work/user" -B "$work/user/build" -DCMAKE_PREFIX_PATH="$stage"
check "samples by find_package" cmake --build "$work/user/build"
check "C sample by find_package" "$work/user/build/c_sample"
check "C++ sample" "$work/user/build/cpp_sample" "$work/a.tvl"
if command -v file >/dev/null; then
  check "a stream for file(1)" has <(file -m "$stage/share/trivelet/magic" "$work/a.tvl") 'Trivelet video or volume, format 0\.[0-9]+'
  check "its MIME type" has <(file -m "$stage/share/trivelet/magic" --mime-type "$work/a.tvl") 'video/x-trivelet'
fi

# ---- the program, and what goes with it
program=$stage/bin/trivelet
check "the program" "$program" verify "$work/a.tvl"
if [ -e "$lib/trivelet/libtrivelet-ffmpeg.so" ]; then
  check "the module of FFmpeg" "$program" decode "$work/a.tvl" "$work/a.mkv"
fi
page=$stage/share/man/man1/trivelet.1
for command in $("$program" --help | awk '/^Subcommands:/ { on = 1; next } /^$/ { on = 0 } on { print $1 }'); do
  check "man page of $command" has "$page" "^\.SS trivelet $command\$"
  sed -n "/^\.SS trivelet $command\$/,/^\.SS/p" "$page" | sed 's/\\-/-/g' >"$work/section"
  for option in $("$program" "$command" --help | grep -oE '^ +(-[a-z],)?--[a-z-]+' | grep -oE -- '--[a-z-]+'); do
    check "man page, $command $option" has "$work/section" "^\.BR .*$option"
  done
done
for section in EXAMPLES ENVIRONMENT 'SEE ALSO'; do check "man page, $section" has "$page" "^\.SH $section\$"; done
if command -v man >/dev/null; then
  check "man page without warnings" test -z "$(MANROFFSEQ='' man --warnings -E UTF-8 -l -Tutf8 -Z "$page" 2>&1 >/dev/null)"
fi
complete_words() { # what bash proposes for the last of the words
  bash -c 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _trivelet; printf "%s\n" "${COMPREPLY[@]}"' \
    - "$stage/share/bash-completion/completions/trivelet" "$@"
}
check "completion of commands" has <(complete_words trivelet en) '^encode$'
check "completion of options" has <(complete_words trivelet decode --red) '^--reduce$'
check "completion of values" has <(complete_words trivelet encode --preset m) '^medium$'
check "completion of commands below" has <(complete_words trivelet ccsds co) '^compare$'
if command -v zsh >/dev/null; then check "zsh" zsh -n "$stage/share/zsh/site-functions/_trivelet"; fi
if command -v fish >/dev/null; then check "fish" fish -n "$stage/share/fish/vendor_completions.d/trivelet.fish"; fi
if command -v update-mime-database >/dev/null; then
  check "MIME type" update-mime-database "$stage/share/mime"
  check "MIME type's magic" has "$stage/share/mime/magic" 'video/x-trivelet'
fi

# ---- packages
if command -v dpkg-deb >/dev/null && command -v dpkg-shlibdeps >/dev/null; then
  (cd "$build" && cpack -G DEB -B "$work/packages") >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
  root=$work/root
  admin=$root/var/lib/dpkg
  mkdir -p "$admin"/{info,updates,triggers}
  touch "$admin/status" "$admin/available"
  if [ "$(id -u)" -eq 0 ]; then  # not configured: there is no shell in that root
    check "packages unpack" dpkg "--root=$root" --force-depends --unpack "$work"/packages/*.deb
  else
    for package in "$work"/packages/*.deb; do check "package unpacks" dpkg-deb -x "$package" "$root"; done
  fi
  wanted=3
  if "$program" --version | grep -q "^player yes"; then wanted=$((wanted + 1)); fi
  if [ -f "$build/apps/vlc/codec/libtrivelet_plugin.so" ]; then wanted=$((wanted + 1)); fi
  if [ -f "$build/plugins/hdf5/libh5trivelet.so" ]; then wanted=$((wanted + 1)); fi
  if [ -f "$build/apps/gst/libgsttrivelet.so" ]; then wanted=$((wanted + 1)); fi
  if [ -f "$build/plugins/itk/libTriveletImageIO.so" ]; then wanted=$((wanted + 1)); fi
  if [ -f "$build/plugins/gdal/gdal_Trivelet.so" ]; then wanted=$((wanted + 1)); fi
  if grep -q -- -lfftw3 "$lib/pkgconfig/trivelet.pc"; then
    check "libraries of the static one" has <(dpkg-deb -f "$work"/packages/libtrivelet-dev_*.deb Depends) libfftw3-dev
  fi
  check "packages are $wanted" test "$(find "$work/packages" -maxdepth 1 -name '*.deb' | wc -l)" -eq $wanted
  lib=$(dirname "$(find "$root/usr" -name libtrivelet.so.1)")
  check "program of the package" "$root/usr/bin/trivelet" verify "$work/a.tvl"
  export PKG_CONFIG_PATH=$lib/pkgconfig
  read -ra flags < <(pkg-config --cflags --libs trivelet)
  check "C by the package" "$compiler" -std=c11 "$root/usr/share/doc/libtrivelet-dev/examples/c_roundtrip.c" \
    -o "$work/c_sample" "${flags[@]}"
  check "C sample by the package" env LD_LIBRARY_PATH="$lib" "$work/c_sample"
  check "licence" test -s "$root/usr/share/doc/libtrivelet1/copyright"
fi
exit $failed
