// The loops of motion-compensated lifting whose numbers all have 16 bits, compiled once per instruction set: those of
// films of 8 and 10 bits, but for made-up ones. They give the bits of the loops of 32 bits (motion_kernels.h), or say
// that 16 bits do not hold a result.
#pragma once

#include <cstddef>
#include <cstdint>

#include "codec/base/simd.h"

namespace trivelet {

/// Samples that interpolate() reads behind the columns it is asked for, and that it writes there.
inline constexpr int kNarrowSlack = 16;

/// Largest magnitude of samples whose interpolation 16 bits hold: the taps of a phase sum up to 112/64 at most, along
/// rows and then along columns.
inline constexpr int kNarrowInput = 10699;

struct NarrowKernels {
  /// LiftKernels::interpolate() to 16 bits. False if a sample is beyond kNarrowInput >> up; `out` is undefined then.
  bool (*interpolate)(const std::int16_t* in, std::ptrdiff_t in_stride, std::int16_t* out, std::ptrdiff_t out_stride,
                      int rows, int columns, int phase_x, int phase_y, int up);
  /// LiftKernels::lift() by predictions of 16 bits.
  bool (*lift)(std::int16_t* x, std::ptrdiff_t x_stride, const std::int16_t* p, std::ptrdiff_t p_stride, int rows,
               int columns, int shift, bool add);
  /// LiftKernels::lift_mean() by predictions of 16 bits.
  bool (*lift_mean)(std::int16_t* x, std::ptrdiff_t x_stride, const std::int16_t* a, std::ptrdiff_t a_stride,
                    const std::int16_t* b, std::ptrdiff_t b_stride, int rows, int columns, int shift, bool add);
  /// MotionKernels::from_real() to 16 bits. False if they do not hold a result; `out` is undefined then.
  bool (*from_real)(const float* in, std::int16_t* out, int n, float gain);
  /// Rounds `fraction` fractional bits away, adds the offset, limits samples to [min_sample, max_sample] and writes
  /// them. Index: format_index() of dwt_kernels.h.
  void (*store[4])(const std::int16_t* in, int fraction, std::int32_t offset, std::int32_t min_sample,
                   std::int32_t max_sample, std::byte* samples, int n);
};

TRIVELET_DECLARE_TABLE(NarrowKernels, kNarrowKernels)

inline const NarrowKernels& narrow_kernels(SimdLevel simd) { return pick(simd, TRIVELET_TABLES(kNarrowKernels)); }

}  // namespace trivelet
