// Draws code blocks of a GOP and measures the errors of their samples (error_sample.h).
#include "codec/measure/error_sample.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "codec/base/draw.h"
#include "codec/base/squared_error.h"
#include "codec/rate/block_cut.h"
#include "codec/transform/colour.h"
#include "codec/transform/dwt.h"
#include "codec/transform/frame_gains.h"

namespace trivelet {

namespace {

// Number of draws, and the share drawn by samples. Over eight clips from CIF to 1080p and all layers, 16 draws agree
// with measuring all blocks within 0.05 dB; 8 draws within 0.04 dB for small pictures, else 0.10; a quarter by samples
// within 0.16.
constexpr int kDraws = 16;
constexpr int kDrawsOfFew = 10;
constexpr std::size_t kFew = 64;  // blocks
constexpr double kBySamples = 0.5;

// View of a part of a component, without a copy. `frames` stores the pointers to its frames.
VolumeView part(VolumeView v, int y, int x, const Shape& shape, std::vector<const std::byte*>& frames) {
  frames.clear();
  for (int f = 0; f < shape.frames; ++f)
    frames.push_back(v.row(f, y) + static_cast<std::ptrdiff_t>(x) * v.bytes_per_sample);
  v.frames = frames.data();
  v.shape = shape;
  return v;
}

// View of the same rows and columns of all components, which must have one size.
Gop part(const Gop& gop, VideoInfo info, int y, int x, const Shape& shape) {
  info.width = shape.width;
  info.height = shape.height;
  std::vector<FrameView> frames(static_cast<std::size_t>(shape.frames));
  for (int f = 0; f < shape.frames; ++f)
    for (int c = 0; c < gop.components(); ++c) {
      const VolumeView v = gop.plane(c);
      frames[static_cast<std::size_t>(f)].planes[static_cast<std::size_t>(c)] = {
          v.row(f, y) + static_cast<std::ptrdiff_t>(x) * v.bytes_per_sample, v.row_stride};
    }
  return Gop(info, frames);
}

}  // namespace

// A block of a component, or of all three components of a colour transform; or all of their blocks.
struct ErrorSample::Unit {
  int component = 0;
  int components = 1;
  int block = 0;
  int blocks = 1;
  double samples = 0;
  std::vector<double> predicted;  // for each of the cuts
  double weight = 0;              // number of units that it represents
};

std::vector<ErrorSample::Unit> ErrorSample::all_units(const RateControl& control,
                                                      const std::vector<const Cuts*>& points) const {
  std::vector<Unit> units;
  const int colours = header_.colour_transform ? 3 : 1;
  for (int c = 0; c < control.components(); c += c == 0 ? colours : 1) {
    const BlockGrid& grid = control.grid(c);
    for (int block = 0; block < grid.blocks(); ++block) {
      Unit unit{c, c == 0 ? colours : 1, block, 1, 0, {}, 1};
      const BlockGrid::Patch e = grid.extent(block);
      unit.samples =
          static_cast<double>(Shape{grid.table().shape().frames, e.height, e.width}.samples()) * unit.components;
      for (const Cuts* cuts : points) {
        double predicted = 0;
        for (int i = 0; i < unit.components; ++i) predicted += control.block_error(c + i, block, *cuts);
        unit.predicted.push_back(predicted);
      }
      units.push_back(std::move(unit));
    }
  }
  return units;
}

std::vector<ErrorSample::Unit> ErrorSample::draw(std::vector<Unit> units) {
  if (units.size() <= static_cast<std::size_t>(kDraws)) {  // measured as a whole, so that only the picture has borders
    std::vector<Unit> whole;
    for (Unit& unit : units)
      if (unit.block == 0)
        whole.push_back(std::move(unit));
      else
        ++whole.back().blocks;
    return whole;
  }
  const int draws = units.size() < kFew ? kDrawsOfFew : kDraws;
  return draw_units(std::move(units), 1 - kBySamples, draws);
}

// The rectangle of a unit in its component.
BlockGrid::Patch ErrorSample::extent_of(const Unit& unit, const BlockGrid& grid) {
  return unit.blocks == 1 ? grid.extent(unit.block)
                          : BlockGrid::Patch{0, 0, grid.table().shape().height, grid.table().shape().width};
}

template <class T>
std::vector<ErrorShare> ErrorSample::measure(const Unit& unit, const Gop& gop, const GopChoices& coded,
                                             const RateControl& control, const std::vector<const Cuts*>& points) {
  std::vector<ErrorWindow<T>> windows;
  for (int c = unit.component; c < unit.component + unit.components; ++c)
    windows.emplace_back(header_, c, control.grid(c), extent_of(unit, control.grid(c)), coded.step, coded.frame_gains,
                         energies_);
  std::vector<float> gains;
  std::vector<float> inverse;
  for (const std::uint8_t g : coded.frame_gains) {
    gains.push_back(static_cast<float>(g) / 64.0f);
    inverse.push_back(static_cast<float>(64.0 / g));
  }
  ThreadPool alone(1);
  const bool coloured = unit.components == 3;
  ErrorWindow<T>& first = windows[0];
  const Shape shape = first.coefficients().shape;
  const Decomposition d = header_.decomposition(unit.component);
  const std::int32_t lowest = lowest_sample(header_.video.format);
  const std::int32_t highest = highest_sample(header_.video.format);
  const std::int32_t offset = header_.components[static_cast<std::size_t>(unit.component)].offset;
  const Gop colours = coloured ? part(gop, header_.video, first.y(), first.x(), shape) : Gop();
  std::vector<const std::byte*> frames;
  const VolumeView samples = part(gop.plane(unit.component), first.y(), first.x(), shape, frames);
  if (coloured) {
    forward_colour<T>(colours, offset, windows[0].coefficients(), windows[1].coefficients(), windows[2].coefficients(),
                      alone);
    for (ErrorWindow<T>& w : windows) forward_transform<T>(w.coefficients(), d, alone, simd_, gains);
  } else {
    forward_transform<T>(samples, offset, first.coefficients(), d, alone, simd_, gains);
  }
  if (coded.rounding_step != 0)
    for (ErrorWindow<T>& w : windows) w.round(coded.rounding_step);
  std::vector<ErrorShare> out;
  for (const Cuts* cuts : points) {
    ErrorShare share;
    for (std::size_t i = 0; i < windows.size(); ++i)
      windows[i].cut(cuts->data() + control.first_cut(unit.component + static_cast<int>(i), 0), simd_, share);
    if (coloured) {
      for (ErrorWindow<T>& w : windows) inverse_transform<T>(w.decoded(), d, alone, simd_, inverse);
      VideoInfo info = header_.video;
      info.width = shape.width;
      info.height = shape.height;
      Gop decoded(info, shape.frames);
      decoded.set_frames(shape.frames);
      inverse_colour<T>(windows[0].decoded(), windows[1].decoded(), windows[2].decoded(), 1.0f, offset, highest,
                        decoded, alone);
      for (int c = 0; c < 3; ++c) share.measured += squared_error(colours.plane(c), std::as_const(decoded).plane(c));
    } else {
      share.measured =
          inverse_transform_error<T>(first.decoded(), d, 1.0f, offset, lowest, highest, samples, alone, simd_, inverse);
    }
    out.push_back(share);
  }
  return out;
}

std::vector<SampledError> ErrorSample::errors(const Gop& gop, const GopChoices& coded, const RateControl& control,
                                              const std::vector<const Cuts*>& points, ThreadPool& pool) {
  const std::vector<Unit> units = draw(all_units(control, points));
  std::vector<std::vector<ErrorShare>> shares(units.size());
  pool.parallel_for(static_cast<int>(units.size()), [&](int i, int) {
    const auto n = static_cast<std::size_t>(i);
    shares[n] = header_.lossless ? measure<std::int32_t>(units[n], gop, coded, control, points)
                                 : measure<float>(units[n], gop, coded, control, points);
  });
  std::vector<double> weights, predicted;
  for (const Unit& unit : units) weights.push_back(unit.weight);
  for (const Cuts* cuts : points) predicted.push_back(control.error(*cuts));
  return errors_of_all(predicted, weights, shares);
}

}  // namespace trivelet
