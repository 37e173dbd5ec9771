// The hulls of the truncation points of a GOP's segments, made of pass tables or of planes (rate_control.h).
#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "codec/rate/rate_control.h"
#include "codec/transform/colour.h"
#include "codec/transform/frame_gains.h"

namespace trivelet {

ErrorWeights error_weights(const StreamHeader& header, int component, const SubbandTable& table, float step,
                           const std::vector<std::uint8_t>& frame_gains) {
  ErrorWeights w;
  const ComponentHeader& c = header.components[static_cast<std::size_t>(component)];
  const double colour = header.colour_transform && component < 3 ? kColourNorm[component] : 1.0;
  const StepTable steps(table, step, c);
  for (std::size_t i = 0; i < table.all().size(); ++i) {
    const double unit = header.lossless ? 1.0 : static_cast<double>(steps.step[i]);
    w.subband.push_back(std::pow(unit * table.all()[i].norm * colour, 2));
  }
  if (header.layout == Layout::kT2d && header.temporal_levels > 0) {
    const int frames = table.shape().frames;
    const bool key_last = table.decomposition().key_last;
    // A key frame at the end also serves the GOP that follows.
    const int behind = key_last && (frames - 1) % (1 << header.temporal_levels) == 0 ? 1 << header.temporal_levels : 0;
    const std::vector<double> energies =
        temporal_synthesis_energies(frames + behind, header.temporal_levels, header.temporal);
    const SubbandTable axis({frames, 1, 1},
                            {Layout::kT2d, header.temporal_levels, 0, header.temporal, header.spatial, key_last},
                            header.lossless);
    for (int b = 0; b < axis.temporal_bands(); ++b) {
      const Subband& s = axis.lowest(b);
      std::vector<double> frame_weights;
      for (int t = 0; t < s.shape.frames; ++t) {
        const auto f = static_cast<std::size_t>(s.frame_origin + t * s.frame_step);
        const double gain = frame_gains.empty() ? 1.0 : frame_gains[f] / 64.0;
        frame_weights.push_back(energies[f] / (s.norm * s.norm * gain * gain));
      }
      w.frame.push_back(std::move(frame_weights));
    }
  }
  return w;
}

namespace {

// Words in the order of bytes in a file.
std::uint32_t load_word(const std::uint8_t* from) {
  return from[0] | std::uint32_t{from[1]} << 8 | std::uint32_t{from[2]} << 16 | std::uint32_t{from[3]} << 24;
}

void store_word(std::uint8_t* to, std::uint32_t word) {
  for (int i = 0; i < 4; ++i) to[i] = static_cast<std::uint8_t>(word >> (8 * i));
}

// Appends the codeword of segment s. A part per plane becomes one bit string without padding.
void append_codeword(Profile profile, const CodedBlock& block, std::size_t s, std::size_t layers,
                     std::vector<std::uint8_t>& out) {
  const std::uint8_t* bytes = block.memory ? block.memory : block.bytes.data();
  if (profile == Profile::kDense) {
    const std::uint8_t* from = bytes + block.offset[s];
    out.insert(out.end(), from, from + block.size[s]);
    return;
  }
  std::size_t bits = 0;
  for (std::size_t part = s * layers; part < (s + 1) * layers; ++part) bits += block.bits[part];
  const std::size_t begin = out.size();
  out.resize(begin + (bits + 7) / 8);
  std::uint8_t* to = out.data() + begin;
  std::uint64_t held = 0;
  unsigned count = 0;  // of bits in `held`, below 32 between words
  const auto append = [&](std::uint32_t word, unsigned n) {
    held |= std::uint64_t{word} << count;
    count += n;
    if (count < 32) return;
    store_word(to, static_cast<std::uint32_t>(held));
    to += 4;
    held >>= 32;
    count -= 32;
  };
  for (std::size_t part = s * layers; part < (s + 1) * layers; ++part) {
    const std::uint8_t* from = bytes + block.offset[part];
    std::uint32_t left = block.bits[part];
    for (; left >= 32; left -= 32, from += 4) append(load_word(from), 32);
    std::uint32_t rest = 0;
    for (std::uint32_t i = 0; 8 * i < left; ++i) rest |= static_cast<std::uint32_t>(from[i]) << (8 * i);
    if (left > 0) append(rest & ((std::uint32_t{1} << left) - 1), left);
  }
  for (unsigned i = 0; 8 * i < count; ++i) to[i] = static_cast<std::uint8_t>(held >> (8 * i));
}

// Of every segment of a block.
std::vector<double> segment_coefficients(const BlockGrid& grid, int block) {
  std::vector<double> counts(static_cast<std::size_t>(segment_count(grid)));
  for (const Subband& band : grid.table().all()) {
    const BlockGrid::Patch p = grid.patch(band, block / grid.columns(), block % grid.columns());
    counts[static_cast<std::size_t>(segment_index(grid, band.temporal_band, band.resolution))] +=
        static_cast<double>(p.height) * p.width * band.shape.frames;
  }
  return counts;
}

}  // namespace

void RateControl::prepare(const std::vector<const BlockGrid*>& grids) {
  unit_ = cuts_per_plane(header_.profile);
  std::size_t first = 0;
  for (const BlockGrid* grid : grids) {
    Component c;
    c.grid = grid;
    c.first = first;
    c.segments = segment_count(*grid);
    for (int b = 0; b < grid->table().temporal_bands(); ++b)
      for (int k = 0; k < grid->resolutions(); ++k) c.parents.push_back(parent_segment(*grid, b, k));
    c.children.resize(static_cast<std::size_t>(c.segments));
    for (std::size_t s = 0; s < c.parents.size(); ++s)
      if (c.parents[s] >= 0) c.children[static_cast<std::size_t>(c.parents[s])].push_back(s);
    c.count = static_cast<std::size_t>(c.segments) * static_cast<std::size_t>(grid->blocks());
    first += c.count;
    Shape shape = grid->table().shape();
    if (grid->table().decomposition().key_last) --shape.frames;
    samples_ += shape.samples();
    components_.push_back(std::move(c));
  }
}

// Also makes room for the segments and their codewords.
void RateControl::prepare(const CodedGop& gop) {
  std::vector<const BlockGrid*> grids;
  std::size_t bytes = 0;
  for (const auto& c : gop.components) {
    grids.push_back(c.grid);
    for (const CodedBlock& block : c.blocks)
      for (const std::uint32_t size : block.size) bytes += size;
  }
  prepare(grids);
  runs_.reserve(components_.empty() ? 0 : components_.back().first + components_.back().count);
  bytes_.reserve(bytes);
}

// A weight or scale that makes a segment finer than its error requires raises its value by the same factor.
double RateControl::emphasis(int component, int resolution) const {
  if (header_.lossless) return 1;
  const ComponentHeader& c = header_.components[static_cast<std::size_t>(component)];
  const double colour = header_.colour_transform && component < 3 ? kColourNorm[component] : 1.0;
  return 1 / std::pow(static_cast<double>(c.weight) * c.scale_of(resolution) * colour, 2);
}

RateControl::RateControl(const StreamHeader& header, const CodedGop& gop, ThreadPool* pool)
    : header_(header), pool_(pool) {
  prepare(gop);
  std::size_t passes_in_all = 0;
  for (const auto& c : gop.components)
    for (const PassTable& table : c.passes) {
      passes_in_all += table.passes.size();
      spared_ = table.spared;
    }
  points_.reserve(passes_in_all);
  std::vector<Point> hull;
  for (std::size_t c = 0; c < gop.components.size(); ++c) {
    auto& component = gop.components[c];
    for (std::size_t i = 0; i < component.blocks.size(); ++i) {
      const CodedBlock& block = component.blocks[i];
      const PassTable& table = component.passes[i];
      for (std::size_t s = 0; s < block.top.size(); ++s) {
        Run run;
        run.emphasis = emphasis(static_cast<int>(c), static_cast<int>(s) % component.grid->resolutions());
        run.top = block.top[s];
        run.offset = bytes_.size();
        append_codeword(header.profile, block, s, static_cast<std::size_t>(component.plan.layers), bytes_);
        const std::uint32_t bits_per_unit = header.profile == Profile::kDense ? 8 : 1;
        run.first = static_cast<std::uint32_t>(points_.size());
        run.energy = table.energy[s];
        energy_ += run.energy;
        hull.clear();
        double gain = 0;
        const int passes = unit_ * run.top;
        for (int p = 0; p < passes - spared_; ++p) {
          const PassTable::Pass& pass = table.passes[table.first[s] + static_cast<std::size_t>(p)];
          gain += pass.gain;
          // Pops hull corners that are no longer convex.
          Point now{pass.bytes * bits_per_unit, 0, gain, static_cast<std::uint8_t>(passes - 1 - p)};
          for (;;) {
            const double from_gain = hull.empty() ? 0 : hull.back().gain;
            const std::uint32_t from = hull.empty() ? 0 : hull.back().end;
            const double gained = (now.gain - from_gain) * run.emphasis;
            now.slope = now.end > from ? static_cast<float>(8 * gained / (now.end - from))
                        : gained >= 0  ? 3e38f
                                       : -1.0f;
            if (hull.empty() || now.slope < hull.back().slope) break;
            hull.pop_back();
          }
          hull.push_back(now);
        }
        points_.insert(points_.end(), hull.begin(), hull.end());
        run.count = static_cast<std::uint32_t>(hull.size());
        runs_.push_back(run);
      }
    }
  }
}

// What a bit of the last plane gains is the squared step, times the weight of the segment's frames, times a power of
// the bits that the plane takes per coefficient: planes in which few coefficients become significant pay more for their
// places. The exponent was fitted to the passes of three clips at 36, 44 and 52 dB: the gain per byte then differs by
// 0.3 octaves (standard deviation) from that of pass tables, without the power and the weights by 0.45.
RateControl::RateControl(const StreamHeader& header, const CodedGop& gop, float step,
                         const std::vector<std::uint8_t>& frame_gains, ThreadPool* pool)
    : header_(header), pool_(pool) {
  prepare(gop);
  for (std::size_t c = 0; c < gop.components.size(); ++c) {
    const auto& component = gop.components[c];
    const BlockGrid& grid = *component.grid;
    const auto parts = static_cast<std::size_t>(component.plan.layers);
    const std::vector<double> weights = segment_weights(static_cast<int>(c), step, frame_gains);
    for (std::size_t i = 0; i < component.blocks.size(); ++i) {
      const CodedBlock& block = component.blocks[i];
      const std::vector<double> coefficients = segment_coefficients(grid, static_cast<int>(i));
      for (std::size_t s = 0; s < block.top.size(); ++s) {
        Run run;
        run.top = block.top[s];
        run.offset = bytes_.size();
        append_codeword(header.profile, block, s, parts, bytes_);
        add_planes(block.bits.data() + (s + 1) * parts, weights[s], coefficients[s], run);
        runs_.push_back(run);
      }
    }
  }
}

// The points of a segment: its planes. `end` is behind the bits of plane 0.
void RateControl::add_planes(const std::uint32_t* end, double weight, double coefficients, Run& run) {
  constexpr double kDensityPower = 0.24;
  // Of 1 bit per coefficient. With it a slope of the squared step takes nearly all of the last plane.
  constexpr double kGain = 1.9;
  run.first = static_cast<std::uint32_t>(points_.size());
  Point point{0, 3e38f, 0, 0};
  for (int p = run.top - 1; p >= 0; --p) {
    const std::uint32_t bits = *(end - 1 - p);
    point.cut = static_cast<std::uint8_t>(p);
    if (bits == 0 && points_.size() > run.first) {
      points_.back().cut = point.cut;
      continue;
    }
    const double density = std::max(bits, 1U) / std::max(1.0, coefficients);
    const double slope = kGain * std::ldexp(weight, 2 * p) * std::pow(density, kDensityPower);
    point.slope = std::min(point.slope, static_cast<float>(slope));
    point.end += bits;
    point.gain += static_cast<double>(point.slope) * bits / 8;
    points_.push_back(point);
  }
  run.count = static_cast<std::uint32_t>(points_.size()) - run.first;
}

// The squared error, emphasised, of a squared error of 1 in quantised coefficients, for the segments of a block.
std::vector<double> RateControl::segment_weights(int component, float step,
                                                 const std::vector<std::uint8_t>& frame_gains) const {
  const BlockGrid& grid = *components_[static_cast<std::size_t>(component)].grid;
  const ErrorWeights w = error_weights(header_, component, grid.table(), step, frame_gains);
  std::vector<double> weights;
  for (int b = 0; b < grid.table().temporal_bands(); ++b) {
    double frames = 1;
    if (!w.frame.empty() && !w.frame[static_cast<std::size_t>(b)].empty()) {
      const std::vector<double>& of = w.frame[static_cast<std::size_t>(b)];
      frames = std::accumulate(of.begin(), of.end(), 0.0) / static_cast<double>(of.size());
    }
    for (int k = 0; k < grid.resolutions(); ++k)
      weights.push_back(w.subband[subband_slot(grid, b, k, 0)] * frames * emphasis(component, k));
  }
  return weights;
}

}  // namespace trivelet
