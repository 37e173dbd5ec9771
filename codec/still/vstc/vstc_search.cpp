// Rate-distortion search of prediction and residual trees (see vstc_search.h).
#include "codec/still/vstc/vstc_search.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace trivelet::vstc {

namespace {

constexpr int kBatchSamples = 1 << 14;
int order_of(int mode) { return mode < 2 ? 9 + mode : mode <= 10 ? mode - 2 : mode; }

std::ptrdiff_t stride_for(int lanes) { return ((lanes + 63) & ~63) + kSheetPad; }

/// Index of a sub-block in the cost tables, ordered by size.
struct NodeOffsets {
  int of[7][7];
  int total = 0;
  NodeOffsets(int log2_w, int log2_h) {
    for (int a = 0; a <= log2_w; ++a)
      for (int b = 0; b <= log2_h; ++b) {
        of[a][b] = total;
        total += 1 << (log2_w - a + log2_h - b);
      }
  }
};

struct Node {
  Joint coded = 0;
  double plain = 0;  ///< trials of a recursion without memory
  std::uint32_t stamp = 0;
  std::uint8_t choice = 0;
};

}  // namespace

/// One plane of a prediction block with all modes on trial side by side.
struct Search::Sheets {
  int log2_w = 0, log2_h = 0, count = 0, bits = 8;
  std::ptrdiff_t across_stride = 0;  ///< for sheets [y][mode][x]
  std::ptrdiff_t down_stride = 0;    ///< for sheets [x][mode][y]
  int words = 0;
  const int* modes = nullptr;
  int first_sine_down = 0, end_sine_across = 0;
  std::vector<std::int16_t> residual;
  std::vector<std::int16_t> down[7];     ///< vertical transforms, transposed; by log2 of the height
  std::vector<std::int16_t> values[49];  ///< both transforms
  std::vector<std::uint64_t> large[49];  ///< bit sets of values with a non-zero level
  bool have_down[7] = {};
  bool have[49] = {};
  std::vector<std::int64_t> energy;  ///< per mode: summed-area table of squares, (w + 1) x (h + 1)
  std::vector<Node> nodes;           ///< per mode
  int node_offset[7][7];
  int node_count = 0;
  std::uint32_t stamp = 0;

  std::int64_t squares(int mode_index, int x, int y, int w, int h) const {
    const std::ptrdiff_t row = (1 << log2_w) + 1;
    const std::int64_t* e = energy.data() + mode_index * row * ((1 << log2_h) + 1);
    return e[(y + h) * row + x + w] - e[(y + h) * row + x] - e[y * row + x + w] + e[y * row + x];
  }
  Node& node(int mode_index, int a, int b, int tx, int ty) {
    return nodes[static_cast<std::size_t>(mode_index * node_count + node_offset[a][b] + (ty << (log2_w - a)) + tx)];
  }
};

/// Buffers of a prediction block.
struct Search::Leaf {
  References plain[2], smooth[2];
  Sheets sheets[2];
  std::vector<std::int16_t> trial;  ///< predictions of all modes
  std::vector<std::int16_t> first, second;
  int modes[kModes];
  int mode_count = 0;
  Cost mode_costs[kModes];
  std::uint32_t around[kMaxSide * kMaxSide] = {};
  std::int16_t magnitude[kMaxSide * kMaxSide] = {};
  std::uint16_t touched[kMaxSide * kMaxSide];
  std::uint16_t places[kMaxSide * kMaxSide];
};

SearchConstants::SearchConstants(int qp, int bits) {
  const double weight = 0.92 * std::exp2((qp - 13.74) / 3.428) * std::exp2(2 * (bits - 8));
  lambda = std::max<Joint>(std::llround(weight * 256), 1);
  const std::int64_t root = std::llround(std::sqrt(weight) * 256);
  // The coefficients have a gain of 2^(15 - bits - area / 2).
  for (int area = 0; area <= 6; ++area)
    mode_root[area] = std::llround(static_cast<double>(root) * std::exp2(15 - bits - area / 2.0));
  for (int k = 0; k <= 12; ++k) {
    const double step = std::exp2((qp - 4) / 6.0 + 7 - k / 2.0);
    step_inverse[k] = std::llround(std::exp2(kRoundBits) / step);
    const std::int64_t least = (std::int64_t{1} << kRoundBits) - kRound;
    threshold[k] = static_cast<int>((least + step_inverse[k] - 1) / step_inverse[k]);
  }
}

int trial_modes(Effort effort) { return effort == Effort::kFast ? 2 : effort == Effort::kMedium ? 4 : kModes; }

Search::Search(Picture& picture, const std::vector<Plane>& source, const Params& params)
    : picture_(picture),
      source_(source),
      params_(params),
      kernels_(kernels(params.simd)),
      dequantiser_(params.qp),
      reconstructor_(picture, params.qp, kernels_),
      bits_(picture.format.bits),
      candidates_(trial_modes(params.effort)),
      constants_(params.qp, bits_),
      leaf_(std::make_unique<Leaf>()) {
  for (int k = 0; k <= 12; ++k)
    for (int l = 0; l < 64; ++l) value_of_[k][l] = dequantiser_.value(l, k);
  for (auto& set : zero_run_)
    for (int kw = 0; kw <= 6; ++kw)
      for (int kh = 0; kh <= 6; ++kh) set[kw * 7 + kh].resize((std::size_t{1} << (kw + kh)) + 1);
  for (auto& d : statistics_.decisions) d.assign(2 * kContexts, 0);
}

Search::~Search() = default;

void Search::freeze(const Contexts& contexts) {
  for (std::size_t set = 0; set < picture_.trees.size(); ++set) {
    for (std::size_t c = 0; c < kContexts; ++c) {
      const std::uint32_t p = contexts[set][c].probability();
      costs_[set][c] = {cost_of(65536 - p), cost_of(p)};
    }
    for (int kw = 0; kw <= picture_.log2_block; ++kw)
      for (int kh = 0; kh <= picture_.log2_block; ++kh) {
        std::vector<Cost>& run = zero_run_[set][kw * 7 + kh];
        const Scan& scan = scan_of(kw, kh);
        Cost sum = 0;
        for (std::size_t rank = 0; rank < run.size(); ++rank) {
          run[rank] = sum;
          if (rank + 1 == run.size()) break;
          const int at = scan.position[rank], x = at & ((1 << kw) - 1), y = at >> kw;
          sum += costs_[set][static_cast<std::size_t>(significant_context(kw + kh, x, y, 0))][0];
        }
      }
  }
}

void Search::block(int bx, int by, const Contexts& contexts, std::vector<Token>& tokens) {
  freeze(contexts);
  for (Tree& t : picture_.trees) {
    set_ = t.first_plane == 0 ? 0 : 1;
    tree(t, bx << t.log2_block, by << t.log2_block, t.log2_block, t.log2_block, kNever, params_.team, tokens);
  }
}

// ------------------------------------------------------------------------------------------------ prediction tree

namespace {

/// Saves samples and cells of a block, so that they can be restored.
class Saved {
 public:
  Saved(Picture& picture, Tree& tree, int x, int y, int log2_w, int log2_h)
      : picture_(picture), tree_(tree), x_(x), y_(y), w_(1 << log2_w), h_(1 << log2_h) {}
  void save() {
    samples_.clear();
    cells_.clear();
    for (int p = 0; p < tree_.planes; ++p)
      for (int j = 0; j < h_; ++j) {
        const Sample* row = plane(p).at(x_, y_ + j);
        samples_.insert(samples_.end(), row, row + w_);
      }
    for (int j = 0; j < h_; j += 4)
      for (int i = 0; i < w_; i += 4) cells_.push_back(tree_.cell(x_ + i, y_ + j));
  }
  void restore() {
    const Sample* from = samples_.data();
    for (int p = 0; p < tree_.planes; ++p)
      for (int j = 0; j < h_; ++j, from += w_) std::copy_n(from, w_, plane(p).at(x_, y_ + j));
    const Cell* cell = cells_.data();
    for (int j = 0; j < h_; j += 4)
      for (int i = 0; i < w_; i += 4) tree_.cell(x_ + i, y_ + j) = *cell++;
  }

 private:
  Plane& plane(int p) { return picture_.planes[static_cast<std::size_t>(tree_.first_plane + p)]; }
  Picture& picture_;
  Tree& tree_;
  int x_, y_, w_, h_;
  std::vector<Sample> samples_;
  std::vector<Cell> cells_;
};

}  // namespace

Joint Search::tree(Tree& t, int x, int y, int log2_w, int log2_h, Joint limit, Team* team, std::vector<Token>& tokens) {
  if (x >= t.width || y >= t.height) return 0;
  const Halving halving = halving_of(t, x, y, log2_w, log2_h);
  // Costs of the two halves of split 1 (upper, lower) or 2 (left, right); kNever when the limit is exceeded.
  const auto halves = [&](int split, Joint spent, Joint most, Team* helpers, std::vector<Token>& out) -> Joint {
    const int kw = log2_w - (split == 2), kh = log2_h - (split == 1);
    const Joint first = tree(t, x, y, kw, kh, most - spent, helpers, out);
    if (first >= kNever || spent + first >= most) return kNever;
    const Joint second = tree(t, split == 2 ? x + (1 << kw) : x, split == 1 ? y + (1 << kh) : y, kw, kh,
                              most - spent - first, helpers, out);
    return second >= kNever ? kNever : spent + first + second;
  };
  if (halving.forced_across || halving.forced_down)
    return halves(halving.forced_across ? 2 : 1, 0, limit, team, tokens);
  if (!halving.across && !halving.down) return leaf(t, x, y, log2_w, log2_h, team, tokens);

  const std::size_t start = tokens.size();
  const CostSet& cost = costs_[static_cast<std::size_t>(set_)];
  const auto any = static_cast<std::size_t>(split_context(log2_w, log2_h, smaller_neighbours(t, x, y, log2_w, log2_h)));
  tokens.push_back(0);
  Joint best = weighed(cost[any][0]) + leaf(t, x, y, log2_w, log2_h, team, tokens);
  const bool coded = std::any_of(tokens.begin() + static_cast<std::ptrdiff_t>(start) + 2, tokens.end(),
                                 [](Token v) { return v != 0; });
  if (params_.effort == Effort::kFast && !coded) return best;
  // A split costs at least its symbol and two modes.
  if (best <= weighed(cost[any][1] + 2 * std::min(cost[kKnown][0], cost[kKnown][1]))) return best;

  Saved saved(picture_, t, x, y, log2_w, log2_h);
  saved.save();
  std::vector<Token> trial;
  const auto direction = static_cast<std::size_t>(direction_context(log2_w, log2_h));
  const auto symbols = [&](int split) {
    return weighed(cost[any][1] + (halving.across && halving.down ? cost[direction][split == 2] : 0));
  };
  if (team && team->size() > 1 && params_.sharing == Sharing::kCandidates && halving.across && halving.down) {
    // Half of the members try one direction, the other half the other; the better tokens go to all.
    const int split = team->rank() < team->size() / 2 ? 1 : 2;
    t.fill(x, y, log2_w, log2_h, Cell{});
    trial.assign(1, static_cast<Token>(split));
    const Joint joint = halves(split, symbols(split), std::min(best, limit), &team->half(), trial);
    const auto [least, index] = team->minimum(joint, split);
    saved.restore();
    if (least < best) {
      team->broadcast(trial, index == 1 ? 0 : team->size() / 2);
      best = least;
      tokens.resize(start);
      tokens.insert(tokens.end(), trial.begin(), trial.end());
      t.fill(x, y, log2_w, log2_h, Cell{});
      reconstructor_.tree(t, x, y, log2_w, log2_h, trial.data());
    }
    return best;
  }
  for (int split = 1; split <= 2; ++split) {
    if (split == 1 ? !halving.down : !halving.across) continue;
    t.fill(x, y, log2_w, log2_h, Cell{});
    trial.assign(1, static_cast<Token>(split));
    const Joint joint = halves(split, symbols(split), std::min(best, limit), team, trial);
    if (joint < best) {
      best = joint;
      tokens.resize(start);
      tokens.insert(tokens.end(), trial.begin(), trial.end());
      saved.save();
    }
  }
  saved.restore();
  return best;
}

// -------------------------------------------------------------------------------------------- one prediction block

/// Selects the modes for a full trial, in the order of kModeOrder: those with the least magnitudes of 8x8 transforms.
void Search::choose_modes(const Tree& tree, int x, int y, int log2_w, int log2_h) {
  Leaf& l = *leaf_;
  const int w = 1 << log2_w, h = 1 << log2_h;
  const std::array<int, 3> known = known_modes(picture_, tree, x, y, log2_w, log2_h);
  for (int m = 0; m < kModes; ++m) {
    CostIo io(costs_);
    Syntax<CostIo> syntax(io, picture_);
    syntax.set(set_);
    syntax.mode(known, m);
    l.mode_costs[m] = static_cast<Cost>(io.total);
  }
  if (candidates_ == kModes) {
    l.mode_count = kModes;
    std::copy(kModeOrder.begin(), kModeOrder.end(), l.modes);
    return;
  }
  std::int32_t sums[kModes] = {};
  const int a = std::min(log2_w, 3), b = std::min(log2_h, 3);
  const std::ptrdiff_t across = stride_for(kModes * w), down = stride_for(kModes * h);
  l.trial.resize(static_cast<std::size_t>(across * h));
  l.first.resize(static_cast<std::size_t>(across * h));
  l.second.resize(static_cast<std::size_t>(down * w));
  for (int p = 0; p < tree.planes; ++p) {
    const Plane& source = source_[static_cast<std::size_t>(tree.first_plane + p)];
    for (int m = 0; m < kModes; ++m) {
      std::int16_t* out = l.trial.data() + m * w;
      const bool smoothed = may_smooth(picture_, tree) && smooths(m, log2_w, log2_h);
      kernels_.predict((smoothed ? l.smooth : l.plain)[p].corner, m, log2_w, log2_h, bits_,
                       filters_edges(tree, log2_w, log2_h), out, across);
      kernels_.subtract(source.at(x, y), source.coded_width, w, h, out, across);
    }
    kernels_.forward(l.trial.data(), across, h, kModes * w, matrix_of(b, false), b, true, b + bits_ - 9, l.first.data(),
                     across);
    kernels_.transpose(l.first.data(), across, w, h, kModes, l.second.data(), down);
    kernels_.forward(l.second.data(), down, w, kModes * h, matrix_of(a, false), a, true, a + 6, l.second.data(), down);
    kernels_.add_magnitudes(l.second.data(), down, h, w, kModes, sums);
  }
  std::pair<std::int64_t, int> order[kModes];
  const std::int64_t root = constants_.mode_root[a + b];
  for (int m = 0; m < kModes; ++m) order[m] = {std::int64_t{sums[m]} * 65536 + root * l.mode_costs[m], m};
  std::partial_sort(order, order + candidates_, order + kModes);
  l.mode_count = candidates_;
  for (int i = 0; i < candidates_; ++i) l.modes[i] = order[i].second;
  // The most probable mode is always tried.
  if (std::find(l.modes, l.modes + candidates_, known[0]) == l.modes + candidates_) l.modes[l.mode_count++] = known[0];
  std::sort(l.modes, l.modes + l.mode_count, [](int p, int q) { return order_of(p) < order_of(q); });
}

/// Fills the sheets of all planes with the residuals of `count` modes.
void Search::load(const Tree& tree, int x, int y, int log2_w, int log2_h, const int* modes, int count) {
  Leaf& l = *leaf_;
  const int w = 1 << log2_w, h = 1 << log2_h;
  for (int p = 0; p < tree.planes; ++p) {
    Sheets& s = l.sheets[p];
    const Plane& source = source_[static_cast<std::size_t>(tree.first_plane + p)];
    s.log2_w = log2_w;
    s.log2_h = log2_h;
    s.count = count;
    s.bits = bits_;
    s.modes = modes;
    s.across_stride = stride_for(count * w);
    s.down_stride = stride_for(count * h);
    s.words = (count * h + 63) / 64;
    s.end_sine_across = s.first_sine_down = 0;
    for (int i = 0; i < count; ++i) {
      if (sine_across(modes[i])) s.end_sine_across = i + 1;
      if (!sine_down(modes[i])) s.first_sine_down = i + 1;
    }
    std::fill(std::begin(s.have), std::end(s.have), false);
    std::fill(std::begin(s.have_down), std::end(s.have_down), false);
    s.residual.resize(static_cast<std::size_t>(s.across_stride * h));
    s.energy.assign(static_cast<std::size_t>(count * (w + 1) * (h + 1)), 0);
    const NodeOffsets offsets(log2_w, log2_h);
    std::memcpy(s.node_offset, offsets.of, sizeof s.node_offset);
    s.node_count = offsets.total;
    if (s.nodes.size() < static_cast<std::size_t>(count * offsets.total))
      s.nodes.resize(static_cast<std::size_t>(count * offsets.total));
    ++s.stamp;
    for (int i = 0; i < count; ++i) {
      std::int16_t* out = s.residual.data() + i * w;
      const bool smoothed = may_smooth(picture_, tree) && smooths(modes[i], log2_w, log2_h);
      kernels_.predict((smoothed ? l.smooth : l.plain)[p].corner, modes[i], log2_w, log2_h, bits_,
                       filters_edges(tree, log2_w, log2_h), out, s.across_stride);
      kernels_.subtract(source.at(x, y), source.coded_width, w, h, out, s.across_stride);
      std::int64_t* e = s.energy.data() + static_cast<std::ptrdiff_t>(i) * (w + 1) * (h + 1);
      for (int j = 0; j < h; ++j) {
        std::int64_t row = 0;
        for (int k = 0; k < w; ++k) {
          const std::int64_t v = out[j * s.across_stride + k];
          row += v * v;
          e[(j + 1) * (w + 1) + k + 1] = e[j * (w + 1) + k + 1] + row;
        }
      }
    }
  }
}

Joint Search::leaf(Tree& t, int x, int y, int log2_w, int log2_h, Team* team, std::vector<Token>& tokens) {
  Leaf& l = *leaf_;
  const int w = 1 << log2_w, h = 1 << log2_h;
  ++statistics_.predictions;
  for (int p = 0; p < t.planes; ++p)
    gather_references(picture_.planes[static_cast<std::size_t>(t.first_plane + p)], t, bits_, x, y, log2_w, log2_h,
                      l.plain[p], l.smooth[p]);
  choose_modes(t, x, y, log2_w, log2_h);

  // In a team, every member tries some of the modes.
  int mine[kModes], mine_index[kModes], mine_count = 0;
  const bool shared = team && team->size() > 1;
  for (int i = 0; i < l.mode_count; ++i)
    if (!shared || i % team->size() == team->rank()) {
      mine_index[mine_count] = i;
      mine[mine_count++] = l.modes[i];
    }

  const std::size_t start = tokens.size();
  const CostSet& cost = costs_[static_cast<std::size_t>(set_)];
  Joint best = kNever;
  int best_index = kModes;
  const int batch = std::max(1, kBatchSamples / (w * h));
  for (int first = 0; first < mine_count; first += batch) {
    const int count = std::min(batch, mine_count - first);
    load(t, x, y, log2_w, log2_h, mine + first, count);
    int chosen = -1;
    unsigned chosen_coded = 0;  // bit set of planes
    for (int i = 0; i < count; ++i) {
      Joint joint = weighed(l.mode_costs[mine[first + i]]);
      int before = -1;
      unsigned coded_planes = 0;
      for (int p = 0; p < t.planes; ++p) {
        Sheets& s = l.sheets[p];
        const auto context = static_cast<std::size_t>(coded_root_context(log2_w + log2_h, before));
        const Joint zero = weighed(cost[context][0]) + (s.squares(i, 0, 0, w, h) << 16);
        const Joint some = zero <= weighed(cost[context][1] + 2 * kBit)
                               ? kNever
                               : weighed(cost[context][1]) + coded(s, i, log2_w, log2_h, 0, 0);
        before = some < zero;
        coded_planes |= static_cast<unsigned>(some < zero) << p;
        joint += std::min(zero, some);
        if (joint >= best) break;
      }
      if (joint < best) {
        best = joint;
        chosen = i;
        chosen_coded = coded_planes;
        best_index = mine_index[first + i];
      }
    }
    if (chosen >= 0) {
      tokens.resize(start);
      tokens.push_back(static_cast<Token>(mine[first + chosen]));
      for (int p = 0; p < t.planes; ++p) {
        if (chosen_coded >> p & 1)
          emit(l.sheets[p], chosen, log2_w, log2_h, 0, 0, tokens);
        else
          tokens.push_back(0);
      }
    }
  }
  if (shared) {
    const auto [least, index] = team->minimum(best, best_index);
    std::vector<Token> winner(tokens.begin() + static_cast<std::ptrdiff_t>(start), tokens.end());
    team->broadcast(winner, index % team->size());
    tokens.resize(start);
    tokens.insert(tokens.end(), winner.begin(), winner.end());
  }
  // The actual cost.
  const Token* from = tokens.data() + start;
  reconstructor_.leaf(t, x, y, log2_w, log2_h, from);
  CostIo io(costs_);
  Syntax<CostIo> syntax(io, picture_);
  syntax.set(set_);
  TokenReader reader{from};
  syntax.leaf(t, x, y, log2_w, log2_h, reader);
  std::int64_t squares = 0;
  for (int p = 0; p < t.planes; ++p) {
    const Plane& a = source_[static_cast<std::size_t>(t.first_plane + p)];
    const Plane& b = picture_.planes[static_cast<std::size_t>(t.first_plane + p)];
    for (int j = 0; j < h; ++j) {
      const Sample *ra = a.at(x, y + j), *rb = b.at(x, y + j);
      std::uint32_t row = 0;
      for (int i = 0; i < w; ++i) {
        const int d = static_cast<int>(ra[i]) - rb[i];
        row += static_cast<std::uint32_t>(d * d);
      }
      squares += row;
    }
  }
  return (squares << 16) + weighed(io.total);
}

// -------------------------------------------------------------------------------------------------- residual tree

/// The best cost of a coded sub-block of 2^a x 2^b, without the symbol that says so; kNever if all levels are 0.
Joint Search::coded(Sheets& s, int mode_index, int a, int b, int tx, int ty) {
  Node& node = s.node(mode_index, a, b, tx, ty);
  if (params_.remember && node.stamp == s.stamp) {
    statistics_.plain_trials += static_cast<std::uint64_t>(node.plain);
    return node.coded;
  }
  ++statistics_.trials;
  const std::uint64_t plain_before = statistics_.plain_trials++;
  const CostSet& cost = costs_[static_cast<std::size_t>(set_)];
  Joint best = levels(s, mode_index, a, b, tx, ty);
  int choice = 1;
  if (a + b > 0) {
    const auto divided = static_cast<std::size_t>(divided_context(a, b));
    const auto across = static_cast<std::size_t>(across_context(a, b));
    if (best < kNever) best += weighed(cost[divided][0]);
    // A coded block costs at least the symbol, a sign and a position.
    const Joint zero = s.squares(mode_index, tx << a, ty << b, 1 << a, 1 << b) << 16;
    const bool worth = best < kNever ? best > weighed(cost[divided][1] + 2 * kBit) : zero > weighed(kLeastGain);
    if (worth)
      for (int split = 2; split <= 3; ++split) {
        const int ka = a - (split == 3), kb = b - (split == 2);
        if (ka < 0 || kb < 0) continue;
        const int x0 = split == 3 ? 2 * tx : tx, y0 = split == 2 ? 2 * ty : ty;
        const int x1 = split == 3 ? x0 + 1 : x0, y1 = split == 2 ? y0 + 1 : y0;
        const auto context = static_cast<std::size_t>(coded_context(ka + kb));
        const Joint no = weighed(cost[context][0]), yes = weighed(cost[context][1]);
        const Joint symbols = weighed(cost[divided][1] + (a > 0 && b > 0 ? cost[across][split == 3] : 0));
        const Joint zero0 = s.squares(mode_index, x0 << ka, y0 << kb, 1 << ka, 1 << kb) << 16;
        const Joint zero1 = zero - zero0;
        const Joint coded0 = coded(s, mode_index, ka, kb, x0, y0);
        if (symbols + std::min(yes + coded0, no + zero0) >= best) continue;
        const Joint coded1 = coded(s, mode_index, ka, kb, x1, y1);
        const Joint joint = symbols + std::min(yes + coded0 + std::min(no + zero1, yes + coded1), no + zero0 + coded1);
        if (joint < best) {
          best = joint;
          choice = split;
        }
      }
  }
  best = std::min(best, kNever);
  node.coded = best;
  node.stamp = s.stamp;
  node.choice = static_cast<std::uint8_t>(choice);
  node.plain = static_cast<double>(statistics_.plain_trials - plain_before);
  return best;
}

/// The cost of a sub-block without splits; kNever if all levels are 0. The first call for a size transforms all its
/// sub-blocks.
Joint Search::levels(Sheets& s, int mode_index, int a, int b, int tx, int ty) {
  const int w = 1 << s.log2_w, h = 1 << s.log2_h;
  const auto size = static_cast<std::size_t>(a * 7 + b);
  const int log2_area = a + b;
  if (!s.have[size]) {
    if (!s.have_down[b]) {
      Leaf& l = *leaf_;
      l.first.resize(static_cast<std::size_t>(std::max(s.across_stride * h, s.down_stride * w)));
      const int shift = b + bits_ - 9;
      kernels_.forward(s.residual.data(), s.across_stride, h, s.count * w, matrix_of(b, false), b, true,
                       b == 0 ? -(15 - bits_) : shift, l.first.data(), s.across_stride);
      const int from = s.first_sine_down;
      if (b > 0 && b <= kMaxSineLog2 && from < s.count)
        kernels_.forward(s.residual.data() + from * w, s.across_stride, 1 << b, (s.count - from) * w,
                         matrix_of(b, true), b, false, shift, l.first.data() + from * w, s.across_stride);
      s.down[b].resize(static_cast<std::size_t>(s.down_stride * w));
      kernels_.transpose(l.first.data(), s.across_stride, w, h, s.count, s.down[b].data(), s.down_stride);
      s.have_down[b] = true;
    }
    s.values[size].resize(static_cast<std::size_t>(s.down_stride * w));
    std::int16_t* values = s.values[size].data();
    const std::int16_t* down = s.down[b].data();
    const int until = s.end_sine_across;
    const bool sine = a > 0 && a <= kMaxSineLog2 && until > 0;
    // The first column of sub-blocks uses the sine transform in the modes that require it.
    if (sine)
      kernels_.forward(down, s.down_stride, 1 << a, until * h, matrix_of(a, true), a, false, a + 6, values,
                       s.down_stride);
    if (sine && until < s.count)
      kernels_.forward(down + until * h, s.down_stride, 1 << a, (s.count - until) * h, matrix_of(a, false), a, true,
                       a + 6, values + until * h, s.down_stride);
    const int done = sine ? 1 << a : 0;
    if (done < w)
      kernels_.forward(down + done * s.down_stride, s.down_stride, w - done, s.count * h, matrix_of(a, false), a, true,
                       a == 0 ? 0 : a + 6, values + done * s.down_stride, s.down_stride);
    s.large[size].resize(static_cast<std::size_t>(s.words * w));
    kernels_.find_large(values, s.down_stride, w, s.words, constants_.threshold[log2_area], s.large[size].data());
    s.have[size] = true;
  }

  Leaf& l = *leaf_;
  const std::int16_t* values = s.values[size].data();
  const std::uint64_t* large = s.large[size].data();
  const int lane = mode_index * h + (ty << b), sub_w = 1 << a;
  const std::uint64_t mask = b == 6 ? ~std::uint64_t{0} : (std::uint64_t{1} << (1 << b)) - 1;
  const Scan& scan = scan_of(a, b);
  const CostSet& cost = costs_[static_cast<std::size_t>(set_)];
  int count = 0, last = -1;
  std::int64_t gain = 0;
  for (int i = 0; i < sub_w; ++i) {
    const int row = (tx << a) + i;
    std::uint64_t word = large[row * s.words + (lane >> 6)] >> (lane & 63) & mask;
    for (; word; word &= word - 1) {
      const int j = std::countr_zero(word), at = j << a | i;
      const int c = std::abs(static_cast<int>(values[row * s.down_stride + lane + j]));
      const int level = static_cast<int>((c * constants_.step_inverse[log2_area] + kRound) >> kRoundBits);
      const std::int64_t v = level < 64 ? value_of_[log2_area][level] : dequantiser_.value(level, log2_area);
      gain += v * (2 * c - v);
      l.magnitude[at] = static_cast<std::int16_t>(level);
      l.places[count++] = static_cast<std::uint16_t>(at);
      last = std::max<int>(last, scan.rank[at]);
    }
  }
  if (count == 0) return kNever;
  // Costs of zeros without non-zero neighbours come from a table; only positions near levels are evaluated.
  const std::vector<Cost>& run = zero_run_[set_][size];
  int touched = 0;
  const auto touch = [&](int at, std::uint32_t term) {
    if (l.around[at] == 0) l.touched[touched++] = static_cast<std::uint16_t>(at);
    l.around[at] += term;
  };
  for (int k = 0; k < count; ++k) {
    const int at = l.places[k], x = at & (sub_w - 1), y = at >> a;
    const std::uint32_t term = neighbour_term(l.magnitude[at]);
    if (x > 0) touch(at - 1, term);
    if (x > 1) touch(at - 2, term);
    if (y > 0) touch(at - sub_w, term);
    if (y > 1) touch(at - 2 * sub_w, term);
    if (x > 0 && y > 0) touch(at - sub_w - 1, term);
  }
  std::int64_t rate = run[static_cast<std::size_t>(last)] + last_cost(a, b, scan.position[last]) + count * kBit;
  for (int k = 0; k < count; ++k) {
    const int at = l.places[k], x = at & (sub_w - 1), y = at >> a;
    const std::uint32_t around = l.around[at];
    const auto rank = static_cast<std::size_t>(scan.rank[at]);
    if (static_cast<int>(rank) != last)
      rate +=
          cost[static_cast<std::size_t>(significant_context(log2_area, x, y, around))][1] - (run[rank + 1] - run[rank]);
    rate += magnitude_cost(log2_area, x, y, around, l.magnitude[at]);
  }
  for (int k = 0; k < touched; ++k) {
    const int at = l.touched[k];
    if (l.magnitude[at] == 0) {
      const auto rank = static_cast<std::size_t>(scan.rank[at]);
      rate +=
          cost[static_cast<std::size_t>(significant_context(log2_area, at & (sub_w - 1), at >> a, l.around[at]))][0] -
          (run[rank + 1] - run[rank]);
    }
    l.around[at] = 0;
  }
  for (int k = 0; k < count; ++k) l.magnitude[l.places[k]] = 0;
  // The distortion is that of the coefficients, not the residual's squares less the gain: the transforms are
  // orthonormal but for a thousandth, and a thousandth of a large residual is more than its distortion.
  std::int64_t squares = 0;
  for (int i = 0; i < sub_w; ++i) {
    const std::int16_t* row = values + ((tx << a) + i) * s.down_stride + lane;
    for (int j = 0; j < 1 << b; ++j) squares += std::int64_t{row[j] * row[j]};
  }
  return ((squares - gain) << (log2_area + 2 * bits_ - 14)) + weighed(rate);
}

Joint Search::last_cost(int log2_w, int log2_h, int at) const {
  const CostSet& cost = costs_[static_cast<std::size_t>(set_)];
  Cost sum = 0;
  const auto place = [&](int context, int log2_side, int value) {
    const int groups = last_groups(log2_side), group = last_group(value);
    const auto base = static_cast<std::size_t>(context + log2_side * 11);
    for (int g = 0; g < group; ++g) sum += cost[base + static_cast<std::size_t>(g)][1];
    if (group + 1 < groups) sum += cost[base + static_cast<std::size_t>(group)][0];
    sum += last_group_bits(group) * kBit;
  };
  place(kLastX, log2_w, at & ((1 << log2_w) - 1));
  place(kLastY, log2_h, at >> log2_w);
  return sum;
}

Cost Search::magnitude_cost(int log2_area, int x, int y, std::uint32_t around, int magnitude) const {
  const CostSet& cost = costs_[static_cast<std::size_t>(set_)];
  const auto c = static_cast<std::size_t>(above_context(log2_area, x, y, around));
  if (magnitude == 1) return cost[kAbove1 + c][0];
  if (magnitude == 2) return cost[kAbove1 + c][1] + cost[kAbove2 + c][0];
  int order = rest_order(around), value = magnitude - 3, bits = 0;
  while (bits < kMaxRestOnes && value >= 1 << order) {
    value -= 1 << order++;
    ++bits;
  }
  if (bits < kMaxRestOnes) ++bits;
  return cost[kAbove1 + c][1] + cost[kAbove2 + c][1] + (bits + order) * kBit;
}

/// Emits the tokens of a coded sub-block from the recorded choices; false (and a single token 0) if all levels are 0.
bool Search::emit(Sheets& s, int mode_index, int a, int b, int tx, int ty, std::vector<Token>& tokens) {
  const std::size_t start = tokens.size();
  const Node& node = s.node(mode_index, a, b, tx, ty);
  tokens.push_back(static_cast<Token>(node.choice));
  bool any = false;
  if (node.choice == 1) {
    const std::size_t n = std::size_t{1} << (a + b);
    tokens.resize(tokens.size() + n);
    emit_levels(s, mode_index, a, b, tx, ty, tokens.data() + tokens.size() - n);
    any = std::any_of(tokens.end() - static_cast<std::ptrdiff_t>(n), tokens.end(), [](Token v) { return v != 0; });
  } else {
    const bool across = node.choice == 3;
    const int ka = a - across, kb = b - !across;
    const int x0 = across ? 2 * tx : tx, y0 = across ? ty : 2 * ty;
    const int x1 = x0 + across, y1 = y0 + !across;
    const CostSet& cost = costs_[static_cast<std::size_t>(set_)];
    const auto context = static_cast<std::size_t>(coded_context(ka + kb));
    const Joint no = weighed(cost[context][0]), yes = weighed(cost[context][1]);
    const Joint zero0 = s.squares(mode_index, x0 << ka, y0 << kb, 1 << ka, 1 << kb) << 16;
    const Joint zero1 = s.squares(mode_index, x1 << ka, y1 << kb, 1 << ka, 1 << kb) << 16;
    const Joint coded0 = s.node(mode_index, ka, kb, x0, y0).coded, coded1 = s.node(mode_index, ka, kb, x1, y1).coded;
    const bool first = yes + coded0 + std::min(no + zero1, yes + coded1) <= no + zero0 + coded1;
    const bool second = !first || yes + coded1 < no + zero1;
    const auto half = [&](bool is_coded, int x, int y) {
      if (is_coded) return emit(s, mode_index, ka, kb, x, y, tokens);
      tokens.push_back(0);
      return false;
    };
    any = half(first, x0, y0);
    any = half(second, x1, y1) || any;
  }
  if (!any) {
    tokens.resize(start);
    tokens.push_back(0);
  }
  return any;
}

void Search::emit_levels(Sheets& s, int mode_index, int a, int b, int tx, int ty, Token* out) {
  const int w = 1 << a, h = 1 << b, lane = (mode_index << s.log2_h) + (ty << b);
  const std::int16_t* values = s.values[a * 7 + b].data();
  std::int16_t block[kMaxSide * kMaxSide];
  for (int i = 0; i < w; ++i)
    for (int j = 0; j < h; ++j) block[j * w + i] = values[((tx << a) + i) * s.down_stride + lane + j];
  if (params_.optimise_levels) {
    optimise(a, b, block, out);
    return;
  }
  for (int i = 0; i < w * h; ++i) {
    const int level =
        static_cast<int>((std::abs(int{block[i]}) * constants_.step_inverse[a + b] + kRound) >> kRoundBits);
    out[i] = static_cast<Token>(block[i] < 0 ? -level : level);
  }
}

/// Rate-distortion optimised quantisation: in coding order, each level is the cheapest of its two neighbours and 0;
/// then the best last position is chosen.
void Search::optimise(int log2_w, int log2_h, const std::int16_t* values, Token* levels) {
  const int w = 1 << log2_w, n = 1 << (log2_w + log2_h), log2_area = log2_w + log2_h;
  const int unit = log2_area + 2 * bits_ - 14;  // left shift from squared values to J
  const Scan& scan = scan_of(log2_w, log2_h);
  const CostSet& cost = costs_[static_cast<std::size_t>(set_)];
  const std::int64_t inverse = constants_.step_inverse[log2_area];
  const auto nearest = [&](int c) {
    return static_cast<int>((std::abs(c) * inverse + (std::int64_t{1} << (kRoundBits - 1))) >> kRoundBits);
  };
  std::fill_n(levels, n, Token{0});
  int top = n - 1;
  while (top >= 0 && nearest(values[scan.position[top]]) == 0) --top;
  if (top < 0) return;
  std::uint32_t around[kMaxSide * kMaxSide];
  std::fill_n(around, n, 0u);
  // J of positions 0 to rank relative to all zeros, with `rank` not the last non-zero one / being the last.
  Joint inside[kMaxSide * kMaxSide], ending[kMaxSide * kMaxSide];
  for (int rank = top; rank >= 0; --rank) {
    const int at = scan.position[rank], x = at & (w - 1), y = at >> log2_w;
    const std::uint32_t a = around[at];
    const auto sig = static_cast<std::size_t>(significant_context(log2_area, x, y, a));
    const int c = std::abs(int{values[at]}), high = nearest(c);
    inside[rank] = weighed(cost[sig][0]);
    ending[rank] = kNever;
    if (high == 0) continue;
    Joint best = inside[rank];
    int level = 0;
    for (int k = high; k >= std::max(1, high - 1); --k) {
      const std::int64_t v = k < 64 ? value_of_[log2_area][k] : dequantiser_.value(k, log2_area);
      const Joint joint = -((v * (2 * c - v)) << unit) + weighed(kBit + magnitude_cost(log2_area, x, y, a, k));
      const Joint with = joint + weighed(cost[sig][1]);
      if (with < best) {
        best = with;
        level = k;
        ending[rank] = joint;
      }
    }
    inside[rank] = best;
    if (level == 0) continue;
    levels[at] = static_cast<Token>(level);
    const std::uint32_t term = neighbour_term(level);
    if (x > 0) around[at - 1] += term;
    if (x > 1) around[at - 2] += term;
    if (y > 0) around[at - w] += term;
    if (y > 1) around[at - 2 * w] += term;
    if (x > 0 && y > 0) around[at - w - 1] += term;
  }
  Joint below = 0, best = kNever;
  int last = -1;
  for (int rank = 0; rank <= top; ++rank) {
    const int at = scan.position[rank];
    if (levels[at] != 0) {
      const Joint joint = below + ending[rank] + weighed(last_cost(log2_w, log2_h, at));
      if (joint < best) {
        best = joint;
        last = rank;
      }
    }
    below += inside[rank];
  }
  for (int rank = 0; rank <= top; ++rank) {
    const int at = scan.position[rank];
    if (rank > last) levels[at] = 0;
    if (values[at] < 0) levels[at] = static_cast<Token>(-levels[at]);
  }
}

}  // namespace trivelet::vstc
