// Motion-compensated temporal lifting (FORMAT.md "Motion"): the 5/3 transform with temporal neighbours along the
// motion. It replaces the temporal transform of a GOP with motion; the spatial transform follows.
//
// Levels run from the finest. Prediction: every high frame becomes the difference to its prediction from low frames
// (overlapped blocks, eight-tap interpolation). Update: every low frame gets a part of the differences back at the
// places they were predicted from. The inverse undoes levels and steps in reverse order. All arithmetic is on integers
// that wrap around at 32 bits, so the inverse is exact for any motion. Threads and instruction sets do not change a
// bit, because sums of the update do not depend on their order.
//
// Sources: Secker and Taubman (2003), "Lifting-based invertible motion adaptive transform"; Orchard and Sullivan (1994)
// for overlapped blocks.
#pragma once

#include <cstdint>
#include <vector>

#include "codec/motion/motion.h"
#include "codec/transform/dwt.h"

namespace trivelet {

class FieldFrames;
class MotionFrames;

struct MotionComponent {
  int index = 0;  ///< of the component: selects the constant of MotionCell::plain
  MotionScale scale;
  int fraction = 0;  ///< fractional bits of the field: 0 or kMotionFraction
  int bits = 8;      ///< per sample
};

/// The states of a component's key frame by level, each packed row by row.
using KeyStates = std::vector<std::vector<std::int32_t>>;

/// The same in 16 bits.
using NarrowKeyStates = std::vector<std::vector<std::int16_t>>;

/// The key frames that pass from GOP to GOP. `own` may be `before`, which is then replaced level by level.
struct MotionBorders {
  const KeyStates* before = nullptr;  ///< of an open GOP: the key frame of the GOP before; null if missing
  /// Gets the last frame in the state that each level of the next GOP refers to; its size is the number of levels, and
  /// one more where that may have a predicted key, which refers to the low key. Null: not wanted.
  KeyStates* own = nullptr;
  /// With an original key frame in `before`: this GOP's own original key frame. Its error stands for that of `before`.
  const KeyStates* own_exact = nullptr;
  /// Predicted keys: the low key of a GOP before, packed row by row; null: there is none, it counts as zeros.
  const std::vector<std::int32_t>* low_key = nullptr;
  /// For MotionFrames: each state is either in these, in 16 bits, or in `before`, `own` and `low_key`; the other one is
  /// empty. As many as there; null where those are null.
  const NarrowKeyStates* narrow_before = nullptr;
  NarrowKeyStates* narrow_own = nullptr;
  const std::vector<std::int16_t>* narrow_low_key = nullptr;
};

/// In place: samples minus offset become low and high frames, interleaved as in dwt.h. If the key is the last frame,
/// the result at place 0 is undefined.
void forward_motion(const Field<std::int32_t>& field, const GopMotion& motion, const MotionComponent& component,
                    const MotionBorders& borders, ThreadPool& pool, SimdLevel simd);

/// The same for frames whose integers are as small as their numbers allow. `borders` has states in 32 bits.
void forward_motion(FieldFrames& frames, const GopMotion& motion, const MotionComponent& component,
                    const MotionBorders& borders, ThreadPool& pool, SimdLevel simd);

/// Undoes forward_motion(). The `dropped` finest levels are left out: frame i of the field is that of place i *
/// 2^dropped; where that is all of them, keys alone are made, and the low key of `borders.own`. Without the key frame
/// of the GOP before, the first low frame of all levels replaces it, or grey if there is none.
void inverse_motion(const Field<std::int32_t>& field, const GopMotion& motion, const MotionComponent& component,
                    int dropped, const MotionBorders& borders, ThreadPool& pool, SimdLevel simd);

/// The same for frames whose memory is as small as their numbers allow. `borders` may have states in 16 bits.
void inverse_motion(MotionFrames& frames, const GopMotion& motion, const MotionComponent& component, int dropped,
                    const MotionBorders& borders, ThreadPool& pool, SimdLevel simd);

/// Predicts the key at place t from the one before, in place, or adds the prediction (FORMAT.md "Predicted keys").
void predict_key(const Field<std::int32_t>& field, const GopMotion& motion, const MotionComponent& component, int t,
                 bool add, ThreadPool& pool, SimdLevel simd);

/// In place: S^T S of differences of coefficients, where S is the linear part of the inverse: no constants of blocks,
/// no limits of updates, no predictions of keys, and no difference in the key frame of the GOP before. S^T is
/// approximated by the forward lifting with the steps exchanged, twice the update and half the prediction, because an
/// update returns half of what a prediction takes.
void correlate_motion(const Field<std::int32_t>& field, const GopMotion& motion, const MotionComponent& component,
                      ThreadPool& pool, SimdLevel simd);

}  // namespace trivelet
