// Numbers in the boxes of a stream (FORMAT.md "Conventions"): little-endian, or a varint of 7 bits a byte.
//
// ByteWriter and ByteReader have the same calls. One visit(io, header) lists the fields of a header for both
// directions, so that writer and reader cannot differ. A reader that runs out of bytes throws an Error that names the
// place.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "codec/base/hash.h"
#include "codec/base/limits.h"
#include "trivelet/error.h"

namespace trivelet {

/// Reads a number of sizeof(T) bytes at `p`; store_little_endian() writes one.
template <class T>
T load_little_endian(const std::uint8_t* p) {
  std::uint64_t v = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) v |= static_cast<std::uint64_t>(p[i]) << (8 * i);
  return static_cast<T>(v);
}
template <class T>
void store_little_endian(T v, std::uint8_t* p) {
  for (std::size_t i = 0; i < sizeof(T); ++i)
    p[i] = static_cast<std::uint8_t>(static_cast<std::uint64_t>(v) >> (8 * i));
}

/// Appends `v` as a varint; Byte is std::uint8_t or std::byte.
template <class Byte>
void put_varint(std::vector<Byte>& out, std::uint64_t v) {
  for (; v >= 128; v >>= 7) out.push_back(static_cast<Byte>(v | 128));
  out.push_back(static_cast<Byte>(v));
}
/// Reads a varint, whose bytes next() returns one by one. Returns nothing if the number does not fit 64 bits or takes
/// more bytes than necessary.
template <class Next>
std::optional<std::uint64_t> take_varint(const Next& next) {
  std::uint64_t v = 0;
  for (int shift = 0;; shift += 7) {
    const std::uint8_t b = next();
    if ((shift == 63 && b > 1) || (shift > 0 && b == 0)) return std::nullopt;
    v |= static_cast<std::uint64_t>(b & 127) << shift;
    if (b < 128) return v;
  }
}

/// Appends the CRC-32C of `bytes`. Headers end with it.
inline void append_crc(std::vector<std::uint8_t>& bytes) {
  const std::uint32_t crc = crc32c(bytes.data(), bytes.size());
  bytes.resize(bytes.size() + sizeof crc);
  store_little_endian(crc, bytes.data() + bytes.size() - sizeof crc);
}
/// Whether the last four bytes are the CRC-32C of the bytes before them.
inline bool crc_matches(const std::uint8_t* bytes, std::size_t size) {
  return size >= 4 && has_crc32c(bytes, size - 4, load_little_endian<std::uint32_t>(bytes + size - 4));
}

/// Appends fields to `bytes`.
class ByteWriter {
 public:
  static constexpr bool kReading = false;
  template <class T>
  void fixed(T v) {
    bytes.resize(bytes.size() + sizeof v);
    store_little_endian(v, bytes.data() + bytes.size() - sizeof v);
  }
  void real(float v) { fixed(std::bit_cast<std::uint32_t>(v)); }
  void real(double v) { fixed(std::bit_cast<std::uint64_t>(v)); }
  void varint(std::uint64_t v) { put_varint(bytes, v); }
  void signed_varint(std::int64_t v) { varint(static_cast<std::uint64_t>(v) << 1 ^ (v < 0 ? ~std::uint64_t{0} : 0)); }
  /// Writes the length and the bytes of a text; bytes behind the first `most` are dropped.
  void text(const std::string& s, std::size_t most) {
    const std::size_t n = s.size() < most ? s.size() : most;
    varint(n);
    bytes.insert(bytes.end(), s.begin(), s.begin() + static_cast<std::ptrdiff_t>(n));
  }
  std::vector<std::uint8_t> bytes;
};

/// Reads fields from `size` bytes, which it does not copy. Throws BadStream past their end; messages begin with
/// `where`.
class ByteReader {
 public:
  static constexpr bool kReading = true;
  ByteReader(const std::uint8_t* data, std::size_t size, const char* where) : data_(data), size_(size), where_(where) {}
  template <class T>
  void fixed(T& v) {
    need(sizeof(T));
    v = load_little_endian<T>(data_ + at_);
    at_ += sizeof(T);
  }
  void real(float& v) { v = std::bit_cast<float>(taken<std::uint32_t>()); }
  void real(double& v) { v = std::bit_cast<double>(taken<std::uint64_t>()); }
  void varint(std::uint64_t& v) {
    const std::optional<std::uint64_t> taken_varint = take_varint([this] { return taken<std::uint8_t>(); });
    if (!taken_varint) bad(": a number does not fit 64 bits, or takes more bytes than it needs");
    v = *taken_varint;
  }
  void signed_varint(std::int64_t& v) {
    std::uint64_t x = 0;
    varint(x);
    v = static_cast<std::int64_t>(x >> 1 ^ (x & 1 ? ~std::uint64_t{0} : 0));
  }
  void text(std::string& s, std::size_t most) {
    std::uint64_t n = 0;
    varint(n);
    if (n > most) bad(": a text of " + count_of(n, "byte") + ", the limit is " + std::to_string(most));
    need(static_cast<std::size_t>(n));
    s.assign(reinterpret_cast<const char*>(data_ + at_), static_cast<std::size_t>(n));
    at_ += static_cast<std::size_t>(n);
  }
  void expect_end() const {
    if (left() > 0) bad(": " + count_of(left(), "byte") + " too many");
  }
  std::size_t left() const { return size_ - at_; }
  /// The remaining bytes.
  std::vector<std::uint8_t> rest() {
    const std::size_t from = std::exchange(at_, size_);
    return {data_ + from, data_ + size_};
  }
  /// A reader of the next `n` bytes, which this reader skips.
  ByteReader piece(std::uint64_t n) {
    if (n > left()) bad(": " + count_of(n, "byte") + " of it, " + std::to_string(left()) + " are left");
    const std::size_t from = std::exchange(at_, at_ + static_cast<std::size_t>(n));
    return {data_ + from, static_cast<std::size_t>(n), where_};
  }

 private:
  [[noreturn]] void bad(const std::string& what) const { fail(ErrorKind::kBadStream, where_ + what); }
  void need(std::size_t n) const {
    if (n > left()) bad(" ends early, at byte " + std::to_string(at_) + " of " + std::to_string(size_));
  }
  template <class T>
  T taken() {
    T v{};
    fixed(v);
    return v;
  }
  const std::uint8_t* data_;
  std::size_t size_;
  std::size_t at_ = 0;
  const char* where_;
};

}  // namespace trivelet
