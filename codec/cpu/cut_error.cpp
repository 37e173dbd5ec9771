// Measures the error of truncated GOPs by decoding their coefficients (see cut_error.h).
#include "codec/cpu/cut_error.h"

#include <utility>

#include "codec/base/squared_error.h"
#include "codec/rate/block_cut.h"
#include "codec/rate/rate_control.h"
#include "codec/transform/colour.h"

namespace trivelet {

namespace {

/// Walks through the truncation points of a GOP, component by component.
class CutReader {
 public:
  explicit CutReader(const std::vector<std::uint8_t>& cuts) : at_(cuts.data()) {}
  /// Those of the next component, whose grid this is.
  const std::uint8_t* next(const BlockGrid& grid) {
    const std::uint8_t* const cuts = at_;
    at_ += static_cast<std::size_t>(grid.blocks()) * static_cast<std::size_t>(segment_count(grid));
    return cuts;
  }

 private:
  const std::uint8_t* at_;
};

}  // namespace

void CutError::next_gop() {
  std::swap(decoded_before_, decoded_key_);
  decoded_key_ = {};
}

double CutError::measure(const Gop& gop, const GopChoices& choices, const std::vector<std::uint8_t>& cuts,
                         CoefficientGop& coefficients, const MotionKey& key, const MotionKey& key_before) {
  const bool lossless = context_.header.lossless;
  if (!coefficients.motion)
    return lossless ? measure_still<std::int32_t>(gop, choices, cuts, coefficients)
                    : measure_still<float>(gop, choices, cuts, coefficients);
  const MotionKeys keys = decoded_keys(key, key_before);
  return lossless ? measure_moving<std::int32_t>(gop, choices, cuts, coefficients, keys)
                  : measure_moving<float>(gop, choices, cuts, coefficients, keys);
}

// Uses the key frame of the GOP before as it was measured last. If it was not measured, its error is taken to be that
// of this GOP's key frame.
MotionKeys CutError::decoded_keys(const MotionKey& key, const MotionKey& key_before) {
  MotionKeys keys;
  const bool has_key = !key.empty();
  if (has_key) keys.own = &decoded_key_;
  keys.before = decoded_before_.empty() ? &key_before : &decoded_before_;
  if (decoded_before_.empty() && has_key) keys.own_exact = &key;
  return keys;
}

template <class T>
double CutError::measure_still(const Gop& gop, const GopChoices& choices, const std::vector<std::uint8_t>& cuts,
                               CoefficientGop& coefficients) {
  const StreamHeader& header = context_.header;
  const int frames = gop.frames();
  const StreamGeometry& geometry = context_.geometry(frames, nullptr);
  const Reduced r(header, {}, frames);
  CutReader reader(cuts);
  double sum = 0;
  double samples = 0;
  const std::vector<Shape> shapes = component_shapes(context_.header, frames);
  for (int first = 0; first < context_.components();) {
    const int end = groups_.end(first, shapes);
    const std::vector<Field<T>> fields = groups_.fields<T>(first, end, shapes);
    for (int c = first; c < end; ++c) {
      const BlockGrid& grid = geometry.grid(c);
      const StepTable steps = context_.steps(grid, c, choices.step);
      const Field<T>& field = fields[static_cast<std::size_t>(c - first)];
      cut_coefficients(header.profile, grid, reader.next(grid), header.centroid, header.lossless ? nullptr : &steps,
                       field_of<T>(coefficients, c, r.shape(c)), field, context_.pool, context_.simd);
      samples += static_cast<double>(field.shape.samples());
    }
    sum = add_group_error<T>(gop, choices.frame_gains, first, fields, sum);
    first = end;
  }
  return sum / samples;
}

template <class T>
double CutError::measure_moving(const Gop& gop, const GopChoices& choices, const std::vector<std::uint8_t>& cuts,
                                CoefficientGop& coefficients, const MotionKeys& keys) {
  const StreamHeader& header = context_.header;
  const GopMotion* motion = coefficients.motion.get();
  const StreamGeometry& geometry = context_.geometry(gop.frames(), motion);
  const Reduced r(context_.headers.of(motion), {}, gop.frames());
  CutReader reader(cuts);
  double sum = 0;
  double samples = 0;
  const std::vector<Shape> shapes = component_shapes(context_.header, motion->places.count);
  for (int first = 0; first < context_.components();) {
    const int end = groups_.end(first, shapes);
    const std::vector<Field<T>> fields = groups_.fields<T>(first, end, shapes);
    for (int c = first; c < end; ++c) {
      const BlockGrid& grid = geometry.grid(c);
      const StepTable steps = context_.steps(grid, c, choices.step);
      const Field<T>& field = fields[static_cast<std::size_t>(c - first)];
      cut_coefficients(header.profile, grid, reader.next(grid), header.centroid, header.lossless ? nullptr : &steps,
                       field_of<T>(coefficients, c, r.shape(c)), field, context_.pool, context_.simd);
      inverse_transform<T>(field, in_space(r.decomposition(c)), context_.pool, context_.simd);
      samples += static_cast<double>(gop.plane(c).shape.samples());
    }
    sum = motion_.inverse_error<T>(fields, first, *motion, keys, gop, sum);
    first = end;
  }
  return sum / samples;
}

// Adds the squared errors of the components from `first` on to `sum`, one after the other.
template <class T>
double CutError::add_group_error(const Gop& gop, const std::vector<std::uint8_t>& frame_gains, int first,
                                 const std::vector<Field<T>>& fields, double sum) {
  const StreamHeader& header = context_.header;
  const std::vector<float> gains = inverse_gains(frame_gains, 0);
  const PixelFormat& f = header.video.format;
  std::size_t i = 0;
  if (first == 0 && header.colour_transform) {
    for (; i < 3; ++i)
      inverse_transform<T>(fields[i], header.decomposition(static_cast<int>(i)), context_.pool, context_.simd, gains);
    Gop decoded(header.video, gop.frames());
    decoded.set_frames(gop.frames());
    inverse_colour<T>(fields[0], fields[1], fields[2], synthesis_gain<T>(header, {}, 0, gop.frames()),
                      header.components[0].offset, highest_sample(f), decoded, context_.pool);
    for (int c = 0; c < 3; ++c) sum += squared_error(gop.plane(c), std::as_const(decoded).plane(c));
  }
  for (; i < fields.size(); ++i) {
    const int c = first + static_cast<int>(i);
    sum +=
        inverse_transform_error<T>(fields[i], header.decomposition(c), synthesis_gain<T>(header, {}, c, gop.frames()),
                                   header.components[static_cast<std::size_t>(c)].offset, lowest_sample(f),
                                   highest_sample(f), gop.plane(c), context_.pool, context_.simd, gains);
  }
  return sum;
}

}  // namespace trivelet
