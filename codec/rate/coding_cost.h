// Estimates the cost of coding a GOP. Motion::kAuto compares the cost with motion and without; the estimate serves this
// choice alone. Sums over coefficients are integers, so host and device get the same result in any order.
#pragma once

#include <vector>

#include "codec/base/simd.h"
#include "codec/base/stream_header.h"
#include "codec/motion/motion.h"
#include "codec/rate/coding_terms.h"
#include "codec/threads/parallel.h"
#include "codec/transform/subband.h"
#include "trivelet/coefficients.h"

namespace trivelet {

/// One row of a subband in this many is sampled, from the first on; that is enough for a choice between two.
inline constexpr int kCodingRows = 2;
inline int coding_rows(int height) { return (height + kCodingRows - 1) / kCodingRows; }

/// Calls f(component, its table, the number of a subband in that) for those that have coefficients, of which the
/// frames, one after the other, have the sums. `header`: as describe_gop() describes the GOP.
template <class F>
void for_coding_bands(const StreamHeader& header, int frames, const F& f) {
  for (int c = 0; c < static_cast<int>(header.components.size()); ++c) {
    const SubbandTable table(header.component_shape(c, frames), header.decomposition(c), header.lossless);
    for (std::size_t i = 0; i < table.all().size(); ++i)
      if (table.all()[i].shape.samples() > 0) f(c, table, i);
  }
}

/// The sums of a frame of a subband.
template <class T>
CodingSums coding_sums(const Field<T>& band, int frame, float inverse_step, SimdLevel simd);

/// The cost of a GOP in squared errors of samples: its bits at the slope that belongs to the step, plus the remaining
/// errors.
double coding_cost(const StreamHeader& header, int frames, const std::vector<std::uint8_t>& frame_gains, float step,
                   const std::vector<CodingSums>& sums);
/// The same, computed from the coefficients.
double coding_cost(const StreamHeader& header, const CoefficientGop& gop, float step, ThreadPool& pool, SimdLevel simd);

/// The cost of bytes in the same unit, and of those of motion.
double cost_of_bytes(const StreamHeader& header, std::size_t bytes, float step);
double motion_cost(const StreamHeader& header, const GopMotion& motion, float step);

/// Whether keys are predicted that cost `alone` by themselves and otherwise `predicted`, with their section. Those that
/// are predicted in place must cost noticeably less.
bool prediction_pays(double predicted, double alone, bool in_place);

}  // namespace trivelet
