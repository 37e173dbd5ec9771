// The rules for key frames of closed and open GOPs (key_plan.h).
#include "codec/encoder/key_plan.h"

namespace trivelet {

// A closed GOP has its key last if it can: open GOPs can follow, and a longer GOP has its key in the middle, with
// frames on both sides, and needs no second key at its beginning. Only a GOP of one frame more than whole pyramids has
// both keys, so that open GOPs can follow, unless it is the whole stream: most clips of 3, 5, 9, 17 or 33 frames take 5
// to 40 % fewer bytes with one key (tests/bench/RESULTS.md).
GopKey KeyPlan::next(int gop_frames, bool must_close, int levels) const {
  if (!header_.motion) return GopKey::kFirst;
  if (pushed_ == KeyBefore::kSamples && !must_close) return GopKey::kOpen;
  const bool may_be_last = gop_frames >= (1 << levels);
  const bool is_all = header_.video.frames == static_cast<std::uint64_t>(gop_frames);
  const bool has_both = MotionPlaces(gop_frames, GopKey::kFirst, levels).ends_with_key() && !is_all;
  return may_be_last && !has_both ? GopKey::kLast : GopKey::kFirst;
}

GopKey KeyPlan::closed(int gop_frames, int levels) {
  const bool whole = MotionPlaces(gop_frames, GopKey::kLast, levels).ends_with_key();
  return whole ? GopKey::kLast : GopKey::kFirst;
}

void KeyPlan::coefficients_pushed() {
  if (pushed_ == KeyBefore::kSamples) pushed_ = KeyBefore::kCoefficients;
}

KeyPlan::KeyBefore KeyPlan::left_by(const MotionPlaces* places) {
  return places && places->ends_with_key() ? KeyBefore::kSamples : KeyBefore::kNone;
}

}  // namespace trivelet
