// Truncation points of one GOP by a slope, a plane or an error (PCRD-opt; see rate_control.h).
#include "codec/rate/rate_control.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <utility>

namespace trivelet {

void RateControl::in_parallel(int count, const std::function<void(int, int)>& body) const {
  if (pool_) return pool_->parallel_for(count, body);
  for (int i = 0; i < count; ++i) body(i, 0);
}

void RateControl::for_blocks(const std::function<void(const Component&, std::size_t)>& f) const {
  std::vector<std::pair<const Component*, std::size_t>> blocks;
  for (const Component& c : components_)
    for (std::size_t i = c.first; i < c.first + c.count; i += static_cast<std::size_t>(c.segments))
      blocks.emplace_back(&c, i);
  in_parallel(static_cast<int>(blocks.size()), [&](int i, int) {
    f(*blocks[static_cast<std::size_t>(i)].first, blocks[static_cast<std::size_t>(i)].second);
  });
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

}  // namespace trivelet
