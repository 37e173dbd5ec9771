// The interface from an encoder of some GOPs of a stream to the one that assembles the stream (encoder_part.h).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "codec/encoder/gop_work.h"

namespace trivelet {

/// A GOP whose packet was written.
struct WrittenGop {
  std::uint64_t number = 0;
  bool must_close = true;
  GopInfo info;                          ///< of its packet; the offset is relative to the encoder's own output
  std::vector<double> predicted;         ///< errors of its layers; empty with a target, where `info` has them
  std::vector<std::size_t> measured_at;  ///< layers whose errors follow in errors_measured()
  /// Set where the observer decides whether the GOP is measured. It passes this back to EncoderCore::begin_measuring()
  /// if so.
  std::optional<MeasureTask> undecided;
};

class EncoderObserver {
 public:
  virtual ~EncoderObserver() = default;
  /// Called by the writing thread for each GOP in the order of pushes.
  virtual void gop_written(WrittenGop gop) = 0;
  /// Called by the measuring threads.
  virtual void errors_measured(std::uint64_t number, std::vector<double> errors) = 0;
};

}  // namespace trivelet
