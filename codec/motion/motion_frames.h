// The frames of a component while they are lifted back (motion_lift.h), each in memory of its own: integers of 16 bits
// as long as all of them fit, which those of films of 8 and 10 bits do but for made-up ones, else of 32.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "codec/motion/motion_kernels.h"
#include "trivelet/large_memory.h"
#include "trivelet/types.h"

namespace trivelet {

class MotionFrames {
 public:
  MotionFrames(const Shape& shape, SimdLevel simd)
      : shape_(shape),
        kernels_(motion_kernels(resolve_simd(simd))),
        narrow_(static_cast<std::size_t>(shape.frames)),
        wide_(static_cast<std::size_t>(shape.frames)) {}

  const Shape& shape() const { return shape_; }
  /// Sets frame i to `values`, row by row. Threads may set different frames at once.
  void set(int i, const std::int32_t* values) {
    auto& narrow = narrow_[static_cast<std::size_t>(i)];
    narrow.resize(frame_samples());
    if (kernels_.to_narrow(values, narrow.data(), static_cast<int>(frame_samples()))) return;
    free(narrow);
    wide_[static_cast<std::size_t>(i)].assign(values, values + frame_samples());
  }
  void set_zero(int i) { narrow_[static_cast<std::size_t>(i)].assign(frame_samples(), 0); }
  /// Whether all frames have 16 bits.
  bool is_narrow() const {
    for (const auto& frame : narrow_)
      if (frame.empty()) return false;
    return true;
  }
  /// Gives all frames 32 bits.
  void widen() {
    for (std::size_t i = 0; i < narrow_.size(); ++i) {
      if (narrow_[i].empty()) continue;
      wide_[i].resize(frame_samples());
      kernels_.to_wide(narrow_[i].data(), wide_[i].data(), static_cast<int>(frame_samples()));
      free(narrow_[i]);
    }
  }
  /// The frames, all of which have integers of this type.
  template <class S>
  std::vector<S*> frames() {
    std::vector<S*> all;
    if constexpr (sizeof(S) == sizeof(std::int16_t))
      for (auto& frame : narrow_) all.push_back(frame.data());
    else
      for (auto& frame : wide_) all.push_back(frame.data());
    return all;
  }
  /// Frees frame i.
  void release(int i) {
    free(narrow_[static_cast<std::size_t>(i)]);
    free(wide_[static_cast<std::size_t>(i)]);
  }
  /// Copies row y of frame i.
  void read_row(int i, int y, std::int32_t* to) const {
    const std::size_t at = static_cast<std::size_t>(y) * static_cast<std::size_t>(shape_.width);
    const auto& narrow = narrow_[static_cast<std::size_t>(i)];
    if (!narrow.empty())
      kernels_.to_wide(narrow.data() + at, to, shape_.width);
    else
      std::copy_n(wide_[static_cast<std::size_t>(i)].data() + at, shape_.width, to);
  }

 private:
  std::size_t frame_samples() const {
    return static_cast<std::size_t>(shape_.height) * static_cast<std::size_t>(shape_.width);
  }
  template <class V>
  static void free(V& memory) {
    V().swap(memory);
  }

  const Shape shape_;
  const MotionKernels& kernels_;
  std::vector<LargeVector<std::int16_t>> narrow_;
  std::vector<LargeVector<std::int32_t>> wide_;  // of a frame that has no narrow memory
};

}  // namespace trivelet
