// The frames of a component while they are lifted in the memory of its coefficients: integers of 16 bits in the first
// half of each frame's memory as long as all of them fit, else of 32 (see motion_frames.h).
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "codec/motion/motion_kernels.h"
#include "codec/motion/narrow_kernels.h"
#include "codec/threads/parallel.h"
#include "codec/transform/dwt.h"

namespace trivelet {

/// Used by one thread at a time; divides its work among the pool's threads.
class FieldFrames {
 public:
  /// Takes integers without fractional bits and gives them `fraction` of them. Frames of the field have no gaps.
  FieldFrames(const Field<std::int32_t>& field, int fraction, ThreadPool& pool, SimdLevel simd)
      : field_(field), fraction_(fraction), pool_(pool), kernels_(motion_kernels(resolve_simd(simd))) {
    // Kernels of 16 bits read behind a frame, where the other half of its memory is.
    is_narrow_ = field.frame_stride >= kNarrowSlack;
    std::vector<std::uint8_t> narrow(static_cast<std::size_t>(field.shape.frames));
    pool_.parallel_for(field.shape.frames, [&](int t, int) {
      narrow[static_cast<std::size_t>(t)] = is_narrow_ ? make_narrow(t) : make_finer(t, 0);
    });
    if (std::find(narrow.begin(), narrow.end(), 0) == narrow.end()) return;
    is_narrow_ = false;
    pool_.parallel_for(field.shape.frames, [&](int t, int) {
      if (narrow[static_cast<std::size_t>(t)]) make_wide(t, field_.shape.height);
    });
  }

  const Shape& shape() const { return field_.shape; }
  bool is_narrow() const { return is_narrow_; }
  /// The frames, whose integers have this type. Rows have no gaps.
  template <class S>
  std::vector<S*> frames() const {
    std::vector<S*> all;
    for (int t = 0; t < field_.shape.frames; ++t) all.push_back(reinterpret_cast<S*>(field_.row(t, 0)));
    return all;
  }
  /// Gives all frames 32 bits.
  void widen() {
    if (is_narrow_) pool_.parallel_for(field_.shape.frames, [&](int t, int) { make_wide(t, field_.shape.height); });
    is_narrow_ = false;
  }
  /// Makes floats of the same values of all frames.
  void make_real() {
    pool_.parallel_for(field_.shape.frames, [&](int t, int) {
      if (is_narrow_) return make_wide(t, field_.shape.height, true);
      for (int y = 0; y < field_.shape.height; ++y) kernels_.to_real(field_.row(t, y), field_.shape.width);
    });
  }
  /// The samples of frame t, row by row, behind those that `to` has.
  void append(int t, std::vector<std::int32_t>& to) const {
    const auto samples = static_cast<std::size_t>(field_.frame_stride);
    to.resize(to.size() + samples);
    std::int32_t* const at = to.data() + (to.size() - samples);
    if (is_narrow_)
      kernels_.to_wide(narrow_row(t, 0), at, static_cast<int>(samples));
    else
      std::copy_n(field_.row(t, 0), samples, at);
  }

 private:
  std::int16_t* narrow_row(int t, int y) const {
    return reinterpret_cast<std::int16_t*>(field_.row(t, 0)) + static_cast<std::ptrdiff_t>(y) * field_.shape.width;
  }
  // From row `first` on. Returns false: there is no narrow frame.
  bool make_finer(int t, int first) const {
    for (int y = first; fraction_ > 0 && y < field_.shape.height; ++y)
      kernels_.widen(field_.row(t, y), field_.shape.width);
    return false;
  }
  // False if 16 bits do not hold the frame, which has 32 then. Rows go to where rows were read before.
  bool make_narrow(int t) const {
    const int width = field_.shape.width;
    std::vector<std::int16_t> row(static_cast<std::size_t>(width));
    for (int y = 0; y < field_.shape.height; ++y) {
      if (fraction_ > 0) kernels_.widen(field_.row(t, y), width);
      if (!kernels_.to_narrow(field_.row(t, y), row.data(), width)) {
        make_wide(t, y);
        return make_finer(t, y + 1);
      }
      std::copy_n(row.data(), width, narrow_row(t, y));
    }
    return true;
  }
  // Of the first `rows` rows, the last one first; floats with `real`.
  void make_wide(int t, int rows, bool real = false) const {
    const int width = field_.shape.width;
    std::vector<std::int16_t> row(static_cast<std::size_t>(width));
    for (int y = rows; y-- > 0;) {
      std::copy_n(narrow_row(t, y), width, row.data());
      kernels_.to_wide(row.data(), field_.row(t, y), width);
      if (real) kernels_.to_real(field_.row(t, y), width);
    }
  }

  const Field<std::int32_t> field_;
  const int fraction_;
  ThreadPool& pool_;
  const MotionKernels& kernels_;
  bool is_narrow_ = false;
};

}  // namespace trivelet
