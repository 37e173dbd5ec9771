// The 9/7 analysis filters as taps, for the papers' convolutions on CPU and GPU, and the extension at ends of lines.
#pragma once

#include "codec/transform/lifting.h"

namespace trivelet::papers {

/// Taps -4..4 of the low filter and -3..3 of the high one.
template <class T>
struct Taps {
  T low[9] = {};
  T high[7] = {};
};

/// The responses of the lifting steps to unit impulses, times a factor each.
template <class T>
Taps<T> make_taps(double low_factor = 1, double high_factor = 1) {
  const auto response = [](int at, int coefficient) {
    double x[33] = {};
    x[at] = 1;
    for (int j = 0; j < 4; ++j)
      for (int i = j % 2 ? 2 : 1; i < 32; i += 2) x[i] += kLift97[j] * (x[i - 1] + x[i + 1]);
    return x[coefficient];
  };
  Taps<T> t;
  for (int i = 0; i < 9; ++i) t.low[i] = static_cast<T>(response(12 + i, 16) * low_factor);
  for (int i = 0; i < 7; ++i) t.high[i] = static_cast<T>(response(14 + i, 17) * high_factor);
  return t;
}

/// Index of sample i of a line of n >= 2 that is mirrored at its ends, as often as needed.
inline int mirrored(int i, int n) {
  for (;;) {
    if (i < 0)
      i = -i;
    else if (i >= n)
      i = 2 * (n - 1) - i;
    else
      return i;
  }
}

}  // namespace trivelet::papers
