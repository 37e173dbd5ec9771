// Chance out of an input: what costs many times as much as the rest is tried with few of the inputs that ask for it. No
// option byte would do, since a corpus, kept for what it reaches, is full of inputs that ask.
#pragma once

#include <cstddef>
#include <cstdint>

namespace trivelet::fuzz {

/// A number from all bytes of an input (FNV-1a).
inline std::uint32_t drawn(const std::uint8_t* data, std::size_t size) {
  std::uint32_t h = 2166136261u;
  for (std::size_t i = 0; i < size; ++i) h = (h ^ data[i]) * 16777619u;
  return h ^ h >> 16;
}

}  // namespace trivelet::fuzz
