// Rate control of one GOP by convex hulls and a slope (PCRD-opt; see rate_control.h).
#include "codec/rate/rate_control.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <queue>
#include <utility>

#include "codec/rate/bit_copy.h"
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

// -------------------------------------------------------------------------------------------------------------- hulls

namespace {

void in_parallel(ThreadPool* pool, int count, const std::function<void(int, int)>& body) {
  if (pool) return pool->parallel_for(count, body);
  for (int i = 0; i < count; ++i) body(i, 0);
}

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

template <class F>
void RateControl::for_blocks(const F& f) const {
  std::vector<std::pair<const Component*, std::size_t>> blocks;
  for (const Component& c : components_)
    for (std::size_t i = c.first; i < c.first + c.count; i += static_cast<std::size_t>(c.segments))
      blocks.emplace_back(&c, i);
  const auto body = [&](int i, int) {
    f(*blocks[static_cast<std::size_t>(i)].first, blocks[static_cast<std::size_t>(i)].second);
  };
  in_parallel(pool_, static_cast<int>(blocks.size()), body);
}

// The last hull point within a truncation point; null for none.
const RateControl::Point* RateControl::point_at(const Run& run, int cut) const {
  const Point* begin = points_.data() + run.first;
  const Point* end = begin + run.count;
  const Point* p = std::partition_point(begin, end, [cut](const Point& q) { return q.cut >= cut; });
  return p == begin ? nullptr : p - 1;
}

Cuts RateControl::at(double lambda) const {
  Cuts cuts(runs_.size());
  for_blocks([&](const Component& c, std::size_t first) { at(lambda, c, first, cuts.data() + first); });
  return cuts;
}

double RateControl::at(double lambda, const Component& c, std::size_t first, std::uint8_t* cuts) const {
  std::vector<std::uint32_t> corners(static_cast<std::size_t>(c.segments));
  for (std::size_t s = 0; s < corners.size(); ++s) corners[s] = runs_[first + s].count;
  return at(lambda, c, first, corners.data(), cuts);
}

double RateControl::at(double lambda, const Component& c, std::size_t first, std::uint32_t* corners,
                       std::uint8_t* cuts) const {
  bool allowed = true;
  double same_up_to = std::numeric_limits<double>::infinity();
  const auto segments = static_cast<std::size_t>(c.segments);
  for (std::size_t s = 0; s < segments; ++s) {
    const Run& run = runs_[first + s];
    const Point* const begin = points_.data() + run.first;
    std::uint32_t n = corners[s];
    while (n > 0 && static_cast<double>(begin[n - 1].slope) < lambda) --n;
    corners[s] = n;
    cuts[s] = static_cast<std::uint8_t>(n == 0 ? unit_ * run.top : begin[n - 1].cut);
    if (n > 0) same_up_to = std::min(same_up_to, static_cast<double>(begin[n - 1].slope));
  }
  // A segment of which nothing is sent asks nothing of its parent, whatever its top is.
  for (std::size_t s = 0; s < segments; ++s)
    if (const int parent = c.parents[s]; parent >= 0 && cuts[s] < unit_ * runs_[first + s].top)
      allowed = allowed && cuts[s] >= lowest_cut(header_.profile, cuts[static_cast<std::size_t>(parent)]);
  if (allowed) return same_up_to;
  settle(lambda, c, first, cuts);
  return lambda;
}

// A segment may be cut lower than its parent allows. Then either the parent sends more than it is worth alone, or the
// segment and its descendants send less, whichever is cheaper at this slope. Decided from the leaves up.
void RateControl::settle(double lambda, const Component& c, std::size_t first, std::uint8_t* cuts) const {
  const auto worth = [&](std::size_t s, int cut) {
    const Run& run = runs_[first + s];
    const Point* p = point_at(run, cut);
    return p ? p->gain * run.emphasis - lambda * p->end / 8 : 0.0;
  };
  // Where a segment ends if it may not go below plane `lowest`.
  const auto held = [&](std::size_t s, int lowest) {
    if (cuts[s] >= lowest) return static_cast<int>(cuts[s]);
    const Run& run = runs_[first + s];
    const Point* p = point_at(run, lowest);
    return p ? p->cut : unit_ * run.top;
  };
  // The loss if the descendants of segment s are limited to its truncation point `cut`.
  const auto loss = [&](const auto& self, std::size_t s, int cut) -> double {
    double sum = 0;
    for (const std::size_t child : c.children[s]) {
      const int to = held(child, lowest_cut(header_.profile, cut));
      if (to == cuts[child]) continue;
      sum += worth(child, cuts[child]) - worth(child, to) + self(self, child, to);
    }
    return sum;
  };
  for (std::size_t s = static_cast<std::size_t>(c.segments); s-- > 0;) {
    const auto needed_by = [&](std::size_t child) {
      return cuts[child] == unit_ * runs_[first + child].top ? unit_ * runs_[first + s].top
                                                             : highest_parent_cut(header_.profile, cuts[child]);
    };
    const auto is_lower = [&](std::size_t child) { return cuts[s] > needed_by(child); };
    if (std::none_of(c.children[s].begin(), c.children[s].end(), is_lower)) continue;
    const Run& run = runs_[first + s];
    const Point* begin = points_.data() + run.first;
    double best = worth(s, cuts[s]) - loss(loss, s, cuts[s]);
    int choice = cuts[s];
    for (const std::size_t child : c.children[s]) {
      if (!is_lower(child)) continue;
      const int needed = needed_by(child);
      const Point* p =
          std::partition_point(begin, begin + run.count, [needed](const Point& q) { return q.cut > needed; });
      const double value = worth(s, p->cut) - loss(loss, s, p->cut);
      if (value > best || (value == best && p->cut < choice)) {
        best = value;
        choice = p->cut;
      }
    }
    cuts[s] = static_cast<std::uint8_t>(choice);
  }
  for (std::size_t s = 0; s < static_cast<std::size_t>(c.segments); ++s)
    for (const std::size_t child : c.children[s])
      cuts[child] = static_cast<std::uint8_t>(held(child, lowest_cut(header_.profile, cuts[s])));
}

Cuts RateControl::planes(int lowest) const {
  Cuts cuts(runs_.size());
  for (std::size_t i = 0; i < runs_.size(); ++i) cuts[i] = static_cast<std::uint8_t>(plane_cut(runs_[i], lowest));
  return cuts;
}

// The corners of a hull are passed once, from the finest cut on.
RateControl::Amounts RateControl::amounts_of_planes(int lowest, int count) const {
  const auto n = static_cast<std::size_t>(count);
  Amounts a{std::vector<double>(n), std::vector<double>(n, energy_)};
  for (const Run& run : runs_) {
    const Point* const begin = points_.data() + run.first;
    const Point* end = begin + run.count;
    for (std::size_t i = 0; i < n; ++i) {
      const int cut = plane_cut(run, lowest + static_cast<int>(i));
      while (end != begin && end[-1].cut < cut) --end;
      if (end == begin) break;
      a.bytes[i] += static_cast<double>((end[-1].end + 7) / 8);
      a.errors[i] -= end[-1].gain;
    }
  }
  for (double& e : a.errors) e = std::max(0.0, e);
  return a;
}

std::uint64_t RateControl::body_bytes(const Cuts& cuts) const {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < runs_.size(); ++i) sum += (end_at(runs_[i], cuts[i]) + 7) / 8;
  return sum;
}

// While slopes ascend, each segment's corner only moves up its hull.
std::vector<std::uint64_t> RateControl::body_bytes_at(const std::vector<double>& lambdas) const {
  std::vector<std::atomic<std::uint64_t>> sums(lambdas.size());
  for_blocks([&](const Component& c, std::size_t first) {
    const auto segments = static_cast<std::size_t>(c.segments);
    std::vector<std::uint8_t> cuts(segments);
    std::vector<std::uint32_t> corners(segments);  // of each hull, those that are worth it
    std::uint64_t bytes = 0;
    double same_up_to = -1;
    for (std::size_t i = 0; i < lambdas.size(); ++i) {
      const bool descends = i == 0 || lambdas[i] < lambdas[i - 1];
      if (descends)
        for (std::size_t s = 0; s < segments; ++s) corners[s] = runs_[first + s].count;
      if (descends || lambdas[i] > same_up_to) {
        same_up_to = at(lambdas[i], c, first, corners.data(), cuts.data());
        bytes = 0;
        for (std::size_t s = 0; s < segments; ++s) {
          const Run& run = runs_[first + s];
          const Point* p = corners[s] ? &points_[run.first + corners[s] - 1] : nullptr;
          if (cuts[s] != (p ? p->cut : unit_ * run.top)) p = point_at(run, cuts[s]);
          if (p) bytes += (p->end + 7) / 8;
        }
      }
      sums[i] += bytes;
    }
  });
  return {sums.begin(), sums.end()};
}

double RateControl::error(const Cuts& cuts) const {
  double sum = energy_;
  for (std::size_t i = 0; i < runs_.size(); ++i)
    if (const Point* p = point_at(runs_[i], cuts[i])) sum -= p->gain;
  return std::max(0.0, sum);
}

double RateControl::block_error(int component, int block, const Cuts& cuts) const {
  const std::size_t first = first_cut(component, block);
  double sum = 0;
  for (std::size_t i = first; i < first_cut(component, block + 1); ++i) {
    const Point* p = point_at(runs_[i], cuts[i]);
    sum += runs_[i].energy - (p ? p->gain : 0);
  }
  return std::max(0.0, sum);
}

Cuts RateControl::with_error(double wanted, double& log2_lambda) const {
  double low = kEverything - 1;
  double high = 60;  // no error of a picture is worth more
  for (int i = 0; i < 45; ++i) {
    const double middle = (low + high) / 2;
    (error(at(std::exp2(middle))) > wanted ? high : low) = middle;
  }
  log2_lambda = low;
  if (low < kEverything) return complete();
  // The bracketing slopes differ by segments that change together; as many are taken as needed. In small pictures the
  // last one may overshoot by far. Then another one is taken, the one that overshoots least.
  constexpr float kHardlyFlatter = 0.5f;  // its slope relative to that of the others
  const Cuts finer = at(std::exp2(low));
  Cuts cuts = at(std::exp2(high));
  double now = error(cuts);
  const auto gain_of = [&](std::size_t i, int cut) {
    const Point* before = point_at(runs_[i], cuts[i]);
    const Point* after = point_at(runs_[i], cut);
    return (after ? after->gain : 0) - (before ? before->gain : 0);
  };
  const auto for_segments = [&](const auto& f) {
    for (const Component& c : components_)
      for (int block = 0; block < c.grid->blocks(); ++block)
        for (std::size_t s = 0; s < static_cast<std::size_t>(c.segments); ++s) {
          const std::size_t first = c.first + static_cast<std::size_t>(block) * static_cast<std::size_t>(c.segments);
          const int parent = c.parents[s];
          f(first + s, parent < 0 ? 0 : lowest_cut(header_.profile, cuts[first + static_cast<std::size_t>(parent)]));
        }
  };
  for_segments([&](std::size_t i, int lowest) {
    if (finer[i] >= cuts[i] || finer[i] < lowest) return;
    const double gain = gain_of(i, finer[i]);
    if (now - gain < wanted) return;
    now -= gain;
    cuts[i] = finer[i];
  });
  if (now <= wanted) return cuts;
  const auto flattest = static_cast<float>(kHardlyFlatter * std::exp2(low));
  const Point* best = nullptr;
  std::size_t of = 0;
  double least = 0;
  for_segments([&](std::size_t i, int lowest) {
    const Run& run = runs_[i];
    const Point* before = point_at(run, cuts[i]);
    const Point* next = before ? before + 1 : points_.data() + run.first;
    if (next == points_.data() + run.first + run.count || next->cut < lowest || next->slope < flattest) return;
    const double gain = gain_of(i, next->cut);
    if (now - gain > wanted || (best && gain >= least)) return;
    best = next;
    of = i;
    least = gain;
  });
  if (!best) return finer;
  cuts[of] = best->cut;
  return cuts;
}

// ------------------------------------------------------------------------------------------------------------- layers

namespace {

// log2 of the slopes of `layers` layers relative to that of the last, descending. Bit planes are 2 apart. Truncating a
// layer keeps its coarse parts, which is not quite the order of slopes. Hence many layers, up to three a plane,
// truncate better: up to 1.4 dB on mobile at a third of its bytes. Few layers are a subset of many.
std::vector<double> layer_slopes(int layers) {
  static constexpr double kInOrderOfNeed[kMaxLayers] = {0, 4, 2, 6, 1.4, 3.4, 8, 10, 12, 14, 0.7, 2.7, 5.4, 4.7, 7, 9};
  std::vector<double> slopes(kInOrderOfNeed, kInOrderOfNeed + layers);
  std::sort(slopes.rbegin(), slopes.rend());
  return slopes;
}

}  // namespace

const std::vector<Cuts>& RateControl::rows(double lambda) const {
  const std::vector<double> slopes = layer_slopes(header_.layers);
  if (rows_at_ == lambda && rows_.size() == slopes.size()) return rows_;
  rows_.assign(slopes.size(), Cuts(runs_.size()));
  for_blocks([&](const Component& c, std::size_t first) {
    for (std::size_t l = 0; l < slopes.size(); ++l)
      at(lambda * std::exp2(slopes[l]), c, first, rows_[l].data() + first);
  });
  rows_at_ = lambda;
  return rows_;
}

std::vector<Cuts> RateControl::layers(const Cuts& final, double lambda, int layers) const {
  if (layers == 1) return std::vector<Cuts>(static_cast<std::size_t>(header_.layers), final);
  std::vector<Cuts> out;
  const std::vector<double> used = layer_slopes(layers);
  const std::vector<double> all = layer_slopes(header_.layers);
  const std::vector<Cuts>& cuts_by_slope = rows(lambda);
  for (std::size_t l = 0; l + 1 < all.size(); ++l) {
    const bool is_used = std::find(used.begin(), used.end(), all[l]) != used.end();
    if (l > 0 && !is_used) {
      out.push_back(out.back());
      continue;
    }
    const auto row = std::find(all.begin(), all.end(), is_used ? all[l] : used.front()) - all.begin();
    Cuts cuts = cuts_by_slope[static_cast<std::size_t>(row)];
    // A layer includes those before it and does not exceed the last. Both properties keep the limits by parents valid.
    for (std::size_t i = 0; i < cuts.size(); ++i) {
      if (l > 0) cuts[i] = std::min(cuts[i], out.back()[i]);
      cuts[i] = std::max(cuts[i], final[i]);
    }
    out.push_back(std::move(cuts));
  }
  out.push_back(final);
  return out;
}

int RateControl::layers_worth(const Cuts& final, double lambda) const {
  const auto bytes_of = [&](int n) { return static_cast<double>(chunk_bytes(layers(final, lambda, n))); };
  const double allowed = (header_.motion ? 1.01 : 1.02) * bytes_of(1);
  int n = header_.layers;
  while (n > 1 && bytes_of(n) > allowed) --n;
  return n;
}

void RateControl::divide(const std::vector<Cuts>& layers, LayeredGop& out) {
  out.components.resize(components_.size());
  for (std::size_t c = 0; c < components_.size(); ++c) {
    out.components[c].grid = components_[c].grid;
    out.components[c].blocks.resize(static_cast<std::size_t>(components_[c].grid->blocks()));
  }
  for_blocks([&](const Component& c, std::size_t first) {
    auto& blocks = out.components[static_cast<std::size_t>(&c - components_.data())].blocks;
    auto& block = blocks[(first - c.first) / static_cast<std::size_t>(c.segments)];
    block.resize(static_cast<std::size_t>(c.segments));
    for (std::size_t s = 0; s < block.size(); ++s) {
      const Run& run = runs_[first + s];
      LayeredSegment& segment = block[s];
      segment.top = run.top;
      segment.parts.resize(layers.size());
      std::uint32_t done = 0;
      for (std::size_t l = 0; l < layers.size(); ++l) {
        const int cut = std::min<int>(layers[l][first + s], unit_ * run.top);
        const std::uint32_t end = std::max(done, end_at(run, cut));
        segment.parts[l] = {bytes_.data() + run.offset + done / 8, (end - done + 7) / 8,
                            static_cast<std::uint8_t>(cut)};
        done = end;
      }
    }
  });
  if (header_.profile == Profile::kFast) shift_parts(layers, out);
}

// Parts of the fast profile begin at any bit of their codeword; here they are moved to byte boundaries.
void RateControl::shift_parts(const std::vector<Cuts>& layers, LayeredGop& out) {
  std::size_t total = 0;
  std::vector<std::vector<std::size_t>> places(components_.size());  // of the parts of a block in shifted_
  for (std::size_t c = 0; c < components_.size(); ++c)
    for (const auto& block : out.components[c].blocks) {
      places[c].push_back(total);
      for (const LayeredSegment& segment : block)
        for (const LayerPart& part : segment.parts) total += part.size;
    }
  if (shifted_.size() < total) shifted_.resize(total);
  for_blocks([&](const Component& component, std::size_t first) {
    const auto c = static_cast<std::size_t>(&component - components_.data());
    const std::size_t block = (first - component.first) / static_cast<std::size_t>(component.segments);
    std::uint8_t* at = shifted_.data() + places[c][block];
    std::size_t i = first;
    for (LayeredSegment& segment : out.components[c].blocks[block]) {
      const Run& run = runs_[i];
      std::uint32_t done = 0;
      for (std::size_t l = 0; l < layers.size(); ++l) {
        const std::uint32_t end = std::max(done, end_at(run, std::min<int>(layers[l][i], unit_ * run.top)));
        LayerPart& part = segment.parts[l];
        copy_bits(bytes_.data() + run.offset + done / 8, done % 8, end - done, at);
        part.data = at;
        at += part.size;
        done = end;
      }
      ++i;
    }
  });
}

// [layer][segment]
std::vector<std::uint32_t> RateControl::part_sizes(const std::vector<Cuts>& layers) const {
  std::vector<std::uint32_t> sizes(layers.size() * runs_.size());
  for_blocks([&](const Component& c, std::size_t first) {
    for (std::size_t i = first; i < first + static_cast<std::size_t>(c.segments); ++i) {
      std::uint32_t done = 0;
      for (std::size_t l = 0; l < layers.size(); ++l) {
        const std::uint32_t end = std::max(done, end_at(runs_[i], layers[l][i]));
        sizes[l * runs_.size() + i] = (end - done + 7) / 8;
        done = end;
      }
    }
  });
  return sizes;
}

std::uint64_t RateControl::chunk_bytes(const std::vector<Cuts>& layers) const {
  const std::vector<std::uint32_t> sizes = part_sizes(layers);
  std::vector<bool> adds(layers.size(), true);
  for (std::size_t l = 1; l < layers.size(); ++l) adds[l] = layers[l] != layers[l - 1];
  const int bands = components_[0].grid->table().temporal_bands();
  const int distances = header_.spatial_levels + 1;
  std::atomic<std::uint64_t> sum = 0;
  in_parallel(pool_, header_.layers * bands * distances, [&](int chunk, int) {
    const auto l = static_cast<std::size_t>(chunk / (bands * distances));
    const int b = chunk / distances % bands;
    ChunkSize size;
    HeadRows rows;
    for (std::size_t c = 0; c < components_.size() && adds[l]; ++c) {
      const Component& component = components_[c];
      const int k = header_.components[c].spatial_levels - chunk % distances;
      if (k < 0 || component.grid->families()[static_cast<std::size_t>(b)].frames == 0) continue;
      const auto s = static_cast<std::size_t>(segment_index(*component.grid, b, k));
      const int parent = component.parents[s];
      rows.resize(static_cast<std::size_t>(component.grid->blocks()));
      std::size_t i = component.first;
      for (std::size_t n = 0; n < rows.top.size(); ++n, i += static_cast<std::size_t>(component.segments)) {
        const auto whole = static_cast<std::uint8_t>(unit_ * runs_[i + s].top);
        rows.top[n] = runs_[i + s].top;
        rows.limit[n] = parent < 0 ? std::uint8_t{0} : runs_[i + static_cast<std::size_t>(parent)].top;
        rows.before[n] = l == 0 ? whole : std::min(layers[l - 1][i + s], whole);
        rows.low[n] = std::min(layers[l][i + s], whole);
        rows.size[n] = sizes[l * runs_.size() + i + s];
      }
      size.add(head_codes(rows, l == 0, parent < 0));
    }
    sum += bytes_in_packet(size.bytes());
  });
  return sum;
}

// Spends the rest of the budget on the next truncation points by slope that fit.
void RateControl::fill(std::uint64_t budget, int layers, double lambda, Cuts& final, LayeredGop& out) {
  const auto bytes_of = [&](const Cuts& cuts) { return chunk_bytes(this->layers(cuts, lambda, layers)); };
  struct Candidate {
    float slope;
    std::size_t component, segment;
    bool operator<(const Candidate& o) const {
      return slope != o.slope ? slope < o.slope : segment != o.segment ? segment > o.segment : component > o.component;
    }
  };
  std::uint64_t used = bytes_of(final);
  constexpr int kMostRounds = 12;
  constexpr std::uint64_t kNear = 4000;  // the budget counts as used when less than this is left, about one part
  // Of the remaining bytes; headers grow as well, which is known only afterwards.
  double share = 0.95;
  for (int round = 0; round < kMostRounds && used + std::max<std::uint64_t>(4, budget / kNear) < budget; ++round) {
    Cuts next = final;
    const auto next_point = [&](std::size_t i) -> const Point* {
      const Run& run = runs_[i];
      const Point* begin = points_.data() + run.first;
      const Point* p = std::partition_point(begin, begin + run.count, [&](const Point& q) { return q.cut >= next[i]; });
      return p == begin + run.count || p->slope <= 0 ? nullptr : p;
    };
    std::priority_queue<Candidate> queue;
    for (std::size_t c = 0; c < components_.size(); ++c) {
      const std::size_t n =
          static_cast<std::size_t>(components_[c].segments) * static_cast<std::size_t>(components_[c].grid->blocks());
      for (std::size_t i = components_[c].first; i < components_[c].first + n; ++i)
        if (const Point* p = next_point(i)) queue.push({p->slope, c, i});
    }
    auto room = static_cast<std::int64_t>(share * static_cast<double>(budget - used));
    while (!queue.empty() && room > 0) {
      const Candidate best = queue.top();
      queue.pop();
      const std::size_t i = best.segment;
      const Component& c = components_[best.component];
      const std::size_t s = (i - c.first) % static_cast<std::size_t>(c.segments);
      const Point* p = next_point(i);
      if (const int parent = c.parents[s];
          parent >= 0 && p->cut < lowest_cut(header_.profile, next[i - s + static_cast<std::size_t>(parent)]))
        continue;
      const std::int64_t more = (static_cast<std::int64_t>(p->end) - end_at(runs_[i], next[i]) + 7) / 8 + 1;
      if (more > room) continue;
      room -= more;
      next[i] = p->cut;
      if (const Point* q = next_point(i)) queue.push({q->slope, best.component, i});
    }
    if (next == final) break;
    const std::uint64_t bytes = bytes_of(next);
    if (bytes > budget) {
      share *= 0.5;
      continue;
    }
    used = bytes;
    final = std::move(next);
  }
  divide(this->layers(final, lambda, layers), out);
}

// Finds the slope at which the chunks take `budget` bytes, or slightly less, which fill() completes. The logarithms of
// slope and bytes are nearly linear, so a bracket is narrowed by the secant through its ends. Each evaluation divides
// all layers, so few are made.
bool RateControl::fit(std::uint64_t budget, int layers, double& lambda, LayeredGop& out, Cuts& final) {
  const auto bytes_of = [&](const Cuts& cuts, double at) { return chunk_bytes(this->layers(cuts, at, layers)); };
  // Does everything fit?
  final = complete();
  if (body_bytes(final) <= budget && bytes_of(final, lambda) <= budget) {
    divide(this->layers(final, lambda, layers), out);
    return true;
  }
  constexpr double kNear = 0.003;  // share of the budget that may be left for fill()
  constexpr double kPerBytes = 2;  // octaves of slope per octave of bytes, before anything is known
  constexpr double kLeast = 0.02;  // smallest step, in octaves
  // Largest step, in octaves; doubles every second time until the bracket is closed.
  constexpr double kLongest = 8;
  constexpr double kLeastShare = 0.02;  // least share of a bracket that a step removes
  constexpr double kRange = 80;         // octaves from the first guess to the end of the search
  constexpr int kMostLooks = 60;
  struct End {
    double slope;
    double bytes;
  };
  std::optional<End> fits;
  std::optional<End> exceeds;
  const double first = std::log2(std::max(lambda, 1e-9));
  const double wanted = std::log2(std::max(static_cast<double>(budget), 1.0) * (1 - kNear / 2));
  double slope = first;
  for (int look = 0; look < kMostLooks && std::abs(slope - first) < kRange; ++look) {
    const double at = std::exp2(slope);
    const std::uint64_t bytes = bytes_of(rows(at).back(), at);
    const double log_bytes = std::log2(std::max(static_cast<double>(bytes), 1.0));
    if (bytes <= budget) {
      fits = {slope, log_bytes};
      if (static_cast<double>(bytes) > (1 - kNear) * static_cast<double>(budget)) break;
    } else {
      exceeds = {slope, log_bytes};
    }
    if (!fits || !exceeds) {
      const double step = std::max(kPerBytes * std::abs(log_bytes - wanted), kLeast) * std::exp2(look / 2.0);
      slope += (fits ? -1 : 1) * std::min(step, kLongest);
      continue;
    }
    const double width = fits->slope - exceeds->slope;
    if (width < 1e-6) break;
    const double share = (exceeds->bytes - wanted) / std::max(exceeds->bytes - fits->bytes, 1e-9);
    // Secants can converge slowly on a curve, so every third step bisects.
    slope = exceeds->slope + width * (look % 3 == 2 ? 0.5 : std::clamp(share, kLeastShare, 1 - kLeastShare));
  }
  if (!fits) return false;
  lambda = std::exp2(fits->slope);
  final = rows(lambda).back();
  fill(budget, layers, lambda, final, out);
  return true;
}

// -------------------------------------------------------------------------------------------------------------- spool

namespace {

template <class T>
void put(std::FILE* f, const T* data, std::size_t n) {
  if (n == 0) return;  // the pointer may be null, as in a flat picture
  require(std::fwrite(data, sizeof(T), n, f) == n, ErrorKind::kIo, "cannot write to the temporary file of the encoder");
}
template <class T>
void take(std::FILE* f, T* data, std::size_t n) {
  if (n == 0) return;
  require(std::fread(data, sizeof(T), n, f) == n, ErrorKind::kIo, "cannot read the temporary file of the encoder");
}

}  // namespace

void RateControl::save(std::FILE* file) const {
  const std::uint64_t sizes[3] = {runs_.size(), points_.size(), bytes_.size()};
  put(file, sizes, 3);
  put(file, &energy_, 1);
  put(file, &spared_, 1);
  put(file, runs_.data(), runs_.size());
  put(file, points_.data(), points_.size());
  put(file, bytes_.data(), bytes_.size());
}

RateControl::RateControl(const StreamHeader& header, const std::vector<const BlockGrid*>& grids, std::FILE* file,
                         ThreadPool* pool)
    : header_(header), pool_(pool) {
  prepare(grids);
  std::uint64_t sizes[3] = {};
  take(file, sizes, 3);
  take(file, &energy_, 1);
  take(file, &spared_, 1);
  runs_.resize(sizes[0]);
  points_.resize(sizes[1]);
  bytes_.resize(sizes[2]);
  take(file, runs_.data(), runs_.size());
  take(file, points_.data(), points_.size());
  take(file, bytes_.data(), bytes_.size());
}

}  // namespace trivelet
