// The most common map as a vectorised loop: 8 or 16-bit integers whose number is the key minus a constant
// (volume_map.h). Gives the same results as the tables of VolumeMapper.
#pragma once

#include <cstddef>
#include <cstdint>

namespace trivelet {

struct ScalarShift {
  bool wide = false;       ///< 16 bits, not 8
  bool swap = false;       ///< stored in the opposite byte order
  std::uint16_t sign = 0;  ///< XOR of a scalar's bits and its key
  std::uint16_t offset = 0;
  std::uint16_t last_key = 0;
};

/// Maps `n` stored scalars to samples of that many bytes, and back; values outside the range are clamped.
void shift_to_samples(const ScalarShift& shift, const std::byte* stored, std::byte* samples, int bytes_per_sample,
                      std::size_t n);
void shift_to_stored(const ScalarShift& shift, const std::byte* samples, int bytes_per_sample, std::byte* stored,
                     std::size_t n);

}  // namespace trivelet
