// VSTC's adaptive contexts: their selection for each decision and the cost of a decision (VSTC.md, section 6). Shared
// by CPU and CUDA.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>

#include "codec/transform/lifting.h"

namespace trivelet::vstc {

/// Two running averages of P(1) in 1/65536.
struct Context {
  std::uint16_t fast = 32768;
  std::uint16_t slow = 32768;

  std::uint32_t probability() const { return std::clamp<std::uint32_t>((std::uint32_t{fast} + slow) >> 1, 256, 65280); }
  void update(bool bit) {
    const int target = bit ? 65535 : 0;
    fast = static_cast<std::uint16_t>(fast + ((target - fast) >> 4));
    slow = static_cast<std::uint16_t>(slow + ((target - slow) >> 7));
  }
};

// Indices within a set. Sizes are powers of two, given as logarithms.
inline constexpr int kSplit = 0;                   // 5 widths x 5 heights x 3 neighbourhoods
inline constexpr int kDirection = kSplit + 75;     // 5 x 5
inline constexpr int kKnown = kDirection + 25;     // 1
inline constexpr int kWhich = kKnown + 1;          // 2
inline constexpr int kModeTree = kWhich + 2;       // nodes 1..31
inline constexpr int kCoded = kModeTree + 32;      // 27 of the root, 12 inside
inline constexpr int kDivided = kCoded + 39;       // 7 x 7
inline constexpr int kAcross = kDivided + 49;      // 7 x 7
inline constexpr int kLastX = kAcross + 49;        // 7 sides x 11
inline constexpr int kLastY = kLastX + 77;         // 7 sides x 11
inline constexpr int kSignificant = kLastY + 77;   // 3 areas x 4 places x 6 sums
inline constexpr int kAbove1 = kSignificant + 72;  // 2 areas x 3 places x 5 sums
inline constexpr int kAbove2 = kAbove1 + 30;
inline constexpr int kContexts = kAbove2 + 30;

/// `smaller`: the number of neighbours (left, above) with a smaller height (left) or width (above) than this block.
TRIVELET_HOST_DEVICE inline int split_context(int log2_w, int log2_h, int smaller) {
  return kSplit + ((log2_w - 2) * 5 + log2_h - 2) * 3 + smaller;
}
TRIVELET_HOST_DEVICE inline int direction_context(int log2_w, int log2_h) {
  return kDirection + (log2_w - 2) * 5 + log2_h - 2;
}
/// `first`: -1 for the first plane of a tree, else whether the previous plane is coded.
TRIVELET_HOST_DEVICE inline int coded_root_context(int log2_area, int first) {
  return kCoded + 9 * (first + 1) + log2_area - 4;
}
TRIVELET_HOST_DEVICE inline int coded_context(int log2_area) { return kCoded + 27 + log2_area; }
TRIVELET_HOST_DEVICE inline int divided_context(int log2_w, int log2_h) { return kDivided + log2_w * 7 + log2_h; }
TRIVELET_HOST_DEVICE inline int across_context(int log2_w, int log2_h) { return kAcross + log2_w * 7 + log2_h; }

/// A level's contribution to the sums around a position: min(|a|, 5) in the low byte, 1 if a != 0 in the next byte,
/// min(|a|, 63) above.
TRIVELET_HOST_DEVICE inline std::uint32_t neighbour_term(int magnitude) {
  return static_cast<std::uint32_t>((magnitude < 5 ? magnitude : 5) | 1 << 8 | (magnitude < 63 ? magnitude : 63) << 16);
}
TRIVELET_HOST_DEVICE inline int area_class(int log2_area) { return log2_area <= 4 ? 0 : log2_area <= 6 ? 1 : 2; }
/// Classes 0, 1, 2, 3-4, 5-6, more.
TRIVELET_HOST_DEVICE inline int sum_class(int sum) { return sum < 3 ? sum : sum < 7 ? (sum + 3) / 2 : 5; }
TRIVELET_HOST_DEVICE inline int significant_context(int log2_area, int x, int y, std::uint32_t around) {
  const int d = x + y, place = d == 0 ? 0 : d == 1 ? 1 : d < 5 ? 2 : 3;
  return kSignificant + (area_class(log2_area) * 4 + place) * 6 + sum_class(static_cast<int>(around & 0xFF));
}
/// The offset within kAbove1 or kAbove2.
TRIVELET_HOST_DEVICE inline int above_context(int log2_area, int x, int y, std::uint32_t around) {
  const int d = x + y, place = d == 0 ? 0 : d < 3 ? 1 : 2;
  const int more = static_cast<int>(around & 0xFF) - static_cast<int>(around >> 8 & 0xFF);
  const int sum = more < 3 ? more : more < 6 ? 3 : 4;
  return ((log2_area <= 4 ? 0 : 1) * 3 + place) * 5 + sum;
}
TRIVELET_HOST_DEVICE inline int rest_order(std::uint32_t around) {
  const std::uint32_t a = around >> 16;
  return a < 12 ? 0 : a < 24 ? 1 : a < 48 ? 2 : a < 96 ? 3 : 4;
}
inline constexpr int kMaxRestOnes = 15;

/// The group of a last position: its number, its first value, and the number of remainder bits.
TRIVELET_HOST_DEVICE inline int last_group(int v) {
  if (v < 4) return v;
  const int k = v < 8 ? 2 : v < 16 ? 3 : v < 32 ? 4 : 5;
  return 2 * k + (v >> (k - 1) & 1);
}
TRIVELET_HOST_DEVICE inline int last_group_start(int group) {
  return group < 4 ? group : (2 + (group & 1)) << ((group >> 1) - 1);
}
TRIVELET_HOST_DEVICE inline int last_group_bits(int group) { return group < 4 ? 0 : (group >> 1) - 1; }
/// The number of groups for a side.
TRIVELET_HOST_DEVICE inline int last_groups(int log2_side) { return log2_side == 0 ? 1 : 2 * log2_side; }

using ContextSet = std::array<Context, kContexts>;
/// For luma and chroma.
using Contexts = std::array<ContextSet, 2>;

/// The contexts at the start of a codeword.
Contexts start_contexts(int qp);

/// In 1/256 bit.
using Cost = std::int32_t;
inline constexpr Cost kBit = 256;
/// The cost of a decision with probability p / 65536.
Cost cost_of(std::uint32_t p);

/// Scan order of a block and its inverse. Indices are y * width + x.
struct Scan {
  const std::uint16_t* position;
  const std::uint16_t* rank;
};
const Scan& scan_of(int log2_w, int log2_h);

}  // namespace trivelet::vstc
