// Writes a codeword of the dense profile on the device: codec/entropy/dense/range_coder.h's encoder. A codeword grows
// in pages of 512, 1024, 2048 ... bytes from a pool, so that its length need not be known.
#pragma once

#include "codec/entropy/dense/dense_arithmetic.h"
#include "gpu/entropy/zerotree.cuh"

namespace trivelet::gpu {

inline constexpr u32 kPage = 512;
inline constexpr int kPages = 20;

/// Where byte n of a segment's codeword lies: page i begins at byte kPage * (2^i - 1).
struct Pages {
  const u32* page;  // of the segment
  u8* pool;
  __device__ __forceinline__ u8* at(u32 n) const {
    const int i = 31 - __clz(static_cast<int>(n / kPage + 1));
    return pool + static_cast<u64>(page[i]) * kPage + (n - kPage * ((1u << i) - 1));
  }
};

/// codec/entropy/dense/range_coder.h's encoder. It holds back the last unit of 16 bits that a carry can still change,
/// and the run of ones after it, so that written bytes never change.
class RangeWriter {
 public:
  struct Mark {
    u64 low;  // bit 63: odd
    u32 bytes;
  };

  __device__ RangeWriter(u8* pool, u64 pool_size, u64* pool_used, u32* pages)
      : pool_(pool), pool_size_(pool_size), pool_used_(pool_used), pages_(pages) {}

  __device__ __forceinline__ void put(bool bit, u32 probability) {
    const u32 split = dense::split_range(range_, probability);
    low_ += bit ? 0 : split;
    range_ = bit ? split : range_ - split;
    const int shift = __clz(static_cast<int>(range_));
    range_ <<= shift;
    low_ <<= shift;
    pending_ += shift;
    if (pending_ >= 16) emit();
  }
  __device__ Mark mark() const {
    const u64 low = low_ << (16 - pending_);
    const u32 last = run_ > 0 ? 1 : cached_ ? cache_ & 1 : 0;
    const u64 odd = last ^ static_cast<u32>(low >> 48 & 1);
    return {(low & 0xffffffffffffull) | odd << 63, units() * 2};
  }
  /// Writes the rest; returns the length in bytes.
  __device__ u32 finish() {
    dense::take_fraction(low_, range_, pending_, [this] { emit(); });
    flush(0);
    u32 size = written_ * 2;
    if (lost_) return size;
    const Pages pages{pages_, pool_};
    while (size > 0 && *pages.at(size - 1) == 0) --size;
    return size;
  }
  __device__ bool lost() const { return lost_; }

  /// After finish(): the number of bytes of the codeword that decode everything before the mark.
  static __device__ u32 bytes_until(const Mark& m, const Pages& pages, u32 size) {
    return dense::bytes_until_mark(m.bytes, m.low & 0xffffffffffffull, m.low >> 63 != 0, size,
                                   [&](u32 i) -> u64 { return i < size ? *pages.at(i) : 0; });
  }

 private:
  __device__ u32 units() const { return written_ + run_ + (cached_ ? 1 : 0); }
  __device__ void emit() {
    const u32 out = dense::take_unit(low_, pending_);
    if (out >> 16)
      flush(1);
    else if (out == 0xffff && cached_) {
      ++run_;
      return;
    } else {
      flush(0);
    }
    cache_ = out & 0xffff;
    cached_ = true;
  }
  __device__ void flush(u32 carry) {
    if (cached_) write(cache_ + carry);
    for (; run_ > 0; --run_) write(carry ? 0 : 0xffff);
    cached_ = false;
  }
  __device__ void write(u32 unit) {
    if (left_ == 0) next_page();
    if (!lost_) {
      at_[0] = static_cast<u8>(unit >> 8);
      at_[1] = static_cast<u8>(unit);
      at_ += 2;
    }
    left_ -= 2;
    ++written_;
  }
  __device__ void next_page() {
    const u32 bytes = kPage << page_;
    const u64 from =
        atomicAdd(reinterpret_cast<unsigned long long*>(pool_used_), static_cast<unsigned long long>(bytes));
    lost_ = lost_ || from + bytes > pool_size_;
    if (!lost_) {
      pages_[page_] = static_cast<u32>(from / kPage);
      at_ = pool_ + from;
    }
    left_ = bytes;
    page_ = page_ + 2 < kPages ? page_ + 1 : page_;
  }

  u64 low_ = 0;
  u32 range_ = 0xffffffffu;
  int pending_ = 0;
  u32 cache_ = 0, run_ = 0, written_ = 0, left_ = 0;
  bool cached_ = false, lost_ = false;
  int page_ = 0;
  u8* at_ = nullptr;
  u8* pool_;
  u64 pool_size_;
  u64* pool_used_;
  u32* pages_;
};

}  // namespace trivelet::gpu
