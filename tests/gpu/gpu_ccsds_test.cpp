// CCSDS 122.0 on the device against codec/still: every coefficient, sample and byte.
//
// Built twice, emulated on the CPU and for a GPU, skipped if there is none.
#include <gtest/gtest.h>

#include <random>

#include "codec/still/ccsds122/ccsds122_dwt.h"
#include "gpu/still/ccsds122_decode.h"
#include "gpu/still/ccsds122_dwt.h"
#include "gpu/still/ccsds122_encode.h"
#include "tests/support/ccsds_support.h"

namespace trivelet::gpu {
namespace {

using namespace ccsds_test;
using ccsds122::Dwt;

#if defined(TRIVELET_CUDA_EMULATION)
constexpr bool kEmulated = true;
#else
constexpr bool kEmulated = false;
#endif

/// Cases of a property test; TRIVELET_GPU_CASES in the environment for fewer (compute-sanitizer) or more.
int case_count(int emulated, int device) {
  const char* asked = std::getenv("TRIVELET_GPU_CASES");
  return asked ? std::atoi(asked) : kEmulated ? emulated : device;
}

class GpuCcsds : public ::testing::Test {
 protected:
  void SetUp() override {
    if (device_count() == 0) GTEST_SKIP() << "no GPU";
  }
};

/// A picture on the device with rows `stride` bytes apart.
DeviceBuffer<std::byte> upload(const VolumeView& v, std::ptrdiff_t stride, const Stream& stream) {
  const auto height = static_cast<std::size_t>(v.shape.height);
  DeviceBuffer<std::byte> b(static_cast<std::size_t>(stride) * height);
  check(cudaMemcpy2DAsync(
            b.data(), static_cast<std::size_t>(stride), v.row(0, 0), static_cast<std::size_t>(v.row_stride),
            static_cast<std::size_t>(v.shape.width * v.bytes_per_sample), height, cudaMemcpyHostToDevice, stream.get()),
        "cudaMemcpy2DAsync");
  stream.synchronize();
  return b;
}

/// A band without what lies between its rows.
std::vector<std::int32_t> download_band(const DeviceBands& b, int band, const Stream& stream) {
  const int scale = 8 >> band_level(band);
  const std::size_t w = static_cast<std::size_t>(b.blocks_wide * scale);
  const std::size_t h = static_cast<std::size_t>(b.blocks_high * scale);
  const std::size_t pitch = static_cast<std::size_t>(b.pitch[band_level(band) - 1]);
  std::vector<std::int32_t> out(w * h);
  check(cudaMemcpy2DAsync(out.data(), 4 * w, b.data[band], 4 * pitch, 4 * w, h, cudaMemcpyDeviceToHost, stream.get()),
        "cudaMemcpy2DAsync");
  stream.synchronize();
  return out;
}

void transform_case(std::mt19937& rng, int width, int height, int bits, bool is_signed, Dwt dwt, int slack) {
  SCOPED_TRACE(std::to_string(width) + "x" + std::to_string(height) + (is_signed ? " s" : " u") + std::to_string(bits) +
               (dwt == Dwt::kFloat ? " float" : " integer"));
  Picture p = random_picture(rng, width, height, bits, is_signed, static_cast<Content>(rng() % 5));
  const VolumeView view = p.view();
  const int wide = (width + 7) / 8, high = (height + 7) / 8;
  ThreadPool pool(1);
  const ccsds122::Kernels& k = ccsds122::kernels(SimdLevel::kScalar);
  const ccsds122::Subbands expected(wide, high);
  ccsds122::forward_dwt(view, dwt, bits, expected, k, pool);

  Stream stream;
  Ccsds122Transform transform(wide, high);
  const std::ptrdiff_t stride = view.row_stride + slack;
  const DeviceBuffer<std::byte> in = upload(view, stride, stream);
  const SampleType format = sample_type_of(view.bytes_per_sample, is_signed);
  transform.forward({in.data(), format, width, height, stride}, dwt, bits, stream);
  for (int b = 0; b < ccsds122::kBands; ++b) {
    const std::vector<std::int32_t> got = download_band(transform.bands(), b, stream);
    ASSERT_EQ(std::memcmp(got.data(), expected.view().data[b], got.size() * 4), 0) << "band " << b;
  }

  // Back from values that no forward transform made.
  std::vector<std::int32_t> samples(static_cast<std::size_t>(width) * static_cast<std::size_t>(height));
  const std::int64_t low = is_signed ? -(std::int64_t{1} << (bits - 1)) : 0;
  const std::int64_t top = (std::int64_t{1} << (is_signed ? bits - 1 : bits)) - 1;
  for (int b = 0; b < ccsds122::kBands; ++b) {
    const int scale = 8 >> band_level(b);
    const std::size_t w = static_cast<std::size_t>(wide * scale), h = static_cast<std::size_t>(high * scale);
    std::int32_t* v = expected.view().data[b];
    for (std::size_t i = 0; i < w * h; ++i) {
      v[i] += static_cast<std::int32_t>(rng() % 7) - 3;
      if (dwt == Dwt::kFloat) {
        const float f = static_cast<float>(v[i]) + 0.1F * static_cast<float>(rng() % 8);
        std::memcpy(v + i, &f, 4);
      }
    }
    check(cudaMemcpy2DAsync(transform.bands().data[b],
                            4 * static_cast<std::size_t>(transform.bands().pitch[band_level(b) - 1]), v, 4 * w, 4 * w,
                            h, cudaMemcpyHostToDevice, stream.get()),
          "cudaMemcpy2DAsync");
  }
  Picture back = p;
  std::fill(back.samples.begin(), back.samples.end(), 0);
  back.view();
  MutableVolumeView to;
  to.data = back.bytes.data();
  to.shape = view.shape;
  to.bytes_per_sample = view.bytes_per_sample;
  to.row_stride = view.row_stride;
  to.is_signed = is_signed;
  ccsds122::inverse_dwt(expected, dwt, bits, low, top, to, k, pool);
  const DeviceBuffer<std::byte> out(static_cast<std::size_t>(stride) * static_cast<std::size_t>(height));
  transform.inverse(dwt, bits, low, top, {out.data(), format, width, height, stride}, stream);
  std::vector<std::byte> got(back.bytes.size());
  const std::size_t row = static_cast<std::size_t>(view.row_stride);
  check(cudaMemcpy2DAsync(got.data(), row, out.data(), static_cast<std::size_t>(stride), row,
                          static_cast<std::size_t>(height), cudaMemcpyDeviceToHost, stream.get()),
        "cudaMemcpy2DAsync");
  stream.synchronize();
  ASSERT_TRUE(got == back.bytes);
}

TEST_F(GpuCcsds, TransformBits) {
  std::mt19937 rng(1);
  const std::pair<int, int> sizes[] = {{17, 17},  {24, 24},  {25, 31},  {40, 57},  {123, 20},
                                       {120, 25}, {241, 19}, {57, 300}, {244, 130}};
  int turn = 0;
  for (const auto& [w, h] : sizes)
    for (const Dwt dwt : {Dwt::kFloat, Dwt::kInteger}) {
      const int bits[] = {8, 12, 16, 20, 1, 25};
      const int b = bits[turn % 6];
      transform_case(rng, w, h, b, turn % 3 == 1, dwt, turn % 4 * (b <= 8 ? 1 : b <= 16 ? 2 : 4));
      if (HasFatalFailure()) return;
      ++turn;
    }
  if (kEmulated) return;
  for (const auto& [w, h] : {std::pair{1024, 1024}, {4097, 1031}, {640, 2049}})
    for (const Dwt dwt : {Dwt::kFloat, Dwt::kInteger})
      for (const int b : {8, 16, 22}) {
        transform_case(rng, w, h, b, b == 16, dwt, 0);
        if (HasFatalFailure()) return;
      }
}

/// The stream of a picture on the device.
ccsds122::Encoded encode_on_device(const VolumeView& view, const ccsds122::Params& params) {
  Stream stream;
  const SampleType format = sample_type_of(view.bytes_per_sample, view.is_signed);
  Ccsds122Encoder encoder(view.shape.width, view.shape.height, format, params);
  const DeviceBuffer<std::byte> in = upload(view, view.row_stride, stream);
  encoder.start({in.data(), format, view.shape.width, view.shape.height, view.row_stride}, stream);
  encoder.finish(stream);
  ccsds122::Encoded e;
  e.segment_bytes = encoder.segment_bytes();
  e.bytes.resize(encoder.size());
  copy(e.bytes.data(), encoder.bytes(), e.bytes.size(), cudaMemcpyDeviceToHost, stream);
  stream.synchronize();
  return e;
}

TEST_F(GpuCcsds, EncoderBytes) {
  std::mt19937 rng(20);
  ThreadPool pool(1);
  int refused = 0;
  const int cases = case_count(90, 3000);
  for (int i = 0; i < cases; ++i) {
    Case c = make_case(rng, kEmulated && i % 10 ? 56 : 100);
    SCOPED_TRACE("case " + std::to_string(i) + ": " + describe(c));
    const VolumeView view = c.picture.view();
    ccsds122::Encoded expected;
    try {
      expected = ccsds122::encode(view, c.params, pool);
    } catch (const Error& error) {
      EXPECT_THROW(encode_on_device(view, c.params), Error) << error.what();
      ++refused;
      continue;
    }
    const ccsds122::Encoded got = encode_on_device(view, c.params);
    ASSERT_EQ(got.segment_bytes, expected.segment_bytes);
    ASSERT_TRUE(got.bytes == expected.bytes)
        << "first difference at byte "
        << std::mismatch(got.bytes.begin(), got.bytes.end(), expected.bytes.begin()).first - got.bytes.begin() << " of "
        << expected.bytes.size();
  }
  EXPECT_LE(refused, cases / 10);
}

/// Decodes on both and compares pictures and reports, errors too.
void compare_decoders(std::span<const std::byte> stream, const ccsds122::DecodeParams& params,
                      Ccsds122Decoder& device) {
  ThreadPool pool(1);
  ccsds122::Decoded a, b;
  std::string error_a, error_b;
  try {
    a = ccsds122::decode(stream, params, pool);
  } catch (const Error& e) {
    error_a = e.what();
  }
  try {
    b = ccsds122::decode(stream, params, pool, device);
  } catch (const Error& e) {
    error_b = e.what();
  }
  ASSERT_EQ(error_b, error_a);
  ASSERT_EQ(b.width, a.width);
  ASSERT_EQ(b.height, a.height);
  ASSERT_EQ(b.ended, a.ended);
  ASSERT_EQ(b.trailing_bytes, a.trailing_bytes);
  ASSERT_EQ(b.segments.size(), a.segments.size());
  for (std::size_t i = 0; i < a.segments.size(); ++i) {
    const ccsds122::SegmentReport &x = a.segments[i], &y = b.segments[i];
    ASSERT_EQ(y.message, x.message) << i;
    ASSERT_EQ(y.state, x.state) << i;
    ASSERT_EQ(y.offset, x.offset) << i;
    ASSERT_EQ(y.bytes, x.bytes) << i;
    ASSERT_EQ(y.last_plane, x.last_plane) << i;
    ASSERT_EQ(y.limited, x.limited) << i;
    ASSERT_TRUE(y.header == x.header) << i;
  }
  ASSERT_TRUE(b.samples == a.samples);
}

TEST_F(GpuCcsds, DecoderPictures) {
  std::mt19937 rng(40);
  ThreadPool pool(1);
  Ccsds122Decoder device;
  const int cases = case_count(90, 3000);
  for (int i = 0; i < cases; ++i) {
    Case c = make_case(rng, kEmulated && i % 10 ? 56 : 100);
    SCOPED_TRACE("case " + std::to_string(i) + ": " + describe(c));
    ccsds122::Encoded e;
    try {
      e = ccsds122::encode(c.picture.view(), c.params, pool);
    } catch (const Error&) {
      continue;
    }
    ccsds122::DecodeParams params;
    if (i % 2) params.segment_bytes = e.segment_bytes;
    compare_decoders(e.bytes, params, device);
    if (HasFatalFailure()) return;
  }
}

TEST_F(GpuCcsds, Vectors) {
  const std::filesystem::path folder = vectors_folder();
  if (folder.empty()) GTEST_SKIP() << "no test vectors: set TRIVELET_DATA_ROOT";
  Ccsds122Decoder device;
  int count = 0;
  for (const std::string& name : vector_names(folder)) {
    SCOPED_TRACE(name);
    Vector v = load_vector(folder, name);
    if (kEmulated && v.picture.samples.size() > 3000) continue;  // emulation is slow
    const ccsds122::Encoded e = encode_on_device(v.picture.view(), v.params);
    EXPECT_TRUE(e.bytes == v.stream);
    compare_decoders(v.stream, {}, device);
    if (HasFatalFailure()) return;
    ++count;
  }
  if (!kEmulated) {
    EXPECT_EQ(count, 72);
  }
  EXPECT_GT(count, 0);
}

TEST_F(GpuCcsds, DamagedStreams) {
  std::mt19937 rng(60);
  ThreadPool pool(1);
  Ccsds122Decoder device;
  const int cases = case_count(5, 400);
  for (int i = 0; i < cases; ++i) {
    Case c = make_case(rng, 56);
    ccsds122::Encoded e;
    try {
      e = ccsds122::encode(c.picture.view(), c.params, pool);
    } catch (const Error&) {
      continue;
    }
    for (int k = 0; k < 4; ++k) {
      SCOPED_TRACE("case " + std::to_string(i) + "." + std::to_string(k) + ": " + describe(c));
      std::vector<std::byte> bytes = e.bytes;
      ccsds122::DecodeParams params;
      if (k % 2) params.segment_bytes = e.segment_bytes;
      if (k < 2) {
        bytes[rng() % bytes.size()] ^= static_cast<std::byte>(1U << rng() % 8);
      } else {
        bytes.resize(1 + rng() % bytes.size());
      }
      compare_decoders(bytes, params, device);
      if (HasFatalFailure()) return;
    }
  }
}

}  // namespace
}  // namespace trivelet::gpu
