// The encoder's search for motion (FORMAT.md says nothing of it): vectors, modes and block sizes for every high frame
// of a GOP, chosen on original samples of the first component for the least sum of distortion (of Hadamard transforms)
// and weighted bits.
//
// Regions decide by themselves, as they are coded, and frames of a level know only the coarser levels: what is found
// depends neither on threads nor on the instruction set, and all regions of many frames are searched at once.
#pragma once

#include <array>

#include "codec/motion/motion.h"
#include "codec/transform/dwt.h"

namespace trivelet {

/// How much a bit of motion counts, from the quantiser step of the GOP.
struct MotionSearchParams {
  int components = 1;
  int levels = 0;   ///< temporal ones
  int bits = 8;     ///< of samples
  double step = 8;  ///< quantiser step; lossless: about what noise has
  Effort effort = Effort::kMedium;
  /// Of an open GOP that ends with its key: it may turn out that there is no key frame before it, and without_before()
  /// shall make a closed one of it. The frames that are predicted from that, one of each level, are searched a second
  /// time, for GopMotion::closed.
  bool may_close = false;
};
/// Whether that can be.
inline bool finds_closed(const MotionSearchParams& params, const MotionPlaces& places) {
  return params.may_close && places.key == GopKey::kOpen && places.ends_with_key();
}
/// A closed GOP instead of an open one that was searched so.
GopMotion without_before(GopMotion open);

/// Samples minus offset of a component, all places. Those of further ones than the first are for the constants of
/// blocks that nothing predicts.
struct MotionPlane {
  Field<std::int32_t> samples;  ///< in whole grey levels
  MotionScale scale;
};

/// Bits of a decision whose chance is i/256 to (i + 1)/256.
const std::array<float, 256>& bit_prices();
/// What a bit counts in a level.
float search_lambda(const MotionSearchParams& params, int level);
/// Samples along a side of what becomes one in the smaller pictures that are searched first.
int small_factor(int height, int width);

/// The places that frames of a level refer to, from high[end] on, of as many frames as refer to no more than `most`
/// places, at least one; `end` becomes the first of the others.
std::vector<int> references_of(const std::vector<int>& high, int level, const MotionPlaces& places, std::size_t most,
                               std::size_t& end);

/// Where motion is searched elsewhere: the same choices.
class MotionSearcher {
 public:
  virtual ~MotionSearcher() = default;
  /// Of samples as they come. `before`: the first component of the key frame of the GOP before, as MotionKey has it for
  /// level 0; null but for open GOPs.
  virtual GopMotion search(const Gop& gop, GopKey key, const std::int32_t* before,
                           const MotionSearchParams& params) = 0;
};

GopMotion search_motion(const std::vector<MotionPlane>& components, const MotionSearchParams& params, GopKey key,
                        ThreadPool& pool, SimdLevel simd);

}  // namespace trivelet
