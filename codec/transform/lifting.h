// Arithmetic of the lifting steps and of sample rounding, shared by the CPU kernels, their tests and CUDA.
//
// Each function handles one value, so that every backend gives the same bits; the loops are elsewhere. Floats: each
// addition and multiplication is rounded to binary32 (CPU files are compiled with -ffp-contract=off, device code names
// the rounding intrinsics). Integers wrap around in two's complement, hence the casts to uint32; shifts are arithmetic.
// Nothing is undefined for any input, infinities and NaN included.
#pragma once

#include <cstdint>

#include "codec/base/host_device.h"

namespace trivelet {

// CDF 9/7 (Daubechies and Sweldens 1998; ISO/IEC 15444-1 Annex F) in the order of the forward transform: high, low,
// high, low. No scaling follows; kLift97Zeta is the gain of the low band at frequency 0. Samples are lifted with the
// floats; gains and energies are computed with the doubles.
constexpr double kLift97[4] = {-1.586134342, -0.05298011854, 0.8829110762, 0.4435068522};
constexpr double kLift97Zeta = 1.230174105;
constexpr float kLift97Alpha = static_cast<float>(kLift97[0]);
constexpr float kLift97Beta = static_cast<float>(kLift97[1]);
constexpr float kLift97Gamma = static_cast<float>(kLift97[2]);
constexpr float kLift97Delta = static_cast<float>(kLift97[3]);

constexpr float kLift53Predict = -0.5f;
constexpr float kLift53Update = 0.25f;

/// Index of the sample that whole-sample symmetric extension puts at position i of a signal of n >= 1 samples.
TRIVELET_HOST_DEVICE static inline int mirror(int i, int n) {
  if (n == 1) return 0;
  while (i < 0 || i >= n) i = i < 0 ? -i : 2 * (n - 1) - i;
  return i;
}

// ------------------------------------------------------------------------------------------------------------- float

/// x + c * (left + right) with three roundings. The inverse step takes -c.
TRIVELET_HOST_DEVICE static inline float lift(float x, float left, float right, float c) {
#if defined(__CUDA_ARCH__)
  return __fadd_rn(x, __fmul_rn(c, __fadd_rn(left, right)));
#else
  return x + c * (left + right);
#endif
}

/// Haar step with one neighbour: x + c * other. Forward c = -1, then 0.5; inverse -0.5, then 1. Products with +-1 are
/// exact.
TRIVELET_HOST_DEVICE static inline float lift_haar(float x, float other, float c) {
#if defined(__CUDA_ARCH__)
  return __fadd_rn(x, __fmul_rn(c, other));
#else
  return x + c * other;
#endif
}

/// Clamps x to [low, high] and rounds it to the nearest integer, half to even. NaN gives low. low and high are integers
/// of magnitude below 2^22; there adding 1.5 * 2^23 leaves the rounded integer in the low mantissa bits.
TRIVELET_HOST_DEVICE static inline std::int32_t clamp_round(float x, float low, float high) {
  x = x > low ? x : low;
  x = x < high ? x : high;
#if defined(__CUDA_ARCH__)
  return __float2int_rn(x);
#else
  return __builtin_bit_cast(std::int32_t, x + 12582912.0f) - 0x4B400000;
#endif
}

// ----------------------------------------------------------------------------------------------------------- integer

TRIVELET_HOST_DEVICE static inline std::int32_t wrap_add(std::int32_t a, std::int32_t b) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(a) + static_cast<std::uint32_t>(b));
}
TRIVELET_HOST_DEVICE static inline std::int32_t wrap_sub(std::int32_t a, std::int32_t b) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(a) - static_cast<std::uint32_t>(b));
}

/// Reversible 5/3: high = x - predict53(neighbours), low = x + update53(neighbours).
TRIVELET_HOST_DEVICE static inline std::int32_t predict53(std::int32_t left, std::int32_t right) {
  return wrap_add(left, right) >> 1;
}
TRIVELET_HOST_DEVICE static inline std::int32_t update53(std::int32_t left, std::int32_t right) {
  return wrap_add(wrap_add(left, right), 2) >> 2;
}

/// 13/7-T (Adams 2001): four neighbours with weights 9/16 and -1/16 to predict, half of that to update.
TRIVELET_HOST_DEVICE static inline std::int32_t weigh137(std::int32_t left3, std::int32_t left1, std::int32_t right1,
                                                         std::int32_t right3) {
  const std::uint32_t near = static_cast<std::uint32_t>(left1) + static_cast<std::uint32_t>(right1);
  const std::uint32_t far = static_cast<std::uint32_t>(left3) + static_cast<std::uint32_t>(right3);
  return static_cast<std::int32_t>(9u * near - far);
}
TRIVELET_HOST_DEVICE static inline std::int32_t predict137(std::int32_t left3, std::int32_t left1, std::int32_t right1,
                                                           std::int32_t right3) {
  return wrap_add(weigh137(left3, left1, right1, right3), 8) >> 4;
}
TRIVELET_HOST_DEVICE static inline std::int32_t update137(std::int32_t left3, std::int32_t left1, std::int32_t right1,
                                                          std::int32_t right3) {
  return wrap_add(weigh137(left3, left1, right1, right3), 16) >> 5;
}

/// clamp(x, low, high).
TRIVELET_HOST_DEVICE static inline std::int32_t clamp_int(std::int32_t x, std::int32_t low, std::int32_t high) {
  x = x > low ? x : low;
  return x < high ? x : high;
}

}  // namespace trivelet
