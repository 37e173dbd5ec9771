// Which GOPs begin anew, and where the key frame of the next GOP is to stand.
#pragma once

#include "codec/encoder/encoder_params.h"
#include "codec/motion/motion.h"

namespace trivelet {

/// Used by the thread that calls the encoder alone. What it knows of the GOP before is a state:
///
///   kNone  --coded(), ends with a key-->  kSamples  --coefficients_pushed()-->  kCoefficients
///   any state  --coded(), no key at the end-->  kNone
///
/// In kSamples alone the next GOP may be open, which is to say depend on the key frame before it.
class KeyPlan {
 public:
  /// What a GOP leaves to the next one.
  enum class KeyBefore {
    kNone,         ///< no key frame at its end
    kSamples,      ///< a key frame, whose samples the backend has
    kCoefficients  ///< a key frame, but coefficients were pushed since, so that the backend has no samples
  };

  KeyPlan(const StreamHeader& header, const EncoderParams& params) : header_(header), schedule_(header, params) {}

  /// What the next GOP begins; to be asked of each in order.
  KeySchedule::Begins begins(int gop_frames, bool begins_scene) { return schedule_.next(gop_frames, begins_scene); }
  /// Where the key frame of the next GOP is to stand.
  /// `levels`: temporal ones, if it has motion.
  GopKey next(int gop_frames, bool anew, int levels) const;
  /// The key of a GOP that was searched to be open, but is closed: what was found for a closed one is found for whole
  /// pyramids.
  static GopKey closed(int gop_frames, int levels);

  /// It is known, or with lookahead assumed, whether a GOP has motion. `places`: those of the motion; null without.
  void coded(const MotionPlaces* places) { pushed_ = left_by(places); }
  /// A GOP came out of the backend.
  void drained(const MotionPlaces* places) { drained_ = left_by(places); }
  /// The GOP pushed last came as coefficients.
  void coefficients_pushed();

  KeyBefore before() const { return pushed_; }
  /// Whether the GOP that was drained last has left a key frame.
  bool drained_key() const { return drained_ != KeyBefore::kNone; }

 private:
  static KeyBefore left_by(const MotionPlaces* places);

  const StreamHeader& header_;
  KeySchedule schedule_;
  KeyBefore pushed_ = KeyBefore::kNone;   ///< of the GOP pushed last, so far as is known
  KeyBefore drained_ = KeyBefore::kNone;  ///< of the GOP drained last
};

}  // namespace trivelet
