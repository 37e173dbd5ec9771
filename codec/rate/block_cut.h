// Computes what a decoder makes of truncated segments, directly from the coefficients. A codeword holds the sign of a
// coefficient and its magnitude down to the truncation point, so an encoder finds the error without decoding.
#pragma once

#include <cstdint>

#include <vector>

#include "codec/entropy/coded_block.h"
#include "codec/entropy/dense/coefficient_kernels.h"
#include "codec/transform/dwt.h"
#include "trivelet/parameters.h"

namespace trivelet {

/// One block with the truncation points `cuts` of its segments, as in LayerPart::low. Parents limit their segments, as
/// in decoders. `steps` is null for integers.
template <class T>
class BlockCut {
 public:
  BlockCut(Profile profile, const BlockGrid& grid, const std::uint8_t* cuts, int centroid, const StepTable* steps);
  /// Arguments of CoefficientKernels::cut for subband i of SubbandTable::all().
  CutRow<T> row(std::size_t i) const;

 private:
  const BlockGrid& grid_;
  const StepTable* steps_;
  int centroid_;
  std::vector<int> cuts_;  // in half planes
};

/// Writes the decoded coefficients of a component into `to`, which may be `from`. `cuts`: block by block.
template <class T>
void cut_coefficients(Profile profile, const BlockGrid& grid, const std::uint8_t* cuts, int centroid,
                      const StepTable* steps, const Field<T>& from, const Field<T>& to, ThreadPool& pool,
                      SimdLevel simd);

}  // namespace trivelet
