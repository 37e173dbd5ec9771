// trivelet bench dct2d: the DCT of a whole picture, by definition and by FFT. trivelet bench papers: the figures of the
// papers behind Trivelet beside those of their methods and ours on this machine.

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>

#include "apps/bench/bench_papers.h"
#include "apps/bench/bench_still.h"
#include "apps/bench/papers_dct.h"
#include "apps/bench/papers_dwt2d.h"
#include "apps/bench/papers_dwt2d_gpu.h"
#include "apps/cli/backends.h"
#include "codec/still/dct/dct.h"
#include "codec/still/vstc/vstc_wave.h"
#include "codec/transform/dwt.h"
#include "gpu/still/dct.h"
#include "gpu/still/real_fft.h"
#include "gpu/still/vstc.h"

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
  bool table = false;
  std::string device = "auto";
};

/// The GPU's times, and that its levels are the CPU's.
gpu::DctFigure measure_gpu_dct(const still::Image& image, int qp, double keep, int device, gpu::DctWay way,
                               dct::Transform& cpu) {
  const double step = std::exp2((qp - 4) / 6.0);
  const auto kept = static_cast<std::uint64_t>(keep * static_cast<double>(image.samples.size()));
  require(gpu::make_dct_transform(device, way)->levels(image, 0, step, kept) == cpu.levels(image, 0, step, kept),
          ErrorKind::kMismatch, "the GPU's levels differ from the CPU's");
  return gpu::bench_dct(image, step, keep, device, way);
}

/// Whether the GPU that --device asks for can do dct.
bool can_do_dct([[maybe_unused]] const DeviceChoice& choice) { return choice.gpu >= 0 && gpu::have_fft(); }

/// Bits per pixel and PSNR of a codec's bytes.
std::pair<double, double> rate_and_psnr(const still::Image& image, std::size_t bytes, const still::Image& back) {
  return {8 * static_cast<double>(bytes) / (double{1} * image.width * image.height), psnr(image, back)};
}

void print_dct2d_head(const DctOptions& o, const dct::Transform& fast, const dct::Transform& own, int threads) {
  fmt::print(
      "Forward DCT in ms, best of {}. Definition: sums of O(n) on one thread, ~ estimated from the largest computed. "
      "GPU: 8-bit samples to quantised levels in scan order, binary64, median, with transfers in brackets. Ratios over "
      "the definition / over {} on one thread, the GPU's with transfers. Codec: QP {}, the lower {} kept{}\n",
      o.repeat, fast.name(), o.qp, o.keep,
      o.table ? "; table: JPEG's quantiser table and run lengths in bytes, as the paper has them" : "");
  fmt::print("{:>6} {:>11} {:>9} {:>9} {:>9} {:>16} {:>16} {:>12} {:>14} {:>7} {:>7}{}\n", "side", "definition",
             own.name(), fast.name(), fmt::format("x{}", threads), "GPU, mirrored", "GPU, folded", "ratio CPU",
             "ratio GPU", "bpp", "PSNR", o.table ? " table, bpp    PSNR" : "");
}

int run_dct2d(const DctOptions& o, const Common& common) {
  ThreadPool one(1), all(common.threads);
  const auto direct = dct::make_direct_transform();
  const auto own = dct::make_own_transform(one), fast = dct::make_fast_transform(one),
             threaded = dct::make_fast_transform(all);
  const DeviceChoice device = choose_device(o.device);
  [[maybe_unused]] const bool on_gpu = can_do_dct(device);
  print_dct2d_head(o, *fast, *own, all.threads());
  double per_cube = 0;
  for (const int side : o.sizes) {
    const still::Image image = test_picture(side);
    const double cube = std::pow(side, 3);
    const bool measured = side <= o.direct_most;
    if (measured) per_cube = time_forward(*direct, image, 1) / cube;
    const double slow = per_cube * cube;
    const double a = time_forward(*own, image, o.repeat), b = time_forward(*fast, image, o.repeat),
                 c = time_forward(*threaded, image, o.repeat);
    std::string gpu[2] = {"-", "-"}, gpu_ratio = "-";
    if (on_gpu) {
      for (const gpu::DctWay way : {gpu::DctWay::kMirror, gpu::DctWay::kFolded}) {
        const gpu::DctFigure f = measure_gpu_dct(image, o.qp, o.keep, device.gpu, way, *threaded);
        gpu[way == gpu::DctWay::kFolded] = fmt::format("{:.3f} ({:.2f})", f.forward, f.with_transfers);
        gpu_ratio = fmt::format("{:.0f} / {:.1f}", 1e3 * slow / f.with_transfers, 1e3 * b / f.with_transfers);
      }
    }
    const std::vector<std::byte> bytes = dct::encode(image, {.qp = o.qp, .keep = o.keep}, *fast);
    const auto [rate, quality] = rate_and_psnr(image, bytes.size(), dct::decode(bytes, {}, *fast));
    std::string by_table;
    if (o.table) {
      const std::vector<std::byte> runs = papers_dct::encode(image, o.qp, o.keep, *fast);
      still::Image back = image;
      papers_dct::decode(runs, o.qp, *fast, back);
      const auto [table_rate, table_quality] = rate_and_psnr(image, runs.size(), back);
      by_table = fmt::format(" {:>10.3f} {:>7.2f}", table_rate, table_quality);
    }
    fmt::print("{:>6} {:>11} {:>9.2f} {:>9.2f} {:>9.2f} {:>16} {:>16} {:>12} {:>14} {:>7.3f} {:>7.2f}{}\n", side,
               slow > 0 ? fmt::format("{}{:.1f}", measured ? "" : "~", 1e3 * slow) : "-", 1e3 * a, 1e3 * b, 1e3 * c,
               gpu[0], gpu[1], slow > 0 ? fmt::format("{:.0f} / {:.1f}", slow / c, b / c) : "-", gpu_ratio, rate,
               quality, by_table);
  }
  return kExitDone;
}

// ---------------------------------------------------------------------------------------------------------- papers

struct PapersOptions {
  int side = 2048;
  int dct_side = 512;
  int vstc_side = 256;
  int repeat = 3;
  std::vector<std::string> frame_sizes = {"1280x640", "1920x1024"};
  std::vector<int> gops = {16, 32, 64, 128};
  double energy_seconds = 2;
  std::string device = "auto";
};

/// What the papers' sections share.
struct PapersRun {
  const PapersOptions& options;
  DeviceChoice device;
  SimdLevel simd;
  ThreadPool one{1}, all;

  PapersRun(const PapersOptions& o, const Common& common)
      : options(o), device(choose_device(o.device)), simd(parse_simd(common.simd)), all(common.threads) {}
  bool on_gpu() const { return device.gpu >= 0; }
};

constexpr const char* kNoGpu = "no GPU";

void line(const std::string& what, const std::string& theirs, const std::string& here, const std::string& ours) {
  fmt::print("{:<62} {:>14} {:>14} {:>14}\n", what, theirs, here, ours);
}

/// 2D-DWT from multicore to GPU, on the GPU. `convolution`: seconds of one thread.
void print_dwt2d_gpu(PapersRun& run, const std::vector<float>& picture, double convolution) {
  if (!run.on_gpu()) return line("GPU over sequential convolution, CUDA-Sep", "20", kNoGpu, kNoGpu);
  const int side = run.options.side;
  gpu::use_device(run.device.gpu);
  std::vector<float> work = picture;
  papers_dwt2d::transform(papers_dwt2d::Method::kLifting, work.data(), side, side, 1, run.all);
  const auto measure = [&](gpu::Dwt2dMethod m) { return gpu::bench_dwt2d(m, picture, work, side, side, 1); };
  const auto ratio = [&](double ms) { return fmt::format("{:.1f}", 1e3 * convolution / ms); };
  const gpu::Dwt2dFigure sep = measure(gpu::Dwt2dMethod::kSep), own = measure(gpu::Dwt2dMethod::kOwn);
  line("GPU over sequential convolution, CUDA-Sep", "20", ratio(sep.milliseconds), ratio(own.milliseconds));
  line("the same with transfers", "-", ratio(sep.with_transfers), ratio(own.with_transfers));
  for (const gpu::Dwt2dMethod m : {gpu::Dwt2dMethod::kConv, gpu::Dwt2dMethod::kMem, gpu::Dwt2dMethod::kText}) {
    const gpu::Dwt2dFigure other = measure(m);
    line(fmt::format("CUDA-Sep over {}", gpu::name_of(m)), "2.7",
         fmt::format("{:.2f}", other.milliseconds / sep.milliseconds),
         fmt::format("{:.2f}", other.milliseconds / own.milliseconds));
  }
}

/// 2D-DWT from multicore to GPU.
void print_dwt2d(PapersRun& run) {
  const PapersOptions& o = run.options;
  const still::Image image = test_picture(o.side);
  std::vector<float> picture, work;
  for (const std::byte b : image.samples) picture.push_back(static_cast<float>(std::to_integer<int>(b)));
  const auto time = [&](const auto& body) {
    double best = 1e30;
    for (int i = 0; i < o.repeat; ++i) {
      work = picture;
      best = std::min(best, best_of(1, body));
    }
    return best;
  };
  const auto dwt = [&](papers_dwt2d::Method m, int threads) {
    ThreadPool pool(threads);
    return time([&] { papers_dwt2d::transform(m, work.data(), o.side, o.side, 1, pool); });
  };
  const auto own_dwt = [&](int threads) {
    ThreadPool pool(threads);
    return time([&] {
      Decomposition d;
      d.spatial_levels = 1;
      forward_transform(Field<float>{work.data(), {1, o.side, o.side}, o.side, 0}, d, pool, run.simd);
    });
  };
  fmt::print("\n2D-DWT from multicore to GPU (Galiano et al. 2011), 9/7, one level, {0}x{0}\n", o.side);
  const double convolution = dwt(papers_dwt2d::Method::kConvolution, 1),
               lifting = dwt(papers_dwt2d::Method::kLifting, 1), masks = dwt(papers_dwt2d::Method::kMasks, 1),
               own = own_dwt(1);
  line("convolution over SMDWT, 1 thread", "2.5", fmt::format("{:.2f}", masks / convolution),
       fmt::format("{:.2f}", masks / own));
  line("lifting over SMDWT, 1 thread", "2.5", fmt::format("{:.2f}", masks / lifting),
       fmt::format("{:.2f}", masks / own));
  // The paper's abstract, and for eight and ten that of its version in the Journal of Supercomputing (2013).
  for (const auto& [n, theirs] : {std::pair{2, "1.9"}, {4, "3.4"}, {8, "7.1"}, {10, "8.9"}}) {
    const bool enough = n <= run.all.threads();
    line(fmt::format("speed-up on {} threads, convolution", n), theirs,
         enough ? fmt::format("{:.2f}", convolution / dwt(papers_dwt2d::Method::kConvolution, n)) : "few cores",
         enough ? fmt::format("{:.2f}", own / own_dwt(n)) : "few cores");
  }
  print_dwt2d_gpu(run, picture, convolution);
}

/// DCT by FFT.
void print_dct(PapersRun& run) {
  const still::Image image = test_picture(run.options.dct_side);
  const double definition = time_forward(*dct::make_direct_transform(), image, 1);
  const double single = time_forward(*dct::make_fast_transform(run.one), image, run.options.repeat),
               threaded = time_forward(*dct::make_fast_transform(run.all), image, run.options.repeat);
  fmt::print(
      "\n2D-DCT by FFT (Ghetia, Gajjar, Gajjar), {0}x{0}; ratios over the definition on one thread; the paper's: GPU "
      "with transfers\n",
      run.options.dct_side);
  line(fmt::format("fast transform on 1 core, on {}", run.all.threads()), "-",
       fmt::format("{:.0f}", definition / single), fmt::format("{:.0f}", definition / threaded));
  if (!can_do_dct(run.device)) return line("GPU with transfers", "97", kNoGpu, kNoGpu);
  const auto fast = dct::make_fast_transform(run.all);
  const auto figure = [&](gpu::DctWay way) { return measure_gpu_dct(image, 27, 0.5, run.device.gpu, way, *fast); };
  const gpu::DctFigure mirror = figure(gpu::DctWay::kMirror), folded = figure(gpu::DctWay::kFolded);
  const auto ratio = [&](double ms) { return fmt::format("{:.0f}", 1e3 * definition / ms); };
  line("GPU with transfers", "97", ratio(mirror.with_transfers), ratio(folded.with_transfers));
  line("GPU without transfers", "-", ratio(mirror.forward), ratio(folded.forward));
}

void print_vstc(PapersRun& run) {
  const still::Image block = test_picture(run.options.vstc_side);
  vstc::Params p;
  p.log2_block = 4;
  p.qp = 27;
  p.simd = run.simd;
  vstc::Encoded kept, plain;
  const double remembered = best_of(1, [&] { kept = vstc::encode(block, p, run.one); });
  const double wavefront = best_of(1, [&] {
    const vstc::Encoded e = vstc::encode(block, p, run.all);
    require(e.bytes == kept.bytes, ErrorKind::kMismatch, "threads changed the stream");
  });
  p.remember = false;
  const double recursion = best_of(1, [&] { plain = vstc::encode(block, p, run.one); });
  require(plain.bytes == kept.bytes, ErrorKind::kMismatch, "the plain recursion gives another stream");
  fmt::print("\nVSTC (Military Institute of Engineering 2015), {0}x{0}, blocks of 16, QP 27\n", run.options.vstc_side);
  line("residual trials, plain recursion / costs kept", "future work", "1",
       fmt::format("{:.2f}",
                   static_cast<double>(plain.statistics.trials) / static_cast<double>(kept.statistics.trials)));
  line("time, plain recursion / costs kept", "future work", "1", fmt::format("{:.2f}", recursion / remembered));
  line("speed-up of the encoder: MPI, a process a mode; here threads", "8.13, 8.41 *", "-",
       fmt::format("{:.2f} ({} thr.)", remembered / wavefront, run.all.threads()));
  if (!run.on_gpu()) {
    line("speed-up of the encoder: GPU", "1.41", kNoGpu, kNoGpu);
  } else {
    p.remember = true;
    const double by_gpu = best_of(2, [&] {
      require(vstc::encode_waves(block, p, gpu::make_vstc_search(run.device.gpu)).bytes == kept.bytes,
              ErrorKind::kMismatch, "the GPU gives another stream");
    });
    line("speed-up of the encoder: GPU", "1.41", "-", fmt::format("{:.1f}", remembered / by_gpu));
  }
  fmt::print("* in its abstract and in its text; the same split here: mpirun, trivelet still encode --share modes\n");
}

int run_papers(const PapersOptions& o, const Common& common) {
  PapersRun run(o, common);
  line("", "paper", "their way here", "Trivelet's");
  print_dwt2d(run);
  print_papers_dwt3d({o.frame_sizes, o.gops, o.repeat, run.device.gpu, run.simd}, run.all);
  print_dct(run);
  print_vstc(run);
  if (o.energy_seconds == 0) return kExitDone;
  PapersEnergy energy;
  const still::Image image = test_picture(o.side);
  energy.image.width = energy.image.height = o.side;
  energy.image.bytes = image.samples;
  energy.device = run.device;
  energy.threads = run.all.threads();
  energy.seconds = o.energy_seconds;
  energy.simd = run.simd;
  print_papers_energy(energy);
  return kExitDone;
}

}  // namespace

Action define_bench_dct2d(Command& app, Common& common) {
  auto o = std::make_shared<DctOptions>();
  app.add_option("--sizes", o->sizes, "Sides of square pictures").delimiter(',').range(16, 8192).show_default();
  app.add_option("--direct-most", o->direct_most, "Largest side that the definition is computed for").show_default();
  app.add_option("--repeat", o->repeat, "Best of N runs").range(1, 1000).show_default();
  app.add_option("--keep", o->keep, "Share of the coefficients to keep").range(0.0, 1.0).show_default();
  app.add_option("-q,--qp", o->qp, "Quantiser").range(0, 51).show_default();
  app.add_flag(
      "--table", o->table,
      "Also code by a quantiser table and run lengths, the paper's way: JPEG's table, stretched over the plane");
  add_device_option(app, o->device);
  add_work_options(app, common);
  add_log_options(app, common);
  return [o, &common] { return run_dct2d(*o, common); };
}

Action define_bench_papers(Command& app, Common& common) {
  auto o = std::make_shared<PapersOptions>();
  app.add_option("--side", o->side, "Side of the picture for the 2D-DWT, even").range(64, 8192).show_default();
  app.add_option("--dct-side", o->dct_side, "Side of the picture for the DCT").range(16, 2048).show_default();
  app.add_option("--energy-seconds", o->energy_seconds,
                 "How long energy is counted on each platform, where it can be; 0: not at all")
      .range(0.0, 60.0)
      .show_default();
  add_device_option(app, o->device);
  app.add_option("--frame-sizes", o->frame_sizes, "Sizes of frames for the 3D-DWT, divisible by 8")
      .delimiter(',')
      .type_name("WxH")
      .show_default();
  app.add_option("--gops", o->gops, "Frames of a GOP for the 3D-DWT, divisible by 8")
      .delimiter(',')
      .range(8, 1024)
      .show_default();
  app.add_option("--vstc-side", o->vstc_side, "Side of the picture for VSTC").range(16, 2048).show_default();
  app.add_option("--repeat", o->repeat, "Best of N runs").range(1, 1000).show_default();
  add_work_options(app, common);
  add_log_options(app, common);
  return [o, &common] { return run_papers(*o, common); };
}

}  // namespace trivelet::cli
