// The extra bits of the tokens of a block, as an encoder collects them: the lowest bit of each first.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "codec/base/bytes.h"
#include "codec/predict/prediction_kernels.h"

namespace trivelet::prediction {

class ExtraBits {
 public:
  void start() {
    at_ = 0;
    acc_ = 0;
    fill_ = 0;
  }
  /// Appends the low `count` bits of value, at most 16.
  void put(std::uint32_t value, int count) {
    if (const std::size_t room = at_ + 8; bytes_.size() < room) bytes_.resize(2 * room);
    acc_ |= std::uint64_t{value} << fill_;
    fill_ += count;
    store_little_endian(acc_, bytes_.data() + at_);
    at_ += static_cast<std::size_t>(fill_ >> 3);
    acc_ >>= fill_ & ~7;
    fill_ &= 7;
  }
  /// Those of a row of n samples.
  void put(const RowSymbols& row, int n) {
    if (const std::size_t room = at_ + 2 * static_cast<std::size_t>(n) + 8; bytes_.size() < room)
      bytes_.resize(2 * room);
    // Local copies stay in registers: the bytes stored below might alias any member.
    std::uint8_t* to = bytes_.data() + at_;
    std::uint64_t acc = acc_;
    int fill = fill_;
    for (int x = 0; x < n; x += 32)
      for (std::uint32_t left = row.has_extra[x / 32]; left != 0; left &= left - 1) {
        const int i = x + std::countr_zero(left);
        acc |= std::uint64_t{row.extra[i]} << fill;
        fill += kBits[row.symbols[i] % kTokenSpace];
        store_little_endian(acc, to);
        to += fill >> 3;
        acc >>= fill & ~7;
        fill &= 7;
      }
    at_ = static_cast<std::size_t>(to - bytes_.data());
    acc_ = acc;
    fill_ = fill;
  }
  /// Bytes in use.
  std::size_t size() const { return at_ + (fill_ > 0 ? 1 : 0); }
  const std::uint8_t* data() const { return bytes_.data(); }

 private:
  static constexpr std::array<std::uint8_t, kTokenSpace> kBits = [] {
    std::array<std::uint8_t, kTokenSpace> b{};
    for (int t = 0; t < kTokens; ++t) b[static_cast<std::size_t>(t)] = static_cast<std::uint8_t>(extra_bits(t));
    return b;
  }();

  std::vector<std::uint8_t> bytes_;
  std::size_t at_ = 0;
  std::uint64_t acc_ = 0;
  int fill_ = 0;
};

}  // namespace trivelet::prediction
