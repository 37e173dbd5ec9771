// The arithmetic of a decision in the dense profile (FORMAT.md "Dense profile"): the split of the range, context
// states, context numbers, and truncation points of a codeword. Shared by dense_passes.h and gpu/entropy/dense.cuh,
// whose loops and memory differ (base/host_device.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "codec/base/host_device.h"

namespace trivelet::dense {

// -------------------------------------------------------------------------------------------------------- range coder

/// The lower part of the range, which a 1 takes. `probability` is that of a 1, in units of 1 / 65536.
TRIVELET_HOST_DEVICE static inline std::uint32_t split_range(std::uint32_t range, std::uint32_t probability) {
  return static_cast<std::uint32_t>(static_cast<std::uint64_t>(range) * probability >> 16);
}

/// The number in the interval [low, low + range) with the most trailing zeros: the codeword with the fewest bytes. All
/// numbers have `bits` bits.
TRIVELET_HOST_DEVICE static inline std::uint64_t shortest_fraction(std::uint64_t low, std::uint32_t range, int bits) {
  const std::uint64_t high = low + range - 1;
  for (int zeros = bits - 1; zeros >= 0; --zeros) {
    const std::uint64_t value = high >> zeros << zeros;
    if (value >= low) return value;
  }
  return low;
}

/// Removes the upper 16 of the `pending` bits that shifts moved out of the range from `low` and returns them. Bit 16 of
/// the result is a carry into the units before.
TRIVELET_HOST_DEVICE static inline std::uint32_t take_unit(std::uint64_t& low, int& pending) {
  const int keep = 32 + pending - 16;
  const auto unit = static_cast<std::uint32_t>(low >> keep);
  low &= (std::uint64_t{1} << keep) - 1;
  pending -= 16;
  return unit;
}

/// Ends a codeword: calls emit(), which takes a unit off `low`, until the shortest fraction of the last interval is
/// written.
template <class Emit>
TRIVELET_HOST_DEVICE static inline void take_fraction(std::uint64_t& low, std::uint32_t range, int& pending,
                                                      const Emit& emit) {
  low = shortest_fraction(low, range, 32 + 16) << (16 - pending);
  pending = 16;
  emit();
  for (int i = 0; i < 2; ++i) {
    low <<= 16;
    pending = 16;
    emit();
  }
}

/// Number of bytes of a finished codeword that decode everything before a mark. `low` holds the 48 bits of the
/// interval's lower end after the first `n` bytes, `odd` the lowest bit that byte n - 1 had then; byte(i) gives the
/// codeword's bytes.
template <class Size, class Byte>
TRIVELET_HOST_DEVICE static inline Size bytes_until_mark(Size n, std::uint64_t low, bool odd, Size size,
                                                         const Byte& byte) {
  const bool carried = n > 0 && ((byte(n - 1) & 1) != 0) != odd;
  std::uint64_t value = 0;
  for (int shift = 40; !carried && shift >= 0 && value < low; shift -= 8, ++n) value |= byte(n) << shift;
  return n < size ? n : size;
}

// -------------------------------------------------------------------------------------------------------------- states

/// The largest number of decisions that a state's estimate stands for.
inline constexpr std::size_t kSeenLimit = 126;

/// An estimate of P(1), limited so that a decision takes at most 12 bits.
TRIVELET_HOST_DEVICE static inline std::uint32_t limited_probability(std::uint32_t one) {
  return one < 24 ? 24u : one > 65512 ? 65512u : one;
}
/// The estimate after a decision. `rate` is RateTable's for `seen`.
TRIVELET_HOST_DEVICE static inline std::int32_t moved_estimate(std::int32_t one, bool bit, std::int32_t rate) {
  return one + (((bit ? 65535 : 0) - one) * rate >> 16);
}

// ------------------------------------------------------------------------------------------------------------ contexts
// Context numbers of a class, in the order significance, refinement, signs, "any child group active", "this child group
// active", root groups.

inline constexpr int kEnergies = 15;
inline constexpr int kTimes = 5;
inline constexpr int kParents = 3;
inline constexpr int kPlaces = 4;
inline constexpr int kSignificance = 0;
inline constexpr int kRefinement = kSignificance + kEnergies * kTimes * kParents * kPlaces;
inline constexpr int kSigns = kRefinement + 3 * kEnergies;
inline constexpr int kAny = kSigns + 14;
inline constexpr int kChild = kAny + 4 * 2 * 5 * 2;
inline constexpr int kRoot = kChild + 3 * 2 * 5 * 5 * 2;
inline constexpr int kContexts = kRoot + 8;

/// Class of a sum of known magnitudes or of stages, by octaves.
TRIVELET_HOST_DEVICE static inline std::uint32_t octave_class(std::uint32_t n) {
  return n == 0 ? 0 : n < 2 ? 1 : n < 4 ? 2 : n < 8 ? 3 : 4;
}
/// Stage of a coefficient from its known magnitude >> plane. 0: insignificant after the first pass of the plane, 1:
/// significant since this plane, 2: significant before.
TRIVELET_HOST_DEVICE static inline std::uint32_t stage(std::uint32_t shifted) { return shifted < 2 ? shifted : 2; }

/// Weights of the neighbours along x and y in a coefficient's energy, for resolution k and orientation index o.
/// Coefficients correlate more across the direction in which the subband is high.
struct NeighbourWeights {
  std::uint32_t horizontal, vertical;
};
TRIVELET_HOST_DEVICE static inline NeighbourWeights neighbour_weights(int k, int o) {
  const int direction = k == 0 ? 0 : (o + 1) & 3;
  return {direction == 2 ? 3u : 2u, direction == 1 ? 3u : 2u};
}

/// Place of a coefficient in its group: the group was active before (0), or it is new and the coefficient is number j
/// of its quad, with or without a significant one before it.
TRIVELET_HOST_DEVICE static inline std::uint32_t place_class(bool fresh, bool found, int j) {
  return !fresh ? 0 : found ? 3 : j == 3 ? 2 : 1;
}
TRIVELET_HOST_DEVICE static inline std::uint32_t significance_context(std::uint32_t energy, std::uint32_t time,
                                                                      std::uint32_t parent, std::uint32_t place) {
  return kSignificance + ((energy * kTimes + time) * kParents + parent) * kPlaces + place;
}

/// `value`: the coefficient's known magnitude >> plane.
TRIVELET_HOST_DEVICE static inline std::uint32_t size_class(std::uint32_t value) {
  return value < 4 ? 0u : value < 8 ? 1u : 2u;
}
TRIVELET_HOST_DEVICE static inline std::uint32_t refinement_context(std::uint32_t size, std::uint32_t energy) {
  return kRefinement + size * kEnergies + energy;
}

/// A sign pattern 0..26 from the signs of horizontal, vertical and temporal neighbours (0, 1, 2 for -, 0, +). A pattern
/// and its negative share a context; for the negative the opposite sign is coded.
TRIVELET_HOST_DEVICE static inline std::uint32_t sign_pattern(std::uint32_t horizontal, std::uint32_t vertical,
                                                              std::uint32_t time) {
  return horizontal * 9 + vertical * 3 + time;
}
TRIVELET_HOST_DEVICE static inline bool sign_flips(std::uint32_t pattern) { return pattern > 13; }
TRIVELET_HOST_DEVICE static inline std::uint32_t sign_context(std::uint32_t pattern) {
  return kSigns + (sign_flips(pattern) ? 26 - pattern : pattern);
}

/// `significant`: number of significant coefficients of the group, at most 3; `near`: open groups around it.
TRIVELET_HOST_DEVICE static inline std::uint32_t any_child_context(std::uint32_t significant, bool fresh,
                                                                   std::uint32_t near, bool old) {
  return kAny + ((significant * 2 + fresh) * 5 + near) * 2 + old;
}
/// `first`: the parent group opens at this plane; `near`: active groups around it; `near_parent`: octave of the stages
/// around the parent coefficient (level 1: active groups of the orientations before); `none`: no sibling is active yet.
TRIVELET_HOST_DEVICE static inline std::uint32_t child_context(std::uint32_t stage_of_parent, bool first,
                                                               std::uint32_t near, std::uint32_t near_parent,
                                                               bool none) {
  return kChild + (((stage_of_parent * 2 + first) * 5 + near) * 5 + near_parent) * 2 + none;
}
inline constexpr std::uint32_t kChildNear = 10;  // step of the context number per unit of `near`
TRIVELET_HOST_DEVICE static inline std::uint32_t root_context(std::uint32_t near, bool fresh) {
  return kRoot + near * 2 + fresh;
}
inline constexpr std::uint32_t kRootNear = 2;

}  // namespace trivelet::dense
