// What a GOP takes, and how much it errs, at a step: estimated by coding a few windows of its pictures, so that a
// target is aimed at before all of it is coded. Done by the host whatever the backend, which makes it the same for all.
#pragma once

#include <memory>
#include <vector>

#include "codec/backend.h"
#include "codec/rate_control.h"

namespace trivelet {

class StepSample {
 public:
  /// Of a GOP whose samples stay where they are as long as this is used. `header` must outlive it.
  StepSample(const StreamHeader& header, const Gop& gop, SimdLevel simd);
  ~StepSample();
  /// False where pictures are so small that the windows would be a good part of them.
  bool worth_it() const { return !windows_.empty(); }

  struct Amounts {
    double bytes = 0;  ///< of all planes, without heads
    double bytes_without_last = 0;
    double error = 0;  ///< squared, as predicted
    double error_without_last = 0;
  };
  Amounts at(const GopChoices& choices, ThreadPool& pool);

 private:
  struct Window;
  std::vector<std::unique_ptr<Window>> windows_;
};

}  // namespace trivelet
