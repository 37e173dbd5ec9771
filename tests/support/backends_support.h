// Shared by tests that compare backends. Built twice, emulated and for a GPU; the latter are skipped if there is none.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/support/one_of.h"
#include "tests/support/support.h"
#include "trivelet/codec.h"

namespace trivelet::test {

#if defined(TRIVELET_CUDA_EMULATION)
inline constexpr bool kEmulated = true;
#else
inline constexpr bool kEmulated = false;
#endif

inline CodingParams lossy(double quality, int temporal, int spatial, int block, Layout layout = Layout::kT2d,
                          Wavelet w = Wavelet::kCdf97, int layers = 4) {
  CodingParams p;
  p.motion = Motion::kOff;
  p.profile = Profile::kFast;
  p.quality = quality;
  p.temporal_levels = temporal;
  p.spatial_levels = spatial;
  p.block_size = block;
  p.layout = layout;
  p.spatial = p.temporal = w;
  p.layers = layers;
  p.threads = 2;
  return p;
}
inline CodingParams lossless(int temporal, int spatial, int block, Layout layout = Layout::kT2d,
                             Wavelet w = Wavelet::kCdf53, int layers = 4) {
  CodingParams p = lossy(60, temporal, spatial, block, layout, w, layers);
  p.lossless = true;
  return p;
}

inline std::vector<std::byte> encode_with(const Backend* backend, const Clip& clip, const CodingParams& params) {
  MemorySink sink;
  Encoder encoder = make_encoder(clip.info, params, sink, backend);
  for (const Gop& g : clip.gops) encoder.push(g);
  encoder.finish();
  return std::move(sink.bytes);
}

struct Decoded {
  std::vector<Gop> gops;
  CodecStats stats;
  std::string error;
};

inline Decoded decode_with(const Backend* backend, const std::vector<std::byte>& stream, const DecoderParams& params) {
  Decoded d;
  try {
    MemorySource source(stream.data(), stream.size());
    Decoder decoder(source, params, backend);
    Gop gop = decoder.make_gop();
    while (decoder.pull(gop)) d.gops.push_back(gop);
    d.stats = decoder.stats();
  } catch (const Error& e) {
    d.error = e.what();
  }
  return d;
}

inline void expect_equal(const Decoded& a, const Decoded& b) {
  EXPECT_EQ(a.error.empty(), b.error.empty()) << a.error << " | " << b.error;
  ASSERT_EQ(a.gops.size(), b.gops.size());
  EXPECT_EQ(a.stats.damage.size(), b.stats.damage.size());
  for (std::size_t g = 0; g < a.gops.size(); ++g) {
    ASSERT_EQ(a.gops[g].frames(), b.gops[g].frames());
    EXPECT_EQ(compare(a.gops[g], b.gops[g]).largest, 0) << "GOP " << g;
  }
}

}  // namespace trivelet::test
