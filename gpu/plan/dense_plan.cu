// Computes the tables of the dense coder's kernels on the host, and uploads them.

#include "gpu/plan/dense_plan.h"

#include <algorithm>
#include <numeric>

#include "codec/entropy/dense/dense_segment.h"

namespace trivelet::gpu {
namespace {

constexpr std::uint64_t kValueAlignment = 64;  // values of a level begin at multiples of this
std::uint64_t aligned_values(std::uint64_t n) { return (n + kValueAlignment - 1) / kValueAlignment * kValueAlignment; }
std::uint32_t multiple_of_4(std::uint32_t n) { return (n + 3) / 4 * 4; }

}  // namespace

DensePlan::DensePlan(const StreamHeader& header, const StreamGeometry& geometry, const TreePlan& tree,
                     const Stream& stream)
    : tree_(&tree) {
  const bool dyadic = header.layout == Layout::kDyadic;
  const bool weighted = !dyadic && header.temporal_levels > 0;
  for (int c = 0; c < geometry.components(); ++c) add_component(geometry.grid(c), weighted);
  upload_orders(stream);

  const dense::TableSet set = dyadic            ? header.lossless ? dense::kDyadicInteger : dense::kDyadicReal
                              : header.lossless ? dense::kT2dInteger
                                                : dense::kT2dReal;
  std::vector<std::uint32_t> start;
  for (const dense::State& s : dense::start_tables(set))
    start.push_back(s.one | static_cast<std::uint32_t>(s.seen) << 16);
  std::vector<std::uint16_t> rates;
  for (const std::int32_t r : dense::kRates.of) rates.push_back(static_cast<std::uint16_t>(r));
  std::vector<std::uint8_t> energy_class;
  for (std::uint32_t i = 0; i < 256; ++i) energy_class.push_back(static_cast<std::uint8_t>(dense::energy_class(i)));
  d_levels_ = to_device(levels_, stream);
  d_start_ = to_device(start, stream);
  d_rates_ = to_device(rates, stream);
  d_energy_class_ = to_device(energy_class, stream);
  stream.synchronize();
}

void DensePlan::add_component(const BlockGrid& grid, bool weighted) {
  dense::Block blocks[4];
  for (int cls = 0; cls < 4; ++cls)
    blocks[cls].lay_out(grid, cls & 2 ? grid.rows() - 1 : 0, cls & 1 ? grid.columns() - 1 : 0);
  for (int b = 0; b < grid.table().temporal_bands(); ++b) {
    const std::int32_t frame_weight = weighted ? static_cast<std::int32_t>(frame_weights_) : -1;
    if (weighted) frame_weights_ += static_cast<std::uint32_t>(grid.table().frames(b));
    for (int k = 0; k < grid.resolutions(); ++k) {
      levels_.push_back(make_level(grid, blocks, b, k));
      levels_.back().frame_weight = frame_weight;
    }
  }
  subbands_ += static_cast<std::uint32_t>(grid.table().all().size());
}

DenseLevel DensePlan::make_level(const BlockGrid& grid, const dense::Block (&blocks)[4], int b, int k) {
  const dense::Level& from = blocks[0].families[static_cast<std::size_t>(b)].levels[static_cast<std::size_t>(k)];
  DenseLevel d{};
  d.groups_t = from.groups_t;
  d.groups = from.groups_x;
  d.frames = from.frames;
  while (1 << d.log2_groups < d.groups) ++d.log2_groups;
  d.depth = from.arity == 8 ? 2 : 1;
  d.finest = k > 0 && k + 1 == grid.resolutions();
  d.value = values_;
  d.group = groups_;
  d.quad = quads_;
  d.frame_sum = frame_sums_;
  const auto n = static_cast<std::uint32_t>(from.orientations);
  const auto side = static_cast<std::uint32_t>(2 * d.groups), groups = static_cast<std::uint32_t>(d.groups);
  const auto groups_t = static_cast<std::uint32_t>(d.groups_t), frames = static_cast<std::uint32_t>(d.frames);
  d.value_span = n * frames * side * side;
  d.group_span = multiple_of_4(n * groups_t * groups * groups);
  d.quad_span = multiple_of_4(n * frames * groups * groups);
  d.frame_sum_span = n * frames;
  const auto count = static_cast<std::uint64_t>(grid.blocks());
  values_ += aligned_values(d.value_span * count);
  groups_ += aligned_values(d.group_span * count);
  quads_ += aligned_values(d.quad_span * count);
  frame_sums_ += d.frame_sum_span * count;
  const int rc = dense::resolution_class(k, grid.resolutions());
  for (int i = 0; i < from.orientations; ++i)
    d.table[i] = static_cast<std::uint32_t>(
        (rc * dense::kOrientationClasses + dense::orientation_class(b, BlockGrid::orientation(k, i))) *
        dense::kContexts);
  d.slot = subbands_ + static_cast<std::uint32_t>(subband_slot(grid, b, k, 0));
  for (int cls = 0; cls < 4; ++cls) {
    const dense::Level& l = blocks[cls].families[static_cast<std::size_t>(b)].levels[static_cast<std::size_t>(k)];
    for (int i = 0; i < from.orientations; ++i) {
      d.valid[cls][i] = {l.valid[i].t, l.valid[i].y, l.valid[i].x};
      d.exists[cls][i] = {l.exists[i].t, l.exists[i].y, l.exists[i].x};
    }
  }
  return d;
}

void DensePlan::upload_orders(const Stream& stream) {
  const TreePlan& tree = *tree_;
  std::vector<std::uint32_t> order(tree.segments()), size(tree.segments()), levels_by_resolution;
  for (std::size_t i = 0; i < levels_.size(); ++i) {
    const DeviceLevel& l = tree.levels()[i];
    for (int block = 0; block < l.rows * l.columns; ++block)
      size[l.first_segment + static_cast<std::uint32_t>(block)] = levels_[i].value_span;
  }
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return size[a] > size[b]; });
  // The lowest bands depend on each other by family; the other segments follow them, coarse to fine.
  std::vector<std::uint32_t> parents_first(tree.segments());
  std::iota(parents_first.begin(), parents_first.end(), 0u);
  std::vector<int> family(tree.first_segment(1));
  for (const DeviceLevel& l : tree.levels())
    if (l.k == 0) std::fill_n(family.begin() + l.first_segment, l.rows * l.columns, l.family);
  std::stable_sort(parents_first.begin(), parents_first.begin() + tree.first_segment(1),
                   [&](std::uint32_t a, std::uint32_t b) { return family[a] < family[b]; });
  for (int k = 0; k < tree.resolutions(); ++k) {
    first_level_.push_back(static_cast<std::uint32_t>(levels_by_resolution.size()));
    for (std::size_t i = 0; i < levels_.size(); ++i)
      if (tree.levels()[i].k == k) levels_by_resolution.push_back(static_cast<std::uint32_t>(i));
  }
  first_level_.push_back(static_cast<std::uint32_t>(levels_by_resolution.size()));
  d_parents_first_ = to_device(parents_first, stream);
  d_order_ = to_device(order, stream);
  d_levels_by_resolution_ = to_device(levels_by_resolution, stream);
  stream.synchronize();
}

DenseTables DensePlan::tables() const {
  return {d_levels_.data(),
          d_start_.data(),
          d_rates_.data(),
          d_energy_class_.data(),
          d_parents_first_.data(),
          d_order_.data(),
          d_levels_by_resolution_.data()};
}

std::uint32_t DensePlan::most_frames(int k, bool by_group) const {
  std::uint32_t most = 0;
  for (std::size_t i = 0; i < levels_.size(); ++i) {
    const DeviceLevel& l = tree_->levels()[i];
    if (l.k != k) continue;
    const int frames = by_group ? levels_[i].groups_t : levels_[i].frames;
    most = std::max(most, static_cast<std::uint32_t>(l.rows * l.columns * l.orientations * frames));
  }
  return most;
}

int DensePlan::orientations(int k) const {
  int n = 1;
  for (const DeviceLevel& l : tree_->levels())
    if (l.k == k) n = std::max(n, l.orientations);
  return n;
}

std::size_t DensePlan::device_bytes() const {
  return d_levels_.size() * sizeof(DenseLevel) +
         (d_start_.size() + d_order_.size() + d_levels_by_resolution_.size()) * sizeof(std::uint32_t) + 1024;
}

}  // namespace trivelet::gpu
