// trivelet bench dct2d: the DCT of a whole picture, by definition and by FFT; trivelet bench papers: what the papers
// behind Trivelet report beside what this machine does in their way and in ours.

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>

#include "apps/bench_still.h"
#include "codec/dwt.h"
#include "codec/still/dct.h"
#include "codec/still/study97.h"
#include "codec/still/vstc.h"

namespace trivelet::cli {

namespace {

template <class Body>
double best_of(int repeat, const Body& body) {
  double best = 1e30;
  for (int i = 0; i < repeat; ++i) {
    const auto start = std::chrono::steady_clock::now();
    body();
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

/// Something like a photograph: smooth parts, edges, texture, noise.
still::Image test_picture(int side) {
  still::Image image;
  image.width = image.height = side;
  image.allocate();
  std::uint32_t state = 1;
  for (int y = 0; y < side; ++y)
    for (int x = 0; x < side; ++x) {
      state = state * 1664525U + 1013904223U;
      double v = 110 + 40 * std::sin(0.011 * x + 0.017 * y) + (x * 3 + y * 2 > 2 * side ? 35 : 0);
      if (x > side / 2) v += 18 * std::sin(0.7 * x + 0.3 * y);
      v += static_cast<double>(state >> 29);
      image.samples[static_cast<std::size_t>(y) * static_cast<std::size_t>(side) + static_cast<std::size_t>(x)] =
          static_cast<std::byte>(std::clamp(static_cast<int>(v), 0, 255));
    }
  return image;
}

double psnr(const still::Image& a, const still::Image& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.samples.size(); ++i) {
    const double d = std::to_integer<int>(a.samples[i]) - std::to_integer<int>(b.samples[i]);
    sum += d * d;
  }
  return 10 * std::log10(255 * 255 * static_cast<double>(a.samples.size()) / std::max(sum, 1e-9));
}

std::vector<double> values_of(const still::Image& image) {
  std::vector<double> v;
  for (const std::byte b : image.samples) v.push_back(std::to_integer<int>(b) - 128.0);
  return v;
}

double time_forward(dct::Transform& transform, const still::Image& image, int repeat) {
  const std::vector<double> in = values_of(image);
  std::vector<double> work;
  double best = 1e30;
  for (int i = 0; i < repeat; ++i) {
    work = in;
    best = std::min(best, best_of(1, [&] { transform.forward(work.data(), image.width, image.height); }));
  }
  return best;
}

// ----------------------------------------------------------------------------------------------------------- dct2d

struct DctOptions {
  std::vector<int> sizes = {256, 512, 1024, 2048};
  int direct_most = 1024;
  int repeat = 3;
  double keep = 0.5;
  int qp = 27;
};

int run_dct2d(const DctOptions& o, const Common& common) {
  ThreadPool one(1), all(common.threads);
  const auto direct = dct::make_direct_transform();
  const auto own = dct::make_own_transform(one), fast = dct::make_fast_transform(one),
             threaded = dct::make_fast_transform(all);
  fmt::print(
      "forward DCT in ms, best of {}; ratios over the definition on one thread; codec: QP {}, the lower {} kept\n",
      o.repeat, o.qp, o.keep);
  fmt::print("{:>6} {:>11} {:>10} {:>10} {:>10} {:>9} {:>9} {:>9}\n", "side", "definition", own->name(), fast->name(),
             fmt::format("x{}", all.threads()), "ratio", "bpp", "PSNR");
  for (const int side : o.sizes) {
    const still::Image image = test_picture(side);
    const double slow = side <= o.direct_most ? time_forward(*direct, image, 1) : 0;
    const double a = time_forward(*own, image, o.repeat), b = time_forward(*fast, image, o.repeat),
                 c = time_forward(*threaded, image, o.repeat);
    const std::vector<std::byte> bytes = dct::encode(image, {.qp = o.qp, .keep = o.keep}, *fast);
    const still::Image back = dct::decode(bytes, {}, *fast);
    fmt::print("{:>6} {:>11} {:>10.2f} {:>10.2f} {:>10.2f} {:>9} {:>9.3f} {:>9.2f}\n", side,
               slow > 0 ? fmt::format("{:.1f}", 1e3 * slow) : "-", 1e3 * a, 1e3 * b, 1e3 * c,
               slow > 0 ? fmt::format("{:.0f}", slow / c) : "-",
               8 * static_cast<double>(bytes.size()) / (double{1} * side * side), psnr(image, back));
  }
  return kExitDone;
}

// ---------------------------------------------------------------------------------------------------------- papers

struct PapersOptions {
  int side = 2048;
  int vstc_side = 128;
  int repeat = 3;
};

void line(const std::string& what, const std::string& theirs, const std::string& here, const std::string& ours) {
  fmt::print("{:<58} {:>12} {:>14} {:>14}\n", what, theirs, here, ours);
}

int run_papers(const PapersOptions& o, const Common& common) {
  const int most = ThreadPool(common.threads).threads();
  const SimdLevel simd = parse_simd(common.simd);
  line("", "paper", "their way here", "Trivelet's");

  // 2D-DWT from multicore to GPU
  const still::Image image = test_picture(o.side);
  std::vector<float> picture, work;
  for (const std::byte b : image.samples) picture.push_back(static_cast<float>(std::to_integer<int>(b)));
  const auto dwt = [&](study97::Method m, int threads) {
    ThreadPool pool(threads);
    double best = 1e30;
    for (int i = 0; i < o.repeat; ++i) {
      work = picture;
      best = std::min(best, best_of(1, [&] { study97::transform(m, work.data(), o.side, o.side, 1, pool); }));
    }
    return best;
  };
  const auto own_dwt = [&](int threads) {
    ThreadPool pool(threads);
    double best = 1e30;
    for (int i = 0; i < o.repeat; ++i) {
      work = picture;
      best = std::min(best, best_of(1, [&] {
                        Field<float> field{work.data(), {1, o.side, o.side}, o.side, 0};
                        Decomposition d;
                        d.spatial_levels = 1;
                        forward_transform(field, d, pool, simd);
                      }));
    }
    return best;
  };
  fmt::print("\n2D-DWT from multicore to GPU (Galiano et al. 2011), 9/7, one level, {0}x{0}\n", o.side);
  const double convolution = dwt(study97::Method::kConvolution, 1), lifting = dwt(study97::Method::kLifting, 1),
               masks = dwt(study97::Method::kMasks, 1), own = own_dwt(1);
  line("convolution over SMDWT, 1 thread", "2.5", fmt::format("{:.2f}", masks / convolution),
       fmt::format("{:.2f}", masks / own));
  line("lifting over SMDWT, 1 thread", "2.5", fmt::format("{:.2f}", masks / lifting),
       fmt::format("{:.2f}", masks / own));
  for (const int n : {2, 4})
    if (n <= most)
      line(fmt::format("speed-up on {} threads, convolution", n), n == 2 ? "> 1.9" : "3.4",
           fmt::format("{:.2f}", convolution / dwt(study97::Method::kConvolution, n)),
           fmt::format("{:.2f}", own / own_dwt(n)));
    else
      line(fmt::format("speed-up on {} threads, convolution", n), n == 2 ? "> 1.9" : "3.4", "few cores", "few cores");

  // DCT by FFT
  const still::Image small = test_picture(512);
  ThreadPool one(1), all(common.threads);
  const double definition = time_forward(*dct::make_direct_transform(), small, 1);
  const double single = time_forward(*dct::make_fast_transform(one), small, o.repeat),
               threaded = time_forward(*dct::make_fast_transform(all), small, o.repeat);
  fmt::print(
      "\n2D-DCT by FFT (Ghetia, Gajjar, Gajjar), 512x512; the paper's ratio: GPU with transfers over a sequential "
      "CPU\n");
  line("over the definition on one thread", "97 (GPU)", fmt::format("{:.0f} (1 core)", definition / single),
       fmt::format("{:.0f} ({} thr.)", definition / threaded, all.threads()));

  // VSTC
  const still::Image block = test_picture(o.vstc_side);
  vstc::Params p;
  p.log2_block = 4;
  p.qp = 27;
  p.simd = simd;
  vstc::Encoded kept, plain;
  const double remembered = best_of(1, [&] { kept = vstc::encode(block, p, one); });
  const double wavefront = best_of(1, [&] {
    const vstc::Encoded e = vstc::encode(block, p, all);
    require(e.bytes == kept.bytes, ErrorKind::kMismatch, "threads changed the stream");
  });
  p.remember = false;
  const double recursion = best_of(1, [&] { plain = vstc::encode(block, p, one); });
  require(plain.bytes == kept.bytes, ErrorKind::kMismatch, "the plain recursion gives another stream");
  fmt::print("\nVSTC (Military Institute of Engineering 2015), {0}x{0}, blocks of 16, QP 27\n", o.vstc_side);
  line("residual trials, plain recursion / costs kept", "future work", "1",
       fmt::format("{:.2f}",
                   static_cast<double>(plain.statistics.trials) / static_cast<double>(kept.statistics.trials)));
  line("time, plain recursion / costs kept", "future work", "1", fmt::format("{:.2f}", recursion / remembered));
  line("speed-up of the encoder: MPI 16 ranks; here threads", "8.1", "see BENCHMARKS",
       fmt::format("{:.2f} ({} thr.)", remembered / wavefront, all.threads()));
  line("speed-up of the encoder: GPU", "1.41", "not built", "not built");
  return kExitDone;
}

}  // namespace

Action define_bench_dct2d(CLI::App& app, Common& common) {
  auto o = std::make_shared<DctOptions>();
  app.add_option("--sizes", o->sizes, "Sides of square pictures")
      ->delimiter(',')
      ->check(CLI::Range(16, 8192))
      ->capture_default_str();
  app.add_option("--direct-most", o->direct_most, "Largest side that the definition is computed for")
      ->capture_default_str();
  app.add_option("--repeat", o->repeat, "Best of so many runs")->check(CLI::Range(1, 1000))->capture_default_str();
  app.add_option("--keep", o->keep, "Part of the coefficients that is kept")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  app.add_option("-q,--qp", o->qp, "Quantiser")->check(CLI::Range(0, 51))->capture_default_str();
  add_work_options(app, common);
  add_log_options(app, common);
  return [o, &common] { return run_dct2d(*o, common); };
}

Action define_bench_papers(CLI::App& app, Common& common) {
  auto o = std::make_shared<PapersOptions>();
  app.add_option("--side", o->side, "Side of the picture for the 2D-DWT, even")
      ->check(CLI::Range(64, 8192))
      ->capture_default_str();
  app.add_option("--vstc-side", o->vstc_side, "Side of the picture for VSTC")
      ->check(CLI::Range(16, 2048))
      ->capture_default_str();
  app.add_option("--repeat", o->repeat, "Best of so many runs")->check(CLI::Range(1, 1000))->capture_default_str();
  add_work_options(app, common);
  add_log_options(app, common);
  return [o, &common] { return run_papers(*o, common); };
}

}  // namespace trivelet::cli
