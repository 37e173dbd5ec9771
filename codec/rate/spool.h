// Keeps coded GOPs in a temporary file until rate control knows the whole video, and a small rate curve of each.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "codec/rate/rate_control.h"

namespace trivelet {

/// An unnamed temporary file for reading and writing. Gone when closed.
class Spool {
 public:
  /// Creates `path` and unlinks it at once. Empty: in the folder TMPDIR, or where the system keeps temporary files.
  /// Throws Error(kIo).
  explicit Spool(const std::string& path);
  ~Spool();
  Spool(const Spool&) = delete;
  Spool& operator=(const Spool&) = delete;
  std::FILE* file() { return file_; }
  /// Rewinds, to read what was written.
  void rewind();
  void seek(long offset);

 private:
  std::FILE* file_ = nullptr;
};

/// The bytes of a GOP as a function of the slope.
class RateCurve {
 public:
  static constexpr double kLeast = -30;  ///< log2 of slopes
  static constexpr double kMost = 50;
  RateCurve() = default;
  /// `frames`: of the GOP. `fixed`: bytes that do not depend on the slope, as those of motion.
  RateCurve(const RateControl& control, std::uint64_t fixed, int frames);
  /// Interpolated between slopes an eighth of an octave apart.
  double bytes(double log2_slope) const;
  /// Without the fixed bytes.
  double body_bytes(double log2_slope) const { return bytes(log2_slope) - fixed_bytes(); }
  double fixed_bytes() const { return static_cast<double>(fixed_); }
  int frames() const { return frames_; }

  template <class IO>
  void visit(IO& io);

 private:
  std::vector<float> bytes_;
  std::uint64_t fixed_ = 0;
  int frames_ = 0;
};

/// log2 of the slope at which all GOPs together take that many bytes.
double slope_for(const std::vector<RateCurve>& curves, double bytes);

template <class IO>
void RateCurve::visit(IO& io) {
  auto frames = static_cast<std::uint64_t>(frames_);
  std::uint64_t points = bytes_.size();
  io.varint(fixed_);
  io.varint(frames);
  io.varint(points);
  if constexpr (IO::kReading) {
    frames_ = static_cast<int>(frames);
    bytes_.resize(static_cast<std::size_t>(points));
  }
  for (float& b : bytes_) io.real(b);
}

}  // namespace trivelet
