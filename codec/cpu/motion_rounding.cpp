// Rounding of coefficients along motion; motion_rounding.h has the formula.
#include "codec/cpu/motion_rounding.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "codec/cpu/cpu_fields.h"
#include "codec/cpu/motion_gop.h"
#include "codec/entropy/dense/rounding.h"
#include "codec/entropy/fast/zerotree.h"
#include "codec/transform/dwt.h"
#include "codec/transform/subband.h"

namespace trivelet {

namespace {

// Chosen by BD-rate on foreman QCIF, foreman CIF, park_joy and mobile (-q 15, 35, 55): 3.0 % better on average than
// rounding by cost alone. Other choices lose, in %:
//   kWay 0.5: 0.4, 0.33: 0.0; for the key frame alone 0.6: 0.5, 0.25: 0.0; three quarters of it for zeros: 0.0
//   kCell 4: 0.4
//   usual entries a fourth smaller: 0.7, a tenth larger: 0.1
//   kPrice 0.9: 0.4, 1: 0.2; for the key frame alone 1.3: 0.4
//   a second step: 0.6
constexpr float kWay = 0.4f;
constexpr int kCell = 8;  // coefficients along a side of a cell, which shares one entry of the diagonal
// Weight of the usual entry beside the errors of a cell, as a share of a cell with the frame's mean error.
constexpr double kUsualWeight = 0.25;
constexpr double kLeastShare = 0.2;  // lower limit of an entry, relative to the usual one
constexpr float kPrice = 1.15f;      // of a bit, relative to rounding_lambda()

/// The usual entry of the diagonal, divided by the square of the norm. The norm is the one that distributes bits best,
/// not that of the motion at hand.
double usual_entry(const Subband& band, int levels) {
  constexpr double kOfLevel[] = {1.15, 0.92, 0.78, 0.6, 0.46};  // from the finest level on
  constexpr double kKey = 0.8;
  if (band.temporal_band == 0) return kKey;
  return kOfLevel[std::min(levels - band.temporal_band, 4)];
}

/// One frame of a subband.
struct Frame {
  Field<float> coefficients;  // changed in place
  Field<float> product;       // the errors, then S^T S of them
  float step, inverse, lambda;
  double usual;
  float by;      // 1 over the square of the temporal norm
  bool rounded;  // before
};

struct Memory {
  std::vector<float> rounding;
  std::vector<float> rounded;
};

/// The decoded values of the frame if its coefficients are rounded one by one.
Field<float> rounded(const Frame& f, Memory& memory) {
  const Shape& shape = f.coefficients.shape;
  memory.rounded.resize(shape.samples());
  const Field<float> out = packed_field(memory.rounded.data(), shape);
  for (int y = 0; y < shape.height; ++y) std::copy_n(f.coefficients.row(0, y), shape.width, out.row(0, y));
  round_by_cost(out, f.step, f.inverse, f.lambda, memory.rounding);
  constexpr float kCentroid = static_cast<float>(kCostCentroid) / 256.0f;
  for (float& c : memory.rounded) {
    const float n = std::floor(std::abs(c) * f.inverse);
    c = n > 0 ? std::copysign((n + kCentroid) * f.step, c) : 0;
  }
  return out;
}

void take_errors(const Frame& f, Memory& memory) {
  if (f.rounded) {
    for (int y = 0; y < f.product.shape.height; ++y) std::fill_n(f.product.row(0, y), f.product.shape.width, 0.0f);
    return;
  }
  const Field<float> q = rounded(f, memory);
  for (int y = 0; y < q.shape.height; ++y)
    for (int x = 0; x < q.shape.width; ++x) f.product.row(0, y)[x] = f.coefficients.row(0, y)[x] - q.row(0, y)[x];
}

void round_frame(const Frame& f, Memory& memory) {
  if (f.rounded) return;
  const Field<float> q = rounded(f, memory);
  const int height = q.shape.height, width = q.shape.width;
  const auto error = [&](int y, int x) { return f.coefficients.row(0, y)[x] - q.row(0, y)[x]; };
  double squares = 0;
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) squares += static_cast<double>(error(y, x)) * error(y, x);
  const double prior = kUsualWeight * kCell * kCell * squares / static_cast<double>(q.shape.samples()) + 1e-9;
  for (int y0 = 0; y0 < height; y0 += kCell)
    for (int x0 = 0; x0 < width; x0 += kCell) {
      const int y1 = std::min(height, y0 + kCell), x1 = std::min(width, x0 + kCell);
      double products = f.usual * prior, own = prior;
      for (int y = y0; y < y1; ++y)
        for (int x = x0; x < x1; ++x) {
          const double e = error(y, x);
          products += e * static_cast<double>(f.product.row(0, y)[x] * f.by);
          own += e * e;
        }
      const float scale = f.by / static_cast<float>(std::max(kLeastShare * f.usual, products / own));
      for (int y = y0; y < y1; ++y)
        for (int x = x0; x < x1; ++x) {
          float& c = f.coefficients.row(0, y)[x];
          c += kWay * (q.row(0, y)[x] + f.product.row(0, y)[x] * scale - c);
        }
    }
  round_by_cost(f.coefficients, f.step, f.inverse, f.lambda, memory.rounding);
}

Field<float> frame_of(const Field<float>& band, int t) {
  Field<float> frame = band;
  frame.data = band.row(t, 0);
  frame.shape.frames = 1;
  return frame;
}

}  // namespace

void round_along_motion(const StreamHeader& header, const MotionTransform& transform, CoefficientGop& gop, float step,
                        int rounded, ThreadPool& pool, SimdLevel simd) {
  const Reduced r(header, {}, gop.frames);
  LargeVector<float> product;
  std::vector<Memory> memory(static_cast<std::size_t>(pool.threads()));
  for (int c = 0; c < static_cast<int>(header.components.size()); ++c) {
    const Shape shape = r.shape(c);
    if (product.size() < shape.samples()) product.resize(shape.samples());
    const Field<float> field = field_of<float>(gop, c, shape);
    const Field<float> errors = packed_field(product.data(), shape);
    const SubbandTable table(shape, header.decomposition(c), false);
    const StepTable steps(table, step, header.components[static_cast<std::size_t>(c)]);
    std::vector<Frame> frames;
    for (std::size_t i = 0; i < table.all().size(); ++i) {
      const Subband& band = table.all()[i];
      const int high = band.temporal_band;
      const double norm = synthesis_norm(Wavelet::kMotion, false, high > 0,
                                         high > 0 ? header.temporal_levels - high + 1 : header.temporal_levels);
      for (int t = 0; t < band.shape.frames && band.shape.samples() > 0; ++t)
        frames.push_back({frame_of(subband_view(field, band), t), frame_of(subband_view(errors, band), t),
                          steps.step[i], steps.inverse[i], kPrice * rounding_lambda(band, table.decomposition()),
                          usual_entry(band, header.temporal_levels), static_cast<float>(1 / (norm * norm)),
                          high == 0 && t < rounded});
    }
    const auto for_frames = [&](void (*f)(const Frame&, Memory&)) {
      pool.parallel_for(static_cast<int>(frames.size()), [&](int i, int worker) {
        f(frames[static_cast<std::size_t>(i)], memory[static_cast<std::size_t>(worker)]);
      });
    };
    for_frames(take_errors);
    inverse_transform<float>(errors, in_space(r.decomposition(c)), pool, simd);
    transform.correlate(errors, *gop.motion, c);
    forward_transform<float>(errors, in_space(r.decomposition(c)), pool, simd);
    for_frames(round_frame);
  }
}

}  // namespace trivelet
