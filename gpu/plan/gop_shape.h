// All data about GOPs of one length on the device: geometry, memory layout of coefficients and samples, tables of the
// coders.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "codec/format/stream_geometry.h"
#include "gpu/plan/dense_plan.h"
#include "gpu/plan/tree_plan.h"

namespace trivelet::gpu {

/// All data about GOPs of one length: geometry, memory layout, tables on the device.
struct GopShape {
  StreamHeader header;        ///< as it describes these GOPs: StreamHeader::describe_gop()
  Reduction reduction;        ///< as far as these GOPs have levels for it
  int frames = 0;             ///< of the GOP
  std::vector<Shape> shapes;  ///< of the reduced components, with the places before the frames
  std::vector<Decomposition> decompositions;
  std::unique_ptr<StreamGeometry> geometry;
  std::vector<CoefficientLayout> layouts;
  std::vector<std::size_t> coefficient_origin;  ///< elements; one more at the end
  std::vector<std::size_t> sample_origin;       ///< bytes; one more at the end
  std::vector<std::size_t> step_origin;         ///< of CoefficientLayout::spread; one more at the end
  std::unique_ptr<TreePlan> plan;
  std::unique_ptr<DensePlan> dense;  ///< dense profile, or by plane

  /// `header`: describe_gop(). `by_plane`: as GopChoices::passes needs of the fast profile.
  GopShape(const StreamHeader& header, const Reduction& reduction, int frames, bool by_plane, const Stream& stream);
  bool moves() const { return header.temporal == Wavelet::kMotion; }
  /// Frames after the reduction.
  int frames_left() const { return shapes[0].frames - (header.key_last ? 1 : 0); }
  std::size_t sample_bytes() const { return sample_origin.back(); }
  std::size_t device_bytes() const { return plan->device_bytes() + (dense ? dense->device_bytes() : 0); }
};

}  // namespace trivelet::gpu
