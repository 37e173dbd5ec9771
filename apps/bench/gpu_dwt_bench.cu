// Times the transform on a GPU beside the papers' methods, the copies that bound it and a sequential CPU program.
//
//   gpu_dwt_bench [quick|profile]   one table row per measurement, "|" between columns; exit 1 if a result is wrong;
//                                   profile: every kernel once, for ncu
//
// Device times: median of 11 runs between events after 2 warm-up runs, on buffers that together exceed the L2 cache
// several times. CPU: the best of 3. GB/s counts the volume read once and the result written once.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "apps/bench/gpu_dwt_bench.h"
#include "apps/bench/papers_convolution.cuh"
#include "apps/bench/papers_dwt3d.h"
#include "codec/transform/dwt.h"
#include "gpu/device/clock.h"
#include "gpu/transform/dwt.h"

namespace trivelet::gpu {
namespace {

constexpr int kLevels = 3;
int device_runs = 11, warm_runs = 2;
double copy_gigabytes = 1;  // device copy, read and written, per second
bool all_right = true;

double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

template <class Body>
double milliseconds(const Stream& stream, const Body& body, int at_most = 100) {
  return median_milliseconds(stream, warm_runs, std::min(device_runs, at_most), body);
}

std::string name(const Shape& s) {
  return std::to_string(s.width) + "x" + std::to_string(s.height) + "x" + std::to_string(s.frames);
}

std::vector<TransformFigure>* record = nullptr;  // instead of lines on standard output

void note(const std::string& what, const Shape& s, double ms) { record->push_back({what, s, ms}); }

void row(const std::string& what, const Shape& s, double ms, double bytes_per_sample) {
  if (record) return note(what, s, ms);
  const double n = static_cast<double>(s.samples()), rate = n * bytes_per_sample / ms / 1e6;
  std::printf("%-44s | %-13s | %8.4f ms | %7.1f Gsamples/s | %6.0f GB/s | %5.1f %% of copy\n", what.c_str(),
              name(s).c_str(), ms, n / ms / 1e6, rate, 100 * rate / copy_gigabytes);
  std::fflush(stdout);
}

/// Something like a picture: smooth, moving, with texture and noise.
std::vector<std::uint8_t> content(const Shape& s) {
  std::vector<std::uint8_t> v(s.samples());
  std::uint32_t noise = 1;
  std::size_t i = 0;
  for (int f = 0; f < s.frames; ++f)
    for (int y = 0; y < s.height; ++y) {
      const float a = std::cos(static_cast<float>(y) * 0.033f);
      for (int x = 0; x < s.width; ++x) {
        noise = noise * 1664525u + 1013904223u;
        const int wave = (x + 2 * f) % 256 < 128 ? (x + 2 * f) % 128 : 127 - (x + 2 * f) % 128;
        v[i++] = static_cast<std::uint8_t>(60 + static_cast<int>(static_cast<float>(wave) * (0.6f + 0.4f * a)) +
                                           static_cast<int>(noise >> 29));
      }
    }
  return v;
}

std::vector<float> floats_of(const std::vector<std::uint8_t>& samples) {
  std::vector<float> values(samples.size());
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(samples[i]) - 128.0f;
  return values;
}

void expect(bool ok, const std::string& what) {
  if (!ok) {
    all_right = false;
    std::printf("WRONG: %s\n", what.c_str());
  }
}

/// Compares the device transform with the CPU's, bit by bit, on one volume, and the convolutions with the sequential
/// one.
void verify(const Stream& stream) {
  const Shape s{32, 256, 640};
  const std::vector<std::uint8_t> samples = content(s);
  const std::vector<float> values = floats_of(samples);
  DeviceBuffer<std::uint8_t> in(s.samples());
  copy(in.data(), samples.data(), samples.size(), cudaMemcpyHostToDevice, stream);
  DeviceBuffer<float> from(s.samples()), to(s.samples()), scratch(s.samples());
  copy(from.data(), values.data(), values.size(), cudaMemcpyHostToDevice, stream);
  ThreadPool pool(0);
  const std::ptrdiff_t width = s.width, frame = width * s.height;
  struct Way {
    const char* name;
    Layout layout;
    JointLevels joint;
    DeviceSamples samples;
  };
  const DeviceSamples bytes{reinterpret_cast<const std::byte*>(in.data()), SampleFormat::kU8, width, frame};
  const DeviceSamples floats{reinterpret_cast<const std::byte*>(from.data()), SampleFormat::kValues, 4 * width,
                             4 * frame};
  for (const Way& way :
       {Way{"t+2D", Layout::kT2d, JointLevels::kNone, bytes}, Way{"dyadic", Layout::kDyadic, JointLevels::kNone, bytes},
        Way{"dyadic, levels in one kernel", Layout::kDyadic, JointLevels::kWherePossible, floats}}) {
    const Decomposition d{way.layout, kLevels, kLevels, Wavelet::kCdf97, Wavelet::kCdf97};
    std::vector<float> reference = values;
    const Field<float> field{reference.data(), s, s.width, static_cast<std::ptrdiff_t>(s.width) * s.height};
    forward_transform<float>(field, d, pool, SimdLevel::kBest);
    DeviceTransform<float> transform(s, d, way.joint);
    DeviceBuffer<float> out(transform.layout().size());
    const int joint = transform.forward(way.samples, 128, out.data(), nullptr, stream);
    std::vector<float> result(out.size());
    copy(result.data(), out.data(), out.size(), cudaMemcpyDeviceToHost, stream);
    stream.synchronize();
    bool same = true;
    const SubbandTable table(s, d, false);
    for (const Subband& band : table.all()) {
      const Field<float> expected = subband_view(field, band);
      const CoefficientLayout::Band at = transform.layout().band(band);
      for (int f = 0; f < band.shape.frames; ++f)
        for (int y = 0; y < band.shape.height; ++y)
          same &= std::memcmp(expected.row(f, y),
                              &result[at.origin + static_cast<std::size_t>(f) * at.frame_stride +
                                      static_cast<std::size_t>(y) * at.row_stride],
                              static_cast<std::size_t>(band.shape.width) * sizeof(float)) == 0;
    }
    expect(same, std::string(way.name) + ", forward");
    inverse_transform<float>(field, d, pool, SimdLevel::kBest);
    transform.inverse(out.data(), nullptr, 0, {},
                      {reinterpret_cast<std::byte*>(to.data()), SampleFormat::kValues, 4 * width, 4 * frame}, stream);
    std::vector<float> back(s.samples());
    copy(back.data(), to.data(), back.size(), cudaMemcpyDeviceToHost, stream);
    stream.synchronize();
    expect(std::memcmp(back.data(), reference.data(), back.size() * sizeof(float)) == 0,
           std::string(way.name) + ", inverse");
    if (joint > 0) std::printf("%s: %d of %d\n", way.name, joint, kLevels);
  }
  std::vector<float> a = values, b(values.size());
  papers_dwt3d::transform(a, b, s, kLevels, papers_dwt3d::Order::kRows);
  for (const bool shared : {false, true}) {
    convolve(shared, from.data(), to.data(), scratch.data(), s, kLevels, stream);
    copy(b.data(), to.data(), b.size(), cudaMemcpyDeviceToHost, stream);
    stream.synchronize();
    float worst = 0;
    for (std::size_t i = 0; i < a.size(); ++i)
      worst = std::max(worst, std::isfinite(b[i]) ? std::fabs(a[i] - b[i]) : 1e9f);
    expect(worst < 0.02f, "convolution, error " + std::to_string(worst));
  }
}

void copies(const Stream& stream) {
  const std::size_t bytes = std::size_t{1} << 30;
  DeviceBuffer<std::byte> a(bytes), b(bytes);
  PinnedBuffer<std::byte> host(bytes / 4), host_too(bytes / 4);
  std::memset(host.data(), 7, host.size());
  std::memset(host_too.data(), 9, host_too.size());
  check(cudaMemsetAsync(a.data(), 1, bytes, stream.get()), "cudaMemsetAsync");
  const double d2d =
      milliseconds(stream, [&](int) { copy(b.data(), a.data(), bytes, cudaMemcpyDeviceToDevice, stream); });
  copy_gigabytes = 2.0 * static_cast<double>(bytes) / d2d / 1e6;
  const double part = static_cast<double>(host.size());
  const double up = milliseconds(
      stream, [&](int) { copy(a.data(), host.data(), host.size(), cudaMemcpyHostToDevice, stream); }, 5);
  const double down = milliseconds(
      stream, [&](int) { copy(host_too.data(), b.data(), host_too.size(), cudaMemcpyDeviceToHost, stream); }, 5);
  const Stream other;
  const double start = seconds();
  for (int i = 0; i < 8; ++i) {
    copy(a.data(), host.data(), host.size(), cudaMemcpyHostToDevice, stream);
    copy(host_too.data(), b.data(), host_too.size(), cudaMemcpyDeviceToHost, other);
  }
  stream.synchronize();
  other.synchronize();
  const double both = seconds() - start;
  std::printf(
      "copies: on the device %.0f GB/s (read + written), up %.1f GB/s, down %.1f GB/s, both at once %.1f GB/s in "
      "total\n",
      copy_gigabytes, part / up / 1e6, part / down / 1e6, 16 * part / both / 1e9);
}

/// A volume on the device several times over, so that no run finds its input in the cache.
template <class T>
struct Rotation {
  DeviceBuffer<T> memory;
  std::size_t size, count;
  Rotation(std::size_t values, std::size_t bytes_at_least)
      : size((values + 255) / 256 * 256), count(std::max<std::size_t>(1, bytes_at_least / (size * sizeof(T)))) {
    memory = DeviceBuffer<T>(size * count);
  }
  T* operator[](int i) const { return memory.data() + static_cast<std::size_t>(i) % count * size; }
};

constexpr std::size_t kBeyondCache = std::size_t{400} << 20;

struct Times {
  double global = 0, shared = 0, ours = 0;
};

template <class Q>
void time_transform(const char* what, const Shape& s, const Decomposition& d, bool bytes_in,
                    const std::vector<std::uint8_t>& samples, const Stream& stream, double* forward_ms,
                    JointLevels joint = JointLevels::kWhereFaster) {
  DeviceTransform<float> transform(s, d, joint);
  const CoefficientLayout& layout = transform.layout();
  const SubbandTable table(s, d, false);
  std::vector<float> step;
  for (const Subband& band : table.all()) step.push_back(static_cast<float>(4.0 / band.norm));
  std::vector<float> inverse_step;
  for (const float v : step) inverse_step.push_back(1.0f / v);
  DeviceBuffer<float> steps(layout.steps()), inverse_steps(layout.steps());
  copy(steps.data(), layout.spread(table, step).data(), steps.size(), cudaMemcpyHostToDevice, stream);
  copy(inverse_steps.data(), layout.spread(table, inverse_step).data(), steps.size(), cudaMemcpyHostToDevice, stream);
  stream.synchronize();

  const std::size_t n = s.samples(), width = static_cast<std::size_t>(s.width), in_bytes = bytes_in ? 1 : sizeof(float);
  const Rotation<std::byte> in(n * in_bytes, kBeyondCache);
  const Rotation<Q> coefficients(layout.size(), kBeyondCache);
  const std::vector<float> values = bytes_in ? std::vector<float>{} : floats_of(samples);
  const std::byte* host =
      bytes_in ? reinterpret_cast<const std::byte*>(samples.data()) : reinterpret_cast<const std::byte*>(values.data());
  for (std::size_t i = 0; i < in.count; ++i)
    copy(in[static_cast<int>(i)], host, n * in_bytes, cudaMemcpyHostToDevice, stream);
  stream.synchronize();
  const auto view = [&](int i) {
    MutableDeviceSamples v{in[i], bytes_in ? SampleFormat::kU8 : SampleFormat::kValues,
                           static_cast<std::ptrdiff_t>(width * in_bytes),
                           static_cast<std::ptrdiff_t>(width * in_bytes) * s.height};
    return v;
  };
  const double bytes = static_cast<double>(in_bytes + sizeof(Q));
  const double forward = milliseconds(stream, [&](int i) {
    const auto v = view(i);
    transform.forward({v.data, v.format, v.row_stride, v.frame_stride}, 128, coefficients[i], inverse_steps.data(),
                      stream);
  });
  row(std::string(what) + " forward", s, forward, bytes);
  const double inverse = milliseconds(stream, [&](int i) {
    transform.inverse(coefficients[i % static_cast<int>(coefficients.count)], steps.data(), 0.4f, {1.0f, 128, 0, 255},
                      view(i), stream);
  });
  row(std::string(what) + " inverse", s, inverse, bytes);
  if (forward_ms) *forward_ms = forward;
}

/// Upload, transform, download of GOPs in 1..3 streams; 16-bit coefficients come back.
void pipeline(const Shape& s, const std::vector<std::uint8_t>& samples) {
  const Decomposition d{Layout::kT2d, 5, 5, Wavelet::kCdf97, Wavelet::kCdf97};
  const std::size_t n = s.samples();
  struct Slot {
    Stream stream;
    DeviceTransform<float> transform;
    DeviceBuffer<std::uint8_t> in;
    DeviceBuffer<std::int16_t> out;
    DeviceBuffer<float> steps;
    PinnedBuffer<std::uint8_t> host_in;
    PinnedBuffer<std::int16_t> host_out;
    Slot(const Shape& shape, const Decomposition& decomposition)
        : transform(shape, decomposition),
          in(shape.samples()),
          out(transform.layout().size()),
          steps(transform.layout().steps()),
          host_in(shape.samples()),
          host_out(out.size()) {}
  };
  std::vector<Slot> slots;
  for (int i = 0; i < 3; ++i) {
    Slot& x = slots.emplace_back(s, d);
    std::memcpy(x.host_in.data(), samples.data(), n);
    const std::vector<float> ones(x.steps.size(), 0.25f);
    copy(x.steps.data(), ones.data(), ones.size(), cudaMemcpyHostToDevice, x.stream);
    x.stream.synchronize();
  }
  const auto upload = [&](Slot& x) { copy(x.in.data(), x.host_in.data(), n, cudaMemcpyHostToDevice, x.stream); };
  const auto compute = [&](Slot& x) {
    x.transform.forward({reinterpret_cast<const std::byte*>(x.in.data()), SampleFormat::kU8, s.width,
                         static_cast<std::ptrdiff_t>(s.width) * s.height},
                        128, x.out.data(), x.steps.data(), x.stream);
  };
  const auto download = [&](Slot& x) {
    copy(x.host_out.data(), x.out.data(), x.out.size(), cudaMemcpyDeviceToHost, x.stream);
  };
  const double up = milliseconds(slots[0].stream, [&](int) { upload(slots[0]); });
  const double kernels = milliseconds(slots[0].stream, [&](int) { compute(slots[0]); });
  const double down = milliseconds(slots[0].stream, [&](int) { download(slots[0]); });
  std::printf("pipeline %s, u8 up, t+2D 5+5 levels, i16 down: up %.3f ms, kernels %.3f ms, down %.3f ms\n",
              name(s).c_str(), up, kernels, down);
  const int gops = 48;
  for (std::size_t streams = 1; streams <= 3; ++streams) {
    double best = 1e9;
    for (int repeat = 0; repeat < 5; ++repeat) {
      const double start = seconds();
      for (int i = 0; i < gops; ++i) {
        Slot& x = slots[static_cast<std::size_t>(i) % streams];
        upload(x);
        compute(x);
        download(x);
      }
      for (const Slot& x : slots) x.stream.synchronize();
      best = std::min(best, seconds() - start);
    }
    std::printf("  %zu stream%s: %.0f frames/s, %.3f ms a GOP, %.2f of the longest stage\n", streams,
                streams > 1 ? "s" : " ", gops * s.frames / best, best / gops * 1e3,
                best / gops * 1e3 / std::max({up, kernels, down}));
    std::fflush(stdout);
  }
}

/// The papers' convolutions: global and shared memory.
std::pair<double, double> time_convolutions(const Shape& s, const std::vector<float>& values, const Stream& stream) {
  const std::size_t n = s.samples();
  const Rotation<float> in(n, kBeyondCache);
  DeviceBuffer<float> out(n), scratch(n);
  for (std::size_t i = 0; i < in.count; ++i)
    copy(in[static_cast<int>(i)], values.data(), n, cudaMemcpyHostToDevice, stream);
  stream.synchronize();
  const auto time = [&](bool shared) {
    return milliseconds(stream,
                        [&](int i) { convolve(shared, in[i], out.data(), scratch.data(), s, kLevels, stream); });
  };
  return {time(false), time(true)};
}

/// With transfers, as the papers count: floats up, floats down, one after the other.
std::pair<double, double> time_transfers(const std::vector<float>& values, const Stream& stream) {
  const std::size_t n = values.size();
  PinnedBuffer<float> host(n);
  std::memcpy(host.data(), values.data(), n * sizeof(float));
  DeviceBuffer<float> device(n);
  const double up = milliseconds(
      stream, [&](int) { copy(device.data(), host.data(), n, cudaMemcpyHostToDevice, stream); }, 5);
  const double down = milliseconds(
      stream, [&](int) { copy(host.data(), device.data(), n, cudaMemcpyDeviceToHost, stream); }, 5);
  return {up, down};
}

const Decomposition kDyadic{Layout::kDyadic, kLevels, kLevels, Wavelet::kCdf97, Wavelet::kCdf97};

void measure(const Shape& s, bool sequential, const Stream& stream) {
  const std::vector<std::uint8_t> samples = content(s);
  const std::vector<float> values = floats_of(samples);
  Times t;
  std::tie(t.global, t.shared) = time_convolutions(s, values, stream);
  row(kConvolutionGlobal, s, t.global, 8);
  row(kConvolutionShared, s, t.shared, 8);
  const Decomposition t2d{Layout::kT2d, kLevels, kLevels, Wavelet::kCdf97, Wavelet::kCdf97};
  time_transform<float>("dyadic f32 -> f32", s, kDyadic, false, samples, stream, &t.ours);
  if (!record)
    time_transform<float>("dyadic f32 -> f32 by two kernels", s, kDyadic, false, samples, stream, nullptr,
                          JointLevels::kNone);
  time_transform<float>("t+2D f32 -> f32", s, t2d, false, samples, stream, nullptr);
  time_transform<std::int16_t>("dyadic u8 -> i16", s, kDyadic, true, samples, stream, nullptr);
  time_transform<std::int16_t>("t+2D u8 -> i16", s, t2d, true, samples, stream, nullptr);
  if (!sequential) return;
  std::vector<float> a, b;
  double best[2] = {1e9, 1e9};
  for (const auto order : {papers_dwt3d::Order::kRows, papers_dwt3d::Order::kLines})
    for (int repeat = 0; repeat < (order == papers_dwt3d::Order::kLines ? 1 : 3); ++repeat) {
      a = values;
      const double start = seconds();
      papers_dwt3d::transform(a, b, s, kLevels, order);
      double& least = best[order == papers_dwt3d::Order::kLines];
      least = std::min(least, 1e3 * (seconds() - start));
    }
  const auto [up, down] = time_transfers(values, stream);
  if (record) {
    note(kSequential, s, best[0]);
    note(kUploadFloats, s, up);
    note(kDownloadFloats, s, down);
    return;
  }
  std::printf(
      "sequential CPU convolution %s: %.0f ms by rows, %.0f ms line by line; speed-up over the first without "
      "transfers: "
      "global %.0f, shared %.0f, ours %.0f\n",
      name(s).c_str(), best[0], best[1], best[0] / t.global, best[0] / t.shared, best[0] / t.ours);
  std::printf("  up %.2f ms, down %.2f ms; speed-up with transfers: global %.1f, shared %.1f, ours %.1f\n", up, down,
              best[0] / (t.global + up + down), best[0] / (t.shared + up + down), best[0] / (t.ours + up + down));
  std::fflush(stdout);
}

}  // namespace

std::vector<TransformFigure> bench_transforms(const std::vector<Shape>& shapes, bool sequential) {
  std::vector<TransformFigure> figures;
  record = &figures;
  const Stream stream;
  for (const Shape& s : shapes) measure(s, sequential, stream);
  record = nullptr;
  return figures;
}

Dwt3dFigure bench_dwt3d(const Shape& s) {
  std::vector<TransformFigure> figures;
  record = &figures;
  const Stream stream;
  const std::vector<std::uint8_t> samples = content(s);
  const std::vector<float> values = floats_of(samples);
  Dwt3dFigure f;
  std::tie(f.global, f.shared) = time_convolutions(s, values, stream);
  time_transform<float>("", s, kDyadic, false, samples, stream, &f.ours);
  std::tie(f.up, f.down) = time_transfers(values, stream);
  record = nullptr;
  return f;
}

int bench(const std::string& mode) {
  const bool quick = mode == "quick";
  if (device_count() == 0) {
    std::printf("no GPU\n");
    return 5;
  }
  cudaDeviceProp p;
  check(cudaGetDeviceProperties(&p, 0), "cudaGetDeviceProperties");
  std::printf("%s, %d multiprocessors, %d MB L2\n", p.name, p.multiProcessorCount, p.l2CacheSize >> 20);
  const Stream stream;
  if (mode == "profile") {
    device_runs = 1;
    warm_runs = 0;
    const Shape s{32, 1024, 1920};
    const std::vector<std::uint8_t> samples = content(s);
    time_transform<float>("dyadic f32 -> f32", s, {Layout::kDyadic, 1, 1, Wavelet::kCdf97, Wavelet::kCdf97}, false,
                          samples, stream, nullptr);
    time_transform<std::int16_t>("t+2D u8 -> i16", s, {Layout::kT2d, 5, 2, Wavelet::kCdf97, Wavelet::kCdf97}, true,
                                 samples, stream, nullptr);
    return 0;
  }
  verify(stream);
  std::printf("results: %s\n", all_right ? "right" : "WRONG");
  copies(stream);
  if (quick) {
    measure({128, 1024, 1920}, false, stream);
    measure({32, 1024, 1920}, false, stream);
  } else {
    for (const auto& [w, h] : {std::pair{1280, 640}, std::pair{1920, 1024}})
      for (const int frames : {16, 32, 64, 128})
        measure({frames, h, w}, w == 1280 && (frames == 16 || frames == 128), stream);
    for (const int frames : {32, 64}) pipeline({frames, 1024, 1920}, content({frames, 1024, 1920}));
  }
  return all_right ? 0 : 1;
}

}  // namespace trivelet::gpu
