// The MD5 digest of RFC 1321: a fingerprint to compare decodes with those of FFmpeg, not a protection against attack.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace trivelet::io {

class Md5 {
 public:
  void update(const void* data, std::size_t size);
  /// The digest as 32 lower-case hex digits. Nothing may be added afterwards.
  std::string hex();

 private:
  void block(const unsigned char* data);

  std::array<std::uint32_t, 4> state_ = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
  std::uint64_t size_ = 0;
  std::array<unsigned char, 64> pending_ = {};
};

}  // namespace trivelet::io
