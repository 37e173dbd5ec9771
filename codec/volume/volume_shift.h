// The map of most volumes, in operations that vectors have: 8 or 16-bit integers whose numbers are their keys less a
// constant (volume_map.h). Gives what the tables of VolumeMapper give.
#pragma once

#include <cstddef>
#include <cstdint>

namespace trivelet {

struct ScalarShift {
  bool wide = false;       ///< 16 bits, not 8
  bool swap = false;       ///< stored in the other byte order
  std::uint16_t sign = 0;  ///< in which bits of a scalar and its key differ
  std::uint16_t offset = 0;
  std::uint16_t last_key = 0;
};

/// `n` stored scalars to samples of so many bytes, and back; what is outside the range is limited to it.
void shift_to_samples(const ScalarShift& shift, const std::byte* stored, std::byte* samples, int bytes_per_sample,
                      std::size_t n);
void shift_to_stored(const ScalarShift& shift, const std::byte* samples, int bytes_per_sample, std::byte* stored,
                     std::size_t n);

}  // namespace trivelet
