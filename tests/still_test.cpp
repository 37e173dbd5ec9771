// CCSDS 122.0-B-2 against the published streams: encoder byte for byte, decoder exact or within the PSNR rule.
#include <gtest/gtest.h>

#include "ccsds_support.h"
#include "codec/still/ccsds122.h"

using namespace trivelet;
using namespace ccsds_test;
namespace fs = std::filesystem;

namespace {

struct Vector {
  std::string name, json;
  Picture picture;
  std::vector<std::byte> stream;
  ccsds122::Params params;
};

Vector load(const fs::path& folder, const std::string& name) {
  Vector v;
  v.name = name;
  const std::vector<std::byte> text = read_file(folder / (name + ".json"));
  v.json.assign(reinterpret_cast<const char*>(text.data()), text.size());
  const int bits = json_int(v.json, "bit_depth");
  const std::string image = json_value(v.json, "image");
  if (image.ends_with(".pgm")) {
    v.picture = read_pgm(folder / image, bits);
  } else {
    const std::vector<std::byte> raw = read_file(folder / image);
    v.picture = unpack(raw.data(), json_int(v.json, "width"), json_int(v.json, "height"), bits,
                       json_value(v.json, "signed") == "true", bits <= 16 ? 2 : 4, false);
  }
  v.stream = read_file(folder / json_value(v.json, "bitstream"));

  ccsds122::Params& p = v.params;
  p.dwt = json_value(v.json, "dwt") == "integer" ? ccsds122::Dwt::kInteger : ccsds122::Dwt::kFloat;
  p.bits = bits;
  p.is_signed = v.picture.is_signed;
  p.segment_blocks = static_cast<std::uint32_t>(json_int(v.json, "segment_size_S"));
  p.transpose = json_int(v.json, "TransposeImg") != 0;
  const int word = json_int(v.json, "CodeWordLength");
  p.word_bytes = 1 + (word >> 1) + 4 * (word & 1);
  p.optimal_dc = json_int(v.json, "OptDCSelect") != 0;
  p.optimal_ac = json_int(v.json, "OptACSelect") != 0;
  p.segment_bytes = static_cast<std::uint32_t>(json_int(v.json, "SegByteLimit"));
  p.dc_stop = json_int(v.json, "DCStop") != 0;
  p.bit_plane_stop = json_int(v.json, "BitPlaneStop");
  p.stage_stop = json_int(v.json, "StageStop");
  p.use_fill = json_int(v.json, "UseFill") != 0;
  p.every_header = json_value(v.json, "header_policy").ends_with("in every segment");
  p.custom_weights = json_int(v.json, "CustomWtFlag") != 0;
  if (p.custom_weights) {
    const std::string list = json_value(v.json, "CustomWt_HH1_HL1_LH1_HH2_HL2_LH2_HH3_HL3_LH3_LL3");
    std::size_t i = 0;
    for (const char c : list)
      if (c >= '0' && c <= '9') p.weights[i++] = static_cast<std::uint8_t>(c - '0');
  }
  return v;
}

std::vector<std::string> vector_names(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == ".json" && entry.path().filename() != "manifest.json")
      names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

class Ccsds122Vectors : public ::testing::TestWithParam<SimdLevel> {
 protected:
  void SetUp() override {
    folder_ = vectors_folder();
    if (folder_.empty())
      GTEST_SKIP() << "no test vectors: set TRIVELET_DATA_ROOT to the folder that holds ccsds122/vectors";
    if (GetParam() > detected_simd()) GTEST_SKIP() << "this machine has no " << to_string(GetParam());
  }
  fs::path folder_;
};

TEST_P(Ccsds122Vectors, EncoderIsByteExact) {
  ThreadPool pool(2);
  int count = 0;
  for (const std::string& name : vector_names(folder_)) {
    Vector v = load(folder_, name);
    v.params.simd = GetParam();
    const ccsds122::Encoded e = ccsds122::encode(v.picture.view(), v.params, pool);
    EXPECT_TRUE(e.bytes == v.stream)
        << name << ": " << e.bytes.size() << " bytes, " << v.stream.size() << " expected, first difference at "
        << std::mismatch(e.bytes.begin(), e.bytes.end(), v.stream.begin(), v.stream.end()).first - e.bytes.begin();
    count += e.bytes == v.stream;
  }
  EXPECT_EQ(count, 72);
}

TEST_P(Ccsds122Vectors, DecoderIsExactOrWithinTheRule) {
  ThreadPool pool(2);
  int count = 0;
  for (const std::string& name : vector_names(folder_)) {
    Vector v = load(folder_, name);
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
  EXPECT_EQ(count, 72);
}

INSTANTIATE_TEST_SUITE_P(Levels, Ccsds122Vectors,
                         ::testing::Values(SimdLevel::kScalar, SimdLevel::kAvx2, SimdLevel::kAvx512),
                         [](const auto& level) { return to_string(level.param); });

}  // namespace
