// The 3D-DWT section of "trivelet bench papers": the sequential convolution, that of the GPU in global and in shared
// memory, and the codec's transform, for every GOP and size of the paper.

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "apps/bench/bench_papers.h"
#include "apps/bench/gpu_dwt_bench.h"
#include "apps/bench/papers_dwt2d_gpu.h"
#include "apps/bench/papers_dwt3d.h"
#include "apps/cli/cli.h"
#include "codec/transform/dwt.h"
#include "codec/transform/subband.h"

namespace trivelet::cli {

namespace {

using papers_dwt3d::Order;

constexpr int kLevels = 3;
constexpr float kTolerance = 0.05f;  // of low coefficients up to some 400: both ways add floats in their own order

/// Milliseconds of one GOP.
struct CpuTimes {
  double lines = 0;  ///< the sequential convolution, line by line
  double rows = 0;   ///< the same with rows as the inner loop
  double own = 0, threaded = 0;
};

/// Moving waves with a little texture.
std::vector<float> frames_of(const Shape& s) {
  std::vector<float> v(s.samples());
  std::size_t i = 0;
  for (int f = 0; f < s.frames; ++f)
    for (int y = 0; y < s.height; ++y) {
      const float down = 40 * std::sin(0.013f * static_cast<float>(y + f));
      for (int x = 0; x < s.width; ++x) v[i++] = down + static_cast<float>((x * 5 + y * 3 + 2 * f) % 64);
    }
  return v;
}

template <class Body>
double least(int repeat, const std::vector<float>& frames, std::vector<float>& work, const Body& body) {
  double best = 1e30;
  for (int i = 0; i < repeat; ++i) {
    work = frames;
    const auto start = std::chrono::steady_clock::now();
    body();
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return 1e3 * best;
}

/// The codec's low band against that of the convolution.
void check_low_band(const std::vector<float>& convolved, const Field<float>& own, const Shape& s,
                    const Decomposition& d) {
  const SubbandTable table(s, d, false);
  const Field<float> low = subband_view(own, table.all().front());
  for (int f = 0; f < low.shape.frames; ++f)
    for (int y = 0; y < low.shape.height; ++y)
      for (int x = 0; x < low.shape.width; ++x) {
        const auto row = static_cast<std::size_t>(f) * static_cast<std::size_t>(s.height) + static_cast<std::size_t>(y);
        const float a = convolved[row * static_cast<std::size_t>(s.width) + static_cast<std::size_t>(x)];
        const float b = low.row(f, y)[x];
        if (!(std::abs(a - b) <= kTolerance))
          fail(ErrorKind::kMismatch,
               fmt::format("convolution gives {} at {},{},{} where the codec gives {}", a, x, y, f, b));
      }
}

CpuTimes time_cpu(const PapersDwt3d& o, const Shape& s, ThreadPool& pool) {
  const std::vector<float> frames = frames_of(s);
  std::vector<float> work, scratch;
  CpuTimes t;
  t.lines = least(1, frames, work, [&] { papers_dwt3d::transform(work, scratch, s, kLevels, Order::kLines); });
  t.rows = least(o.repeat, frames, work, [&] { papers_dwt3d::transform(work, scratch, s, kLevels, Order::kRows); });
  const std::vector<float> convolved = work;
  scratch = {};
  const Decomposition d{Layout::kDyadic, kLevels, kLevels, Wavelet::kCdf97, Wavelet::kCdf97};
  const Field<float> field{work.data(), s, s.width, static_cast<std::ptrdiff_t>(s.width) * s.height};
  const auto own = [&](ThreadPool& with) {
    return least(o.repeat, frames, work, [&] { forward_transform(field, d, with, o.simd); });
  };
  ThreadPool one(1);
  t.own = own(one);
  check_low_band(convolved, field, s, d);
  t.threaded = pool.threads() > 1 ? own(pool) : t.own;
  return t;
}

}  // namespace

void print_papers_dwt3d(const PapersDwt3d& o, ThreadPool& pool) {
  std::vector<Shape> shapes;
  for (const std::string& size : o.frame_sizes) {
    const auto [w, h] = parse_pair(size, "--frame-sizes", "width and height");
    for (const int frames : o.gops) shapes.push_back({frames, h, w});
  }
  fmt::print(
      "\n3D-DWT of video (Galiano et al. 2013), 9/7, {} levels, float. Milliseconds: the sequential convolution line "
      "by "
      "line (its way) and by rows,\nTrivelet's on 1 and {} threads; on the GPU convolution in global and in shared "
      "memory, "
      "Trivelet's, and floats up and down. Speed-ups over the\nsequential convolution line by line, with transfers in "
      "brackets; the papers': 19.7 / 26 and 10.65 / 13.6; up to 12.68 (J. Supercomputing)\n",
      kLevels, pool.threads());
  fmt::print("{:<14} {:>8} {:>8} {:>8} {:>8} | {:>7} {:>7} {:>7} {:>6} {:>6} | {:>13} {:>13} {:>13} {:>8}\n", "",
             "lines", "rows", "1 thr.", fmt::format("{} thr.", pool.threads()), "global", "shared", "ours", "up",
             "down", "global", "shared", "ours, GPU", "ours, CPU");
  if (o.gpu >= 0) gpu::use_device(o.gpu);
  for (const Shape& s : shapes) {
    const CpuTimes t = time_cpu(o, s, pool);
    const std::string name = fmt::format("{}x{}x{}", s.width, s.height, s.frames),
                      cpu = fmt::format("{:.1f}", t.lines / t.threaded);
    fmt::print("{:<14} {:>8.1f} {:>8.1f} {:>8.1f} {:>8.1f} | ", name, t.lines, t.rows, t.own, t.threaded);
    if (o.gpu < 0) {
      fmt::print("{:>7} {:>7} {:>7} {:>6} {:>6} | {:>13} {:>13} {:>13} {:>8}\n", "-", "-", "-", "-", "-", "no GPU",
                 "no GPU", "no GPU", cpu);
    } else {
      const gpu::Dwt3dFigure f = gpu::bench_dwt3d(s);
      const auto ratio = [&](double ms) {
        return fmt::format("{:.0f} ({:.1f})", t.lines / ms, t.lines / (ms + f.up + f.down));
      };
      fmt::print("{:>7.3f} {:>7.3f} {:>7.3f} {:>6.2f} {:>6.2f} | {:>13} {:>13} {:>13} {:>8}\n", f.global, f.shared,
                 f.ours, f.up, f.down, ratio(f.global), ratio(f.shared), ratio(f.ours), cpu);
    }
    std::fflush(stdout);
  }
}

}  // namespace trivelet::cli
