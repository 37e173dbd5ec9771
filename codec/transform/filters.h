// The wavelet filters as lists of lifting steps, for the kernels of CPU and GPU. lifting.h has the arithmetic of a
// step.
//
// The forward transform runs kSteps steps: the first changes odd samples, the next even samples, and so on. The inverse
// runs them backwards. A step reads neighbours up to kReach away. step<J, kInverse>(x, near) applies the J-th step to
// x; near(d) is the neighbour at distance d. With kPairs a step stays inside a pair (even, odd), and an even last
// sample without a partner does not change.
#pragma once

#include <cstdint>

#include "codec/base/host_device.h"
#include "codec/transform/lifting.h"

namespace trivelet {

struct Cdf97 {
  using Value = float;
  static constexpr int kSteps = 4, kReach = 1;
  static constexpr bool kPairs = false;
  template <int J, bool kInverse, class Near>
  TRIVELET_HOST_DEVICE static TRIVELET_ALWAYS_INLINE float step(float x, Near near) {
    constexpr int j = kInverse ? 3 - J : J;
    constexpr float c = j == 0 ? kLift97Alpha : j == 1 ? kLift97Beta : j == 2 ? kLift97Gamma : kLift97Delta;
    return lift(x, near(-1), near(1), kInverse ? -c : c);
  }
};

struct Cdf53 {
  using Value = float;
  static constexpr int kSteps = 2, kReach = 1;
  static constexpr bool kPairs = false;
  template <int J, bool kInverse, class Near>
  TRIVELET_HOST_DEVICE static TRIVELET_ALWAYS_INLINE float step(float x, Near near) {
    constexpr float c = (kInverse ? 1 - J : J) == 0 ? kLift53Predict : kLift53Update;
    return lift(x, near(-1), near(1), kInverse ? -c : c);
  }
};

struct Haar {
  using Value = float;
  static constexpr int kSteps = 2, kReach = 1;
  static constexpr bool kPairs = true;
  template <int J, bool kInverse, class Near>
  TRIVELET_HOST_DEVICE static TRIVELET_ALWAYS_INLINE float step(float x, Near near) {
    if constexpr (kInverse)
      return J == 0 ? lift_haar(x, near(1), -0.5f) : lift_haar(x, near(-1), 1.0f);
    else
      return J == 0 ? lift_haar(x, near(-1), -1.0f) : lift_haar(x, near(1), 0.5f);
  }
};

struct STransform {
  using Value = std::int32_t;
  static constexpr int kSteps = 2, kReach = 1;
  static constexpr bool kPairs = true;
  template <int J, bool kInverse, class Near>
  TRIVELET_HOST_DEVICE static TRIVELET_ALWAYS_INLINE std::int32_t step(std::int32_t x, Near near) {
    if constexpr (kInverse)
      return J == 0 ? wrap_sub(x, near(1) >> 1) : wrap_add(x, near(-1));
    else
      return J == 0 ? wrap_sub(x, near(-1)) : wrap_add(x, near(1) >> 1);
  }
};

struct Rev53 {
  using Value = std::int32_t;
  static constexpr int kSteps = 2, kReach = 1;
  static constexpr bool kPairs = false;
  template <int J, bool kInverse, class Near>
  TRIVELET_HOST_DEVICE static TRIVELET_ALWAYS_INLINE std::int32_t step(std::int32_t x, Near near) {
    if constexpr (kInverse)
      return J == 0 ? wrap_sub(x, update53(near(-1), near(1))) : wrap_add(x, predict53(near(-1), near(1)));
    else
      return J == 0 ? wrap_sub(x, predict53(near(-1), near(1))) : wrap_add(x, update53(near(-1), near(1)));
  }
};

struct Rev137 {
  using Value = std::int32_t;
  static constexpr int kSteps = 2, kReach = 3;
  static constexpr bool kPairs = false;
  template <int J, bool kInverse, class Near>
  TRIVELET_HOST_DEVICE static TRIVELET_ALWAYS_INLINE std::int32_t step(std::int32_t x, Near near) {
    const std::int32_t a = near(-3), b = near(-1), c = near(1), d = near(3);
    if constexpr (kInverse)
      return J == 0 ? wrap_sub(x, update137(a, b, c, d)) : wrap_add(x, predict137(a, b, c, d));
    else
      return J == 0 ? wrap_sub(x, predict137(a, b, c, d)) : wrap_add(x, update137(a, b, c, d));
  }
};

}  // namespace trivelet
