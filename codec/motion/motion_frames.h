// The frames of a component while they are lifted back (motion_lift.h), each in memory of its own: integers of 16 bits
// as long as all of them fit, which those of films of 8 and 10 bits do but for made-up ones, else of 32.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "codec/motion/motion_kernels.h"
#include "codec/motion/narrow_kernels.h"
#include "trivelet/large_memory.h"
#include "trivelet/types.h"

namespace trivelet {

/// Memory of frames that are no longer needed, for the next ones: to touch new memory would cost more than a tenth of
/// the time of decoding.
using SpareFrames = std::vector<LargeVector<std::int16_t>>;

class MotionFrames {
 public:
  /// Takes the memory of frames from `spare` and gives it back, if that is not null.
  MotionFrames(const Shape& shape, SimdLevel simd, SpareFrames* spare = nullptr)
      : shape_(shape),
        kernels_(motion_kernels(resolve_simd(simd))),
        spare_(spare),
        narrow_(static_cast<std::size_t>(shape.frames)),
        wide_(static_cast<std::size_t>(shape.frames)) {
    if (spare_) spare_->reserve(spare_->size() + narrow_.size());  // the destructor must not allocate
    for (std::size_t i = 0; spare_ && !spare_->empty() && i < narrow_.size(); ++i) {
      narrow_[i].swap(spare_->back());
      narrow_[i].clear();
      spare_->pop_back();
    }
  }
  ~MotionFrames() {
    for (auto& frame : narrow_) free(frame);
  }
  MotionFrames(const MotionFrames&) = delete;
  MotionFrames& operator=(const MotionFrames&) = delete;

  const Shape& shape() const { return shape_; }
  /// Sets frame i to `values`, row by row, after convert(values, n) has made them integers, a part after the other.
  /// Threads may set different frames at once.
  template <class F>
  void set(int i, std::int32_t* values, const F& convert) {
    constexpr std::size_t kPart = 4096;  // which a cache of the first level holds
    const std::size_t samples = frame_samples();
    auto& narrow = narrow_of(i);
    bool fits = true;
    for (std::size_t at = 0; at < samples; at += kPart) {
      const int n = static_cast<int>(std::min(kPart, samples - at));
      convert(values + at, n);
      fits = fits && kernels_.to_narrow(values + at, narrow.data() + at, n);
    }
    if (fits) return;
    narrow.clear();
    wide_[static_cast<std::size_t>(i)].assign(values, values + frame_samples());
  }
  void set_zero(int i) {
    auto& narrow = narrow_of(i);
    std::fill(narrow.begin(), narrow.end(), std::int16_t{0});
  }
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
      LargeVector<std::int16_t>().swap(narrow_[i]);
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
    LargeVector<std::int32_t>().swap(wide_[static_cast<std::size_t>(i)]);
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
  // Frame i in 16 bits, of any values, and what kernels read behind it.
  LargeVector<std::int16_t>& narrow_of(int i) {
    auto& narrow = narrow_[static_cast<std::size_t>(i)];
    narrow.resize(frame_samples() + kNarrowSlack);
    std::fill_n(narrow.end() - kNarrowSlack, kNarrowSlack, std::int16_t{0});
    return narrow;
  }
  std::size_t frame_samples() const {
    return static_cast<std::size_t>(shape_.height) * static_cast<std::size_t>(shape_.width);
  }
  void free(LargeVector<std::int16_t>& memory) {
    if (spare_ && memory.capacity() != 0) spare_->push_back(std::move(memory));
    LargeVector<std::int16_t>().swap(memory);
  }

  const Shape shape_;
  const MotionKernels& kernels_;
  SpareFrames* const spare_;
  std::vector<LargeVector<std::int16_t>> narrow_;
  std::vector<LargeVector<std::int32_t>> wide_;  // of a frame that has no narrow memory
};

}  // namespace trivelet
