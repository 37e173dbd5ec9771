// The decisions that code the motion of a frame, in order (FORMAT.md "Motion", "Regions"). Written once for the
// encoder, the decoder and the search, which only counts bits. Devices run it too, but only decoders on the CPU throw.
//
// A coder has `kReading`, `bool bit(dense::State&, bool)` and `bool flat(bool)`. A reading coder ignores the given bit
// and returns the one that it read.
#pragma once

#include <array>
#include <cstdlib>

#include "codec/base/bad_stream.h"
#include "codec/entropy/dense/dense_model.h"
#include "codec/motion/motion.h"

namespace trivelet {

inline constexpr int kMotionGuesses = 6;    ///< limit of neighbours' motions that a block may take over
inline constexpr int kMotionPrefixes = 15;  ///< of a vector difference: its number of bits

struct MotionContexts {
  dense::State split[3][3];  ///< [log2 of the block's cells - 1][neighbours in smaller blocks]
  dense::State merge[3];
  dense::State guess[kMotionGuesses - 1];
  dense::State plain, both, other;
  dense::State zero[2];
  dense::State prefix[2][kMotionPrefixes];
  dense::State second[2][kMotionPrefixes + 1];
  /// The states at the start of a region.
  MotionContexts();
};

/// The states in the order of MotionContexts, each as P(1) in 1/256, trained on the motion of foreman (CIF and QCIF),
/// trees and calendar at qualities of 30, 45 and 60.
inline MotionContexts::MotionContexts() {
  static constexpr std::uint8_t kStart[] = {
      46,  129, 198, 73,  166, 223, 123, 212, 228,                                    // split
      131, 154, 193,                                                                  // merge
      122, 87,  108, 86,  75,                                                         // guess
      27,  110, 97,                                                                   // plain, both, other
      88,  88,                                                                        // zero
      160, 148, 146, 158, 161, 161, 149, 79,  23,  20, 64,  64,  64,  64,  64,        // prefix, x
      160, 148, 146, 158, 161, 161, 149, 79,  23,  20, 64,  64,  64,  64,  64,        // y
      128, 107, 109, 105, 102, 101, 115, 120, 55,  64, 110, 128, 128, 128, 128, 128,  // second, x
      128, 107, 109, 105, 102, 101, 115, 120, 55,  64, 110, 128, 128, 128, 128, 128,  // y
  };
  static_assert(sizeof kStart * sizeof(dense::State) == sizeof(MotionContexts));
  auto* states = &split[0][0];
  for (std::size_t i = 0; i < sizeof kStart; ++i) {
    states[i].one = static_cast<std::uint16_t>(kStart[i] << 8);
    states[i].seen = 6;
  }
}

/// The motion of the next coarser level, half of which predicts that of a frame.
struct MotionParent {
  int place = -1;       ///< of a frame next to this one; -1: none
  bool behind = false;  ///< that frame is after this one
  int reference = 0;    ///< its reference on this frame's other side
};

/// The parent of the frame at place t of a level.
TRIVELET_HOST_DEVICE inline MotionParent motion_parent(int t, int level, const MotionPlaces& places) {
  const int s = 1 << level;
  const bool behind = (t / s / 2) % 2 == 0;
  const int beside = behind ? t + s : t - s;
  if (level + 1 >= places.levels || beside >= places.count) return {};
  const int reference = motion_references(beside, level + 1, places).number_of(2 * t - beside);
  if (reference < 0) return {};
  return {beside, behind, reference};
}

/// The data to code the motion of a frame inside a region.
struct MotionRegion {
  MotionGrid grid;
  MotionCell* cells = nullptr;         ///< of the frame
  int y0 = 0, x0 = 0, y1 = 0, x1 = 0;  ///< bounds in cells
  bool has_other = false;
  bool older = false;
  const MotionCell* parent = nullptr;  ///< cells of the frame at MotionParent::place
  bool parent_behind = false;
  std::size_t parent_reference = 0;
  int components = 1;
  std::array<bool, kMotionRegion * kMotionRegion> done{};

  MotionRegion() = default;
  /// Region number `region` of the frame at place t of a level. `own` and `parent_cells` are the cells of this frame
  /// and of its parent.
  TRIVELET_HOST_DEVICE MotionRegion(const MotionGrid& of, const MotionPlaces& places, int t, int level, int region,
                                    int component_count, MotionCell* own, const MotionParent& p,
                                    const MotionCell* parent_cells)
      : grid(of),
        cells(own),
        parent(parent_cells),
        parent_behind(p.behind),
        parent_reference(static_cast<std::size_t>(p.reference)),
        components(component_count) {
    y0 = region / grid.region_columns() * kMotionRegion;
    x0 = region % grid.region_columns() * kMotionRegion;
    y1 = std::min(grid.rows, y0 + kMotionRegion);
    x1 = std::min(grid.columns, x0 + kMotionRegion);
    const MotionReferences r = motion_references(t, level, places);
    has_other = r.other >= 0;
    older = r.older;
  }
  /// The same for frames of `motion`.
  MotionRegion(GopMotion& motion, int t, int level, int region, int component_count)
      : MotionRegion(motion, t, level, region, component_count, motion_parent(t, level, motion.places)) {}

  TRIVELET_HOST_DEVICE bool inside(int y, int x) const { return y >= y0 && x >= x0 && y < y1 && x < x1; }
  TRIVELET_HOST_DEVICE bool known(int y, int x) const {
    return inside(y, x) && done[static_cast<std::size_t>((y - y0) * kMotionRegion + x - x0)];
  }
  TRIVELET_HOST_DEVICE const MotionCell& at(int y, int x) const { return cells[grid.index(y, x)]; }
  /// Sets the cells of a block.
  void set(int y, int x, int log2, const MotionCell& c) {
    for (int j = y; j < std::min(y1, y + (1 << log2)); ++j)
      for (int i = x; i < std::min(x1, x + (1 << log2)); ++i) set(j, i, c);
  }
  TRIVELET_HOST_DEVICE void set(int y, int x, const MotionCell& c) {
    cells[grid.index(y, x)] = c;
    done[static_cast<std::size_t>((y - y0) * kMotionRegion + x - x0)] = true;
  }

 private:
  MotionRegion(GopMotion& motion, int t, int level, int region, int component_count, const MotionParent& p)
      : MotionRegion(motion.grid, motion.places, t, level, region, component_count,
                     motion.fields[static_cast<std::size_t>(t)].data(), p,
                     p.place < 0 || motion.fields[static_cast<std::size_t>(p.place)].empty()
                         ? nullptr
                         : motion.fields[static_cast<std::size_t>(p.place)].data()) {}
};

TRIVELET_HOST_DEVICE inline MotionVector limited_vector(int x, int y) {
  return {static_cast<std::int16_t>(clamp_int(x, -kMotionReach, kMotionReach)),
          static_cast<std::int16_t>(clamp_int(y, -kMotionReach, kMotionReach))};
}

/// The vector of a block's second reference, from that of the first, if the motion is uniform; and the reverse.
TRIVELET_HOST_DEVICE inline MotionVector other_from_past(MotionVector v, bool older) {
  return older ? limited_vector(3 * v.x, 3 * v.y) : limited_vector(-v.x, -v.y);
}
TRIVELET_HOST_DEVICE inline MotionVector past_from_other(MotionVector v, bool older) {
  return older ? limited_vector(v.x / 3, v.y / 3) : limited_vector(-v.x, -v.y);
}

/// Sets unused members of a block to their derived values.
TRIVELET_HOST_DEVICE inline void complete_cell(MotionCell& c, bool older) {
  if (c.mode == MotionMode::kPast) c.vector[1] = other_from_past(c.vector[0], older);
  if (c.mode == MotionMode::kOther) c.vector[0] = past_from_other(c.vector[1], older);
  if (c.mode == MotionMode::kPlain) c.vector = {};
  if (c.mode != MotionMode::kPlain) c.plain = {};
}

/// Half of the parent's motion at a cell: the vectors of both references. False if there is none.
TRIVELET_HOST_DEVICE inline bool parent_vectors(const MotionRegion& r, int y, int x, std::array<MotionVector, 2>& v) {
  if (!r.parent) return false;
  const MotionCell& p = r.parent[r.grid.index(y, x)];
  if (p.mode == MotionMode::kPlain) return false;
  const MotionVector whole = p.vector[r.parent_reference];
  const MotionVector half = limited_vector(whole.x / 2, whole.y / 2);
  const MotionVector back = limited_vector(-half.x, -half.y);
  v = r.parent_behind ? std::array{half, back} : std::array{back, half};
  if (r.older) v[1] = other_from_past(v[0], true);
  return true;
}

/// The motions that a block may take over.
struct MotionGuesses {
  std::array<MotionCell, kMotionGuesses> cell;
  int count = 0;

  MotionGuesses() = default;
  TRIVELET_HOST_DEVICE MotionGuesses(const MotionRegion& r, int y, int x, int log2) {
    const int n = 1 << log2;
    const auto neighbour = [&](int j, int i) {
      if (r.known(j, i)) add(r, r.at(j, i));
    };
    neighbour(std::min(y + n, r.y1) - 1, x - 1);
    neighbour(y - 1, std::min(x + n, r.x1) - 1);
    neighbour(y - 1, x + n);
    neighbour(y + n, x - 1);
    neighbour(y - 1, x - 1);
    MotionCell c;
    c.mode = r.has_other ? MotionMode::kBoth : MotionMode::kPast;
    if (parent_vectors(r, std::min(y + n / 2, r.y1 - 1), std::min(x + n / 2, r.x1 - 1), c.vector)) add(r, c);
    c.vector = {};
    add(r, c);
  }

 private:
  TRIVELET_HOST_DEVICE TRIVELET_NOINLINE void add(const MotionRegion& r, MotionCell c) {
    if (c.mode == MotionMode::kPlain || count == kMotionGuesses) return;
    if (!r.has_other) c.mode = MotionMode::kPast;
    complete_cell(c, r.older);
    for (int i = 0; i < count; ++i)
      if (cell[static_cast<std::size_t>(i)].predicts_as(c)) return;
    cell[static_cast<std::size_t>(count++)] = c;
  }
};

/// The prediction of a block's vector.
TRIVELET_HOST_DEVICE TRIVELET_NOINLINE inline MotionVector expected_vector(const MotionRegion& r, int y, int x,
                                                                           int log2, int reference) {
  std::array<MotionVector, 3> v{};
  std::size_t n = 0;
  const auto neighbour = [&](int j, int i) {
    if (n < v.size() && r.known(j, i) && r.at(j, i).mode != MotionMode::kPlain)
      v[n++] = r.at(j, i).vector[static_cast<std::size_t>(reference)];
  };
  neighbour(y, x - 1);
  neighbour(y - 1, x);
  neighbour(y - 1, x + (1 << log2));
  neighbour(y - 1, x - 1);
  if (n == 0) {
    std::array<MotionVector, 2> parents;
    return parent_vectors(r, y, x, parents) ? parents[static_cast<std::size_t>(reference)] : MotionVector{};
  }
  if (n < 3) return v[0];
  const auto median = [](int a, int b, int c) {
    return static_cast<std::int16_t>(std::max(std::min(a, b), std::min(std::max(a, b), c)));
  };
  return {median(v[0].x, v[1].x, v[2].x), median(v[0].y, v[1].y, v[2].y)};
}

template <class Coder>
TRIVELET_HOST_DEVICE TRIVELET_NOINLINE int code_motion_difference(Coder& coder, MotionContexts& m, int axis,
                                                                  int value) {
  if (coder.bit(m.zero[axis], value == 0)) return 0;
  const unsigned size = static_cast<unsigned>(std::abs(value));
  int bits = 0;
  if constexpr (!Coder::kReading)
    while (size >> (bits + 1)) ++bits;
  int k = 0;
  while (k < kMotionPrefixes && coder.bit(m.prefix[axis][k], k < bits)) ++k;
  unsigned read = 1;
  for (int i = k - 1; i >= 0; --i) {
    const bool wanted = (size >> i & 1) != 0;
    read = read << 1 | (i == k - 1 ? coder.bit(m.second[axis][k], wanted) : coder.flat(wanted));
  }
  const bool negative = coder.flat(value < 0);
  return negative ? -static_cast<int>(read) : static_cast<int>(read);
}

/// Codes the motion of a block. Writing: `guess` is the index in `guesses` to take over, -1 for none.
template <class Coder>
TRIVELET_HOST_DEVICE void code_motion_block(Coder& coder, MotionContexts& m, const MotionRegion& r, int y, int x,
                                            int log2, const MotionGuesses& guesses, int guess, MotionCell& c) {
  if (coder.bit(m.merge[std::min(log2, 2)], guess >= 0)) {
    int i = 0;
    while (i < guesses.count - 1 && coder.bit(m.guess[i], i < guess)) ++i;
    c = guesses.cell[static_cast<std::size_t>(i)];
    return;
  }
  MotionMode mode = c.mode;
  if (coder.bit(m.plain, mode == MotionMode::kPlain)) {
    mode = MotionMode::kPlain;
  } else if (!r.has_other) {
    mode = MotionMode::kPast;
  } else if (coder.bit(m.both, mode == MotionMode::kBoth)) {
    mode = MotionMode::kBoth;
  } else {
    mode = coder.bit(m.other, mode == MotionMode::kOther) ? MotionMode::kOther : MotionMode::kPast;
  }
  c.mode = mode;
  if (mode == MotionMode::kPlain)
    for (int i = 0; i < r.components; ++i) {
      std::int8_t& plain = c.plain[static_cast<std::size_t>(i)];
      int v = 0;
      for (int b = kMotionPlainBits - 1; b >= 0; --b) v = v << 1 | (coder.flat((plain + 32) >> b & 1) ? 1 : 0);
      plain = static_cast<std::int8_t>(v - 32);
    }
  for (int k = 0; k < 2; ++k) {
    if (!c.uses(k)) continue;
    MotionVector& v = c.vector[static_cast<std::size_t>(k)];
    const MotionVector e = expected_vector(r, y, x, log2, k);
    const int vx = e.x + code_motion_difference(coder, m, 0, v.x - e.x);
    const int vy = e.y + code_motion_difference(coder, m, 1, v.y - e.y);
    if constexpr (Coder::kReading)
      if (std::abs(vx) > kMotionReach || std::abs(vy) > kMotionReach)
        bad("motion: a vector of " + std::to_string(vx) + "," + std::to_string(vy) + " quarters of a sample; " +
            std::to_string(kMotionReach) + " is the limit");
    v = limited_vector(vx, vy);
  }
  complete_cell(c, r.older);
}

/// Whether a block reaches beyond the region: it is then divided without a bit.
TRIVELET_HOST_DEVICE inline bool must_split(const MotionRegion& r, int y, int x, int log2) {
  return log2 > 0 && (y + (1 << log2) > r.y1 || x + (1 << log2) > r.x1);
}

TRIVELET_HOST_DEVICE inline dense::State& split_context(MotionContexts& m, const MotionRegion& r, int y, int x,
                                                        int log2) {
  const auto smaller = [&](int j, int i) { return r.known(j, i) && r.at(j, i).log2_cells < log2; };
  return m.split[log2 - 1][smaller(y - 1, x) + smaller(y, x - 1)];
}

}  // namespace trivelet
