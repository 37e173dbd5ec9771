// The key frame that a decoder keeps of a GOP with motion for the one behind it.
#pragma once

#include <cstdint>

#include "codec/cpu/motion_gop.h"

namespace trivelet {

class DecodedKeys {
 public:
  /// `header` must outlive this object.
  explicit DecodedKeys(const StreamHeader& header) : header_(header) {}

  /// Behind a jump: there is no GOP before.
  void clear() { key_ = {}; }
  /// Before the inverse transform of a GOP. Throws Error(kBadStream) if it needs a key that is not there.
  void begin(const CoefficientGop& in) {
    if (in.frames == 0 || !in.motion) return;
    require(!needs_key(in) || (number_ + 1 == in.number && !key_.empty()), ErrorKind::kBadStream,
            "a GOP is predicted from the one before, of which no samples were made");
    number_ = kNoKey;  // until all components have left theirs
  }
  /// Each level of a component takes the key frame before, then leaves its own.
  MotionKeys of(const CoefficientGop& in) {
    return {needs_key(in) ? &key_ : nullptr, &key_, nullptr, header_.predicted_keys ? &key_ : nullptr};
  }
  /// When all components have left theirs.
  void end(const CoefficientGop& in) {
    if (in.frames == 0 || !in.motion) return;
    // A predicted key behind a GOP that is lost refers to this one.
    if (needs_key(in) && !in.motion->places.ends_with_key() && !header_.predicted_keys) key_ = {};
    number_ = in.number;
  }

 private:
  static constexpr std::uint64_t kNoKey = ~std::uint64_t{0};

  static bool needs_key(const CoefficientGop& in) {
    return in.motion && in.motion->places.key == GopKey::kOpen && in.follows;
  }

  const StreamHeader& header_;
  MotionKey key_;  // of the last GOP with motion whose samples or keys were made
  std::uint64_t number_ = 0;
};

}  // namespace trivelet
