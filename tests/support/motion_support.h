// Clips with motion, for the motion tests.
#pragma once

#include <algorithm>
#include <cmath>
#include <random>

#include "tests/support/support.h"

namespace trivelet::test {

// Two textures that move apart, one in front of the other, with a little noise. `speed` 0: only the noise changes.
inline void draw(Gop& gop, int frames, int first, const PixelFormat& format, std::uint32_t seed, double speed = 1) {
  gop.set_frames(frames);
  const int most = (1 << format.bits) - 1;
  for (int c = 0; c < gop.components(); ++c) {
    const MutableVolumeView v = gop.plane(c);
    const bool chroma = format.is_chroma(c);
    const double sx = chroma ? 1 << format.log2_chroma_w : 1, sy = chroma ? 1 << format.log2_chroma_h : 1;
    for (int f = 0; f < frames; ++f) {
      std::mt19937 random(seed + static_cast<std::uint32_t>(100 * (first + f) + c));
      const double t = speed * (first + f);
      for (int y = 0; y < v.shape.height; ++y)
        for (int x = 0; x < v.shape.width; ++x) {
          double px = sx * x - 1.75 * t, py = sy * y + 0.5 * t;
          if (std::hypot(sx * x - 20 - 2 * t, sy * y - 20) < 12) {
            px = sx * x - 2 * t;
            py = sy * y + 50;
          }
          const double value = 0.5 + 0.2 * std::sin(0.61 * px + 0.13 * py + c) + 0.2 * std::sin(0.29 * py - 0.37 * px) +
                               0.01 * (static_cast<double>(random() % 1000) / 500 - 1);
          const int q = static_cast<int>(std::lround(most * std::clamp(value, 0.0, 1.0)));
          std::byte* p = v.row(f, y) + static_cast<std::ptrdiff_t>(x) * v.bytes_per_sample;
          const auto b = static_cast<std::uint8_t>(q);
          const auto w = static_cast<std::uint16_t>(q);
          v.bytes_per_sample == 1 ? std::memcpy(p, &b, 1) : std::memcpy(p, &w, 2);
        }
    }
  }
  for (int f = 0; f < frames; ++f) gop.times()[static_cast<std::size_t>(f)] = {first + f, 1};
}

inline Clip moving_clip(int width, int height, const std::string& format, int frames, int gop_frames,
                        double speed = 1) {
  Clip clip;
  clip.info = video(width, height, format, static_cast<std::uint64_t>(frames));
  for (int f = 0; f < frames; f += gop_frames) {
    clip.gops.emplace_back(clip.info, gop_frames);
    draw(clip.gops.back(), std::min(gop_frames, frames - f), f, clip.info.format, 1, speed);
  }
  return clip;
}

inline EncoderParams with_motion(int gop_frames, Motion motion = Motion::kOn) {
  EncoderParams p;
  p.motion = motion;
  p.gop_frames = gop_frames;
  p.threads = 2;
  p.block_size = 32;
  p.layers = 3;
  return p;
}

inline double psnr(const Clip& clip, const std::vector<Gop>& decoded) {
  double squared = 0, samples = 0;
  for (std::size_t i = 0; i < decoded.size(); ++i) {
    const Difference d = compare(clip.gops[i], decoded[i]);
    squared += d.squared;
    samples += static_cast<double>(d.samples);
  }
  const double peak = (1 << clip.info.format.bits) - 1;
  return 10 * std::log10(peak * peak * samples / squared);
}

inline StreamInfo info_of(const std::vector<std::byte>& stream) {
  MemorySource source(stream.data(), stream.size());
  return probe(source);
}

}  // namespace trivelet::test
