// Parts of C++20 that the standard library of Emscripten 3.1.6 (libc++ 13) lacks. No file includes this header; that
// compiler gets it with `-include` (see tests/program/wasm_test.sh).
#pragma once

#include <cstddef>
#include <memory>
#include <type_traits>
#include <version>

namespace std {

#if !defined(__cpp_lib_bit_cast)
template <class To, class From>
constexpr To bit_cast(const From& from) noexcept {
  return __builtin_bit_cast(To, from);
}
#endif

#if !defined(__cpp_lib_smart_ptr_for_overwrite)
template <class T>
unique_ptr<T> make_unique_for_overwrite(size_t n) {
  return unique_ptr<T>(new remove_extent_t<T>[n]);
}
#endif

}  // namespace std
