// Computes the distortion of every plane of a block from its coefficients; see fast_pass_table.h.
#include "codec/entropy/fast/fast_pass_table.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <type_traits>

#include "codec/base/lane_sums.h"
#include "codec/entropy/dense/dense_block.h"

namespace trivelet {

namespace {

using dense::kMaxPlanes;

struct Sums {
  double energy = 0;
  double gain[kMaxPlanes] = {};
};

// Columns that have partial sums of their own: each two share one.
constexpr int kColumns = 2 * static_cast<int>(LaneSums::kLanes);

// Adds the gains of one coefficient of at least a step.
void add_gains(double m, std::uint32_t known, int x, const double* offset, LaneSums* gain) {
  double old = 0;
  for (int p = std::bit_width(known) - 1; p >= 0; --p) {
    const double now = static_cast<double>(known >> p << p) + offset[p];
    gain[p].add(x, (now - old) * (2 * m - old - now));
    old = now;
  }
}

// Adds up to kColumns coefficients of a row, from a multiple of kColumns on. Returns the number of their planes. Most
// coefficients are below a step and add energy alone, which takes no branch; each partial sum is added to in the order
// of columns, as LaneSums::add() would.
template <class T>
int add_columns(const T* row, int count, float inverse_step, const double* offset, LaneSums& energy, LaneSums* gain) {
  using Magnitude = decltype(limited_magnitude(T(), inverse_step));
  Magnitude magnitude[kColumns] = {};
  Magnitude largest = 0;
  for (int i = 0; i < count; ++i) {
    // A sign is as good as random, so a branch on it would be predicted wrongly for every second coefficient.
    if constexpr (std::is_same_v<T, float>)
      magnitude[i] = limited_magnitude(std::fabs(row[i]), inverse_step);
    else
      magnitude[i] = limited_magnitude(row[i], inverse_step);
    largest = std::max(largest, magnitude[i]);
  }
  double* const lanes = energy.lanes();
  for (int i = 0; i < kColumns / 2; ++i) {
    const auto even = static_cast<double>(magnitude[2 * i]);
    const auto odd = static_cast<double>(magnitude[2 * i + 1]);
    lanes[i] = lanes[i] + even * even + odd * odd;
  }
  if (largest < 1) return 0;
  for (int i = 0; i < count; ++i)
    if (magnitude[i] >= 1)
      add_gains(static_cast<double>(magnitude[i]), static_cast<std::uint32_t>(magnitude[i]), i, offset, gain);
  return std::bit_width(static_cast<std::uint32_t>(largest));
}

template <class T>
void add(const Field<T>& patch, float inverse_step, const double* offset, double weight, const double* frame_weight,
         Sums& sums) {
  LaneSums energy;
  LaneSums gain[kMaxPlanes];
  for (int t = 0; t < patch.shape.frames; ++t) {
    const double w = frame_weight ? weight * frame_weight[t] : weight;
    int planes = 0;
    for (int y = 0; y < patch.shape.height; ++y)
      for (int x = 0; x < patch.shape.width; x += kColumns)
        planes = std::max(planes, add_columns(patch.row(t, y) + x, std::min(kColumns, patch.shape.width - x),
                                              inverse_step, offset, energy, gain));
    sums.energy += w * energy.take();
    for (int p = 0; p < planes; ++p) sums.gain[p] += w * gain[p].take();
  }
}

}  // namespace

template <class T>
void fill_fast_pass_table(const BlockGrid& grid, int by, int bx, const Field<T>& field, const StepTable* steps,
                          int centroid, const ErrorWeights& weights, const LayerPlan& plan, const CodedBlock& block,
                          PassTable& table) {
  double offset[kMaxPlanes];
  for (int p = 0; p < kMaxPlanes; ++p) {
    if constexpr (std::is_same_v<T, float>)
      offset[p] = static_cast<double>(reconstruction_offset(centroid, p));
    else
      offset[p] = integer_reconstruction_offset(centroid, p);
  }
  const std::size_t segments = block.top.size();
  table.first.assign(segments, 0);
  table.passes.clear();
  table.energy.assign(segments, 0);
  for (int b = 0; b < grid.table().temporal_bands(); ++b)
    for (int k = 0; k < grid.resolutions(); ++k) {
      const auto s = static_cast<std::size_t>(segment_index(grid, b, k));
      Sums sums;
      for (int i = 0; i < (k == 0 ? 1 : grid.table().orientations()); ++i) {
        const Subband& band = grid.table().at(b, k, BlockGrid::orientation(k, i));
        const std::size_t slot = subband_slot(grid, b, k, i);
        add(patch_view(grid, by, bx, field, band), steps ? steps->inverse[slot] : 1.0f, offset, weights.subband[slot],
            weights.frame.empty() ? nullptr : weights.frame[static_cast<std::size_t>(b)].data(), sums);
      }
      table.first[s] = static_cast<std::uint32_t>(table.passes.size());
      table.energy[s] = sums.energy;
      std::uint32_t bits = 0;
      for (int p = block.top[s] - 1; p >= 0; --p) {
        bits += block.bits[s * static_cast<std::size_t>(plan.layers) + static_cast<std::size_t>(plan.layers - 1 - p)];
        table.passes.push_back({bits, sums.gain[p]});
      }
    }
}

template void fill_fast_pass_table(const BlockGrid&, int, int, const Field<float>&, const StepTable*, int,
                                   const ErrorWeights&, const LayerPlan&, const CodedBlock&, PassTable&);
template void fill_fast_pass_table(const BlockGrid&, int, int, const Field<std::int32_t>&, const StepTable*, int,
                                   const ErrorWeights&, const LayerPlan&, const CodedBlock&, PassTable&);

}  // namespace trivelet
