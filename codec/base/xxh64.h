// The arithmetic of XXH64 with seed 0, as the xxHash project specifies it. Each of four lanes takes every fourth group
// of eight bytes. The digest joins the lanes with the remaining bytes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "codec/base/host_device.h"

namespace trivelet::xxh64 {

inline constexpr std::uint64_t kPrime1 = 0x9E3779B185EBCA87ull;
inline constexpr std::uint64_t kPrime2 = 0xC2B2AE3D27D4EB4Full;
inline constexpr std::uint64_t kPrime3 = 0x165667B19E3779F9ull;
inline constexpr std::uint64_t kPrime4 = 0x85EBCA77C2B2AE63ull;
inline constexpr std::uint64_t kPrime5 = 0x27D4EB2F165667C5ull;

/// The initial value of a lane.
TRIVELET_HOST_DEVICE static inline constexpr std::uint64_t start(int lane) {
  return lane == 0 ? kPrime1 + kPrime2 : lane == 1 ? kPrime2 : lane == 2 ? 0 : 0 - kPrime1;
}

TRIVELET_HOST_DEVICE static inline std::uint64_t rotated(std::uint64_t v, int bits) {
  return v << bits | v >> (64 - bits);
}

/// The same as mix(), for an input that is already multiplied by kPrime2.
TRIVELET_HOST_DEVICE static inline std::uint64_t mix_product(std::uint64_t lane, std::uint64_t product) {
  return rotated(lane + product, 31) * kPrime1;
}
TRIVELET_HOST_DEVICE static inline std::uint64_t mix(std::uint64_t lane, std::uint64_t input) {
  return mix_product(lane, input * kPrime2);
}

/// `n` bytes at p, little-endian.
TRIVELET_HOST_DEVICE static inline std::uint64_t little_endian(const std::uint8_t* p, int n) {
  std::uint64_t v = 0;
  for (int i = 0; i < n; ++i) v |= static_cast<std::uint64_t>(p[i]) << (8 * i);
  return v;
}

/// The hash of `total` bytes. The last total % 32 bytes stand at `rest` and are in no lane.
TRIVELET_HOST_DEVICE static inline std::uint64_t digest(const std::uint64_t* lane, std::uint64_t total,
                                                        const std::uint8_t* rest) {
  std::uint64_t h = kPrime5;
  if (total >= 32) {
    h = rotated(lane[0], 1) + rotated(lane[1], 7) + rotated(lane[2], 12) + rotated(lane[3], 18);
    for (int i = 0; i < 4; ++i) h = (h ^ mix(0, lane[i])) * kPrime1 + kPrime4;
  }
  h += total;
  int n = static_cast<int>(total % 32);
  for (; n >= 8; rest += 8, n -= 8) h = rotated(h ^ mix(0, little_endian(rest, 8)), 27) * kPrime1 + kPrime4;
  for (; n >= 4; rest += 4, n -= 4) h = rotated(h ^ little_endian(rest, 4) * kPrime1, 23) * kPrime2 + kPrime3;
  for (; n > 0; ++rest, --n) h = rotated(h ^ *rest * kPrime5, 11) * kPrime1;
  h = (h ^ h >> 33) * kPrime2;
  h = (h ^ h >> 29) * kPrime3;
  return h ^ h >> 32;
}

}  // namespace trivelet::xxh64
