// The bits and gains of every bit plane of a segment in the fast profile (codec/entropy/fast/fast_pass_table.h), on the
// device.
#pragma once

#include "gpu/entropy/dense.h"

namespace trivelet::gpu {

class FastPassTable {
 public:
  /// `planes`: that magnitudes can have.
  FastPassTable(const TreePlan& tree, const DensePlan& plan, int planes, int centroid);
  /// C as DenseGopEncoder has it. Gives work to the stream only.
  template <class C>
  void measure(const C* coefficients, const DenseMeasure& measure, const Stream& stream);
  /// [segment * (planes + 1) + plane]: gains, then the energy.
  const double* gains() const { return gains_.data(); }
  std::size_t size() const { return gains_.size(); }
  int planes() const { return planes_; }
  std::size_t device_bytes() const { return (gains_.size() + frame_sums_.size()) * sizeof(double); }

 private:
  const TreePlan* tree_;
  const DensePlan* plan_;
  int planes_, centroid_;
  DeviceBuffer<double> frame_sums_, gains_;
};

}  // namespace trivelet::gpu
