// The encoder's motion search, which is not part of the format: vectors, modes and block sizes for every high frame of
// a GOP. It minimises SATD on original samples of the first component plus weighted bits.
//
// Regions are searched independently, as they are coded, and frames of a level depend on coarser levels only. The
// result therefore depends neither on threads nor on the instruction set, and all regions of many frames run at once.
#pragma once

#include <array>

#include "codec/motion/motion.h"
#include "codec/transform/dwt.h"

namespace trivelet {

/// Parameters of a search; `step` sets the cost of a bit.
struct MotionSearchParams {
  int components = 1;
  int levels = 0;   ///< temporal levels
  int bits = 8;     ///< per sample
  double step = 8;  ///< quantiser step; lossless: about the step that noise has
  Effort effort = Effort::kMedium;
  /// For an open GOP that ends with its key and whose key frame before may be missing: the frames predicted from it,
  /// one per level, are searched a second time, into GopMotion::closed. without_before() then makes a closed GOP.
  bool may_close = false;
  bool keys = false;  ///< also search for the keys that can be predicted
  /// These are not searched: each is predicted from the same places of the one before. That commutes with the transform
  /// in space, so a smaller picture is predicted as the full one is, and errors do not add up there.
  bool keys_in_place = false;
};
/// Whether keys are searched.
inline bool searches_keys(const MotionSearchParams& params) { return params.keys && !params.keys_in_place; }
/// Whether the second search applies.
inline bool finds_closed(const MotionSearchParams& params, const MotionPlaces& places) {
  return params.may_close && places.key == GopKey::kOpen && places.ends_with_key();
}
/// Makes a closed GOP from an open one that was searched with may_close.
GopMotion without_before(GopMotion open);

/// Samples minus offset of a component, at all places. Components after the first are for the constants of unpredicted
/// blocks only.
struct MotionPlane {
  Field<std::int32_t> samples;  ///< in whole grey levels
  MotionScale scale;
};

/// Bits, in 1/256, of a decision whose probability is in i/256 .. (i + 1)/256.
const std::array<int, 256>& bit_prices();
/// Cost of a bit at a level, or at the one of predicted keys.
int search_lambda(const MotionSearchParams& params, int level);
/// Reduction factor of the pictures that are searched first.
int small_factor(int height, int width);

/// The places that frames of a level refer to. Takes frames from high[end] on while they need at most `most` places, at
/// least one frame, and moves `end` past them.
std::vector<int> references_of(const std::vector<int>& high, int level, const MotionPlaces& places, std::size_t most,
                               std::size_t& end);

/// A motion search on another device, with the same results.
class MotionSearcher {
 public:
  virtual ~MotionSearcher() = default;
  /// `gop` has the original samples. `before`: the first component of the key frame of the GOP before, as in MotionKey
  /// for level 0; null for GOPs that are not open.
  virtual GopMotion search(const Gop& gop, GopKey key, const std::int32_t* before,
                           const MotionSearchParams& params) = 0;
};

GopMotion search_motion(const std::vector<MotionPlane>& components, const MotionSearchParams& params, GopKey key,
                        ThreadPool& pool, SimdLevel simd);

}  // namespace trivelet
