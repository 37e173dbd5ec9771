// Divides a GOP into layers, and finds the slope at which they take a budget (rate_control.h).
#include <algorithm>
#include <atomic>
#include <cmath>
#include <optional>
#include <queue>
#include <utility>

#include "codec/rate/bit_copy.h"
#include "codec/rate/rate_control.h"

namespace trivelet {

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
  in_parallel(header_.layers * bands * distances, [&](int chunk, int) {
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

}  // namespace trivelet
