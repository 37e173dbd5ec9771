// Where coded GOPs wait until rate control knows the whole video: a temporary file, and of each GOP a small curve.
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
  /// `path` is created anew and unlinked at once; empty: in the folder TMPDIR, else
  /// wherever the system keeps temporary files. Throws Error(kIo).
  explicit Spool(const std::string& path);
  ~Spool();
  Spool(const Spool&) = delete;
  Spool& operator=(const Spool&) = delete;
  std::FILE* file() { return file_; }
  /// To read what was written.
  void rewind();
  void seek(long offset);

 private:
  std::FILE* file_ = nullptr;
};

/// Bytes of a GOP by the slope it is cut at.
class RateCurve {
 public:
  static constexpr double kLeast = -30;  ///< log2 of slopes
  static constexpr double kMost = 50;
  RateCurve() = default;
  /// Of so many frames; `fixed`: bytes that it takes whatever the slope, for its motion.
  RateCurve(const RateControl& control, std::uint64_t fixed, int frames);
  /// Interpolated between slopes an eighth of an octave apart.
  double bytes(double log2_slope) const;
  /// Without what it takes whatever the slope.
  double body_bytes(double log2_slope) const { return bytes(log2_slope) - static_cast<double>(fixed_); }
  int frames() const { return frames_; }

  template <class IO>
  void visit(IO& io);

 private:
  std::vector<float> bytes_;
  std::uint64_t fixed_ = 0;
  int frames_ = 0;
};

/// log2 of the slope at which all of them together take so many bytes.
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
