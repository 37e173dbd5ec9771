// Rate-distortion rounding of subbands and GOPs; rounding.h has the arithmetic of a coefficient.
#include "codec/entropy/dense/rounding.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "codec/base/stream_header.h"
#include "codec/entropy/coded_block.h"
#include "codec/transform/dwt.h"
#include "codec/transform/subband.h"

namespace trivelet {

namespace {

// The counted magnitudes of a row, with one more at each end.
void count_row(const float* row, int n, float inverse_step, float* out) {
  for (int x = 0; x < n; ++x) out[x + 1] = counted_magnitude(row[x], inverse_step);
  out[0] = out[1];
  out[n + 1] = out[n];
}

// Whether any of n magnitudes can round to a step or more by the first test of rounded_by_cost(). Other rows need no
// work.
bool any_counts(const float* magnitude, int n) {
  bool any = false;
  for (int x = 0; x < n; ++x) any |= !(magnitude[x] + 0.5f < 1.0f);
  return any;
}

// Rounds a frame of a subband. Borders are repeated outside; neighbours count with their values before rounding.
void round_frame(const Field<float>& v, int t, float step, float inverse_step, float lambda,
                 std::vector<float>& memory) {
  constexpr int kTogether = 16;
  const int n = v.shape.width;
  const auto row_room = static_cast<std::size_t>(n + 2);
  memory.resize(3 * row_room);
  float* above = memory.data();
  float* here = above + row_room;
  float* below = here + row_room;
  count_row(v.row(t, 0), n, inverse_step, here);
  std::copy_n(here, row_room, above);
  for (int y = 0; y < v.shape.height; ++y) {
    if (y + 1 < v.shape.height)
      count_row(v.row(t, y + 1), n, inverse_step, below);
    else
      std::copy_n(here, row_room, below);
    float* row = v.row(t, y);
    for (int first = 0; first < n; first += kTogether) {
      const int end = std::min(n, first + kTogether);
      if (!any_counts(here + first + 1, end - first)) continue;
      for (int x = first; x < end; ++x) {
        if (!any_counts(here + x + 1, 1)) continue;
        const float beside = (here[x] + here[x + 2]) + (above[x + 1] + below[x + 1]);
        const float diagonal = (above[x] + above[x + 2]) + (below[x] + below[x + 2]);
        row[x] = rounded_by_cost(row[x], kBesideWeight * beside + diagonal, step, inverse_step, lambda);
      }
    }
    std::swap(above, here);
    std::swap(here, below);
  }
}

}  // namespace

float rounding_lambda(const Subband& band, const Decomposition& decomposition) {
  constexpr float kUsual = 0.25f, kKey = 0.14f;
  constexpr float kFine[] = {0.125f, 0.2f};  // for the finest temporal level, and the next
  if (decomposition.temporal != Wavelet::kMotion) return kUsual;
  if (band.temporal_band == 0) return kKey;
  const auto level = static_cast<std::size_t>(decomposition.temporal_levels - band.temporal_band);
  return level < std::size(kFine) ? kFine[level] : kUsual;
}

void round_by_cost(const Field<float>& band, float step, float inverse_step, float lambda, std::vector<float>& memory) {
  if (band.shape.samples() == 0) return;
  for (int t = 0; t < band.shape.frames; ++t) round_frame(band, t, step, inverse_step, lambda, memory);
}

void round_by_cost(const StreamHeader& header, CoefficientGop& gop, float step, ThreadPool& pool, int rounded) {
  struct Task {
    Field<float> band;
    int frame;
    float step, inverse_step, lambda;
  };
  std::vector<Task> tasks;
  std::size_t view = 0;
  for (int c = 0; c < static_cast<int>(header.components.size()); ++c) {
    const SubbandTable table(header.component_shape(c, gop.frames), header.decomposition(c), false);
    const StepTable steps(table, step, header.components[static_cast<std::size_t>(c)]);
    for (std::size_t i = 0; i < table.all().size(); ++i) {
      if (table.all()[i].shape.samples() == 0) continue;
      const SubbandView& v = gop.subbands[view++];
      const float lambda = rounding_lambda(table.all()[i], table.decomposition());
      const Field<float> band{v.real, v.shape, v.row_stride, v.frame_stride};
      for (int t = v.temporal_band == 0 ? rounded : 0; t < v.shape.frames; ++t)
        tasks.push_back({band, t, steps.step[i], steps.inverse[i], lambda});
    }
  }
  std::vector<std::vector<float>> memory(static_cast<std::size_t>(pool.threads()));
  pool.parallel_for(static_cast<int>(tasks.size()), [&](int i, int worker) {
    const Task& task = tasks[static_cast<std::size_t>(i)];
    round_frame(task.band, task.frame, task.step, task.inverse_step, task.lambda,
                memory[static_cast<std::size_t>(worker)]);
  });
}

}  // namespace trivelet
