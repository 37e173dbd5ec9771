// What a decoder makes of segments that end at some cuts, straight from the coefficients: a codeword says nothing about
// a coefficient but its sign and its magnitude down to the cut, so an encoder that wants to know the error of a cut
// need not decode.
#pragma once

#include <cstdint>

#include <vector>

#include "codec/entropy/coded_block.h"
#include "codec/entropy/dense/coefficient_kernels.h"
#include "codec/transform/dwt.h"
#include "trivelet/parameters.h"

namespace trivelet {

/// One block: `cuts` of its segments, as in LayerPart::low; those that a segment hangs on limit it, as they do in the
/// decoders. `steps` is null for integers.
template <class T>
class BlockCut {
 public:
  BlockCut(Profile profile, const BlockGrid& grid, const std::uint8_t* cuts, int centroid, const StepTable* steps);
  /// For CoefficientKernels::cut, of subband i of SubbandTable::all().
  CutRow<T> row(std::size_t i) const;

 private:
  const BlockGrid& grid_;
  const StepTable* steps_;
  int centroid_;
  std::vector<int> cuts_;  // in half planes
};

/// Writes into `to` what is decoded of a component; both may be the same field. `cuts`: block by block.
template <class T>
void cut_coefficients(Profile profile, const BlockGrid& grid, const std::uint8_t* cuts, int centroid,
                      const StepTable* steps, const Field<T>& from, const Field<T>& to, ThreadPool& pool,
                      SimdLevel simd);

}  // namespace trivelet
