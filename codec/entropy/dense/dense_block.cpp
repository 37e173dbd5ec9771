// Memory of a block's padded arrays, quantisation into them, and the planes of all sets (dense_block.h).
#include "codec/entropy/dense/dense_block.h"

#include <algorithm>
#include <bit>

#include "codec/base/lane_sums.h"
#include "codec/entropy/dense/coefficient_kernels.h"

namespace trivelet::dense {

namespace {

int half(int n) { return (n + 1) / 2; }

// Zeroes `size` elements. The constant zero makes this a memset; a value passed in would not.
template <class T>
void clear(std::vector<T>& values, std::size_t at, std::size_t size) {
  std::fill_n(values.data() + at, size, T{0});
}

template <class T>
void make_room(std::vector<T>& values, std::size_t size) {
  if (values.size() < size) values.resize(size);
}

// Clears the frames and rows [-1, n] of one orientation's padded array, which begins at `at`.
template <class T>
void clear_padded(std::vector<T>& values, std::size_t at, std::ptrdiff_t frame, std::ptrdiff_t stride, int frames,
                  int rows) {
  if (frame == (rows + 2) * stride) {
    clear(values, at, static_cast<std::size_t>((frames + 2) * frame));
    return;
  }
  for (int t = 0; t < frames + 2; ++t, at += static_cast<std::size_t>(frame))
    clear(values, at, static_cast<std::size_t>((rows + 2) * stride));
}

}  // namespace

// A block at the border of a picture, or of a small picture, exists only in part. Beyond that part only adjacent groups
// and coefficients are read: the groups around an existing group, in all orientations, and the coefficients next to
// those of existing groups.
void Level::reset(int planes_needed) {
  top = planes_needed;
  const auto coefficients = static_cast<std::size_t>(orientations * span);
  const auto groups = static_cast<std::size_t>(orientations * group_span);
  make_room(known, coefficients);
  make_room(sign, coefficients);
  make_room(active, groups);
  make_room(open, groups);
  make_room(done, rows());
  const auto quads = static_cast<std::size_t>(orientations * frames * groups_y * words);
  make_room(some, quads);
  make_room(all, quads);
  make_room(mask, rows() * static_cast<std::size_t>(planes_needed));
  clear(done, 0, rows());
  clear(some, 0, quads);
  clear(all, 0, quads);
  int groups_of_frames = 0;
  int groups_of_rows = 0;
  for (int o = 0; o < orientations; ++o) {
    groups_of_frames = std::max(groups_of_frames, exists[o].t);
    groups_of_rows = std::max(groups_of_rows, exists[o].y);
  }
  const int depth = arity == 8 ? 2 : 1;
  for (int o = 0; o < orientations; ++o) {
    const auto at = static_cast<std::size_t>(o * span);
    const auto group = static_cast<std::size_t>(o * group_span);
    clear_padded(known, at, frame, stride, depth * groups_of_frames, 2 * groups_of_rows);
    clear_padded(sign, at, frame, stride, depth * groups_of_frames, 2 * groups_of_rows);
    clear_padded(active, group, group_frame, group_stride, groups_of_frames, groups_of_rows);
    clear_padded(open, group, group_frame, group_stride, groups_of_frames, groups_of_rows);
  }
}

void Block::lay_out(const BlockGrid& grid, int by, int bx) {
  families.resize(grid.families().size());
  for (std::size_t b = 0; b < families.size(); ++b) {
    const Family& f = grid.families()[b];
    BlockFamily& out = families[b];
    out.parent = f.parent;
    out.used = f.frames > 0;
    out.parent_frame = f.parent_frame;
    out.levels.resize(f.levels.size());
    int frames = f.root_frames;
    for (std::size_t k = 0; k < f.levels.size(); ++k) {
      const TreeLevel& tree = f.levels[k];
      Level& l = out.levels[k];
      l.arity = tree.arity;
      l.orientations = tree.orientations;
      l.groups_t = k <= 1 ? f.root_frames : frames;
      l.groups_y = l.groups_x = tree.side / 2;
      frames = l.groups_t * (l.arity == 8 ? 2 : 1);
      l.frames = frames;
      l.words = (l.groups_x + 63) / 64;
      l.stride = 2 * l.groups_x + 2;
      l.frame = (2 * l.groups_y + 2) * l.stride;
      l.span = (frames + 2) * l.frame;
      l.group_stride = l.groups_x + 2;
      l.group_frame = (l.groups_y + 2) * l.group_stride;
      l.group_span = (l.groups_t + 2) * l.group_frame;
      for (int i = 0; i < l.orientations; ++i) {
        const Subband& band =
            grid.table().at(static_cast<int>(b), static_cast<int>(k), BlockGrid::orientation(static_cast<int>(k), i));
        const BlockGrid::Patch p = grid.patch(band, by, bx);
        l.valid[i] = {std::min(band.shape.frames, frames), p.height, p.width};
        if (l.valid[i].empty()) l.valid[i] = {};
      }
    }
    // A group exists where it has a valid coefficient or an existing child. Both sets are boxes, and the children of a
    // level reach at least as far as its own coefficients.
    for (std::size_t k = f.levels.size(); k-- > 0;) {
      Level& l = out.levels[k];
      const bool octets = l.arity == 8;
      for (int i = 0; i < l.orientations; ++i) {
        Box& e = l.exists[i];
        const Box& v = l.valid[i];
        e = {octets ? half(v.t) : v.t, half(v.y), half(v.x)};
        if (k == 0 || k + 1 == f.levels.size()) continue;
        const Box& c = out.levels[k + 1].exists[i];
        if (c.empty()) continue;
        e = {std::max(e.t, octets ? half(c.t) : c.t), std::max(e.y, half(c.y)), std::max(e.x, half(c.x))};
      }
    }
  }
}

namespace {

// Computes the magnitudes of a patch and per group the planes of its coefficients. Returns the energy of the patch,
// weighted per frame.
template <class T>
double load_patch(Level& l, int o, const Field<T>& v, float inverse_step, const CoefficientKernels<T>& kernels,
                  double weight, const double* frame_weight, std::vector<std::uint32_t>& joined, double sum) {
  const Box& valid = l.valid[o];
  const int depth = l.arity == 8 ? 2 : 1;
  const auto columns = static_cast<std::size_t>(2 * l.groups_x);
  joined.resize(columns);
  LaneSums energy[2];  // of the frames of a group
  for (int t = 0; t < l.exists[o].t; ++t) {
    const int frames = std::min(depth, valid.t - t * depth);
    for (int y = 0; y < l.exists[o].y; ++y) {
      std::fill(joined.begin(), joined.end(), 0u);
      std::uint32_t any = 0;
      for (int f = 0; f < frames && 2 * y < valid.y; ++f) {
        const int frame = t * depth + f;
        const bool two = 2 * y + 1 < valid.y;
        std::uint32_t* out = l.magnitude.data() + l.at(o, frame, 2 * y, 0);
        any |= kernels.quantise(v.row(frame, 2 * y), two ? v.row(frame, 2 * y + 1) : nullptr, valid.x, inverse_step,
                                out, out + l.stride, joined.data(), energy[f].lanes());
      }
      std::uint8_t* planes = l.planes.data() + l.group(o, t, y, 0);
      if (any == 0) {
        std::fill(planes, planes + l.groups_x, std::uint8_t{0});
        continue;
      }
      for (int x = 0; x < l.groups_x; ++x)
        planes[x] = static_cast<std::uint8_t>(
            std::bit_width(joined[static_cast<std::size_t>(2 * x)] | joined[static_cast<std::size_t>(2 * x + 1)]));
    }
    for (int f = 0; f < frames; ++f)
      sum += (frame_weight ? weight * frame_weight[t * depth + f] : weight) * energy[f].take();
  }
  return sum;
}

// Joins the planes of child groups into their parents' groups (both of level k >= 1).
void join_children(Level& l, const Level& c, int o) {
  const int depth = l.arity == 8 ? 2 : 1;
  const Box& e = c.exists[o];
  for (int t = 0; t < e.t; ++t)
    for (int y = 0; y < e.y; ++y) {
      const std::uint8_t* in = c.planes.data() + c.group(o, t, y, 0);
      const std::size_t row = l.group(o, t / depth, y / 2, 0);
      for (int x = 0; x < e.x; ++x) {
        std::uint8_t& below = l.planes_below[row + static_cast<std::size_t>(x / 2)];
        below = std::max(below, in[x]);
      }
    }
  for (int t = 0; t < l.exists[o].t; ++t)
    for (int y = 0; y < l.exists[o].y; ++y) {
      const std::size_t row = l.group(o, t, y, 0);
      for (std::size_t x = row; x < row + static_cast<std::size_t>(l.exists[o].x); ++x)
        l.planes[x] = std::max(l.planes[x], l.planes_below[x]);
    }
}

}  // namespace

template <class T>
void Block::load(const BlockGrid& grid, int by, int bx, const Field<T>& field, const float* inverse_steps,
                 const ErrorWeights* weights, SimdLevel simd, std::vector<std::uint8_t>& top,
                 std::vector<double>& energy) {
  const CoefficientKernels<T>& kernels = coefficient_kernels<T>(simd);
  std::vector<std::uint32_t> joined;
  const auto resolutions = static_cast<std::size_t>(grid.resolutions());
  top.assign(families.size() * resolutions, 0);
  energy.assign(families.size() * resolutions, 0);
  for (std::size_t b = families.size(); b-- > 0;) {
    BlockFamily& f = families[b];
    if (!f.used) continue;
    for (std::size_t k = f.levels.size(); k-- > 0;) {
      Level& l = f.levels[k];
      const auto groups = static_cast<std::size_t>(l.orientations) * l.group(0, l.groups_t, 0, 0);
      l.magnitude.resize(static_cast<std::size_t>(l.orientations * l.span));
      l.planes.assign(groups, 0);
      l.planes_below.assign(groups, 0);
      for (int i = 0; i < l.orientations; ++i) {
        const int bi = static_cast<int>(b);
        const int ki = static_cast<int>(k);
        const Subband& band = grid.table().at(bi, ki, BlockGrid::orientation(ki, i));
        const std::size_t slot = subband_slot(grid, bi, ki, i);
        double& sum = energy[b * resolutions + k];
        sum = load_patch(l, i, patch_view(grid, by, bx, field, band), inverse_steps ? inverse_steps[slot] : 1.0f,
                         kernels, weights ? weights->subband[slot] : 1.0,
                         weights && !weights->frame.empty() ? weights->frame[b].data() : nullptr, joined, sum);
        if (k > 0 && k + 1 < f.levels.size()) join_children(l, f.levels[k + 1], i);
      }
      if (k == 0 && f.levels.size() > 1)
        for (int i = 0; i < f.levels[1].orientations; ++i) {
          const Level& c = f.levels[1];
          const std::uint8_t* in = c.planes.data() + c.group(i, 0, 0, 0);
          for (std::size_t g = 0; g < groups; ++g) l.planes[g] = std::max(l.planes[g], in[g]);
        }
      if (k > 0 && !l.planes.empty()) top[b * resolutions + k] = *std::max_element(l.planes.begin(), l.planes.end());
    }
  }
  // Root groups also belong to temporal trees: their sets include those of their temporal children.
  for (std::size_t b = families.size(); b-- > 0;) {
    BlockFamily& f = families[b];
    if (!f.used) continue;
    Level& l = f.levels[0];
    const std::size_t per_frame = l.group(0, 1, 0, 0);
    if (f.parent >= 0) {
      Level& up = families[static_cast<std::size_t>(f.parent)].levels[0];
      for (std::size_t t = 0; t < f.parent_frame.size(); ++t)
        for (std::size_t i = 0; i < per_frame; ++i) {
          std::uint8_t& p = up.planes[static_cast<std::size_t>(f.parent_frame[t]) * per_frame + i];
          p = std::max(p, l.planes[t * per_frame + i]);
        }
    }
    if (!l.planes.empty()) top[b * resolutions] = *std::max_element(l.planes.begin(), l.planes.end());
  }
}

template void Block::load(const BlockGrid&, int, int, const Field<float>&, const float*, const ErrorWeights*, SimdLevel,
                          std::vector<std::uint8_t>&, std::vector<double>&);
template void Block::load(const BlockGrid&, int, int, const Field<std::int32_t>&, const float*, const ErrorWeights*,
                          SimdLevel, std::vector<std::uint8_t>&, std::vector<double>&);

}  // namespace trivelet::dense
