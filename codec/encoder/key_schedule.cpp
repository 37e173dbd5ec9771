// A GOP is closed where a scene begins, and where the key interval ends.
#include "codec/encoder/key_schedule.h"

#include <utility>

#include "codec/motion/motion.h"

namespace trivelet {

KeySchedule::Start KeySchedule::next(int frames, bool begins_scene) {
  const bool first = first_;
  Start b;
  b.must_close = must_close(frames, begins_scene);
  b.run = first || (b.must_close && (!target_ || run_ >= kRunGops));
  run_ = b.run ? 1 : run_ + 1;
  return b;
}

bool KeySchedule::must_close(int frames, bool begins_scene) {
  const bool first = std::exchange(first_, false);
  if (!motion_) return true;
  const auto length = static_cast<std::uint64_t>(frames);
  // A short last GOP stays open unless every GOP is closed.
  const bool due = interval_ <= gop_frames_ || (MotionPlaces(frames, GopKey::kLast, levels_).ends_with_key() &&
                                                since_ + length > static_cast<std::uint64_t>(interval_));
  const bool closes = first || begins_scene || due;
  since_ = closes ? length : since_ + length;
  return closes;
}

}  // namespace trivelet
