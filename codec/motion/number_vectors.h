// Vectors of neighbouring numbers for the loops of motion compensation: samples of 16 or 32 bits, arithmetic of 32 bits
// that wraps around. Only sources that are compiled once per instruction set include this file (codec/base/simd.h);
// all of it has internal linkage.
#pragma once

#include <cstddef>
#include <cstdint>

#include "codec/base/simd.h"

#define TRIVELET_RESTRICT __restrict__

namespace trivelet::TRIVELET_ISA {
namespace {

using Index = std::ptrdiff_t;
using Wrap = std::uint32_t;

inline std::int32_t back(Wrap v) { return static_cast<std::int32_t>(v); }

// Vectors of neighbours: U for arithmetic, S for shifts that keep the sign.
typedef Wrap U4 __attribute__((vector_size(16)));
typedef std::int32_t S4 __attribute__((vector_size(16)));
typedef std::int16_t H4 __attribute__((vector_size(8)));  // the same numbers in 16 bits
#if defined(__AVX2__)
typedef Wrap U8 __attribute__((vector_size(32)));
typedef std::int32_t S8 __attribute__((vector_size(32)));
typedef std::int16_t H8 __attribute__((vector_size(16)));
#endif
#if defined(__AVX512F__)
typedef Wrap U16 __attribute__((vector_size(64)));
typedef std::int32_t S16 __attribute__((vector_size(64)));
typedef std::int16_t H16 __attribute__((vector_size(32)));
#endif

template <class U>
inline U load_numbers(const std::int32_t* p) {
  U v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}
template <class U>
inline void store_numbers(std::int32_t* p, U v) {
  __builtin_memcpy(p, &v, sizeof v);
}

// The same for samples of 16 bits.
template <class Halves, class Signed>
inline Signed load_halves(const std::int16_t* p) {
  Halves v;
  __builtin_memcpy(&v, p, sizeof v);
  return __builtin_convertvector(v, Signed);
}
template <class U>
inline U load_numbers(const std::int16_t* p) {
#if defined(__AVX512F__)
  if constexpr (sizeof(U) == sizeof(U16)) return (U)load_halves<H16, S16>(p);
#endif
#if defined(__AVX2__)
  if constexpr (sizeof(U) == sizeof(U8)) return (U)load_halves<H8, S8>(p);
#endif
  if constexpr (sizeof(U) == sizeof(U4)) return (U)load_halves<H4, S4>(p);
  if constexpr (sizeof(U) == sizeof(Wrap)) return static_cast<Wrap>(std::int32_t{*p});
}
// Stores the low 16 bits, and adds to `changed` the bits in which they differ from the number.
template <class Halves, class Signed>
inline Signed store_halves(std::int16_t* p, Signed v) {
  const Halves low = __builtin_convertvector(v, Halves);
  __builtin_memcpy(p, &low, sizeof low);
  return v ^ __builtin_convertvector(low, Signed);
}
template <class U>
inline void store_numbers(std::int16_t* p, U v, U& changed) {
#if defined(__AVX512F__)
  if constexpr (sizeof(U) == sizeof(U16)) changed |= (U)store_halves<H16, S16>(p, (S16)v);
#endif
#if defined(__AVX2__)
  if constexpr (sizeof(U) == sizeof(U8)) changed |= (U)store_halves<H8, S8>(p, (S8)v);
#endif
  if constexpr (sizeof(U) == sizeof(U4)) changed |= (U)store_halves<H4, S4>(p, (S4)v);
  if constexpr (sizeof(U) == sizeof(Wrap)) {
    *p = static_cast<std::int16_t>(v);
    changed |= v ^ static_cast<Wrap>(std::int32_t{*p});
  }
}
template <class U>
inline void store_numbers(std::int32_t* p, U v, U&) {
  store_numbers(p, v);
}

/// Numbers beside each other that one strip of a block has.
template <class Unsigned, class Signed>
struct Strip {
  using U = Unsigned;
  using S = Signed;
};
/// Calls f(Strip, first column) for strips of n columns, the widest first.
template <class F>
inline void in_strips(int n, const F& f) {
  int x = 0;
#if defined(__AVX512F__)
  for (; n - x >= 16; x += 16) f(Strip<U16, S16>{}, x);
#endif
#if defined(__AVX2__)
  for (; n - x >= 8; x += 8) f(Strip<U8, S8>{}, x);
#endif
  for (; n - x >= 4; x += 4) f(Strip<U4, S4>{}, x);
  for (; x < n; ++x) f(Strip<Wrap, std::int32_t>{}, x);
}

// What was cut off, by the width of a number and of vectors.
template <class U>
inline bool any(const U& v) {
  if constexpr (sizeof(U) == sizeof(Wrap)) {
    return v != 0;
  } else {
    Wrap all = 0;
    for (std::size_t i = 0; i < sizeof(U) / sizeof(Wrap); ++i) all |= v[i];
    return all != 0;
  }
}

}  // namespace
}  // namespace trivelet::TRIVELET_ISA
