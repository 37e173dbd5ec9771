// The public interface as a caller uses it: the synopsis of codec.h, files, frames in the caller's memory, scene cuts
// and the structure search. Includes public headers only.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/support.h"
#include "trivelet/codec.h"
#include "trivelet/scene_cuts.h"
#include "trivelet/structure_search.h"

namespace synopsis {
using namespace trivelet;
#include "synopsis.inc"  // the text at the top of codec.h
}  // namespace synopsis

namespace trivelet {
namespace {

using test::Clip;
using test::Pattern;

std::string temporary(const char* name) {
  const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
  return (std::filesystem::temp_directory_path() / ("trivelet_api_" + std::string(info->name()) + "_" + name)).string();
}

TEST(Api, SynopsisEncodesAndDecodes) {
  const VideoInfo info = test::video(48, 32, "yuv420p", 12);
  const Clip clip = test::make_clip(info, 12, 33, Pattern::kSmooth, 3);
  const std::string path = temporary("a.tvl");
  std::filesystem::remove(path);
  int left = 1;
  synopsis::encode(
      info,
      [&](Gop& gop) {
        if (left-- == 0) return false;
        gop = clip.gops[0];
        return true;
      },
      path);
  int frames = 0;
  synopsis::decode(path, [&](const Gop& gop) {
    frames += gop.frames();
    EXPECT_LT(test::compare(clip.gops[0], gop).mse(), 4);
  });
  EXPECT_EQ(frames, 12);
  std::filesystem::remove(path);
}

std::string text_of(const std::string& file) {
  std::ifstream in(std::filesystem::path(TRIVELET_SOURCE_FOLDER) / file);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

// The README quotes the sample, which is compiled and run.
TEST(Api, ReadmeShowsTheSample) {
  const std::string readme = text_of("README.md"), sample = text_of("samples/roundtrip.cpp");
  const std::string fence = "```cpp\n";
  std::size_t quotes = 0;
  for (std::size_t at = readme.find(fence); at != std::string::npos; at = readme.find(fence, at)) {
    at += fence.size();
    const std::size_t end = readme.find("```", at);
    ASSERT_NE(end, std::string::npos);
    std::istringstream lines(readme.substr(at, end - at));
    std::string indented;
    for (std::string line; std::getline(lines, line);) indented += (line.empty() ? "" : "  ") + line + "\n";
    EXPECT_NE(sample.find(indented), std::string::npos) << indented;
    ++quotes;
  }
  EXPECT_GT(quotes, 0U);
}

TEST(Api, FilesAppearWhenComplete) {
  const std::string path = temporary("b.tvl");
  std::filesystem::remove(path);
  {
    FileSink sink(path, false);
    sink.write("abcdef", 6);
    EXPECT_FALSE(std::filesystem::exists(path));
    EXPECT_TRUE(std::filesystem::exists(sink.temporary_path()));
    sink.seek(1);
    sink.write("X", 1);
    sink.seek(6);
    sink.commit();
  }
  FileSource source(path);
  char bytes[8] = {};
  EXPECT_TRUE(source.seekable());
  EXPECT_EQ(source.size(), 6U);
  EXPECT_EQ(source.read(bytes, 8), 6U);
  EXPECT_STREQ(bytes, "aXcdef");
  source.seek(4);
  EXPECT_EQ(source.read(bytes, 1), 1U);
  EXPECT_EQ(bytes[0], 'e');
  {
    EXPECT_THROW(FileSink(path, false), Error);
    FileSink given_up(path, true);
    given_up.write("z", 1);
  }
  EXPECT_EQ(std::filesystem::file_size(path), 6U);
  EXPECT_FALSE(std::filesystem::exists(path + ".part"));
  std::filesystem::remove(path);
}

// ------------------------------------------------------------------------------------- frames in memory of the caller

/// Every frame's planes in memory of their own, rows apart from each other, in the order of the picture or upside down.
template <class View>
class Scattered {
 public:
  Scattered(const VideoInfo& info, int frames, int gap, bool upside_down) : info_(info) {
    for (int f = 0; f < frames; ++f) {
      View view;
      for (int c = 0; c < info.format.components(); ++c) {
        const int stride = info.component_width(c) * info.format.bytes_per_sample() + gap;
        const int rows = info.component_height(c);
        memory_.emplace_back(static_cast<std::size_t>(stride) * static_cast<std::size_t>(rows), kUntouched);
        std::byte* first = memory_.back().data();
        view.planes[static_cast<std::size_t>(c)] = {upside_down ? first + (rows - 1) * stride : first,
                                                    upside_down ? -stride : stride};
      }
      view.time = {f, 1};
      views.push_back(view);
    }
  }
  std::byte* row(int f, int c, int y) {
    const auto components = static_cast<std::size_t>(info_.format.components());
    const auto& plane = views[static_cast<std::size_t>(f)].planes[static_cast<std::size_t>(c)];
    std::byte* memory = memory_[static_cast<std::size_t>(f) * components + static_cast<std::size_t>(c)].data();
    return memory + (plane.data - memory) + y * plane.row_stride;
  }
  /// Bytes between the rows that were written.
  std::size_t touched_gaps(int gap) const {
    std::size_t touched = 0;
    for (std::size_t i = 0; i < memory_.size(); ++i) {
      const int c = static_cast<int>(i) % info_.format.components();
      const auto row = static_cast<std::size_t>(info_.component_width(c) * info_.format.bytes_per_sample());
      for (std::size_t at = 0; at < memory_[i].size(); ++at)
        touched += at % (row + static_cast<std::size_t>(gap)) >= row && memory_[i][at] != kUntouched;
    }
    return touched;
  }

  std::vector<View> views;

 private:
  static constexpr std::byte kUntouched{0xEE};
  VideoInfo info_;
  std::vector<std::vector<std::byte>> memory_;
};

/// The first frames of `gop` there.
Scattered<FrameView> scatter(const VideoInfo& info, const Gop& gop, int gap, bool upside_down) {
  Scattered<FrameView> s(info, gop.frames(), gap, upside_down);
  for (int c = 0; c < gop.components(); ++c) {
    const VolumeView v = gop.plane(c);
    for (int f = 0; f < gop.frames(); ++f)
      for (int y = 0; y < v.shape.height; ++y) std::memcpy(s.row(f, c, y), v.row(f, y), v.row_bytes());
  }
  for (int f = 0; f < gop.frames(); ++f)
    s.views[static_cast<std::size_t>(f)].time = gop.times()[static_cast<std::size_t>(f)];
  return s;
}

struct Way {
  const char* format;
  bool lossless;
  double psnr;
  Profile profile;
};

class Borrowed : public ::testing::TestWithParam<Way> {};

TEST_P(Borrowed, FramesGiveTheSameBytesAndSamples) {
  const Way way = GetParam();
  const VideoInfo info = test::video(45, 27, way.format, 19);
  const Clip clip = test::make_clip(info, 19, 8, Pattern::kTexture, 11);
  EncoderParams params;
  params.motion = Motion::kOff;
  params.gop_frames = 8;
  params.lossless = way.lossless;
  params.psnr = way.psnr;
  params.profile = way.profile;
  params.threads = 2;
  const std::vector<std::byte> expected = test::encode(clip, params);
  for (const auto& [gap, upside_down] : {std::pair{0, false}, {6, false}, {10, true}}) {
    SCOPED_TRACE(gap);
    MemorySink sink;
    Encoder encoder(info, params, sink);
    for (const Gop& gop : clip.gops) encoder.push(scatter(info, gop, gap, upside_down).views);
    encoder.finish();
    EXPECT_TRUE(sink.bytes == expected);

    DecoderParams reading;
    reading.first_frame = 3;  // inside a GOP: frames move to its beginning
    const std::vector<Gop> want = test::decode(expected, reading);
    MemorySource source(expected.data(), expected.size());
    Decoder decoder(source, reading);
    Scattered<MutableFrameView> room(decoder.output(), 9, gap, upside_down);
    for (const Gop& gop : want) {
      ASSERT_EQ(decoder.pull(room.views), gop.frames());
      const Gop got(decoder.output(),
                    std::span<const MutableFrameView>(room.views).first(static_cast<std::size_t>(gop.frames())));
      EXPECT_EQ(test::compare(gop, got).largest, 0);
      for (int f = 0; f < gop.frames(); ++f)
        EXPECT_EQ(got.times()[static_cast<std::size_t>(f)].pts, gop.times()[static_cast<std::size_t>(f)].pts);
    }
    EXPECT_EQ(decoder.pull(room.views), 0);
    EXPECT_EQ(room.touched_gaps(gap), 0U);
  }
}

INSTANTIATE_TEST_SUITE_P(All, Borrowed,
                         ::testing::Values(Way{"yuv420p", false, 0, Profile::kDense},
                                           Way{"yuv422p10le", false, 38, Profile::kDense},
                                           Way{"gbrap", true, 0, Profile::kFast},
                                           Way{"gray16le", true, 0, Profile::kDense}));

TEST(Borrowed, WhatCannotBeUsedIsRefused) {
  const VideoInfo info = test::video(16, 8, "gray12le");
  alignas(2) std::byte memory[2 * 16 * 8 * 2 + 2] = {};
  MemorySink sink;
  Encoder encoder(info, EncoderParams{.motion = Motion::kOff}, sink);
  const auto kind_of = [&](const std::vector<FrameView>& frames) {
    try {
      encoder.push(frames);
    } catch (const Error& e) {
      return e.kind();
    }
    return ErrorKind::kInternal;
  };
  const auto frame = [&](const std::byte* data, std::ptrdiff_t stride) { return FrameView{{{{data, stride}}}, {}}; };
  EXPECT_EQ(kind_of({}), ErrorKind::kBadArgument);
  EXPECT_EQ(kind_of({frame(nullptr, 32)}), ErrorKind::kBadArgument);
  EXPECT_EQ(kind_of({frame(memory, 30)}), ErrorKind::kBadArgument);
  EXPECT_EQ(kind_of({frame(memory, -30)}), ErrorKind::kBadArgument);
  EXPECT_EQ(kind_of({frame(memory + 1, 32)}), ErrorKind::kBadArgument);
  EXPECT_EQ(kind_of({frame(memory, 33)}), ErrorKind::kBadArgument);
  EXPECT_EQ(kind_of({frame(memory, 32), frame(memory, 34)}), ErrorKind::kBadArgument);
  EXPECT_EQ(kind_of(std::vector<FrameView>(34, frame(memory, 32))), ErrorKind::kBadArgument);
  encoder.push(std::vector<FrameView>(33, frame(memory, 32)));
  encoder.finish();
  MemorySource source(sink.bytes.data(), sink.bytes.size());
  Decoder decoder(source, DecoderParams{});
  std::vector<MutableFrameView> room(32, MutableFrameView{{{{memory, 32}}}, {}});
  EXPECT_THROW(decoder.pull(room), Error);

  const std::vector<FrameView> only_read(1, frame(memory, 32));
  Gop borrowed(info, only_read);
  EXPECT_EQ(std::as_const(borrowed).plane(0).data, memory);
  EXPECT_THROW(borrowed.plane(0), Error);
  Gop copy = borrowed;  // owns its memory
  EXPECT_NE(copy.plane(0).data, memory);
  std::memset(memory, 7, 32);
  EXPECT_EQ(std::to_integer<int>(*copy.plane(0).row(0, 0)), 0);
}

TEST(Gop, LivesWhereTheAllocatorSays) {
  const VideoInfo info = test::video(5, 3, "yuv420p");
  std::vector<std::size_t> asked;
  const Gop gop(info, 4, [&](std::size_t bytes) {
    asked.push_back(bytes);
    return std::make_shared<std::byte>();
  });
  EXPECT_EQ(asked, (std::vector<std::size_t>{60, 24, 24}));
}

// -------------------------------------------------------------------------------------------------------- structure

/// Three scenes of a still picture each, 7, 12 and 5 frames long, then a pan.
bool scene_frame(const VideoInfo& info, Gop& gop, int index, int frame) {
  if (frame >= 30) return false;
  const int scene = frame < 7 ? 0 : frame < 19 ? 1 : 2;
  const int shift = frame < 24 ? 0 : 3 * (frame - 24);
  const MutableVolumeView v = gop.plane(0);
  for (int y = 0; y < info.height; ++y)
    for (int x = 0; x < info.width; ++x)
      v.row(index, y)[x] =
          static_cast<std::byte>(std::lround(60 + 70 * scene + 30 * std::sin(0.2 * (x + shift)) * std::cos(0.1 * y)));
  gop.times()[static_cast<std::size_t>(index)] = {frame, 1};
  return true;
}

TEST(Scenes, GopsEndBeforeCuts) {
  const VideoInfo info = test::video(64, 48, "gray", 30);
  int next = 0;
  SceneReader reader(info, [&](Gop& gop, int index) { return scene_frame(info, gop, index, next++); });
  Gop gop(info, 9);
  std::vector<int> lengths;
  int frame = 0;
  while (reader.read(gop)) {
    lengths.push_back(gop.frames());
    for (int f = 0; f < gop.frames(); ++f, ++frame) {
      Gop expected(info, 1);
      expected.set_frames(1);
      scene_frame(info, expected, 0, frame);
      EXPECT_EQ(std::memcmp(gop.plane(0).row(f, 0), expected.plane(0).row(0, 0), 64 * 48), 0) << frame;
      EXPECT_EQ(gop.times()[static_cast<std::size_t>(f)].pts, frame);
    }
  }
  EXPECT_EQ(lengths, (std::vector<int>{7, 9, 3, 9, 2}));
  EXPECT_EQ(reader.cuts(), 2);
}

// Frames come in batches, and those of the next scene are given back, or kept where the input takes none back.
TEST(Scenes, BatchesGiveTheSameGops) {
  const VideoInfo info = test::video(64, 48, "gray", 30);
  for (const bool takes_back : {true, false})
    for (const int capacity : {2, 9, 33}) {
      int expected_next = 0, next = 0, most = 0;
      SceneReader one_by_one(info, [&](Gop& gop, int i) { return scene_frame(info, gop, i, expected_next++); });
      SceneReader batches(info,
                          {[&](Gop& gop, int first, int count) {
                             most = std::max(most, count);
                             int n = 0;
                             while (n < count && scene_frame(info, gop, first + n, next)) ++n, ++next;
                             return n;
                           },
                           [&](int count) { return takes_back && (next -= count, true); }},
                          2);
      Gop a(info, capacity), b(info, capacity);
      while (one_by_one.read(a)) {
        ASSERT_TRUE(batches.read(b));
        ASSERT_EQ(a.frames(), b.frames());
        for (int f = 0; f < a.frames(); ++f) {
          EXPECT_EQ(std::memcmp(a.plane(0).row(f, 0), b.plane(0).row(f, 0), 64 * 48), 0);
          EXPECT_EQ(a.times()[static_cast<std::size_t>(f)].pts, b.times()[static_cast<std::size_t>(f)].pts);
        }
      }
      EXPECT_FALSE(batches.read(b));
      EXPECT_EQ(batches.cuts(), one_by_one.cuts());
      EXPECT_GT(most, 1);
    }
}

TEST(Structure, SearchFindsWhatIsCheaperAndLeavesWhatIsFixed) {
  const VideoInfo info = test::video(24, 16, "gray", 34);
  // Every frame another one: no temporal transform pays.
  Gop noise(info, 34);
  test::fill(noise, 34, info.format, Pattern::kNoise, 5);
  const auto input_of = [](const Gop& gop, int& next) {
    next = 0;
    return [&gop, &next](Gop& to, int index) {
      if (next == gop.frames()) return false;
      std::memcpy(to.plane(0).row(index, 0), gop.plane(0).row(next++, 0), 24 * 16);
      return true;
    };
  };
  EncoderParams params;
  params.motion = Motion::kOff;
  params.threads = 1;
  int next = 0;
  std::vector<StructureTrial> trials;
  const EncoderParams found =
      search_structure(info, input_of(noise, next), params, {}, [&](const StructureTrial& t) { trials.push_back(t); });
  ASSERT_GT(trials.size(), 3U);
  const auto best =
      std::min_element(trials.begin(), trials.end(), [](const auto& a, const auto& b) { return a.cost < b.cost; });
  EXPECT_EQ(found.temporal_levels, best->temporal_levels);
  EXPECT_EQ(found.temporal, best->temporal);
  EXPECT_EQ(found.spatial_levels, best->spatial_levels);
  EXPECT_EQ(found.gop_frames, best->gop_frames);
  EXPECT_LT(best->cost, trials.front().cost);

  params.temporal_levels = 2;
  params.spatial_levels = 1;
  params.gop_frames = 8;
  params.temporal = Wavelet::kCdf53;
  const EncoderParams kept = search_structure(info, input_of(noise, next), params, {true, true, true, true});
  EXPECT_EQ(kept.temporal_levels, 2);
  EXPECT_EQ(kept.spatial_levels, 1);
  EXPECT_EQ(kept.gop_frames, 8);
  EXPECT_EQ(kept.temporal, Wavelet::kCdf53);

  EXPECT_EQ(search_structure(
                info, [](Gop&, int) { return false; }, params)
                .gop_frames,
            8);
}

TEST(Structure, SearchAlongMotionTriesLevelsWhateverTheThreads) {
  const VideoInfo info = test::video(48, 32, "yuv420p", 16);
  Gop noise(info, 16), slow(info, 16);
  test::fill(noise, 16, info.format, Pattern::kNoise, 5);
  test::fill(slow, 16, info.format, Pattern::kSmooth, 5);
  std::vector<StructureTrial> trials;
  const auto search = [&](const Gop& gop, const EncoderParams& params, const FixedStructure& fixed) {
    trials.clear();
    const auto input = [&](Gop& to, int index) {
      if (index == gop.frames()) return false;
      for (int c = 0; c < 3; ++c)
        for (int y = 0; y < gop.plane(c).shape.height; ++y)
          std::memcpy(to.plane(c).row(index, y), gop.plane(c).row(index, y), gop.plane(c).row_bytes());
      return true;
    };
    return search_structure(info, input, params, fixed, [&](const StructureTrial& t) { trials.push_back(t); });
  };
  EncoderParams params;
  params.motion = Motion::kOn;
  params.effort = Effort::kSlow;
  params.threads = 1;
  const auto cost_of = [&](int levels) {
    const auto found =
        std::find_if(trials.begin(), trials.end(), [&](const auto& t) { return t.temporal_levels == levels; });
    EXPECT_NE(found, trials.end()) << levels;
    return found == trials.end() ? 0 : found->cost;
  };
  constexpr double kWorthFixing = 0.015;  // as the search has it
  const EncoderParams noise_params = search(noise, params, {});
  EXPECT_EQ(noise_params.motion, Motion::kOn);
  // Each frame is another one: nothing is to be had from others, and a GOP that chooses finds that, too.
  EXPECT_LT(cost_of(1), cost_of(4));
  EXPECT_LE(cost_of(-1), cost_of(1) + kWorthFixing);
  EXPECT_EQ(noise_params.temporal_levels, -1);
  const EncoderParams slow_params = search(slow, params, {});
  const auto best =
      std::min_element(trials.begin(), trials.end(), [](const auto& a, const auto& b) { return a.cost < b.cost; });
  const auto taken = std::find_if(trials.begin(), trials.end(), [&](const auto& t) {
    return t.temporal_levels == slow_params.temporal_levels && t.spatial_levels == slow_params.spatial_levels;
  });
  ASSERT_NE(taken, trials.end());
  EXPECT_LE(taken->cost, best->cost + kWorthFixing);
  const auto costs_of = [](const std::vector<StructureTrial>& all) {
    std::vector<double> costs;
    for (const StructureTrial& t : all) costs.push_back(t.cost);
    return costs;
  };
  const std::vector<double> costs = costs_of(trials);
  params.threads = 4;
  (void)search(slow, params, {});
  EXPECT_EQ(costs_of(trials), costs);
  // Towards a target, structures are compared near it.
  params.psnr = 35;
  EXPECT_EQ(search(noise, params, {}).temporal_levels, -1);
  params.psnr = 0;
  // GOPs end at cuts, as those of the film do.
  Gop cut(info, 16);
  test::fill(cut, 16, info.format, Pattern::kTexture, 7);
  for (int c = 0; c < 3; ++c)
    for (int f = 0; f < 7; ++f)
      for (int y = 0; y < cut.plane(c).shape.height; ++y)
        std::memcpy(cut.plane(c).row(f, y), slow.plane(c).row(f, y), slow.plane(c).row_bytes());
  (void)search(cut, params, {});
  const double at_cuts = cost_of(4);
  (void)search(cut, params, {false, false, false, false, true});
  EXPECT_LT(at_cuts, cost_of(4) - 0.05);

  params.temporal_levels = 2;
  params.spatial_levels = 1;
  const EncoderParams kept = search(noise, params, {false, false, true, false});
  EXPECT_EQ(kept.temporal_levels, 2);
  EXPECT_EQ(kept.spatial_levels, 1);
  EXPECT_TRUE(trials.empty());
}

}  // namespace
}  // namespace trivelet
