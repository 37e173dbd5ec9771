// The loops of motion compensation and of the search for motion, once per instruction set; motion_lift.cpp and
// motion_search.cpp pick a table. All arithmetic is on integers, so every table gives the same bits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "codec/motion_arithmetic.h"
#include "codec/simd.h"

namespace trivelet {

struct MotionKernels {
  /// out[y][x] = (sum of motion_tap(phase, i) * in[y][x + i - 3] << up, + 32) >> 6; wraps around at 32 bits.
  void (*filter_rows)(const std::int32_t* in, std::ptrdiff_t in_stride, std::int32_t* out, std::ptrdiff_t out_stride,
                      int rows, int columns, int phase, int up);
  /// The same along columns, from row y - 3 on.
  void (*filter_columns)(const std::int32_t* in, std::ptrdiff_t in_stride, std::int32_t* out, std::ptrdiff_t out_stride,
                         int rows, int columns, int phase);
  /// a = (a + b + 1) >> 1
  void (*average)(std::int32_t* a, const std::int32_t* b, int n);
  /// sum += weight * p, element by element; `set`: sum = weight * p
  void (*weigh)(const std::int32_t* p, const std::int32_t* weight, std::int32_t* sum, int n, bool set);
  /// x -= p >> shift, or += with `add`
  void (*lift)(std::int32_t* x, const std::int32_t* p, int n, int shift, bool add);
  /// sum[i] += near * h[i], sum[i + 1] += far * h[i], i = 0..n - 1; total likewise with h = 1; n >= 1
  void (*scatter)(const std::int32_t* h, int n, std::int32_t near, std::int32_t far, std::int32_t* sum,
                  std::int32_t* total);

  // Search: pictures of 16-bit samples with a frame around them.
  /// Sum of absolute differences; columns a multiple of 8.
  int (*difference)(const std::int16_t* a, std::ptrdiff_t a_stride, const std::int16_t* b, std::ptrdiff_t b_stride,
                    int rows, int columns);
  /// Sum of absolute values of the Hadamard transforms of the 8x8 blocks of the difference, divided by 5.
  int (*hadamard)(const std::int16_t* a, std::ptrdiff_t a_stride, const std::int16_t* b, std::ptrdiff_t b_stride,
                  int rows, int columns);
  /// As filter_rows and filter_columns, of whole planes, for even phases.
  void (*filter_rows16)(const std::int16_t* in, std::int16_t* out, int n, int phase);
  void (*filter_columns16)(const std::int16_t* in, std::ptrdiff_t in_stride, std::int16_t* out, int n, int phase);
  /// out = (a + b + 1) >> 1
  void (*average16)(const std::int16_t* a, const std::int16_t* b, std::int16_t* out, int n);
};

/// Of a resolved level.
const MotionKernels& motion_kernels(SimdLevel simd);

extern const MotionKernels kMotionKernelsScalar;
#if defined(TRIVELET_HAVE_X86_KERNELS)
extern const MotionKernels kMotionKernelsAvx2;
extern const MotionKernels kMotionKernelsAvx512;
#endif

}  // namespace trivelet
