// The instruction sets that loops are compiled for, and the choice among them (trivelet/parameters.h names them).
//
// A family of such loops ("kernels") is one source file, X_kernels.cpp. CMake compiles it once for each instruction
// set, with TRIVELET_ISA as the name of the set (codec/CMakeLists.txt, kernels()). The file defines a table of
// functions in the namespace of that name. X_kernels.h declares the tables of all three namespaces
// (TRIVELET_DECLARE_TABLE), and pick() chooses one at run time.
//
// Everything else in such a file has internal linkage. The file instantiates no template and no inline function that
// other files use, because the linker keeps one copy of each, which may need an instruction set that the machine lacks.
#pragma once

#include "trivelet/parameters.h"

#ifndef TRIVELET_ISA
#define TRIVELET_ISA scalar
#endif

// In front of a loop whose iterations do not depend on each other, although the compiler cannot know it.
#if defined(__clang__)
#define TRIVELET_VECTOR_LOOP _Pragma("clang loop vectorize(assume_safety)")
#else
#define TRIVELET_VECTOR_LOOP _Pragma("GCC ivdep")
#endif

namespace trivelet {

/// Returns `wanted` if the machine supports it (kBest: the best set that it supports). Throws Unsupported otherwise.
SimdLevel resolve_simd(SimdLevel wanted);

// TRIVELET_DECLARE_TABLE(type, name): declares the tables of that name in all namespaces.
#define TRIVELET_DECLARE_TABLE(type, name) \
  namespace scalar {                       \
  extern const type name;                  \
  }                                        \
  namespace avx2 {                         \
  extern const type name;                  \
  }                                        \
  namespace avx512 {                       \
  extern const type name;                  \
  }

// TRIVELET_TABLES(name): the tables of that name in all namespaces, as arguments of pick().
#if defined(TRIVELET_HAVE_X86_KERNELS)
#define TRIVELET_TABLES(name) scalar::name, avx2::name, avx512::name
/// The table for `wanted`. Throws Unsupported if the machine lacks that instruction set.
template <class Table>
const Table& pick(SimdLevel wanted, const Table& scalar, const Table& avx2, const Table& avx512) {
  switch (resolve_simd(wanted)) {
    case SimdLevel::kAvx512: return avx512;
    case SimdLevel::kAvx2: return avx2;
    default: return scalar;
  }
}
#else
#define TRIVELET_TABLES(name) scalar::name
template <class Table>
const Table& pick(SimdLevel wanted, const Table& scalar) {
  (void)resolve_simd(wanted);
  return scalar;
}
#endif

}  // namespace trivelet
