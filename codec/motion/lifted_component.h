// A component of a GOP during motion-compensated lifting: the place of its rows and cells, its pool and kernels.
#pragma once

#include "codec/motion/motion_kernels.h"
#include "codec/motion/motion_lift.h"

namespace trivelet {

struct LiftedComponent {
  LiftedComponent(const Field<std::int32_t>& f, const GopMotion& m, const MotionComponent& c, int dropped_levels,
                  bool lifts_differences, ThreadPool& threads, SimdLevel simd)
      : field(f),
        motion(m),
        component(c),
        dropped(dropped_levels),
        pool(threads),
        kernels(motion_kernels(resolve_simd(simd))),
        cell_y(cell_size(c.scale.shift_y)),
        cell_x(cell_size(c.scale.shift_x)),
        differences(lifts_differences) {}

  int width() const { return field.shape.width; }
  int height() const { return field.shape.height; }
  /// A row of the frame at place `t`.
  std::int32_t* row(int t, int y) const { return field.row(t >> dropped, y); }
  /// Index of the row or column of cells for index i, which may be outside the picture.
  int cell_row(int i) const { return cell_at(i, component.scale.shift_y, motion.grid.rows); }
  int cell_column(int i) const { return cell_at(i, component.scale.shift_x, motion.grid.columns); }

  const Field<std::int32_t>& field;
  const GopMotion& motion;
  const MotionComponent component;
  const int dropped;  ///< finest levels that are left out
  ThreadPool& pool;
  const MotionKernels& kernels;
  const int cell_y, cell_x;  ///< samples of a cell
  const bool differences;    ///< the field holds differences of coefficients, in which constants cancel out
};

}  // namespace trivelet
