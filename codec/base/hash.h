// Checks of bytes: CRC-32C (Castagnoli, RFC 3720) for chunks and headers, XXH64 for decoded samples.
#pragma once

#include <cstddef>
#include <cstdint>

#include "codec/base/fuzzing.h"

namespace trivelet {

/// The CRC-32C of `size` bytes, continued from `crc` (0 to begin). It uses the processor's instruction if there is one.
std::uint32_t crc32c(const void* data, std::size_t size, std::uint32_t crc = 0);

/// The same value without the processor's instruction.
std::uint32_t crc32c_portable(const void* data, std::size_t size, std::uint32_t crc = 0);

/// Whether bytes of a stream match the CRC-32C stored there.
inline bool has_crc32c(const void* data, std::size_t size, std::uint32_t crc) {
  return checks_are_believed || crc32c(data, size) == crc;
}

/// XXH64 with seed 0, as specified by the xxHash project. The data may come in pieces.
class XxHash64 {
 public:
  void update(const void* data, std::size_t size);
  std::uint64_t digest() const;

 private:
  std::uint64_t lane_[4] = {0x60EA27EEADC0B5D6ull, 0xC2B2AE3D27D4EB4Full, 0, 0x61C8864E7A143579ull};
  std::uint8_t buffer_[32] = {};
  std::size_t buffered_ = 0;
  std::uint64_t total_ = 0;
};

}  // namespace trivelet
