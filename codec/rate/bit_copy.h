// Copies runs of bits that do not begin at a byte, as the parts of a codeword of the fast profile.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace trivelet {

/// Copies `bits` bits to `to`, from bit `first` (below 8, the lowest is 0) of `from` on. The rest of the last byte
/// becomes 0. Only bytes that hold these bits are read.
inline void copy_bits(const std::uint8_t* from, unsigned first, std::size_t bits, std::uint8_t* to) {
  const std::size_t size = (bits + 7) / 8;
  if (size == 0) return;
  const std::size_t readable = (first + bits + 7) / 8;
  std::size_t b = 0;
  if (first == 0) {
    std::memcpy(to, from, size);
    b = size;
  }
  if constexpr (std::endian::native == std::endian::little) {
    for (; b + 9 <= readable; b += 8) {
      std::uint64_t word = 0;
      std::memcpy(&word, from + b, sizeof word);
      word = word >> first | std::uint64_t{from[b + 8]} << (64 - first);
      std::memcpy(to + b, &word, sizeof word);
    }
  }
  for (; b < size; ++b) {
    unsigned v = static_cast<unsigned>(from[b]) >> first;
    if (b + 1 < readable) v |= static_cast<unsigned>(from[b + 1]) << (8 - first);
    to[b] = static_cast<std::uint8_t>(v);
  }
  if (const unsigned last = bits % 8; last != 0) to[size - 1] &= static_cast<std::uint8_t>((1u << last) - 1);
}

}  // namespace trivelet
