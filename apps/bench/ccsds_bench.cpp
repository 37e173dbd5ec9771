// trivelet ccsds bench, trivelet bench ccsds: the stages in memory, on one thread, on all, on the GPU; the result is
// checked.

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>

#include "apps/cli/backends.h"
#include "apps/cli/json.h"
#include "apps/still/ccsds.h"
#include "apps/still/ccsds_image.h"
#include "codec/base/simd.h"
#include "codec/still/ccsds122/ccsds122.h"
#include "codec/still/ccsds122/ccsds122_dwt.h"
#include "gpu/still/ccsds122.h"

namespace trivelet::cli {

namespace {

using ccsds122::Dwt;

struct BenchOptions {
  std::string input;
  CcsdsInput reading;
  int size = 4096;
  int repeat = 5;
  int segment_size = 256;
  bool transform = false;
  std::string device = "auto";
  bool json = false;
};

/// Something like a photograph: waves at every scale and a little noise.
CcsdsImage synthetic_image(int size) {
  CcsdsImage image;
  image.width = image.height = size;
  image.bits = 8;
  image.bytes.resize(static_cast<std::size_t>(size) * static_cast<std::size_t>(size));
  std::vector<float> wave(static_cast<std::size_t>(size) * 4);
  for (std::size_t i = 0; i < wave.size(); ++i) {
    const auto x = static_cast<float>(i);
    wave[i] = 30 * std::sin(x / 97) + 16 * std::sin(x / 23 + 1) + 6 * std::sin(x / 5 + 2);
  }
  std::uint32_t state = 1;
  for (int y = 0; y < size; ++y)
    for (int x = 0; x < size; ++x) {
      state = state * 1664525U + 1013904223U;
      const auto at = [&](int i) { return wave[static_cast<std::size_t>(i)]; };
      const float v = 128 + at(x + y) + at(2 * size + x - y) * 0.7F + static_cast<float>(state >> 29);
      image.bytes[static_cast<std::size_t>(y) * static_cast<std::size_t>(size) + static_cast<std::size_t>(x)] =
          static_cast<std::byte>(std::clamp(static_cast<int>(v), 0, 255));
    }
  return image;
}

struct Timing {
  std::string name;
  int threads = 1;
  double encode = 1e30, decode = 1e30, decode_indexed = 1e30;
  ccsds122::StageSeconds encode_stages, decode_stages;
  std::size_t bytes = 0;
};

Timing time_codec(const CcsdsImage& image, const std::string& name, const ccsds122::Params& params, int threads,
                  int repeat) {
  using Clock = std::chrono::steady_clock;
  ThreadPool pool(threads);
  Timing t;
  t.name = name;
  t.threads = pool.threads();
  for (int i = 0; i < repeat; ++i) {
    auto start = Clock::now();
    const ccsds122::Encoded e = ccsds122::encode(image.view(), params, pool);
    const double encode = std::chrono::duration<double>(Clock::now() - start).count();
    if (encode < t.encode) {
      t.encode = encode;
      t.encode_stages = e.seconds;
    }
    t.bytes = e.bytes.size();
    ccsds122::DecodeParams dp;
    dp.simd = params.simd;
    for (const bool indexed : {false, true}) {
      if (indexed) dp.segment_bytes = e.segment_bytes;
      start = Clock::now();
      const ccsds122::Decoded d = ccsds122::decode(e.bytes, dp, pool);
      const double decode = std::chrono::duration<double>(Clock::now() - start).count();
      require(d.intact() && d.width == image.width && d.height == image.height, ErrorKind::kMismatch,
              "the stream just written does not decode");
      if (params.dwt == Dwt::kInteger)
        require(d.samples == image.bytes, ErrorKind::kMismatch, "the lossless stream does not decode to the picture");
      if (indexed) {
        t.decode_indexed = std::min(t.decode_indexed, decode);
      } else if (decode < t.decode) {
        t.decode = decode;
        t.decode_stages = d.seconds;
      }
    }
  }
  return t;
}

/// A device's stages, in seconds.
struct GpuTiming {
  std::string name;
  double upload = 0, download = 0, forward = 0, coder = 0, encode = 0, parse = 0, place = 0, inverse = 0;
  double whole_encode = 0, whole_decode = 0, whole_decode_indexed = 0;  // from and to host memory, best
  std::size_t bytes = 0;
  double decode() const { return parse + place + inverse; }
};

/// The float transform of one size, in seconds; CPU: one thread.
struct TransformTiming {
  int side = 0;
  double scalar[2] = {1e30, 1e30}, simd[2] = {1e30, 1e30};  // forward, inverse
  double upload = 0, forward = 0, inverse = 0, download = 0;
};

GpuTiming time_on_gpu(int device, const CcsdsImage& image, const std::string& name, const ccsds122::Params& params,
                      int repeat, ThreadPool& pool) {
  using Clock = std::chrono::steady_clock;
  const gpu::Ccsds122Times m = gpu::measure_ccsds122(device, image.view(), params, repeat, pool);
  require(m.exact, ErrorKind::kMismatch, "the GPU's stream or picture is not the CPU's");
  GpuTiming t{name,    m.upload,  m.download, m.forward, m.coder, m.encode, m.parse,
              m.place, m.inverse, 1e30,       1e30,      1e30,    m.bytes};
  gpu::Ccsds122Codec codec(device);
  for (int i = 0; i <= repeat; ++i) {
    auto start = Clock::now();
    const ccsds122::Encoded e = codec.encode(image.view(), params, pool);
    t.whole_encode = std::min(t.whole_encode, std::chrono::duration<double>(Clock::now() - start).count());
    ccsds122::DecodeParams dp;
    for (double* best : {&t.whole_decode, &t.whole_decode_indexed}) {
      if (best == &t.whole_decode_indexed) dp.segment_bytes = e.segment_bytes;
      start = Clock::now();
      const ccsds122::Decoded d = codec.decode(e.bytes, dp, pool);
      *best = std::min(*best, std::chrono::duration<double>(Clock::now() - start).count());
      require(d.intact(), ErrorKind::kMismatch, "the stream just written does not decode");
    }
  }
  return t;
}

TransformTiming time_transform(int side, int repeat, int device) {
  using Clock = std::chrono::steady_clock;
  TransformTiming t;
  t.side = side;
  ThreadPool one(1);
  const int blocks = side / 8;
  std::vector<std::int32_t> samples(static_cast<std::size_t>(side) * static_cast<std::size_t>(side));
  for (std::size_t i = 0; i < samples.size(); ++i)
    samples[i] = static_cast<std::int32_t>(i / 32 % 128 + (static_cast<std::uint32_t>(i) * 2654435761U >> 27));
  MutableVolumeView view;
  view.data = reinterpret_cast<std::byte*>(samples.data());
  view.shape = {1, side, side};
  view.bytes_per_sample = 4;
  view.is_signed = true;
  view.row_stride = std::ptrdiff_t{4} * side;
  VolumeView source;
  source.data = view.data;
  source.shape = view.shape;
  source.bytes_per_sample = view.bytes_per_sample;
  source.is_signed = view.is_signed;
  source.row_stride = view.row_stride;
  const ccsds122::Subbands bands(blocks, blocks);
  for (int i = 0; i < repeat; ++i)
    for (const bool scalar : {true, false}) {
      const ccsds122::Kernels& k = ccsds122::kernels(scalar ? SimdLevel::kScalar : SimdLevel::kBest);
      double* best = scalar ? t.scalar : t.simd;
      auto start = Clock::now();
      ccsds122::forward_dwt(source, Dwt::kFloat, 8, bands, k, one);
      best[0] = std::min(best[0], std::chrono::duration<double>(Clock::now() - start).count());
      // The inverse takes floats.
      for (int b = 0; b < ccsds122::kBands; ++b) {
        const int scale = b < ccsds122::kHL2 ? 1 : b < ccsds122::kHL1 ? 2 : 4;
        const std::size_t n = static_cast<std::size_t>(blocks * scale) * static_cast<std::size_t>(blocks * scale);
        for (std::size_t v = 0; v < n; ++v) {
          const float f = static_cast<float>(bands.view().data[b][v]);
          std::memcpy(bands.view().data[b] + v, &f, sizeof f);
        }
      }
      start = Clock::now();
      ccsds122::inverse_dwt(bands, Dwt::kFloat, 8, -(1 << 15), 1 << 15, view, k, one);
      best[1] = std::min(best[1], std::chrono::duration<double>(Clock::now() - start).count());
    }
  if (device >= 0) {
    const gpu::Ccsds122TransformTimes m = gpu::measure_ccsds122_transform(device, side, side, Dwt::kFloat, 20);
    t.upload = m.upload;
    t.forward = m.forward;
    t.inverse = m.inverse;
    t.download = m.download;
  }
  return t;
}

double share(const ccsds122::StageSeconds& s) { return s.dwt / (s.dwt + s.coder); }

void print_json(const CcsdsImage& image, const BenchOptions& o, const Common& common,
                const std::vector<Timing>& timings, const std::vector<GpuTiming>& on_gpu,
                const std::vector<TransformTiming>& transforms) {
  const double mpixel = static_cast<double>(image.width) * image.height / 1e6;
  Json json;
  json.begin_object();
  json.member("width", image.width);
  json.member("height", image.height);
  json.member("bits", image.bits);
  json.member("segment_size", o.segment_size);
  json.member("simd", to_string(resolve_simd(parse_simd(common.simd))));
  json.begin_array("cases");
  for (const Timing& t : timings) {
    json.begin_object();
    json.member("name", t.name);
    json.member("threads", t.threads);
    json.member("bytes", t.bytes);
    json.member("encode_mpixel_s", mpixel / t.encode);
    json.member("encode_dwt_mpixel_s", mpixel / t.encode_stages.dwt);
    json.member("encode_coder_mpixel_s", mpixel / t.encode_stages.coder);
    json.member("encode_dwt_share", share(t.encode_stages));
    json.member("decode_mpixel_s", mpixel / t.decode);
    json.member("decode_dwt_mpixel_s", mpixel / t.decode_stages.dwt);
    json.member("decode_coder_mpixel_s", mpixel / t.decode_stages.coder);
    json.member("decode_dwt_share", share(t.decode_stages));
    json.member("decode_indexed_mpixel_s", mpixel / t.decode_indexed);
    json.end_object();
  }
  json.end_array();
  json.begin_array("gpu");
  for (const GpuTiming& t : on_gpu) {
    json.begin_object();
    json.member("name", t.name);
    json.member("bytes", t.bytes);
    json.member("encode_mpixel_s", mpixel / t.encode);
    json.member("encode_dwt_mpixel_s", mpixel / t.forward);
    json.member("encode_coder_mpixel_s", mpixel / t.coder);
    json.member("encode_dwt_share", t.forward / (t.forward + t.coder));
    json.member("decode_mpixel_s", mpixel / t.decode());
    json.member("decode_parse_mpixel_s", mpixel / t.parse);
    json.member("decode_place_mpixel_s", mpixel / t.place);
    json.member("decode_dwt_mpixel_s", mpixel / t.inverse);
    json.member("upload_ms", 1e3 * t.upload);
    json.member("download_ms", 1e3 * t.download);
    json.member("whole_encode_mpixel_s", mpixel / t.whole_encode);
    json.member("whole_decode_mpixel_s", mpixel / t.whole_decode);
    json.member("whole_decode_indexed_mpixel_s", mpixel / t.whole_decode_indexed);
    json.end_object();
  }
  json.end_array();
  json.begin_array("float_transform");
  for (const TransformTiming& t : transforms) {
    json.begin_object();
    json.member("side", t.side);
    json.member("cpu_scalar_forward_ms", 1e3 * t.scalar[0]);
    json.member("cpu_scalar_inverse_ms", 1e3 * t.scalar[1]);
    json.member("cpu_simd_forward_ms", 1e3 * t.simd[0]);
    json.member("cpu_simd_inverse_ms", 1e3 * t.simd[1]);
    if (t.forward > 0) {
      json.member("gpu_forward_ms", 1e3 * t.forward);
      json.member("gpu_inverse_ms", 1e3 * t.inverse);
      json.member("upload_ms", 1e3 * t.upload);
      json.member("download_ms", 1e3 * t.download);
    }
    json.end_object();
  }
  json.end_array();
  json.end_object();
  fmt::print("{}", json.text());
}

void print_text(const CcsdsImage& image, const BenchOptions& o, const Common& common,
                const std::vector<Timing>& timings, const std::vector<GpuTiming>& on_gpu,
                const std::vector<TransformTiming>& transforms) {
  const double mpixel = static_cast<double>(image.width) * image.height / 1e6;
  fmt::print("{}x{}, {} bits, segments of {} blocks, {}; Mpixel/s, best of {}\n", image.width, image.height, image.bits,
             o.segment_size, to_string(resolve_simd(parse_simd(common.simd))), o.repeat);
  fmt::print("{:<18} {:>7} {:>6} | {:>8} {:>7} {:>7} {:>9} | {:>8} {:>7} {:>7} {:>9} {:>10}\n", "case", "threads",
             "bpp", "encode", "DWT", "coder", "DWT share", "decode", "DWT", "coder", "DWT share", "with index");
  for (const Timing& t : timings)
    fmt::print(
        "{:<18} {:>7} {:>6.3f} | {:>8.1f} {:>7.1f} {:>7.1f} {:>8.1f}% | {:>8.1f} {:>7.1f} {:>7.1f} {:>8.1f}% "
        "{:>10.1f}\n",
        t.name, t.threads, 8 * static_cast<double>(t.bytes) / (mpixel * 1e6), mpixel / t.encode,
        mpixel / t.encode_stages.dwt, mpixel / t.encode_stages.coder, 100 * share(t.encode_stages), mpixel / t.decode,
        mpixel / t.decode_stages.dwt, mpixel / t.decode_stages.coder, 100 * share(t.decode_stages),
        mpixel / t.decode_indexed);
  if (!on_gpu.empty()) {
    fmt::print("\nGPU; Mpixel/s with the picture in device memory, median of {}; whole: from and to host memory\n",
               o.repeat);
    fmt::print("{:<18} {:>6} | {:>8} {:>8} {:>8} {:>9} {:>7} | {:>8} {:>8} {:>8} {:>8} {:>7} {:>10}\n", "case", "bpp",
               "encode", "DWT", "coder", "DWT share", "whole", "decode", "parse", "place", "DWT", "whole",
               "with index");
    for (const GpuTiming& t : on_gpu)
      fmt::print(
          "{:<18} {:>6.3f} | {:>8.0f} {:>8.0f} {:>8.0f} {:>8.1f}% {:>7.0f} | {:>8.0f} {:>8.0f} {:>8.0f} {:>8.0f} "
          "{:>7.0f} {:>10.0f}\n",
          t.name, 8 * static_cast<double>(t.bytes) / (mpixel * 1e6), mpixel / t.encode, mpixel / t.forward,
          mpixel / t.coder, 100 * t.forward / (t.forward + t.coder), mpixel / t.whole_encode, mpixel / t.decode(),
          mpixel / t.parse, mpixel / t.place, mpixel / t.inverse, mpixel / t.whole_decode,
          mpixel / t.whole_decode_indexed);
  }
  if (!transforms.empty()) {
    fmt::print(
        "\nfloat transform, 3 levels, 4-byte samples; ms; CPU: one thread; speed-up over the scalar CPU program\n");
    fmt::print("{:>6} | {:>9} {:>9} {:>9} {:>9} | {:>8} {:>8} {:>8} {:>8} | {:>8} {:>8} {:>9} {:>9}\n", "side",
               "scalar", "inverse", "SIMD", "inverse", "GPU", "inverse", "up", "down", "speed-up", "inverse",
               "with copy", "inverse");
    for (const TransformTiming& t : transforms) {
      fmt::print("{:>6} | {:>9.3f} {:>9.3f} {:>9.3f} {:>9.3f}", t.side, 1e3 * t.scalar[0], 1e3 * t.scalar[1],
                 1e3 * t.simd[0], 1e3 * t.simd[1]);
      if (t.forward > 0) {
        const double copies = t.upload + t.download;
        fmt::print(" | {:>8.4f} {:>8.4f} {:>8.3f} {:>8.3f} | {:>8.1f} {:>8.1f} {:>9.2f} {:>9.2f}", 1e3 * t.forward,
                   1e3 * t.inverse, 1e3 * t.upload, 1e3 * t.download, t.scalar[0] / t.forward, t.scalar[1] / t.inverse,
                   t.scalar[0] / (t.forward + copies), t.scalar[1] / (t.inverse + copies));
      }
      fmt::print("\n");
    }
  }
}

int run_bench(const BenchOptions& o, const Common& common) {
  const DeviceChoice device = choose_device(o.device);
  const CcsdsImage image = o.input.empty() ? synthetic_image(o.size) : read_ccsds_image(o.input, o.reading, common);
  const double mpixel = static_cast<double>(image.width) * image.height / 1e6;
  std::vector<Timing> timings;
  std::vector<GpuTiming> on_gpu;
  std::vector<TransformTiming> transforms;
  std::vector<int> counts{1};
  if (common.threads != 1) counts.push_back(common.threads);
  ccsds122::Params lossless;
  lossless.bits = image.bits;
  lossless.is_signed = image.is_signed;
  lossless.segment_blocks = static_cast<std::uint32_t>(o.segment_size);
  lossless.simd = parse_simd(common.simd);
  ccsds122::Params lossy = lossless;
  lossy.dwt = Dwt::kFloat;
  lossy.total_bytes = static_cast<std::uint64_t>(mpixel * 1e6 / 8);
  for (const int threads : counts) {
    timings.push_back(time_codec(image, "integer lossless", lossless, threads, o.repeat));
    timings.push_back(time_codec(image, "float 1 bpp", lossy, threads, o.repeat));
  }
  if (device.gpu >= 0) {
    ThreadPool pool(common.threads);
    on_gpu.push_back(time_on_gpu(device.gpu, image, "integer lossless", lossless, o.repeat, pool));
    on_gpu.push_back(time_on_gpu(device.gpu, image, "float 1 bpp", lossy, o.repeat, pool));
  }
  if (o.transform)
    for (int side = 512; side <= 8192; side *= 2)
      transforms.push_back(time_transform(side, std::min(o.repeat, side > 2048 ? 2 : 5), device.gpu));
  (o.json ? print_json : print_text)(image, o, common, timings, on_gpu, transforms);
  return kExitDone;
}

}  // namespace

Action define_ccsds_bench(Command& app, Common& common) {
  auto o = std::make_shared<BenchOptions>();
  app.add_option("IN", o->input, "Picture; default: a synthetic one");
  app.add_option("--side", o->size, "Side of the synthetic picture").range(64, 32768).show_default();
  app.add_option("--repeat", o->repeat, "Best of N runs").range(1, 1000).show_default();
  app.add_option("--segment-size", o->segment_size, "Blocks per segment").range(16, 1 << 20).show_default();
  app.add_flag("--transform", o->transform, "Also time the float transform alone, 512^2 to 8192^2");
  add_device_option(app, o->device);
  app.add_flag("--json", o->json, "Print JSON");
  add_ccsds_input_options(app, o->reading);
  add_limit_options(app, common);
  add_work_options(app, common);
  add_log_options(app, common);
  return [o, &common] { return run_bench(*o, common); };
}

}  // namespace trivelet::cli
