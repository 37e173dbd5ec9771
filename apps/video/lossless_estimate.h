// Estimates what a video takes without loss, to warn of targets above that.
#pragma once

#include <cstdint>
#include <optional>

#include "apps/video/encode_job.h"

namespace trivelet::cli {

/// Codes a few frames of some GOPs without loss: of the first, fourth, sixteenth and so on, so that long films cost
/// little. Used only with a target for bytes that is not small.
class LosslessEstimate {
 public:
  explicit LosslessEstimate(const EncodeJob& job);
  /// The next GOP of the video, in the memory of the host.
  void add(const Gop& gop);
  /// Warns if the target is above the estimate.
  void tell() const;

 private:
  const EncodeJob& job_;
  EncoderParams params_{};
  double wanted_ = 0;  ///< bits per pixel; 0: nothing is estimated
  std::uint64_t gops_ = 0;
  std::uint64_t next_ = 0;
  double bytes_ = 0;
  double frames_ = 0;
};

}  // namespace trivelet::cli
