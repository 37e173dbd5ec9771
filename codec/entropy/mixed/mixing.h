// Decisions whose probability several adaptive contexts estimate, mixed by weights that learn which of them to trust
// (FORMAT.md "Mixed"). All arithmetic is in integers, so that every machine decodes the same.
//
// Source: Mahoney (2007), lpaq: estimates are added as logarithms of odds (stretch), and each weight moves along the
// gradient of the decision's cost.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace trivelet::mixed {

inline constexpr std::size_t kKinds = 6;    ///< contexts of each decision
inline constexpr std::size_t kNodes = 160;  ///< decisions of a sample that a context tells apart
inline constexpr std::size_t kSets = 21;    ///< of weights
inline constexpr int kLargestStretch = 2047;

/// The probability of 12 bits for a logarithm of odds, -2047..2047, in units of 1/256: linear between 33 points.
inline int squash(int x) {
  constexpr std::array<std::int16_t, 33> kPoints{1,    2,    3,    6,    10,   16,   27,   45,   73,   120,  194,
                                                 310,  488,  747,  1101, 1546, 2047, 2549, 2994, 3348, 3607, 3785,
                                                 3901, 3975, 4022, 4050, 4068, 4079, 4085, 4089, 4092, 4093, 4094};
  const int part = x & 127;
  const auto i = static_cast<std::size_t>((x >> 7) + 16);
  return (kPoints[i] * (128 - part) + kPoints[i + 1] * part + 64) >> 7;
}

/// The inverse of squash(): the least logarithm of odds whose probability is at least the given one.
const std::array<std::int16_t, 4096>& stretch_table();

/// What a context knows about a decision.
struct Estimate {
  std::uint16_t one = 32768;  ///< probability of 1, in 1/65536
  std::uint16_t seen = 0;     ///< decisions, up to kMostSeen
};
inline constexpr std::uint16_t kMostSeen = 255;

/// The share of a decision in an estimate that has seen n before it, in 1/65536.
const std::array<std::uint16_t, kMostSeen + 1>& rate_table();

/// Contexts of one kind. Each has kNodes estimates, which are set to their first values when a block first needs them:
/// starting a block costs nothing, however small it is.
class Contexts {
 public:
  void start(std::size_t contexts) {
    if (started_.size() != contexts || block_ == ~std::uint32_t{0}) {
      started_.assign(contexts, 0);
      estimates_.resize(contexts * kNodes);
      block_ = 0;
    }
    ++block_;
  }
  Estimate* of(std::size_t context) {
    Estimate* e = &estimates_[context * kNodes];
    if (started_[context] != block_) {
      started_[context] = block_;
      std::fill_n(e, kNodes, Estimate{});
    }
    return e;
  }

 private:
  std::vector<Estimate> estimates_;
  std::vector<std::uint32_t> started_;  // the last block that used each context
  std::uint32_t block_ = 0;
};

/// The contexts of one sample.
using SampleContexts = std::array<Estimate*, kKinds>;

/// Mixes the estimates of a sample's contexts, and learns.
class Mixer {
 public:
  void start() {
    for (auto& set : weights_) set.fill(kFirstWeight);
  }
  /// The probability of 1 in 1/65536: 24..65512.
  std::uint32_t mix(const SampleContexts& contexts, std::size_t node, std::size_t set) {
    constexpr int kWeightShift = 16;
    const std::array<std::int32_t, kKinds>& w = weights_[set];
    std::int32_t sum = 0;
    for (std::size_t i = 0; i < kKinds; ++i) {
      stretched_[i] = stretch_[contexts[i][node].one >> 4];
      sum += w[i] * stretched_[i];
    }
    probability_ = squash(std::clamp(sum >> kWeightShift, -kLargestStretch, kLargestStretch));
    return static_cast<std::uint32_t>(16 * probability_ + 8);
  }
  /// After mix() for the same decision.
  void learn(const SampleContexts& contexts, std::size_t node, std::size_t set, bool bit) {
    constexpr int kRate = 6;
    constexpr int kRateShift = 14;
    std::array<std::int32_t, kKinds>& w = weights_[set];
    const int error = ((bit ? 4095 : 0) - probability_) * kRate;
    const int target = bit ? 65535 : 0;
    for (std::size_t i = 0; i < kKinds; ++i) {
      const int changed = w[i] + ((stretched_[i] * error + (1 << (kRateShift - 1))) >> kRateShift);
      w[i] = std::clamp(changed, -kLargestWeight, kLargestWeight);
      Estimate& e = contexts[i][node];
      const std::int64_t distance = target - static_cast<int>(e.one);
      e.one = static_cast<std::uint16_t>(e.one + (distance * rate_[e.seen] >> 16));
      if (e.seen < kMostSeen) ++e.seen;
    }
  }

 private:
  static constexpr std::int32_t kFirstWeight = 22000;  // a third of 65536: six contexts agree more than they should
  // Sums of six products with a stretched probability stay within 32 bits.
  static constexpr std::int32_t kLargestWeight = 1 << 17;

  const std::array<std::int16_t, 4096>& stretch_ = stretch_table();
  const std::array<std::uint16_t, kMostSeen + 1>& rate_ = rate_table();
  std::array<std::array<std::int32_t, kKinds>, kSets> weights_{};
  std::array<std::int32_t, kKinds> stretched_{};
  int probability_ = 0;
};

}  // namespace trivelet::mixed
