// What an input may cost. Whoever made a file chose the numbers in it; these are the reader's.
#pragma once

#include <cstdint>

namespace trivelet {

/// Given to everything that reads a file or stream. What would exceed one is refused with Unsupported before it is
/// taken or begun, and the message names the value, the limit and its name here. The defaults suit a workstation: what
/// people really have passes.
struct Limits {
  std::uint64_t memory = std::uint64_t{8} << 30;     ///< bytes that decoding takes
  std::uint64_t samples = std::uint64_t{1} << 33;    ///< of all components of a GOP, a picture or a frame
  std::uint64_t frames = 100'000'000;                ///< of a video, or slices of a volume
  std::uint64_t files = 100'000;                     ///< that a header names
  std::uint64_t unpacked = std::uint64_t{1} << 40;   ///< bytes that compressed data of a volume's file becomes
  /// Samples that a byte of input may stand for, beyond the first 2^24 of a file. Samples of GOPs of a .tvl stream cost
  /// a thousandth of others where the stream leaves them out, and count so.
  std::uint64_t samples_per_byte = 4096;
};

/// For what one has made oneself.
inline constexpr Limits kNoLimits = {~std::uint64_t{0}, ~std::uint64_t{0}, ~std::uint64_t{0},
                                     ~std::uint64_t{0}, ~std::uint64_t{0}, ~std::uint64_t{0}};

}  // namespace trivelet
