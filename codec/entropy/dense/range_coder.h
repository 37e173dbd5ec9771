// The adaptive binary range coder of the dense profile: one codeword per segment, cut at any symbol.
//
// A codeword is the binary fraction 0.V0 V1 V2 … (bytes, most significant bit first; zeros behind the last byte). Coder
// and decoder keep a range R in [2^31, 2^32). A decision whose probability of being 1 is P / 65536 divides it at
// S = floor(R * P / 65536): 1 takes the lower part S, 0 the upper part R - S; then R is shifted left until its top bit
// is set again. Shifting by the count of leading zeros instead of byte by byte costs one branch per 16 bits and keeps
// R large, so P may be as small as 24.
//
// Truncation: a codeword cut to n bytes decodes the same decisions as long as the shorter fraction is inside the
// interval after those decisions. The encoder notes the interval (Mark) and finds the smallest such n when the codeword
// is complete.
//
// Source: Martin (1979). Carries are added into the bytes already written, as in AV1 (Daala).
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>

#include "codec/entropy/dense/dense_arithmetic.h"

namespace trivelet::dense {

/// Writes one codeword after the other into its own memory.
class RangeEncoder {
 public:
  /// The lower end of the interval after some decisions.
  struct Mark {
    std::size_t bytes = 0;  ///< written so far
    std::uint64_t low = 0;  ///< the 48 bits behind them
    bool odd = false;       ///< lowest bit of the last byte, which shows a later carry into it
  };

  void start() {
    size_ = 0;
    low_ = 0;
    range_ = 0xffffffffu;
    pending_ = 0;
  }
  /// Reserves memory for `decisions` more; each takes at most 12 bits.
  void reserve(std::size_t decisions) {
    const std::size_t needed = size_ + 2 * decisions + 16;
    if (needed <= capacity_) return;
    capacity_ = 2 * needed;
    auto larger = std::make_unique_for_overwrite<std::uint8_t[]>(capacity_);
    if (size_ > 0) std::memcpy(larger.get(), bytes_.get(), size_);
    bytes_ = std::move(larger);
  }
  void put(bool bit, std::uint32_t probability) {
    const std::uint32_t split = split_range(range_, probability);
    const std::uint32_t upper = bit ? 0 : ~0u;
    low_ += split & upper;
    range_ = bit ? split : range_ - split;
    const int shift = std::countl_zero(range_);
    range_ <<= shift;
    low_ <<= shift;
    pending_ += shift;
    if (pending_ >= 16) emit();
  }
  Mark mark() const {
    const std::uint64_t low = low_ << (16 - pending_);
    const bool last = size_ > 0 && (bytes_[size_ - 1] & 1);
    return {size_, low & 0xffffffffffffull, last != ((low >> 48 & 1) != 0)};
  }
  /// Ends the codeword with the fraction of the final interval that has the fewest bytes. data() and size() then give
  /// the codeword.
  void finish() {
    reserve(16);
    take_fraction(low_, range_, pending_, [this] { emit(); });
    while (size_ > 0 && bytes_[size_ - 1] == 0) --size_;
  }
  const std::uint8_t* data() const { return bytes_.get(); }
  std::size_t size() const { return size_; }

  /// After finish(): the number of bytes of the codeword that decode everything before the mark.
  std::size_t bytes_until(const Mark& m) const {
    return bytes_until_mark(m.bytes, m.low, m.odd, size_,
                            [&](std::size_t i) -> std::uint64_t { return i < size_ ? bytes_[i] : 0; });
  }

 private:
  void emit() {
    const std::uint32_t out = take_unit(low_, pending_);
    if (out >> 16)
      for (std::size_t i = size_; i-- > 0 && ++bytes_[i] == 0;) {
      }
    bytes_[size_++] = static_cast<std::uint8_t>(out >> 8);
    bytes_[size_++] = static_cast<std::uint8_t>(out);
  }

  std::unique_ptr<std::uint8_t[]> bytes_;
  std::size_t capacity_ = 0;
  std::size_t size_ = 0;
  std::uint64_t low_ = 0;
  std::uint32_t range_ = 0xffffffffu;
  int pending_ = 0;
};

/// Reads one codeword. Bytes after its end are zeros; nothing outside [data, data + size) is read.
class RangeDecoder {
 public:
  void start(const std::uint8_t* data, std::size_t size) {
    at_ = data;
    end_ = data + size;
    beyond_ = -8 * static_cast<std::int64_t>(size);
    value_ = 0;
    spare_ = -32;
    range_ = 0xffffffffu;
    fill();
    fill();
  }
  bool get(std::uint32_t probability) {
    const std::uint32_t split = split_range(range_, probability);
    const std::uint64_t border = std::uint64_t{split} << 32;
    const bool bit = value_ < border;
    value_ -= bit ? 0 : border;
    range_ = bit ? split : range_ - split;
    const int shift = std::countl_zero(range_);
    range_ <<= shift;
    value_ <<= shift;
    spare_ -= shift;
    if (spare_ < 0) fill();
    return bit;
  }
  /// Bits that the decisions so far have used after the end of the codeword; negative inside it. An ordinary codeword
  /// uses hardly any. A hostile one can use many: decisions that always take the lower part need no bytes.
  std::int64_t beyond_end() const { return beyond_ - spare_ - 32; }

 private:
  // value_ holds 32 + spare_ bits from its top down; at least 32 are needed.
  void fill() {
    std::uint32_t word = 0;
    if (end_ - at_ >= 4) {
      word = std::uint32_t{at_[0]} << 24 | std::uint32_t{at_[1]} << 16 | std::uint32_t{at_[2]} << 8 | at_[3];
      at_ += 4;
    } else {
      for (int i = 0; i < 4; ++i) word = word << 8 | (at_ < end_ ? *at_++ : 0u);
    }
    const int shift = -spare_;  // free bits below the valid ones: 32 - spare_; the word fills 32 of them
    value_ |= std::uint64_t{word} << shift;
    beyond_ += 32;
    spare_ += 32;
  }

  const std::uint8_t* at_ = nullptr;
  const std::uint8_t* end_ = nullptr;
  std::int64_t beyond_ = 0;  // bits read, less those of the codeword
  std::uint64_t value_ = 0;
  std::uint32_t range_ = 0xffffffffu;
  int spare_ = 0;
};

}  // namespace trivelet::dense
