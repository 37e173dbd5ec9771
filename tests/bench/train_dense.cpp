// Trains the initial context tables of the dense coder.
//
//   train_dense [--steps 6,12,24,44] [--lossless] [--dyadic] [--gop N] [--temporal N] [--levels N] [--block 128] --out
//   FILE CLIP …
//
// CLIPs are NAME=FILE:WIDTHxHEIGHT:FORMAT as in dense_clips.h. The program codes every block and counts, per context
// and segment, the decisions 0 and 1. The initial state is the beta prior with the highest likelihood of these pairs:
// its mean is the probability, its weight the number of virtual decisions. Rare contexts fall back to the same context
// pooled over resolutions, then over all classes.

#include <array>
#include <cmath>
#include <cstring>

#include "codec/base/stream_header.h"
#include "codec/entropy/dense/dense_model.h"
#include "codec/entropy/dense/dense_passes.h"
#include "codec/entropy/fast/zerotree.h"
#include "tests/bench/dense_clips.h"

using namespace trivelet;
using namespace trivelet::bench;
using namespace trivelet::dense;

namespace {

struct Pair {
  std::uint32_t zeros, ones;
};
using Samples = std::vector<std::vector<Pair>>;  // [class * kContexts + context]

// Counts decisions instead of coding them.
template <class T>
struct CountingCoder {
  static constexpr bool kDecoding = false;
  std::vector<State> states;
  std::vector<Pair> counts;

  bool code(State& s, bool truth) {
    Pair& p = counts[static_cast<std::size_t>(&s - states.data())];
    ++(truth ? p.ones : p.zeros);
    return truth;
  }
  bool code2(State& s, State& s2, bool truth) {
    code(s2, truth);
    return code(s, truth);
  }
  void row() {}
  void orientation(int) {}
  void became_significant(int, int, int, int, std::uint32_t) {}
  void refined(int, int, int, int, std::uint32_t, std::uint32_t, std::uint32_t) {}
};

template <class T>
void collect(const Clip& clip, const Setup& setup, int block_size, float step, Samples& samples) {
  ThreadPool pool(1);
  Block block;
  CountingCoder<T> coder;
  for_volumes<T>(clip, setup, pool, [&](Volume<T>& v) {
    const bool integer = std::is_same_v<T, std::int32_t>;
    const BlockGrid grid(v.field.shape, v.d, integer, block_size);
    const StepTable steps(grid.table(), step, ComponentHeader{});
    std::vector<std::uint8_t> top;
    std::vector<double> energy;
    for (int by = 0; by < grid.rows(); ++by)
      for (int bx = 0; bx < grid.columns(); ++bx) {
        block.lay_out(grid, by, bx);
        block.load(grid, by, bx, v.field, integer ? nullptr : steps.inverse.data(), nullptr, SimdLevel::kBest, top,
                   energy);
        for (int b = 0; b < static_cast<int>(block.families.size()); ++b)
          for (int k = 0; k < grid.resolutions(); ++k) {
            const int planes = top[static_cast<std::size_t>(segment_index(grid, b, k))];
            if (!block.families[static_cast<std::size_t>(b)].used) continue;
            Level& level = block.families[static_cast<std::size_t>(b)].levels[static_cast<std::size_t>(k)];
            level.top = 0;
            if (planes == 0) continue;
            level.reset(planes);
            const int n = level.orientations;
            coder.states.resize(static_cast<std::size_t>(n) * kContexts);
            coder.counts.assign(coder.states.size(), {0, 0});
            State* of[kMaxOrientations];
            for (int i = 0; i < n; ++i) of[i] = coder.states.data() + i * kContexts;
            SegmentCoder<CountingCoder<T>> segment(block, b, k, of, coder);
            for (int p = planes - 1; p >= 0; --p) {
              segment.significance_pass(p);
              segment.refinement_pass(p);
            }
            for (int i = 0; i < n; ++i) {
              const int c = resolution_class(k, grid.resolutions()) * kOrientationClasses +
                            orientation_class(b, BlockGrid::orientation(k, i));
              for (int j = 0; j < kContexts; ++j) {
                const Pair& p = coder.counts[static_cast<std::size_t>(i * kContexts + j)];
                if (p.zeros + p.ones > 0) samples[static_cast<std::size_t>(c * kContexts + j)].push_back(p);
              }
            }
          }
      }
  });
}

// Bits for the pairs under a beta prior with mean p and weight w.
double cost(const std::vector<Pair>& pairs, double p, double w) {
  const double a = w * p;
  const double b = w * (1 - p);
  double sum = 0;
  for (const Pair& q : pairs)
    sum -= std::lgamma(a + q.ones) + std::lgamma(b + q.zeros) - std::lgamma(w + q.ones + q.zeros) - std::lgamma(a) -
           std::lgamma(b) + std::lgamma(w);
  return sum / std::log(2.0);
}

// The table entry of an initial state.
struct Prior {
  std::size_t p = kStartProbabilityCount / 2;
  std::size_t w = 0;
  double mean() const { return kStartProbabilities[p] / 65536.0; }
};

// The most likely initial state. `fallback` counts as four decisions.
Prior fit(const std::vector<Pair>& pairs, const Prior& fallback) {
  double ones = 0, all = 0;  // a segment counts as at most eight decisions
  for (const Pair& q : pairs) {
    const double n = q.ones + q.zeros;
    ones += q.ones / n * std::min(n, 8.0);
    all += std::min(n, 8.0);
  }
  if (all < 1) return fallback;
  const double mean = (ones + 4 * fallback.mean()) / (all + 4);
  Prior best = fallback;
  double least = 1e300;
  for (std::size_t p = 0; p < kStartProbabilityCount; ++p) {
    const double distance = std::log(mean / (1 - mean)) / 0.45 + 14.5 - static_cast<double>(p);
    if (std::fabs(distance) > (all < 40 ? 0.75 : 3.5)) continue;
    for (std::size_t w = 0; w < (all < 40 ? 2 : kStartWeightCount); ++w) {
      const double c = cost(pairs, kStartProbabilities[p] / 65536.0, kStartWeights[w]);
      if (c < least) {
        least = c;
        best = {p, w};
      }
    }
  }
  return best;
}

}  // namespace

int main(int argc, char** argv) {
  const CommandLine given(argc, argv, "--out");
  const Setup& setup = given.setup;
  const std::string& out = given.text;
  Samples samples(static_cast<std::size_t>(kClasses) * kContexts);
  for (const Clip& clip : given.clips)
    for (const float step : given.steps)
      given.lossless ? collect<std::int32_t>(clip, setup, given.block, step, samples)
                     : collect<float>(clip, setup, given.block, step, samples);

  std::vector<Prior> tables(samples.size());
  double occurring = 0;
  for (int j = 0; j < kContexts; ++j) {
    std::vector<Pair> all;
    for (int c = 0; c < kClasses; ++c) {
      const auto& s = samples[static_cast<std::size_t>(c * kContexts + j)];
      all.insert(all.end(), s.begin(), s.end());
    }
    const Prior everywhere = fit(all, {j < kRefinement ? std::size_t{9} : kStartProbabilityCount / 2, 0});
    for (int o = 0; o < kOrientationClasses; ++o) {
      std::vector<Pair> some;
      for (int r = 0; r < kResolutionClasses; ++r) {
        const auto& s = samples[static_cast<std::size_t>((r * kOrientationClasses + o) * kContexts + j)];
        some.insert(some.end(), s.begin(), s.end());
      }
      const Prior here = fit(some, everywhere);
      for (int r = 0; r < kResolutionClasses; ++r) {
        const auto at = static_cast<std::size_t>((r * kOrientationClasses + o) * kContexts + j);
        occurring += !samples[at].empty();
        tables[at] = fit(samples[at], here);
      }
    }
  }
  std::string text;
  for (int r = 0; r < kResolutionClasses; ++r)
    for (int o = 0; o < kOrientationClasses; ++o) {
      if (!class_exists(r, o, setup.layout == Layout::kDyadic)) continue;
      for (int j = 0; j < kContexts; ++j) {
        const Prior& p = tables[static_cast<std::size_t>((r * kOrientationClasses + o) * kContexts + j)];
        text += table_character(p.p * kStartWeightCount + p.w);
      }
    }
  std::printf("%zu contexts, %.0f occur\n", text.size(), occurring);
  std::FILE* f = std::fopen(out.c_str(), "wb");
  if (!f) return 2;
  for (std::size_t i = 0; i < text.size(); i += 116) std::fprintf(f, "\"%s\"\n", text.substr(i, 116).c_str());
  std::fclose(f);
}
