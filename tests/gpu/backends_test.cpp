// Every backend against the CPU, over a table of shapes, depths and modes: the same stream bytes when encoding and the
// same samples when decoding.
//
// Built twice: with kernels emulated on the CPU (gpu/emulation/cuda_emu.h; small shapes, sanitizers too) and for a GPU,
// skipped if there is none.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "codec/backend.h"
#include "codec/base/gop_hash.h"
#include "codec/encoder/encoder_params.h"
#include "codec/format/chunk.h"
#include "codec/rate/rate_control.h"
#include "gpu/device/device.h"
#include "tests/support/backends_support.h"
#include "tests/support/volume_support.h"
#include "trivelet/codec.h"
#include "trivelet/cuda.h"
#include "trivelet/device_pictures.h"

namespace trivelet {
namespace {

using namespace test;

struct Case {
  std::string name;
  int width, height, frames, gop;
  const char* format;
  Pattern pattern;
  CodingParams params;
  bool large = false;  ///< not emulated
};

std::vector<Case> fast_cases() {
  const auto dyadic = Layout::kDyadic, t2d = Layout::kT2d;
  return {
      {"smooth", 40, 24, 11, 4, "yuv420p", Pattern::kSmooth, lossy(60, 2, 3, 32)},
      {"texture", 66, 34, 8, 8, "yuv420p", Pattern::kTexture, lossy(75, 3, 4, 64)},
      {"noise", 37, 29, 5, 5, "yuv422p", Pattern::kNoise, lossy(80, 2, 2, 32)},
      {"fine steps need 32 bits", 33, 17, 4, 4, "gray12le", Pattern::kNoise, lossy(100, 2, 3, 32)},
      {"one pixel", 1, 1, 3, 3, "gray", Pattern::kNoise, lossy(90, 2, 0, 32)},
      {"one row", 71, 1, 2, 2, "gray", Pattern::kTexture, lossy(90, 1, 3, 32)},
      {"one column", 1, 53, 2, 2, "gray", Pattern::kTexture, lossy(90, 1, 3, 32)},
      {"one frame", 50, 40, 1, 1, "yuv444p", Pattern::kTexture, lossy(70, 0, 4, 32)},
      {"no levels", 20, 12, 3, 3, "gray", Pattern::kTexture, lossy(70, 0, 0, 32)},
      {"levels in time only", 20, 12, 6, 6, "gray", Pattern::kTexture, lossy(70, 3, 0, 32)},
      {"more levels than frames", 24, 20, 3, 3, "gray", Pattern::kTexture, lossy(80, 4, 2, 32)},
      {"one layer", 40, 24, 4, 4, "yuv420p", Pattern::kTexture, lossy(85, 2, 3, 32, t2d, Wavelet::kCdf53, 1)},
      {"sixteen layers", 40, 24, 4, 4, "gray", Pattern::kTexture, lossy(95, 2, 3, 32, t2d, Wavelet::kHaar, 16)},
      {"colours", 34, 22, 4, 4, "gbrp", Pattern::kTexture, lossy(75, 2, 3, 32)},
      {"alpha", 34, 22, 4, 4, "gbrap", Pattern::kTexture, lossy(75, 2, 3, 32)},
      {"dyadic", 40, 36, 8, 8, "yuv420p", Pattern::kTexture, lossy(75, 2, 3, 32, dyadic)},
      {"dyadic, as many levels", 33, 36, 9, 9, "gray", Pattern::kTexture, lossy(85, 3, 3, 32, dyadic)},
      {"dyadic, no levels in time", 33, 36, 2, 2, "gray", Pattern::kTexture, lossy(75, 0, 3, 32, dyadic)},
      {"black", 40, 24, 4, 4, "yuv420p", Pattern::kZero, lossy(60, 2, 3, 32)},
      {"lossless", 41, 27, 10, 4, "yuv420p", Pattern::kTexture, lossless(2, 3, 32)},
      {"lossless noise", 41, 27, 4, 4, "gray", Pattern::kNoise, lossless(2, 3, 32)},
      {"lossless 10 bits", 41, 27, 4, 4, "yuv422p10le", Pattern::kTexture, lossless(2, 3, 32)},
      {"lossless 16 bits", 30, 26, 4, 4, "gray16le", Pattern::kExtremes, lossless(2, 3, 32)},
      {"lossless 13/7", 41, 27, 6, 6, "gray12le", Pattern::kTexture, lossless(2, 3, 32, t2d, Wavelet::kRev137)},
      {"lossless colours", 34, 22, 4, 4, "gbrp", Pattern::kNoise, lossless(2, 3, 32)},
      {"lossless dyadic", 33, 36, 8, 8, "gray16le", Pattern::kTexture, lossless(3, 3, 64, dyadic)},
      {"lossless dyadic, time first", 33, 36, 4, 4, "gray", Pattern::kTexture, lossless(1, 3, 32, dyadic)},
      {"bits of one", 40, 24, 4, 4, "gray", Pattern::kExtremes, lossless(2, 3, 32)},
      {"720p", 1280, 720, 40, 32, "yuv420p", Pattern::kTexture, lossy(60, 4, 5, 128), true},
      {"720p, one step more", 1282, 722, 32, 32, "yuv420p", Pattern::kNoise, lossy(60, 4, 5, 128), true},
      {"720p lossless", 1280, 720, 32, 32, "yuv420p", Pattern::kTexture, lossless(4, 5, 128), true},
      {"large blocks", 640, 600, 64, 64, "yuv444p", Pattern::kTexture, lossy(70, 5, 5, 256), true},
      {"volume", 256, 250, 70, 64, "gray16le", Pattern::kTexture, lossless(4, 4, 64, dyadic), true},
      {"volume, equal levels", 256, 250, 64, 64, "gray12le", Pattern::kNoise, lossless(4, 4, 128, dyadic), true},
      {"128 frames", 320, 200, 128, 128, "gbrp", Pattern::kTexture, lossy(80, 5, 4, 64), true},
  };
}

// Every case in both profiles.
std::vector<Case> cases() {
  std::vector<Case> all = fast_cases();
  const std::vector<Case> fast = all;
  for (Case c : fast) {
    c.name = "dense " + c.name;
    c.params.profile = Profile::kDense;
    // Every decision of noise takes its time where a fibre stands for a thread.
    c.large = c.large || (c.pattern == Pattern::kNoise && c.width * c.height > 100);
    all.push_back(c);
  }
  return all;
}

class Backends : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    if (gpu::devices().empty()) GTEST_SKIP() << "no GPU";
    if (kEmulated && GetParam().large) GTEST_SKIP() << "too large to be emulated";
  }
  Clip clip() const {
    const Case& c = GetParam();
    const VideoInfo info = test::video(c.width, c.height, c.format, static_cast<std::uint64_t>(c.frames));
    return test::make_clip(info, c.frames, c.gop, c.pattern, 7);
  }
  CodingParams params() const {
    CodingParams p = GetParam().params;
    p.gop_frames = GetParam().gop;
    return p;
  }
};

TEST_P(Backends, StreamsAreTheSame) {
  const std::shared_ptr<const Backend> cuda = gpu::cuda_backend(0, 0);
  const Clip c = clip();
  const std::vector<std::byte> expected = encode_with(nullptr, c, params()), got = encode_with(cuda.get(), c, params());
  ASSERT_EQ(expected.size(), got.size());
  EXPECT_TRUE(expected == got);
}

// Of scenes of all lengths: the memory of a GOP is used again for shorter and longer ones.
TEST(Lengths, OfGopsMayChange) {
  if (gpu::devices().empty()) GTEST_SKIP() << "no GPU";
  const std::shared_ptr<const Backend> cuda = gpu::cuda_backend(0, 0);
  const bool small = kEmulated && !test::full();
  const VideoInfo info = test::video(small ? 18 : 36, small ? 10 : 20, "yuv420p");
  constexpr int kMost = 4;
  Clip clip = test::make_clip(info, (small ? 5 : 10) * kMost, kMost, Pattern::kTexture, 9);
  std::int64_t pts = 0;
  for (std::size_t i = 0; i < clip.gops.size(); ++i) {
    clip.gops[i].set_frames(std::array{4, 2, 4, 1, 3, 4, 4, 4, 1, 2}[i]);
    for (auto& t : clip.gops[i].times()) t.pts = pts++;
  }
  for (const bool exact : {false, true})
    for (const Motion motion : {Motion::kOff, Motion::kOn})
      for (const Profile profile : {Profile::kFast, Profile::kDense}) {
        if (kEmulated && !test::full() && exact != (profile == Profile::kDense)) continue;
        EncoderParams p = exact ? lossless(2, 2, 32) : lossy(70, 2, 2, 32);
        p.profile = profile;
        p.motion = motion;
        if (motion == Motion::kOn) p.temporal_levels = -1;
        p.gop_frames = kMost;
        const std::vector<std::byte> stream = encode_with(nullptr, clip, p);
        EXPECT_TRUE(stream == encode_with(cuda.get(), clip, p)) << exact << static_cast<int>(profile);
        expect_equal(decode_with(nullptr, stream, {}), decode_with(cuda.get(), stream, {}));
      }
}

#if defined(TRIVELET_CUDA_EMULATION)
// A GOP of another length than the one before gives no memory back while others are in flight, which would wait for them.
TEST(Lengths, CostThoseInFlightNothing) {
  const VideoInfo info = test::video(20, 12, "yuv420p");
  Clip clip = test::make_clip(info, 40, 4, Pattern::kTexture, 9);
  std::int64_t pts = 0;
  for (std::size_t i = 0; i < clip.gops.size(); ++i) {
    clip.gops[i].set_frames(i % 4 == 0 ? 2 : 4);
    for (auto& t : clip.gops[i].times()) t.pts = pts++;
  }
  for (const Profile profile : {Profile::kFast, Profile::kDense}) {
    EncoderParams p = lossy(70, 2, 2, 32);
    p.profile = profile;
    p.gop_frames = 4;
    const std::vector<std::byte> stream = encode_with(nullptr, clip, p);
    const std::shared_ptr<const Backend> cuda = gpu::cuda_backend(0, 0);
    MemorySource source(stream.data(), stream.size());
    Decoder decoder(source, {.threads = 1}, cuda.get());
    Gop gop = decoder.make_gop();
    int gops = 0;
    for (const int before = emu::given_back; decoder.pull(gop); ++gops)
      EXPECT_EQ(emu::given_back, before) << "GOP " << gops << ", profile " << static_cast<int>(profile);
    EXPECT_EQ(gops, 10);
  }
}
#endif

// Samples that are fetched when their slot has coded others meanwhile, of any length.
TEST(Lengths, SamplesThatAreHeldStayAsTheyWere) {
  if (gpu::devices().empty()) GTEST_SKIP() << "no GPU";
  const std::shared_ptr<const Backend> cuda = gpu::cuda_backend(0, 0);
  const Clip clip = test::make_clip(test::video(20, 12, "yuv420p"), 96, 4, Pattern::kNoise, 9);
  EncoderParams p = lossy(70, 2, 2, 32);
  p.gop_frames = 4;
  const StreamHeader header = make_header(clip.info, resolve(clip.info, p));
  const auto encoder = cuda->make_encoder(header, {.keeps_samples = true});
  const auto most_held = static_cast<std::size_t>(encoder->depth()) + 2;
  ASSERT_LT(2 * most_held, clip.gops.size());
  GopChoices choices;
  choices.step = 3;
  std::deque<std::function<void(Gop&, int)>> held;
  std::size_t fetched = 0;
  const auto frames_of = [](std::size_t gop) { return gop % 5 == 0 ? 1 : gop % 3 == 0 ? 3 : 4; };
  const auto fetch = [&] {
    Gop expected = clip.gops[fetched], got(clip.info, 4);
    expected.set_frames(frames_of(fetched));
    got.set_frames(frames_of(fetched));
    held.front()(got, 0);
    held.pop_front();
    EXPECT_EQ(hash_samples(got), hash_samples(expected)) << "GOP " << fetched;
    ++fetched;
  };
  for (std::size_t g = 0; g < clip.gops.size(); ++g) {
    Gop gop = clip.gops[g];
    gop.set_frames(frames_of(g));
    encoder->push(gop, choices);
    CodedGop coded;
    ASSERT_TRUE(encoder->pull(coded));
    held.push_back(std::move(coded.samples));
    if (held.size() > most_held) fetch();
  }
  while (!held.empty()) fetch();
}

// Towards a size or a PSNR: gains, bytes of every cut and what is measured on the way.
TEST(Targets, StreamsAreTheSame) {
  if (gpu::devices().empty()) GTEST_SKIP() << "no GPU";
  const std::shared_ptr<const Backend> cuda = gpu::cuda_backend(0, 0);
  const int width = kEmulated ? 20 : 200, height = kEmulated ? 16 : 120, frames = kEmulated ? 4 : 10;
  for (const char* format : {"gray", "yuv420p", "gbrp"})
    for (const Profile profile : {Profile::kFast, Profile::kDense})
      for (const int target : {0, 1, 2}) {
        if (kEmulated && (format[0] != 'g' || format[1] != 'r' || target == 2)) continue;
        SCOPED_TRACE(std::string(format) + ", profile " + std::to_string(static_cast<int>(profile)) + ", target " +
                     std::to_string(target));
        const Clip clip = test::make_clip(test::video(width, height, format, static_cast<std::uint64_t>(frames)),
                                          frames, 8, Pattern::kTexture, 7);
        EncoderParams p = lossy(60, 2, 3, 32);
        p.profile = profile;
        p.layers = 3;
        p.gop_frames = 8;
        if (target == 0) p.bits_per_pixel = 3;
        if (target == 1) p.psnr = 36;
        if (target == 2) p.target_bytes = static_cast<std::uint64_t>(width * height * 2);
        EXPECT_TRUE(encode_with(nullptr, clip, p) == encode_with(cuda.get(), clip, p));
      }
}

// Sizes that are estimated before a GOP is coded, at any step, and the GOP that is coded then.
TEST(Targets, SizesAreEstimatedTheSameWay) {
  if (gpu::devices().empty()) GTEST_SKIP() << "no GPU";
  const std::shared_ptr<const Backend> cuda = gpu::cuda_backend(0, 0);
  const int width = kEmulated ? 75 : 333, height = kEmulated ? 41 : 190, frames = kEmulated ? 3 : 9;
  for (const char* format : {"yuv420p", "gbrp10"}) {
    const Clip clip = test::make_clip(test::video(width, height, format, static_cast<std::uint64_t>(frames)), frames,
                                      frames, Pattern::kTexture, 7);
    EncoderParams p = lossy(60, 2, 3, 32);
    p.profile = Profile::kFast;
    p.gop_frames = frames;
    p.bits_per_pixel = 2;
    const StreamHeader header = make_header(clip.info, resolve(clip.info, p));
    GopChoices choices;
    choices.by_plane = true;
    const auto reference = cpu_backend().make_encoder(header, {});
    const auto encoder = cuda->make_encoder(header, {});
    for (const float step : {0.25f, 1.0f, 5.0f}) {
      choices.step = step;
      const SizeEstimate expected = reference->estimate_sizes(clip.gops[0], choices, step > 0.25f);
      const SizeEstimate got = encoder->estimate_sizes(clip.gops[0], choices, step > 0.25f);
      EXPECT_EQ(got.bits, expected.bits) << format << ", step " << step;
      EXPECT_EQ(got.step, expected.step);
      EXPECT_GT(got.bits[0], 0u);
    }
    if (kEmulated && format[0] == 'g') continue;
    EXPECT_TRUE(encode_with(nullptr, clip, p) == encode_with(cuda.get(), clip, p)) << format;
  }
}

// What a target codes in reserve has no refinement of its last plane.
TEST(Targets, LastPassesAreSparedTheSameWay) {
  if (gpu::devices().empty()) GTEST_SKIP() << "no GPU";
  const std::shared_ptr<const Backend> cuda = gpu::cuda_backend(0, 0);
  const int width = kEmulated ? 20 : 200, height = kEmulated ? 16 : 120;
  const Clip clip = test::make_clip(test::video(width, height, "gray", 4), 4, 4, Pattern::kTexture, 7);
  EncoderParams p = lossy(60, 2, 3, 32);
  p.profile = Profile::kDense;
  p.gop_frames = 4;
  const StreamHeader header = make_header(clip.info, resolve(clip.info, p));
  GopChoices choices;
  choices.step = 3;
  std::vector<std::uint64_t> whole;
  for (const bool spare : {false, true}) {
    choices.spare_last_pass = spare;
    std::vector<std::vector<std::uint8_t>> chunks[2];
    for (const Backend* backend : {&cpu_backend(), cuda.get()}) {
      const auto encoder = backend->make_encoder(header, {});
      encoder->push(clip.gops[0], choices);
      CodedGop coded;
      ASSERT_TRUE(encoder->pull(coded));
      RateControl control(header, coded);
      LayeredGop layers;
      layers.frames = 4;
      control.divide(control.layers(control.complete(), 9, header.layers), layers);
      for (int l = 0; l < header.layers; ++l)
        for (int b = 0; b < header.temporal_bands(); ++b)
          for (int d = 0; d <= header.spatial_levels; ++d)
            chunks[backend == cuda.get()].push_back(write_chunk(header, layers, l, b, d));
      whole.push_back(control.body_bytes(control.complete()));
    }
    EXPECT_EQ(chunks[0], chunks[1]) << spare;
  }
  EXPECT_LT(whole[2], whole[0]);
}

// Frames that the device reads where they are, and such as it cannot.
TEST(Frames, StreamsAreTheSameWhereverTheyLie) {
  if (gpu::devices().empty()) GTEST_SKIP() << "no GPU";
  const std::shared_ptr<const Backend> cuda = gpu::cuda_backend(0, 0);
  const int width = kEmulated ? 18 : 642, height = kEmulated ? 14 : 358, frames = kEmulated ? 5 : 10;
  for (const char* format : {"yuv420p", "gray12le"})
    for (const bool exact : {false, true}) {
      if (kEmulated && exact == (format[0] == 'y')) continue;
      SCOPED_TRACE(std::string(format) + (exact ? ", lossless" : ""));
      EncoderParams params = exact ? lossless(2, 3, 32) : lossy(70, 2, 3, 32);
      params.gop_frames = 4;
      if (!exact) params.profile = Profile::kDense;
      const VideoInfo info = test::video(width, height, format, frames);
      const Clip clip = test::make_clip(info, frames, 4, Pattern::kTexture, 5);
      const std::vector<std::byte> expected = encode_with(nullptr, clip, params);

      // One piece of page-locked memory for everything.
      MemorySink sink;
      Encoder encoder(info, params, sink, cuda.get());
      Gop gop = encoder.make_gop();
      for (const Gop& original : clip.gops) {
        gop.set_frames(original.frames());
        for (int c = 0; c < original.components(); ++c) {
          const VolumeView from = original.plane(c);
          std::memcpy(gop.plane(c).data, from.data,
                      from.shape.samples() * static_cast<std::size_t>(from.bytes_per_sample));
        }
        gop.times() = original.times();
        encoder.push(gop);
        for (int c = 0; c < original.components(); ++c)  // it is the caller's again
          std::memset(gop.plane(c).data, 0x55, gop.plane(c).shape.samples());
      }
      encoder.finish();
      EXPECT_TRUE(sink.bytes == expected);

      // Frames with gaps between rows: all in page-locked memory, some of them, none, and upside down.
      for (const int way : {0, 1, 2, 3}) {
        SCOPED_TRACE(way);
        MemorySink scattered;
        Encoder other(info, params, scattered, cuda.get());
        for (const Gop& original : clip.gops) {
          std::vector<std::shared_ptr<std::byte>> memory;
          std::vector<FrameView> views;
          for (int f = 0; f < original.frames(); ++f) {
            FrameView view;
            for (int c = 0; c < original.components(); ++c) {
              const VolumeView from = original.plane(c);
              const std::ptrdiff_t stride = static_cast<std::ptrdiff_t>(from.row_bytes()) + 14;
              const std::size_t bytes = static_cast<std::size_t>(stride) * static_cast<std::size_t>(from.shape.height);
              const bool locked = way == 0 || way == 3 || (way == 1 && f % 2 == 0);
              memory.push_back(
                  locked ? gpu::page_locked(bytes)
                         : std::shared_ptr<std::byte>(new std::byte[bytes], std::default_delete<std::byte[]>()));
              const int rows = from.shape.height;
              for (int y = 0; y < rows; ++y)
                std::memcpy(memory.back().get() + (way == 3 ? rows - 1 - y : y) * stride, from.row(f, y),
                            from.row_bytes());
              view.planes[static_cast<std::size_t>(c)] = {memory.back().get() + (way == 3 ? (rows - 1) * stride : 0),
                                                          way == 3 ? -stride : stride};
            }
            view.time = original.times()[static_cast<std::size_t>(f)];
            views.push_back(view);
          }
          other.push(views);
          for (const auto& m : memory) *m = std::byte{0x55};
        }
        other.finish();
        EXPECT_TRUE(scattered.bytes == expected);
      }
    }
}

#if defined(TRIVELET_CUDA_EMULATION)
// Nothing is copied into page-locked memory when frames are there already.
TEST(Frames, NothingIsStagedForPageLockedOnes) {
  const std::shared_ptr<const Backend> cuda = gpu::cuda_backend(0, 0);
  const VideoInfo info = test::video(40, 24, "gray", 4);
  const Clip clip = test::make_clip(info, 4, 4, Pattern::kTexture, 5);
  EncoderParams params = lossy(60, 2, 3, 32);
  params.gop_frames = 4;
  const auto page_locked_bytes = [&](const Gop& gop) {
    MemorySink sink;
    Encoder encoder(info, params, sink, cuda.get());
    encoder.push(gop);
    std::size_t bytes = 0;
    for (const auto& [at, size] : emu::page_locked) bytes += size;
    encoder.finish();
    return bytes;
  };
  Gop locked(info, 4, gpu::page_locked);
  const std::size_t own = 4 * 40 * 24;
  locked.set_frames(4);
  std::memcpy(locked.plane(0).data, clip.gops[0].plane(0).data, own);
  EXPECT_EQ(page_locked_bytes(clip.gops[0]), page_locked_bytes(locked) + own);
}
#endif

TEST_P(Backends, SamplesAreTheSame) {
  const std::shared_ptr<const Backend> cuda = gpu::cuda_backend(0, 0);
  const std::vector<std::byte> stream = encode_with(nullptr, clip(), params());
  MemorySource source(stream.data(), stream.size());
  const Decoder probe(source, DecoderParams{});
  const StreamInfo info = probe.info();
  std::vector<DecoderParams> ways(1);
  const auto add = [&](auto change) {
    DecoderParams p;
    change(p);
    ways.push_back(p);
  };
  const bool volume = info.decomposition.layout == Layout::kDyadic;
  add([](DecoderParams& p) { p.max_planes = 3; });
  if (info.layers > 1) add([](DecoderParams& p) { p.max_layers = 1; });
  if (info.layers > 2) add([](DecoderParams& p) { p.max_layers = 2; });
  if (info.decomposition.spatial_levels > 1) add([](DecoderParams& p) { p.reduce = 1; });
  if (!volume && info.decomposition.temporal_levels > 0)
    add([](DecoderParams& p) {
      p.temporal_reduce = 1;
      p.max_planes = 4;
    });
  for (DecoderParams& p : ways) {
    SCOPED_TRACE("reduce " + std::to_string(p.reduce) + "," + std::to_string(p.temporal_reduce) + " planes " +
                 std::to_string(p.max_planes) + " layers " + std::to_string(p.max_layers));
    p.threads = 2;
#if defined(TRIVELET_CUDA_EMULATION)
    // The fast decoder keeps its words in shared memory, if there is enough.
    const auto way = static_cast<std::size_t>(&p - ways.data());
    const std::size_t other = GetParam().name.size();
    if (!test::full() && way > 0 && way != 1 + other % (ways.size() - 1)) continue;  // two of them
    emulated_shared_memory = (way + other / 2) % 2 == 0 ? 64 << 10 : 0;
#endif
    expect_equal(decode_with(nullptr, stream, p), decode_with(cuda.get(), stream, p));
  }
}

INSTANTIATE_TEST_SUITE_P(All, Backends, ::testing::ValuesIn(cases()), [](const auto& of) {
  std::string name;
  for (const char c : of.param.name) name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
});

// Volumes by the wavelet: what decides their samples is before the seam, so that a few ways to code one are enough.
TEST(Backends, volumes) {
  if (gpu::devices().empty()) GTEST_SKIP() << "no GPU";
  const std::shared_ptr<const Backend> cuda = gpu::cuda_backend(0, 0);
  struct Way {
    const char* name;
    VoxelType type;
    std::function<void(VolumeEncoderParams&)> set;
  };
  const std::vector<Way> ways{
      {"fast, lossless", VoxelType::kI16,
       [](VolumeEncoderParams& p) { p.effort = VolumeEffort::kFast, p.predictive = false; }},
      {"fast, of two planes", VoxelType::kF32, [](VolumeEncoderParams& p) { p.effort = VolumeEffort::kFast; }},
      {"fast, bounded", VoxelType::kI16, [](VolumeEncoderParams& p) { p.max_error = 3; }},
      {"fast, a rate", VoxelType::kI16, [](VolumeEncoderParams& p) { p.bits_per_voxel = 2; }},
      {"dense, lossless", VoxelType::kI16, [](VolumeEncoderParams& p) { p.profile = Profile::kDense; }},
      {"dense, bounded", VoxelType::kF32,
       [](VolumeEncoderParams& p) { p.profile = Profile::kDense, p.max_error = 0.01; }},
      {"dense, a quality", VoxelType::kU16,
       [](VolumeEncoderParams& p) { p.profile = Profile::kDense, p.quality = 70; }},
  };
  for (const Way& way : ways) {
    SCOPED_TRACE(way.name);
    const VolumeDescription volume{.voxel = {way.type}, .width = 29, .height = 18, .slices = 5};
    const test::VolumeBytes voxels = test::make_scalars(test::Content::kEvery, volume.voxel, volume.voxels(), 1);
    VolumeEncoderParams params;
    params.profile = Profile::kFast;
    params.transform = VolumeTransform::kWavelet;
    params.slab = 3;
    params.slice_levels = 2;
    params.block_size = 32;
    params.layers = 2;
    way.set(params);
    MemorySink streams[2];
    int asked = 0;
    for (int on_gpu = 0; on_gpu < 2; ++on_gpu) {
      params.backend = [&](Profile profile) {
        EXPECT_EQ(profile, params.profile);
        asked += on_gpu;
        return on_gpu ? cuda.get() : nullptr;
      };
      MemorySlices slices(volume, voxels.data());
      MemoryReadBack again(streams[on_gpu]);
      EXPECT_TRUE(encode_volume(slices, params, streams[on_gpu], &again).verified);
    }
    EXPECT_EQ(asked, 1);
    ASSERT_TRUE(streams[0].bytes == streams[1].bytes);
    VolumeDecoderParams part;
    part.region = VoxelRegion{5, 3, 1, 20, 12, 3};
    VolumeDecoderParams reduced;
    reduced.reduce = 1;
    for (const VolumeDecoderParams& decoding : {VolumeDecoderParams{}, part, reduced}) {
      test::VolumeBytes decoded[2];
      for (int on_gpu = 0; on_gpu < 2; ++on_gpu) {
        MemorySource source(streams[0].bytes.data(), streams[0].bytes.size());
        VolumeDecoder decoder(source, decoding, on_gpu ? cuda.get() : nullptr);
        test::VolumeBytes slice(decoder.output().slice_bytes());
        while (decoder.read(slice.data())) decoded[on_gpu].insert(decoded[on_gpu].end(), slice.begin(), slice.end());
      }
      EXPECT_FALSE(decoded[0].empty());
      EXPECT_TRUE(decoded[0] == decoded[1]);
    }
  }
}

// Voxels that stay on the device, of streams one after the other that share a decoder, are those of the host; what is not for
// the device, or does not have the originals' hash, is said.
TEST(Backends, batches_of_volumes) {
  if (gpu::devices().empty()) GTEST_SKIP() << "no GPU";
  struct Way {
    const char* name;
    VoxelFormat voxel;
    bool on_device;
    std::function<void(VolumeEncoderParams&)> set;
  };
  const std::vector<Way> ways{
      {"16 bits", {VoxelType::kI16}, true, [](VolumeEncoderParams&) {}},
      {"the same again", {VoxelType::kI16}, true, [](VolumeEncoderParams&) {}},
      {"big-endian", {VoxelType::kU16, true}, true, [](VolumeEncoderParams&) {}},
      {"8 bits", {VoxelType::kU8}, true, [](VolumeEncoderParams&) {}},
      {"8 signed bits, dense", {VoxelType::kI8}, true, [](VolumeEncoderParams& p) { p.profile = Profile::kDense; }},
      {"a bound", {VoxelType::kI16}, true, [](VolumeEncoderParams& p) { p.max_error = 3; }},
      {"8 bits of 16", {VoxelType::kI16}, true, [](VolumeEncoderParams& p) { p.max_error = 500; }},
      {"a quality", {VoxelType::kI16}, true, [](VolumeEncoderParams& p) { p.quality = 60; }},
      {"a palette", {VoxelType::kU8}, true, [](VolumeEncoderParams& p) { p.palette = true; }},
      {"32 bits", {VoxelType::kF32}, false, [](VolumeEncoderParams&) {}},
      {"two channels", {VoxelType::kI16, false, 2}, false, [](VolumeEncoderParams&) {}},
      {"prediction",
       {VoxelType::kI16},
       false,
       [](VolumeEncoderParams& p) { p.transform = VolumeTransform::kPrediction, p.profile = Profile::kDense; }},
  };
  gpu::VolumeBatch batch(0, 0);
  const std::shared_ptr<const Backend> device = gpu::cuda_backend(0, 0, true);  // whose memory is the device's
  const auto copied = [](const std::shared_ptr<std::byte>& from, std::size_t bytes) {
    test::VolumeBytes to(bytes);
    const auto pitch = static_cast<std::ptrdiff_t>(bytes);
    gpu::copy_from_device(0, {to.data(), pitch}, {from.get(), pitch}, bytes, 1, nullptr);
    gpu::wait_for(0, nullptr);
    return to;
  };
  std::vector<std::shared_ptr<std::byte>> kept;  // until the batch ends
  test::VolumeBytes voxels;
  for (std::size_t job = 0; job < ways.size(); ++job) {
    const Way& way = ways[job];
    SCOPED_TRACE(way.name);
    const VolumeDescription volume{.voxel = way.voxel, .width = 29, .height = 18, .slices = 5};
    const test::VolumeBytes original = test::make_scalars(test::Content::kEvery, volume.voxel, volume.voxels(), 1);
    VolumeEncoderParams params;
    params.profile = Profile::kFast;
    params.transform = VolumeTransform::kWavelet;
    params.slab = 3;
    way.set(params);
    MemorySink stream;
    MemorySlices slices(volume, original.data());
    encode_volume(slices, params, stream, nullptr);
    MemorySource source(stream.bytes.data(), stream.bytes.size());
    test::VolumeBytes wanted(volume.bytes());
    const std::shared_ptr<std::byte> whole = device->allocate(volume.bytes());
    kept.push_back(whole);
    {
      VolumeDecoder decoder(source, {});
      for (std::uint64_t z = 0; z < volume.slices; ++z) ASSERT_TRUE(decoder.read(&wanted[z * volume.slice_bytes()]));
    }
    EXPECT_EQ(batch.decode(job, source, {}, whole.get(), volume.bytes() - 1), 0U);
    EXPECT_EQ(batch.decode(job, source, {}, whole.get(), volume.bytes()), way.on_device ? volume.bytes() : 0);
    VolumeDecoderParams part;
    part.region = VoxelRegion{0, 0, 1, 29, 18, 3};
    EXPECT_EQ(batch.decode(job + 100, source, part, whole.get(), volume.bytes()), 0U);
    if (way.on_device) {
      EXPECT_TRUE(copied(whole, volume.bytes()) == wanted);
    }
    if (job == 0) voxels = std::move(wanted);
  }
  EXPECT_TRUE(batch.finish().empty());
  // A voxel that changed: of a lossless stream, and of one that has no hash.
  for (const std::size_t changed : {std::size_t{0}, std::size_t{7}}) {
    const VolumeDescription volume{.voxel = {VoxelType::kI16}, .width = 29, .height = 18, .slices = 5};
    VolumeEncoderParams params;
    params.profile = Profile::kFast;
    params.transform = VolumeTransform::kWavelet;
    params.slab = 3;
    ways[changed].set(params);
    MemorySink stream;
    MemorySlices slices(volume, voxels.data());
    encode_volume(slices, params, stream, nullptr);
    MemorySource source(stream.bytes.data(), stream.bytes.size());
    const std::shared_ptr<std::byte> first = device->allocate(volume.bytes()),
                                     second = device->allocate(volume.bytes());
    ASSERT_NE(batch.decode(4, source, {}, first.get(), volume.bytes()), 0U);
    ASSERT_NE(batch.decode(9, source, {}, second.get(), volume.bytes()), 0U);
    test::VolumeBytes one = copied(second, volume.bytes());
    one[volume.bytes() - 7] ^= std::byte{1};
    const auto pitch = static_cast<std::ptrdiff_t>(one.size());
    gpu::copy_to_device(0, {second.get(), pitch}, {one.data(), pitch}, one.size(), 1, nullptr);
    gpu::wait_for(0, nullptr);
    EXPECT_EQ(batch.finish(), changed == 0 ? std::vector<std::size_t>{9} : std::vector<std::size_t>{});
  }
  // Streams that are damaged are VolumeDecoder's.
  const test::VolumeBytes nothing(100);
  MemorySource source(nothing.data(), nothing.size());
  EXPECT_EQ(batch.decode(0, source, {}, device->allocate(100).get(), 100), 0U);
  EXPECT_TRUE(batch.finish().empty());
}

// Streams of voxels on the device are those of voxels on the host; what is not for the device is refused, and nothing written.
TEST(Backends, batches_of_volumes_encoded) {
  if (gpu::devices().empty()) GTEST_SKIP() << "no GPU";
  struct Way {
    const char* name;
    VoxelFormat voxel;
    bool on_device;
    std::function<void(VolumeEncoderParams&)> set;
  };
  const std::vector<Way> ways{
      {"16 bits", {VoxelType::kI16}, true, [](VolumeEncoderParams&) {}},
      {"the same again", {VoxelType::kI16}, true, [](VolumeEncoderParams&) {}},
      {"8 bits, dense", {VoxelType::kU8}, true, [](VolumeEncoderParams& p) { p.profile = Profile::kDense; }},
      {"8 signed bits", {VoxelType::kI8}, true, [](VolumeEncoderParams& p) { p.layers = 1; }},
      {"a palette", {VoxelType::kU16}, true, [](VolumeEncoderParams& p) { p.palette = true; }},
      {"given levels",
       {VoxelType::kU16},
       true,
       [](VolumeEncoderParams& p) { p.slice_levels = 2, p.depth_levels = 1, p.effort = VolumeEffort::kMedium; }},
      {"no front table", {VoxelType::kU16}, true, [](VolumeEncoderParams& p) { p.front_table = false; }},
      {"a front table", {VoxelType::kU16}, true, [](VolumeEncoderParams& p) { p.front_table = true; }},
      {"big-endian", {VoxelType::kU16, true}, false, [](VolumeEncoderParams&) {}},
      {"32 bits", {VoxelType::kI32}, false, [](VolumeEncoderParams&) {}},
      {"two channels", {VoxelType::kI16, false, 2}, false, [](VolumeEncoderParams&) {}},
      {"trials", {VoxelType::kI16}, false, [](VolumeEncoderParams& p) { p.effort = VolumeEffort::kMedium; }},
      {"a quality", {VoxelType::kI16}, false, [](VolumeEncoderParams& p) { p.quality = 60; }},
      {"a bound", {VoxelType::kI16}, false, [](VolumeEncoderParams& p) { p.max_error = 2; }},
      {"verified", {VoxelType::kI16}, false, [](VolumeEncoderParams& p) { p.verify = true; }},
      {"prediction",
       {VoxelType::kI16},
       false,
       [](VolumeEncoderParams& p) { p.transform = VolumeTransform::kPrediction, p.profile = Profile::kDense; }},
  };
  gpu::VolumeEncodeBatch batch(0, 0);
  const std::shared_ptr<const Backend> device = gpu::cuda_backend(0, 0, true);  // whose memory is the device's
  for (const Way& way : ways) {
    SCOPED_TRACE(way.name);
    const VolumeDescription volume{.voxel = way.voxel, .width = 29, .height = 18, .slices = 4, .volumes = 2};
    const test::VolumeBytes voxels = test::make_scalars(test::Content::kEvery, volume.voxel, volume.voxels(), 1);
    const std::shared_ptr<std::byte> there = device->allocate(volume.bytes());
    const auto pitch = static_cast<std::ptrdiff_t>(voxels.size());
    gpu::copy_to_device(0, {there.get(), pitch}, {const_cast<std::byte*>(voxels.data()), pitch}, voxels.size(), 1,
                        nullptr);
    gpu::wait_for(0, nullptr);
    VolumeEncoderParams params;
    params.profile = Profile::kFast;
    params.transform = VolumeTransform::kWavelet;
    params.effort = VolumeEffort::kFast;
    params.verify = false;
    params.slab = 3;
    way.set(params);
    MemorySink stream, expected;
    MemoryReadBack back(stream), expected_back(expected);
    VolumeResult result;
    EXPECT_EQ(batch.encode(volume, there.get(), params, {}, stream, &back, result), way.on_device);
    if (!way.on_device) {
      EXPECT_TRUE(stream.bytes.empty());
      continue;
    }
    MemorySlices slices(volume, voxels.data());
    const VolumeResult on_host = encode_volume(slices, params, expected, &expected_back);
    EXPECT_TRUE(stream.bytes == expected.bytes);
    EXPECT_EQ(result.transform, on_host.transform);
    EXPECT_TRUE(result.exact());
  }
}

// Pictures as video engines leave them: rows with gaps, chroma in turns, samples at the upper end of their words.
TEST(DevicePictures, BecomeFrames) {
  if (gpu::devices().empty()) GTEST_SKIP() << "no GPU";
  for (const char* format : {"yuv420p", "yuv420p10", "yuv420p16", "yuv444p", "yuv444p12", "gray"}) {
    SCOPED_TRACE(format);
    VideoInfo info;
    info.width = 301;
    info.height = 35;
    info.format = parse_pixel_format(format);
    const auto pictures = gpu::device_pictures(0);
    EXPECT_EQ(pictures->device(), 0);
    EXPECT_FALSE(pictures->is_full());
    const int bytes = info.format.bits > 8 ? 2 : 1;
    const bool turns = info.format.log2_chroma_w == 1;
    constexpr std::ptrdiff_t kPitch = 1024;
    constexpr int kFrames = 3;
    Gop expected(info, kFrames), back(info, kFrames);
    expected.set_frames(kFrames);
    back.set_frames(kFrames);
    std::mt19937 random(7);
    std::vector<std::shared_ptr<const void>> kept;
    for (int f = 0; f < kFrames; ++f) {
      DevicePicture picture;
      picture.components = expected.components();
      picture.bytes_per_sample = bytes;
      picture.shift = bytes == 2 ? 16 - info.format.bits : 0;
      const std::size_t plane_bytes = kPitch * 64;
      gpu::DeviceBuffer<std::byte> surface(plane_bytes * 4);
      std::vector<std::byte> host(surface.size(), std::byte{0x5a});
      for (int c = 0; c < picture.components; ++c) {
        const MutableVolumeView v = expected.plane(c);
        const bool interleaved = turns && c > 0;
        const std::size_t begin = plane_bytes * static_cast<std::size_t>(interleaved ? 1 : c) +
                                  static_cast<std::size_t>(interleaved && c == 2 ? bytes : 0);
        const int step = interleaved ? 2 : 1;
        picture.planes[static_cast<std::size_t>(c)] = {surface.data() + begin, kPitch, v.shape.width, v.shape.height,
                                                       step};
        for (int y = 0; y < v.shape.height; ++y)
          for (int x = 0; x < v.shape.width; ++x) {
            const auto value = static_cast<unsigned>(random() & ((1u << info.format.bits) - 1));
            const unsigned word = value << picture.shift;
            std::memcpy(v.row(f, y) + x * bytes, &value, static_cast<std::size_t>(bytes));
            std::memcpy(host.data() + begin + y * kPitch + x * step * bytes, &word, static_cast<std::size_t>(bytes));
          }
      }
      gpu::check(cudaMemcpy(surface.data(), host.data(), host.size(), cudaMemcpyHostToDevice), "cudaMemcpy");
      kept.push_back(pictures->keep(picture));
      gpu::check(
          cudaMemcpy(surface.data(), std::vector<std::byte>(host.size()).data(), host.size(), cudaMemcpyHostToDevice),
          "cudaMemcpy");
    }
    for (int f = 0; f < kFrames; ++f) pictures->read(kept[static_cast<std::size_t>(f)], back, f);
    kept.clear();
    pictures->wait();
    for (int f = 0; f < kFrames; ++f)
      for (int c = 0; c < expected.components(); ++c)
        for (int y = 0; y < expected.plane(c).shape.height; ++y)
          ASSERT_EQ(std::memcmp(expected.plane(c).row(f, y), back.plane(c).row(f, y), expected.plane(c).row_bytes()), 0)
              << f << " " << c << " " << y;
  }
}

}  // namespace
}  // namespace trivelet
