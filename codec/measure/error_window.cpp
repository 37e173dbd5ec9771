// Squared errors of a window: sums of its coefficients' differences, weighted per axis (error_window.h).
#include "codec/measure/error_window.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "codec/entropy/dense/rounding.h"
#include "codec/transform/colour.h"
#include "codec/transform/dwt.h"
#include "codec/transform/frame_gains.h"

namespace trivelet {

namespace {

constexpr std::size_t kPartialSums = 8;  // of a row, summed in the order of columns

// Squared differences of two rows: plain, and weighted by each of two rows of factors.
struct RowSums {
  double plain = 0;
  double first = 0;
  double second = 0;
};

template <class T>
RowSums squared_differences(const T* a, const T* b, const double* first, const double* second, int n) {
  double plain[kPartialSums] = {};
  double by_first[kPartialSums] = {};
  double by_second[kPartialSums] = {};
  const auto add = [&](int x, std::size_t lane) {
    const double d = static_cast<double>(a[x]) - static_cast<double>(b[x]);
    plain[lane] += d * d;
    by_first[lane] += d * d * first[x];
    by_second[lane] += d * d * second[x];
  };
  int x = 0;
  for (; x + static_cast<int>(kPartialSums) <= n; x += static_cast<int>(kPartialSums))
    for (std::size_t i = 0; i < kPartialSums; ++i) add(x + static_cast<int>(i), i);
  for (std::size_t i = 0; x < n; ++x, ++i) add(x, i);
  RowSums out;
  for (std::size_t i = 0; i < kPartialSums; ++i) {
    out.plain += plain[i];
    out.first += by_first[i];
    out.second += by_second[i];
  }
  return out;
}

// An axis of a subband: its number of splits, and whether it is the high band of the last one.
struct Split {
  int levels = 0;
  bool high = false;
};
Split in_space(const Subband& s, const Decomposition& d, int bit) {
  return {s.resolution == 0 ? d.spatial_levels : d.spatial_levels - s.resolution + 1, (s.orientation & bit) != 0};
}
Split in_time(const Subband& s, const Decomposition& d) {
  if (d.layout == Layout::kDyadic) {
    const Split space = in_space(s, d, 4);
    return {space.high ? space.levels : std::min<int>(space.levels, d.temporal_levels), space.high};
  }
  return {s.temporal_band == 0 ? d.temporal_levels : d.temporal_levels - s.temporal_band + 1, s.temporal_band > 0};
}

}  // namespace

std::vector<double> AxisEnergies::of(int length, int levels, bool high, Wavelet wavelet) {
  const int step = 1 << levels;
  const int origin = high ? step / 2 : 0;
  const int count = high ? low_length(length, levels - 1) / 2 : low_length(length, levels);
  // Longer than any synthesis vector. Coefficients further from both ends have equal energies, so a shorter axis gives
  // them all.
  const int far = 4 * step;
  const int shorter = length < 3 * far ? length : 2 * far + length % step;
  const std::lock_guard lock(mutex_);
  const std::tuple key(length, levels, high, wavelet);
  if (const auto found = known_.find(key); found != known_.end()) return found->second;
  std::vector<double> energies;  // inserted when complete
  double inside = 0;
  for (int i = 0; i < count; ++i) {
    const int at = origin + i * step;
    const bool ends = shorter == length || at < far || at >= length - far;
    if (!ends && inside == 0) inside = synthesis_energy(shorter, levels, wavelet, far + origin);
    energies.push_back(!ends ? inside
                             : synthesis_energy(shorter, levels, wavelet, at < far ? at : at - (length - shorter)));
  }
  return known_.emplace(key, std::move(energies)).first->second;
}

std::vector<SampledError> errors_of_all(const std::vector<double>& predicted, const std::vector<double>& weights,
                                        const std::vector<std::vector<ErrorShare>>& shares) {
  std::vector<SampledError> errors;
  for (std::size_t p = 0; p < predicted.size(); ++p) {
    const auto actual_of = [&](std::size_t i) { return weights[i] * shares[i][p].measured * shares[i][p].borders(); };
    double actual = 0;
    double drawn = 0;  // the prediction for the same rectangles
    for (std::size_t i = 0; i < shares.size(); ++i) {
      actual += actual_of(i);
      drawn += weights[i] * shares[i][p].predicted;
    }
    if (!(drawn > 0)) {
      errors.push_back({predicted[p], 0});
      continue;
    }
    // The error of a ratio estimate: the residuals after the ratio is removed.
    const double ratio = actual / drawn;
    double squares = 0;
    for (std::size_t i = 0; i < shares.size(); ++i)
      squares += std::pow(actual_of(i) - ratio * weights[i] * shares[i][p].predicted, 2);
    errors.push_back({predicted[p] * ratio, predicted[p] * std::sqrt(squares) / drawn});
  }
  return errors;
}

template <class T>
ErrorWindow<T>::ErrorWindow(const StreamHeader& header, int component, const BlockGrid& grid,
                            const BlockGrid::Patch& where, float step, const std::vector<std::uint8_t>& frame_gains,
                            AxisEnergies& energies, std::vector<Shift> shifts)
    : header_(header),
      component_(component),
      grid_(grid),
      where_(where),
      table_({grid.table().shape().frames, where.height, where.width}, grid.table().decomposition(), header.lossless),
      steps_(grid.table(), header.lossless ? 1.0f : step, header.components[static_cast<std::size_t>(component)]),
      shifts_(std::move(shifts)) {
  const Shape& shape = table_.shape();
  memory_.resize(2 * shape.samples());
  coefficients_ = {memory_.data(), shape, shape.width, static_cast<std::ptrdiff_t>(shape.width) * shape.height};
  decoded_ = coefficients_;
  decoded_.data += shape.samples();
  shifts_.resize(static_cast<std::size_t>(shape.frames));
  for (int block = 0; block < grid.blocks(); ++block) {
    const BlockGrid::Patch e = grid.extent(block);
    const auto meets = [&](const Shift& s) {
      const int y = where.y + s.y, x = where.x + s.x;
      return e.y < y + where.height && e.y + e.height > y && e.x < x + where.width && e.x + e.width > x;
    };
    if (std::any_of(shifts_.begin(), shifts_.end(), meets)) blocks_.push_back(block);
  }
  const ErrorWeights weights = error_weights(header, component, grid.table(), step, frame_gains);
  for (std::size_t i = 0; i < table_.all().size(); ++i) bands_.push_back(band_of(i, weights, frame_gains, energies));
}

template <class T>
typename ErrorWindow<T>::Band ErrorWindow<T>::band_of(std::size_t i, const ErrorWeights& weights,
                                                      const std::vector<std::uint8_t>& frame_gains,
                                                      AxisEnergies& energies) const {
  const Subband& s = grid_.table().all()[i];
  const Shape& own = table_.all()[i].shape;
  const Decomposition& d = table_.decomposition();
  const Shape& picture = grid_.table().shape();
  const Split y = in_space(s, d, 2);
  const Split x = in_space(s, d, 1);
  Band band;
  band.y = where_.y >> y.levels;
  band.x = where_.x >> x.levels;
  band.levels_y = y.levels;
  band.levels_x = x.levels;
  if (s.shape.samples() == 0) return band;
  band.frame = frame_energies(s, energies);
  band.row = energies.of(where_.height, y.levels, y.high, d.spatial);
  band.column = energies.of(where_.width, x.levels, x.high, d.spatial);
  band.row_of_picture = energies.of(picture.height, y.levels, y.high, d.spatial);
  band.column_of_picture = energies.of(picture.width, x.levels, x.high, d.spatial);
  const double colour =
      header_.colour_transform && component_ < 3 ? kColourNorm[component_] * kColourNorm[component_] : 1.0;
  const double unit_step = header_.lossless ? 1.0 : static_cast<double>(steps_.step[i]);
  for (int f = 0; f < own.frames; ++f) {
    const auto n = static_cast<std::size_t>(f);
    const auto at = static_cast<std::size_t>(s.frame_origin + f * s.frame_step);
    const double gain = frame_gains.empty() ? 1.0 : frame_gains[at] / 64.0;
    const double more = weights.frame.empty() ? 1.0 : weights.frame[static_cast<std::size_t>(s.temporal_band)][n];
    band.predicted.push_back(weights.subband[i] / (unit_step * unit_step) * more);
    band.frame[n] *= colour / (gain * gain);
  }
  return band;
}

// With motion the temporal transform continues into the next GOP, so all coefficients of a level have the same norm.
template <class T>
std::vector<double> ErrorWindow<T>::frame_energies(const Subband& s, AxisEnergies& energies) const {
  const Decomposition& d = table_.decomposition();
  const Split t = in_time(s, d);
  if (d.temporal != Wavelet::kMotion) return energies.of(table_.shape().frames, t.levels, t.high, d.temporal);
  const double norm = synthesis_norm(d.temporal, header_.lossless, t.high, t.levels);
  return std::vector<double>(static_cast<std::size_t>(s.shape.frames), norm * norm);
}

template <class T>
void ErrorWindow<T>::round(float step) {
  if constexpr (std::is_floating_point_v<T>) {
    const StepTable steps(grid_.table(), step, header_.components[static_cast<std::size_t>(component_)]);
    std::vector<float> memory;
    for (std::size_t i = 0; i < bands_.size(); ++i)
      round_by_cost(subband_view(coefficients_, table_.all()[i]), steps.step[i], steps.inverse[i],
                    rounding_lambda(table_.all()[i], table_.decomposition()), memory);
  }
}

template <class T>
void ErrorWindow<T>::cut(const std::uint8_t* cuts, SimdLevel simd, ErrorShare& share) {
  for (const int block : blocks_)
    cut_block(BlockCut<T>(header_.profile, grid_, cuts + block * segment_count(grid_), header_.centroid,
                          header_.lossless ? nullptr : &steps_),
              block, simd, share);
}

template <class T>
void ErrorWindow<T>::cut_block(const BlockCut<T>& block, int number, SimdLevel simd, ErrorShare& share) {
  const CoefficientKernels<T>& kernels = coefficient_kernels<T>(simd);
  for (std::size_t i = 0; i < bands_.size(); ++i) {
    const Band& b = bands_[i];
    const Subband& picture_band = grid_.table().all()[i];
    const BlockGrid::Patch patch = grid_.patch(picture_band, number / grid_.columns(), number % grid_.columns());
    const Field<T> from = subband_view(coefficients_, table_.all()[i]);
    const Field<T> to = subband_view(decoded_, table_.all()[i]);
    const CutRow<T> row = block.row(i);
    for (int t = 0; t < from.shape.frames; ++t) {
      const Shift& shift = shifts_[static_cast<std::size_t>(picture_band.frame_origin + t * picture_band.frame_step)];
      const int top = b.y + (shift.y >> b.levels_y), beside = b.x + (shift.x >> b.levels_x);
      const int left = std::max(0, patch.x - beside);
      const int width = std::min(from.shape.width, patch.x - beside + patch.width) - left;
      const int bottom = std::min(from.shape.height, patch.y - top + patch.height);
      if (width <= 0) continue;
      for (int line = std::max(0, patch.y - top); line < bottom; ++line) {
        kernels.cut(row, from.row(t, line) + left, to.row(t, line) + left, width);
        const RowSums d = squared_differences(from.row(t, line) + left, to.row(t, line) + left, b.column.data() + left,
                                              b.column_of_picture.data() + beside + left, width);
        const double frame = b.frame[static_cast<std::size_t>(t)];
        share.predicted += b.predicted[static_cast<std::size_t>(t)] * d.plain;
        share.in_window += frame * b.row[static_cast<std::size_t>(line)] * d.first;
        share.in_picture += frame * b.row_of_picture[static_cast<std::size_t>(top + line)] * d.second;
      }
    }
  }
}

template class ErrorWindow<float>;
template class ErrorWindow<std::int32_t>;

}  // namespace trivelet
