// The elements of a DICOM data set, one after the other (PS3.5 7). Internal to io.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "io/volume/volume_input.h"

namespace trivelet::io {

inline constexpr std::uint32_t kUndefined = 0xFFFFFFFF;
inline constexpr int kMaxDepth = 32;
inline constexpr std::uint32_t kMaxValue = 65536;  // longest attribute value that is parsed

inline constexpr std::uint32_t dicom_tag(std::uint32_t group, std::uint32_t element) { return group << 16 | element; }
inline constexpr std::uint32_t kItem = dicom_tag(0xFFFE, 0xE000);
inline constexpr std::uint32_t kItemEnd = dicom_tag(0xFFFE, 0xE00D);
inline constexpr std::uint32_t kSequenceEnd = dicom_tag(0xFFFE, 0xE0DD);

inline bool is_long_vr(const char* vr) {
  static constexpr const char* kLong = "OB OW OF OD OL OV SQ UC UR UT UN SV UV";
  const char two[3] = {vr[0], vr[1], 0};
  return std::strstr(kLong, two) != nullptr;
}

/// Two capital letters. In explicit encoding an element without them is one in implicit encoding, as some programs put
/// among the others; a length whose bytes are letters has more than 16,000 bytes.
inline bool begins_with_type(std::string_view next) {
  const auto is_letter = [](char c) { return c >= 'A' && c <= 'Z'; };
  return next.size() >= 2 && is_letter(next[0]) && is_letter(next[1]);
}

/// Walks the elements of a data set.
class DicomWalker {
 public:
  struct Element {
    std::uint32_t tag = 0;
    char vr[3] = {};
    std::uint32_t length = 0;
  };

  DicomWalker(VolumeInput& in, bool explicit_vr, bool big_endian)
      : in_(in), explicit_(explicit_vr), big_endian_(big_endian) {}

  /// False at the end of the input.
  bool next(Element& e) {
    if (in_.ahead(8).size() < 8) return false;
    const std::uint32_t group = u16();
    e.tag = dicom_tag(group, u16());
    e.vr[0] = e.vr[1] = 0;
    if (explicit_ && group != 0xFFFE && begins_with_type(in_.ahead(2))) {
      in_.read_exactly(reinterpret_cast<std::byte*>(e.vr), 2, "element");
      if (is_long_vr(e.vr)) {
        (void)u16();
        e.length = u32();
      } else {
        e.length = u16();
      }
    } else {
      e.length = u32();
    }
    return true;
  }

  std::string value(const Element& e) {
    require(e.length <= kMaxValue, ErrorKind::kBadStream,
            in_.name() + ": an attribute of " + std::to_string(e.length) + " bytes where a few are due");
    std::string text(e.length, '\0');
    in_.read_exactly(reinterpret_cast<std::byte*>(text.data()), e.length, "attribute");
    return text;
  }

  void skip(const Element& e, int depth = 0) {
    if (e.length != kUndefined) {
      in_.skip(e.length, "attribute");
      return;
    }
    require(depth < kMaxDepth, ErrorKind::kBadStream,
            in_.name() + ": sequences nested more than " + std::to_string(kMaxDepth) + " deep");
    // UN of undefined length holds implicit elements whatever the data set is (PS3.5 6.2.2).
    const bool was_explicit = explicit_;
    if (e.vr[0] == 'U' && e.vr[1] == 'N') explicit_ = false;
    Element item;
    while (true) {
      require(next(item), ErrorKind::kBadStream, in_.name() + ": a sequence without end");
      if (item.tag == kSequenceEnd) break;
      require(item.tag == kItem, ErrorKind::kBadStream, in_.name() + ": something else than items in a sequence");
      if (item.length != kUndefined) {
        in_.skip(item.length, "sequence");
        continue;
      }
      Element inner;
      while (true) {
        require(next(inner), ErrorKind::kBadStream, in_.name() + ": an item without end");
        if (inner.tag == kItemEnd) break;
        skip(inner, depth + 1);
      }
    }
    explicit_ = was_explicit;
  }

  /// Reads a sequence: calls `begin` at every item and `each` for every element in it, which it consumes or skips.
  template <typename Begin, typename Each>
  void items(const Element& e, Begin begin, Each each) {
    const std::uint64_t end = end_of(e);
    Element item;
    Element inner;
    while (in_.position() < end) {
      require(next(item), ErrorKind::kBadStream, in_.name() + ": a sequence without end");
      if (item.tag == kSequenceEnd) break;
      require(item.tag == kItem, ErrorKind::kBadStream, in_.name() + ": something else than items in a sequence");
      begin();
      const std::uint64_t item_end = end_of(item);
      while (in_.position() < item_end) {
        require(next(inner), ErrorKind::kBadStream, in_.name() + ": an item without end");
        if (inner.tag == kItemEnd) break;
        each(inner);
      }
      require(item.length == kUndefined || in_.position() == item_end, ErrorKind::kBadStream,
              in_.name() + ": an element reaches beyond its item");
    }
    require(e.length == kUndefined || in_.position() == end, ErrorKind::kBadStream,
            in_.name() + ": an item reaches beyond its sequence");
  }

  std::uint32_t u16() { return static_cast<std::uint32_t>(integer(2)); }
  std::uint32_t u32() { return static_cast<std::uint32_t>(integer(4)); }

 private:
  /// The offset of the end of an element of known length.
  std::uint64_t end_of(const Element& e) const {
    return e.length == kUndefined ? ~std::uint64_t{0} : in_.position() + e.length;
  }
  std::uint64_t integer(std::size_t bytes) {
    std::byte b[4];
    in_.read_exactly(b, bytes, "element");
    std::uint64_t v = 0;
    for (std::size_t i = 0; i < bytes; ++i)
      v |= static_cast<std::uint64_t>(b[big_endian_ ? bytes - 1 - i : i]) << (8 * i);
    return v;
  }

  VolumeInput& in_;
  bool explicit_;
  bool big_endian_;
};

}  // namespace trivelet::io
