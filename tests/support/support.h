// Helpers of all tests: seeded patterns, tables of shapes and formats, the data folder.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "codec/encoder/encoder_params.h"
#include "trivelet/codec.h"
#include "trivelet/types.h"

namespace trivelet::test {

enum class Pattern { kSmooth, kTexture, kNoise, kZero, kExtremes };

/// Fills frames [0, frames) of the GOP with a pattern that moves a little from frame to frame.
inline void fill(Gop& gop, int frames, const PixelFormat& format, Pattern pattern, std::uint32_t seed) {
  std::mt19937 random(seed);
  gop.set_frames(frames);
  const int low = format.is_signed ? -(1 << (format.bits - 1)) : 0;
  const int high = format.is_signed ? (1 << (format.bits - 1)) - 1 : (1 << format.bits) - 1;
  const double middle = (low + high) / 2.0;
  const double range = high - low;
  for (int c = 0; c < gop.components(); ++c) {
    const MutableVolumeView v = gop.plane(c);
    for (int f = 0; f < frames; ++f) {
      std::vector<double> along;  // the waves of a texture, computed once for all rows
      if (pattern == Pattern::kTexture)
        for (int x = 0; x < v.shape.width; ++x) along.push_back(std::sin(0.9 * x + 0.3 * f));
      for (int y = 0; y < v.shape.height; ++y) {
        const double down = std::cos(0.7 * y - 0.1 * f);
        for (int x = 0; x < v.shape.width; ++x) {
          double value = middle;
          switch (pattern) {
            case Pattern::kSmooth: value += range * 0.4 * std::sin(0.07 * (x + f) + 0.05 * y + c); break;
            case Pattern::kTexture:
              value += range * (0.3 * along[static_cast<std::size_t>(x)] * down +
                                0.02 * (static_cast<double>(random() & 255) / 128.0 - 1));
              break;
            case Pattern::kNoise: value = low + range * (static_cast<double>(random()) / 4294967295.0); break;
            case Pattern::kZero: value = 0; break;
            case Pattern::kExtremes: value = random() & 1 ? high : low; break;
          }
          const int s = std::min(high, std::max(low, static_cast<int>(std::lround(value))));
          std::byte* p = v.row(f, y) + static_cast<std::ptrdiff_t>(x) * v.bytes_per_sample;
          if (v.bytes_per_sample == 1) {
            const auto b = static_cast<std::uint8_t>(s);
            std::memcpy(p, &b, 1);
          } else {
            const auto w = static_cast<std::uint16_t>(s);
            std::memcpy(p, &w, 2);
          }
        }
      }
    }
  }
  for (int f = 0; f < frames; ++f) gop.times()[static_cast<std::size_t>(f)] = {f, 1};
}

inline std::int32_t sample(const VolumeView& v, int f, int y, int x) {
  const std::byte* p = v.row(f, y) + static_cast<std::ptrdiff_t>(x) * v.bytes_per_sample;
  if (v.bytes_per_sample == 1) return v.is_signed ? static_cast<std::int8_t>(*p) : static_cast<std::uint8_t>(*p);
  std::uint16_t w;
  std::memcpy(&w, p, 2);
  return v.is_signed ? static_cast<std::int16_t>(w) : w;
}

struct Difference {
  double squared = 0;  ///< sum
  std::size_t samples = 0;
  int largest = 0;
  double mse() const { return samples ? squared / static_cast<double>(samples) : 0; }
};

inline Difference compare(const Gop& a, const Gop& b) {
  Difference d;
  for (int c = 0; c < a.components(); ++c) {
    const VolumeView va = a.plane(c);
    const VolumeView vb = b.plane(c);
    for (int f = 0; f < va.shape.frames; ++f)
      for (int y = 0; y < va.shape.height; ++y) {
        if (va.bytes_per_sample == vb.bytes_per_sample && va.is_signed == vb.is_signed &&
            std::memcmp(va.row(f, y), vb.row(f, y), va.row_bytes()) == 0) {
          d.samples += static_cast<std::size_t>(va.shape.width);
          continue;
        }
        for (int x = 0; x < va.shape.width; ++x) {
          const int e = sample(va, f, y, x) - sample(vb, f, y, x);
          d.squared += static_cast<double>(e) * e;
          d.largest = std::max(d.largest, std::abs(e));
          ++d.samples;
        }
      }
  }
  return d;
}

inline VideoInfo video(int width, int height, const std::string& format, std::uint64_t frames = 0) {
  VideoInfo v;
  v.width = width;
  v.height = height;
  v.format = parse_pixel_format(format);
  v.frames = frames;
  return v;
}

/// A clip in memory, GOP by GOP.
struct Clip {
  VideoInfo info;
  std::vector<Gop> gops;
};

inline Clip make_clip(const VideoInfo& info, int frames, int gop_frames, Pattern pattern, std::uint32_t seed) {
  Clip clip;
  clip.info = info;
  for (int f = 0; f < frames; f += gop_frames) {
    clip.gops.emplace_back(info, gop_frames);
    fill(clip.gops.back(), std::min(gop_frames, frames - f), info.format, pattern,
         seed + static_cast<std::uint32_t>(f));
    for (auto& t : clip.gops.back().times()) t.pts += f;
  }
  return clip;
}

inline std::vector<std::byte> encode(const Clip& clip, const CodingParams& params) {
  MemorySink sink;
  Encoder encoder = make_encoder(clip.info, params, sink);
  for (const Gop& g : clip.gops) encoder.push(g);
  encoder.finish();
  return std::move(sink.bytes);
}

/// All GOPs of a stream.
inline std::vector<Gop> decode(const std::vector<std::byte>& stream, const DecoderParams& params,
                               CodecStats* stats = nullptr) {
  MemorySource source(stream.data(), stream.size());
  Decoder decoder(source, params);
  std::vector<Gop> gops;
  Gop gop = decoder.make_gop();
  while (decoder.pull(gop)) gops.push_back(gop);
  if (stats) *stats = decoder.stats();
  return gops;
}

/// The folder with real clips and volumes; empty if it is missing. $TRIVELET_DATA or ../shared/data.
inline std::filesystem::path data_folder() {
  if (const char* set = std::getenv("TRIVELET_DATA"); set && *set) return set;
  const std::filesystem::path beside =
      std::filesystem::path(__FILE__).parent_path().parent_path().parent_path().parent_path() / "shared" / "data";
  return std::filesystem::exists(beside) ? beside : std::filesystem::path();
}

}  // namespace trivelet::test
