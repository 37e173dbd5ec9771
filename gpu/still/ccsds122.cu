// CCSDS 122.0 from and to host memory: transfers around the encoder and decoder on the device.

#include "gpu/still/ccsds122.h"

#include <algorithm>
#include <cstring>

#include "codec/still/ccsds122/ccsds122_plan.h"
#include "gpu/still/ccsds122_decode.h"
#include "gpu/still/ccsds122_encode.h"

namespace trivelet::gpu {
namespace {

void use(int device) {
  const int count = device_count();
  require(device >= 0 && device < count, ErrorKind::kUnsupported,
          "there is no GPU " + std::to_string(device) + ": " + std::to_string(count) + " can be used");
  check(cudaSetDevice(device), "cudaSetDevice");
}

double median(std::vector<double> v) {
  std::nth_element(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2), v.end());
  return v[v.size() / 2];
}

/// Median seconds of the work that `work` puts on the stream.
template <class Work>
double time_on(const Stream& stream, int repeat, const Work& work) {
  const Event start(true), end(true);
  std::vector<double> seconds;
  for (int i = 0; i <= repeat; ++i) {  // the first one warms up
    start.record(stream);
    work();
    end.record(stream);
    end.synchronize();
    if (i > 0) seconds.push_back(end.since(start) / 1e3);
  }
  return median(seconds);
}

}  // namespace

int still_device_count() { return device_count(); }

/// A picture's place in device memory, and page-locked memory beside it.
struct PictureMemory {
  PinnedBuffer<std::byte> host;
  DeviceBuffer<std::byte> device;

  /// Copies to the device; host memory has the same layout.
  DevicePicture upload(const VolumeView& v, ThreadPool& pool, const Stream& stream) {
    const std::size_t sample = static_cast<std::size_t>(v.bytes_per_sample);
    const std::size_t row = static_cast<std::size_t>(v.shape.width) * sample;
    const std::size_t stride = (static_cast<std::size_t>(v.shape.width) + 15) / 16 * 16 * sample;
    const std::size_t size = checked_mul(stride, static_cast<std::size_t>(v.shape.height));
    if (host.size() < size) {
      host = {};
      device = {};
      host = PinnedBuffer<std::byte>(size);
      device = DeviceBuffer<std::byte>(size);
    }
    pool.parallel_for((v.shape.height + 63) / 64, [&](int strip, int) {
      for (int y = 64 * strip; y < std::min(64 * strip + 64, v.shape.height); ++y)
        std::memcpy(host.data() + static_cast<std::size_t>(y) * stride, v.row(0, y), row);
    });
    copy(device.data(), host.data(), size, cudaMemcpyHostToDevice, stream);
    return {device.data(), sample_type_of(v.bytes_per_sample, v.is_signed), v.shape.width, v.shape.height,
            static_cast<std::ptrdiff_t>(stride)};
  }
};

struct Ccsds122Codec::State {
  int device = 0;
  Stream stream;
  Event marks[3] = {Event(true), Event(true), Event(true)};
  PictureMemory picture;
  PinnedBuffer<std::byte> bytes;
  std::unique_ptr<Ccsds122Encoder> encoder;
  int width = 0, height = 0;  // of the encoder
  SampleType format = SampleType::kU8;
  ccsds122::Params params;
  std::unique_ptr<Ccsds122Decoder> decoder;
};

Ccsds122Codec::Ccsds122Codec(int device) {
  use(device);
  state_ = std::make_unique<State>();
  state_->device = device;
}
Ccsds122Codec::~Ccsds122Codec() = default;
Ccsds122Codec::Ccsds122Codec(Ccsds122Codec&&) noexcept = default;
Ccsds122Codec& Ccsds122Codec::operator=(Ccsds122Codec&&) noexcept = default;

ccsds122::Encoded Ccsds122Codec::encode(const VolumeView& image, const ccsds122::Params& params, ThreadPool& pool) {
  State& s = *state_;
  use(s.device);
  ccsds122::check_parameters(image, params);
  const SampleType format = sample_type_of(image.bytes_per_sample, image.is_signed);
  if (!s.encoder || s.width != image.shape.width || s.height != image.shape.height || s.format != format ||
      !(s.params == params)) {
    s.encoder.reset();
    s.encoder = std::make_unique<Ccsds122Encoder>(image.shape.width, image.shape.height, format, params);
    s.width = image.shape.width;
    s.height = image.shape.height;
    s.format = format;
    s.params = params;
  }
  const DevicePicture picture = s.picture.upload(image, pool, s.stream);
  s.marks[0].record(s.stream);
  s.encoder->start_transform(picture, s.stream);
  s.marks[1].record(s.stream);
  s.encoder->start_coding(s.stream);
  s.marks[2].record(s.stream);
  try {
    s.encoder->finish(s.stream);
  } catch (const Error&) {
    ccsds122::check_samples(image, params, pool);  // says which sample
    throw;
  }
  ccsds122::Encoded out;
  out.segment_bytes = s.encoder->segment_bytes();
  const std::size_t size = s.encoder->size();
  if (s.bytes.size() < size) {
    s.bytes = {};
    s.bytes = PinnedBuffer<std::byte>(size + size / 4);
  }
  copy(s.bytes.data(), s.encoder->bytes(), size, cudaMemcpyDeviceToHost, s.stream);
  s.stream.synchronize();
  out.bytes.assign(s.bytes.data(), s.bytes.data() + size);
  out.seconds.dwt = s.marks[1].since(s.marks[0]) / 1e3;
  out.seconds.coder = s.marks[2].since(s.marks[1]) / 1e3;
  return out;
}

ccsds122::Decoded Ccsds122Codec::decode(std::span<const std::byte> stream, const ccsds122::DecodeParams& params,
                                        ThreadPool& pool) {
  State& s = *state_;
  use(s.device);
  if (!s.decoder) s.decoder = std::make_unique<Ccsds122Decoder>();
  return ccsds122::decode(stream, params, pool, *s.decoder);
}

Ccsds122Times measure_ccsds122(int device, const VolumeView& image, const ccsds122::Params& params, int repeat,
                               ThreadPool& pool) {
  use(device);
  Ccsds122Times t;
  const Stream stream;
  const SampleType format = sample_type_of(image.bytes_per_sample, image.is_signed);
  PictureMemory memory;
  const DevicePicture picture = memory.upload(image, pool, stream);
  const std::size_t size = memory.device.size();
  t.upload = time_on(stream, repeat,
                     [&] { copy(memory.device.data(), memory.host.data(), size, cudaMemcpyHostToDevice, stream); });
  Ccsds122Encoder encoder(image.shape.width, image.shape.height, format, params);
  encoder.start(picture, stream);
  encoder.finish(stream);  // makes room, when more is needed
  t.forward = time_on(stream, repeat, [&] { encoder.start_transform(picture, stream); });
  t.coder = time_on(stream, repeat, [&] { encoder.start_coding(stream); });
  t.encode = time_on(stream, repeat, [&] { encoder.start(picture, stream); });
  encoder.finish(stream);
  t.bytes = encoder.size();
  std::vector<std::byte> bytes(t.bytes);
  copy(bytes.data(), encoder.bytes(), t.bytes, cudaMemcpyDeviceToHost, stream);
  stream.synchronize();
  const ccsds122::Encoded expected = ccsds122::encode(image, params, pool);
  t.exact = bytes == expected.bytes && encoder.segment_bytes() == expected.segment_bytes;

  Ccsds122Decoder decoder;
  ccsds122::DecodeParams dp;
  dp.segment_bytes = expected.segment_bytes;
  dp.simd = params.simd;
  std::vector<double> parse, place, inverse;
  ccsds122::Decoded d;
  for (int i = 0; i <= repeat; ++i) {
    d = ccsds122::decode(bytes, dp, pool, decoder);
    if (i == 0) continue;
    parse.push_back(decoder.times().parse / 1e3);
    place.push_back(decoder.times().place / 1e3);
    inverse.push_back(decoder.times().transform / 1e3);
  }
  t.parse = median(parse);
  t.place = median(place);
  t.inverse = median(inverse);
  t.exact = t.exact && d.samples == ccsds122::decode(bytes, dp, pool).samples;
  t.download = time_on(stream, repeat,
                       [&] { copy(memory.host.data(), memory.device.data(), size, cudaMemcpyDeviceToHost, stream); });
  return t;
}

Ccsds122TransformTimes measure_ccsds122_transform(int device, int width, int height, ccsds122::Dwt dwt, int repeat) {
  use(device);
  const Stream stream;
  const std::size_t pitch = (static_cast<std::size_t>(width) + 15) / 16 * 16;
  const std::size_t size = checked_mul(pitch, static_cast<std::size_t>(height));
  PinnedBuffer<std::int32_t> host(size);
  DeviceBuffer<std::int32_t> from(size), to(size);
  const bool real = dwt == ccsds122::Dwt::kFloat;
  std::uint32_t state = 1;
  for (std::size_t i = 0; i < size; ++i) {  // a slope with noise
    state = state * 1664525U + 1013904223U;
    const std::int32_t v = static_cast<std::int32_t>(i % pitch / 32 % 128 + (state >> 27));
    const float f = static_cast<float>(v);
    std::memcpy(host.data() + i, real ? static_cast<const void*>(&f) : &v, 4);
  }
  Ccsds122Transform transform((width + 7) / 8, (height + 7) / 8);
  const SampleType format = real ? SampleType::kF32 : SampleType::kS32;
  const std::ptrdiff_t stride = static_cast<std::ptrdiff_t>(pitch) * 4;
  Ccsds122TransformTimes t;
  t.upload = time_on(stream, repeat, [&] { copy(from.data(), host.data(), size, cudaMemcpyHostToDevice, stream); });
  t.forward = time_on(stream, repeat, [&] {
    transform.forward({reinterpret_cast<const std::byte*>(from.data()), format, width, height, stride}, dwt, 8, stream);
  });
  // The forward transform gives rounded coefficients; the inverse of the float transform takes floats.
  copy(transform.bands().data[0], from.data(), std::min(size, transform.bytes() / 4), cudaMemcpyDeviceToDevice, stream);
  t.inverse = time_on(stream, repeat, [&] {
    transform.inverse(dwt, 8, -(1 << 15), 1 << 15,
                      {reinterpret_cast<std::byte*>(to.data()), format, width, height, stride}, stream);
  });
  t.download = time_on(stream, repeat, [&] { copy(host.data(), to.data(), size, cudaMemcpyDeviceToHost, stream); });
  return t;
}

}  // namespace trivelet::gpu
