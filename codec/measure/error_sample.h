// The squared error of decoded samples of a GOP without motion, measured on a few code blocks. Each block is
// transformed as a picture of its own, cut as rate control cut it, and transformed back. Its own borders change its
// error; the ratio of synthesis vectors in the block and in the picture, known for every axis, corrects that. The ratio
// of measured to predicted error (sample_error.h) of these blocks is applied to all blocks.
//
// Blocks are drawn half by their predicted error, half by their number of samples: many small errors matter as much as
// a few large ones, because rounding to integers changes small errors most.
#pragma once

#include <vector>

#include "codec/backend.h"
#include "codec/measure/error_window.h"
#include "codec/rate/rate_control.h"
#include "codec/threads/parallel.h"
#include "trivelet/types.h"

namespace trivelet {

class ErrorSample {
 public:
  ErrorSample(const StreamHeader& header, SimdLevel simd) : header_(header), simd_(simd) {}

  /// The squared error of all samples at each of the cuts `points`. `coded` gives step, frame gains and rounding step
  /// of the GOP. The result does not depend on threads and instruction set.
  std::vector<SampledError> errors(const Gop& gop, const GopChoices& coded, const RateControl& control,
                                   const std::vector<const Cuts*>& points, ThreadPool& pool);

 private:
  struct Unit;

  std::vector<Unit> all_units(const RateControl& control, const std::vector<const Cuts*>& points) const;
  static std::vector<Unit> draw(std::vector<Unit> units);
  static BlockGrid::Patch extent_of(const Unit& unit, const BlockGrid& grid);
  template <class T>
  std::vector<ErrorShare> measure(const Unit& unit, const Gop& gop, const GopChoices& coded, const RateControl& control,
                                  const std::vector<const Cuts*>& points);

  const StreamHeader& header_;
  SimdLevel simd_;
  AxisEnergies energies_;
};

}  // namespace trivelet
