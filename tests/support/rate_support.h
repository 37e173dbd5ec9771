// Helpers of the tests of rates, errors in the index, and rewriting: clips, parameters, and decoding.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "tests/support/support.h"
#include "trivelet/edit.h"

namespace trivelet::test {

using Stream = std::vector<std::byte>;

inline Clip clip_of(const std::string& format, int frames = 20, int gop = 9) {
  return make_clip(video(70, 50, format, static_cast<std::uint64_t>(frames)), frames, gop, Pattern::kTexture, 5);
}

inline CodingParams params_of(Profile profile, int gop = 9) {
  CodingParams p;
  p.motion = Motion::kOff;
  p.profile = profile;
  p.gop_frames = gop;
  p.temporal_levels = 2;
  p.spatial_levels = 3;
  p.block_size = 32;
  p.quality = 75;
  return p;
}

inline double mse_of(const Clip& clip, const Stream& stream) {
  const std::vector<Gop> decoded = decode(stream, {});
  EXPECT_EQ(decoded.size(), clip.gops.size());
  double sum = 0;
  double samples = 0;
  for (std::size_t i = 0; i < decoded.size(); ++i) {
    const Difference d = compare(clip.gops[i], decoded[i]);
    sum += d.squared;
    samples += static_cast<double>(d.samples);
  }
  return sum / samples;
}

inline double decibels(double ratio) { return 10 * std::log10(ratio); }

inline Stream rewritten(const Stream& stream, const RewriteParams& params, RewriteResult* result = nullptr) {
  MemorySource source(stream.data(), stream.size());
  MemorySink sink;
  const RewriteResult r = rewrite(source, params, sink);
  EXPECT_EQ(r.bytes, sink.bytes.size());
  if (result) *result = r;
  return std::move(sink.bytes);
}

inline StreamInfo info_of(const Stream& stream) {
  MemorySource source(stream.data(), stream.size());
  return Decoder(source, {}).info();
}

inline ErrorKind kind_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.kind();
  }
  return ErrorKind::kInternal;
}
}  // namespace trivelet::test
