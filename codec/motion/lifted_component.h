// A component of a GOP while it is lifted along its motion: where its rows and cells are, and what computes.
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
  /// The row and the column of cells that stand for these, of which some may be outside the picture.
  int cell_row(int i) const { return cell_at(i, component.scale.shift_y, motion.grid.rows); }
  int cell_column(int i) const { return cell_at(i, component.scale.shift_x, motion.grid.columns); }

  const Field<std::int32_t>& field;
  const GopMotion& motion;
  const MotionComponent component;
  const int dropped;  ///< finest levels that are not there
  ThreadPool& pool;
  const MotionKernels& kernels;
  const int cell_y, cell_x;  ///< samples of a cell
  const bool differences;    ///< those of coefficients are lifted, so constants cancel out
};

}  // namespace trivelet
