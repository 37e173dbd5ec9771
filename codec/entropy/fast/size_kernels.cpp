// Counts magnitudes by classes, compiled once per instruction set (codec/base/simd.h). Most coefficients are below a
// step, so it is looked at first whether any of some is not.
#include "codec/entropy/fast/size_kernels.h"

#include <cstring>

#include "codec/entropy/fast/size_estimate.h"

namespace trivelet::TRIVELET_ISA {
namespace {

void count_row(const float* row, int n, float inverse_step, int log2_side, std::uint32_t* counts) {
  constexpr int kAtOnce = 64, kLooked = 16, kTogether = 4;
  static_assert(kCellRows % kTogether == 0, "what is counted together is of one cell");
  for (int first = 0; first < n; first += kAtOnce) {
    std::uint8_t classes[kAtOnce] = {};
    const float* const from = row + first;
    if (n - first >= kAtOnce) {
      for (int i = 0; i < kAtOnce; ++i) classes[i] = static_cast<std::uint8_t>(magnitude_class(from[i], inverse_step));
    } else {
      for (int i = 0; i < n - first; ++i)
        classes[i] = static_cast<std::uint8_t>(magnitude_class(from[i], inverse_step));
    }
    for (int i = 0; i < kAtOnce; i += kLooked) {
      std::uint64_t looked[kLooked / 8];
      std::memcpy(looked, classes + i, sizeof looked);
      if ((looked[0] | looked[1]) == 0) continue;
      for (int j = i; j < i + kLooked && first + j < n; j += kTogether) {
        // Two histograms: an addition to a count need not wait for the one before.
        std::uint32_t* const cell = counts + ((first + j) >> log2_side) * 2 * kMagnitudeClasses;
        ++cell[classes[j]];
        ++cell[kMagnitudeClasses + classes[j + 1]];
        ++cell[classes[j + 2]];
        ++cell[kMagnitudeClasses + classes[j + 3]];
      }
    }
  }
}

}  // namespace

const SizeKernels kSizeKernels = {count_row};

}  // namespace trivelet::TRIVELET_ISA
