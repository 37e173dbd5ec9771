// The frames of a component while they are lifted back (motion_lift.h), each in memory of its own: integers of 16 bits
// as long as all of them fit, which those of films of 8 and 10 bits do but for made-up ones, else of 32.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "codec/base/frame_pool.h"
#include "codec/motion/motion_kernels.h"
#include "codec/motion/narrow_kernels.h"
#include "trivelet/large_memory.h"
#include "trivelet/types.h"

namespace trivelet {

class MotionFrames {
 public:
  /// Frames of 16 bits take their memory from `pool` if that is not null.
  MotionFrames(const Shape& shape, SimdLevel simd, FramePool* pool = nullptr)
      : shape_(shape),
        kernels_(motion_kernels(resolve_simd(simd))),
        narrow_kernels_(narrow_kernels(resolve_simd(simd))),
        pool_(pool),
        narrow_(static_cast<std::size_t>(shape.frames)),
        wide_(static_cast<std::size_t>(shape.frames)) {}

  const Shape& shape() const { return shape_; }
  /// Sets frame i to `values`, row by row. Threads may set different frames at once.
  void set(int i, const std::int32_t* values) {
    if (kernels_.to_narrow(values, make_narrow(i), static_cast<int>(frame_samples()))) return;
    std::memcpy(make_wide(i), values, frame_samples() * sizeof *values);
  }
  /// The same for what MotionKernels::from_real() makes of `values`, which are lost.
  void set(int i, float* values, float gain) {
    const int n = static_cast<int>(frame_samples());
    if (narrow_kernels_.from_real(values, make_narrow(i), n, gain)) return;
    kernels_.from_real(values, n, gain);
    std::memcpy(make_wide(i), values, frame_samples() * sizeof *values);
  }
  void set_zero(int i) { std::fill_n(make_narrow(i), frame_samples(), std::int16_t{0}); }
  /// Whether all frames have 16 bits.
  bool is_narrow() const {
    for (const auto& frame : narrow_)
      if (!frame) return false;
    return true;
  }
  /// Gives all frames 32 bits.
  void widen() {
    for (std::size_t i = 0; i < narrow_.size(); ++i) {
      if (!narrow_[i]) continue;
      wide_[i].resize(frame_samples());
      kernels_.to_wide(narrow(i), wide_[i].data(), static_cast<int>(frame_samples()));
      narrow_[i].reset();
    }
  }
  /// The frames, all of which have integers of this type.
  template <class S>
  std::vector<S*> frames() {
    std::vector<S*> all;
    if constexpr (sizeof(S) == sizeof(std::int16_t))
      for (std::size_t i = 0; i < narrow_.size(); ++i) all.push_back(narrow(i));
    else
      for (auto& frame : wide_) all.push_back(frame.data());
    return all;
  }
  /// Frees frame i.
  void release(int i) {
    narrow_[static_cast<std::size_t>(i)].reset();
    LargeVector<std::int32_t>().swap(wide_[static_cast<std::size_t>(i)]);
  }
  /// Makes samples of row y of frame i: NarrowKernels::store[format].
  void store_row(int i, int y, int format, int fraction, std::int32_t offset, std::int32_t least, std::int32_t most,
                 std::byte* samples) const {
    narrow_kernels_.store[format](narrow(static_cast<std::size_t>(i)) + static_cast<std::ptrdiff_t>(y) * shape_.width,
                                  fraction, offset, least, most, samples, shape_.width);
  }
  /// Copies row y of frame i.
  void read_row(int i, int y, std::int32_t* to) const {
    const std::size_t at = static_cast<std::size_t>(y) * static_cast<std::size_t>(shape_.width);
    const auto number = static_cast<std::size_t>(i);
    if (narrow_[number])
      kernels_.to_wide(narrow(number) + at, to, shape_.width);
    else
      std::copy_n(wide_[number].data() + at, shape_.width, to);
  }

 private:
  std::size_t frame_samples() const {
    return static_cast<std::size_t>(shape_.height) * static_cast<std::size_t>(shape_.width);
  }
  std::int16_t* narrow(std::size_t i) const { return reinterpret_cast<std::int16_t*>(narrow_[i].get()); }
  // Memory for frame i in 16 bits, and zeros that kernels read behind it.
  std::int16_t* make_narrow(int i) {
    const auto number = static_cast<std::size_t>(i);
    const std::size_t bytes = (frame_samples() + kNarrowSlack) * sizeof(std::int16_t);
    if (!narrow_[number])
      narrow_[number] = pool_ ? pool_->take(bytes)
                              : std::shared_ptr<std::byte>(static_cast<std::byte*>(allocate_large(bytes)),
                                                           [bytes](std::byte* memory) { free_large(memory, bytes); });
    std::fill_n(narrow(number) + frame_samples(), kNarrowSlack, std::int16_t{0});
    return narrow(number);
  }

  // Memory for frame i in 32 bits, in place of that in 16 bits.
  std::int32_t* make_wide(int i) {
    narrow_[static_cast<std::size_t>(i)].reset();
    auto& wide = wide_[static_cast<std::size_t>(i)];
    wide.resize(frame_samples());
    return wide.data();
  }

  const Shape shape_;
  const MotionKernels& kernels_;
  const NarrowKernels& narrow_kernels_;
  FramePool* const pool_;
  std::vector<std::shared_ptr<std::byte>> narrow_;
  std::vector<LargeVector<std::int32_t>> wide_;  // of a frame that has no narrow memory
};

}  // namespace trivelet
