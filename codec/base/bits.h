// Bit strings (FORMAT.md "Conventions"): the first bit of a byte is its least significant one.
//
// Past the end a reader returns zeros and sets overrun(), which is checked once per chunk. BitWriter and BitReader
// serve headers; the coder's inner loops have their own 64-bit forms (zerotree_kernels.cpp).
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace trivelet {

class BitWriter {
 public:
  /// Appends the low `count` bits of value, 0..32.
  void put(std::uint32_t value, int count) {
    acc_ |= (static_cast<std::uint64_t>(value) & ((std::uint64_t{1} << count) - 1)) << fill_;
    fill_ += count;
    while (fill_ >= 8) {
      bytes_.push_back(static_cast<std::uint8_t>(acc_));
      acc_ >>= 8;
      fill_ -= 8;
    }
  }
  /// `value` ones and a zero.
  void put_unary(unsigned value) {
    for (; value >= 16; value -= 16) put(0xffff, 16);
    put((1u << value) - 1, static_cast<int>(value) + 1);
  }
  /// Golomb-Rice: value >> k in unary, then the low k bits.
  void put_rice(std::uint32_t value, int k) {
    put_unary(value >> k);
    put(value, k);
  }
  /// Bits written so far.
  std::size_t bits() const { return 8 * bytes_.size() + static_cast<std::size_t>(fill_); }
  /// Pads with zeros to a byte and hands over the bytes.
  std::vector<std::uint8_t> take() {
    if (fill_ > 0) put(0, 8 - fill_);
    return std::move(bytes_);
  }

 private:
  std::vector<std::uint8_t> bytes_;
  std::uint64_t acc_ = 0;
  int fill_ = 0;
};

class BitReader {
 public:
  BitReader(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}
  /// The next `count` bits, 0..32.
  std::uint32_t get(int count) {
    if (fill_ < count) refill(count);
    const auto value = static_cast<std::uint32_t>(acc_ & ((std::uint64_t{1} << count) - 1));
    acc_ >>= count;
    fill_ -= count;
    return value;
  }
  /// Counts the ones before the next zero. More than `limit` of them set overrun().
  unsigned get_unary(unsigned limit) {
    unsigned n = 0;
    for (;;) {
      if (fill_ == 0) refill(1);
      const int ones = std::min(std::countr_one(acc_), fill_);
      n += static_cast<unsigned>(ones);
      if (n > limit || overrun_) {
        overrun_ = true;
        return 0;
      }
      if (ones == fill_) {
        acc_ = 0;
        fill_ = 0;
        continue;
      }
      acc_ >>= ones + 1;
      fill_ -= ones + 1;
      return n;
    }
  }
  std::uint32_t get_rice(int k, std::uint32_t limit) {
    const std::uint32_t high = get_unary((limit >> k) + 1);
    return (high << k) | get(k);
  }
  bool overrun() const { return overrun_; }
  /// Bytes of which at least one bit was read.
  std::size_t bytes() const { return at_ - static_cast<std::size_t>(fill_ / 8); }
  /// Whether the rest of the current byte is zero (padding).
  bool padding_is_zero() const { return (acc_ & ((std::uint64_t{1} << (fill_ % 8)) - 1)) == 0; }

 private:
  void refill(int count) {
    for (; fill_ < 56 && at_ < size_; fill_ += 8) acc_ |= std::uint64_t{data_[at_++]} << fill_;
    for (; fill_ < count; fill_ += 8) {
      overrun_ = true;
      ++at_;
    }
  }

  const std::uint8_t* data_;
  std::size_t size_;
  std::size_t at_ = 0;
  std::uint64_t acc_ = 0;
  int fill_ = 0;
  bool overrun_ = false;
};

}  // namespace trivelet
