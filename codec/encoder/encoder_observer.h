// What an encoder that makes some GOPs of a stream tells who puts them together (encoder_part.h).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "codec/encoder/gop_work.h"

namespace trivelet {

/// A GOP whose packet was written.
struct WrittenGop {
  std::uint64_t number = 0;
  bool anew = true;
  GopInfo info;                          ///< of its packet; the offset is that in the encoder's own output
  std::vector<double> predicted;         ///< errors of its layers; none with a target, where `info` has them
  std::vector<std::size_t> measured_at;  ///< layers whose errors come in errors_measured()
  /// The observer decides whether the GOP is measured, and gives this back if it is (EncoderCore::begin_measuring).
  std::optional<MeasureTask> undecided;
};

class EncoderObserver {
 public:
  virtual ~EncoderObserver() = default;
  /// Called by the thread that writes, GOP by GOP in the order of pushes.
  virtual void gop_written(WrittenGop gop) = 0;
  /// Called by the threads that measure.
  virtual void errors_measured(std::uint64_t number, std::vector<double> errors) = 0;
};

}  // namespace trivelet
