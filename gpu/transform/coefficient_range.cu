// Computes bounds of quantised coefficients from the norms of the filters.

#include "gpu/transform/coefficient_range.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "codec/entropy/coded_block.h"
#include "codec/motion/motion_arithmetic.h"
#include "codec/transform/lifting.h"

namespace trivelet::gpu {
namespace {

// One level of lifting in double precision, as codec/transform/dwt.h has it, without the integers' rounding.
void lift_once(std::vector<double>& x, Wavelet w) {
  const int n = static_cast<int>(x.size());
  const auto step = [&](int parity, auto change) {
    const std::vector<double> before = x;
    const auto old = [&](int i) { return before[static_cast<std::size_t>(mirror(i, n))]; };
    for (int i = parity; i < n; i += 2) x[static_cast<std::size_t>(i)] += change(i, old);
  };
  const auto near = [](double c) { return [c](int i, auto old) { return c * (old(i - 1) + old(i + 1)); }; };
  switch (w) {
    case Wavelet::kHaar:
      step(1, [](int i, auto old) { return -old(i - 1); });
      step(0, [](int i, auto old) { return 0.5 * old(i + 1); });
      break;
    case Wavelet::kCdf53:
      step(1, near(-0.5));
      step(0, near(0.25));
      break;
    case Wavelet::kCdf97:
      step(1, near(static_cast<double>(kLift97Alpha)));
      step(0, near(static_cast<double>(kLift97Beta)));
      step(1, near(static_cast<double>(kLift97Gamma)));
      step(0, near(static_cast<double>(kLift97Delta)));
      break;
    case Wavelet::kRev137:
      step(1, [](int i, auto old) { return -(9 * (old(i - 1) + old(i + 1)) - (old(i - 3) + old(i + 3))) / 16; });
      step(0, [](int i, auto old) { return (9 * (old(i - 1) + old(i + 1)) - (old(i - 3) + old(i + 3))) / 32; });
      break;
    case Wavelet::kMotion: break;  // has no filter of its own
  }
}

// Taps of the low (first) and high (second) analysis filter.
std::array<std::vector<double>, 2> filters(Wavelet w) {
  constexpr int kLength = 32, kMiddle = 16;
  std::array<std::vector<double>, 2> taps{std::vector<double>(kLength), std::vector<double>(kLength)};
  for (int i = 0; i < kLength; ++i) {
    std::vector<double> x(kLength);
    x[static_cast<std::size_t>(i)] = 1;
    lift_once(x, w);
    taps[0][static_cast<std::size_t>(i)] = x[kMiddle];
    taps[1][static_cast<std::size_t>(i)] = x[kMiddle + 1];
  }
  return taps;
}

// For the transform along motion, at each level: [level][high]. A prediction is at most the largest value times the
// gains of the filters of both axes, sums of magnitudes of taps 112 / 64 each. Low values change by the update's limit
// only, which is counted with the samples.
std::vector<std::array<double, 2>> motion_gains(int levels) {
  constexpr double kTaps = 112.0 / 64;
  return std::vector<std::array<double, 2>>(static_cast<std::size_t>(levels) + 1, {1, 1 + kTaps * kTaps});
}

// The largest L1 norm of the filters that lead to the subbands of an axis after up to `levels` splits: [level][high].
// Mirroring at the ends folds taps onto each other, which makes no sum larger.
std::vector<std::array<double, 2>> axis_gains(Wavelet w, int levels) {
  const auto norm = [](const std::vector<double>& v) {
    double n = 0;
    for (const double t : v) n += std::fabs(t);
    return n;
  };
  const auto taps = filters(w);
  std::vector<std::array<double, 2>> gains{{1, 1}};
  std::vector<double> low{1};  // the filter of the low band so far, in samples
  for (int l = 1; l <= levels; ++l) {
    const std::size_t stride = std::size_t{1} << (l - 1);
    std::array<std::vector<double>, 2> next;
    for (std::size_t high = 0; high < 2; ++high) {
      next[high].assign(low.size() + (taps[high].size() - 1) * stride, 0);
      for (std::size_t i = 0; i < taps[high].size(); ++i)
        for (std::size_t j = 0; j < low.size(); ++j) next[high][i * stride + j] += taps[high][i] * low[j];
    }
    gains.push_back({norm(next[0]), norm(next[1])});
    low = next[0];
  }
  return gains;
}

}  // namespace

double coefficient_bound(const StreamHeader& header, int component, int frames, float step) {
  const PixelFormat& f = header.video.format;
  const auto& c = header.components[static_cast<std::size_t>(component)];
  double most = 0;
  if (header.colour_transform && (component == 1 || component == 2)) {
    most = std::exp2(f.bits);
  } else {
    const double low = f.is_signed ? -std::exp2(f.bits - 1) : 0,
                 high = std::exp2(f.is_signed ? f.bits - 1 : f.bits) - 1;
    most = std::max(std::fabs(low - c.offset), std::fabs(high - c.offset));
  }
  most += 8;  // lifting steps of integers round by up to one
  const Decomposition d = header.decomposition(component);
  const bool moves = d.temporal == Wavelet::kMotion;
  if (moves) most += d.temporal_levels * static_cast<double>(motion_update_limit(0, f.bits));
  const SubbandTable table(header.component_shape(component, frames), d, header.lossless);
  const StepTable steps(table, header.lossless ? 1.0f : step, c);
  const auto time = moves ? motion_gains(d.temporal_levels) : axis_gains(d.temporal, d.temporal_levels);
  const auto space = axis_gains(d.spatial, d.spatial_levels);
  double bound = 0;
  for (std::size_t i = 0; i < table.all().size(); ++i) {
    const Subband& s = table.all()[i];
    const int level = s.resolution == 0 ? d.spatial_levels : d.spatial_levels - s.resolution + 1;
    int time_level = 0;
    bool time_high = false;
    if (d.layout == Layout::kDyadic) {
      time_level = std::min(level, d.temporal_levels);
      time_high = (s.orientation & 4) != 0;
    } else {
      time_level = s.temporal_band == 0 ? d.temporal_levels : d.temporal_levels - s.temporal_band + 1;
      time_high = s.temporal_band > 0;
    }
    // An axis that is too short to be split so often has smaller coefficients.
    const auto gain = [](const std::vector<std::array<double, 2>>& g, int l, bool high) {
      double m = g[static_cast<std::size_t>(l)][high];
      for (int n = 0; n <= l; ++n) m = std::max(m, g[static_cast<std::size_t>(n)][0]);
      return m;
    };
    const double x = most * gain(time, time_level, time_high) * gain(space, level, (s.orientation & 1) != 0) *
                     gain(space, level, (s.orientation & 2) != 0);
    bound = std::max(bound, header.lossless ? x : x / static_cast<double>(steps.step[i]));
  }
  return bound * 1.01 + 1;
}

}  // namespace trivelet::gpu
