// Counts of residuals and of equal neighbours, and their entropies (see volume_estimate.h).
#include "codec/volume/volume_estimate.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <vector>

namespace trivelet {

namespace {

constexpr int kRowsApart = 3;  // every third row is looked at, another third in each slice
constexpr int kMargin = 2;     // rows and columns at the edge that are not

/// The bits of symbols that are coded with their frequencies; each symbol in use takes some to be learnt.
double entropy(const std::uint32_t* counts, std::size_t symbols, double bits_learnt) {
  double n = 0;
  double sum = 0;
  for (std::size_t i = 0; i < symbols; ++i) {
    if (counts[i] == 0) continue;
    const auto c = static_cast<double>(counts[i]);
    n += c;
    sum += bits_learnt - c * std::log2(c);
  }
  return n > 0 ? sum + n * std::log2(n) : 0;
}

/// Residuals of one predictor by the differences around: small ones exactly, large ones by magnitude and raw bits.
class Residuals {
 public:
  void add(int activity, int residual) {
    const auto context = std::min<std::size_t>(std::bit_width(static_cast<unsigned>(activity)), kContexts - 1);
    const int size = std::abs(residual);
    std::size_t symbol = static_cast<std::size_t>(residual + kExact);
    if (size > kExact) {
      const int width = std::bit_width(static_cast<unsigned>(size));
      symbol = 2 * kExact + static_cast<std::size_t>(width);
      raw_ += width;  // and the sign
    }
    ++counts_[context][symbol];
  }
  double bits() const {
    double sum = static_cast<double>(raw_);
    for (const auto& c : counts_) sum += entropy(c.data(), c.size(), kLearnt);
    return sum;
  }

 private:
  static constexpr int kExact = 12;
  static constexpr std::size_t kContexts = 12;
  static constexpr double kLearnt = 4;
  std::array<std::array<std::uint32_t, 2 * kExact + 20>, kContexts> counts_{};
  std::uint64_t raw_ = 0;
};

/// Whether a sample equals the likeliest neighbour, by which others do; else whether it equals another one.
class Equalities {
 public:
  explicit Equalities(int bits) : values_(std::size_t{1} << bits) {}
  void add(unsigned pattern, bool first, bool other, unsigned value) {
    ++first_[pattern][first ? 1 : 0];
    if (first) return;
    ++other_[pattern][other ? 1 : 0];
    if (!other) ++values_[value];
  }
  double bits() const {
    double sum = entropy(values_.data(), values_.size(), kLearnt);
    for (std::size_t i = 0; i < first_.size(); ++i)
      sum += entropy(first_[i].data(), 2, kLearnt) + entropy(other_[i].data(), 2, kLearnt);
    return sum;
  }

 private:
  static constexpr double kLearnt = 4;
  std::array<std::array<std::uint32_t, 2>, 128> first_{};
  std::array<std::array<std::uint32_t, 2>, 128> other_{};
  std::vector<std::uint32_t> values_;  // of samples that equal no neighbour
};

int median_of(int west, int north, int north_west) {
  return std::clamp(west + north - north_west, std::min(west, north), std::max(west, north));
}

struct Counts {
  explicit Counts(int bits) : equalities(bits) {}
  Residuals in_slice;
  Residuals across;
  Equalities equalities;

  template <class T>
  void add_row(const T* row, const T* above, const T* before, const T* before_above, int begin, int end) {
    for (int x = begin; x < end; ++x) {
      const int w = row[x - 1];
      const int n = above[x];
      const int nw = above[x - 1];
      const int ne = above[x + 1];
      const int b = before[x];
      const int v = row[x];
      const int in_slice_guess = median_of(w, n, nw);
      const int step = b - median_of(before[x - 1], before_above[x], before_above[x - 1]);
      const int activity = std::abs(w - nw) + std::abs(n - nw) + std::abs(ne - n) + std::abs(w - before[x - 1]);
      in_slice.add(activity, v - in_slice_guess);
      across.add(activity, v - (in_slice_guess + step));
      const int first = n == b ? n : w;
      const unsigned pattern = (w == first ? 1u : 0u) | (n == first ? 2u : 0u) | (b == first ? 4u : 0u) |
                               (nw == first ? 8u : 0u) | (ne == first ? 16u : 0u) | (row[x - 2] == first ? 32u : 0u) |
                               (before[x + 1] == first ? 64u : 0u);
      const bool other = v == w || v == n || v == b || v == nw || v == ne || v == before[x + 1];
      equalities.add(pattern, v == first, other, static_cast<unsigned>(v));
    }
  }
};

/// A block from row `top` and column `left`.
template <class T>
SizeByKind estimate_block(const VolumeView& plane, int bits, int top, int left, int block_size) {
  Counts counts(bits);
  const int bottom = std::min(top + block_size, plane.shape.height);
  const int begin = std::max(left, kMargin);
  const int end = std::min(left + block_size, plane.shape.width - kMargin);
  const auto row = [&](int z, int y) { return reinterpret_cast<const T*>(plane.row(z, y)); };
  const bool stacked = plane.shape.frames > 1;
  for (int z = stacked ? 1 : 0; z < plane.shape.frames; ++z)
    for (int y = std::max(top, kMargin) + z % kRowsApart; y < bottom; y += kRowsApart) {
      // A slice alone takes the rows above for the slice before.
      const T* before = stacked ? row(z - 1, y) : row(z, y - 1);
      const T* before_above = stacked ? row(z - 1, y - 1) : row(z, y - 2);
      counts.add_row(row(z, y), row(z, y - 1), before, before_above, begin, end);
    }
  return {std::min(counts.in_slice.bits(), counts.across.bits()), counts.equalities.bits()};
}

}  // namespace

std::vector<SizeByKind> estimate_sizes(const Gop& samples, int bits, int block_size) {
  std::vector<SizeByKind> sizes;
  for (int c = 0; c < samples.components(); ++c) {
    const VolumeView plane = samples.plane(c);
    for (int y = 0; y < plane.shape.height; y += block_size)
      for (int x = 0; x < plane.shape.width; x += block_size)
        sizes.push_back(plane.bytes_per_sample == 1 ? estimate_block<std::uint8_t>(plane, bits, y, x, block_size)
                                                    : estimate_block<std::uint16_t>(plane, bits, y, x, block_size));
  }
  return sizes;
}

}  // namespace trivelet
