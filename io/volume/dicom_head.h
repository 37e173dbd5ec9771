// The bytes of a DICOM file before its pixels, with replaceable elements. Internal to io.
#pragma once

#include <string>
#include <vector>

#include "io/volume/dicom.h"

namespace trivelet::io {

class DicomHead {
 public:
  /// `bytes`: the file up to its pixels. `found`: the result of read_dicom().
  DicomHead(std::vector<std::byte> bytes, const DicomFile& found);

  /// The value without padding, also in group 0002; "" if the element is missing or too long.
  std::string value(std::uint32_t tag) const;
  bool has(std::uint32_t tag) const;
  /// Replaces the element, or inserts it in order.
  void replace(std::uint32_t tag, const char* vr, const std::string& value);
  void remove(std::uint32_t tag);
  /// Replaces the header of the last element, the pixels, by a little-endian one.
  void replace_pixels(const char* vr, std::uint32_t length);
  /// The header, with a corrected length of group 0002 if it has one.
  std::vector<std::byte> bytes();

 private:
  struct Element {
    std::uint32_t tag = 0;
    std::vector<std::byte> bytes;
    std::string value;
  };
  std::vector<Element>& part(std::uint32_t tag) { return tag >> 16 == 2 ? meta_ : data_; }
  const std::vector<Element>& part(std::uint32_t tag) const { return tag >> 16 == 2 ? meta_ : data_; }

  bool explicit_vr_;
  bool big_endian_;
  std::vector<std::byte> preamble_;
  std::vector<Element> meta_;
  std::vector<Element> data_;
};

}  // namespace trivelet::io
