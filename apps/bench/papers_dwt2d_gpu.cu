// Bytes that must move for each sample and level: 16 for a pass over rows and one over columns, 8 for the codec's one
// kernel. Bound: memory.
#include "apps/bench/papers_dwt2d_gpu.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <string>

#include "apps/bench/papers_convolution.cuh"
#include "apps/bench/papers_dwt2d.h"
#include "codec/transform/lifting.h"
#include "gpu/device/clock.h"
#include "gpu/transform/dwt.h"

namespace trivelet::gpu {

namespace {

/// A block for each line. It holds the whole line, so the result can replace it.
template <int kUnused = 0>
__global__ void convolve_line(ConvolutionArgs a) {
  float* line = dynamic_shared<float>();
  const std::ptrdiff_t origin = static_cast<std::ptrdiff_t>(blockIdx.x) * a.across_stride;
  for (int i = static_cast<int>(threadIdx.x); i < a.length + 8; i += static_cast<int>(blockDim.x))
    line[i] = a.in[origin + mirror(i - 4, a.length) * a.stride];
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < a.length / 2; i += static_cast<int>(blockDim.x)) {
    float low = 0, high = 0;
    TRIVELET_UNROLL
    for (int m = 0; m < 9; ++m) low += a.taps.low[m] * line[2 * i + m];
    TRIVELET_UNROLL
    for (int m = 0; m < 7; ++m) high += a.taps.high[m] * line[2 * i + 2 + m];
    a.out[origin + i * a.stride] = low;
    a.out[origin + (a.length / 2 + i) * a.stride] = high;
  }
}

/// convolve_global with the samples from a texture.
template <bool kRows>
__global__ void convolve_texture(cudaTextureObject_t in, ConvolutionArgs a) {
  const int fast = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const int slow = static_cast<int>(blockIdx.y * blockDim.y + threadIdx.y);
  const int i = kRows ? fast : slow, j = kRows ? slow : fast;
  if (i >= a.length / 2 || j >= a.across) return;
  const auto at = [&](int position) {
    const int p = mirror(position, a.length);
    return tex2D<float>(in, static_cast<float>(kRows ? p : j) + 0.5f, static_cast<float>(kRows ? j : p) + 0.5f);
  };
  float low = 0, high = 0;
  TRIVELET_UNROLL
  for (int m = 0; m < 9; ++m) low += a.taps.low[m] * at(2 * i - 4 + m);
  TRIVELET_UNROLL
  for (int m = 0; m < 7; ++m) high += a.taps.high[m] * at(2 * i - 2 + m);
  const std::ptrdiff_t origin = j * a.across_stride;
  a.out[origin + i * a.stride] = low;
  a.out[origin + (a.length / 2 + i) * a.stride] = high;
}

}  // namespace

/// A picture in device memory as a texture.
class Texture {
 public:
  Texture() = default;
  Texture(float* data, int width, int height, std::size_t pitch_bytes) {
    cudaResourceDesc resource{};
    resource.resType = cudaResourceTypePitch2D;
    resource.res.pitch2D.devPtr = data;
    resource.res.pitch2D.desc = cudaCreateChannelDesc<float>();
    resource.res.pitch2D.width = static_cast<std::size_t>(width);
    resource.res.pitch2D.height = static_cast<std::size_t>(height);
    resource.res.pitch2D.pitchInBytes = pitch_bytes;
    cudaTextureDesc texture{};
    texture.addressMode[0] = texture.addressMode[1] = cudaAddressModeClamp;
    texture.filterMode = cudaFilterModePoint;
    texture.readMode = cudaReadModeElementType;
    check(cudaCreateTextureObject(&object_, &resource, &texture, nullptr), "cudaCreateTextureObject");
    owns_ = true;
  }
  Texture(Texture&& other) noexcept : object_(other.object_), owns_(std::exchange(other.owns_, false)) {}
  Texture& operator=(Texture&& other) noexcept {
    std::swap(object_, other.object_);
    std::swap(owns_, other.owns_);
    return *this;
  }
  ~Texture() {
    if (owns_) (void)cudaDestroyTextureObject(object_);
  }
  cudaTextureObject_t get() const { return object_; }

 private:
  cudaTextureObject_t object_{};
  bool owns_ = false;
};

namespace {

unsigned blocks_of(int n, int size) { return static_cast<unsigned>((n + size - 1) / size); }

using Pass = void (*)(const ConvolutionArgs&, const Stream&);
template <int kBlock>
void rows_pass(const ConvolutionArgs& a, const Stream& stream) {
  constexpr int kLines = kRowLines<kBlock>;
  launch("convolve_rows_shared", convolve_rows_shared<kBlock>,
         dim3(blocks_of(a.length, kBlock), blocks_of(a.across, kLines)), dim3(kBlock / 2, kLines), 0, stream.get(), a);
}
template <int kBlock>
void columns_pass(const ConvolutionArgs& a, const Stream& stream) {
  launch("convolve_columns_shared", convolve_columns_shared<kBlock>,
         dim3(blocks_of(a.across, 32), blocks_of(a.length, kBlock)), dim3(32, 8), 0, stream.get(), a);
}
/// The pass of the list that has blocks of this size.
template <std::size_t kCount>
Pass pass_of(const char* axis, const int (&sizes)[kCount], const Pass (&passes)[kCount], int block) {
  const auto found = std::find(std::begin(sizes), std::end(sizes), block);
  require(found != std::end(sizes), ErrorKind::kBadArgument,
          std::string(axis) + " blocks of CUDA-Sep have " + std::to_string(sizes[0]) + " to " +
              std::to_string(sizes[kCount - 1]) + " samples, a power of two, not " + std::to_string(block));
  return passes[found - std::begin(sizes)];
}
constexpr Pass kRowPasses[] = {rows_pass<16>,  rows_pass<32>,  rows_pass<64>,  rows_pass<128>,
                               rows_pass<256>, rows_pass<512>, rows_pass<1024>};
constexpr Pass kColumnPasses[] = {columns_pass<4>,  columns_pass<8>,   columns_pass<16>, columns_pass<32>,
                                  columns_pass<64>, columns_pass<128>, columns_pass<256>};

/// Rows of textures begin at multiples of 32 bytes on every device.
constexpr int kPitchUnit = 64;

}  // namespace

const char* name_of(Dwt2dMethod method) {
  switch (method) {
    case Dwt2dMethod::kConv: return "CUDA-Conv";
    case Dwt2dMethod::kMem: return "CUDA-Mem";
    case Dwt2dMethod::kText: return "CUDA-Text";
    case Dwt2dMethod::kSep: return "CUDA-Sep";
    case Dwt2dMethod::kOwn: return "CUDA-Trivelet";
  }
  return "?";
}

struct Dwt2d::State {
  Dwt2dMethod method;
  int width, height, levels, pitch;
  Pass rows = nullptr, columns = nullptr;
  papers::Taps<float> taps = papers::make_taps<float>(1 / kLift97Zeta, kLift97Zeta);
  DeviceBuffer<float> picture, second;
  Texture texture, second_texture;
  std::unique_ptr<DeviceTransform<float>> own;

  ConvolutionArgs args(bool along_rows, int level, const float* in, float* out) const {
    ConvolutionArgs a;
    a.in = in;
    a.out = out;
    a.taps = taps;
    const int w = width >> level, h = height >> level;
    a.length = along_rows ? w : h;
    a.across = along_rows ? h : w;
    a.stride = along_rows ? 1 : pitch;
    a.across_stride = along_rows ? pitch : 1;
    return a;
  }

  void pass(bool along_rows, int level, const Stream& stream) {
    float* const from = along_rows || method == Dwt2dMethod::kConv ? picture.data() : second.data();
    float* const to = along_rows && method != Dwt2dMethod::kConv ? second.data() : picture.data();
    const ConvolutionArgs a = args(along_rows, level, from, to);
    const dim3 threads(64, 4),
        grid(blocks_of(along_rows ? a.length / 2 : a.across, 64), blocks_of(along_rows ? a.across : a.length / 2, 4));
    switch (method) {
      case Dwt2dMethod::kConv:
        launch("convolve_line", convolve_line<0>, dim3(static_cast<unsigned>(a.across)),
               dim3(static_cast<unsigned>(std::clamp((a.length / 2 + 31) / 32 * 32, 32, 256))),
               sizeof(float) * static_cast<std::size_t>(a.length + 8), stream.get(), a);
        break;
      case Dwt2dMethod::kMem:
        launch("convolve_global", along_rows ? convolve_global<true> : convolve_global<false>, grid, threads, 0,
               stream.get(), a);
        break;
      case Dwt2dMethod::kText:
        launch("convolve_texture", along_rows ? convolve_texture<true> : convolve_texture<false>, grid, threads, 0,
               stream.get(), along_rows ? texture.get() : second_texture.get(), a);
        break;
      case Dwt2dMethod::kSep: (along_rows ? rows : columns)(a, stream); break;
      case Dwt2dMethod::kOwn: break;
    }
  }
};

Dwt2d::Dwt2d(Dwt2dMethod method, int width, int height, int levels, const Dwt2dBlocks& blocks)
    : state_(std::make_unique<State>()) {
  require(levels >= 1 && levels <= 8 && width >= 2 && height >= 2 && width % (1 << levels) == 0 &&
              height % (1 << levels) == 0,
          ErrorKind::kBadArgument,
          "sides of " + std::to_string(width) + "x" + std::to_string(height) + " are not divisible by 2^" +
              std::to_string(levels) + "; choose fewer levels (1 to 8) or another size");
  State& s = *state_;
  s.method = method;
  s.width = width;
  s.height = height;
  s.levels = levels;
  s.pitch = method == Dwt2dMethod::kOwn ? width : (width + kPitchUnit - 1) / kPitchUnit * kPitchUnit;
  s.picture = DeviceBuffer<float>(static_cast<std::size_t>(s.pitch) * static_cast<std::size_t>(height));
  if (method == Dwt2dMethod::kOwn) {
    Decomposition d;
    d.spatial_levels = levels;
    s.own = std::make_unique<DeviceTransform<float>>(Shape{1, height, width}, d);
    s.second = DeviceBuffer<float>(s.own->layout().size());
    return;
  }
  s.rows = pass_of("row", kRowBlocks, kRowPasses, blocks.row);
  s.columns = pass_of("column", kColumnBlocks, kColumnPasses, blocks.column);
  if (method == Dwt2dMethod::kConv) {
    const int bytes = static_cast<int>(sizeof(float)) * (std::max(width, height) + 8);
    require(cudaFuncSetAttribute(convolve_line<0>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes) == cudaSuccess,
            ErrorKind::kUnsupported,
            "CUDA-Conv keeps a line in shared memory, of which this device has less than " + std::to_string(bytes) +
                " bytes");
    return;
  }
  s.second = DeviceBuffer<float>(s.picture.size());
  if (method == Dwt2dMethod::kText) {
    const std::size_t bytes = sizeof(float) * static_cast<std::size_t>(s.pitch);
    s.texture = Texture(s.picture.data(), width, height, bytes);
    s.second_texture = Texture(s.second.data(), width, height, bytes);
  }
}

Dwt2d::~Dwt2d() = default;
Dwt2d::Dwt2d(Dwt2d&&) noexcept = default;

std::size_t Dwt2d::device_bytes() const {
  return sizeof(float) * (state_->picture.size() + state_->second.size()) +
         (state_->own ? state_->own->scratch_bytes() : 0);
}

void Dwt2d::upload(const float* picture, const Stream& stream) {
  const State& s = *state_;
  const std::size_t row = sizeof(float) * static_cast<std::size_t>(s.width);
  check(cudaMemcpy2DAsync(s.picture.data(), sizeof(float) * static_cast<std::size_t>(s.pitch), picture, row, row,
                          static_cast<std::size_t>(s.height), cudaMemcpyHostToDevice, stream.get()),
        "cudaMemcpy2DAsync");
}

void Dwt2d::download(float* coefficients, const Stream& stream) const {
  const State& s = *state_;
  const std::size_t row = sizeof(float) * static_cast<std::size_t>(s.width);
  // The codec's layout pads rows; it is counted as the number of values of the picture.
  const float* const from = s.own ? s.second.data() : s.picture.data();
  const auto pitch = static_cast<std::size_t>(s.own ? s.own->layout().pitch() : s.pitch);
  check(cudaMemcpy2DAsync(coefficients, row, from, sizeof(float) * pitch, row, static_cast<std::size_t>(s.height),
                          cudaMemcpyDeviceToHost, stream.get()),
        "cudaMemcpy2DAsync");
}

void Dwt2d::run(const Stream& stream) {
  State& s = *state_;
  if (s.own) {
    const auto row = static_cast<std::ptrdiff_t>(sizeof(float)) * s.width;
    s.own->forward({reinterpret_cast<const std::byte*>(s.picture.data()), SampleFormat::kValues, row, row * s.height},
                   0, s.second.data(), nullptr, stream);
    return;
  }
  for (int level = 0; level < s.levels; ++level)
    for (const bool along_rows : {true, false}) s.pass(along_rows, level, stream);
}

std::vector<float> Dwt2d::result(const Stream& stream) const {
  const State& s = *state_;
  const auto w = static_cast<std::size_t>(s.width);
  std::vector<float> out(w * static_cast<std::size_t>(s.height));
  if (!s.own) {
    download(out.data(), stream);
    stream.synchronize();
    return out;
  }
  // Moves bands to Mallat's layout, with the factors that the codec leaves to its quantiser.
  const CoefficientLayout& layout = s.own->layout();
  std::vector<float> raw(layout.size());
  copy(raw.data(), s.second.data(), raw.size(), cudaMemcpyDeviceToHost, stream);
  stream.synchronize();
  const SubbandTable table(layout.shape(), layout.decomposition(), false);
  for (const Subband& band : table.all()) {
    const CoefficientLayout::Band at = layout.band(band);
    const int level = band.resolution == 0 ? s.levels : s.levels - band.resolution + 1;
    const bool right = band.orientation & 1, lower = band.orientation & 2;
    const double scale = std::pow(kLift97Zeta, 2 * (right + lower) - 2 * level);
    const std::size_t x0 = right ? w >> level : 0, y0 = lower ? static_cast<std::size_t>(s.height >> level) : 0;
    for (std::size_t y = 0; y < static_cast<std::size_t>(band.shape.height); ++y)
      for (std::size_t x = 0; x < static_cast<std::size_t>(band.shape.width); ++x)
        out[(y0 + y) * w + x0 + x] = static_cast<float>(scale * raw[at.origin + y * at.row_stride + x]);
  }
  return out;
}

void use_device(int device) { check(cudaSetDevice(device), "cudaSetDevice"); }

Dwt2dFigure bench_dwt2d(Dwt2dMethod method, const std::vector<float>& picture, const std::vector<float>& expected,
                        int width, int height, int levels, const Dwt2dBlocks& blocks) {
  const Stream stream;
  Dwt2d transform(method, width, height, levels, blocks);
  Dwt2dFigure figure{.method = method, .blocks = blocks, .device_bytes = transform.device_bytes()};
  PinnedBuffer<float> host(picture.size());
  std::memcpy(host.data(), picture.data(), sizeof(float) * picture.size());
  transform.upload(host.data(), stream);
  transform.run(stream);
  const std::vector<float> result = transform.result(stream);
  const auto [least, most] = std::minmax_element(picture.begin(), picture.end());
  const float range = std::max(*most - *least, std::abs(*most));
  for (std::size_t i = 0; i < result.size(); ++i)
    if (!(std::abs(result[i] - expected[i]) <= 1e-5f * range))
      fail(ErrorKind::kMismatch, std::string(name_of(method)) + " gives " + std::to_string(result[i]) + " at " +
                                     std::to_string(i) + ", expected was " + std::to_string(expected[i]));
  figure.milliseconds = median_milliseconds(stream, 3, 15, [&](int) { transform.run(stream); });
  figure.with_transfers = median_milliseconds(stream, 1, 7, [&](int) {
    transform.upload(host.data(), stream);
    transform.run(stream);
    transform.download(host.data(), stream);
  });
  return figure;
}

}  // namespace trivelet::gpu
