// Regions of pictures: the samples are those of the whole, fewer bytes are read, and damage matters only where it is
// read. Statements about layers survive writing and cutting.
#include <gtest/gtest.h>

#include <random>

#include "codec/format/container.h"
#include "codec/transform/dwt.h"
#include "codec/volume/volume_cuts.h"
#include "tests/support/one_of.h"
#include "tests/support/support.h"
#include "trivelet/edit.h"

namespace trivelet {
namespace {

using namespace test;

// Largest difference inside the region (of the first component's picture) of all frames and components.
int difference(const std::vector<Gop>& a, const std::vector<Gop>& b, const PixelFormat& format,
               const PictureRegion& r) {
  if (a.size() != b.size()) return 1 << 20;
  int largest = 0;
  for (std::size_t g = 0; g < a.size(); ++g)
    for (int c = 0; c < a[g].components(); ++c) {
      const int w = format.is_chroma(c) ? format.log2_chroma_w : 0;
      const int h = format.is_chroma(c) ? format.log2_chroma_h : 0;
      for (int f = 0; f < a[g].frames(); ++f)
        for (int y = r.y >> h; y < (r.y + r.height + (1 << h) - 1) >> h; ++y)
          for (int x = r.x >> w; x < (r.x + r.width + (1 << w) - 1) >> w; ++x)
            largest = std::max(largest, std::abs(sample(a[g].plane(c), f, y, x) - sample(b[g].plane(c), f, y, x)));
    }
  return largest;
}

struct Case {
  const char* name;
  const char* format;
  bool lossless;
  Layout layout;
  Wavelet wavelet;
  int temporal_levels, spatial_levels, block;
  Profile profile;
};

const Case kCases[] = {
    {"5/3 dyadic", "gray10le", true, Layout::kDyadic, Wavelet::kCdf53, 2, 3, 64, Profile::kDense},
    {"13/7 dyadic", "gray10le", true, Layout::kDyadic, Wavelet::kRev137, 1, 4, 32, Profile::kDense},
    {"haar, fast", "gray10le", true, Layout::kDyadic, Wavelet::kHaar, 2, 2, 32, Profile::kFast},
    {"9/7 dyadic", "gray", false, Layout::kDyadic, Wavelet::kCdf97, 2, 3, 32, Profile::kDense},
    {"9/7 t+2D, colour", "yuv420p", false, Layout::kT2d, Wavelet::kCdf97, 2, 4, 32, Profile::kDense},
    {"5/3 t+2D, fast, RGB", "gbrp", true, Layout::kT2d, Wavelet::kCdf53, 1, 3, 64, Profile::kFast},
    {"no levels", "gray10le", true, Layout::kDyadic, Wavelet::kCdf53, 0, 0, 32, Profile::kDense},
};

TEST(Region, is_a_part_of_the_whole_and_reads_less) {
  test::OneOf chosen(3);
  std::mt19937 random(7);
  for (const Case& c : kCases) {
    const VideoInfo info = video(301, 167, c.format);
    const Clip clip = make_clip(info, 7, 4, Pattern::kTexture, 3);
    CodingParams p;
    p.motion = Motion::kOff;
    p.lossless = c.lossless;
    p.layout = c.layout;
    p.spatial = p.temporal = c.wavelet;
    p.temporal_levels = c.temporal_levels;
    p.spatial_levels = c.spatial_levels;
    p.block_size = c.block;
    p.profile = c.profile;
    p.gop_frames = 4;
    p.threads = 2;
    const std::vector<std::byte> plain = encode(clip, p);
    p.part_checks = true;
    const std::vector<std::byte> checked = encode(clip, p);
    EXPECT_GT(checked.size(), plain.size());
    // 4 bytes for every block, component, layer and level of two GOPs at most, and the heads of the boxes
    const int blocks = ((301 + c.block - 1) / c.block + 1) * ((167 + c.block - 1) / c.block + 1);
    EXPECT_LT(checked.size(),
              plain.size() +
                  2 * 3 * 9 * 4 * static_cast<std::size_t>(blocks * (c.temporal_levels + 1) * (c.spatial_levels + 1)) +
                  2000)
        << c.name;
    for (int reduce = 0; reduce <= std::min(2, c.spatial_levels); ++reduce) {
      DecoderParams all;
      all.reduce = reduce;
      all.threads = 2;
      CodecStats whole;
      const std::vector<Gop> pictures = decode(checked, all, &whole);
      const int width = low_length(301, reduce);
      const int height = low_length(167, reduce);
      for (int i = 0; i < 8; i += test::full() ? 1 : 4) {  // small ones, then any
        if (!chosen()) continue;
        DecoderParams part = all;
        part.region.width = 1 + static_cast<int>(random() % static_cast<unsigned>(i < 4 ? 20 : width));
        part.region.height = 1 + static_cast<int>(random() % static_cast<unsigned>(i < 4 ? 20 : height));
        part.region.x = static_cast<int>(random() % static_cast<unsigned>(width - part.region.width + 1));
        part.region.y = static_cast<int>(random() % static_cast<unsigned>(height - part.region.height + 1));
        CodecStats some;
        CodecStats some_plain;
        const std::string what = std::string(c.name) + ", reduced " + std::to_string(reduce) + ", region " +
                                 std::to_string(part.region.x) + "," + std::to_string(part.region.y) + " " +
                                 std::to_string(part.region.width) + "x" + std::to_string(part.region.height);
        EXPECT_EQ(difference(pictures, decode(checked, part, &some), info.format, part.region), 0) << what;
        EXPECT_EQ(difference(pictures, decode(plain, part, &some_plain), info.format, part.region), 0) << what;
        EXPECT_LE(some.stream_bytes, some_plain.stream_bytes + checked.size() - plain.size()) << what;
        if (i < 4 && reduce == 0) {
          EXPECT_LT(some.stream_bytes, 0.75 * static_cast<double>(whole.stream_bytes)) << what;
        }
      }
    }
  }
}

TEST(Region, sees_damage_in_what_it_reads_and_only_there) {
  const VideoInfo info = video(256, 256, "gray10le");
  const Clip clip = make_clip(info, 4, 4, Pattern::kTexture, 3);
  CodingParams p;
  p.motion = Motion::kOff;
  p.lossless = true;
  p.layout = Layout::kDyadic;
  p.spatial = p.temporal = Wavelet::kCdf53;
  p.temporal_levels = 1;
  p.spatial_levels = 2;
  p.block_size = 64;
  p.gop_frames = 4;
  p.layers = 1;
  p.part_checks = true;
  p.threads = 1;
  const std::vector<std::byte> stream = encode(clip, p);
  DecoderParams corner;
  corner.region = {0, 0, 20, 20};
  corner.threads = 1;
  DecoderParams far = corner;
  far.region = {236, 236, 20, 20};
  const std::vector<Gop> whole = decode(stream, {});
  GopInfo gop;
  {
    MemorySource source(stream.data(), stream.size());
    gop = Decoder(source, corner).info().gops.at(0);
  }
  // The last bytes of the packet are those of the last block.
  std::vector<std::byte> damaged = stream;
  damaged[static_cast<std::size_t>(gop.offset + gop.bytes - 3)] ^= std::byte{1};
  EXPECT_EQ(difference(whole, decode(damaged, corner), info.format, corner.region), 0);
  EXPECT_THROW((void)decode(damaged, far), Error);
  far.keep_partial = true;
  CodecStats stats;
  (void)decode(damaged, far, &stats);
  EXPECT_EQ(stats.damaged_gops, 1u);
  // Without good checks everything is read, and nothing is lost.
  std::vector<std::byte> unchecked = stream;
  unchecked[static_cast<std::size_t>(gop.offset + gop.bytes + 30)] ^= std::byte{1};
  CodecStats with;
  CodecStats without;
  EXPECT_EQ(difference(whole, decode(stream, corner, &with), info.format, corner.region), 0);
  EXPECT_EQ(difference(whole, decode(unchecked, corner, &without), info.format, corner.region), 0);
  EXPECT_LT(with.stream_bytes, without.stream_bytes);
  EXPECT_THROW((void)decode(damaged,
                            [] {
                              DecoderParams outside;
                              outside.region = {250, 0, 20, 20};
                              return outside;
                            }()),
               Error);
}

TEST(Region, no_checks_with_a_target_for_the_bytes) {
  EncoderParams p;
  p.target_bytes = 10000;
  p.part_checks = true;
  MemorySink sink;
  EXPECT_THROW(Encoder(video(256, 200, "gray"), p, sink), Error);
}

TEST(VolumeCuts, survive_writing_and_cutting) {
  VolumeCuts cuts;
  cuts.peak = 4095;
  cuts.cuts = {{300, 1000.5}, {40, 100}, {7, 2.5}, {0, 0}};
  const std::vector<std::uint8_t> bytes = serialise(cuts);
  EXPECT_EQ(parse_volume_cuts(bytes.data(), bytes.size()), cuts);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    EXPECT_TRUE(parse_volume_cuts(bytes.data(), i).cuts.empty()) << i;
  }

  EncoderParams p;
  p.motion = Motion::kOff;
  p.lossless = true;
  p.layers = 4;
  p.gop_frames = 4;
  p.boxes.push_back({"volq", bytes});
  const std::vector<std::byte> stream = encode(make_clip(video(64, 64, "gray"), 8, 4, Pattern::kTexture, 3), p);
  const auto cut = [&](const RewriteParams& params, RewriteResult& result) {
    MemorySource source(stream.data(), stream.size());
    MemorySink sink;
    result = rewrite(source, params, sink);
    MemorySource again(sink.bytes.data(), sink.bytes.size());
    const ExtraBox box = Decoder(again, {}).info().boxes.at(0);
    EXPECT_EQ(box.type, "volq");
    return parse_volume_cuts(box.payload.data(), box.payload.size());
  };
  RewriteResult result;
  RewriteParams two;
  two.layers = 2;
  VolumeCuts left = cut(two, result);
  EXPECT_EQ(result.layers, 2);
  EXPECT_FALSE(result.part_of_next);
  EXPECT_EQ(left.cuts, (std::vector<VolumeCuts::Cut>{{300, 1000.5}, {40, 100}, {40, 100}, {40, 100}}));
  RewriteParams psnr;  // peak 4095: 2.5 is 68 dB, 100 is 52
  psnr.psnr = 60;
  left = cut(psnr, result);
  EXPECT_EQ(result.layers, 3);
  EXPECT_EQ(left.cuts[3], left.cuts[2]);
  RewriteParams size;
  size.target_bytes = stream.size() * 3 / 4;
  left = cut(size, result);
  EXPECT_TRUE(result.part_of_next);
  EXPECT_FALSE(left.cuts[static_cast<std::size_t>(result.layers)].known());
}

}  // namespace
}  // namespace trivelet
