// Scalars of every type, for the volume tests.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "trivelet/volume.h"

namespace trivelet::test {

using VolumeBytes = std::vector<std::byte>;

inline void put_scalar(VolumeBytes& out, std::uint64_t bits, const VoxelFormat& f) {
  const int n = bytes_of(f.type);
  for (int i = 0; i < n; ++i) out.push_back(static_cast<std::byte>(bits >> (8 * (f.big_endian ? n - 1 - i : i))));
}

enum class Content { kConstant, kEvery, kMultiples, kSparse, kRandom };

/// The bits of scalar i of a volume.
inline std::uint64_t scalar_bits(Content content, VoxelType type, std::uint64_t i, std::mt19937_64& random) {
  const int bits = 8 * bytes_of(type);
  const auto real = [&](double v) {
    std::uint64_t b = 0;
    if (type == VoxelType::kF32) {
      const auto f = static_cast<float>(v);
      std::uint32_t w;
      std::memcpy(&w, &f, 4);
      b = w;
    } else {
      std::memcpy(&b, &v, 8);
    }
    return b;
  };
  switch (content) {
    case Content::kConstant: return is_real(type) ? real(-7.25) : 100;
    case Content::kEvery: return is_real(type) ? real(std::sin(static_cast<double>(i))) : i % 251;
    case Content::kMultiples: return is_real(type) ? real(static_cast<double>(i % 97) * 16) : (i % 15) * 16;
    case Content::kSparse:
      return is_real(type) ? real(i % 7 ? std::exp2(static_cast<double>(i % 5)) : -2000) : i % 11 ? i % 3 : 120;
    case Content::kRandom: break;
  }
  return bits == 64 ? random() : random() & ((std::uint64_t{1} << bits) - 1);
}

inline VolumeBytes make_scalars(Content content, const VoxelFormat& f, std::size_t voxels, std::uint32_t seed) {
  std::mt19937_64 random(seed);
  VolumeBytes out;
  for (std::size_t i = 0; i < voxels * static_cast<std::size_t>(f.channels); ++i)
    put_scalar(out, scalar_bits(content, f.type, i, random), f);
  return out;
}

}  // namespace trivelet::test
