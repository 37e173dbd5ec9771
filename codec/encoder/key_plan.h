// Decides which GOPs are closed and where the key frame of the next GOP is.
#pragma once

#include "codec/encoder/key_schedule.h"
#include "codec/motion/motion.h"

namespace trivelet {

/// Used by the thread that calls the encoder. What it knows of the GOP before is a state:
///
///   kNone  --coded(), ends with a key-->  kSamples  --coefficients_pushed()-->  kCoefficients
///   any state  --coded(), no key at the end-->  kNone
///
/// Only in kSamples the next GOP may be open, that is, depend on the key frame before it.
class KeyPlan {
 public:
  /// What a GOP leaves to the next one.
  enum class KeyBefore {
    kNone,         ///< no key frame at its end
    kSamples,      ///< a key frame whose samples the backend has
    kCoefficients  ///< a key frame, but coefficients were pushed since, so the backend has no samples
  };

  KeyPlan(const StreamHeader& header, const EncoderParams& params) : header_(header), schedule_(header, params) {}

  /// How the next GOP starts. Call it once per GOP in order.
  KeySchedule::Start start_next(int gop_frames, bool begins_scene) { return schedule_.next(gop_frames, begins_scene); }
  /// The place of the key frame of the next GOP. `levels`: temporal levels if it has motion.
  GopKey next(int gop_frames, bool must_close, int levels) const;
  /// The key of a GOP that was searched as an open one but is closed. The search results fit whole pyramids.
  static GopKey closed(int gop_frames, int levels);

  /// Whether a GOP has motion is known, or with lookahead assumed. `places` are those of the motion, null without.
  void coded(const MotionPlaces* places) { pushed_ = left_by(places); }
  /// A GOP came out of the backend.
  void drained(const MotionPlaces* places) { drained_ = left_by(places); }
  /// The GOP pushed last came as coefficients.
  void coefficients_pushed();

  KeyBefore before() const { return pushed_; }
  /// Whether the GOP drained last ends with a key frame.
  bool drained_key() const { return drained_ != KeyBefore::kNone; }

 private:
  static KeyBefore left_by(const MotionPlaces* places);

  const StreamHeader& header_;
  KeySchedule schedule_;
  KeyBefore pushed_ = KeyBefore::kNone;   ///< of the GOP pushed last, as far as known
  KeyBefore drained_ = KeyBefore::kNone;  ///< of the GOP drained last
};

}  // namespace trivelet
