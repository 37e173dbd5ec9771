// Chooses GOPs and layers to measure, and turns measurements into errors of layers (measuring_plan.h).
#include "codec/measure/measuring_plan.h"

#include <algorithm>

#include "codec/measure/motion_error.h"

namespace trivelet {

MeasuringPlan::MeasuringPlan(const StreamHeader& header)
    : motion_(header.motion), whole_(header.motion && MotionErrorSample::looks_at_all(header)) {}

std::vector<std::size_t> MeasuringPlan::layers(const std::vector<double>& predicted, bool open, bool must_close) {
  // Each point costs a decoding of a few windows. Pictures that are measured as a whole have few windows.
  const std::size_t most = whole_ ? 6 : 4;
  constexpr int kMostAge = 16;  // GOPs
  constexpr int kOpenOnes = 2;  // the first open GOP depends on a closed one, the others on open ones
  if (motion_ && must_close) {
    planned_.clear();
    opened_ = 0;
  }
  std::vector<std::size_t> chosen;  // indices of layers, finest first
  double last = 0;
  for (std::size_t l = predicted.size(); l-- > 0;) {
    const double error = predicted[l];
    if (error == kExactLayer) continue;
    // Two layers are measured apart if their errors differ by this factor. Rounding changes small errors most. With
    // motion all layers are measured: prediction uses decoded frames, and the loss of the key frame before an open GOP
    // shows even in layers that add little.
    const double apart = motion_ ? 1.001 : last < 0.5 ? 3 : last < 8 ? 4 : 8;
    if (!chosen.empty() && error < apart * last) continue;
    chosen.push_back(l);
    last = error;
  }
  // Both ends, the finest two, and as many of those between as fit.
  if (chosen.size() > most) {
    const std::size_t others = most - 2;
    for (std::size_t i = 1; i <= others; ++i) chosen[1 + i] = chosen[1 + i * (chosen.size() - 2) / others];
    chosen.resize(most);
  }
  if (chosen.empty()) return {};
  for (Planned& p : planned_) ++p.age;
  std::erase_if(planned_, [](const Planned& p) { return p.age >= kMostAge; });
  const double finest = predicted[chosen.front()];
  const bool known =
      std::any_of(planned_.begin(), planned_.end(), [&](const Planned& p) { return p.at.covers(finest); });
  if (known && open == open_ && (!open || opened_ >= kOpenOnes)) return {};
  if (open) ++opened_;
  open_ = open;
  if (motion_) planned_.clear();
  std::reverse(chosen.begin(), chosen.end());
  SampleErrorModel at;
  for (const std::size_t l : chosen) at.add(predicted[l], predicted[l]);
  planned_.push_back({std::move(at), 0});
  return chosen;
}

std::optional<SampleErrorModel> measured_model(const StreamHeader& header, const std::vector<double>& predicted,
                                               const std::vector<std::size_t>& layers,
                                               const std::vector<double>& errors, bool must_close) {
  if (layers.empty() && !(header.motion && must_close)) return std::nullopt;
  SampleErrorModel model(header.lossless);
  for (std::size_t i = 0; i < layers.size(); ++i) model.add(predicted[layers[i]], errors[i]);
  return model;
}

std::vector<double> layer_errors(const std::vector<double>& predicted, const MeasuredErrors& measured) {
  const auto finest = std::find_if(predicted.rbegin(), predicted.rend(), [](double p) { return p != kExactLayer; });
  const SampleErrorModel& model = measured.like(finest == predicted.rend() ? 0 : *finest);
  std::vector<double> errors;
  for (const double p : predicted) errors.push_back(p == kExactLayer ? 0 : model.actual(p));
  return errors;
}

}  // namespace trivelet
