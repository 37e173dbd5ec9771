// trivelet bench dwt2d: the 2D 9/7 transform of a picture in the ways of Galiano et al. (2011) and the codec's own, on
// cores and on a GPU, with the study of CUDA-Sep's block sizes.

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>

#include "apps/bench/bench_still.h"
#include "apps/bench/papers_dwt2d.h"
#include "apps/bench/papers_dwt2d_gpu.h"
#include "apps/cli/backends.h"
#include "apps/still/ccsds_image.h"
#include "codec/transform/dwt.h"
#include "codec/transform/lifting.h"

namespace trivelet::cli {

namespace {

using papers_dwt2d::Method;
using papers_dwt2d::Schedule;

struct Dwt2dOptions {
  std::string image, plot, device = "auto", blocks_plot, schedule = "dynamic";
  std::vector<std::string> sizes = {"512x512", "2048x2048", "2048x2560", "4096x4096"};
  int levels = 1;
  int repeat = 3;
  bool csv = false, blocks = false, gpu_only = false;
};

struct Row {
  std::string size, method;
  int threads;  ///< 0: on the GPU
  double seconds;
  double speedup;          ///< over one thread of the same method; on a GPU over one thread of convolution
  double ratio;            ///< over SMDWT on as many threads
  std::size_t extra;       ///< samples besides the picture
  double transferred = 0;  ///< seconds with transfers
};

/// The times of CUDA-Sep for every pair of block sizes.
struct BlockStudy {
  std::string size;
  std::vector<int> rows, columns;
  std::vector<double> milliseconds;  ///< [row block][column block]
};

std::vector<float> picture_of(int width, int height, const CcsdsImage* image) {
  std::vector<float> out(static_cast<std::size_t>(width) * static_cast<std::size_t>(height));
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) {
      float v = 0;
      if (image) {
        // Repeated as often as it takes.
        const auto at = static_cast<std::size_t>(y % image->height) * static_cast<std::size_t>(image->width) +
                        static_cast<std::size_t>(x % image->width);
        v = image->bits <= 8 ? static_cast<float>(std::to_integer<int>(image->bytes[at]))
                             : static_cast<float>(std::to_integer<int>(image->bytes[2 * at]) |
                                                  std::to_integer<int>(image->bytes[2 * at + 1]) << 8);
      } else {
        v = 128 + 60 * std::sin(0.013f * static_cast<float>(x + y)) + 20 * std::sin(0.21f * static_cast<float>(x - y));
      }
      out[static_cast<std::size_t>(y) * static_cast<std::size_t>(width) + static_cast<std::size_t>(x)] = v;
    }
  return out;
}

template <class Body>
double best_of(int repeat, const std::vector<float>& picture, std::vector<float>& work, const Body& body) {
  double best = 1e30;
  for (int i = 0; i < repeat; ++i) {
    work = picture;
    const auto start = std::chrono::steady_clock::now();
    body();
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

/// The codec's low band (unscaled, at every 2^levels-th row) against that of the lifting method.
void check_own(const std::vector<float>& own, const std::vector<float>& picture, int w, int h, int levels,
               ThreadPool& pool) {
  std::vector<float> other = picture;
  papers_dwt2d::transform(Method::kLifting, other.data(), w, h, levels, pool);
  const float scale = static_cast<float>(std::pow(kLift97Zeta, -2 * levels));
  const float range = *std::max_element(picture.begin(), picture.end());
  for (int y = 0; y < h >> levels; ++y)
    for (int x = 0; x < w >> levels; ++x) {
      const auto row = static_cast<std::size_t>(w);
      const float a = own[(static_cast<std::size_t>(y) << levels) * row + static_cast<std::size_t>(x)] * scale;
      const float b = other[static_cast<std::size_t>(y) * row + static_cast<std::size_t>(x)];
      if (!(std::abs(a - b) <= 1e-4f * range))
        fail(ErrorKind::kMismatch,
             fmt::format("the codec's transform gives {} at {},{} where lifting gives {}", a, x, y, b));
    }
}

void run_gnuplot(const std::string& text) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> gnuplot(popen("gnuplot", "w"), pclose);
  require(gnuplot != nullptr, ErrorKind::kUnsupported, "plots need gnuplot, which cannot be started");
  require(std::fwrite(text.data(), 1, text.size(), gnuplot.get()) == text.size() && std::fflush(gnuplot.get()) == 0,
          ErrorKind::kIo, "gnuplot ended early");
}

void plot(const std::string& path, const std::vector<Row>& rows) {
  std::vector<std::string> labels;
  for (const Row& r : rows) {
    if (r.threads == 0) continue;
    const std::string label = r.size + " " + r.method;
    if (std::find(labels.begin(), labels.end(), label) == labels.end()) labels.push_back(label);
  }
  std::string text = fmt::format(
      "set terminal png size 1000,600\nset output '{}'\nset xlabel 'threads'\nset ylabel 'ms'\n"
      "set logscale y\nset xtics 1\nset key outside\nplot ",
      path);
  for (std::size_t i = 0; i < labels.size(); ++i)
    text += fmt::format("{}'-' with linespoints title '{}'", i ? ", " : "", labels[i]);
  text += '\n';
  for (const std::string& label : labels) {
    for (const Row& r : rows)
      if (r.threads > 0 && r.size + " " + r.method == label) text += fmt::format("{} {}\n", r.threads, 1e3 * r.seconds);
    text += "e\n";
  }
  run_gnuplot(text);
}

/// Heat maps, one above the other.
void plot_blocks(const std::string& path, const std::vector<BlockStudy>& studies) {
  std::string text = fmt::format(
      "set terminal png size 700,{}\nset output '{}'\nset multiplot layout {},1\nset xlabel 'column block'\n"
      "set ylabel 'row block'\nset cblabel 'ms'\nunset key\nset palette rgbformulae 33,13,10\n",
      480 * studies.size(), path, studies.size());
  for (const BlockStudy& s : studies) {
    text += fmt::format("set title 'CUDA-Sep, {}'\n", s.size);
    const auto tics = [](const char* axis, const std::vector<int>& values) {
      std::string out = fmt::format("set {}tics (", axis);
      for (std::size_t i = 0; i < values.size(); ++i) out += fmt::format("{}'{}' {}", i ? ", " : "", values[i], i);
      return out + ")\n";
    };
    text += tics("x", s.columns) + tics("y", s.rows) + "plot '-' matrix with image\n";
    for (std::size_t i = 0; i < s.milliseconds.size(); ++i)
      text += fmt::format("{}{}", s.milliseconds[i], (i + 1) % s.columns.size() == 0 ? '\n' : ' ');
    text += "e\n";
  }
  run_gnuplot(text + "unset multiplot\n");
}

constexpr gpu::Dwt2dMethod kGpuMethods[] = {gpu::Dwt2dMethod::kConv, gpu::Dwt2dMethod::kMem, gpu::Dwt2dMethod::kText,
                                            gpu::Dwt2dMethod::kSep, gpu::Dwt2dMethod::kOwn};

/// All methods on the current GPU; `expected`: the coefficients.
void add_gpu_rows(const std::string& size, const std::vector<float>& picture, const std::vector<float>& expected, int w,
                  int h, int levels, double sequential, std::vector<Row>& rows) {
  for (const gpu::Dwt2dMethod m : kGpuMethods) {
    const gpu::Dwt2dFigure f = gpu::bench_dwt2d(m, picture, expected, w, h, levels);
    rows.push_back({size, gpu::name_of(m), 0, 1e-3 * f.milliseconds, 1e3 * sequential / f.milliseconds, 0,
                    f.device_bytes / sizeof(float) - picture.size(), 1e-3 * f.with_transfers});
  }
}

BlockStudy study_blocks(const std::string& size, const std::vector<float>& picture, const std::vector<float>& expected,
                        int w, int h, int levels) {
  BlockStudy s{size,
               {std::begin(gpu::kRowBlocks), std::end(gpu::kRowBlocks)},
               {std::begin(gpu::kColumnBlocks), std::end(gpu::kColumnBlocks)},
               {}};
  for (const int row : s.rows)
    for (const int column : s.columns)
      s.milliseconds.push_back(
          gpu::bench_dwt2d(gpu::Dwt2dMethod::kSep, picture, expected, w, h, levels, {row, column}).milliseconds);
  return s;
}

void print_blocks(const std::vector<BlockStudy>& studies, bool csv) {
  for (const BlockStudy& s : studies) {
    if (!csv) fmt::print("\nCUDA-Sep, {}: ms by row block (down) and column block (across)\n{:>8}", s.size, "");
    for (const int column : s.columns)
      if (!csv) fmt::print(" {:>8}", column);
    if (!csv) fmt::print("\n");
    for (std::size_t i = 0; i < s.milliseconds.size(); ++i) {
      const std::size_t row = i / s.columns.size(), column = i % s.columns.size();
      if (csv)
        fmt::print("blocks,{},{},{},{:.5f}\n", s.size, s.rows[row], s.columns[column], s.milliseconds[i]);
      else
        fmt::print("{}{:>8.4f}{}", column == 0 ? fmt::format("{:>8} ", s.rows[row]) : " ", s.milliseconds[i],
                   column + 1 == s.columns.size() ? "\n" : "");
    }
  }
}

struct CpuRun {
  std::string size;
  int width, height, threads;
  SimdLevel simd;
};

/// All methods and schedules that the options ask for, with one number of threads. `alone`: seconds with one.
void add_cpu_rows(const Dwt2dOptions& o, const CpuRun& run, const std::vector<float>& picture, std::vector<float>& work,
                  std::vector<double>& alone, std::vector<Row>& rows) {
  ThreadPool pool(run.threads);
  const std::size_t first = rows.size();
  const auto add = [&](const std::string& method, double seconds, std::size_t extra) {
    const std::size_t index = rows.size() - first;
    if (alone.size() <= index) alone.push_back(seconds);
    rows.push_back({run.size, method, run.threads, seconds, alone[index] / seconds, 0, extra});
  };
  for (const Schedule schedule : {Schedule::kDynamic, Schedule::kStatic}) {
    const bool dynamic = schedule == Schedule::kDynamic;
    if (o.schedule != "both" && o.schedule != (dynamic ? "dynamic" : "static")) continue;
    for (const Method m : {Method::kConvolution, Method::kLifting, Method::kMasks, Method::kMasksLow}) {
      if (o.gpu_only && rows.size() > first) break;
      add(papers_dwt2d::name_of(m) + std::string(dynamic ? "" : " static"),
          best_of(o.repeat, picture, work,
                  [&] { papers_dwt2d::transform(m, work.data(), run.width, run.height, o.levels, pool, schedule); }),
          papers_dwt2d::extra_samples(m, run.width, run.height, run.threads));
    }
  }
  if (o.gpu_only) return;
  add("Trivelet",
      best_of(o.repeat, picture, work,
              [&] {
                Field<float> field{work.data(), {1, run.height, run.width}, run.width, 0};
                Decomposition d;
                d.spatial_levels = o.levels;
                forward_transform(field, d, pool, run.simd);
              }),
      0);
  check_own(work, picture, run.width, run.height, o.levels, pool);
  for (std::size_t i = first; i < rows.size(); ++i) rows[i].ratio = rows[first + 2].seconds / rows[i].seconds;
}

int run(const Dwt2dOptions& o, const Common& common) {
  const DeviceChoice device = choose_device(o.device);
  require(device.gpu >= 0 || (!o.blocks && !o.gpu_only && o.blocks_plot.empty()), ErrorKind::kUnsupported,
          "--blocks, --blocks-plot and --gpu-only need a GPU, and none is used");
  CcsdsImage image;
  if (!o.image.empty()) image = read_ccsds_image(o.image, {}, common);
  require(image.bits <= 16, ErrorKind::kUnsupported, "pictures may have at most 16 bits");
  const int most = ThreadPool(common.threads).threads();
  std::vector<int> counts;
  for (int n = 1; n < most && !o.gpu_only; n *= 2) counts.push_back(n);
  counts.push_back(o.gpu_only ? 1 : most);
  const SimdLevel simd = parse_simd(common.simd);
  std::vector<Row> rows;
  std::vector<BlockStudy> studies;
  for (const std::string& size : o.sizes) {
    const auto [w, h] = parse_pair(size, "--sizes", "width and height");
    const std::vector<float> picture = picture_of(w, h, o.image.empty() ? nullptr : &image);
    std::vector<float> work;
    std::vector<double> alone;  // by method, one thread
    for (const int threads : counts) add_cpu_rows(o, {size, w, h, threads, simd}, picture, work, alone, rows);
    if (device.gpu >= 0) {
      gpu::use_device(device.gpu);
      ThreadPool pool(most);
      work = picture;
      papers_dwt2d::transform(Method::kLifting, work.data(), w, h, o.levels, pool);
      add_gpu_rows(size, picture, work, w, h, o.levels, alone[0], rows);
      if (o.blocks || !o.blocks_plot.empty()) studies.push_back(study_blocks(size, picture, work, w, h, o.levels));
    }
  }
  if (o.csv) {
    fmt::print(
        "size,levels,device,method,threads,milliseconds,with_transfers,mpixel_per_s,speedup,times_smdwt,extra_"
        "samples\n");
  } else {
    fmt::print(
        "2D 9/7, {} level{}, float; best of {}, GPU: median. Speed-up: over one thread of the same method, GPU: of "
        "convolution (with transfers in brackets). Extra memory in samples; Trivelet's own keeps a few rows per "
        "thread.\n",
        o.levels, o.levels == 1 ? "" : "s", o.repeat);
    fmt::print("{:<11} {:<22} {:>7} {:>10} {:>10} {:>16} {:>12} {:>12}\n", "size", "method", "threads", "ms",
               "Mpixel/s", "speed-up", "times SMDWT", "extra");
  }
  for (const Row& r : rows) {
    const auto [w, h] = parse_pair(r.size, "--sizes", "width and height");
    const double rate = static_cast<double>(w) * h / 1e6 / r.seconds;
    const bool on_gpu = r.threads == 0;
    if (o.csv)
      fmt::print("{},{},{},{},{},{:.5f},{:.5f},{:.2f},{:.3f},{:.3f},{}\n", r.size, o.levels, on_gpu ? "gpu" : "cpu",
                 r.method, r.threads, 1e3 * r.seconds, 1e3 * r.transferred, rate, r.speedup, r.ratio, r.extra);
    else
      fmt::print("{:<11} {:<22} {:>7} {:>10.3f} {:>10.1f} {:>16} {:>12} {:>12}\n", r.size, r.method,
                 on_gpu ? "GPU" : std::to_string(r.threads), 1e3 * r.seconds, rate,
                 on_gpu ? fmt::format("{:.1f} ({:.2f})", r.speedup, r.speedup * r.seconds / r.transferred)
                        : fmt::format("{:.2f}", r.speedup),
                 r.ratio > 0 ? fmt::format("{:.2f}", r.ratio) : "-",
                 r.method == "Trivelet" ? "-" : std::to_string(r.extra));
  }
  print_blocks(studies, o.csv);
  if (!o.blocks_plot.empty()) plot_blocks(o.blocks_plot, studies);
  if (!o.plot.empty()) plot(o.plot, rows);
  return kExitDone;
}

}  // namespace

Action define_bench_dwt2d(Command& app, Common& common) {
  auto o = std::make_shared<Dwt2dOptions>();
  app.add_option("--image", o->image, "Picture to repeat over every size [waves]");
  app.add_option("--sizes", o->sizes, "Sizes to measure").delimiter(',').type_name("WxH").show_default();
  app.add_option("--levels", o->levels, "Levels of decomposition").range(1, 10).show_default();
  app.add_option("--repeat", o->repeat, "Best of N runs").range(1, 1000).show_default();
  app.add_flag("--csv", o->csv, "Print comma-separated values");
  app.add_option("--plot", o->plot, "Also draw times over threads into this PNG (needs gnuplot)");
  app.add_option(
         "--schedule", o->schedule,
         "How threads get pieces: each its next when it is free, or one run of pieces; both: one after the other")
      .one_of({"dynamic", "static", "both"})
      .show_default();
  app.add_flag("--gpu-only", o->gpu_only,
               "On the CPU measure only convolution with one thread, the baseline of the GPU");
  app.add_flag("--blocks", o->blocks, "On a GPU: also CUDA-Sep with every pair of row and column block sizes");
  app.add_option("--blocks-plot", o->blocks_plot, "Draw these times as heat maps into this PNG (needs gnuplot)");
  add_device_option(app, o->device);
  add_limit_options(app, common);
  add_work_options(app, common);
  add_log_options(app, common);
  return [o, &common] { return run(*o, common); };
}

}  // namespace trivelet::cli
