// Rows of a slab are folded (or mirrored) into real sequences, transformed by cuFFT, multiplied by twiddles and written
// transposed; then the columns, which are now rows, in the same way. Bytes that must move for each sample and axis, in
// binary64, folded: 8 + 8 for folding, at least 8 + 8 (16 + 8 of half as many) for the transform, 8 + 8 for the
// twiddles: 48, mirrored 80. Bound: memory.
#include "gpu/still/dct.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>
#include <string>

#include "codec/still/dct/dct_scan.h"
#include "gpu/device/clock.h"
#include "gpu/device/device.h"
#include "gpu/still/real_fft.h"

namespace trivelet::gpu {

namespace {

constexpr int kTile = 32, kTileRows = 8;
/// Values of a slab of real sequences: beyond this the planes are done in parts.
constexpr std::size_t kSlabValues = std::size_t{1} << 25;

struct SlabArgs {
  int length = 0;    ///< of a row
  int sequence = 0;  ///< of the transformed sequence: length, or twice that
  int rows = 0;      ///< of the slab
  int all_rows = 0;  ///< of the plane: the pitch of the transposed output
  int first = 0;     ///< row of the plane where the slab begins
};

/// Where sample i of a row lies in the sequence.
__device__ __forceinline__ int folded(int i, int n) { return i % 2 == 0 ? i / 2 : n - 1 - i / 2; }

/// Rows into sequences.
template <class In>
__global__ void fold_rows(SlabArgs a, const In* in, double middle, double* out) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x), r = static_cast<int>(blockIdx.y);
  if (i >= a.length) return;
  for (int row = r; row < a.rows; row += static_cast<int>(gridDim.y)) {
    const double v =
        static_cast<double>(in[static_cast<std::size_t>(a.first + row) * static_cast<std::size_t>(a.length) +
                               static_cast<std::size_t>(i)]) -
        middle;
    double* to = out + static_cast<std::size_t>(row) * static_cast<std::size_t>(a.sequence);
    if (a.sequence == a.length) {
      to[folded(i, a.length)] = v;
    } else {
      to[i] = v;
      to[2 * a.length - 1 - i] = v;
    }
  }
}

/// Spectra into coefficients, turned: out[k][row]. `twiddle` has scale * exp(-i pi k / 2 n).
template <int kUnused = 0>
__global__ void turn_spectra(SlabArgs a, const Complex* in, const Complex* twiddle, double* out) {
  __shared__ double tile[kTile][kTile + 1];
  const int k = static_cast<int>(blockIdx.x) * kTile + static_cast<int>(threadIdx.x);
  const int row0 = static_cast<int>(blockIdx.y) * kTile;
  for (int t = static_cast<int>(threadIdx.y); t < kTile; t += kTileRows) {
    if (k >= a.length || row0 + t >= a.rows) continue;
    // Beyond the middle a real sequence's spectrum repeats, conjugated.
    const bool beyond = k > a.sequence / 2;
    const Complex c = in[static_cast<std::size_t>(row0 + t) * static_cast<std::size_t>(a.sequence / 2 + 1) +
                         static_cast<std::size_t>(beyond ? a.sequence - k : k)];
    const Complex w = twiddle[k];
    tile[t][threadIdx.x] = c.re * w.re - (beyond ? -c.im : c.im) * w.im;
  }
  __syncthreads();
  for (int t = static_cast<int>(threadIdx.y); t < kTile; t += kTileRows) {
    const int to = static_cast<int>(blockIdx.x) * kTile + t, row = row0 + static_cast<int>(threadIdx.x);
    if (to < a.length && row < a.rows)
      out[static_cast<std::size_t>(to) * static_cast<std::size_t>(a.all_rows) +
          static_cast<std::size_t>(a.first + row)] = tile[threadIdx.x][t];
  }
}

/// Rows of coefficients into spectra: exp(i pi k / 2 n) (C[k] - i C[n - k]). `twiddle` has scale * exp(i pi k / 2 n),
/// `first_gain` the extra factor of C[0].
template <int kUnused = 0>
__global__ void make_spectra(SlabArgs a, const double* in, const Complex* twiddle, double first_gain, Complex* out) {
  const int k = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x), values = a.sequence / 2 + 1;
  if (k >= values) return;
  for (int row = static_cast<int>(blockIdx.y); row < a.rows; row += static_cast<int>(gridDim.y)) {
    const double* from = in + static_cast<std::size_t>(a.first + row) * static_cast<std::size_t>(a.length);
    Complex& to = out[static_cast<std::size_t>(row) * static_cast<std::size_t>(values) + static_cast<std::size_t>(k)];
    const double c = k == a.length ? 0 : k == 0 ? from[0] * first_gain : from[k];
    if (a.sequence == a.length) {
      const double other = k == 0 ? 0 : from[a.length - k];
      const Complex w = twiddle[k];
      to = {c * w.re + other * w.im, c * w.im - other * w.re};
    } else {
      to = k == a.length ? Complex{0, 0} : Complex{c * twiddle[k].re, c * twiddle[k].im};
    }
  }
}

/// Sequences into rows, turned.
template <int kUnused = 0>
__global__ void turn_rows(SlabArgs a, const double* in, double* out) {
  __shared__ double tile[kTile][kTile + 1];
  const int i = static_cast<int>(blockIdx.x) * kTile + static_cast<int>(threadIdx.x);
  const int row0 = static_cast<int>(blockIdx.y) * kTile;
  for (int t = static_cast<int>(threadIdx.y); t < kTile; t += kTileRows)
    if (i < a.length && row0 + t < a.rows)
      tile[t][threadIdx.x] = in[static_cast<std::size_t>(row0 + t) * static_cast<std::size_t>(a.sequence) +
                                static_cast<std::size_t>(a.sequence == a.length ? folded(i, a.length) : i)];
  __syncthreads();
  for (int t = static_cast<int>(threadIdx.y); t < kTile; t += kTileRows) {
    const int to = static_cast<int>(blockIdx.x) * kTile + t, row = row0 + static_cast<int>(threadIdx.x);
    if (to < a.length && row < a.rows)
      out[static_cast<std::size_t>(to) * static_cast<std::size_t>(a.all_rows) +
          static_cast<std::size_t>(a.first + row)] = tile[threadIdx.x][t];
  }
}

template <int kUnused = 0>
__global__ void quantise_in_scan_order(const double* in, int width, int height, double step, std::uint64_t kept,
                                       std::int32_t* out) {
  const int x = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (x >= width) return;
  for (int y = static_cast<int>(blockIdx.y); y < height; y += static_cast<int>(gridDim.y)) {
    const std::uint64_t place = dct::scan_place(x, y, width, height);
    if (place < kept)
      out[place] = dct::level_of(
          in[static_cast<std::size_t>(y) * static_cast<std::size_t>(width) + static_cast<std::size_t>(x)], step);
  }
}

template <int kUnused = 0>
__global__ void restore_from_scan_order(const std::int32_t* in, std::uint64_t kept, int width, int height, double step,
                                        double* out) {
  const int x = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (x >= width) return;
  for (int y = static_cast<int>(blockIdx.y); y < height; y += static_cast<int>(gridDim.y)) {
    const std::uint64_t place = dct::scan_place(x, y, width, height);
    out[static_cast<std::size_t>(y) * static_cast<std::size_t>(width) + static_cast<std::size_t>(x)] =
        place < kept ? in[place] * step : 0;
  }
}

template <class Out>
__global__ void round_samples(const double* in, std::size_t count, double middle, double most, Out* out) {
  const std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) out[i] = static_cast<Out>(dct::sample_of(in[i], middle, most));
}

unsigned blocks_of(int n, int size) { return static_cast<unsigned>((n + size - 1) / size); }

/// One axis: plans, twiddles, slabs.
class Axis {
 public:
  Axis(int length, int rows, DctWay way, const Stream& stream) {
    args_.length = length;
    args_.sequence = way == DctWay::kMirror ? 2 * length : length;
    args_.all_rows = rows;
    const auto n = static_cast<std::size_t>(length), sequence = static_cast<std::size_t>(args_.sequence);
    slab_ = static_cast<int>(std::clamp<std::size_t>(kSlabValues / sequence, 1, static_cast<std::size_t>(rows)));
    const auto slab = static_cast<std::size_t>(slab_);
    fft_ = std::make_unique<RealFft>(args_.sequence, slab_);
    rows_ = DeviceBuffer<double>(slab * sequence);
    spectra_ = DeviceBuffer<Complex>(slab * (sequence / 2 + 1));
    // Missing rows of the last slab are transformed too.
    check(cudaMemsetAsync(rows_.data(), 0, rows_.size() * sizeof(double), stream.get()), "cudaMemsetAsync");
    check(cudaMemsetAsync(spectra_.data(), 0, spectra_.size() * sizeof(Complex), stream.get()), "cudaMemsetAsync");
    const double twice = way == DctWay::kMirror ? 2 : 1, gain = std::sqrt(2.0 / length);
    std::vector<Complex> forward(n), inverse(n);
    for (std::size_t k = 0; k < n; ++k) {
      const double angle = std::numbers::pi * static_cast<double>(k) / (2.0 * length);
      const double f = (k == 0 ? std::sqrt(1.0 / length) : gain) / twice, i = twice / (gain * args_.sequence);
      forward[k] = {f * std::cos(angle), -f * std::sin(angle)};
      inverse[k] = {i * std::cos(angle), i * std::sin(angle)};
    }
    forward_ = DeviceBuffer<Complex>(n);
    inverse_ = DeviceBuffer<Complex>(n);
    copy(forward_.data(), forward.data(), n, cudaMemcpyHostToDevice, stream);
    copy(inverse_.data(), inverse.data(), n, cudaMemcpyHostToDevice, stream);
    stream.synchronize();
  }

  std::size_t device_bytes() const {
    return rows_.size() * sizeof(double) + (spectra_.size() + forward_.size() + inverse_.size()) * sizeof(Complex);
  }

  /// out: the coefficients of every row, turned.
  template <class In>
  void forward(const In* in, double middle, double* out, const Stream& stream) {
    slabs([&](const SlabArgs& a) {
      launch("fold_rows", fold_rows<In>, row_grid(a, a.length), dim3(256), 0, stream.get(), a, in, middle,
             rows_.data());
      fft_->forward(rows_.data(), spectra_.data(), stream);
      launch("turn_spectra", turn_spectra<0>, tile_grid(a), dim3(kTile, kTileRows), 0, stream.get(), a,
             static_cast<const Complex*>(spectra_.data()), static_cast<const Complex*>(forward_.data()), out);
    });
  }
  void inverse(const double* in, double* out, const Stream& stream) {
    slabs([&](const SlabArgs& a) {
      launch("make_spectra", make_spectra<0>, row_grid(a, a.sequence / 2 + 1), dim3(256), 0, stream.get(), a, in,
             static_cast<const Complex*>(inverse_.data()), std::sqrt(2.0), spectra_.data());
      fft_->inverse(spectra_.data(), rows_.data(), stream);
      launch("turn_rows", turn_rows<0>, tile_grid(a), dim3(kTile, kTileRows), 0, stream.get(), a,
             static_cast<const double*>(rows_.data()), out);
    });
  }

 private:
  template <class Body>
  void slabs(const Body& body) {
    for (int first = 0; first < args_.all_rows; first += slab_) {
      SlabArgs a = args_;
      a.first = first;
      a.rows = std::min(slab_, args_.all_rows - first);
      body(a);
    }
  }
  static dim3 row_grid(const SlabArgs& a, int values) {
    return dim3(blocks_of(values, 256), static_cast<unsigned>(std::min(a.rows, 65535)));
  }
  static dim3 tile_grid(const SlabArgs& a) { return dim3(blocks_of(a.length, kTile), blocks_of(a.rows, kTile)); }

  SlabArgs args_;
  int slab_;
  std::unique_ptr<RealFft> fft_;
  DeviceBuffer<double> rows_;
  DeviceBuffer<Complex> spectra_, forward_, inverse_;
};

/// Buffers and plans for planes of one size.
struct PlaneMemory {
  PlaneMemory(int width_in, int height_in, DctWay way, const Stream& stream)
      : width(width_in),
        height(height_in),
        across(width, height, way, stream),
        down(height, width, way, stream),
        values(count()),
        turned(count()),
        samples(2 * count()),
        levels(count()) {}
  std::size_t count() const { return static_cast<std::size_t>(width) * static_cast<std::size_t>(height); }
  std::size_t device_bytes() const {
    return across.device_bytes() + down.device_bytes() + count() * (2 * sizeof(double) + 2 + sizeof(std::int32_t));
  }
  dim3 grid() const { return dim3(blocks_of(width, 256), static_cast<unsigned>(std::min(height, 65535))); }

  /// `samples` to `levels`.
  void to_levels(int bits, double step, std::uint64_t kept, const Stream& stream) {
    const double middle = 1 << (bits - 1);
    if (bits <= 8)
      across.forward(reinterpret_cast<const std::uint8_t*>(samples.data()), middle, turned.data(), stream);
    else
      across.forward(reinterpret_cast<const std::uint16_t*>(samples.data()), middle, turned.data(), stream);
    down.forward(static_cast<const double*>(turned.data()), 0, values.data(), stream);
    launch("quantise_in_scan_order", quantise_in_scan_order<0>, grid(), dim3(256), 0, stream.get(),
           static_cast<const double*>(values.data()), width, height, step, kept, levels.data());
  }
  void to_samples(int bits, double step, std::uint64_t kept, const Stream& stream) {
    launch("restore_from_scan_order", restore_from_scan_order<0>, grid(), dim3(256), 0, stream.get(),
           static_cast<const std::int32_t*>(levels.data()), kept, width, height, step, values.data());
    across.inverse(values.data(), turned.data(), stream);
    down.inverse(turned.data(), values.data(), stream);
    const double middle = 1 << (bits - 1), most = (1 << bits) - 1;
    const dim3 blocks(static_cast<unsigned>((count() + 255) / 256));
    if (bits <= 8)
      launch("round_samples", round_samples<std::uint8_t>, blocks, dim3(256), 0, stream.get(),
             static_cast<const double*>(values.data()), count(), middle, most,
             reinterpret_cast<std::uint8_t*>(samples.data()));
    else
      launch("round_samples", round_samples<std::uint16_t>, blocks, dim3(256), 0, stream.get(),
             static_cast<const double*>(values.data()), count(), middle, most,
             reinterpret_cast<std::uint16_t*>(samples.data()));
  }

  int width, height;
  Axis across, down;
  DeviceBuffer<double> values, turned;
  DeviceBuffer<std::byte> samples;
  DeviceBuffer<std::int32_t> levels;
};

class DeviceDct final : public dct::Transform {
 public:
  DeviceDct(int device, DctWay way) : device_(device), way_(way) {
    require(have_fft(), ErrorKind::kUnsupported,
            "dct on a GPU needs cuFFT, which this build or this machine does not have; compute on the CPU");
    check(cudaSetDevice(device), "cudaSetDevice");
    stream_ = std::make_unique<Stream>();
  }
  const char* name() const override { return "cuFFT"; }

  void forward(double* plane, int width, int height) override {
    PlaneMemory& m = memory(width, height);
    copy(m.values.data(), plane, m.count(), cudaMemcpyHostToDevice, *stream_);
    m.across.forward(static_cast<const double*>(m.values.data()), 0, m.turned.data(), *stream_);
    m.down.forward(static_cast<const double*>(m.turned.data()), 0, m.values.data(), *stream_);
    fetch(plane, m.values.data(), m.count());
  }
  void inverse(double* plane, int width, int height) override {
    PlaneMemory& m = memory(width, height);
    copy(m.values.data(), plane, m.count(), cudaMemcpyHostToDevice, *stream_);
    m.across.inverse(m.values.data(), m.turned.data(), *stream_);
    m.down.inverse(m.turned.data(), m.values.data(), *stream_);
    fetch(plane, m.values.data(), m.count());
  }

  std::vector<std::int32_t> levels(const still::Image& image, int component, double step, std::uint64_t kept) override {
    PlaneMemory& m = memory(image.format.component_width(image.width, component),
                            image.format.component_height(image.height, component));
    copy(m.samples.data(), image.samples.data() + image.plane_offset(component),
         m.count() * static_cast<std::size_t>(image.format.bytes_per_sample()), cudaMemcpyHostToDevice, *stream_);
    m.to_levels(image.format.bits, step, kept, *stream_);
    std::vector<std::int32_t> out(kept);
    fetch(out.data(), m.levels.data(), out.size());
    return out;
  }
  void samples(std::span<const std::int32_t> levels, double step, still::Image& image, int component) override {
    PlaneMemory& m = memory(image.format.component_width(image.width, component),
                            image.format.component_height(image.height, component));
    copy(m.levels.data(), levels.data(), levels.size(), cudaMemcpyHostToDevice, *stream_);
    m.to_samples(image.format.bits, step, levels.size(), *stream_);
    fetch(image.samples.data() + image.plane_offset(component), m.samples.data(),
          m.count() * static_cast<std::size_t>(image.format.bytes_per_sample()));
  }

 private:
  /// Kept for the next plane, which mostly has the same size.
  PlaneMemory& memory(int width, int height) {
    check(cudaSetDevice(device_), "cudaSetDevice");
    if (!memory_ || memory_->width != width || memory_->height != height) {
      memory_.reset();
      memory_ = std::make_unique<PlaneMemory>(width, height, way_, *stream_);
    }
    return *memory_;
  }
  template <class T>
  void fetch(T* to, const T* from, std::size_t count) {
    copy(to, from, count, cudaMemcpyDeviceToHost, *stream_);
    stream_->synchronize();
  }
  int device_;
  DctWay way_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<PlaneMemory> memory_;
};

}  // namespace

std::unique_ptr<dct::Transform> make_dct_transform(int device, DctWay way) {
  return std::make_unique<DeviceDct>(device, way);
}

DctFigure bench_dct(const still::Image& image, double step, double keep, int device, DctWay way) {
  check(cudaSetDevice(device), "cudaSetDevice");
  const Stream stream;
  PlaneMemory m(image.width, image.height, way, stream);
  const auto kept = static_cast<std::uint64_t>(keep * static_cast<double>(m.count()));
  PinnedBuffer<std::byte> samples(m.count());
  PinnedBuffer<std::int32_t> levels(kept + 1);
  std::memcpy(samples.data(), image.samples.data(), m.count());
  const auto up = [&] { copy(m.samples.data(), samples.data(), m.count(), cudaMemcpyHostToDevice, stream); };
  up();
  DctFigure f;
  f.device_bytes = m.device_bytes();
  f.forward = median_milliseconds(stream, 2, 9, [&](int) { m.to_levels(8, step, kept, stream); });
  f.with_transfers = median_milliseconds(stream, 1, 7, [&](int) {
    up();
    m.to_levels(8, step, kept, stream);
    copy(levels.data(), m.levels.data(), kept, cudaMemcpyDeviceToHost, stream);
  });
  f.inverse = median_milliseconds(stream, 2, 9, [&](int) { m.to_samples(8, step, kept, stream); });
  f.inverse_with_transfers = median_milliseconds(stream, 1, 7, [&](int) {
    copy(m.levels.data(), levels.data(), kept, cudaMemcpyHostToDevice, stream);
    m.to_samples(8, step, kept, stream);
    copy(samples.data(), m.samples.data(), m.count(), cudaMemcpyDeviceToHost, stream);
  });
  return f;
}

}  // namespace trivelet::gpu
