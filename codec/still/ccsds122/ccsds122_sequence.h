// The coder of quantised DC values and AC depths (CCSDS 122.0-B-2 §4.3.2, §4.4): differences of neighbours, mapped to
// non-negative numbers, in gaggles of 16 with one Rice parameter each.
#pragma once

#include <cstddef>
#include <cstdint>

#include "codec/still/ccsds122/ccsds122_bits.h"

namespace trivelet::ccsds122 {

/// The range of the values: `bits` (2..10) bits, two's complement or unsigned.
struct SequenceFormat {
  int bits = 2;
  bool is_signed = true;
  std::int32_t lowest() const { return is_signed ? -(1 << (bits - 1)) : 0; }
  std::int32_t highest() const { return is_signed ? (1 << (bits - 1)) - 1 : (1 << bits) - 1; }
};

/// The most words per value that encode_sequence writes, plus 2 in total.
inline constexpr std::size_t kSequenceWords = 1;

/// Writes `count` >= 1 values. `optimal`: the parameter with the fewest bits, else the heuristic one.
void encode_sequence(const std::int32_t* values, std::uint32_t count, const SequenceFormat& format, bool optimal,
                     WordWriter& out);

struct SequenceResult {
  std::uint32_t count = 0;  ///< values read; fewer than requested at the end of the data or at damage
  bool damaged = false;
};
SequenceResult decode_sequence(BitCursor& bits, std::uint32_t count, const SequenceFormat& format,
                               std::int32_t* values);

}  // namespace trivelet::ccsds122
