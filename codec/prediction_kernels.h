// Loops of the predictive profile over rows, once per instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

#include "codec/simd.h"

namespace trivelet::prediction {

/// Readable elements behind what a kernel is given, and writable ones behind what it makes.
inline constexpr std::size_t kKernelPadding = 16;

struct Kernels {
  /// sums[x] = sum over i of weights[i] * taps[i][x], x < n. Magnitudes of weights add up to kWeightSum at most.
  void (*weigh)(const std::int16_t* const* taps, const std::int16_t* weights, int count, int n, std::int32_t* sums);
  /// out[x] = (from[x] - base[x], within 16 bits) >> shift, within -2047..2047.
  void (*differences)(const std::int16_t* from, const std::int16_t* base, int shift, int n, std::int16_t* out);
  /// Products of all pairs of `count` rows, `stride` apart: row i with rows 0..i. n is a multiple of 16, at most 256.
  void (*products)(const std::int16_t* rows, std::size_t stride, int count, int n, std::int32_t* out);
};

const Kernels& kernels(SimdLevel simd);

extern const Kernels kKernelsScalar;
#if defined(TRIVELET_HAVE_X86_KERNELS)
extern const Kernels kKernelsAvx2;
#endif

}  // namespace trivelet::prediction
