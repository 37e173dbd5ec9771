// trivelet bench gpu: prints the figures of the codec and of the transforms on GPUs, as a table, CSV and gnuplot
// script.

#include "apps/bench/bench_gpu.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <barrier>
#include <exception>
#include <fstream>
#include <thread>

#include "apps/bench/gpu_codec_bench.h"
#include "apps/bench/gpu_dwt_bench.h"
#include "trivelet/cuda.h"

namespace trivelet::cli {

namespace {

struct Csv {
  std::string text = "kind,what,width,height,frames,slots,milliseconds,gigasamples_per_second,frames_per_second\n";
  void add(const std::string& kind, const std::string& what, int width, int height, int frames, int slots, double ms,
           double gigasamples, double fps) {
    std::string quoted = what;
    for (char& c : quoted)
      if (c == ',') c = ';';
    text += fmt::format("{},{},{},{},{},{},{:.5g},{:.5g},{:.6g}\n", kind, quoted, width, height, frames, slots, ms,
                        gigasamples, fps);
  }
};

void write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  require(file.good(), ErrorKind::kIo, "cannot write '" + path + "'");
}

// Bars of frames per second by GOPs in flight, and of the transforms at each size.
std::string gnuplot(const std::string& csv) {
  return fmt::format(R"(# gnuplot -persist THIS
set datafile separator ","
set style data histograms
set style fill solid 0.6
set grid ytics
set key outside top center horizontal
set yrange [0:*]
set multiplot layout 2,1
set ylabel "frames/s"
set xlabel "GOPs in flight"
plot "<grep ^codec,encode '{0}'" using 9:xtic(6) title "encode", "<grep ^codec,decode '{0}'" using 9 title "decode"
set ylabel "Gsamples/s"
set xlabel "width x height x frames"
set xtics rotate by 20 right
plot "<grep '^transform,papers: convolution; global' '{0}'" \
         using 8:xtic(sprintf("%sx%sx%s", strcol(3), strcol(4), strcol(5))) title "convolution, global memory", \
     "<grep '^transform,papers: convolution; shared' '{0}'" using 8 title "convolution, shared memory", \
     "<grep '^transform,dyadic f32 -> f32 forward' '{0}'" using 8 title "Trivelet, float", \
     "<grep '^transform,t+2D u8 -> i16 forward' '{0}'" using 8 title "Trivelet, 8 bit to 16 bit"
unset multiplot
)",
                     csv);
}

void transforms(Csv& csv) {
  std::vector<Shape> shapes;
  for (const auto& [w, h] : {std::pair{1280, 640}, std::pair{1920, 1024}})
    for (const int frames : {16, 32, 64, 128}) shapes.push_back({frames, h, w});
  fmt::print(
      "\ntransform, CDF 9/7, 3 levels: milliseconds, and how often the sequential CPU convolution takes as long\n");
  fmt::print("{:<14} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} | {:>7} {:>7} {:>7} | {:>7} {:>7} {:>7}\n", "", "CPU",
             "global", "shared", "ours", "up", "down", "global", "shared", "ours", "with", "trans-", "fers");
  for (const Shape& s : shapes) {
    const std::vector<gpu::TransformFigure> figures = gpu::bench_transforms({s}, true);
    const auto of = [&](const char* what) {
      for (const gpu::TransformFigure& f : figures)
        if (f.what == what) return f.milliseconds;
      return 0.0;
    };
    const double cpu = of(gpu::kSequential), up = of(gpu::kUploadFloats), down = of(gpu::kDownloadFloats);
    const double way[3] = {of(gpu::kConvolutionGlobal), of(gpu::kConvolutionShared), of(gpu::kOursDyadic)};
    fmt::print(
        "{:<14} {:>9.1f} {:>9.4f} {:>9.4f} {:>9.4f} {:>9.3f} {:>9.3f} | {:>7.0f} {:>7.0f} {:>7.0f} | {:>7.1f} {:>7.1f} "
        "{:>7.1f}\n",
        fmt::format("{}x{}x{}", s.width, s.height, s.frames), cpu, way[0], way[1], way[2], up, down, cpu / way[0],
        cpu / way[1], cpu / way[2], cpu / (way[0] + up + down), cpu / (way[1] + up + down), cpu / (way[2] + up + down));
    std::fflush(stdout);
    for (const gpu::TransformFigure& f : figures)
      csv.add("transform", f.what, s.width, s.height, s.frames, 1, f.milliseconds, f.gigasamples(),
              s.frames / f.milliseconds * 1e3);
  }
}

/// The codec on several GPUs at once; each run starts and ends on all of them together. Returns the figures of the
/// first GPU with the frames a second of all.
gpu::CodecFigures bench_codecs(const std::vector<std::string>& devices, const VideoInfo& info,
                               const std::vector<Gop>& clip, const EncoderParams& params,
                               const gpu::CodecBenchOptions& options) {
  std::vector<gpu::CodecFigures> figures(devices.size());
  std::vector<std::exception_ptr> failures(devices.size());
  std::barrier step(static_cast<std::ptrdiff_t>(devices.size()));
  const auto bench = [&](std::size_t i) {
    try {
      stay_near(devices[i]);
      gpu::CodecBenchOptions own = options;
      own.device = choose_gpu(devices[i]);
      own.compare = i == 0;
      own.in_step = [&] { step.arrive_and_wait(); };
      figures[i] = gpu::bench_codec(info, clip, params, own);
    } catch (...) {
      failures[i] = std::current_exception();
    }
    step.arrive_and_drop();  // the others go on without
  };
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < devices.size(); ++i) threads.emplace_back(bench, i);
  }
  for (const std::exception_ptr& f : failures)
    if (f) std::rethrow_exception(f);
  for (std::size_t i = 1; i < devices.size(); ++i)
    for (std::size_t r = 0; r < figures[0].rows.size(); ++r)
      figures[0].rows[r].frames_per_second += figures[i].rows[r].frames_per_second;
  return std::move(figures[0]);
}

}  // namespace

int bench_gpu(const GpuBench& bench, const VideoInfo& info, const std::vector<Gop>& clip, const EncoderParams& params) {
  const std::vector<std::string> devices = devices_named(bench.device);
  const int device = choose_gpu(devices.front());
  require(bench.codec_only || devices.size() == 1, ErrorKind::kBadArgument,
          "--device " + bench.device + ": the transforms are measured on one GPU; add --codec-only");
  for (const gpu::DeviceInfo& d : gpu::devices())
    if (d.number == device)
      fmt::print("{}, compute capability {}.{}, {:.0f} GiB\n", d.name, d.major, d.minor,
                 static_cast<double>(d.memory) / (1 << 30));
  gpu::CodecBenchOptions options;
  options.device = device;
  options.threads = bench.threads;
  if (devices.size() > 1) {
    const int threads = bench.threads > 0 ? bench.threads : static_cast<int>(std::thread::hardware_concurrency());
    options.threads = std::max(1, threads / static_cast<int>(devices.size()));
    fmt::print("on {} GPUs at once; frames/s of all, the rest of the first\n", devices.size());
  }
  options.repeat = bench.repeat;
  if (params.profile == Profile::kDense) options.slots = {1, 8, 16, 32};
  if (!bench.in_flight.empty()) options.slots = bench.in_flight;
  const gpu::CodecFigures figures = devices.size() > 1 ? bench_codecs(devices, info, clip, params, options)
                                                       : gpu::bench_codec(info, clip, params, options);
  const int frames = clip.front().frames();
  double samples = 0;
  for (int c = 0; c < clip.front().components(); ++c)
    samples += static_cast<double>(clip.front().plane(c).shape.samples());
  fmt::print("codec: {}x{} {}, GOPs of {}, {:.3f} bits per pixel, {}; {:.2f} GiB of device memory\n", info.width,
             info.height, trivelet::to_string(info.format), frames, figures.bits_per_pixel,
             figures.identical ? "bytes and samples as on the CPU" : "NOT AS ON THE CPU",
             static_cast<double>(figures.device_bytes) / (1 << 30));
  fmt::print("raw frames in page-locked memory -> chunks in host memory and back{}; median of {}\n",
             params.motion == Motion::kOff ? "" : "; the search for motion is in \"searched\" alone", bench.repeat);
  fmt::print("{:<8} {:>6} {:>12} {:>10} {:>14} | {:>8} {:>8} {:>8} | {}\n", "", "GOPs", "frames/s", "ms/GOP",
             "Gsamples/s", "up", "kernels", "down", "ms/GOP over the longest stage");
  Csv csv;
  for (const gpu::CodecFigure& f : figures.rows) {
    const double rate = static_cast<double>(devices.size()) * samples / f.milliseconds / 1e6;
    const std::string alone = f.longest_stage() > 0
                                  ? fmt::format("{:>8.3f} {:>8.3f} {:>8.3f} | {:.2f}", f.alone.upload, f.alone.kernels,
                                                f.alone.download, f.milliseconds / f.longest_stage())
                                  : fmt::format("{:>8} {:>8} {:>8} | {}", "-", "-", "-", "-");
    fmt::print("{:<8} {:>6} {:>12.0f} {:>10.3f} {:>14.1f} | {}\n", f.way, f.slots, f.frames_per_second, f.milliseconds,
               rate, alone);
    csv.add("codec", f.way, info.width, info.height, frames, f.slots, f.milliseconds, rate, f.frames_per_second);
  }
  std::fflush(stdout);
  if (!bench.codec_only) transforms(csv);
  if (!bench.csv.empty()) write_file(bench.csv, csv.text);
  if (!bench.plot.empty()) write_file(bench.plot, gnuplot(bench.csv));
  require(figures.identical, ErrorKind::kMismatch, "the GPU's bytes or samples are not the CPU's");
  return kExitDone;
}

}  // namespace trivelet::cli
