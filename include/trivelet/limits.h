// What an input may cost a reader. The author of a file chooses the numbers in it; its reader chooses these limits.
// reader.
#pragma once

#include <cstdint>

namespace trivelet {

/// Given to everything that reads a file or stream. Input that would exceed a limit is refused with Unsupported before
/// the memory is allocated; the message names the value, the limit and its name here. The defaults suit a workstation
/// and accept real files.
struct Limits {
  std::uint64_t memory = std::uint64_t{8} << 30;    ///< bytes of memory for decoding
  std::uint64_t samples = std::uint64_t{1} << 33;   ///< samples of all components of a GOP, a picture or a frame
  std::uint64_t frames = 100'000'000;               ///< frames of a video, or slices of a volume
  std::uint64_t files = 100'000;                    ///< the most files that a header may name
  std::uint64_t unpacked = std::uint64_t{1} << 40;  ///< bytes of a volume file's data after decompression
  /// The most samples for each byte of input, beyond the first 2^24 samples of a file. Samples that a .tvl stream
  /// leaves out (as zero) count as a thousandth.
  std::uint64_t samples_per_byte = 4096;
};

/// For input that the caller made itself.
inline constexpr Limits kNoLimits = {~std::uint64_t{0}, ~std::uint64_t{0}, ~std::uint64_t{0},
                                     ~std::uint64_t{0}, ~std::uint64_t{0}, ~std::uint64_t{0}};

}  // namespace trivelet
