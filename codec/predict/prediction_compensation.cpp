// Interpolates cells from the previous frame. A cell whose filter reaches outside the block reads a copy with repeated
// edges. Neighbouring cells with the same vector are interpolated at once.
#include "codec/predict/prediction_compensation.h"

#include <algorithm>
#include <cstring>

namespace trivelet::prediction {

namespace {

constexpr int kBefore = 2;  // samples that the filters read before a cell, along an axis
constexpr int kReach = 5;   // samples that they read beside a cell, both sides together

/// The memory of `v` for rows x columns elements. It only grows.
template <class T>
T* room(std::vector<T>& v, int rows, int columns) {
  const std::size_t size = static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns);
  if (v.size() < size) v.resize(size);
  return v.data();
}

/// Calls f(x, y, width, height, vector) for runs of cells in a row that have the same vector.
template <class F>
void for_runs(const BlockMotion& motion, int frame, int height, int width, const F& f) {
  const int edge = 1 << motion.log2_cell;
  const MotionVector* v = motion.of(frame);
  for (int r = 0; r < motion.rows; ++r, v += motion.columns)
    for (int c = 0; c < motion.columns;) {
      int end = c + 1;
      while (end < motion.columns && v[end] == v[c]) ++end;
      f(c * edge, r * edge, std::min(end * edge, width) - c * edge, std::min(edge, height - r * edge), v[c]);
      c = end;
    }
}

}  // namespace

/// Interpolates w x h numbers at 0..3 quarters of a sample below and to the right of `from`.
Patch Compensator::between(Patch from, int qy, int qx, int w, int h, Limits limits) {
  const auto at_halves = [&](int y, int x, std::vector<std::int16_t>& memory) {
    const Patch p = from.moved(y >> 1, x >> 1);
    if ((y & 1) == 0 && (x & 1) == 0) return p;
    std::int16_t* to = room(memory, h, w);
    if ((y & 1) == 0)
      kernels_.half_x(p, w, h, limits, to);
    else if ((x & 1) == 0)
      kernels_.half_y(p, w, h, limits, to);
    else
      kernels_.half_xy(p, w, h, limits, room(scratch_, h + kReach, w), to);
    return Patch{to, w};
  };
  if ((qy & 1) == 0 && (qx & 1) == 0) return at_halves(qy / 2, qx / 2, first_);
  const auto [a, b] = halves_around(qy, qx);
  const Patch first = at_halves(a.y, a.x, first_);
  const Patch second = at_halves(b.y, b.x, second_);
  std::int16_t* to = room(first_, h, w);
  kernels_.average(first, second, w, h, to);
  return {to, w};
}

void Compensator::make(History& history, const BlockMotion& motion, int frame, Limits limits, int slot) {
  const int height = history.height(), width = history.width();
  const std::ptrdiff_t stride = history.stride();
  const Patch from{history.row(frame - 1, 0), stride};
  std::int16_t* to = history.slot_row(slot, 0);
  for_runs(motion, frame, height, width, [&](int x, int y, int w, int h, MotionVector v) {
    const int fx = x + (v.x >> 2) - kBefore, fy = y + (v.y >> 2) - kBefore;
    Patch p = from.moved(fy, fx);
    if (fx < 0 || fy < 0 || fx + w + kReach > width || fy + h + kReach > height) {
      std::int16_t* e = room(edge_, h + kReach, w + kReach);
      p = {e, w + kReach};
      for (int r = 0; r < h + kReach; ++r, e += w + kReach) {
        const std::int16_t* row = from.at + std::clamp(fy + r, 0, height - 1) * stride;
        for (int c = 0; c < w + kReach; ++c) e[c] = row[std::clamp(fx + c, 0, width - 1)];
      }
    }
    p = between(p.moved(kBefore, kBefore), v.y & 3, v.x & 3, w, h, limits);
    for (int r = 0; r < h; ++r)
      std::memcpy(to + (y + r) * stride + x, p.at + r * p.stride, static_cast<std::size_t>(w) * sizeof *to);
  });
  for (int y = 0; y < height; ++y) history.end_moved_row(history.slot_row(slot, y));
}

void Compensator::move_errors(History& history, const BlockMotion& motion, int frame) {
  const int height = history.height(), width = history.width();
  for_runs(motion, frame, height, width, [&](int x, int y, int w, int h, MotionVector v) {
    const int dx = (v.x + 2) >> 2, dy = (v.y + 2) >> 2;
    for (int r = y; r < y + h; ++r) {
      const std::uint16_t* from = history.errors(frame - 1, std::clamp(r + dy, 0, height - 1));
      std::uint16_t* to = history.moved_errors(r);
      if (x + dx >= 0 && x + dx + w <= width)
        std::memcpy(to + x, from + x + dx, static_cast<std::size_t>(w) * sizeof *to);
      else
        for (int c = x; c < x + w; ++c) to[c] = from[std::clamp(c + dx, 0, width - 1)];
    }
  });
  for (int y = 0; y < height; ++y) history.end_moved_errors(y);
}

}  // namespace trivelet::prediction
