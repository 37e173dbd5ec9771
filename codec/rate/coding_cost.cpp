// The cost estimate behind Motion::kAuto (see coding_cost.h).
#include "codec/rate/coding_cost.h"

#include <algorithm>
#include <type_traits>

#include "codec/rate/cost_kernels.h"
#include "codec/rate/rate_control.h"

namespace trivelet {

namespace {

// Squared error per bit for a step of 1: between the theoretical value for fine steps, 2 ln 2 / 12, and what rate
// control chooses for coarse steps.
constexpr double kErrorPerBit = 0.13;

double error_per_bit(const StreamHeader& header, float step) {
  return header.lossless ? 1.0 : kErrorPerBit * static_cast<double>(step) * static_cast<double>(step);
}

}  // namespace

template <class T>
CodingSums coding_sums(const Field<T>& band, int frame, float inverse_step, SimdLevel simd) {
  const CostKernels& kernels = cost_kernels(simd);
  CodingSums sums;
  for (int y = 0; y < band.shape.height; y += kCodingRows) {
    if constexpr (std::is_floating_point_v<T>)
      kernels.add_real(band.row(frame, y), band.shape.width, inverse_step, sums);
    else
      kernels.add_integer(band.row(frame, y), band.shape.width, inverse_step, sums);
  }
  return sums;
}

template CodingSums coding_sums(const Field<float>&, int, float, SimdLevel);
template CodingSums coding_sums(const Field<std::int32_t>&, int, float, SimdLevel);

double coding_cost(const StreamHeader& header, int frames, const std::vector<std::uint8_t>& frame_gains, float step,
                   const std::vector<CodingSums>& sums) {
  const double per_bit = error_per_bit(header, step) / 2 / (1 << kBitsFraction);
  constexpr double kPerError = 1.0 / (1 << kErrorFraction);
  double cost = 0;
  std::size_t at = 0;
  int component = -1;
  ErrorWeights weights;
  for_coding_bands(header, frames, [&](int c, const SubbandTable& table, std::size_t i) {
    if (c != component) weights = error_weights(header, c, table, step, frame_gains);
    component = c;
    const Subband& band = table.all()[i];
    double sum = 0;
    for (int t = 0; t < band.shape.frames; ++t) {
      const CodingSums& s = sums[at++];
      const double weight =
          weights.subband[i] *
          (weights.frame.empty()
               ? 1.0
               : weights.frame[static_cast<std::size_t>(band.temporal_band)][static_cast<std::size_t>(t)]);
      sum += per_bit * static_cast<double>(s.bits);
      if (!header.lossless) sum += weight * kPerError * static_cast<double>(s.error);
    }
    cost += sum * band.shape.height / coding_rows(band.shape.height);
  });
  return cost;
}

double coding_cost(const StreamHeader& header, const CoefficientGop& gop, float step, ThreadPool& pool,
                   SimdLevel simd) {
  struct Task {
    const SubbandView* view;
    int frame;
    float inverse_step;
  };
  std::vector<Task> tasks;
  std::size_t view = 0;
  int component = -1;
  std::vector<float> inverse;
  for_coding_bands(header, gop.frames, [&](int c, const SubbandTable& table, std::size_t i) {
    if (c != component)
      inverse = StepTable(table, header.lossless ? 1.0f : step, header.components[static_cast<std::size_t>(c)]).inverse;
    component = c;
    const SubbandView& v = gop.subbands[view++];
    for (int t = 0; t < v.shape.frames; ++t) tasks.push_back({&v, t, inverse[i]});
  });
  std::vector<CodingSums> sums(tasks.size());
  pool.parallel_for(static_cast<int>(tasks.size()), [&](int n, int) {
    const Task& task = tasks[static_cast<std::size_t>(n)];
    const SubbandView& v = *task.view;
    sums[static_cast<std::size_t>(n)] =
        v.real ? coding_sums(Field<float>{v.real, v.shape, v.row_stride, v.frame_stride}, task.frame, task.inverse_step,
                             simd)
               : coding_sums(Field<std::int32_t>{v.integer, v.shape, v.row_stride, v.frame_stride}, task.frame,
                             task.inverse_step, simd);
  });
  return coding_cost(header, gop.frames, gop.frame_gains, step, sums);
}

double cost_of_bytes(const StreamHeader& header, std::size_t bytes, float step) {
  return 8 * static_cast<double>(bytes) * error_per_bit(header, step);
}

// Cost of keys that are predicted in place, in parts of what they cost alone. Between 0.935 and 0.98 both take the same
// bytes at equal PSNR (a cartoon of 640x360, GOPs of 16 and 64), because the errors of the key before are coded again.
constexpr double kOfKeysAlone = 0.95;

bool prediction_pays(double predicted, double alone, bool in_place) {
  return predicted < (in_place ? kOfKeysAlone * alone : alone);
}

double motion_cost(const StreamHeader& header, const GopMotion& motion, float step) {
  std::size_t bytes = 0;
  for (const auto& section : motion.sections) bytes += section.size();
  return cost_of_bytes(header, bytes, step);
}

}  // namespace trivelet
