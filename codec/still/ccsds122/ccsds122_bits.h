// Bit strings as 64-bit words, first bit in the most significant place. Used in the kernels, hence without exceptions
// and bounds checks. Every function is forced inline, because the kernels are compiled several times with different
// flags.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__GNUC__)
#define CCSDS_INLINE inline __attribute__((always_inline))
#else
#define CCSDS_INLINE inline
#endif

namespace trivelet::ccsds122 {

/// Appends bits to memory that the caller has made large enough.
struct WordWriter {
  std::uint64_t* next = nullptr;
  std::uint64_t accumulator = 0;  ///< the low `used` bits are pending; the bits above are undefined
  unsigned used = 0;              ///< 0..63

  CCSDS_INLINE explicit WordWriter(std::uint64_t* memory) : next(memory) {}

  /// Appends `count` (0..63) bits; `value` has no other bits.
  CCSDS_INLINE void put(std::uint64_t value, unsigned count) {
    const unsigned total = used + count;
    if (total < 64) {
      accumulator = accumulator << count | value;
      used = total;
    } else {
      const unsigned rest = total - 64;
      *next++ = accumulator << (count - rest) | value >> rest;
      accumulator = value;
      used = rest;
    }
  }
  /// Appends a whole bit string; its last word is padded on the right.
  CCSDS_INLINE void append(const std::uint64_t* words, std::uint64_t bits) {
    const std::uint64_t whole = bits / 64;
    if (used == 0) {
      std::memcpy(next, words, whole * 8);
      next += whole;
    } else {
      const unsigned up = 64 - used;
      std::uint64_t high = accumulator;
      for (std::uint64_t i = 0; i < whole; ++i) {
        *next++ = high << up | words[i] >> used;
        high = words[i];
      }
      accumulator = high;
    }
    const unsigned tail = static_cast<unsigned>(bits % 64);
    if (tail) put(words[whole] >> (64 - tail), tail);
  }
  CCSDS_INLINE std::uint64_t bits(const std::uint64_t* start) const {
    return static_cast<std::uint64_t>(next - start) * 64 + used;
  }
  /// Stores the pending bits, zero-padded on the right. Afterwards the writer may only append whole words.
  CCSDS_INLINE void flush() {
    if (used) *next = accumulator << (64 - used);
  }
};

CCSDS_INLINE std::uint64_t load_big_endian(const std::uint8_t* p) {
  std::uint64_t v;
  std::memcpy(&v, p, 8);
#if defined(__GNUC__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
  v = __builtin_bswap64(v);
#endif
  return v;
}
CCSDS_INLINE void store_big_endian(std::uint8_t* p, std::uint64_t v) {
#if defined(__GNUC__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
  v = __builtin_bswap64(v);
#endif
  std::memcpy(p, &v, 8);
}

inline constexpr std::size_t kReadPadding = 64;

/// Reads bits of a buffer with at least kReadPadding readable bytes behind its last bit. Reading a short way past `end`
/// is allowed and gives undefined bits; callers check overrun() and discard them.
struct BitCursor {
  const std::uint8_t* data = nullptr;
  std::uint64_t position = 0;  ///< in bits
  std::uint64_t end = 0;

  /// The next 57 bits or more, the first one in the most significant place.
  CCSDS_INLINE std::uint64_t window() const { return load_big_endian(data + position / 8) << (position % 8); }
  /// The next 64 bits.
  CCSDS_INLINE std::uint64_t window64() const {
    const unsigned s = static_cast<unsigned>(position % 8);
    return load_big_endian(data + position / 8) << s | static_cast<std::uint64_t>(data[position / 8 + 8]) >> (8 - s);
  }
  /// Reads 1..32 bits.
  CCSDS_INLINE std::uint32_t read(unsigned count) {
    const std::uint64_t w = window();
    position += count;
    return static_cast<std::uint32_t>(w >> (64 - count));
  }
  CCSDS_INLINE bool overrun() const { return position > end; }
  CCSDS_INLINE std::uint64_t left() const { return position < end ? end - position : 0; }
};

}  // namespace trivelet::ccsds122
