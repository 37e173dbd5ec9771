// Counts magnitudes by cells and sums their bits (size_estimate.h).
#include "codec/entropy/fast/size_estimate.h"

#include <bit>
#include <cmath>

#include "codec/entropy/fast/size_kernels.h"

namespace trivelet {

namespace {

// What the fast profile takes of the estimated bits.
constexpr double kTaken = 1 / 1.036;

/// A row of cells.
class CellRow {
 public:
  CellRow(const Field<float>& field, const SubbandTable& table, int b, int k, SimdLevel simd)
      : kernels_(size_kernels(simd)),
        field_(field),
        table_(table),
        side_(cell_side(k, table.resolutions())),
        bands_(orientations_of(table, b, k)) {}

  /// Adds the bits of the cells of row `number`.
  void add(int number, const StepTable& steps, const std::vector<std::uint32_t>& entropy, SizeEstimate& out) const {
    int widest = 0;
    for (const Subband* band : bands_) widest = std::max(widest, band->shape.width);
    const auto cells = static_cast<std::size_t>((widest + side_ - 1) / side_);
    std::vector<std::uint32_t> counts(cells * 2 * kMagnitudeClasses);
    std::vector<std::uint32_t> all(cells);
    const int log2_side = std::countr_zero(static_cast<unsigned>(side_));
    const int every = size_rows(side_);
    for (std::size_t i = 0; i < bands_.size(); ++i) {
      const Subband& band = *bands_[i];
      const Field<float> view = subband_view(field_, band);
      const float inverse_step = steps.inverse[number_of(table_, band)];
      const int end = std::min(view.shape.height, (number + 1) * side_);
      std::uint32_t rows = 0;
      for (int t = 0; t < view.shape.frames; ++t)
        for (int y = number * side_ + first_size_row(t, static_cast<int>(i), every); y < end; y += every, ++rows)
          kernels_.count_row(view.row(t, y), view.shape.width, inverse_step, log2_side, counts.data());
      for (std::size_t c = 0; c < cells; ++c)
        all[c] +=
            rows * static_cast<std::uint32_t>(std::clamp(view.shape.width - static_cast<int>(c) * side_, 0, side_));
    }
    for (std::size_t c = 0; c < cells; ++c) {
      std::uint32_t* const cell = counts.data() + c * 2 * kMagnitudeClasses;
      int end = 1;  // behind the largest class
      for (int i = 1; i < kMagnitudeClasses; ++i)
        if ((cell[i] += cell[kMagnitudeClasses + i]) > 0) end = i + 1;
      for (int i = 0; i < std::min(SizeEstimate::kSteps, end - 1); ++i)  // else there is nothing at that step
        out.bits[static_cast<std::size_t>(i)] +=
            static_cast<unsigned>(every) * cell_bits(cell, end, all[c], i, entropy.data());
    }
  }
  int count() const {
    int highest = 0;
    for (const Subband* band : bands_) highest = std::max(highest, band->shape.height);
    return (highest + side_ - 1) / side_;
  }

 private:
  const SizeKernels& kernels_;
  const Field<float>& field_;
  const SubbandTable& table_;
  int side_;
  std::vector<const Subband*> bands_;
};

}  // namespace

std::vector<const Subband*> orientations_of(const SubbandTable& table, int b, int k) {
  if (k == 0) return {&table.at(b, 0, 0)};
  std::vector<const Subband*> bands;
  for (int o = 1; o <= table.orientations(); ++o) bands.push_back(&table.at(b, k, o));
  return bands;
}

std::vector<std::uint32_t> entropy_table(std::uint32_t most) {
  std::vector<std::uint32_t> table(static_cast<std::size_t>(most) + 1);
  for (std::uint32_t n = 2; n <= most; ++n)
    table[n] = static_cast<std::uint32_t>(std::lround(n * std::log2(n) * (1 << SizeEstimate::kFraction)));
  return table;
}

std::uint32_t most_of_a_cell(const SubbandTable& table) {
  std::size_t most = 0;
  for (int b = 0; b < table.temporal_bands(); ++b)
    for (int k = 0; k < table.resolutions(); ++k) {
      const auto side = static_cast<std::size_t>(cell_side(k, table.resolutions()));
      std::size_t sum = 0;
      for (const Subband* band : orientations_of(table, b, k))
        sum += static_cast<std::size_t>(band->shape.frames) * kCellRows * side;
      most = std::max(most, sum);
    }
  return static_cast<std::uint32_t>(most);
}

void estimate_sizes(const Field<float>& coefficients, const SubbandTable& table, const StepTable& steps,
                    ThreadPool& pool, SimdLevel simd, SizeEstimate& estimate) {
  const std::vector<std::uint32_t> entropy = entropy_table(most_of_a_cell(table));
  struct Task {
    std::size_t cells;
    int row;
  };
  std::vector<CellRow> cells;
  std::vector<Task> tasks;
  for (int b = 0; b < table.temporal_bands(); ++b)
    for (int k = 0; k < table.resolutions(); ++k) {
      cells.emplace_back(coefficients, table, b, k, simd);
      for (int row = 0; row < cells.back().count(); ++row) tasks.push_back({cells.size() - 1, row});
    }
  std::vector<SizeEstimate> sums(static_cast<std::size_t>(pool.threads()));
  pool.parallel_for(static_cast<int>(tasks.size()), [&](int i, int worker) {
    const Task& task = tasks[static_cast<std::size_t>(i)];
    cells[task.cells].add(task.row, steps, entropy, sums[static_cast<std::size_t>(worker)]);
  });
  for (const SizeEstimate& sum : sums)
    for (std::size_t i = 0; i < sum.bits.size(); ++i) estimate.bits[i] += sum.bits[i];
}

// -------------------------------------------------------------------------------------------------------------- curve

namespace {

// log2 of the step of an index: 1, 1.5, 2, 3, …
double octaves_of(int index) { return index / 2 + (index % 2 != 0 ? std::log2(1.5) : 0); }

}  // namespace

void SizeCurve::add(const SizeEstimate& estimate, double weight) {
  step_ = estimate.step;
  for (std::size_t i = 0; i < bytes_.size(); ++i)
    bytes_[i] += weight * kTaken / 8 / (1 << SizeEstimate::kFraction) * static_cast<double>(estimate.bits[i]);
}

double SizeCurve::bytes(double step) const {
  constexpr double kNothing = 1e-9;
  const double octaves = std::log2(step / step_);
  int i = 0;
  while (i + 2 < SizeEstimate::kSteps && octaves > octaves_of(i + 1)) ++i;
  const auto n = static_cast<std::size_t>(i);
  const double low = std::log2(std::max(bytes_[n], kNothing));
  const double high = std::log2(std::max(bytes_[n + 1], kNothing));
  const double part = (octaves - octaves_of(i)) / (octaves_of(i + 1) - octaves_of(i));
  return std::exp2(low + part * (high - low));
}

}  // namespace trivelet
