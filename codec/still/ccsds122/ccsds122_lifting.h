// Arithmetic of the two wavelets of CCSDS 122.0-B-2 §3, one output sample at a time; shared by scalar code, SIMD loops
// and device code.
//
// Integer 9/7M: high = odd - floor((9 (e0 + e1) - (em1 + e2) + 8) / 16), low = even - floor((2 - dm1 - d) / 4). The
// 32-bit form wraps around (defined even on damaged input) and is exact for samples of at most 24 bits; pictures of
// more than 16 bits use 64-bit intermediates.
//
// Float 9/7: binary32, sums from left to right as written, without contraction; streams depend on that order bit for
// bit.
#pragma once

#include <cstdint>

#if defined(__CUDACC__)
#define CCSDS_HD __host__ __device__ __forceinline__
#elif defined(__GNUC__)
#define CCSDS_HD inline __attribute__((always_inline))
#else
#define CCSDS_HD inline
#endif

namespace trivelet::ccsds122 {

struct Narrow97M {
  using Sample = std::int32_t;
  static CCSDS_HD std::int32_t predict(std::int32_t em1, std::int32_t e0, std::int32_t e1, std::int32_t e2) {
    const auto u = [](std::int32_t v) { return static_cast<std::uint32_t>(v); };
    return static_cast<std::int32_t>(9U * (u(e0) + u(e1)) - (u(em1) + u(e2)) + 8U) >> 4;
  }
  static CCSDS_HD std::int32_t update(std::int32_t dm1, std::int32_t d) {
    return static_cast<std::int32_t>(2U - static_cast<std::uint32_t>(dm1) - static_cast<std::uint32_t>(d)) >> 2;
  }
};

struct Wide97M {
  using Sample = std::int32_t;
  static CCSDS_HD std::int32_t predict(std::int32_t em1, std::int32_t e0, std::int32_t e1, std::int32_t e2) {
    const auto u = [](std::int32_t v) { return static_cast<std::int64_t>(v); };
    return static_cast<std::int32_t>((9 * (u(e0) + u(e1)) - (u(em1) + u(e2)) + 8) >> 4);
  }
  static CCSDS_HD std::int32_t update(std::int32_t dm1, std::int32_t d) {
    return static_cast<std::int32_t>((2 - static_cast<std::int64_t>(dm1) - d) >> 2);
  }
};

CCSDS_HD std::int32_t wrapping_add(std::int32_t a, std::int32_t b) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(a) + static_cast<std::uint32_t>(b));
}
CCSDS_HD std::int32_t wrapping_sub(std::int32_t a, std::int32_t b) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(a) - static_cast<std::uint32_t>(b));
}

/// The float filters; xk is the sample k places to the right, xmk k places to the left.
struct Float97 {
  using Sample = float;
  static CCSDS_HD float low(float xm4, float xm3, float xm2, float xm1, float x0, float x1, float x2, float x3,
                            float x4) {
    return 0.852698679009F * x0 + 0.377402855613F * (xm1 + x1) + -0.110624404418F * (xm2 + x2) +
           -0.023849465020F * (xm3 + x3) + 0.037828455507F * (xm4 + x4);
  }
  static CCSDS_HD float high(float xm3, float xm2, float xm1, float x0, float x1, float x2, float x3) {
    return -0.788485616406F * x0 + 0.418092273222F * (xm1 + x1) + 0.040689417609F * (xm2 + x2) +
           -0.064538882629F * (xm3 + x3);
  }
  static CCSDS_HD float even(float cm1, float c0, float c1, float dm2, float dm1, float d0, float d1) {
    return 0.788485616406F * c0 + -0.040689417609F * (cm1 + c1) + 0.377402855613F * (dm1 + d0) +
           -0.023849465020F * (dm2 + d1);
  }
  static CCSDS_HD float odd(float cm1, float c0, float c1, float c2, float dm2, float dm1, float d0, float d1,
                            float d2) {
    return 0.418092273222F * (c0 + c1) + -0.064538882629F * (cm1 + c2) + -0.852698679009F * d0 +
           0.110624404418F * (dm1 + d1) + -0.037828455507F * (dm2 + d2);
  }
};

/// Rounds to the nearest integer, ties away from zero. Exact in binary32, because v - trunc(v) is.
CCSDS_HD std::int32_t round_away(float v) {
  const std::int32_t t = static_cast<std::int32_t>(v);
  const float fraction = v - static_cast<float>(t);
  return t + (fraction >= 0.5F ? 1 : 0) - (fraction <= -0.5F ? 1 : 0);
}

}  // namespace trivelet::ccsds122
