// Coding of volumes in memory with various parameters, for the volume tests.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/volume_support.h"
#include "trivelet/volume.h"

namespace trivelet::test {

/// A synthetic volume similar to real ones: waves, a little noise, and air at the sides. Values begin at `low`.
inline VolumeBytes make_body(const VolumeDescription& v, double low, double range) {
  std::mt19937 random(3);
  VolumeBytes out;
  for (std::uint64_t s = 0; s < v.all_slices(); ++s)
    for (int y = 0; y < v.height; ++y)
      for (int x = 0; x < v.width; ++x)
        for (int c = 0; c < v.voxel.channels; ++c) {
          const double at = static_cast<double>(s % v.slices) + 0.3 * static_cast<double>(s / v.slices);
          const bool air = 2 * std::abs(2 * x - v.width) > 2 * v.width - 6;
          const double wave = 0.5 + 0.4 * std::sin(0.3 * x + 0.1 * at + c) * std::cos(0.2 * y - 0.2 * at);
          const double value =
              air ? low : std::floor(low + range * (wave + 1e-10 * static_cast<double>(random() % 400000000)));
          std::uint64_t bits = 0;
          if (v.voxel.type == VoxelType::kF64) {
            std::memcpy(&bits, &value, 8);
          } else if (v.voxel.type == VoxelType::kF32) {
            const auto f = static_cast<float>(value);
            std::memcpy(&bits, &f, 4);
          } else {
            bits = static_cast<std::uint64_t>(static_cast<std::int64_t>(value));
          }
          put_scalar(out, bits, v.voxel);
        }
  return out;
}

struct Coded {
  VolumeResult result;
  std::vector<std::byte> bytes;
};

inline Coded encode(const VolumeDescription& v, const VolumeBytes& voxels, const VolumeEncoderParams& params,
                    bool verified = true) {
  MemorySlices slices(v, voxels.data());
  MemorySink sink;
  MemoryReadBack again(sink);
  Coded coded;
  coded.result = encode_volume(slices, params, sink, verified ? &again : nullptr);
  coded.bytes = std::move(sink.bytes);
  return coded;
}

struct Decoded {
  VolumeStreamInfo info;
  VolumeDescription output;
  VoxelRegion selection;
  std::array<std::uint64_t, 3> step;
  std::uint64_t bytes_read = 0;
  VolumeBytes voxels{};
};

inline Decoded decode(const std::vector<std::byte>& stream, VolumeDecoderParams params = {}) {
  params.threads = 1;
  MemorySource source(stream.data(), stream.size());
  VolumeDecoder decoder(source, params);
  Decoded d{decoder.info(), decoder.output(), decoder.selection(), decoder.step()};
  VolumeBytes slice(d.output.slice_bytes());
  while (decoder.read(slice.data())) d.voxels.insert(d.voxels.end(), slice.begin(), slice.end());
  EXPECT_EQ(d.voxels.size(), d.output.bytes());
  d.bytes_read = decoder.stats().stream_bytes;
  return d;
}

/// Crops a box out of a volume in memory.
inline VolumeBytes cut(const VolumeDescription& v, const VolumeBytes& voxels, const VoxelRegion& r) {
  VolumeBytes out;
  const std::size_t voxel = v.voxel.bytes();
  for (std::uint64_t t = 0; t < v.volumes; ++t)
    for (std::uint64_t z = r.z; z < r.z + r.depth; ++z)
      for (std::uint64_t y = r.y; y < r.y + r.height; ++y) {
        const std::uint64_t row = ((t * v.slices + z) * static_cast<std::uint64_t>(v.height) + y);
        const auto from = static_cast<std::size_t>(row * static_cast<std::uint64_t>(v.width) + r.x) * voxel;
        const auto size = static_cast<std::size_t>(r.width) * voxel;
        out.insert(out.end(), voxels.begin() + static_cast<std::ptrdiff_t>(from),
                   voxels.begin() + static_cast<std::ptrdiff_t>(from + size));
      }
  return out;
}

inline VolumeError distance(const VolumeDescription& v, const VolumeBytes& a, const VolumeBytes& b) {
  return compare_scalars(a.data(), v.voxel, b.data(), v.voxel,
                         a.size() / static_cast<std::size_t>(bytes_of(v.voxel.type)));
}

inline void expect_error(ErrorKind kind, const std::string& part, const std::function<void()>& f) {
  try {
    f();
    ADD_FAILURE() << "nothing was refused; expected: " << part;
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), kind) << e.what();
    EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
  }
}

/// A set of coding parameters; fixed, so that every choice is tested.
struct Way {
  const char* name;
  VolumeTransform transform;
  bool palette;
  bool fourth_axis;
};
inline constexpr Way kWays[] = {
    {"wavelet", VolumeTransform::kWavelet, false, false},
    {"prediction in the slice", VolumeTransform::kPredictionInSlice, false, false},
    {"prediction across slices", VolumeTransform::kPredictionAcross, false, false},
    {"palette", VolumeTransform::kWavelet, true, false},
    {"fourth axis", VolumeTransform::kWavelet, false, true},
    {"fourth axis, prediction across, palette", VolumeTransform::kPredictionAcross, true, true},
};

inline VolumeEncoderParams params_of(const Way& way) {
  VolumeEncoderParams p;
  p.effort = VolumeEffort::kFast;
  p.transform = way.transform;
  p.palette = way.palette;
  p.fourth_axis_first = way.fourth_axis;
  p.threads = 1;
  p.layers = 2;
  p.block_size = 32;
  return p;
}

}  // namespace trivelet::test
