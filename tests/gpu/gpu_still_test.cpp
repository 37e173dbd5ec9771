// Still codecs of the papers on the GPU against the CPU: 2D DWT, dct and vstc. Built for the emulation and for a GPU.
#include <gtest/gtest.h>

#include "apps/bench/papers_dwt2d.h"
#include "apps/bench/papers_dwt2d_gpu.h"
#include "gpu/device/device.h"
#include "gpu/still/dct.h"
#include "gpu/still/real_fft.h"
#include "gpu/still/vstc.h"
#include "tests/support/one_of.h"
#include "tests/support/still_support.h"

using namespace trivelet;
using gpu::Dwt2d;
using gpu::Dwt2dMethod;
using test::picture;
using test::texture;

namespace {

constexpr Dwt2dMethod kMethods[] = {Dwt2dMethod::kConv, Dwt2dMethod::kMem, Dwt2dMethod::kText, Dwt2dMethod::kSep,
                                    Dwt2dMethod::kOwn};

void expect_reference(Dwt2dMethod method, int w, int h, int levels, const gpu::Dwt2dBlocks& blocks) {
  const std::vector<double> in = texture(w, h), expected = papers_dwt2d::reference(in, w, h, levels);
  const std::vector<float> picture(in.begin(), in.end());
  const gpu::Stream stream;
  Dwt2d transform(method, w, h, levels, blocks);
  transform.upload(picture.data(), stream);
  transform.run(stream);
  const std::vector<float> result = transform.result(stream);
  ASSERT_EQ(result.size(), expected.size());
  for (std::size_t i = 0; i < result.size(); ++i)
    ASSERT_NEAR(result[i], expected[i], 1e-5)
        << gpu::name_of(method) << " " << w << "x" << h << ", " << levels << " levels, at " << i;
}

class GpuStill : public testing::Test {
 protected:
  void SetUp() override {
    if (gpu::device_count() == 0) GTEST_SKIP() << "no GPU";
  }
};

TEST_F(GpuStill, EveryWayOfTheDwtGivesTheReferencesCoefficients) {
  for (const Dwt2dMethod m : kMethods)
    for (const auto& [w, h, levels] :
         {std::tuple{2, 2, 1}, {4, 8, 2}, {16, 6, 1}, {64, 48, 3}, {40, 96, 3}, {256, 130, 1}})
      expect_reference(m, w, h, levels, {});
}

TEST_F(GpuStill, EveryBlockSizeOfTheDwtGivesTheSame) {
  for (std::size_t i = 0; i < std::size(gpu::kRowBlocks); ++i)
    expect_reference(Dwt2dMethod::kSep, 150, 70, 1, {gpu::kRowBlocks[i], gpu::kColumnBlocks[i]});
  EXPECT_THROW(Dwt2d(Dwt2dMethod::kSep, 64, 64, 1, {100, 64}), Error);
  EXPECT_THROW(Dwt2d(Dwt2dMethod::kSep, 64, 64, 1, {256, 512}), Error);
}

TEST_F(GpuStill, SidesThatDoNotDivideAreRefused) {
  for (const Dwt2dMethod m : kMethods) EXPECT_THROW(Dwt2d(m, 12, 12, 3), Error);
}

TEST_F(GpuStill, MemoryOfTheDwtIsThatOfTheMethod) {
  const std::size_t picture = 128 * 64 * sizeof(float);
  EXPECT_EQ(Dwt2d(Dwt2dMethod::kConv, 128, 64, 1).device_bytes(), picture);
  for (const Dwt2dMethod m : {Dwt2dMethod::kMem, Dwt2dMethod::kText, Dwt2dMethod::kSep})
    EXPECT_EQ(Dwt2d(m, 128, 64, 1).device_bytes(), 2 * picture);
}

// ------------------------------------------------------------------------------------------------------------- dct

constexpr gpu::DctWay kWays[] = {gpu::DctWay::kFolded, gpu::DctWay::kMirror};

class GpuDct : public GpuStill {
 protected:
  void SetUp() override {
    GpuStill::SetUp();
    if (!gpu::have_fft()) GTEST_SKIP() << "no cuFFT, no GPU for dct";
  }
};

TEST_F(GpuDct, TransformsEqualTheCpus) {
  ThreadPool pool(1);
  const auto own = dct::make_own_transform(pool);
  for (const gpu::DctWay way : kWays) {
    const auto transform = gpu::make_dct_transform(0, way);
    for (const auto& [w, h] : {std::pair{1, 1}, {1, 7}, {2, 2}, {3, 5}, {8, 64}, {17, 16}, {100, 33}, {37, 40}}) {
      std::vector<double> in = texture(w, h), expected = in;
      for (double& v : in) v *= 256;
      expected = in;
      own->forward(expected.data(), w, h);
      std::vector<double> out = in;
      transform->forward(out.data(), w, h);
      for (std::size_t i = 0; i < out.size(); ++i) ASSERT_NEAR(out[i], expected[i], 1e-9) << w << "x" << h;
      transform->inverse(out.data(), w, h);
      for (std::size_t i = 0; i < out.size(); ++i) ASSERT_NEAR(out[i], in[i], 1e-9) << w << "x" << h;
    }
  }
}

TEST_F(GpuDct, StreamsAndPicturesAreTheCpus) {
  ThreadPool pool(1);
  const auto own = dct::make_own_transform(pool);
  for (const gpu::DctWay way : kWays) {
    const auto transform = gpu::make_dct_transform(0, way);
    for (const auto& image : {picture(40, 33, ColourModel::kGrey, 8, 0), picture(30, 21, ColourModel::kYuv, 8, 1),
                              picture(16, 40, ColourModel::kRgb, 12, 0), picture(1, 30, ColourModel::kGrey, 16, 0)})
      for (const double keep : {1.0, 0.4, 0.0}) {
        const dct::Params params{.qp = 12, .keep = keep};
        const std::vector<std::byte> stream = dct::encode(image, params, *transform);
        EXPECT_EQ(stream, dct::encode(image, params, *own));
        EXPECT_EQ(dct::decode(stream, {}, *transform).samples, dct::decode(stream, {}, *own).samples);
      }
  }
}

// ------------------------------------------------------------------------------------------------------------ vstc

/// Waves, an edge, a texture, noise: all kinds of blocks.
still::Image scene(int width, int height, ColourModel model, int bits, int subsampled) {
  still::Image image = picture(width, height, model, bits, subsampled);
  std::uint32_t state = 3;
  for (int c = 0; c < image.components(); ++c)
    for (int y = 0; y < image.format.component_height(height, c); ++y)
      for (int x = 0; x < image.format.component_width(width, c); ++x) {
        state = state * 1664525U + 1013904223U;
        int v = image.sample(c, x, y) / 2 + (2 * x + y > width ? 1 << (bits - 2) : 0);
        if (y > height / 2) v += static_cast<int>(state >> 26) << (bits - 8);
        image.set_sample(c, x, y, v);
      }
  return image;
}

struct VstcCase {
  int width, height;
  ColourModel model;
  int bits, subsampled;
  vstc::Params params;
};

TEST_F(GpuStill, VstcsStreamIsTheCpus) {
#if defined(TRIVELET_CUDA_EMULATION)
  const bool native = false;
#else
  const bool native = true;
#endif
  using vstc::Effort;
  std::vector<VstcCase> cases = {
      {8, 8, ColourModel::kGrey, 8, 0, {.qp = 4, .log2_block = 4, .effort = Effort::kFast}},
      {8, 4, ColourModel::kYuv, 8, 1, {.qp = 24, .log2_block = 5}},
      {8, 4, ColourModel::kRgb, 10, 0, {.qp = 30, .log2_block = 4, .effort = Effort::kFast, .optimise_levels = false}},
      {4, 4, ColourModel::kGrey, 8, 0, {.qp = 33, .log2_block = 4, .effort = Effort::kFull}},
  };
  if (native || test::full()) {
    cases.push_back({20, 4, ColourModel::kGrey, 8, 0, {.qp = 27, .log2_block = 4}});
    cases.push_back({4, 20, ColourModel::kGrey, 8, 0, {.qp = 20, .log2_block = 4}});
  }
  if (native) {
    for (const int log2_block : {4, 5, 6})
      for (const int qp : {4, 30, 51}) {
        cases.push_back({100, 70, ColourModel::kGrey, 8, 0, {.qp = qp, .log2_block = log2_block}});
        cases.push_back(
            {70, 50, ColourModel::kYuv, 8, 1, {.qp = qp, .log2_block = log2_block, .effort = Effort::kFast}});
        cases.push_back({66, 34, ColourModel::kRgb, 12, 0, {.qp = qp, .log2_block = log2_block}});
      }
    cases.push_back({64, 48, ColourModel::kYuv, 8, 0, {.qp = 27, .log2_block = 5, .effort = Effort::kFull}});
  }
  ThreadPool pool(0);
  for (const VstcCase& c : cases) {
    const still::Image image = scene(c.width, c.height, c.model, c.bits, c.subsampled);
    EXPECT_EQ(vstc::encode_waves(image, c.params, gpu::make_vstc_search(0)).bytes,
              vstc::encode(image, c.params, pool).bytes)
        << c.width << "x" << c.height << ", " << image.components() << " planes, block 2^" << c.params.log2_block
        << ", QP " << c.params.qp;
  }
}

TEST_F(GpuStill, VstcRefusesWhatItWouldIgnore) {
  EXPECT_THROW(
      vstc::encode_waves(scene(16, 16, ColourModel::kGrey, 8, 0), {.remember = false}, gpu::make_vstc_search(0)),
      Error);
}

}  // namespace
