// The bits of a CCSDS 122.0 segment on the device, and the codes of DC values and AC depths in them. Part of
// ccsds122_decode.cu.
#pragma once

#include "gpu/still/ccsds122_decode_args.cuh"
#include "gpu/transform/dwt.cuh"

namespace trivelet::gpu {

namespace {

using namespace ccsds122_decode;

__device__ __forceinline__ std::uint64_t swap_word(std::uint64_t v) {
  return static_cast<std::uint64_t>(swap_bytes(static_cast<std::uint32_t>(v))) << 32 |
         swap_bytes(static_cast<std::uint32_t>(v >> 32));
}

__device__ __forceinline__ std::uint64_t stream_word(const SegmentArrays& a, std::uint64_t i) {
  return i < a.stream_words ? swap_word(a.stream[i]) : 0;
}

/// Reads bits one after the other. Reading past `end` is allowed and gives the memory after it, at last zeros.
struct BitsIn {
  const SegmentArrays& a;
  std::uint64_t end;
  std::uint64_t index = 0;
  std::uint64_t word[3] = {};  ///< index, index + 1, index + 2
  unsigned used = 0;           ///< bits of word[0], 0..63

  __device__ __forceinline__ BitsIn(const SegmentArrays& arrays, std::uint64_t position, std::uint64_t stop)
      : a(arrays), end(stop) {
    seek(position);
  }
  __device__ __forceinline__ void seek(std::uint64_t position) {
    index = position / 64;
    used = static_cast<unsigned>(position % 64);
    TRIVELET_UNROLL
    for (unsigned i = 0; i < 3; ++i) word[i] = stream_word(a, index + i);
  }
  __device__ __forceinline__ std::uint64_t position() const { return index * 64 + used; }
  __device__ __forceinline__ std::uint64_t window() const { return word[0] << used | word[1] >> 1 >> (63 - used); }
  /// At most 64.
  __device__ __forceinline__ void skip(unsigned bits) {
    used += bits;
    if (used >= 64) {
      used -= 64;
      ++index;
      word[0] = word[1];
      word[1] = word[2];
      word[2] = stream_word(a, index + 2);
    }
  }
  /// 1..32 bits.
  __device__ __forceinline__ std::uint32_t read(unsigned bits) {
    const std::uint64_t w = window();
    skip(bits);
    return static_cast<std::uint32_t>(w >> (64 - bits));
  }
  __device__ __forceinline__ bool overrun() const { return position() > end; }
  __device__ __forceinline__ std::uint64_t left() const {
    const std::uint64_t p = position();
    return p < end ? end - p : 0;
  }
};

/// DC values or AC depths, as ccsds122::decode_sequence. `put(m, v)` takes the values.
template <class Put>
__device__ __forceinline__ std::uint32_t read_sequence(BitsIn& bits, std::uint32_t count, unsigned n, bool is_signed,
                                                       bool& damaged, const Put& put) {
  const unsigned id_bits = n == 2   ? 1
                           : n <= 4 ? 2
                           : n <= 8 ? 3
                                    : 4,
                 largest_k = n == 2   ? 0
                             : n <= 4 ? 2
                             : n <= 8 ? 6
                                      : 8;
  const std::int32_t lowest = is_signed ? -(1 << (n - 1)) : 0, highest = is_signed ? (1 << (n - 1)) - 1 : (1 << n) - 1;
  std::uint32_t done = 0;
  std::int32_t before = 0;
  for (std::uint32_t first = 0; first < count; first += 16) {
    const std::uint32_t last = first + 16 < count ? first + 16 : count;
    const unsigned k = bits.read(id_bits);
    if (bits.overrun()) return done;
    const bool coded = k != (1U << id_bits) - 1;
    if (coded && k > largest_k) {
      damaged = true;
      return done;
    }
    std::uint32_t m = first;
    if (first == 0) {
      const std::uint32_t reference = bits.read(n);
      if (bits.overrun()) return done;
      before = static_cast<std::int32_t>(reference);
      if (before > highest) before -= 1 << n;
      put(0, before);
      done = m = 1;
    }
    std::uint16_t zeros[16];
    const std::uint32_t j = last - m;
    if (coded)
      for (std::uint32_t i = 0; i < j; ++i) {
        std::uint32_t z = 0;
        for (;;) {
          const unsigned run = static_cast<unsigned>(__clzll(static_cast<long long>(bits.window() | 0xFF)));
          if (run < 56) {
            z += run;
            bits.skip(run + 1);
            break;
          }
          z += 56;
          bits.skip(56);
          if (bits.overrun() || z >> (n - (k < n ? k : n)) != 0) break;
        }
        if (bits.overrun()) return done;
        if (static_cast<std::uint64_t>(z) << k >> n != 0) {
          damaged = true;
          return done;
        }
        zeros[i] = static_cast<std::uint16_t>(z);
      }
    const unsigned low = coded ? k : n;
    for (std::uint32_t i = 0; i < j; ++i) {
      std::uint32_t u = coded ? static_cast<std::uint32_t>(zeros[i]) << k : 0;
      if (low) u |= bits.read(low);
      if (bits.overrun()) return done;
      const std::int32_t below = before - lowest, above = highest - before, t = below < above ? below : above;
      const std::int32_t v = static_cast<std::int32_t>(u);
      const std::int32_t d = v > 2 * t ? (below < above ? v - t : t - v) : v % 2 == 0 ? v / 2 : -(v + 1) / 2;
      before += d;
      if (before < lowest || before > highest) {
        // The value is not kept, but it is there: decode_sequence stores before it looks.
        put(m, before);
        damaged = true;
        return done;
      }
      put(m, before);
      done = ++m;
    }
  }
  return done;
}

}  // namespace

}  // namespace trivelet::gpu
