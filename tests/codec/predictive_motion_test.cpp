// Motion in the predictive profile: sub-pel interpolation against its definition, round trips of blocks and streams,
// the same bytes for every instruction set and number of threads, damaged codewords.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <tuple>

#include "codec/format/container.h"
#include "codec/predict/prediction_block.h"
#include "codec/predict/prediction_compensation.h"
#include "codec/predict/prediction_motion_kernels.h"
#include "tests/support/predictive_support.h"

namespace trivelet {
namespace {

using prediction::BlockMotion;
using prediction::Limits;
using prediction::MotionVector;
using prediction::Patch;
using test::block_of;
using test::block_video;
using test::encode_block;

std::vector<SimdLevel> all_levels() {
  std::vector<SimdLevel> levels{SimdLevel::kScalar};
  for (const SimdLevel l : {SimdLevel::kAvx2, SimdLevel::kAvx512})
    if (l <= detected_simd()) levels.push_back(l);
  return levels;
}

Limits limits_of(int bits) { return {-(1 << (bits - 1)), (1 << (bits - 1)) - 1}; }

TEST(PredictiveMotion, KernelsAgreeAtTheirLimits) {
  std::mt19937 random(1);
  constexpr int kStride = 90, kRows = 60;
  std::vector<std::int16_t> memory[3];
  const prediction::SubpelKernels& scalar = prediction::subpel_kernels(SimdLevel::kScalar);
  for (const int bits : {1, 8, 10, 11, 16}) {
    const Limits limits = limits_of(bits);
    for (auto& m : memory) {
      m.resize(kStride * kRows);
      for (auto& v : m)
        v = static_cast<std::int16_t>(random() % 3 ? (random() % 2 ? limits.low : limits.high)
                                                   : limits.low + static_cast<int>(random() % (1u << bits)));
    }
    const auto at = [&](std::size_t i) { return Patch{memory[i].data(), kStride}.moved(3, 5); };
    for (const SimdLevel level : all_levels()) {
      const prediction::SubpelKernels& k = prediction::subpel_kernels(level);
      for (const int w : {1, 7, 8, 16, 17, 33, 64})
        for (const int h : {1, 8, 16, 50}) {
          std::vector<std::int16_t> a(static_cast<std::size_t>(w * h)), b(a.size());
          std::vector<std::int32_t> scratch(static_cast<std::size_t>(w * (h + 5)));
          const auto same = [&](const char* what) { EXPECT_EQ(a, b) << what << " " << w << "x" << h; };
          scalar.half_x(at(0), w, h, limits, a.data());
          k.half_x(at(0), w, h, limits, b.data());
          same("half_x");
          scalar.half_y(at(0), w, h, limits, a.data());
          k.half_y(at(0), w, h, limits, b.data());
          same("half_y");
          scalar.half_xy(at(0), w, h, limits, scratch.data(), a.data());
          k.half_xy(at(0), w, h, limits, scratch.data(), b.data());
          same("half_xy");
          scalar.average(at(0), at(1), w, h, a.data());
          k.average(at(0), at(1), w, h, b.data());
          same("average");
          EXPECT_EQ(scalar.sad(at(0), at(1), w, h), k.sad(at(0), at(1), w, h)) << w << "x" << h;
          EXPECT_EQ(scalar.sad_to_average(at(0), at(1), at(2), w, h), k.sad_to_average(at(0), at(1), at(2), w, h))
              << w << "x" << h;
        }
    }
  }
}

/// A frame at quarters of samples, one at a time, as FORMAT.md says it.
class Between {
 public:
  Between(const std::vector<int>& frame, int height, int width, Limits limits)
      : frame_(frame), height_(height), width_(width), limits_(limits) {}

  int quarter(int y, int x) const {
    if (y % 2 == 0 && x % 2 == 0) return half(y / 2, x / 2);
    const int y0 = down(y - 1), y1 = down(y + 1), x0 = down(x - 1), x1 = down(x + 1);
    if (y % 2 == 0) return (half(y / 2, x0) + half(y / 2, x1) + 1) >> 1;
    if (x % 2 == 0) return (half(y0, x / 2) + half(y1, x / 2) + 1) >> 1;
    const bool even_y = y0 % 2 == 0, even_x = x0 % 2 == 0;
    return (half(even_y ? y0 : y1, even_x ? x1 : x0) + half(even_y ? y1 : y0, even_x ? x0 : x1) + 1) >> 1;
  }

 private:
  static int down(int v) { return v >> 1; }
  int whole(int y, int x) const {
    return frame_[static_cast<std::size_t>(std::clamp(y, 0, height_ - 1) * width_ + std::clamp(x, 0, width_ - 1))];
  }
  template <class F>
  static int six(const F& at) {
    constexpr int kTaps[6] = {1, -5, 20, 20, -5, 1};
    int sum = 0;
    for (int i = 0; i < 6; ++i) sum += kTaps[i] * at(i - 2);
    return sum;
  }
  int limited(int v) const { return std::clamp(v, limits_.low, limits_.high); }
  int half(int y2, int x2) const {
    const int y = y2 >> 1, x = x2 >> 1;
    if (y2 % 2 == 0 && x2 % 2 == 0) return whole(y, x);
    const auto along_x = [&](int row) { return six([&](int i) { return whole(row, x + i); }); };
    if (y2 % 2 == 0) return limited((along_x(y) + 16) >> 5);
    if (x2 % 2 == 0) return limited((six([&](int i) { return whole(y + i, x); }) + 16) >> 5);
    return limited((six([&](int i) { return along_x(y + i); }) + 512) >> 10);
  }

  const std::vector<int>& frame_;
  int height_;
  int width_;
  Limits limits_;
};

// Vectors of all lengths there are, most of them far outside.
TEST(PredictiveMotion, MovedFramesAreWhatIsDefined) {
  std::mt19937 random(2);
  const auto number = [&random](int low, int high) {
    return low + static_cast<int>(static_cast<std::uint32_t>(random()) % static_cast<std::uint32_t>(high - low + 1));
  };
  for (const SimdLevel level : all_levels()) {
    prediction::Compensator compensator(prediction::subpel_kernels(level));
    prediction::History history;
    for (const auto& [height, width] : {std::pair{1, 1}, {5, 40}, {33, 17}, {64, 70}})
      for (const int bits : {1, 8, 10, 16})
        for (const int cell : {3, 4, 6}) {
          const Limits limits = limits_of(bits);
          history.start(2, height, width);
          std::vector<int> frame, errors;
          for (int y = 0; y < height; ++y) {
            for (int x = 0; x < width; ++x) {
              frame.push_back(random() % 2 ? number(limits.low, limits.high) : random() % 2 ? limits.low : limits.high);
              errors.push_back(number(0, 4095));
              history.row(0, y)[x] = static_cast<std::int16_t>(frame.back());
              history.errors(0, y)[x] = static_cast<std::uint16_t>(errors.back());
            }
            history.begin_row(0, y);
            history.end_row(0, y);
          }
          BlockMotion motion;
          motion.log2_cell = cell;
          motion.moves = {0, 1};
          motion.start(2, height, width);
          MotionVector v;
          for (int i = 0; i < motion.rows * motion.columns; ++i) {
            const int reach = random() % 2 ? prediction::kMaxVector : 60;
            if (random() % 3)
              v = {static_cast<std::int16_t>(number(-reach, reach)), static_cast<std::int16_t>(number(-reach, reach))};
            motion.of(1)[i] = v;
          }
          const int slot = history.add_slot();
          compensator.make(history, motion, 1, limits, slot);
          compensator.move_errors(history, motion, 1);
          history.set_before(1, slot);
          const Between between(frame, height, width, limits);
          for (int y = 0; y < height; ++y) {
            for (int x = 0; x < width; ++x) {
              const MotionVector m = motion.of(1)[(y >> cell) * motion.columns + (x >> cell)];
              ASSERT_EQ(history.neighbour(1, y, 1, 0)[x], between.quarter(4 * y + m.y, 4 * x + m.x))
                  << m.x << ", " << m.y << " at " << x << ", " << y;
              const int from_y = std::clamp(y + ((m.y + 2) >> 2), 0, height - 1);
              const int from_x = std::clamp(x + ((m.x + 2) >> 2), 0, width - 1);
              ASSERT_EQ(history.errors_before(1, y)[x], errors[static_cast<std::size_t>(from_y * width + from_x)]);
            }
            const std::int16_t* row = history.neighbour(1, y, 1, 0);
            EXPECT_TRUE(row[-2] == row[0] && row[-1] == row[0] && row[width] == row[width - 1] &&
                        row[width + 1] == row[width - 1]);
          }
        }
  }
}

// ------------------------------------------------------------------------------------------------------------- blocks

/// Numbers that nothing tells, 0..1, a unit apart; between them smooth.
double texture(double x, double y) {
  const double x0 = std::floor(x), y0 = std::floor(y);
  const auto at = [&](int dy, int dx) {
    auto h = static_cast<std::uint32_t>(static_cast<int>(x0) + dx) * 0x9e3779b1u ^
             static_cast<std::uint32_t>(static_cast<int>(y0) + dy) * 0x85ebca77u;
    h = (h ^ h >> 15) * 0x2c1b3c6du;
    return static_cast<double>((h ^ h >> 13) & 0xffff) / 65535.0;
  };
  const auto smooth = [](double t) { return t * t * (3 - 2 * t); };
  const double u = smooth(x - x0), v = smooth(y - y0);
  return (1 - v) * ((1 - u) * at(0, 0) + u * at(0, 1)) + v * ((1 - u) * at(1, 0) + u * at(1, 1));
}

/// What has no repetition, and goes (dx, dy) quarters of a sample a frame; the lower half goes the other way.
Gop drifting(const VideoInfo& info, int frames, int dx, int dy) {
  Gop gop(info, frames);
  gop.set_frames(frames);
  const double range = (1 << info.format.bits) - 1;
  for (int c = 0; c < gop.components(); ++c) {
    const MutableVolumeView v = gop.plane(c);
    for (int f = 0; f < frames; ++f)
      for (int y = 0; y < v.shape.height; ++y)
        for (int x = 0; x < v.shape.width; ++x) {
          const double way = (y < v.shape.height / 2 ? f : -f) * 0.25;
          const double px = x + way * dx, py = y + way * dy;
          const double value = texture(px / 3, py / 3) * 0.7 + texture(px / 11 + 100, py / 11) * 0.3;
          const auto sample = static_cast<int>(std::lround(std::clamp(value, 0.0, 1.0) * range));
          if (v.bytes_per_sample == 1)
            v.row(f, y)[x] = static_cast<std::byte>(sample);
          else
            reinterpret_cast<std::uint16_t*>(v.row(f, y))[x] = static_cast<std::uint16_t>(sample);
        }
  }
  return gop;
}

prediction::Effort moving(int log2_cell = 4) {
  prediction::Effort e;
  e.moved = true;
  e.log2_cell = log2_cell;
  return e;
}

Gop decode(const std::vector<std::uint8_t>& codeword, const VideoInfo& info, int frames, SimdLevel simd) {
  return test::decode_block(codeword, info, frames, simd, true);
}

TEST(PredictiveMotion, BlocksComeBack) {
  const std::tuple<int, int, int> shapes[] = {{1, 9, 5},   {2, 1, 40},  {3, 3, 3},    {3, 30, 9},
                                              {5, 33, 65}, {4, 90, 70}, {2, 130, 100}};
  int step = 0;
  for (const auto& [frames, height, width] : shapes)
    for (const int bits : {1, 8, 12, 16})
      for (const int cell : {3, 4, 5, 6}) {
        const VideoInfo info = block_video(width, height, bits);
        ++step;
        const Gop gop = drifting(info, frames, step % 23 - 11, step % 17 - 8);
        const std::vector<std::uint8_t> codeword = encode_block(gop, info, moving(cell), SimdLevel::kScalar);
        for (const SimdLevel simd : all_levels()) {
          EXPECT_EQ(codeword, encode_block(gop, info, moving(cell), simd)) << to_string(simd);
          EXPECT_EQ(test::compare(gop, decode(codeword, info, frames, simd)).largest, 0)
              << frames << "x" << height << "x" << width << ", " << bits << " bits, cells of 2^" << cell;
        }
      }
}

TEST(PredictiveMotion, IsWorthWhatItShouldBe) {
  const VideoInfo info = block_video(160, 128, 8);
  const auto part = [&](int dx, int dy) {
    const Gop gop = drifting(info, 6, dx, dy);
    return static_cast<double>(encode_block(gop, info, moving()).size()) /
           static_cast<double>(encode_block(gop, info, {}).size());
  };
  EXPECT_LT(part(20, -8), 0.75);  // whole samples
  EXPECT_LT(part(21, 7), 0.8);
  EXPECT_LT(part(100, 0), 0.85);  // found in the smaller picture
  EXPECT_LT(part(0, 0), 1.01);
}

// Further than vectors are looked for otherwise.
TEST(PredictiveMotion, PagesThatAreScrolled) {
  const VideoInfo info = block_video(120, 250, 8);
  for (const int rows : {70, -110}) {
    Gop gop(info, 2);
    gop.set_frames(2);
    for (int f = 0; f < 2; ++f)
      for (int y = 0; y < info.height; ++y)
        for (int x = 0; x < info.width; ++x)
          gop.plane(0).row(f, y)[x] = static_cast<std::byte>(texture(x, y + f * rows) < 0.2 ? 20 : 230);
    const double first = 0.5 * static_cast<double>(encode_block(gop, info, {}).size());
    const double moved = static_cast<double>(encode_block(gop, info, moving()).size()) - first;
    EXPECT_LT(moved, (static_cast<double>(std::abs(rows)) / info.height + 0.15) * first) << rows;
  }
}

// Where the first frame needs all and the others nothing, frequencies of both together suit neither.
TEST(PredictiveMotion, FirstFrameMayHaveItsOwnFrequencies) {
  const VideoInfo info = block_video(200, 120, 8);
  Gop gop(info, 3);
  gop.set_frames(3);
  std::mt19937 random(4);
  for (int y = 0; y < info.height; ++y)
    for (int x = 0; x < info.width; ++x) {
      const auto ink = static_cast<std::byte>(random() % 32 ? 170 : 95);
      for (int f = 0; f < 3; ++f) gop.plane(0).row(f, y)[x] = ink;
    }
  const std::vector<std::uint8_t> codeword = encode_block(gop, info, moving());
  EXPECT_LT(codeword.size(), encode_block(gop, info, {}).size());
  for (const SimdLevel simd : all_levels()) EXPECT_EQ(test::compare(gop, decode(codeword, info, 3, simd)).largest, 0);
}

TEST(PredictiveMotion, MotionIsUsedAgain) {
  const VideoInfo info = block_video(90, 70, 8);
  const Gop gop = drifting(info, 4, 9, 5);
  prediction::BlockEncoder coder(SimdLevel::kBest);
  std::vector<std::uint8_t> first, again;
  prediction::Effort effort = moving();
  coder.encode(block_of(gop, info), effort, first);
  effort.same_motion = true;
  coder.encode(block_of(gop, info), effort, again);
  EXPECT_EQ(first, again);
}

TEST(PredictiveMotion, EncoderFindsEveryWrongBitInItsCodeword) {
  const VideoInfo info = block_video(40, 33, 10);
  const Gop gop = drifting(info, 3, 5, 6);
  prediction::BlockEncoder coder(SimdLevel::kBest);
  std::vector<std::uint8_t> codeword;
  coder.encode(block_of(gop, info), moving(3), codeword);
  test::expect_wrong_bits_are_found(coder, codeword);
}

TEST(PredictiveMotion, DamagedCodewords) {
  for (const int bits : {3, 8, 16}) {
    const VideoInfo info = block_video(37, 29, bits);
    const std::vector<std::uint8_t> whole = encode_block(drifting(info, 3, 7, -5), info, moving(3));
    test::expect_damage_is_found(
        whole, static_cast<std::uint32_t>(bits), whole.size(),
        [&](const std::vector<std::uint8_t>& codeword, SimdLevel simd) { return decode(codeword, info, 3, simd); });
  }
}

// ------------------------------------------------------------------------------------------------------------ streams

EncoderParams predictive(int threads = 2) {
  EncoderParams p;
  p.profile = Profile::kPredictive;
  p.lossless = true;
  p.gop_frames = 4;
  p.block_size = 64;
  p.threads = threads;
  return p;
}

std::vector<std::byte> stream_of(const VideoInfo& info, const EncoderParams& p, int gops) {
  MemorySink sink;
  Encoder encoder(info, p, sink);
  for (int g = 0; g < gops; ++g) {
    Gop gop = drifting(info, 4, 6 + g, -5);
    encoder.push(gop);
  }
  encoder.finish();
  return sink.bytes;
}

StreamHeader header_of(const std::vector<std::byte>& stream) {
  constexpr std::size_t kSignature = 8, kBox = 16;
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(stream.data()) + kSignature;
  std::uint64_t length = 0;
  std::memcpy(&length, bytes + 4, sizeof length);
  return parse_stream_header(bytes + kBox, static_cast<std::size_t>(length));
}

TEST(PredictiveMotion, Streams) {
  VideoInfo info = block_video(150, 90, 8);
  info.format = {ColourModel::kYuv, 8, 1, 1, false, false};
  EncoderParams p = predictive(1);
  const std::vector<std::byte> one = stream_of(info, p, 3);
  EXPECT_TRUE(header_of(one).moved);
  p.threads = 3;
  EXPECT_EQ(one, stream_of(info, p, 3));
  MemorySource source(one.data(), one.size());
  DecoderParams params;
  params.first_frame = 5;
  params.end_frame = 10;
  Decoder decoder(source, params);
  Gop gop = decoder.make_gop();
  std::uint64_t frames = 0;
  for (int g = 1; decoder.pull(gop); ++g) {
    const Gop wanted = drifting(info, 4, 6 + g, -5);
    for (int f = 0; f < gop.frames(); ++f, ++frames)
      for (int c = 0; c < 3; ++c)
        for (int y = 0; y < gop.plane(c).shape.height; ++y)
          ASSERT_EQ(std::memcmp(gop.plane(c).row(f, y), wanted.plane(c).row(f + (g == 1 ? 1 : 0), y),
                                static_cast<std::size_t>(gop.plane(c).shape.width)),
                    0);
  }
  EXPECT_EQ(frames, 5u);

  p.effort = Effort::kFast;
  EXPECT_FALSE(header_of(stream_of(info, p, 1)).moved);  // which is known ahead
  p.effort = Effort::kMedium;
  p.moved_frames = false;
  const std::vector<std::byte> still = stream_of(info, p, 3);
  EXPECT_FALSE(header_of(still).moved);
  EXPECT_LT(one.size(), still.size());
}

}  // namespace
}  // namespace trivelet
