// MD5 by RFC 1321.

#include "io/md5.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace trivelet::io {

namespace {

/// RFC 1321 §3.4: T[i] = floor(2^32 |sin(i + 1)|), exact in double precision.
std::array<std::uint32_t, 64> make_sines() {
  std::array<std::uint32_t, 64> t{};
  for (std::size_t i = 0; i < 64; ++i)
    t[i] = static_cast<std::uint32_t>(std::floor(std::fabs(std::sin(static_cast<double>(i) + 1.0)) * 4294967296.0));
  return t;
}

constexpr int kShift[4][4] = {{7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};

}  // namespace

void Md5::block(const unsigned char* data) {
  static const std::array<std::uint32_t, 64> kSines = make_sines();
  std::array<std::uint32_t, 16> x;
  static_assert(std::endian::native == std::endian::little);
  std::memcpy(x.data(), data, 64);
  std::uint32_t a = state_[0];  // a structured binding could not be captured in the eyes of Clang 14
  std::uint32_t b = state_[1];
  std::uint32_t c = state_[2];
  std::uint32_t d = state_[3];
  // One step of all rounds: a, b, c, d move on by one place, so every round uses the same statement.
  auto step = [&](std::uint32_t f, std::size_t k, std::size_t i) {
    const std::uint32_t sum = a + f + x[k] + kSines[i];
    a = d;
    d = c;
    c = b;
    b += std::rotl(sum, kShift[i / 16][i % 4]);
  };
  for (std::size_t i = 0; i < 16; ++i) step(d ^ (b & (c ^ d)), i, i);
  for (std::size_t i = 16; i < 32; ++i) step(c ^ (d & (b ^ c)), (5 * i + 1) % 16, i);
  for (std::size_t i = 32; i < 48; ++i) step(b ^ c ^ d, (3 * i + 5) % 16, i);
  for (std::size_t i = 48; i < 64; ++i) step(c ^ (b | ~d), (7 * i) % 16, i);
  state_[0] += a;
  state_[1] += b;
  state_[2] += c;
  state_[3] += d;
}

void Md5::update(const void* data, std::size_t size) {
  const auto* bytes = static_cast<const unsigned char*>(data);
  while (size > 0) {
    const std::size_t used = size_ % 64;
    if (used == 0 && size >= 64) {
      block(bytes);
      size_ += 64;
      bytes += 64;
      size -= 64;
      continue;
    }
    const std::size_t step = std::min(size, 64 - used);
    std::memcpy(pending_.data() + used, bytes, step);
    size_ += step;
    bytes += step;
    size -= step;
    if (used + step == 64) block(pending_.data());
  }
}

std::string Md5::hex() {
  const std::uint64_t bits = size_ * 8;
  const std::array<unsigned char, 64> padding = {0x80};
  update(padding.data(), 1 + (119 - size_ % 64) % 64);
  update(&bits, 8);
  std::string text;
  for (const std::uint32_t word : state_)
    for (unsigned i = 0; i < 4; ++i)
      for (const unsigned shift : {4u, 0u}) text += "0123456789abcdef"[(word >> (8 * i + shift)) & 15];
  return text;
}

}  // namespace trivelet::io
