// The squared error of decoded samples, measured on a few code blocks of a GOP. Each is transformed as a picture of its
// own, cut as rate control cut it, and transformed back; what borders of its own do to it is reckoned with, for the
// synthesis vectors of every axis are known, in the block and in the picture. What these blocks have over the error
// that is predicted from their coefficients (sample_error.h), all blocks are taken to have.
//
// Blocks are drawn half by the error they are predicted to have, half by their samples: a few large errors count as
// much as many small ones, of which rounding makes something else.
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

  /// The squared error of all samples at each of these cuts of a GOP without motion, `coded` with this step, these
  /// frame gains and this rounding step. It is the same whatever the threads and the instruction set.
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
