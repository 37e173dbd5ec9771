// Where coded GOPs wait until rate control knows the whole video: a temporary file, and of each GOP a small curve.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "codec/rate_control.h"

namespace trivelet {

/// An unnamed temporary file for reading and writing. Gone when closed.
class Spool {
 public:
  /// `path` is created anew and unlinked at once; empty: wherever the system keeps temporary files. Throws Error(kIo).
  explicit Spool(const std::string& path);
  ~Spool();
  Spool(const Spool&) = delete;
  Spool& operator=(const Spool&) = delete;
  std::FILE* file() { return file_; }
  void rewind();

 private:
  std::FILE* file_ = nullptr;
};

/// Bytes of a GOP by the slope it is cut at.
class RateCurve {
 public:
  static constexpr double kLeast = -30;  ///< log2 of slopes
  static constexpr double kMost = 50;
  explicit RateCurve(const RateControl& control);
  /// Interpolated between slopes an eighth of an octave apart.
  double bytes(double log2_slope) const;

 private:
  std::vector<float> bytes_;
};

}  // namespace trivelet
