// Random choice derived from the input: a few of the inputs that ask for an expensive case get it. An option byte alone
// would not do, because a corpus selected for coverage is full of inputs that ask for it.
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
