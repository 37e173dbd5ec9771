// The 2D 9/7 transform by convolution, lifting and SMDWT on CPU cores. The header names the paper.

#include "apps/bench/papers_dwt2d.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "apps/bench/papers_filters.h"
#include "trivelet/error.h"

namespace trivelet::papers_dwt2d {

namespace {

/// Columns that go through a buffer together: one cache line of floats.
constexpr int kPanel = 16;

/// Scaled: low / zeta, high * zeta.
template <class T>
papers::Taps<T> scaled_taps() {
  return papers::make_taps<T>(1 / kLift97Zeta, kLift97Zeta);
}
const papers::Taps<float>& taps() {
  static const papers::Taps<float> t = scaled_taps<float>();
  return t;
}

/// Lines of n samples, kWidth lines side by side: line[i * step + lane]. Low and high halves replace them.
template <int kWidth>
void convolve(float* line, std::ptrdiff_t step, int n, float* buffer) {
  const papers::Taps<float>& t = taps();
  for (int i = -4; i < n + 4; ++i)
    for (int k = 0; k < kWidth; ++k) buffer[(i + 4) * kWidth + k] = line[papers::mirrored(i, n) * step + k];
  for (int j = 0; j < n / 2; ++j) {
    const float* b = buffer + 2 * j * kWidth;  // sample 2 j - 4
    float low[kWidth] = {}, high[kWidth] = {};
    for (int i = 0; i < 9; ++i)
      for (int k = 0; k < kWidth; ++k) low[k] += t.low[i] * b[i * kWidth + k];
    for (int i = 0; i < 7; ++i)
      for (int k = 0; k < kWidth; ++k) high[k] += t.high[i] * b[(i + 2) * kWidth + k];
    for (int k = 0; k < kWidth; ++k) {
      line[j * step + k] = low[k];
      line[(n / 2 + j) * step + k] = high[k];
    }
  }
}

template <int kWidth>
void lift(float* line, std::ptrdiff_t step, int n, float* buffer) {
  for (int i = 0; i < n; ++i)
    for (int k = 0; k < kWidth; ++k) buffer[i * kWidth + k] = line[i * step + k];
  constexpr float kSteps[4] = {kLift97Alpha, kLift97Beta, kLift97Gamma, kLift97Delta};
  for (int s = 0; s < 4; ++s)
    for (int i = s % 2 ? 0 : 1; i < n; i += 2) {
      const float* a = buffer + (i > 0 ? i - 1 : 1) * kWidth;
      const float* b = buffer + (i + 1 < n ? i + 1 : n - 2) * kWidth;
      for (int k = 0; k < kWidth; ++k) buffer[i * kWidth + k] += kSteps[s] * (a[k] + b[k]);
    }
  constexpr float kLow = static_cast<float>(1 / kLift97Zeta), kHigh = static_cast<float>(kLift97Zeta);
  for (int j = 0; j < n / 2; ++j)
    for (int k = 0; k < kWidth; ++k) {
      line[j * step + k] = kLow * buffer[2 * j * kWidth + k];
      line[(n / 2 + j) * step + k] = kHigh * buffer[(2 * j + 1) * kWidth + k];
    }
}

/// piece(i, worker) for i < count.
template <class Piece>
void for_pieces(ThreadPool& pool, Schedule schedule, int count, const Piece& piece) {
  if (schedule == Schedule::kDynamic) return pool.parallel_for(count, piece);
  const int parts = std::min(count, pool.threads());
  pool.parallel_for(parts, [&](int part, int worker) {
    const auto begin = [&](int p) { return static_cast<int>(std::int64_t{count} * p / parts); };
    for (int i = begin(part); i < begin(part + 1); ++i) piece(i, worker);
  });
}

void separable(bool lifting, float* data, std::ptrdiff_t stride, int w, int h, std::vector<std::vector<float>>& buffers,
               ThreadPool& pool, Schedule schedule) {
  const auto buffer = [&](int worker) { return buffers[static_cast<std::size_t>(worker)].data(); };
  constexpr int kRows = 8;
  for_pieces(pool, schedule, (h + kRows - 1) / kRows, [&](int chunk, int worker) {
    for (int y = chunk * kRows; y < std::min(h, (chunk + 1) * kRows); ++y)
      (lifting ? lift<1> : convolve<1>)(data + y * stride, 1, w, buffer(worker));
  });
  for_pieces(pool, schedule, (w + kPanel - 1) / kPanel, [&](int panel, int worker) {
    const int x = panel * kPanel;
    if (x + kPanel <= w) {
      (lifting ? lift<kPanel> : convolve<kPanel>)(data + x, stride, h, buffer(worker));
    } else {
      for (int i = x; i < w; ++i) (lifting ? lift<1> : convolve<1>)(data + i, stride, h, buffer(worker));
    }
  });
}

/// One mask: coefficients of one subband from a window of kRows x kColumns samples.
template <int kRows, int kColumns>
void mask_row(const float* data, std::ptrdiff_t stride, int w, int h, const float* down, const float* across, int y,
              float* out) {
  float mask[kRows][kColumns];
  for (int i = 0; i < kRows; ++i)
    for (int j = 0; j < kColumns; ++j) mask[i][j] = down[i] * across[j];
  // The centre of a window of 9 is sample 2 j, of one of 7 sample 2 j + 1.
  const int top = 2 * y - (kRows == 9 ? 4 : 2), left = kColumns == 9 ? -4 : -2;
  const float* rows[kRows];
  for (int i = 0; i < kRows; ++i) rows[i] = data + papers::mirrored(top + i, h) * stride;
  // Tap by tap over the whole row, except for the ends.
  const int first = std::min(w / 2, (1 - left) / 2), last = std::max(first, (w - kColumns - left) / 2 + 1);
  std::fill(out + first, out + last, 0.0f);
  for (int i = 0; i < kRows; ++i)
    for (int j = 0; j < kColumns; ++j) {
      const float m = mask[i][j];
      const float* row = rows[i] + left + j;
      for (int x = first; x < last; ++x) out[x] += m * row[2 * x];
    }
  for (int x = 0; x < w / 2; ++x) {
    if (x >= first && x < last) continue;
    float sum = 0;
    for (int i = 0; i < kRows; ++i)
      for (int j = 0; j < kColumns; ++j) sum += mask[i][j] * rows[i][papers::mirrored(2 * x + left + j, w)];
    out[x] = sum;
  }
}

void masks(bool low_only, float* data, std::ptrdiff_t stride, int w, int h, std::vector<float>& second,
           ThreadPool& pool, Schedule schedule) {
  const papers::Taps<float>& t = taps();
  const int hw = w / 2, hh = h / 2;
  for_pieces(pool, schedule, hh, [&](int y, int) {
    float* upper = second.data() + static_cast<std::ptrdiff_t>(y) * w;
    mask_row<9, 9>(data, stride, w, h, t.low, t.low, y, upper);
    if (low_only) return;
    float* lower = upper + static_cast<std::ptrdiff_t>(hh) * w;
    mask_row<9, 7>(data, stride, w, h, t.low, t.high, y, upper + hw);
    mask_row<7, 9>(data, stride, w, h, t.high, t.low, y, lower);
    mask_row<7, 7>(data, stride, w, h, t.high, t.high, y, lower + hw);
  });
  for_pieces(pool, schedule, low_only ? hh : h, [&](int y, int) {
    std::copy_n(second.data() + static_cast<std::ptrdiff_t>(y) * w, low_only ? hw : w, data + y * stride);
  });
}

}  // namespace

const char* name_of(Method method) {
  switch (method) {
    case Method::kConvolution: return "convolution";
    case Method::kLifting: return "lifting";
    case Method::kMasks: return "SMDWT";
    case Method::kMasksLow: return "SMDWT low only";
  }
  return "?";
}

void transform(Method method, float* data, int width, int height, int levels, ThreadPool& pool, Schedule schedule) {
  require(levels >= 1 && levels <= 12 && width >= 2 && height >= 2 && width % (1 << levels) == 0 &&
              height % (1 << levels) == 0,
          ErrorKind::kBadArgument,
          "sides of " + std::to_string(width) + "x" + std::to_string(height) + " are not divisible by 2^" +
              std::to_string(levels) + "; choose fewer levels or another size");
  const bool in_place = method == Method::kConvolution || method == Method::kLifting;
  std::vector<std::vector<float>> buffers;
  std::vector<float> second;
  if (in_place)
    buffers.assign(static_cast<std::size_t>(pool.threads()),
                   std::vector<float>(extra_samples(method, width, height, 1)));
  else
    second.resize(extra_samples(method, width, height, 1));
  for (int level = 0; level < levels; ++level, width /= 2, height /= 2) {
    const std::ptrdiff_t stride = static_cast<std::ptrdiff_t>(width) << level;
    if (in_place)
      separable(method == Method::kLifting, data, stride, width, height, buffers, pool, schedule);
    else
      masks(method == Method::kMasksLow, data, stride, width, height, second, pool, schedule);
  }
}

std::size_t extra_samples(Method method, int width, int height, int threads) {
  const auto n = static_cast<std::size_t>(threads), w = static_cast<std::size_t>(width),
             h = static_cast<std::size_t>(height);
  switch (method) {
    case Method::kConvolution: return n * std::max(w + 8, kPanel * (h + 8));
    case Method::kLifting: return n * std::max(w, kPanel * h);
    case Method::kMasks: return w * h;
    case Method::kMasksLow: return w * (h / 2);
  }
  return 0;
}

std::vector<double> reference(const std::vector<double>& data, int width, int height, int levels) {
  static const papers::Taps<double> t = scaled_taps<double>();
  std::vector<double> out = data;
  const std::ptrdiff_t stride = width;
  for (int level = 0; level < levels; ++level, width /= 2, height /= 2) {
    const auto line = [&](std::ptrdiff_t start, std::ptrdiff_t step, int n) {
      std::vector<double> x(static_cast<std::size_t>(n));
      for (int i = 0; i < n; ++i) x[static_cast<std::size_t>(i)] = out[static_cast<std::size_t>(start + i * step)];
      for (int j = 0; j < n / 2; ++j) {
        double low = 0, high = 0;
        for (int i = -4; i <= 4; ++i) low += t.low[i + 4] * x[static_cast<std::size_t>(papers::mirrored(2 * j + i, n))];
        for (int i = -3; i <= 3; ++i)
          high += t.high[i + 3] * x[static_cast<std::size_t>(papers::mirrored(2 * j + 1 + i, n))];
        out[static_cast<std::size_t>(start + j * step)] = low;
        out[static_cast<std::size_t>(start + (n / 2 + j) * step)] = high;
      }
    };
    for (int y = 0; y < height; ++y) line(y * stride, 1, width);
    for (int x = 0; x < width; ++x) line(x, stride, height);
  }
  return out;
}

}  // namespace trivelet::papers_dwt2d
