// Motion-compensated lifting along time (FORMAT.md "Motion"): the 5/3 transform whose neighbours in time are looked up
// along the motion. It replaces the transform along time of a GOP with motion; the transform in space follows.
//
// Level by level from the finest: every high frame is predicted from low frames (overlapped blocks, interpolation with
// eight taps) and becomes the difference; then every low frame gets a part of the differences back at the places they
// were predicted from (update). The inverse undoes both, levels and steps in reverse order. All arithmetic is on
// integers that wrap around at 32 bits, so the inverse is exact for any motion, and neither threads nor instruction
// sets change a bit: sums of the update do not depend on their order.
//
// Sources: Secker and Taubman (2003), "Lifting-based invertible motion adaptive transform"; Orchard and Sullivan (1994)
// for overlapped blocks.
#pragma once

#include <cstdint>

#include "codec/dwt.h"
#include "codec/motion.h"

namespace trivelet {

/// Binary places of a grey level in the integers that lossy streams are lifted in; lossless ones have none.
inline constexpr int kMotionFraction = 4;

struct MotionComponent {
  int index = 0;  ///< of the component: which constants of MotionCell::plain
  MotionScale scale;
  int fraction = 0;  ///< binary places of a grey level in the field: 0 or kMotionFraction
  int bits = 8;      ///< of samples
};

/// In place: samples minus offset become low and high frames, interleaved as dwt.h leaves them.
void forward_motion(const Field<std::int32_t>& field, const GopMotion& motion, const MotionComponent& component,
                    ThreadPool& pool, SimdLevel simd);

/// Undoes it. `dropped` finest levels are not there: frame f of the field is frame f * 2^dropped of the GOP.
void inverse_motion(const Field<std::int32_t>& field, const GopMotion& motion, const MotionComponent& component,
                    int dropped, ThreadPool& pool, SimdLevel simd);

}  // namespace trivelet
