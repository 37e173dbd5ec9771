// Small videos of many GOPs of four frames, for the tests of an encoder's stages and threads.
#pragma once

#include "tests/support/one_of.h"
#include "tests/support/support.h"

namespace trivelet::test {

/// Blocks whole and cut either way.
inline Clip short_gops(int frames, const char* format = "yuv420p") {
  const int width = full() ? 70 : 38, height = full() ? 50 : 34;
  return make_clip(video(width, height, format, static_cast<std::uint64_t>(frames)), frames, 4, Pattern::kTexture, 3);
}

inline EncoderParams short_gop_params(int threads, Profile profile = Profile::kDense, bool lossless = false) {
  EncoderParams p;
  p.motion = Motion::kOff;
  p.profile = profile;
  p.lossless = lossless;
  p.gop_frames = 4;
  p.temporal_levels = 2;
  p.block_size = 32;
  p.threads = threads;
  return p;
}

}  // namespace trivelet::test
