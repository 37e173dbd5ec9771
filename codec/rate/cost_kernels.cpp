// Adds the terms of coding_terms.h, compiled once per instruction set (codec/base/simd.h).
#include "codec/rate/cost_kernels.h"

namespace trivelet::TRIVELET_ISA {
namespace {

template <class T>
void add_row(const T* row, int n, float inverse_step, CodingSums& sums) {
  for (int first = 0; first < n; first += kCodingTerms) {
    const int end = n - first < kCodingTerms ? n : first + kCodingTerms;
    std::uint32_t bits = 0, error = 0;
    for (int x = first; x < end; ++x) {
      const float q = coding_steps(row[x], inverse_step);
      bits += coding_bits(q);
      error += coding_error(q);
    }
    sums.bits += bits;
    sums.error += error;
  }
}

}  // namespace

const CostKernels kCostKernels = {add_row<float>, add_row<std::int32_t>};

}  // namespace trivelet::TRIVELET_ISA
