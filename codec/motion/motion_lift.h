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
#include <vector>

#include "codec/motion/motion.h"
#include "codec/transform/dwt.h"

namespace trivelet {

struct MotionComponent {
  int index = 0;  ///< of the component: which constants of MotionCell::plain
  MotionScale scale;
  int fraction = 0;  ///< binary places of a grey level in the field: 0 or kMotionFraction
  int bits = 8;      ///< of samples
};

/// A key frame's states of one component, by level, each packed row by row.
using KeyStates = std::vector<std::vector<std::int32_t>>;

/// The key frames that pass from GOP to GOP.
struct MotionBorders {
  const KeyStates* before = nullptr;  ///< of an open GOP: the key frame of the GOP before. Null: it is not there
  /// Where the last frame goes, as each level of the GOP behind refers to it, of which there are so many. Null:
  /// nowhere.
  KeyStates* own = nullptr;
  /// With `before` as it was before coding: the own key as it was then. Its error is taken for that of `before`.
  const KeyStates* own_exact = nullptr;
};

/// In place: samples minus offset, at their places, become low and high frames, interleaved as dwt.h leaves them. What
/// is left at place 0 of a GOP whose key is the last frame means nothing.
void forward_motion(const Field<std::int32_t>& field, const GopMotion& motion, const MotionComponent& component,
                    const MotionBorders& borders, ThreadPool& pool, SimdLevel simd);

/// Undoes it. `dropped` finest levels are not there: frame i of the field is that of place i * 2^dropped. Without the
/// key frame of the GOP before, the first low frame of all levels stands for it, and grey where there is none.
void inverse_motion(const Field<std::int32_t>& field, const GopMotion& motion, const MotionComponent& component,
                    int dropped, const MotionBorders& borders, ThreadPool& pool, SimdLevel simd);

/// S^T S of differences of coefficients, in place, S being the inverse as the linear part of it is: no constants of
/// blocks, no limits of updates, and the key frame of the GOP before without a difference. S^T is about what lifting
/// makes of samples if its steps change places, with twice the update and half the prediction: an update gives back
/// half of what the prediction takes.
void correlate_motion(const Field<std::int32_t>& field, const GopMotion& motion, const MotionComponent& component,
                      ThreadPool& pool, SimdLevel simd);

}  // namespace trivelet
