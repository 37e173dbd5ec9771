// Estimates of sizes from coefficients: what cells take, that they are near what the coder takes, the same for any
// threads and instruction set, and that a GOP is coded from the coefficients that were estimated.

#include "codec/entropy/fast/size_estimate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <iterator>
#include <memory>
#include <string>
#include <tuple>

#include "codec/backend.h"
#include "codec/encoder/encoder_params.h"
#include "codec/measure/size_sample.h"
#include "tests/support/rate_support.h"

namespace trivelet {
namespace {

using namespace test;

StreamHeader header_of(const Clip& clip) {
  CodingParams p = params_of(Profile::kFast, 9);
  p.quality = 50;
  return make_header(clip.info, resolve(clip.info, p));
}

GopChoices choices_of(float step) {
  GopChoices choices;
  choices.step = step;
  choices.by_plane = true;
  return choices;
}

/// The bytes of components [first, end).
double bytes_of(const CodedGop& coded, int first, int end) {
  double bits = 0;
  for (int c = first; c < end; ++c)
    for (const CodedBlock& block : coded.components[static_cast<std::size_t>(c)].blocks)
      for (const std::uint32_t n : block.bits) bits += n;
  return bits / 8;
}

CodedGop coded_by(GopEncoder& encoder, const Gop& gop, const GopChoices& choices, bool again) {
  again ? encoder.push_again(gop, choices) : encoder.push(gop, choices);
  CodedGop coded;
  EXPECT_TRUE(encoder.pull(coded));
  return coded;
}

TEST(SizeEstimate, ClassesAreHalfOctaves) {
  const float steps[] = {0, 0.5f, 0.99f, 1, 1.49f, 1.5f, 1.99f, 2, 2.99f, 3, 3.99f, 4, -6, 1e30f, NAN};
  const std::uint32_t classes[] = {0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 6, kMagnitudeClasses - 1, kMagnitudeClasses - 1};
  for (std::size_t i = 0; i < std::size(steps); ++i) EXPECT_EQ(magnitude_class(2 * steps[i], 0.5f), classes[i]) << i;
}

// 16 coefficients: 8 of class 0, 4 of 1 and 2 (one plane), 4 of 3 (two planes). Their entropy is 24 bits, their planes
// take 12. At 1.5 and 2 times the step fewer remain.
TEST(SizeEstimate, ACellTakesEntropyAndPlanes) {
  const std::vector<std::uint32_t> entropy = entropy_table(16);
  EXPECT_EQ(entropy[1], 0u);
  EXPECT_EQ(entropy[8], 24u << SizeEstimate::kFraction);
  EXPECT_EQ(entropy[3], 1217u);  // 4.755
  std::uint32_t counts[kMagnitudeClasses] = {0, 3, 1, 4};
  EXPECT_EQ(cell_bits(counts, 4, 16, 0, entropy.data()), (24u + 12u) << SizeEstimate::kFraction);
  EXPECT_EQ(cell_bits(counts, kMagnitudeClasses, 16, 0, entropy.data()), (24u + 12u) << SizeEstimate::kFraction);
  const auto five = static_cast<double>(cell_bits(counts, 4, 16, 1, entropy.data())) / (1 << SizeEstimate::kFraction);
  EXPECT_NEAR(five, 5 + 16 * 4 - 5 * std::log2(5) - 11 * std::log2(11), 0.01);
  const auto four = static_cast<double>(cell_bits(counts, 4, 16, 2, entropy.data())) / (1 << SizeEstimate::kFraction);
  EXPECT_NEAR(four, 4 + 16 * 4 - 4 * std::log2(4) - 12 * std::log2(12), 0.01);
  EXPECT_EQ(cell_bits(counts, 4, 16, 3, entropy.data()), 0u);
}

TEST(SizeEstimate, CurvesGoThroughTheirSizes) {
  SizeEstimate estimate;
  estimate.step = 2;
  for (int i = 0; i < SizeEstimate::kSteps; ++i)
    estimate.bits[static_cast<std::size_t>(i)] = std::uint64_t{1'000'000} << SizeEstimate::kFraction >> i;
  SizeCurve curve;
  curve.add(estimate, 1);
  const double finest = curve.bytes(2);
  EXPECT_NEAR(finest, 1e6 / 8 / 1.036, 1);
  EXPECT_NEAR(curve.bytes(3) / finest, 0.5, 1e-4);
  EXPECT_NEAR(curve.bytes(4) / finest, 0.25, 1e-4);
  EXPECT_NEAR(curve.bytes(64) / finest, std::exp2(-10), 1e-5);
  EXPECT_NEAR(curve.bytes(2 / 1.5) / finest, 2, 1e-3);  // extrapolated
  EXPECT_NEAR(curve.bytes(2 * std::sqrt(1.5)) / finest, std::sqrt(0.5), 1e-4);
  curve.add(estimate, 0.5);
  EXPECT_NEAR(curve.bytes(2) / finest, 1.5, 1e-9);
}

TEST(SizeEstimate, IsNearWhatTheCoderTakes) {
  for (const char* format : {"gray", "yuv420p", "gbrp", "yuv444p10"})
    for (const Pattern pattern : {Pattern::kTexture, Pattern::kNoise}) {
      const Clip clip = make_clip(video(333, 190, format, 9), 9, 9, pattern, 5);
      const StreamHeader header = header_of(clip);
      const Gop& gop = clip.gops[0];
      const auto encoder = cpu_backend().make_encoder(header, {});
      const float base = header.video.format.bits > 8 ? 8 : 2;
      SizeCurve curve;
      curve.add(encoder->estimate_sizes(gop, choices_of(base), false), 1);
      EXPECT_EQ(curve.finest(), static_cast<double>(base));
      const int end = estimated_components(header);
      SizeCurve whole = curve;
      ThreadPool pool(2);
      sample_sizes(header, gop, choices_of(base), SimdLevel::kBest, pool, whole);
      for (const float octaves : {0.0f, 0.3f, 1.0f, 2.2f, 3.0f}) {
        SCOPED_TRACE(std::string(format) + ", pattern " + std::to_string(static_cast<int>(pattern)) + ", octaves " +
                     std::to_string(octaves));
        const float step = base * std::exp2(octaves);
        const CodedGop coded = coded_by(*encoder, gop, choices_of(step), false);
        const double actual = bytes_of(coded, 0, end);
        EXPECT_NEAR(curve.bytes(static_cast<double>(step)) / actual, 1, 0.15);  // noise takes more than its entropy
        if (end == gop.components()) continue;
        const double others = bytes_of(coded, end, gop.components());
        const double estimated = whole.bytes(static_cast<double>(step)) - curve.bytes(static_cast<double>(step));
        EXPECT_NEAR(estimated / others, 1, 0.25);
      }
    }
}

TEST(SizeEstimate, ThreadsAndInstructionSetsDoNotMatter) {
  for (const char* format : {"gray12", "gbrp"}) {
    const Clip clip = make_clip(video(171, 93, format, 7), 7, 9, Pattern::kTexture, 5);
    const StreamHeader header = header_of(clip);
    const auto estimate = [&](int threads, SimdLevel simd) {
      const auto encoder = cpu_backend().make_encoder(header, {threads, simd});
      const SizeEstimate e = encoder->estimate_sizes(clip.gops[0], choices_of(1), false);
      EXPECT_EQ(encoder->estimate_sizes(clip.gops[0], choices_of(1), true).bits, e.bits);
      return e.bits;
    };
    const auto reference = estimate(1, SimdLevel::kScalar);
    EXPECT_GT(reference[0], 1000u);
    EXPECT_EQ(estimate(3, SimdLevel::kBest), reference);
    EXPECT_EQ(estimate(2, SimdLevel::kScalar), reference);
  }
}

// Samples come to the coder once: the second time they are others, and what is coded are the first.
TEST(SizeEstimate, AGopIsCodedFromWhatWasEstimated) {
  const Clip clip = make_clip(video(171, 93, "gray", 7), 7, 9, Pattern::kTexture, 5);
  const Clip others = make_clip(video(171, 93, "gray", 7), 7, 9, Pattern::kNoise, 6);
  const StreamHeader header = header_of(clip);
  const auto encoder = cpu_backend().make_encoder(header, {});
  const CodedGop expected = coded_by(*encoder, clip.gops[0], choices_of(3), false);
  (void)encoder->estimate_sizes(clip.gops[0], choices_of(1), false);
  const CodedGop coded = coded_by(*encoder, others.gops[0], choices_of(3), true);
  ASSERT_EQ(coded.components[0].blocks.size(), expected.components[0].blocks.size());
  for (std::size_t i = 0; i < coded.components[0].blocks.size(); ++i) {
    EXPECT_EQ(coded.components[0].blocks[i].bytes, expected.components[0].blocks[i].bytes) << i;
    EXPECT_EQ(coded.components[0].blocks[i].bits, expected.components[0].blocks[i].bits) << i;
  }
  const CodedGop next = coded_by(*encoder, others.gops[0], choices_of(3), false);  // and the next one from its own
  EXPECT_NE(next.components[0].blocks[0].bytes, expected.components[0].blocks[0].bytes);
}

/// Counts what is asked of the CPU encoder.
class CountingEncoder final : public GopEncoder {
 public:
  CountingEncoder(const StreamHeader& header, const BackendOptions& options, int& codings)
      : coder_(cpu_backend().make_encoder(header, options)), codings_(codings) {}
  int depth() const override { return coder_->depth(); }
  void push(const Gop& gop, const GopChoices& choices) override {
    ++codings_;
    coder_->push(gop, choices);
  }
  void push_again(const Gop& gop, const GopChoices& choices) override {
    ++codings_;
    coder_->push_again(gop, choices);
  }
  SizeEstimate estimate_sizes(const Gop& gop, const GopChoices& choices, bool again) override {
    return coder_->estimate_sizes(gop, choices, again);
  }
  void push(CoefficientGop&, const GopChoices&) override { FAIL(); }
  void transform(const Gop&, const GopChoices&, CoefficientGop&) override { FAIL(); }
  bool pull(CodedGop& out) override { return coder_->pull(out); }
  double seconds_transform() const override { return coder_->seconds_transform(); }
  double seconds_coder() const override { return coder_->seconds_coder(); }

 private:
  std::unique_ptr<GopEncoder> coder_;
  int& codings_;
};

// Small and large pictures. A first GOP whose size is not known well enough before would be coded several times.
TEST(SizeEstimate, EveryGopIsCodedOnce) {
  for (const int gops : {1, 3})
    for (const auto& [width, height, format] :
         {std::tuple{96, 64, "yuv420p"}, std::tuple{400, 260, "yuv420p"}, std::tuple{200, 120, "gbrp"}}) {
      SCOPED_TRACE(std::to_string(width) + ", GOPs " + std::to_string(gops));
      const Clip clip = make_clip(video(width, height, format, static_cast<std::uint64_t>(8 * gops)), 8 * gops, 8,
                                  Pattern::kTexture, 5);
      CodingParams p = params_of(Profile::kFast, 8);
      p.quality = 50;
      const Stream wanted = encode(clip, p);
      p.target_bytes = wanted.size();
      int codings = 0;
      Backend counting = cpu_backend();
      counting.make_encoder = [&](const StreamHeader& h, const BackendOptions& o) {
        return std::make_unique<CountingEncoder>(h, o, codings);
      };
      MemorySink sink;
      Encoder encoder(clip.info, p, sink, &counting);
      for (const Gop& gop : clip.gops) encoder.push(gop);
      encoder.finish();
      EXPECT_EQ(codings, gops);
      EXPECT_LE(sink.bytes.size(), wanted.size());
      EXPECT_GE(static_cast<double>(sink.bytes.size()), 0.995 * static_cast<double>(wanted.size()));
      EXPECT_TRUE(sink.bytes == encode(clip, p));
      EXPECT_LT(decibels(mse_of(clip, sink.bytes) / mse_of(clip, wanted)), 0.4);
    }
}

}  // namespace
}  // namespace trivelet
