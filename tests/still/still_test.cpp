// CCSDS 122.0-B-2 against the published streams: encoder byte for byte, decoder exact or within the PSNR rule.
#include <gtest/gtest.h>

#include "codec/still/ccsds122/ccsds122.h"
#include "tests/support/ccsds_support.h"
#include "tests/support/one_of.h"

using namespace trivelet;
using namespace ccsds_test;
namespace fs = std::filesystem;

namespace {

class Ccsds122Vectors : public ::testing::TestWithParam<SimdLevel> {
 protected:
  void SetUp() override {
    folder_ = vectors_folder();
    if (folder_.empty())
      GTEST_SKIP() << "no test vectors: set TRIVELET_DATA_ROOT to the folder that holds ccsds122/vectors";
    if (GetParam() > detected_simd()) GTEST_SKIP() << "this machine has no " << to_string(GetParam());
    for (const std::string& name : vector_names(folder_)) {
      const bool turn = all_++ % (static_cast<int>(detected_simd()) + 1) == static_cast<int>(GetParam());
      if (turn || trivelet::test::full()) names_.push_back(name);
    }
    ASSERT_EQ(all_, 72);
  }
  fs::path folder_;
  int all_ = 0;
  /// Each vector by one of the instruction sets that this machine has, or by all of them.
  std::vector<std::string> names_;
};

TEST_P(Ccsds122Vectors, EncoderIsByteExact) {
  ThreadPool pool(2);
  std::size_t count = 0;
  for (const std::string& name : names_) {
    Vector v = load_vector(folder_, name);
    v.params.simd = GetParam();
    const ccsds122::Encoded e = ccsds122::encode(v.picture.view(), v.params, pool);
    EXPECT_TRUE(e.bytes == v.stream)
        << name << ": " << e.bytes.size() << " bytes, " << v.stream.size() << " expected, first difference at "
        << std::mismatch(e.bytes.begin(), e.bytes.end(), v.stream.begin(), v.stream.end()).first - e.bytes.begin();
    count += e.bytes == v.stream;
  }
  EXPECT_EQ(count, names_.size());
}

TEST_P(Ccsds122Vectors, DecoderIsExactOrWithinTheRule) {
  ThreadPool pool(2);
  std::size_t count = 0;
  for (const std::string& name : names_) {
    Vector v = load_vector(folder_, name);
    ccsds122::DecodeParams params;
    params.simd = GetParam();
    params.keep_damaged = false;
    const ccsds122::Decoded d = ccsds122::decode(v.stream, params, pool);
    const Picture p = of(d);
    ASSERT_EQ(p.width, v.picture.width) << name;
    ASSERT_EQ(p.height, v.picture.height) << name;
    EXPECT_TRUE(d.intact()) << name;
    EXPECT_EQ(d.trailing_bytes, 0U) << name;
    if (json_value(v.json, "decoded") == "identical to input") {
      EXPECT_TRUE(p.samples == v.picture.samples) << name;
      count += p.samples == v.picture.samples;
    } else {
      // The smaller of the PSNRs that the vector lists.
      const std::string listed = json_value(v.json, "psnr_dB");
      double least = 1000;
      for (const char* key : {"independent_decoder", "reference_decoder"})
        if (!json_value(listed, key).empty()) least = std::min(least, std::atof(json_value(listed, key).c_str()));
      ASSERT_LT(least, 1000) << name;
      const double own = psnr(v.picture, p);
      EXPECT_GE(own, least - 0.1) << name;
      count += own >= least - 0.1;
    }
    // With the segments' lengths: the same picture.
    const auto segments = ccsds122::inspect(v.stream, params, pool);
    std::vector<std::uint32_t> lengths;
    for (const auto& s : segments) lengths.push_back(s.bytes);
    params.segment_bytes = lengths;
    EXPECT_TRUE(ccsds122::decode(v.stream, params, pool).samples == d.samples) << name;
  }
  EXPECT_EQ(count, names_.size());
}

INSTANTIATE_TEST_SUITE_P(Levels, Ccsds122Vectors,
                         ::testing::Values(SimdLevel::kScalar, SimdLevel::kAvx2, SimdLevel::kAvx512),
                         [](const auto& level) { return to_string(level.param); });

}  // namespace
