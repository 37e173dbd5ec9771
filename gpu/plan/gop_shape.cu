// Computes the memory layout of GOPs of one length, and the tables of the coders.

#include "gpu/plan/gop_shape.h"

namespace trivelet::gpu {
namespace {

// Tables that are read 16 bytes at a time, and planes of samples, begin at multiples of this.
constexpr std::size_t kSampleAlignment = 256;
std::size_t aligned(std::size_t n) { return (n + kSampleAlignment - 1) / kSampleAlignment * kSampleAlignment; }

}  // namespace

GopShape::GopShape(const StreamHeader& h, const Reduction& wanted, int gop_frames, bool by_plane, const Stream& stream)
    : header(h),
      reduction(wanted.clamped(h.temporal_levels)),
      frames(gop_frames),
      geometry(std::make_unique<StreamGeometry>(header, gop_frames)) {
  coefficient_origin.push_back(0);
  sample_origin.push_back(0);
  step_origin.push_back(0);
  const auto bytes = static_cast<std::size_t>(header.video.format.bytes_per_sample());
  for (int c = 0; c < geometry->components(); ++c) {
    const Shape full = header.component_shape(c, gop_frames);
    Decomposition d = header.decomposition(c);
    d.spatial_levels -= reduction.spatial;
    d.temporal_levels -= reduction.temporal;
    shapes.push_back({low_length(full.frames, reduction.temporal), low_length(full.height, reduction.spatial),
                      low_length(full.width, reduction.spatial)});
    decompositions.push_back(d);
    layouts.emplace_back(shapes.back(), d);
    coefficient_origin.push_back(coefficient_origin.back() + aligned(layouts.back().size()));
    Shape samples = shapes.back();
    samples.frames = frames_left();
    sample_origin.push_back(sample_origin.back() + samples.samples() * bytes);
    step_origin.push_back(step_origin.back() + aligned(layouts.back().steps()));
  }
  plan = std::make_unique<TreePlan>(header, *geometry, layouts, coefficient_origin, by_plane, stream);
  if (header.profile == Profile::kDense || by_plane)
    dense = std::make_unique<DensePlan>(header, *geometry, *plan, stream);
}

}  // namespace trivelet::gpu
