// A component of a GOP during motion-compensated lifting: the place of its rows and cells, its pool and kernels.
#pragma once

#include <algorithm>
#include <atomic>
#include <type_traits>
#include <utility>
#include <vector>

#include "codec/motion/motion_kernels.h"
#include "codec/motion/motion_lift.h"

namespace trivelet {

/// S: of the samples in memory, std::int32_t or std::int16_t. Arithmetic has 32 bits. A result that 16 bits do not hold
/// is cut off and noted in `overflows`: every step can be undone, since it changes no sample that it depends on.
template <class S>
struct LiftedComponent {
  static constexpr bool kNarrow = std::is_same_v<S, std::int16_t>;

  LiftedComponent(std::vector<S*> frames_of_places, std::ptrdiff_t stride, const Shape& frames_shape,
                  const GopMotion& m, const MotionComponent& c, int dropped_levels, bool lifts_differences,
                  ThreadPool& threads, SimdLevel simd_level)
      : frames(std::move(frames_of_places)),
        row_stride(stride),
        shape(frames_shape),
        motion(m),
        component(c),
        dropped(dropped_levels),
        pool(threads),
        simd(resolve_simd(simd_level)),
        kernels(motion_kernels(simd)),
        cell_y(cell_size(c.scale.shift_y)),
        cell_x(cell_size(c.scale.shift_x)),
        differences(lifts_differences) {}

  int width() const { return shape.width; }
  int height() const { return shape.height; }
  /// A row of the frame at place `t`.
  S* row(int t, int y) const { return frames[static_cast<std::size_t>(t >> dropped)] + y * row_stride; }
  /// Copies n samples of a row.
  void read(const S* from, std::int32_t* to, int n) const {
    if constexpr (kNarrow)
      kernels.to_wide(from, to, n);
    else
      std::copy_n(from, n, to);
  }
  void write(const std::int32_t* from, S* to, int n) const {
    if constexpr (kNarrow)
      note(kernels.to_narrow(from, to, n));
    else
      std::copy_n(from, n, to);
  }
  /// Notes a result that was cut off.
  void note(bool fits) const {
    if (!fits) overflows.store(true, std::memory_order_relaxed);
  }
  /// Index of the row or column of cells for index i, which may be outside the picture.
  int cell_row(int i) const { return cell_at(i, component.scale.shift_y, motion.grid.rows); }
  int cell_column(int i) const { return cell_at(i, component.scale.shift_x, motion.grid.columns); }

  const std::vector<S*> frames;  ///< those that are not dropped
  const std::ptrdiff_t row_stride;
  const Shape shape;
  const GopMotion& motion;
  const MotionComponent component;
  const int dropped;  ///< finest levels that are left out
  ThreadPool& pool;
  const SimdLevel simd;
  const MotionKernels& kernels;
  const int cell_y, cell_x;  ///< samples of a cell
  const bool differences;    ///< the field holds differences of coefficients, in which constants cancel out
  mutable std::atomic<bool> overflows{false};
};

/// The frames of a field.
inline std::vector<std::int32_t*> frames_of(const Field<std::int32_t>& field) {
  std::vector<std::int32_t*> frames;
  for (int t = 0; t < field.shape.frames; ++t) frames.push_back(field.row(t, 0));
  return frames;
}

}  // namespace trivelet
