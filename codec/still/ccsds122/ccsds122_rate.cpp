// Allocates a byte budget to segments along their convex hulls (see ccsds122_rate.h).
#include "codec/still/ccsds122/ccsds122_rate.h"

#include <algorithm>
#include <string>

#include "codec/base/limits.h"
#include "trivelet/error.h"

namespace trivelet::ccsds122 {
namespace {

/// An edge of a segment's upper convex hull.
struct Edge {
  double slope;
  std::uint32_t segment;
  std::uint64_t from_bits, to_bits;
};

void hull_edges(const std::vector<CutPoint>& points, std::uint32_t segment, std::vector<Edge>& edges) {
  std::vector<std::size_t> hull{0};
  const auto slope = [&](std::size_t a, std::size_t b) {
    return (points[b].gain - points[a].gain) / static_cast<double>(points[b].bits - points[a].bits);
  };
  for (std::size_t i = 1; i < points.size(); ++i) {
    if (points[i].bits <= points[hull.back()].bits) continue;
    while (hull.size() > 1 && slope(hull[hull.size() - 2], hull.back()) <= slope(hull.back(), i)) hull.pop_back();
    hull.push_back(i);
  }
  for (std::size_t i = 1; i < hull.size(); ++i)
    edges.push_back({slope(hull[i - 1], hull[i]), segment, points[hull[i - 1]].bits, points[hull[i]].bits});
}

}  // namespace

std::vector<std::uint32_t> allocate_bytes(std::span<const std::vector<CutPoint>> points, std::uint64_t total_bytes,
                                          int word_bytes) {
  const std::uint64_t word = static_cast<std::uint64_t>(word_bytes);
  const auto whole_words = [&](std::uint64_t bits) { return ((bits + 7) / 8 + word - 1) / word * word; };
  std::vector<std::uint32_t> bytes(points.size());
  std::vector<Edge> edges;
  std::uint64_t spent = 0;
  for (std::uint32_t s = 0; s < points.size(); ++s) {
    bytes[s] = static_cast<std::uint32_t>(whole_words(points[s].front().bits));
    spent += bytes[s];
    hull_edges(points[s], s, edges);
  }
  require(spent <= total_bytes, ErrorKind::kBadArgument,
          "headers and DC data need " + count_of(spent, "byte") + ", more than the limit of " +
              std::to_string(total_bytes) + " for the whole stream; use larger segments or a higher rate");
  // Steepest first. The hull is concave, so a segment's edges keep their order; the stable sort keeps it on ties.
  std::stable_sort(edges.begin(), edges.end(), [](const Edge& a, const Edge& b) { return a.slope > b.slope; });
  for (const Edge& e : edges) {
    const std::uint64_t want = whole_words(e.to_bits);
    const std::uint64_t have = bytes[e.segment];
    if (want <= have) continue;
    const std::uint64_t room = (total_bytes - spent) / word * word;
    const std::uint64_t more = std::min(want - have, room);
    bytes[e.segment] += static_cast<std::uint32_t>(more);
    spent += more;
    if (more < want - have) break;  // the budget ends within this edge
  }
  return bytes;
}

}  // namespace trivelet::ccsds122
