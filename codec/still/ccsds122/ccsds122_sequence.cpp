// Codes DC values and AC depths in gaggles (see ccsds122_sequence.h).
#include "codec/still/ccsds122/ccsds122_sequence.h"

#include <algorithm>
#include <bit>

namespace trivelet::ccsds122 {
namespace {

constexpr int kGaggle = 16;

/// Format of option ids by value size: their length and the largest k.
struct IdFormat {
  unsigned bits;
  int largest_k;
  explicit IdFormat(int n)
      : bits(n == 2   ? 1
             : n <= 4 ? 2
             : n <= 8 ? 3
                      : 4),
        largest_k(n == 2   ? 0
                  : n <= 4 ? 2
                  : n <= 8 ? 6
                           : 8) {}
  unsigned uncoded() const { return (1U << bits) - 1; }
};

std::uint32_t fold(std::int32_t difference, std::int32_t before, const SequenceFormat& f) {
  const std::int32_t t = std::min(before - f.lowest(), f.highest() - before);
  const std::int32_t size = difference < 0 ? -difference : difference;
  if (size > t) return static_cast<std::uint32_t>(t + size);
  return static_cast<std::uint32_t>(difference >= 0 ? 2 * difference : -2 * difference - 1);
}

std::int32_t unfold(std::uint32_t u, std::int32_t before, const SequenceFormat& f) {
  const std::int32_t below = before - f.lowest(), above = f.highest() - before;
  const std::int32_t t = std::min(below, above), v = static_cast<std::int32_t>(u);
  if (v > 2 * t) return below < above ? v - t : t - v;
  return v % 2 == 0 ? v / 2 : -(v + 1) / 2;
}

/// The best k of the gaggle; -1 for uncoded.
int best_k(const std::uint32_t* u, int count, int n, int largest_k) {
  int best = -1;
  std::uint32_t least = static_cast<std::uint32_t>(n * count);
  for (int k = 0; k <= largest_k; ++k) {
    std::uint32_t cost = static_cast<std::uint32_t>((k + 1) * count);
    for (int i = 0; i < count; ++i) cost += u[i] >> k;
    if (cost < least) {
      least = cost;
      best = k;
    }
  }
  return best;
}

int heuristic_k(const std::uint32_t* u, int count, int n) {
  std::int64_t delta = 0;
  for (int i = 0; i < count; ++i) delta += u[i];
  const std::int64_t j = count;
  if (64 * delta >= 23 * j * (std::int64_t{1} << n)) return -1;
  if (207 * j > 128 * delta) return 0;
  if (j * (std::int64_t{1} << (n + 5)) <= 128 * delta + 49 * j) return n - 2;
  int k = 0;
  while (k < n - 2 && j * (std::int64_t{1} << (k + 8)) <= 128 * delta + 49 * j) ++k;
  return k;
}

}  // namespace

void encode_sequence(const std::int32_t* values, std::uint32_t count, const SequenceFormat& format, bool optimal,
                     WordWriter& out) {
  const IdFormat id(format.bits);
  const unsigned n = static_cast<unsigned>(format.bits);
  for (std::uint32_t first = 0; first < count; first += kGaggle) {
    const std::uint32_t last = std::min<std::uint32_t>(first + kGaggle, count);
    std::uint32_t u[kGaggle];
    int j = 0;
    for (std::uint32_t m = std::max<std::uint32_t>(first, 1); m < last; ++m)
      u[j++] = fold(values[m] - values[m - 1], values[m - 1], format);
    const int k = optimal ? best_k(u, j, format.bits, id.largest_k) : heuristic_k(u, j, format.bits);
    out.put(k < 0 ? id.uncoded() : static_cast<unsigned>(k), id.bits);
    if (first == 0) out.put(static_cast<std::uint32_t>(values[0]) & ((1U << n) - 1), n);
    if (k < 0) {
      for (int i = 0; i < j; ++i) out.put(u[i], n);
      continue;
    }
    for (int i = 0; i < j; ++i) {
      std::uint32_t zeros = u[i] >> k;
      for (; zeros >= 32; zeros -= 32) out.put(0, 32);
      out.put(1, zeros + 1);
    }
    if (k > 0)
      for (int i = 0; i < j; ++i) out.put(u[i] & ((1U << k) - 1), static_cast<unsigned>(k));
  }
}

SequenceResult decode_sequence(BitCursor& bits, std::uint32_t count, const SequenceFormat& format,
                               std::int32_t* values) {
  const IdFormat id(format.bits);
  const unsigned n = static_cast<unsigned>(format.bits);
  SequenceResult result;
  for (std::uint32_t first = 0; first < count; first += kGaggle) {
    const std::uint32_t last = std::min<std::uint32_t>(first + kGaggle, count);
    const unsigned k = bits.read(id.bits);
    if (bits.overrun()) return result;
    if (k != id.uncoded() && static_cast<int>(k) > id.largest_k) {
      result.damaged = true;
      return result;
    }
    std::uint32_t m = first;
    if (first == 0) {
      const std::uint32_t reference = bits.read(n);
      if (bits.overrun()) return result;
      values[0] = static_cast<std::int32_t>(reference);
      if (values[0] > format.highest()) values[0] -= 1 << n;
      result.count = m = 1;
    }
    std::uint32_t u[kGaggle] = {};
    const std::uint32_t j = last - m;
    const bool coded = k != id.uncoded();
    if (coded) {
      for (std::uint32_t i = 0; i < j; ++i) {
        std::uint32_t zeros = 0;
        for (;;) {
          const unsigned z = static_cast<unsigned>(std::countl_zero(bits.window() | 0xFF));
          if (z < 56) {
            zeros += z;
            bits.position += z + 1;
            break;
          }
          zeros += 56;
          bits.position += 56;
          if (bits.overrun() || zeros >> (n - std::min(k, n)) != 0) break;
        }
        if (bits.overrun()) return result;
        if (static_cast<std::uint64_t>(zeros) << k >> n != 0) {
          result.damaged = true;
          return result;
        }
        u[i] = zeros << k;
      }
    }
    const unsigned low = coded ? k : n;
    for (std::uint32_t i = 0; i < j; ++i) {
      if (low) u[i] |= bits.read(low);
      if (bits.overrun()) return result;
      const std::int32_t before = values[m - 1];
      values[m] = before + unfold(u[i], before, format);
      if (values[m] < format.lowest() || values[m] > format.highest()) {
        result.damaged = true;
        return result;
      }
      result.count = ++m;
    }
  }
  return result;
}

}  // namespace trivelet::ccsds122
