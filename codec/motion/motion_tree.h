// The search for motion in the blocks of a frame, written once for the CPU and GPUs: a class M measures candidates.
//
//   RootSearch    the vectors of all blocks inside of a largest one, 64 samples a side. They depend on pictures, on the
//                 vectors of reduced pictures around, and on the coarser level, not on other blocks of this frame: all
//                 of a frame are found at once.
//   RegionChoice  sizes, modes, and what is taken over from neighbours, in the order of coding, with exact prices.
//
// All numbers are integers. M has
//   SearchWork& work
//   void compare(n, y, x, size)  work.cost[] of the first n of work.tried: differences of samples
//   void measure(n, y, x, size)  the same of transforms
//   void enter(y, x)             what follows is about this largest block
//   void compare_starts(y, x)    work.started[] of work.start[]
//   MotionVector coarse(reference, row, column)     of a block of reduced pictures
//   void plain(cy, cx, log2, std::int8_t*)          constants of a block
//   first(), step()              this lane, and the number of lanes, that share loops; 0 and 1 on the CPU
//   sync()                       after it all lanes see work as the others left it
#pragma once

#include "codec/motion/motion_choice.h"
#include "codec/motion/motion_syntax.h"

#if defined(__CUDACC__)
#define TRIVELET_SHARED _Pragma("nv_exec_check_disable") TRIVELET_HOST_DEVICE
#else
#define TRIVELET_SHARED
#endif

namespace trivelet::motion_choice {

/// A block of every size inside of a largest one, by size and then in rows.
inline constexpr int kNodes = 1 + 4 + 16 + 64;
TRIVELET_HOST_DEVICE static inline int first_node(int log2) {
  return log2 == 3 ? 0 : log2 == 2 ? 1 : log2 == 1 ? 5 : 21;
}
/// `y` and `x` in cells from the corner of the largest block.
TRIVELET_HOST_DEVICE static inline int node_at(int y, int x, int log2) {
  return first_node(log2) + ((y >> log2) << (3 - log2)) + (x >> log2);
}

inline constexpr int kUnknown = 1 << 29;  ///< cost of what was not looked at

/// What was found for a block.
struct NodeMotion {
  std::array<MotionVector, 2> own{};   ///< the best vector of each reference by itself
  std::array<MotionVector, 2> both{};  ///< those for the mean of both
  std::array<std::int8_t, 4> plain{};
  std::array<int, 4> cost{kUnknown, kUnknown, kUnknown, kUnknown};  ///< what is left, by MotionMode
  int estimate = kUnknown;  ///< the least cost of the block, divided or not, with estimated bits
  MotionMode best = MotionMode::kPast;
  bool measured = false;  ///< false: it lies across the border of the picture, or in a block that is not divided
  bool whole = false;     ///< it is not divided

  TRIVELET_HOST_DEVICE MotionCell cell(MotionMode mode, bool older) const {
    MotionCell c;
    c.mode = mode;
    c.vector = mode == MotionMode::kBoth ? both : own;
    if (mode == MotionMode::kPlain) c.plain = plain;
    complete_cell(c, older);
    return c;
  }
};

/// What predicts a block: one vector, the mean of two, or a constant.
struct Tried {
  std::array<MotionVector, 2> v{};
  std::int8_t uses = 0;  ///< bit 0 and bit 1: the references
  std::int8_t plain = 0;
};

inline constexpr int kMostStarts = 18;  ///< of a reference
inline constexpr int kMostTried = 2 * kMostStarts;

struct SearchWork {
  std::array<MotionVector, kMostStarts> start[2];  ///< in whole samples
  int starts[2] = {};
  std::uint16_t started[2][kMostStarts][66];  ///< differences of 64 cells; two more keep banks of memory apart
  Tried tried[kMostTried];
  int cost[kMostTried];
  MotionGuesses guesses;
  MotionCell considered[4];
};

/// What the search of a level has in common.
struct TreeSetting {
  int height = 0, width = 0;  ///< of the picture
  int factor = 4;             ///< of reduced pictures
  int coarse_blocks = 2;      ///< their blocks along a side of the largest block
  int lambda = 1;             ///< cost of a bit
  int enough_per_cell = 6;
  const int* prices = nullptr;
  MotionContexts* contexts = nullptr;  ///< never changed
};

template <class M>
class TreeSearch {
 public:
  TRIVELET_SHARED TreeSearch(M& m, const TreeSetting& s, const MotionRegion& r) : m_(m), w_(m.work), s_(s), r_(r) {}

 protected:
  TRIVELET_SHARED bool leads() const { return m_.first() == 0; }
  TRIVELET_SHARED int references() const { return r_.has_other ? 2 : 1; }
  TRIVELET_SHARED int cost_of_bits(int bits) const { return s_.lambda * bits >> 8; }
  TRIVELET_SHARED bool is_enough(int cost, int log2) const {
    return cost < s_.lambda * (kEnoughBits + s_.enough_per_cell * (1 << 2 * log2));
  }
  TRIVELET_SHARED MotionVector inside(MotionVector v, int y, int x, int size) const {
    return motion_choice::inside(v, y, x, size, s_.height, s_.width);
  }
  TRIVELET_SHARED void take(int i, const MotionCell& c, int y, int x, int size) {
    if (!leads()) return;
    Tried t;
    if (c.mode == MotionMode::kPlain) {
      t.plain = c.plain[0];
    } else {
      t.uses = static_cast<std::int8_t>((c.uses(0) ? 1 : 0) + (c.uses(1) ? 2 : 0));
      t.v = {inside(c.vector[0], y, x, size), inside(c.vector[1], y, x, size)};
    }
    w_.tried[i] = t;
  }

  M& m_;
  SearchWork& w_;
  const TreeSetting& s_;
  const MotionRegion& r_;
};

/// The vectors of the blocks in a largest block.
template <class M>
class RootSearch : TreeSearch<M> {
  using Base = TreeSearch<M>;
  using Base::m_, Base::w_, Base::s_, Base::r_;

 public:
  using Base::Base;

  /// `nodes`: of all root blocks of the frame, in rows. First the largest blocks of all, then the others.
  TRIVELET_SHARED void run(int cy, int cx, NodeMotion* nodes, bool largest) {
    root_y_ = cy;
    root_x_ = cx;
    all_ = nodes;
    nodes_ = nodes_of(cy, cx);
    if (!largest && nodes_[0].whole) return;
    m_.enter(cy * kMotionCell, cx * kMotionCell);
    find_starts();
    for (int log2 = largest ? 3 : 2; log2 >= (largest ? 3 : 0); --log2)
      for (int y = 0; y < kMotionRoot; y += 1 << log2)
        for (int x = 0; x < kMotionRoot; x += 1 << log2) {
          const NodeMotion n = node(y, x, log2);
          if (this->leads()) nodes_[node_at(y, x, log2)] = n;
          m_.sync();
        }
    if (largest) return;
    for (int log2 = 1; log2 <= 3; ++log2)
      for (int y = 0; y < kMotionRoot; y += 1 << log2)
        for (int x = 0; x < kMotionRoot; x += 1 << log2) close(y, x, log2);
  }

 private:
  // Vectors that others found: in reduced pictures here and around, and those of the coarser level.
  TRIVELET_SHARED void find_starts() {
    if (this->leads())
      for (int k = 0; k < this->references(); ++k) {
        int& n = w_.starts[k];
        n = 0;
        const auto add = [&](MotionVector v) {
          const auto whole = [](int q) { return static_cast<std::int16_t>((q + kQuarters / 2) >> 2 << 2); };
          v = this->inside({whole(v.x), whole(v.y)}, root_y_ * kMotionCell, root_x_ * kMotionCell, kBlock);
          for (int i = 0; i < n; ++i)
            if (w_.start[k][static_cast<std::size_t>(i)] == v) return;
          if (n < kMostStarts) w_.start[k][static_cast<std::size_t>(n++)] = v;
        };
        const int row = root_y_ / kMotionRoot * s_.coarse_blocks, column = root_x_ / kMotionRoot * s_.coarse_blocks;
        add({});
        for (int j = -1; j <= s_.coarse_blocks; ++j)
          for (int i = -1; i <= s_.coarse_blocks; ++i) {
            const bool beside_y = j < 0 || j == s_.coarse_blocks, beside_x = i < 0 || i == s_.coarse_blocks;
            if (!(beside_y && beside_x)) add(m_.coarse(k, row + j, column + i));
          }
        for (int i = 0; i < 4; ++i) {
          std::array<MotionVector, 2> v;
          const int y = root_y_ + (i >> 1) * 4 + 2, x = root_x_ + (i & 1) * 4 + 2;
          if (y < r_.y1 && x < r_.x1 && parent_vectors(r_, y, x, v)) add(v[static_cast<std::size_t>(k)]);
        }
      }
    m_.sync();
    m_.compare_starts(root_y_ * kMotionCell, root_x_ * kMotionCell);
  }

  // The vectors that a block's are compared with, which stand for those of neighbours: those of the block around it.
  TRIVELET_SHARED std::array<MotionVector, 2> expected(const NodeMotion* around, int cy, int cx, int log2) const {
    if (around) return around->own;
    std::array<MotionVector, 2> v{};
    const int half = 1 << log2 >> 1;
    if (!parent_vectors(r_, std::min(cy + half, r_.y1 - 1), std::min(cx + half, r_.x1 - 1), v))
      for (int k = 0; k < this->references(); ++k)
        v[static_cast<std::size_t>(k)] =
            m_.coarse(k, root_y_ / kMotionRoot * s_.coarse_blocks, root_x_ / kMotionRoot * s_.coarse_blocks);
    return v;
  }

  TRIVELET_SHARED NodeMotion* nodes_of(int cy, int cx) const {
    return all_ + (cy / kMotionRoot * ((r_.grid.columns + kMotionRoot - 1) / kMotionRoot) + cx / kMotionRoot) * kNodes;
  }
  // What was found for the next larger block at a place, or one around it; null if nothing was.
  TRIVELET_SHARED const NodeMotion* found_at(int cy, int cx, int log2) const {
    if (!r_.inside(cy, cx)) return nullptr;
    const NodeMotion* nodes = nodes_of(cy, cx);
    for (int l = nodes == nodes_ ? log2 + 1 : 3; l <= 3; ++l) {
      const NodeMotion& n = nodes[node_at(cy % kMotionRoot, cx % kMotionRoot, l)];
      if (n.measured) return &n;
    }
    return nullptr;
  }
  TRIVELET_SHARED NodeMotion node(int at_y, int at_x, int log2) {
    NodeMotion n;
    const int cy = root_y_ + at_y, cx = root_x_ + at_x;
    if (cy >= r_.y1 || cx >= r_.x1) return n;
    const NodeMotion* around = log2 == 3 ? nullptr : &nodes_[node_at(at_y, at_x, log2 + 1)];
    n.whole = around && around->whole;
    if (n.whole) return n;
    const std::array<MotionVector, 2> e = expected(around, cy, cx, log2);
    n.own = e;
    if (must_split(r_, cy, cx, log2)) return n;
    n.measured = true;
    if (!is_known(n, around, cy, cx, log2)) search(n, e, cy, cx, log2);
    return n;
  }

  // Whether what the block around it does, what the coarser level does, or nothing at all is good enough.
  TRIVELET_SHARED bool is_known(NodeMotion& n, const NodeMotion* around, int cy, int cx, int log2) {
    const int y = cy * kMotionCell, x = cx * kMotionCell, size = kMotionCell << log2;
    MotionCell known[3];
    int count = 0;
    const auto add = [&](MotionCell c) {
      if (!r_.has_other && c.mode != MotionMode::kPlain) c.mode = MotionMode::kPast;
      complete_cell(c, r_.older);
      for (int i = 0; i < count; ++i)
        if (known[i].predicts_as(c)) return;
      this->take(count, c, y, x, size);
      known[count++] = c;
    };
    MotionCell c;
    c.mode = MotionMode::kBoth;
    if (around && around->measured) {
      if (around->best != MotionMode::kPlain) add(around->cell(around->best, r_.older));
    } else {
      const int half = 1 << log2 >> 1;
      if (parent_vectors(r_, std::min(cy + half, r_.y1 - 1), std::min(cx + half, r_.x1 - 1), c.vector)) add(c);
      c.vector = {};
      add(c);
    }
    if (count == 0) return false;
    m_.measure(count, y, x, size);
    int best = 0;
    for (int i = 1; i < count; ++i)
      if (w_.cost[i] < w_.cost[best]) best = i;
    const int cost = w_.cost[best];
    m_.sync();
    n.estimate = cost + this->cost_of_bits(kKnownBits);
    if (!this->is_enough(n.estimate, log2)) return false;
    n.best = known[best].mode;
    n.own = n.both = known[best].vector;
    n.cost[static_cast<std::size_t>(n.best)] = cost;
    n.whole = true;
    return true;
  }

  // The least costs of both references' vectors while they are searched.
  struct Search {
    std::array<MotionVector, 2> v{}, expected{}, beside[2]{};
    int besides = 0;
    int least[2] = {kUnknown, kUnknown};  // with bits
    int left[2] = {kUnknown, kUnknown};   // without
  };
  TRIVELET_SHARED void add_vector(int& n, int k, MotionVector v, MotionVector other, bool with_other) {
    if (this->leads()) {
      Tried& t = w_.tried[n];
      t.v[static_cast<std::size_t>(k)] = v;
      t.v[static_cast<std::size_t>(1 - k)] = other;
      t.uses = static_cast<std::int8_t>(with_other ? 3 : 1 << k);
    }
    ++n;
  }
  // Adds those around the best of a reference; in a second round not the one it came from.
  TRIVELET_SHARED void add_around(int& n, int k, int step, int count, const Search& s, int y, int x, int size,
                                  const MotionVector* before, const MotionVector* other) {
    const auto kk = static_cast<std::size_t>(k);
    for (int i = 0; i < count; ++i) {
      // Left, right, up, down, and the corners.
      const int to_x = i == 0 || i == 4 || i == 6 ? -1 : i == 2 || i == 3 ? 0 : 1;
      const int to_y = i < 2 ? 0 : i == 2 || i == 4 || i == 7 ? -1 : 1;
      const MotionVector v = this->inside(limited_vector(s.v[kk].x + step * to_x, s.v[kk].y + step * to_y), y, x, size);
      if (!before || v != *before) add_vector(n, k, v, other ? *other : MotionVector{}, other != nullptr);
    }
  }
  TRIVELET_SHARED int bits_of(const Search& s, std::size_t k, MotionVector v) const {
    int bits = vector_bits(v, s.expected[k]);
    for (int i = 0; i < s.besides; ++i) bits = std::min(bits, vector_bits(v, s.beside[i][k]) + kBesideBits);
    return bits;
  }
  // Takes the best of the first n of a kind. Returns whether one is better than before.
  TRIVELET_SHARED bool take_best(int from, int to, int k, Search& s) const {
    const auto kk = static_cast<std::size_t>(k);
    bool better = false;
    for (int i = from; i < to; ++i) {
      if (w_.cost[i] >= s.least[k]) continue;
      const MotionVector v = w_.tried[i].v[kk];
      const int cost = w_.cost[i] + this->cost_of_bits(bits_of(s, kk, v));
      if (cost >= s.least[k]) continue;
      s.least[k] = cost;
      s.left[k] = w_.cost[i];
      s.v[kk] = v;
      better = true;
    }
    return better;
  }

  TRIVELET_SHARED void search(NodeMotion& n, const std::array<MotionVector, 2>& e, int cy, int cx, int log2) {
    const int y = cy * kMotionCell, x = cx * kMotionCell, size = kMotionCell << log2;
    Search s;
    s.expected = e;
    if (log2 < 3) {
      const int out = 1 << log2;
      for (const NodeMotion* q : {found_at(cy, cx + ((cx >> log2 & 1) ? out : -out), log2),
                                  found_at(cy + ((cy >> log2 & 1) ? out : -out), cx, log2)})
        if (q) s.beside[s.besides++] = q->own;
    }
    begin(s, y, x, size, log2);
    for (int step = log2 == 3 || s_.factor >= 8 ? 2 * kQuarters : kQuarters; step >= kQuarters; step /= 2)
      walk(s, step, y, x, size);
    refine(s, y, x, size);
    n.own = n.both = s.v;
    n.cost[0] = s.left[0];
    if (r_.has_other) n.cost[1] = s.left[1];
    m_.plain(cy, cx, log2, n.plain.data());
    m_.sync();
    int tries = 0;
    this->take(tries++, n.cell(MotionMode::kPlain, r_.older), y, x, size);
    if (r_.has_other) this->take(tries++, n.cell(MotionMode::kBoth, r_.older), y, x, size);
    m_.measure(tries, y, x, size);
    n.cost[3] = w_.cost[0];
    if (r_.has_other) n.cost[2] = w_.cost[1];
    m_.sync();
    estimate(n, s);
    if (n.best == MotionMode::kBoth && size == kRefinedSize) {
      refine_both(n, s, y, x, size);
      estimate(n, s);
    }
    n.whole = log2 == 0 || this->is_enough(n.estimate, log2);
  }

  // The best of the starts, and of the expected vectors.
  TRIVELET_SHARED void begin(Search& s, int y, int x, int size, int log2) {
    const int top = (y >> 3) - root_y_, left = (x >> 3) - root_x_, side = 1 << log2;
    for (int k = 0; k < this->references(); ++k)
      for (int i = m_.first(); i < w_.starts[k]; i += m_.step()) {
        int sum = 0;
        for (int j = 0; j < side * side; ++j)
          sum += w_.started[k][i][(top + (j >> log2)) * kMotionRoot + left + (j & (side - 1))];
        w_.cost[k * kMostStarts + i] = kSadUnit * sum;
      }
    m_.sync();
    for (int k = 0; k < this->references(); ++k) {
      const auto kk = static_cast<std::size_t>(k);
      for (int i = 0; i < w_.starts[k]; ++i) {
        if (w_.cost[k * kMostStarts + i] >= s.least[k]) continue;
        const MotionVector v = w_.start[k][static_cast<std::size_t>(i)];
        const int cost = w_.cost[k * kMostStarts + i] + this->cost_of_bits(bits_of(s, kk, v));
        if (cost >= s.least[k]) continue;
        s.least[k] = cost;
        s.v[kk] = v;
      }
    }
    m_.sync();
    int n = 0;
    for (int k = 0; k < this->references(); ++k) {
      const MotionVector e = s.expected[static_cast<std::size_t>(k)];
      const auto whole = [](int q) { return static_cast<std::int16_t>((q + kQuarters / 2) >> 2 << 2); };
      add_vector(n, k, this->inside({whole(e.x), whole(e.y)}, y, x, size), {}, false);
    }
    m_.compare(n, y, x, size);
    for (int k = 0; k < n; ++k) (void)take_best(k, k + 1, k, s);
    m_.sync();
  }

  // Downhill, both references at once.
  TRIVELET_SHARED void walk(Search& s, int step, int y, int x, int size) {
    bool moves[2] = {true, r_.has_other};
    std::array<MotionVector, 2> before = s.v;
    for (int round = 0; round < kRounds && (moves[0] || moves[1]); ++round) {
      int n = 0, end_of_past = 0;
      const std::array<MotionVector, 2> from = s.v;
      for (int k = 0; k < 2; ++k) {
        if (moves[k])
          add_around(n, k, step, 4, s, y, x, size, round == 0 ? nullptr : &before[static_cast<std::size_t>(k)],
                     nullptr);
        if (k == 0) end_of_past = n;
      }
      m_.compare(n, y, x, size);
      moves[0] = take_best(0, end_of_past, 0, s);
      moves[1] = take_best(end_of_past, n, 1, s);
      m_.sync();
      before = from;
    }
  }

  // To quarters of a sample, by transforms.
  TRIVELET_SHARED void refine(Search& s, int y, int x, int size) {
    for (int step = kQuarters / 2; step >= 1; step /= 2) {
      int n = 0, end_of_past = 0;
      for (int k = 0; k < this->references(); ++k) {
        const auto kk = static_cast<std::size_t>(k);
        if (step == kQuarters / 2) {
          s.least[k] = kUnknown;
          add_vector(n, k, s.v[kk], {}, false);
          add_vector(n, k, this->inside(s.expected[kk], y, x, size), {}, false);
          for (int j = 0; j < s.besides; ++j) add_vector(n, k, this->inside(s.beside[j][kk], y, x, size), {}, false);
        }
        add_around(n, k, step, 8, s, y, x, size, nullptr, nullptr);
        if (k == 0) end_of_past = n;
      }
      m_.measure(n, y, x, size);
      (void)take_best(0, end_of_past, 0, s);
      (void)take_best(end_of_past, n, 1, s);
      m_.sync();
    }
  }

  // Both vectors, each with the other one as it is; the worse one first.
  TRIVELET_SHARED void refine_both(NodeMotion& n, const Search& found, int y, int x, int size) {
    Search s;
    s.expected = found.expected;
    s.besides = found.besides;
    s.beside[0] = found.beside[0];
    s.beside[1] = found.beside[1];
    for (int i = 0; i < 2; ++i) {
      const int k = (found.least[0] < found.least[1]) == (i == 0) ? 1 : 0;
      const auto kk = static_cast<std::size_t>(k);
      s.v = n.both;
      s.left[k] = n.cost[2];
      s.least[k] = n.cost[2] + this->cost_of_bits(bits_of(s, kk, n.both[kk]));
      for (int step = kQuarters / 2; step >= 1; step /= 2) {
        int count = 0;
        add_around(count, k, step, 8, s, y, x, size, nullptr, &n.both[1 - kk]);
        m_.measure(count, y, x, size);
        (void)take_best(0, count, k, s);
        m_.sync();
      }
      n.both[kk] = s.v[kk];
      n.cost[2] = s.left[k];
    }
  }

  // The cheapest mode, by estimated bits.
  TRIVELET_SHARED void estimate(NodeMotion& n, const Search& s) const {
    const int bits[4] = {kModeBits + bits_of(s, 0, n.own[0]), kModeBits + bits_of(s, 1, n.own[1]),
                         kBothBits + bits_of(s, 0, n.both[0]) + bits_of(s, 1, n.both[1]),
                         kModeBits + 256 * kMotionPlainBits * r_.components};
    n.estimate = kUnknown;
    for (int mode = 0; mode < 4; ++mode) {
      if (n.cost[static_cast<std::size_t>(mode)] == kUnknown) continue;
      const int cost = n.cost[static_cast<std::size_t>(mode)] + this->cost_of_bits(bits[mode]);
      if (cost >= n.estimate) continue;
      n.estimate = cost;
      n.best = static_cast<MotionMode>(mode);
    }
  }

  // Decides whether a block may be divided, once its quarters are known.
  TRIVELET_SHARED void close(int at_y, int at_x, int log2) {
    NodeMotion& n = nodes_[node_at(at_y, at_x, log2)];
    const bool absent = root_y_ + at_y >= r_.y1 || root_x_ + at_x >= r_.x1;
    int sum = 0;
    for (int i = 0; i < 4; ++i) {
      const int half = 1 << (log2 - 1);
      const NodeMotion& quarter = nodes_[node_at(at_y + (i >> 1) * half, at_x + (i & 1) * half, log2 - 1)];
      sum += quarter.estimate == kUnknown ? 0 : quarter.estimate;
    }
    const bool divided =
        !absent && !n.whole && (!n.measured || sum < n.estimate + this->cost_of_bits(kDivisionBits << log2));
    const bool cheaper = divided && (!n.measured || sum < n.estimate);
    m_.sync();
    if (this->leads() && !absent) {
      if (n.measured) n.whole = !divided;
      if (cheaper) n.estimate = sum;
    }
    m_.sync();
  }

  NodeMotion *all_ = nullptr, *nodes_ = nullptr;
  int root_y_ = 0, root_x_ = 0;
};

/// Sets the cells of a region, root by root, from what RootSearch found.
template <class M>
class RegionChoice : TreeSearch<M> {
  using Base = TreeSearch<M>;
  using Base::m_, Base::w_, Base::s_, Base::r_;

 public:
  TRIVELET_SHARED RegionChoice(M& m, const TreeSetting& s, MotionRegion& r) : Base(m, s, r), region_(r) {}

  /// Finds the cheapest division of a root block and sets its cells.
  TRIVELET_SHARED void run(int root_y, int root_x, const NodeMotion* found) {
    struct Open {
      int cy, cx;
      int child;  // that comes next, -1: the block as a whole
      bool must;
      int cost;
      Best whole;
    };
    m_.enter(root_y * kMotionCell, root_x * kMotionCell);
    Open open[4];
    int depth = 0;
    open[0] = {root_y, root_x, -1, false, 0, {}};
    while (depth >= 0) {
      Open& n = open[depth];
      const int log2 = 3 - depth;
      int cost = 0;
      bool done = n.cy >= r_.y1 || n.cx >= r_.x1;
      if (!done && n.child < 0) {
        const NodeMotion& of = found[node_at(n.cy - root_y, n.cx - root_x, log2)];
        n.must = must_split(r_, n.cy, n.cx, log2);
        n.cost = 0;
        if (!n.must) {
          n.whole = leaf(of, n.cy, n.cx, log2);
          if (log2 > 0) {
            const dense::State& state = split_context(*s_.contexts, r_, n.cy, n.cx, log2);
            n.cost = this->cost_of_bits(BitCounter::price(s_.prices, state, true));
            n.whole.cost += this->cost_of_bits(BitCounter::price(s_.prices, state, false));
          }
          n.whole.cell.log2_cells = static_cast<std::uint8_t>(log2);
        }
        n.child = n.must || !(log2 == 0 || of.whole || this->is_enough(n.whole.cost, log2)) ? 0 : 5;
      }
      if (!done && n.child < 4 && (n.must || n.cost < n.whole.cost)) {
        const int half = 1 << (log2 - 1), k = n.child++;
        open[++depth] = {n.cy + (k >> 1) * half, n.cx + (k & 1) * half, -1, false, 0, {}};
        continue;
      }
      if (!done) {
        const bool divided = n.child < 5 && (n.must || n.cost < n.whole.cost);
        if (!divided) set(n.cy, n.cx, log2, n.whole.cell);
        cost = divided ? n.cost : n.whole.cost;
      }
      if (--depth >= 0) open[depth].cost += cost;
    }
  }

 private:
  struct Best {
    int cost = kUnknown;
    MotionCell cell;
  };

  TRIVELET_SHARED void set(int cy, int cx, int log2, const MotionCell& c) {
    m_.sync();
    for (int i = m_.first(); i < 1 << 2 * log2; i += m_.step()) {
      const int y = cy + (i >> log2), x = cx + (i & ((1 << log2) - 1));
      if (y < r_.y1 && x < r_.x1) region_.set(y, x, c);
    }
    m_.sync();
  }

  // The best motion of a block as a whole: what neighbours do, or what was found.
  TRIVELET_SHARED Best leaf(const NodeMotion& of, int cy, int cx, int log2) {
    const int y = cy * kMotionCell, x = cx * kMotionCell, size = kMotionCell << log2;
    m_.sync();
    if (this->leads()) w_.guesses = MotionGuesses(r_, cy, cx, log2);
    m_.sync();
    const int guesses = w_.guesses.count;
    for (int i = 0; i < guesses; ++i) this->take(i, w_.guesses.cell[static_cast<std::size_t>(i)], y, x, size);
    m_.measure(guesses, y, x, size);
    Best best;
    int bits = BitCounter::price(s_.prices, s_.contexts->merge[std::min(log2, 2)], true);
    for (int i = 0; i < guesses; ++i) {
      const bool last = i == guesses - 1;
      const int cost = w_.cost[i] + this->cost_of_bits(
                                        bits + (last ? 0 : BitCounter::price(s_.prices, s_.contexts->guess[i], false)));
      if (!last) bits += BitCounter::price(s_.prices, s_.contexts->guess[i], true);
      if (cost >= best.cost) continue;
      best.cost = cost;
      best.cell = w_.guesses.cell[static_cast<std::size_t>(i)];
    }
    m_.sync();
    if (this->is_enough(best.cost, log2)) return best;
    NodeMotion expected;
    for (int k = 0; k < this->references(); ++k) {
      const auto kk = static_cast<std::size_t>(k);
      expected.own[kk] = expected.both[kk] = expected_vector(r_, cy, cx, log2, k);
    }
    const int modes = r_.has_other ? 3 : 1;
    for (int i = 0; i < modes; ++i) this->take(i, expected.cell(static_cast<MotionMode>(i), r_.older), y, x, size);
    m_.measure(modes, y, x, size);
    for (int i = m_.first(); i < 4; i += m_.step()) {
      w_.considered[i] = expected.cell(static_cast<MotionMode>(i), r_.older);
      if (i >= modes) w_.cost[i] = kUnknown;
    }
    consider(best, cy, cx, log2);
    for (int i = m_.first(); i < 4; i += m_.step()) {
      w_.considered[i] = of.cell(static_cast<MotionMode>(i), r_.older);
      w_.cost[i] = of.cost[static_cast<std::size_t>(i)];
    }
    consider(best, cy, cx, log2);
    return best;
  }

  // Takes the cheapest of work.considered, which leave work.cost.
  TRIVELET_SHARED void consider(Best& best, int cy, int cx, int log2) {
    m_.sync();
    for (int i = m_.first(); i < 4; i += m_.step()) {
      if (w_.cost[i] == kUnknown) continue;
      BitCounter counter(s_.prices);
      MotionCell coded = w_.considered[i];
      code_motion_block(counter, *s_.contexts, r_, cy, cx, log2, w_.guesses, -1, coded);
      w_.considered[i] = coded;
      w_.cost[i] += this->cost_of_bits(counter.bits);
    }
    m_.sync();
    for (int i = 0; i < 4; ++i)
      if (w_.cost[i] < best.cost) {
        best.cost = w_.cost[i];
        best.cell = w_.considered[i];
      }
    m_.sync();
  }

  MotionRegion& region_;
};

}  // namespace trivelet::motion_choice
