// Synthesis vectors of the temporal transform, by inverting impulses, and the fixed point that gives the frame gains.
#include "codec/transform/frame_gains.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "codec/transform/lifting.h"
#include "codec/transform/subband.h"

namespace trivelet {

namespace {

// One inverse lifting step on all samples of a parity: x[i] -= weighted sum of neighbours, mirrored at both ends.
void lift(double* x, int n, int stride, int parity, double inner, double outer) {
  const auto at = [&](int i) {
    if (n == 1) return x[0];
    const int period = 2 * (n - 1);
    i = ((i % period) + period) % period;
    return x[static_cast<std::ptrdiff_t>(i < n ? i : period - i) * stride];
  };
  for (int i = parity; i < n; i += 2) {
    double sum = inner * (at(i - 1) + at(i + 1));
    if (outer != 0) sum += outer * (at(i - 3) + at(i + 3));
    x[static_cast<std::ptrdiff_t>(i) * stride] -= sum;
  }
}

// One level of the motion-compensated transform without motion. The last frame may have no low frame behind it.
void inverse_motion_level(double* x, int n, int stride) {
  const auto at = [&](int i) -> double& { return x[static_cast<std::ptrdiff_t>(i) * stride]; };
  for (int i = 0; i < n; i += 2) {
    if (i > 0) at(i) -= 0.25 * at(i - 1);
    if (i + 1 < n) at(i) -= (i + 2 < n ? 0.25 : 0.5) * at(i + 1);
  }
  for (int i = 1; i < n; i += 2) at(i) += i + 1 < n ? 0.5 * (at(i - 1) + at(i + 1)) : at(i - 1);
}

void inverse_level(double* x, int n, int stride, Wavelet wavelet) {
  if (n < 2) return;
  switch (wavelet) {
    case Wavelet::kHaar:
      for (int i = 0; i + 1 < n; i += 2) x[static_cast<std::ptrdiff_t>(i) * stride] -= 0.5 * x[(i + 1) * stride];
      for (int i = 1; i < n; i += 2) x[static_cast<std::ptrdiff_t>(i) * stride] += x[(i - 1) * stride];
      return;
    case Wavelet::kCdf53:
      lift(x, n, stride, 0, 0.25, 0);
      lift(x, n, stride, 1, -0.5, 0);
      return;
    case Wavelet::kMotion: return inverse_motion_level(x, n, stride);
    case Wavelet::kRev137:
      lift(x, n, stride, 0, 9.0 / 32, -1.0 / 32);
      lift(x, n, stride, 1, -9.0 / 16, 1.0 / 16);
      return;
    case Wavelet::kCdf97:
      for (int step = 3; step >= 0; --step) lift(x, n, stride, step % 2 == 0, kLift97[step], 0);
      return;
  }
}

// The squares of the synthesis vector of the coefficient at `position`.
std::vector<double> squared_synthesis(int frames, int levels, Wavelet wavelet, int position) {
  std::vector<double> x(static_cast<std::size_t>(frames), 0);
  x[static_cast<std::size_t>(position)] = 1;
  for (int l = levels; l >= 1; --l) inverse_level(x.data(), low_length(frames, l - 1), 1 << (l - 1), wavelet);
  for (double& v : x) v *= v;
  return x;
}

// The same for all coefficients: [coefficient][frame].
std::vector<std::vector<double>> squared_synthesis(int frames, int levels, Wavelet wavelet) {
  std::vector<std::vector<double>> all;
  for (int i = 0; i < frames; ++i) all.push_back(squared_synthesis(frames, levels, wavelet, i));
  return all;
}

}  // namespace

double synthesis_energy(int length, int levels, Wavelet wavelet, int position) {
  double sum = 0;
  for (const double v : squared_synthesis(length, levels, wavelet, position)) sum += v;
  return sum;
}

std::vector<double> temporal_synthesis_energies(int frames, int levels, Wavelet wavelet) {
  std::vector<double> energies;
  for (int i = 0; i < frames; ++i) energies.push_back(synthesis_energy(frames, levels, wavelet, i));
  return energies;
}

std::vector<std::uint8_t> even_frame_gains(int frames, int levels, Wavelet wavelet) {
  if (levels == 0 || frames < 4) return {};
  const auto squares = squared_synthesis(frames, levels, wavelet);
  const auto n = static_cast<std::size_t>(frames);

  // The model for the squared error of a coefficient is its subband's step. At finer levels most coefficients fall into
  // the dead zone, so their error is their own small energy: a third less from level to level.
  constexpr double kOfLevel = 0.67;
  constexpr int kRounds = 200;           // iterations of the fixed point below, which converges
  constexpr double kMostSquared = 2.25;  // limit: a gain of 1.5, or 3.5 dB
  constexpr int kUnit = 64;              // FORMAT.md "Frame gains"
  constexpr int kLeastGain = 77;         // 1.2: smaller gains are not worth the bytes of a table
  std::vector<double> error(n, 1);
  const SubbandTable table({frames, 1, 1}, {Layout::kT2d, levels, 0, wavelet, wavelet}, wavelet == Wavelet::kRev137);
  for (const Subband& s : table.all())
    for (int t = 0; t < s.shape.frames; ++t)
      error[static_cast<std::size_t>(s.frame_origin + t * s.frame_step)] =
          std::pow(kOfLevel, s.temporal_band) / (s.norm * s.norm);

  std::vector<double> gain2(n, 1);
  std::vector<double> frame_error(n);
  for (int round = 0; round < kRounds; ++round) {
    std::fill(frame_error.begin(), frame_error.end(), 0.0);
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t f = 0; f < n; ++f) frame_error[f] += squares[i][f] * error[i] / gain2[i];
    std::vector<double> sorted = frame_error;
    std::nth_element(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(n / 2), sorted.end());
    const double median = sorted[n / 2];
    for (std::size_t i = 0; i < n; ++i) {
      double sum = 0;
      double weighted = 0;
      for (std::size_t f = 0; f < n; ++f) {
        sum += squares[i][f];
        weighted += squares[i][f] * frame_error[f];
      }
      gain2[i] = std::clamp(gain2[i] * std::sqrt(weighted / (sum * median)), 1.0, kMostSquared);
    }
  }
  std::vector<std::uint8_t> gains;
  bool any = false;
  for (std::size_t i = 0; i < n; ++i) {
    const long g = std::lround(kUnit * std::sqrt(gain2[i]));
    gains.push_back(static_cast<std::uint8_t>(g < kLeastGain ? kUnit : g));
    any = any || gains.back() != kUnit;
  }
  if (!any) gains.clear();
  return gains;
}

}  // namespace trivelet
