// CRC-32C by the processor's instruction or by tables, and XXH64 in four lanes of 64 bits.
#include "codec/base/hash.h"

#include <array>
#include <cstring>

#include "codec/base/xxh64.h"

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace trivelet {

namespace {

// Slicing-by-eight tables of the reflected polynomial 0x82F63B78: table k advances a byte past k further bytes.
constexpr auto kTables = [] {
  std::array<std::array<std::uint32_t, 256>, 8> t{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t c = i;
    for (int k = 0; k < 8; ++k) c = c & 1 ? 0x82F63B78u ^ c >> 1 : c >> 1;
    t[0][i] = c;
  }
  for (std::size_t s = 1; s < 8; ++s)
    for (std::size_t i = 0; i < 256; ++i) t[s][i] = t[s - 1][i] >> 8 ^ t[0][t[s - 1][i] & 255];
  return t;
}();

std::uint32_t crc_tables(const std::uint8_t* p, std::size_t n, std::uint32_t c) {
  for (; n >= 8; p += 8, n -= 8) {
    std::uint64_t v;
    std::memcpy(&v, p, 8);
    v ^= c;
    c = 0;
    for (std::size_t i = 0; i < 8; ++i) c ^= kTables[7 - i][v >> (8 * i) & 255];
  }
  for (; n > 0; ++p, --n) c = kTables[0][(c ^ *p) & 255] ^ c >> 8;
  return c;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) std::uint32_t crc_instruction(const std::uint8_t* p, std::size_t n,
                                                                std::uint32_t crc) {
  std::uint64_t c = crc;
  for (; n >= 8; p += 8, n -= 8) {
    std::uint64_t v;
    std::memcpy(&v, p, 8);
    c = _mm_crc32_u64(c, v);
  }
  for (; n > 0; ++p, --n) c = _mm_crc32_u8(static_cast<std::uint32_t>(c), *p);
  return static_cast<std::uint32_t>(c);
}
#endif

template <class T>
T load(const std::uint8_t* p) {
  T v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

}  // namespace

std::uint32_t crc32c(const void* data, std::size_t size, std::uint32_t crc) {
  const auto* p = static_cast<const std::uint8_t*>(data);
#if defined(__x86_64__)
  static const bool fast = __builtin_cpu_supports("sse4.2");
  if (fast) return ~crc_instruction(p, size, ~crc);
#endif
  return crc32c_portable(p, size, crc);
}

std::uint32_t crc32c_portable(const void* data, std::size_t size, std::uint32_t crc) {
  return ~crc_tables(static_cast<const std::uint8_t*>(data), size, ~crc);
}

using xxh64::mix;

void XxHash64::update(const void* data, std::size_t size) {
  const auto* p = static_cast<const std::uint8_t*>(data);
  total_ += size;
  if (buffered_ > 0) {
    const std::size_t n = size < 32 - buffered_ ? size : 32 - buffered_;
    std::memcpy(buffer_ + buffered_, p, n);
    buffered_ += n;
    p += n;
    size -= n;
    if (buffered_ < 32) return;
    for (int i = 0; i < 4; ++i) lane_[i] = mix(lane_[i], load<std::uint64_t>(buffer_ + 8 * i));
    buffered_ = 0;
  }
  // Local variables stay in registers; lane_ would go through memory at every step.
  std::uint64_t a = lane_[0], b = lane_[1], c = lane_[2], d = lane_[3];
  for (; size >= 32; p += 32, size -= 32) {
    a = mix(a, load<std::uint64_t>(p));
    b = mix(b, load<std::uint64_t>(p + 8));
    c = mix(c, load<std::uint64_t>(p + 16));
    d = mix(d, load<std::uint64_t>(p + 24));
  }
  lane_[0] = a, lane_[1] = b, lane_[2] = c, lane_[3] = d;
  if (size > 0) std::memcpy(buffer_, p, size);
  buffered_ = size;
}

std::uint64_t XxHash64::digest() const { return xxh64::digest(lane_, total_, buffer_); }

}  // namespace trivelet
