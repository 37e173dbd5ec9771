// The loops of motion compensation, compiled once per instruction set. All arithmetic is on integers,
// so every table gives the same bits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "codec/base/simd.h"
#include "codec/motion/motion_arithmetic.h"

namespace trivelet {

/// Totals of update weights below this are looked up. Larger totals, from many references to one place, are rare.
inline constexpr std::uint32_t kMotionShares = 1024;

/// Prediction from and of samples of type S, std::int32_t or std::int16_t. Arithmetic has 32 bits and wraps around.
template <class S>
struct LiftKernels {
  /// Rows: f[y][x] = (sum of motion_tap(phase_x, i) * in[y][x + i - 3] << up, + 32) >> 6; then columns of f in the same
  /// way, from row y - 3 on. Phase 0 skips a step.
  void (*interpolate)(const S* in, std::ptrdiff_t in_stride, std::int32_t* out, std::ptrdiff_t out_stride, int rows,
                      int columns, int phase_x, int phase_y, int up);
  /// x -= p >> shift, or += with `add`. Here and below: keeps the low bits, and returns false if that changed a number.
  bool (*lift)(S* x, std::ptrdiff_t x_stride, const std::int32_t* p, std::ptrdiff_t p_stride, int rows, int columns,
               int shift, bool add);
  /// lift() with the mean of two: p = (a + b + 1) >> 1.
  bool (*lift_mean)(S* x, std::ptrdiff_t x_stride, const std::int32_t* a, std::ptrdiff_t a_stride,
                    const std::int32_t* b, std::ptrdiff_t b_stride, int rows, int columns, int shift, bool add);
  /// lift() with motion_mean(sum).
  bool (*lift_sum)(S* x, std::ptrdiff_t x_stride, const std::int32_t* sum, std::ptrdiff_t sum_stride, int rows,
                   int columns, int shift, bool add);
  /// sum += weight_y[y] * weight_x[x] * p, p = a, or (a + b + 1) >> 1 if there is a b.
  void (*accumulate)(const S* a, std::ptrdiff_t a_stride, const S* b, std::ptrdiff_t b_stride, int rows, int columns,
                     const std::int32_t* weight_x, const std::int32_t* weight_y, std::int32_t* sum,
                     std::ptrdiff_t sum_stride);
  /// sum[i] += weight[0] * h[i] + weight[2] * g[i], sum[i + 1] += weight[1] * h[i] + weight[3] * g[i], i = 0..n - 1;
  /// `total` the same with h = g = 1. A null g counts as weight 0. n >= 1. Elements with weight 0 are not accessed.
  void (*scatter)(const S* h, const S* g, int n, const std::int32_t weight[4], std::int32_t* sum, std::int32_t* total);
  /// x += motion_update(sum, total, limit), or -= with `inverse`. `shares` has motion_share() of totals below
  /// kMotionShares.
  bool (*update)(S* x, const std::int32_t* sum, const std::int32_t* total, int n, const std::int32_t* shares,
                 std::int32_t limit, bool inverse);
  /// bits[i] |= x[i].
  void (*join)(const S* x, S* bits, int n);
};

struct MotionKernels {
  LiftKernels<std::int32_t> wide;
  LiftKernels<std::int16_t> narrow;
  /// In place, floats to integers: clamp_round(x * gain) within kMotionLargest.
  void (*from_real)(void* x, int n, float gain);
  /// In place, integers with kMotionFraction fractional bits to floats of the same value.
  void (*to_real)(void* x, int n);
  /// Adds kMotionFraction fractional bits.
  void (*widen)(std::int32_t* x, int n);
  /// Rounds kMotionFraction fractional bits away.
  void (*round)(std::int32_t* x, int n);
  void (*to_wide)(const std::int16_t* from, std::int32_t* to, int n);
  /// Keeps the low 16 bits; false if that changed a number.
  bool (*to_narrow)(const std::int32_t* from, std::int16_t* to, int n);

  template <class S>
  const LiftKernels<S>& of() const {
    if constexpr (sizeof(S) == sizeof(std::int16_t))
      return narrow;
    else
      return wide;
  }
};

namespace scalar {
extern const MotionKernels kMotionKernels;
}  // namespace scalar
namespace avx2 {
extern const MotionKernels kMotionKernels;
}  // namespace avx2
namespace avx512 {
extern const MotionKernels kMotionKernels;
}  // namespace avx512

inline const MotionKernels& motion_kernels(SimdLevel simd) { return pick(simd, TRIVELET_TABLES(kMotionKernels)); }

}  // namespace trivelet
