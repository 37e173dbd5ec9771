// Measures errors of GOPs with motion in windows that follow it (motion_error.h).
#include "codec/measure/motion_error.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>
#include <utility>

#include "codec/base/draw.h"
#include "codec/base/simd.h"
#include "codec/base/squared_error.h"
#include "codec/cpu/cpu_fields.h"
#include "codec/motion/motion_kernels.h"
#include "codec/transform/colour.h"

namespace trivelet {

namespace {

// Sides of windows; pictures of at least kLarge luma samples have the large one. Larger windows contain more of their
// references; smaller windows cover more places for the same work. At -q 60 the index agrees with decoding within 0.25
// dB from 0.1 bits per pixel up and within 0.7 below (six clips of CIF to 1080p). Scrolling text errs in so few places
// that windows miss it by 1 to 1.5 dB. For small pictures 96 has 0.1 to 0.6 dB less error than 64 at -q 35 (seven
// clips) for 7 to 10 % more CPU time of encoding; 128 costs 20 % and gains little.
constexpr int kSmallSide = 96;
constexpr int kLargeSide = 128;
constexpr int kLarge = 1 << 20;
constexpr int kMargin = 4;       // a margin is 1/4 of the side; it is lifted along with the window
constexpr double kShare = 0.04;  // share of the samples that is drawn
constexpr int kFewest = 2;
constexpr std::size_t kWhole = 4;  // up to this number of windows all are measured
constexpr double kByError = 0.7;
// Errors also enter a window from beyond its margins. Without this factor the index is 0.2 dB too optimistic (five
// clips at -q 35 and 50, five layers: from -0.3 to 1.1).
constexpr double kUnseen = 1.03;

// The same rectangle of luma samples in a component.
BlockGrid::Patch in_component(const PixelFormat& f, const BlockGrid::Patch& luma, int component) {
  const int sy = f.is_chroma(component) ? f.log2_chroma_h : 0;
  const int sx = f.is_chroma(component) ? f.log2_chroma_w : 0;
  const auto up = [](int n, int shift) { return (n + (1 << shift) - 1) >> shift; };
  return {luma.y >> sy, luma.x >> sx, up(luma.height, sy), up(luma.width, sx)};
}

// The header of a stream of such windows.
StreamHeader header_of(StreamHeader header, const BlockGrid::Patch& where) {
  header.video.width = where.width;
  header.video.height = where.height;
  return header;
}

/// Offset of the rectangle in each frame of a GOP, in luma samples.
using Path = std::vector<Shift>;

// View of a rectangle of all pictures, without a copy. The first frame of `gop` is at place `first`.
Gop part_of(const Gop& gop, const VideoInfo& info, int y, int x, const Path& path, int first) {
  std::vector<FrameView> frames(static_cast<std::size_t>(gop.frames()));
  for (int c = 0; c < gop.components(); ++c) {
    const VolumeView v = gop.plane(c);
    for (int f = 0; f < gop.frames(); ++f) {
      const Shift& shift = path[static_cast<std::size_t>(first + f)];
      const BlockGrid::Patch at = in_component(info.format, {y + shift.y, x + shift.x, 0, 0}, c);
      frames[static_cast<std::size_t>(f)].planes[static_cast<std::size_t>(c)] = {
          v.row(f, at.y) + static_cast<std::ptrdiff_t>(at.x) * v.bytes_per_sample, v.row_stride};
    }
  }
  return Gop(info, frames);
}

Gop last_frame(const VideoInfo& info, const Gop& gop) {
  Gop last(info, 1);
  last.set_frames(1);
  for (int c = 0; c < gop.components(); ++c) {
    const VolumeView from = gop.plane(c);
    const MutableVolumeView to = last.plane(c);
    for (int y = 0; y < from.shape.height; ++y)
      std::memcpy(to.row(0, y), from.row(gop.frames() - 1, y), from.row_bytes());
  }
  return last;
}

// The motion of a GOP inside a rectangle of luma samples.
GopMotion part_of(const GopMotion& motion, const BlockGrid::Patch& where, const Path& path) {
  constexpr int kQuarters = 4;
  GopMotion part(motion.places, where.width, where.height);
  for (int level = 0; level < motion.places.levels; ++level)
    for (const int place : motion_frames(level, motion.places)) {
      const auto t = static_cast<std::size_t>(place);
      const int top = (where.y + path[t].y) / kMotionCell, left = (where.x + path[t].x) / kMotionCell;
      for (int y = 0; y < part.grid.rows; ++y)
        std::copy_n(motion.fields[t].begin() + static_cast<std::ptrdiff_t>(motion.grid.index(top + y, left)),
                    part.grid.columns, part.fields[t].begin() + static_cast<std::ptrdiff_t>(part.grid.index(y, 0)));
      const MotionReferences r = motion_references(place, level, motion.places);
      for (const int k : {0, 1}) {
        const int reference = k == 0 ? r.past : r.other;
        if (reference < 0) continue;
        const Shift& shift = path[static_cast<std::size_t>(reference)];
        for (MotionCell& cell : part.fields[t]) {
          MotionVector& v = cell.vector[static_cast<std::size_t>(k)];
          v.x = static_cast<std::int16_t>(v.x + kQuarters * (path[t].x - shift.x));
          v.y = static_cast<std::int16_t>(v.y + kQuarters * (path[t].y - shift.y));
        }
      }
    }
  return part;
}

// Median motion of a rectangle from frame to frame, in quarter samples.
MotionVector movement(const GopMotion& motion, const BlockGrid::Patch& where) {
  std::vector<int> x, y;
  for (const int t : motion_frames(0, motion.places)) {
    const int distance = t - motion_references(t, 0, motion.places).past;
    for (int cy = where.y / kMotionCell; cy * kMotionCell < where.y + where.height; ++cy)
      for (int cx = where.x / kMotionCell; cx * kMotionCell < where.x + where.width; ++cx) {
        const MotionCell& cell = motion.fields[static_cast<std::size_t>(t)][motion.grid.index(cy, cx)];
        if (!cell.uses(0)) continue;
        x.push_back(-cell.vector[0].x / distance);
        y.push_back(-cell.vector[0].y / distance);
      }
  }
  const auto median = [](std::vector<int>& v) {
    if (v.empty()) return std::int16_t{0};
    const auto middle = v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2);
    std::nth_element(v.begin(), middle, v.end());
    return static_cast<std::int16_t>(*middle);
  };
  return {median(x), median(y)};
}

// The path of a rectangle that follows its motion, in multiples of `step` and inside the pictures, so that a window
// contains the references of its frames.
Path path_of(const GopMotion& motion, const BlockGrid::Patch& where, int step, int height, int width) {
  const MotionVector v = movement(motion, where);
  const auto at = [step](int frames, int quarters, int first, int length, int all) {
    const int steps = static_cast<int>(std::lround(frames * quarters / 4.0 / step));
    return step * std::clamp(steps, -(first / step), (all - first - length) / step);
  };
  Path path;
  for (int t = 0; t < motion.places.count; ++t) {
    const int frames = t - motion.places.count / 2;
    path.push_back({at(frames, v.y, where.y, where.height, height), at(frames, v.x, where.x, where.width, width)});
  }
  return path;
}

// The same path in a component.
Path in_component(const PixelFormat& f, const Path& path, int component) {
  Path out;
  const int sy = f.is_chroma(component) ? f.log2_chroma_h : 0;
  const int sx = f.is_chroma(component) ? f.log2_chroma_w : 0;
  for (const Shift& s : path) out.push_back({s.y >> sy, s.x >> sx});
  return out;
}

// A vector that stays on a line of n quarter samples: positions wrap around.
std::int16_t around(int at, int vector, int n) {
  const int to = (at + vector) % n;
  return static_cast<std::int16_t>((to < 0 ? to + n : to) - at);
}

// The motion for lifting errors. Errors are lifted as pictures are, but without constants. References outside the
// rectangle wrap around to its other side: errors there are like the unknown ones, whereas a repeated border would
// repeat a single error.
GopMotion motion_of_errors(const GopMotion& motion, const BlockGrid::Patch& where, const Path& path) {
  GopMotion part = part_of(motion, where, path);
  constexpr int kQuarters = 4;
  constexpr int kMiddle = kMotionCell / 2;
  for (MotionField& field : part.fields)
    for (std::size_t i = 0; i < field.size(); ++i) {
      const int y = static_cast<int>(i) / part.grid.columns * kMotionCell + kMiddle;
      const int x = static_cast<int>(i) % part.grid.columns * kMotionCell + kMiddle;
      field[i].plain = {};
      for (MotionVector& v : field[i].vector)
        v = {around(kQuarters * x, v.x, kQuarters * where.width), around(kQuarters * y, v.y, kQuarters * where.height)};
    }
  return part;
}

}  // namespace

// ------------------------------------------------------------------------------------------------------ the key before

CodedKey::CodedKey(const StreamHeader& header, const Gop& gop, const GopChoices& coded, const RateControl& control,
                   const std::vector<Cuts>& layers)
    : header_(header), frame_(last_frame(header.video, gop)), coded_(coded) {
  header_.motion = false;
  header_.temporal_levels = 0;
  // Coefficients of a key frame belong to the lowest temporal band, so the step is divided by that band's norm.
  const auto norm = static_cast<float>(synthesis_norm(Wavelet::kMotion, header.lossless, false, coded.levels));
  coded_.step /= norm;
  coded_.rounding_step /= norm;
  cuts_.resize(layers.size());
  for (int c = 0; c < control.components(); ++c) {
    const BlockGrid& grid = control.grid(c);
    const BlockGrid& own = grids_.emplace_back(header_.component_shape(c, 1), header_.decomposition(c),
                                               header_.lossless, header_.block_size());
    require(own.blocks() == grid.blocks(), ErrorKind::kInternal, "blocks of a frame are others than those of a GOP");
    for (std::size_t l = 0; l < layers.size(); ++l) {
      std::vector<std::uint8_t>& cuts = cuts_[l].emplace_back();
      for (int b = 0; b < grid.blocks(); ++b)
        for (int k = 0; k < grid.resolutions(); ++k)
          cuts.push_back(layers[l][control.first_cut(c, b) + static_cast<std::size_t>(segment_index(grid, 0, k))]);
    }
  }
}

MotionKey CodedKey::exact(const StreamHeader& window, int y, int x, ThreadPool& pool, SimdLevel simd) const {
  MotionTransform transform(window, pool, simd);
  const Gop last = part_of(frame_, window.video, y, x, Path(1), 0);
  MotionKey key = transform.last_frame_of(last, {1, GopKey::kFirst, window.temporal_levels});
  for (KeyStates& states : key.components) states.resize(static_cast<std::size_t>(window.temporal_levels), states[0]);
  return key;
}

MotionKey CodedKey::error(const StreamHeader& window, int y, int x, std::size_t layer, AxisEnergies& energies,
                          ThreadPool& pool, SimdLevel simd) const {
  MotionKey key;
  const MotionKey exact = this->exact(window, y, x, pool, simd);
  key.components.resize(exact.components.size());
  for (std::size_t i = 0; i < exact.components.size(); ++i) {
    const int c = static_cast<int>(i);
    const BlockGrid::Patch where =
        in_component(window.video.format, {y, x, window.video.height, window.video.width}, c);
    header_.lossless
        ? find_error<std::int32_t>(exact.components[i], key.components[i], c, where, layer, energies, pool, simd)
        : find_error<float>(exact.components[i], key.components[i], c, where, layer, energies, pool, simd);
  }
  return key;
}

template <class T>
void CodedKey::find_error(const KeyStates& exact, KeyStates& error, int component, const BlockGrid::Patch& where,
                          std::size_t layer, AxisEnergies& energies, ThreadPool& pool, SimdLevel simd) const {
  const auto c = static_cast<std::size_t>(component);
  const MotionKernels& kernels = motion_kernels(resolve_simd(simd));
  const std::vector<std::int32_t>& samples = exact[0];
  ErrorWindow<T> window(header_, component, grids_[c], where, coded_.step, {}, energies);
  const int n = static_cast<int>(samples.size());
  std::memcpy(window.coefficients().data, samples.data(), samples.size() * sizeof(T));
  if constexpr (std::is_floating_point_v<T>) kernels.to_real(window.coefficients().data, n);
  forward_transform<T>(window.coefficients(), header_.decomposition(component), pool, simd);
  if (coded_.rounding_step != 0) window.round(coded_.rounding_step);
  ErrorShare unused;
  window.cut(cuts_[layer][c].data(), simd, unused);
  inverse_transform<T>(window.decoded(), header_.decomposition(component), pool, simd);
  if constexpr (std::is_floating_point_v<T>) kernels.from_real(window.decoded().data, n, 1 << kMotionFraction);
  std::vector<std::int32_t> state(samples.size());
  std::memcpy(state.data(), window.decoded().data, samples.size() * sizeof(T));
  for (std::size_t i = 0; i < state.size(); ++i) state[i] -= samples[i];
  error.assign(exact.size(), state);
}

// ----------------------------------------------------------------------------------------------------------- a sample

struct MotionErrorSample::Job {
  const Gop& gop;
  const GopChoices& coded;
  const GopMotion& motion;
  const CodedKey* before;
  const RateControl& control;
  const std::vector<Cuts>& layers;
  const std::vector<std::size_t>& points;
  StreamHeader header;  // describes the GOP (describe_gop())
};

struct MotionErrorSample::Unit {
  BlockGrid::Patch where;  // luma samples
  double samples = 0;
  std::vector<double> predicted;  // for each of the points
  double weight = 1;              // number of windows that it represents
  Path path;
};

namespace {

// Windows begin at multiples of this, in luma samples.
int step_of(const StreamHeader& header) {
  const PixelFormat& f = header.video.format;
  int levels = 0;
  for (const ComponentHeader& c : header.components) levels = std::max<int>(levels, c.spatial_levels);
  return std::max(kMotionCell, 1 << (levels + std::max(f.log2_chroma_h, f.log2_chroma_w)));
}

int side_of(const StreamHeader& header) {
  const bool large = header.video.width * header.video.height >= kLarge;
  const int step = step_of(header);
  return ((large ? kLargeSide : kSmallSide) + step - 1) / step * step;
}

}  // namespace

bool MotionErrorSample::looks_at_all(const StreamHeader& header) {
  const int side = side_of(header);
  const auto windows = [side](int n) { return static_cast<std::size_t>((n + side - 1) / side); };
  return windows(header.video.height) * windows(header.video.width) <= kWhole;
}

// Divides the pictures into squares. A block's predicted error is spread evenly over its area.
std::vector<MotionErrorSample::Unit> MotionErrorSample::all_units(const Job& job) const {
  const VideoInfo& video = header_.video;
  const int side = side_of(header_);
  const int columns = (video.width + side - 1) / side;
  std::vector<Unit> units;
  for (int y = 0; y < video.height; y += side)
    for (int x = 0; x < video.width; x += side) {
      Unit unit{{y, x, std::min(side, video.height - y), std::min(side, video.width - x)}, 0, {}, 1, {}};
      unit.samples = static_cast<double>(unit.where.height) * unit.where.width;
      unit.predicted.resize(job.points.size());
      units.push_back(std::move(unit));
    }
  for (int c = 0; c < job.control.components(); ++c) {
    const BlockGrid& grid = job.control.grid(c);
    for (int block = 0; block < grid.blocks(); ++block) {
      const BlockGrid::Patch e = grid.extent(block);
      const BlockGrid::Patch scale = in_component(video.format, {side, side, 0, 0}, c);
      const int y0 = e.y / scale.y, y1 = (e.y + e.height - 1) / scale.y;
      const int x0 = e.x / scale.x, x1 = (e.x + e.width - 1) / scale.x;
      for (std::size_t p = 0; p < job.points.size(); ++p) {
        const double error = job.control.block_error(c, block, job.layers[job.points[p]]);
        for (int y = y0; y <= y1; ++y)
          for (int x = x0; x <= x1; ++x) {
            const int rows = std::min(e.y + e.height, (y + 1) * scale.y) - std::max(e.y, y * scale.y);
            const int across = std::min(e.x + e.width, (x + 1) * scale.x) - std::max(e.x, x * scale.x);
            units[static_cast<std::size_t>(y * columns + x)].predicted[p] +=
                error * rows * across / (static_cast<double>(e.height) * e.width);
          }
      }
    }
  }
  return units;
}

std::vector<MotionErrorSample::Unit> MotionErrorSample::draw(std::vector<Unit> units) {
  const int draws = std::max(kFewest, static_cast<int>(std::lround(kShare * static_cast<double>(units.size()))));
  if (units.size() <= kWhole) {
    Unit whole = units.back();
    whole.where = {0, 0, whole.where.y + whole.where.height, whole.where.x + whole.where.width};
    return {whole};
  }
  return draw_units(std::move(units), kByError, draws);
}

// A unit's rectangle with a margin, which contains most of its references.
BlockGrid::Patch MotionErrorSample::around(const Unit& unit) const {
  const BlockGrid::Patch& where = unit.where;
  const int margin = std::max(where.height, where.width) / kMargin & -2 * kMotionCell;
  int top = where.y - margin, left = where.x - margin;
  int bottom = where.y + where.height + margin, right = where.x + where.width + margin;
  for (const Shift& shift : unit.path) {
    top = std::max(top, -shift.y);
    left = std::max(left, -shift.x);
    bottom = std::min(bottom, header_.video.height - shift.y);
    right = std::min(right, header_.video.width - shift.x);
  }
  return {top, left, bottom - top, right - left};
}

// Coefficients of the unit's components. The margin is lifted as well because frames are predicted from it. `original`
// gets the samples after colour transform, minus offset.
template <class T>
void MotionErrorSample::transform(const Job& job, const Unit& unit, ThreadPool& alone,
                                  std::vector<ErrorWindow<T>>& windows,
                                  std::vector<std::vector<std::int32_t>>& original) {
  const BlockGrid::Patch outer = around(unit);
  const StreamHeader header = header_of(job.header, outer);
  const GopMotion motion = part_of(job.motion, outer, unit.path);
  const Gop samples = part_of(job.gop, header.video, outer.y, outer.x, unit.path, first_place(motion.places.key));
  MotionTransform transform(header, alone, simd_);
  MotionKey before;
  if (job.before) before = job.before->exact(header, outer.y + unit.path[0].y, outer.x + unit.path[0].x, alone, simd_);
  std::vector<std::vector<std::int32_t>> memory;
  std::vector<Field<std::int32_t>> loaded;
  for (int c = 0; c < job.gop.components(); ++c) {
    const Shape shape = header.component_shape(c, job.gop.frames());
    loaded.push_back(packed_field(memory.emplace_back(shape.samples()).data(), shape));
  }
  transform.load(samples, motion.places, before, loaded);
  const BlockGrid::Patch inside{unit.where.y - outer.y, unit.where.x - outer.x, unit.where.height, unit.where.width};
  const auto copy = [&](int c, void* to) {
    const BlockGrid::Patch at = in_component(header.video.format, inside, c);
    const Field<std::int32_t>& from = loaded[static_cast<std::size_t>(c)];
    auto* out = static_cast<std::byte*>(to);
    for (int t = 0; t < from.shape.frames; ++t)
      for (int y = 0; y < at.height; ++y, out += 4 * at.width)
        std::memcpy(out, from.row(t, at.y + y) + at.x, 4 * static_cast<std::size_t>(at.width));
  };
  for (int c = 0; c < job.gop.components(); ++c) {
    ErrorWindow<T>& w = windows.emplace_back(
        job.header, c, job.control.grid(c), in_component(header.video.format, unit.where, c), job.coded.step,
        std::vector<std::uint8_t>(), energies_, in_component(header.video.format, unit.path, c));
    original.emplace_back(w.coefficients().shape.samples());
    copy(c, original.back().data());
    transform.forward(motion, c, {&before}, std::is_floating_point_v<T>);
    copy(c, w.coefficients().data);
    forward_transform<T>(w.coefficients(), in_space(header.decomposition(c)), alone, simd_);
  }
}

// The squared error of samples of component c, or of all three components of a colour transform. `errors` are in the
// units of lifting.
double MotionErrorSample::squared_error(const Job& job, const Unit& unit, int c,
                                        const std::vector<Field<std::int32_t>>& errors,
                                        const std::vector<std::vector<std::int32_t>>& original,
                                        ThreadPool& alone) const {
  const PixelFormat& f = header_.video.format;
  const std::int32_t offset = header_.components[static_cast<std::size_t>(c)].offset;
  const bool coloured = header_.colour_transform && c < 3;
  std::int64_t sum = 0;
  const int first = first_place(job.motion.places.key);
  for (int i = c; i < (coloured ? 3 : c + 1); ++i) {
    Field<std::int32_t> e = errors[static_cast<std::size_t>(i)];
    const std::int32_t* sample = original[static_cast<std::size_t>(i)].data() + first * e.frame_stride;
    for (std::int32_t *x = e.row(first, 0), *end = x + (e.shape.frames - first) * e.frame_stride; x < end;
         ++x, ++sample) {
      const std::int32_t error = header_.lossless ? *x : (*x + (1 << (kMotionFraction - 1))) >> kMotionFraction;
      *x = *sample + error;
      const std::int32_t d = std::clamp(*x, lowest_sample(f) - offset, highest_sample(f) - offset) - *sample;
      sum += static_cast<std::int64_t>(d) * d;
    }
  }
  if (!coloured) return static_cast<double>(sum);
  const StreamHeader header = header_of(header_, unit.where);
  Gop decoded(header.video, job.gop.frames());
  decoded.set_frames(job.gop.frames());
  Field<std::int32_t> colours[3];
  for (int i = 0; i < 3; ++i) {
    colours[i] = errors[static_cast<std::size_t>(i)];
    colours[i].data += first * colours[i].frame_stride;
    colours[i].shape.frames -= first;
  }
  inverse_colour<std::int32_t>(colours[0], colours[1], colours[2], 1.0f, offset, highest_sample(f), decoded, alone);
  const Gop samples = part_of(job.gop, header.video, unit.where.y, unit.where.x, unit.path, first);
  double all = 0;
  for (int i = 0; i < 3; ++i) all += trivelet::squared_error(samples.plane(i), std::as_const(decoded).plane(i));
  return all;
}

// Inverse transform of a component of a window: coefficients to what lifting adds to samples.
template <class T>
void MotionErrorSample::inverse(const StreamHeader& window, const GopMotion& motion, int c, const Field<T>& field,
                                const MotionKey& before, ThreadPool& alone) const {
  constexpr bool kReal = std::is_floating_point_v<T>;
  inverse_transform<T>(field, in_space(window.decomposition(c)), alone, simd_);
  if constexpr (kReal)
    motion_kernels(resolve_simd(simd_))
        .from_real(field.data, static_cast<int>(field.shape.samples()), 1 << kMotionFraction);
  const PixelFormat& f = window.video.format;
  const MotionScale scale{f.is_chroma(c) ? f.log2_chroma_w : 0, f.is_chroma(c) ? f.log2_chroma_h : 0};
  MotionBorders borders;
  if (!before.empty()) borders.before = &before.components[static_cast<std::size_t>(c)];
  inverse_motion(as_integers(field), motion, {c, scale, kReal ? kMotionFraction : 0, f.bits}, 0, borders, alone, simd_);
}

namespace {

// Copies of the coefficients of a window's components.
template <class T>
using Copies = std::vector<std::vector<T>>;

template <class T>
void subtract(T* x, const std::vector<T>& from) {
  for (std::size_t i = 0; i < from.size(); ++i) x[i] -= from[i];
}

void add(MotionKey& key, const MotionKey& to) {
  for (std::size_t c = 0; c < key.components.size(); ++c)
    for (std::size_t l = 0; l < key.components[c].size(); ++l)
      for (std::size_t i = 0; i < key.components[c][l].size(); ++i) key.components[c][l][i] += to.components[c][l][i];
}

}  // namespace

// The lossy transform is linear, so errors are lifted as pictures are. The lossless one is not, and rounding dominates
// its small errors: there the error is the difference of two decoded pictures.
template <class T>
std::vector<ErrorShare> MotionErrorSample::measure(const Job& job, const Unit& unit) {
  constexpr bool kLinear = std::is_floating_point_v<T>;
  ThreadPool alone(1);
  const StreamHeader header = header_of(job.header, unit.where);
  std::vector<ErrorWindow<T>> windows;
  std::vector<std::vector<std::int32_t>> original;
  transform(job, unit, alone, windows, original);
  const GopMotion motion = motion_of_errors(job.motion, unit.where, unit.path);
  const int key_y = unit.where.y + unit.path[0].y, key_x = unit.where.x + unit.path[0].x;
  MotionKey before;
  if (job.before && !kLinear) before = job.before->exact(header, key_y, key_x, alone, simd_);
  Copies<T> exact;
  std::vector<Field<std::int32_t>> errors;
  for (std::size_t i = 0; i < windows.size(); ++i) {
    ErrorWindow<T>& w = windows[i];
    const std::size_t samples = w.coefficients().shape.samples();
    errors.push_back(as_integers(w.decoded()));
    std::copy_n(w.coefficients().data, samples, w.decoded().data);
    if (!kLinear) inverse<T>(header, motion, static_cast<int>(i), w.decoded(), before, alone);
    exact.emplace_back(w.decoded().data, w.decoded().data + samples);
    if (job.coded.rounding_step != 0) w.round(job.coded.rounding_step);
  }
  std::vector<ErrorShare> out;
  for (const std::size_t l : job.points) {
    ErrorShare share;
    MotionKey key;
    if (job.before) key = job.before->error(header, key_y, key_x, l, energies_, alone, simd_);
    if (job.before && !kLinear) add(key, before);
    for (int c = 0; c < job.gop.components(); ++c) {
      const auto i = static_cast<std::size_t>(c);
      T* const decoded = windows[i].decoded().data;
      windows[i].cut(job.layers[l].data() + job.control.first_cut(c, 0), simd_, share);
      if (kLinear) subtract(decoded, exact[i]);
      inverse<T>(header, motion, c, windows[i].decoded(), key, alone);
      if (!kLinear) subtract(decoded, exact[i]);
    }
    for (int c = 0; c < job.gop.components(); c += header_.colour_transform && c == 0 ? 3 : 1)
      share.measured += squared_error(job, unit, c, errors, original, alone);
    out.push_back(share);
  }
  return out;
}

std::vector<SampledError> MotionErrorSample::errors(const Gop& gop, const GopChoices& coded, const GopMotion& motion,
                                                    const CodedKey* before, const RateControl& control,
                                                    const std::vector<Cuts>& layers,
                                                    const std::vector<std::size_t>& points, ThreadPool& pool) {
  const Job job{gop,     coded,  motion, before,
                control, layers, points, header_.describe_gop(motion.places.levels, motion.places.key)};
  std::vector<Unit> units = draw(all_units(job));
  for (Unit& unit : units)
    unit.path = path_of(motion, unit.where, step_of(header_), header_.video.height, header_.video.width);
  std::vector<std::vector<ErrorShare>> shares(units.size());
  pool.parallel_for(static_cast<int>(units.size()), [&](int i, int) {
    const auto n = static_cast<std::size_t>(i);
    shares[n] = header_.lossless ? measure<std::int32_t>(job, units[n]) : measure<float>(job, units[n]);
  });
  std::vector<double> weights, predicted;
  for (const Unit& unit : units) weights.push_back(unit.weight);
  for (const std::size_t layer : points) predicted.push_back(control.error(layers[layer]));
  std::vector<SampledError> errors = errors_of_all(predicted, weights, shares);
  if (!header_.lossless && !looks_at_all(header_))
    for (SampledError& e : errors) e.error *= kUnseen;
  return errors;
}

}  // namespace trivelet
