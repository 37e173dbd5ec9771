// The Io classes of vstc_syntax.h: encoding, decoding, adapting contexts without a stream, and summing costs.
#pragma once

#include <array>
#include <cstdint>

#include "codec/entropy/dense/range_coder.h"
#include "codec/still/vstc/vstc_model.h"

namespace trivelet::vstc {

class CodingIo {
 public:
  static constexpr bool kDecodes = false;
  CodingIo(dense::RangeEncoder& coder, Contexts& contexts) : coder_(coder), contexts_(contexts) {}
  bool bit(int set, int context, bool value) {
    Context& c = contexts_[static_cast<std::size_t>(set)][static_cast<std::size_t>(context)];
    coder_.reserve(1);
    coder_.put(value, c.probability());
    c.update(value);
    return value;
  }
  unsigned plain(int count, unsigned value) {
    for (int i = count - 1; i >= 0; --i) {
      coder_.reserve(1);
      coder_.put(value >> i & 1, 32768);
    }
    return value;
  }

 private:
  dense::RangeEncoder& coder_;
  Contexts& contexts_;
};

class DecodingIo {
 public:
  static constexpr bool kDecodes = true;
  DecodingIo(dense::RangeDecoder& coder, Contexts& contexts) : coder_(coder), contexts_(contexts) {}
  bool bit(int set, int context, bool) {
    Context& c = contexts_[static_cast<std::size_t>(set)][static_cast<std::size_t>(context)];
    const bool value = coder_.get(c.probability());
    c.update(value);
    return value;
  }
  unsigned plain(int count, unsigned) {
    unsigned value = 0;
    for (int i = 0; i < count; ++i) value = 2 * value + coder_.get(32768);
    return value;
  }

 private:
  dense::RangeDecoder& coder_;
  Contexts& contexts_;
};

/// Adapts contexts as coding a block would, and optionally counts decisions.
class AdaptingIo {
 public:
  static constexpr bool kDecodes = false;
  /// counts: two arrays of 2 * kContexts, or null.
  AdaptingIo(Contexts& contexts, std::uint32_t* const* counts) : contexts_(contexts), counts_(counts) {}
  bool bit(int set, int context, bool value) {
    contexts_[static_cast<std::size_t>(set)][static_cast<std::size_t>(context)].update(value);
    if (counts_) ++counts_[set][2 * context + value];
    return value;
  }
  unsigned plain(int, unsigned value) { return value; }

 private:
  Contexts& contexts_;
  std::uint32_t* const* counts_;
};

/// Costs of both values of every decision, from frozen contexts.
using CostSet = std::array<std::array<Cost, 2>, kContexts>;

class CostIo {
 public:
  static constexpr bool kDecodes = false;
  explicit CostIo(const std::array<CostSet, 2>& costs) : costs_(costs) {}
  bool bit(int set, int context, bool value) {
    total += costs_[static_cast<std::size_t>(set)][static_cast<std::size_t>(context)][value];
    return value;
  }
  unsigned plain(int count, unsigned value) {
    total += count * kBit;
    return value;
  }
  std::int64_t total = 0;

 private:
  const std::array<CostSet, 2>& costs_;
};

}  // namespace trivelet::vstc
