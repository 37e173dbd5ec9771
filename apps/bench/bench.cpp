// trivelet bench: a clip in memory, encoded and decoded in memory, checked, and timed stage by stage.

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>

#include "apps/bench/bench_gpu.h"
#include "apps/bench/bench_still.h"
#include "apps/cli/backends.h"
#include "apps/cli/json.h"
#include "apps/cli/progress.h"
#include "apps/video/metrics.h"
#include "apps/video/video.h"
#include "codec/base/simd.h"

namespace trivelet::cli {

namespace {

struct BenchOptions {
  std::string input;
  int frames = 64;
  int repeat = 3;
  bool json = false;
  InputOptions reading;
  CodingOptions coding;
  std::string device = "auto";
  std::string csv;
  std::string plot;
  bool codec_only = false;
  std::vector<int> in_flight;
};

struct Clip {
  VideoInfo info;
  std::vector<Gop> gops;
  std::uint64_t samples() const {
    std::uint64_t sum = 0;
    for (const Gop& gop : gops)
      for (int c = 0; c < gop.components(); ++c) sum += gop.plane(c).shape.samples();
    return sum;
  }
};

// ------------------------------------------------------------------------------------------- the synthesised clip

/// A texture with detail at every scale that tiles: a sum of cosines with wave numbers up to half the period.
class Texture {
 public:
  explicit Texture(std::uint32_t seed) : values_(kSide * kSide) {
    constexpr int kWaves = 48;
    std::uint32_t state = seed;
    const auto random = [&state] {
      state = state * 1664525U + 1013904223U;
      return static_cast<double>(state >> 8) / (1U << 24);
    };
    std::vector<float> cosine(kSide);
    for (std::size_t i = 0; i < kSide; ++i)
      cosine[i] = static_cast<float>(std::cos(2 * std::numbers::pi * static_cast<double>(i) / kSide));
    for (int wave = 0; wave < kWaves; ++wave) {
      const double scale = std::exp2(7.0 * wave / kWaves);  // wave numbers 1..128 of 512
      const double angle = 2 * std::numbers::pi * random();
      const auto u = static_cast<std::size_t>(std::lround(scale * std::cos(angle)) + static_cast<long>(kSide));
      const auto v = static_cast<std::size_t>(std::lround(scale * std::sin(angle)) + static_cast<long>(kSide));
      const auto phase = static_cast<std::size_t>(random() * kSide);
      const auto amplitude = static_cast<float>(1 / (1 + scale));
      for (std::size_t y = 0; y < kSide; ++y)
        for (std::size_t x = 0; x < kSide; ++x)
          values_[y * kSide + x] += amplitude * cosine[(u * x + v * y + phase) % kSide];
    }
    const float top = *std::max_element(values_.begin(), values_.end());
    for (float& value : values_) value /= top;
  }
  float at(int x, int y) const {
    return values_[(static_cast<std::size_t>(y) % kSide) * kSide + static_cast<std::size_t>(x) % kSide];
  }

 private:
  static constexpr std::size_t kSide = 512;
  std::vector<float> values_;
};

std::uint32_t hash(std::uint32_t a) {
  a = (a ^ (a >> 16)) * 0x7feb352dU;
  a = (a ^ (a >> 15)) * 0x846ca68bU;
  return a ^ (a >> 16);
}

/// A textured background that pans, a disc with another texture that crosses it, and a little grain.
void draw_plane(const MutableVolumeView& plane, const VideoInfo& info, int component, int frame, int number,
                const Texture& back, const Texture& front) {
  const double peak = std::ldexp(1.0, info.format.bits) - 1;
  const bool chroma = info.format.is_chroma(component);
  const int shift_x = chroma ? info.format.log2_chroma_w : 0;
  const int shift_y = chroma ? info.format.log2_chroma_h : 0;
  const auto swing = static_cast<float>(peak * (chroma ? 0.1 : 0.35));
  const auto grain = static_cast<float>(peak * (chroma ? 0.004 : 0.012) / 65536);
  const int radius = std::max(1, std::min(info.width, info.height) / 4);
  const int disc_x = (info.width / 4 + 5 * number) % std::max(info.width, 1);
  const int disc_y = info.height / 2 + static_cast<int>(radius * std::sin(number * 0.07));
  for (int y = 0; y < plane.shape.height; ++y) {
    std::byte* row = plane.row(frame, y);
    const int full_y = y << shift_y;
    std::uint32_t noise =
        hash(static_cast<std::uint32_t>(number * 8 + component) * 65536U + static_cast<std::uint32_t>(y));
    for (int x = 0; x < plane.shape.width; ++x) {
      const int full_x = x << shift_x;
      const std::int64_t dx = full_x - disc_x;
      const std::int64_t dy = full_y - disc_y;
      const float texture = dx * dx + dy * dy < std::int64_t{radius} * radius
                                ? front.at(full_x + 512 * 64 - 5 * number, full_y + 97 * component)
                                : back.at(full_x + 2 * number, full_y + number + 97 * component);
      noise = noise * 1664525U + 1013904223U;
      const float value = static_cast<float>(peak) * 0.5F + swing * texture +
                          grain * (static_cast<float>(noise >> 16) + static_cast<float>(noise & 0xffffU) - 65536.0F);
      const auto sample = static_cast<std::uint16_t>(std::clamp(std::lround(value), 0L, static_cast<long>(peak)));
      if (plane.bytes_per_sample == 1)
        row[x] = static_cast<std::byte>(sample);
      else
        reinterpret_cast<std::uint16_t*>(row)[x] = sample;
    }
  }
}

Clip synthesise(const BenchOptions& options, const Common& common, EncoderParams& params, ThreadPool& pool) {
  Clip clip;
  clip.info.width = 1920;
  clip.info.height = 1080;
  if (const io::ReaderOptions reader = reader_options(options.reading, common); reader.width > 0)
    std::tie(clip.info.width, clip.info.height) = std::pair(reader.width, reader.height);
  require(clip.info.width <= 65536 && clip.info.height <= 65536, ErrorKind::kBadArgument,
          fmt::format("--size {}x{}: width and height are 1..65536", clip.info.width, clip.info.height));
  clip.info.format =
      parse_pixel_format(options.reading.pixel_format.empty() ? "yuv420p" : options.reading.pixel_format);
  if (!options.reading.frame_rate.empty()) {
    clip.info.frame_rate = parse_frame_rate(options.reading.frame_rate);
    clip.info.time_base = {clip.info.frame_rate.den, clip.info.frame_rate.num};
  }
  choose_gop_frames(clip.info, params);
  const int gop_frames = params.gop_frames;
  const Texture back(1);
  const Texture front(2);
  for (int first = 0; first < options.frames; first += gop_frames) {
    Gop gop(clip.info, std::min(gop_frames, options.frames - first));
    gop.set_frames(gop.capacity());
    pool.parallel_for(gop.frames(), [&](int i, int) {
      for (int c = 0; c < gop.components(); ++c) draw_plane(gop.plane(c), clip.info, c, i, first + i, back, front);
      gop.times()[static_cast<std::size_t>(i)] = {first + i, 1};
    });
    clip.gops.push_back(std::move(gop));
  }
  return clip;
}

Clip load(const BenchOptions& options, const Common& common, EncoderParams& params) {
  FrameRange range;
  range.end = static_cast<std::uint64_t>(options.frames);
  VideoInput input(options.input, reader_options(options.reading, common), common, range);
  Clip clip;
  clip.info = input.info();
  choose_gop_frames(clip.info, params);
  for (;;) {
    Gop gop(clip.info, params.gop_frames);
    if (!input.read(gop)) break;
    clip.gops.push_back(std::move(gop));
  }
  require(!clip.gops.empty(), ErrorKind::kBadStream, "'" + options.input + "' holds no frames");
  return clip;
}

/// At least `frames` frames in GOPs of full length; a shorter clip is repeated backward and forward.
std::vector<Gop> whole_gops(const Clip& clip, int frames, int gop_frames) {
  std::vector<std::pair<const Gop*, int>> at;
  for (const Gop& gop : clip.gops)
    for (int i = 0; i < gop.frames(); ++i) at.emplace_back(&gop, i);
  const std::size_t period = at.size() > 1 ? 2 * at.size() - 2 : 1;
  std::vector<Gop> whole;
  for (std::size_t first = 0; first < static_cast<std::size_t>(frames) || whole.empty();
       first += static_cast<std::size_t>(gop_frames)) {
    Gop gop(clip.info, gop_frames);
    gop.set_frames(gop_frames);
    for (int i = 0; i < gop_frames; ++i) {
      const std::size_t place = (first + static_cast<std::size_t>(i)) % period;
      const auto [from, frame] = at[std::min(place, period - place)];
      gop.times()[static_cast<std::size_t>(i)] = {static_cast<std::int64_t>(first) + i, 1};
      for (int c = 0; c < gop.components(); ++c) {
        const VolumeView in = from->plane(c);
        const MutableVolumeView out = gop.plane(c);
        const auto row = static_cast<std::size_t>(in.shape.width) * static_cast<std::size_t>(in.bytes_per_sample);
        for (int y = 0; y < in.shape.height; ++y) std::memcpy(out.row(i, y), in.row(frame, y), row);
      }
    }
    whole.push_back(std::move(gop));
  }
  return whole;
}

// ----------------------------------------------------------------------------------------------------------- a run

/// Seconds of one direction: by the clock, and by the codec's own times of the stages.
struct Seconds {
  double all = 0;
  double transform = 0;
  double coder = 0;
  double container = 0;
  EncoderStages encoding{};
  DecoderStages decoding{};
};

struct Run {
  Seconds encode;
  Seconds decode;
};

/// `used` becomes the parameters with every default resolved.
Seconds encode(const Clip& clip, const EncoderParams& params, const Backend* backend, MemorySink& sink,
               EncoderParams& used) {
  sink.bytes.clear();
  Encoder encoder(clip.info, params, sink, backend);
  const Stopwatch clock;
  for (const Gop& gop : clip.gops) encoder.push(gop);
  encoder.finish();
  const double seconds = clock.seconds();
  used = encoder.params();
  const EncoderStages& s = encoder.stats().stages;
  return {seconds, s.transform.seconds, s.coder.seconds, s.hash.seconds + s.pack.seconds + s.write.seconds, s, {}};
}

/// Touches all of the memory, as reused frames have been: the first access includes the system's work.
void fill(Gop& gop) {
  gop.set_frames(gop.capacity());
  for (int c = 0; c < gop.components(); ++c) {
    const MutableVolumeView v = gop.plane(c);
    for (int t = 0; t < v.shape.frames; ++t)
      for (int y = 0; y < v.shape.height; ++y) std::memset(v.row(t, y), 0, v.row_bytes());
  }
}

/// Decodes; with `error` also compares, outside the measured time.
Seconds decode(const Clip& clip, const Common& common, const Backend* backend, const MemorySink& sink, ThreadPool* pool,
               VideoError* error) {
  MemorySource source(sink.bytes.data(), sink.bytes.size());
  Decoder decoder(source, decoder_params(common), backend);
  Gop gop = decoder.make_gop();
  fill(gop);
  double seconds = 0;
  for (std::size_t i = 0;; ++i) {
    const Stopwatch clock;
    const bool more = decoder.pull(gop);
    seconds += clock.seconds();
    require(more == (i < clip.gops.size()) && (!more || gop.frames() == clip.gops[i].frames()), ErrorKind::kMismatch,
            "the decoder delivered another number of frames than the encoder received");
    if (!more) break;
    if (error) error->add(clip.gops[i], gop, *pool);
  }
  const DecoderStages& s = decoder.stats().decoding;
  return {seconds, s.transform.seconds, s.coder.seconds, s.read.seconds + s.hash.seconds, {}, s};
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 != 0 ? values[half] : (values[half - 1] + values[half]) / 2;
}

Seconds median(const std::vector<Run>& runs, Seconds Run::*direction) {
  const auto of = [&](double Seconds::*stage) {
    std::vector<double> values;
    for (const Run& run : runs) values.push_back(run.*direction.*stage);
    return median(values);
  };
  return {of(&Seconds::all), of(&Seconds::transform), of(&Seconds::coder), of(&Seconds::container), {}, {}};
}

/// The figures of the run with the median time, or one slightly faster.
const Seconds& typical(const std::vector<Run>& runs, Seconds Run::*direction) {
  std::vector<const Seconds*> sorted;
  for (const Run& run : runs) sorted.push_back(&(run.*direction));
  std::sort(sorted.begin(), sorted.end(), [](const Seconds* a, const Seconds* b) { return a->all < b->all; });
  return *sorted[(sorted.size() - 1) / 2];
}

// ---------------------------------------------------------------------------------------------------------- results

struct Result {
  std::string clip;
  VideoInfo info;
  std::uint64_t frames = 0;
  std::uint64_t samples = 0;
  std::uint64_t bytes = 0;
  double bits_per_pixel = 0;
  double psnr = 0;
  bool identical = false;
  int threads = 0;
  std::string simd;
  EncoderParams params;
  std::vector<Run> runs;
};

void print_text(const Result& r) {
  fmt::print("clip       {}: {}, {}\n", r.clip, count_of(r.frames, "frame"), describe(r.info));
  fmt::print("coding     {}; {}, {}\n", r.params.settings, count_of(static_cast<std::uint64_t>(r.threads), "thread"),
             r.simd);
  fmt::print("result     {} bytes, {:.4g} bits per pixel, {}\n", r.bytes, r.bits_per_pixel,
             r.identical ? "identical to the input" : "PSNR " + format_psnr(r.psnr));
  fmt::print("\nmedian of {:<3} {:>9} {:>11} {:>9} {:>11} {:>11} {:>12}\n", r.runs.size(), "seconds", "transform",
             "coder", "container", "frames/s", "Msamples/s");
  for (const auto& [name, direction] : {std::pair{"encode", &Run::encode}, std::pair{"decode", &Run::decode}}) {
    const Seconds s = median(r.runs, direction);
    fmt::print("{:<13} {:>9.3f} {:>11.3f} {:>9.3f} {:>11.3f} {:>11.1f} {:>12.1f}\n", name, s.all, s.transform, s.coder,
               s.container, static_cast<double>(r.frames) / s.all, 1e-6 * static_cast<double>(r.samples) / s.all);
  }
  const Seconds encode = typical(r.runs, &Run::encode);
  const Seconds decode = typical(r.runs, &Run::decode);
  fmt::print("\nencoding by stage, {:.3f} seconds: {}\n", encode.all,
             describe(stages_by_name(encode.encoding), encode.all));
  fmt::print("decoding by stage, {:.3f} seconds: {}\n", decode.all,
             describe(stages_by_name(decode.decoding), decode.all));
}

void print_json(const Result& r) {
  Json json;
  const auto put = [&](const char* name, const Seconds& s) {
    json.begin_object(name);
    json.member("seconds", s.all);
    json.member("transform", s.transform);
    json.member("coder", s.coder);
    json.member("container", s.container);
    json.member("frames_per_second", static_cast<double>(r.frames) / s.all);
    json.member("msamples_per_second", 1e-6 * static_cast<double>(r.samples) / s.all);
    json.end_object();
  };
  json.begin_object();
  json.member("version", kLibraryVersion);
  json.member("clip", r.clip);
  json.member("width", r.info.width);
  json.member("height", r.info.height);
  json.member("pixel_format", trivelet::to_string(r.info.format));
  json.member("frames", r.frames);
  json.member("samples", r.samples);
  json.member("settings", r.params.settings);
  json.member("gop_frames", r.params.gop_frames);
  json.member("temporal_levels", r.params.temporal_levels);
  json.member("spatial_levels", r.params.spatial_levels);
  json.member("threads", r.threads);
  json.member("simd", r.simd);
  json.member("bytes", r.bytes);
  json.member("bits_per_pixel", r.bits_per_pixel);
  json.member("psnr", r.psnr);
  json.member("identical", r.identical);
  json.begin_object("median");
  put("encode", median(r.runs, &Run::encode));
  put("decode", median(r.runs, &Run::decode));
  json.end_object();
  const auto put_stages = [&](const char* array, const std::vector<std::pair<const char*, StageTime>>& stages) {
    json.begin_array(array);
    for (const auto& [name, time] : stages) {
      json.begin_object();
      json.member("stage", name);
      json.member("seconds", time.seconds);
      json.member("busy", time.busy);
      json.end_object();
    }
    json.end_array();
  };
  put_stages("encode_stages", stages_by_name(typical(r.runs, &Run::encode).encoding));
  put_stages("decode_stages", stages_by_name(typical(r.runs, &Run::decode).decoding));
  json.begin_array("runs");
  for (const Run& run : r.runs) {
    json.begin_object();
    put("encode", run.encode);
    put("decode", run.decode);
    json.end_object();
  }
  json.end_array();
  json.end_object();
  fmt::print("{}", json.text());
}

int run(const BenchOptions& options, const Common& common, const Command& app, bool on_gpu) {
  require(!app.typed("--layout"), ErrorKind::kBadArgument, "--layout is for volumes; 'bench' codes videos; drop it");
  EncoderParams params = encoder_params(app, options.coding, options.reading, common);
  require(!options.input.empty() || options.reading.format.empty(), ErrorKind::kBadArgument,
          "--format describes an input file, but there is none: the clip is synthesised");
  ThreadPool pool(common.threads);
  const Clip clip = options.input.empty() ? synthesise(options, common, params, pool) : load(options, common, params);

  if (on_gpu) {
    require(options.plot.empty() || !options.csv.empty(), ErrorKind::kBadArgument,
            "--plot needs --csv: the plot reads that file");
    VideoInfo info = clip.info;
    info.frames = 0;  // another number than the clip's
    return bench_gpu({options.device, common.threads, options.repeat, options.csv, options.plot, options.codec_only,
                      options.in_flight},
                     info, whole_gops(clip, options.frames, params.gop_frames), params);
  }
  require(devices_named(options.device).size() == 1, ErrorKind::kBadArgument,
          "--device " + options.device + ": 'bench' alone uses one GPU, 'bench gpu' several");
  const std::shared_ptr<const Backend> backend = choose_backend(options.device, 0, 0);
  Result result;
  result.clip = options.input.empty() ? "synthetic" : options.input;
  result.info = clip.info;
  for (const Gop& gop : clip.gops) result.frames += static_cast<std::uint64_t>(gop.frames());
  result.samples = clip.samples();
  result.threads = pool.threads();
  result.simd = trivelet::to_string(resolve_simd(params.simd));
  VideoError error(clip.info);
  MemorySink sink;
  Progress progress(common, "bench", result.frames * static_cast<std::uint64_t>(options.repeat));
  for (int i = 0; i < options.repeat; ++i) {
    Run one;
    one.encode = encode(clip, params, backend.get(), sink, result.params);
    one.decode = decode(clip, common, backend.get(), sink, &pool, i == 0 ? &error : nullptr);
    result.runs.push_back(one);
    progress.update(result.frames * static_cast<std::uint64_t>(i + 1));
  }
  progress.finish();
  result.bytes = sink.bytes.size();
  result.bits_per_pixel =
      8.0 * static_cast<double>(result.bytes) /
      (static_cast<double>(clip.info.width) * clip.info.height * static_cast<double>(result.frames));
  result.psnr = error.psnr();
  result.identical = error.identical();
  options.json ? print_json(result) : print_text(result);
  require(!params.lossless || result.identical, ErrorKind::kMismatch,
          fmt::format("lossless, but {} samples differ, by up to {}", error.total().different, error.total().max));
  return kExitDone;
}

}  // namespace

Action define_bench(Command& app, Common& common) {
  auto options = std::make_shared<BenchOptions>();
  app.add_option("IN", options->input,
                 "Video to use [a moving texture, 1920x1080 yuv420p unless --size, --pix-fmt say otherwise]");
  app.add_option("--frames", options->frames, "Use the first N frames; all of them are held in memory")
      .range(1, 1000000)
      .type_name("N")
      .show_default()
      .group("Measurement");
  app.add_option("--repeat", options->repeat, "Run N times and print the median")
      .range(1, 1000)
      .type_name("N")
      .show_default()
      .group("Measurement");
  app.add_flag("--json", options->json, "Print JSON, with every run").group("Measurement");
  Command gpu = app.add_command(
      "gpu",
      "Measure a GPU: raw frames to chunks and back with 1 to 3 GOPs in flight (dense profile: to 32), and the "
      "transform beside convolutions in global and shared memory; with --codec-only also several GPUs at once. A clip "
      "shorter than --frames is played forward and backward");
  gpu.fall_through();
  gpu.add_option("--csv", options->csv, "Write the figures to this file").type_name("FILE");
  gpu.add_option("--plot", options->plot, "Write a gnuplot script that draws the CSV file").type_name("FILE");
  gpu.add_flag("--codec-only", options->codec_only, "Leave out the transforms and the sequential program beside them");
  gpu.add_option("--in-flight", options->in_flight,
                 "GOPs in flight on the GPU [1,2,3; dense profile: 1,8,16,32]; 1 gives the times of the stages")
      .range(1, 64)
      .delimiter(',')
      .type_name("N,...");
  gpu.add_help();
  add_device_option(app, options->device, true);
  add_coding_options(app, options->coding);
  add_input_options(app, options->reading, true);
  add_limit_options(app, common);
  add_work_options(app, common);
  add_progress_option(app, common);
  add_log_options(app, common);
  static constexpr Subcommand kStudies[] = {
      {"dwt2d", "2D 9/7 transform on CPU cores: the methods of the papers, and the codec's own", define_bench_dwt2d},
      {"dct2d", "DCT of a whole picture by definition and by FFT", define_bench_dct2d},
      {"papers", "Compare the papers' figures with their methods and ours on this machine", define_bench_papers},
  };
  std::vector<std::pair<Command, Action>> studies;
  for (const Subcommand& s : kStudies) {
    Command command = app.add_command(s.name, s.help);
    studies.emplace_back(command, s.define(command, common));
    command.add_help();
  }
  app.require_command(0, 1);
  return [=, &common] {
    for (const auto& [command, action] : studies)
      if (command.chosen()) return action();
    return run(*options, common, app, gpu.chosen());
  };
}

}  // namespace trivelet::cli
