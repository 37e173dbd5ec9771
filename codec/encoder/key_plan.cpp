#include "codec/encoder/key_plan.h"

namespace trivelet {

// A GOP that is closed whatever stands before it has its key last where it may: others can follow then, and one that is
// longer has its key in the middle, with frames on both sides, instead of a second one at its beginning. Only with a
// frame more than whole pyramids it has both, so that others can follow, if it is not the whole stream: most clips of
// 3, 5, 9, 17 or 33 frames take 5 to 40 % fewer bytes with one key (tests/bench/RESULTS.md).
GopKey KeyPlan::next(int gop_frames, bool anew, int levels) const {
  if (!header_.motion) return GopKey::kFirst;
  if (pushed_ == KeyBefore::kSamples && !anew) return GopKey::kOpen;
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
