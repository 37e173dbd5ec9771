// The bytes of a DICOM file before its pixels, of which single elements are replaced. Internal to io.
#pragma once

#include <string>
#include <vector>

#include "io/volume/dicom.h"

namespace trivelet::io {

class DicomHead {
 public:
  /// `bytes`: of a file up to its pixels. `found`: what read_dicom() says of it.
  DicomHead(std::vector<std::byte> bytes, const DicomFile& found);

  /// Without padding; "" where there is no such element or it is long. Those of group 0002 are found, too.
  std::string value(std::uint32_t tag) const;
  bool has(std::uint32_t tag) const;
  /// In place of the old one, or where it belongs.
  void replace(std::uint32_t tag, const char* vr, const std::string& value);
  void remove(std::uint32_t tag);
  /// The header of the last element, the pixels; little-endian.
  void replace_pixels(const char* vr, std::uint32_t length);
  /// With the right length of group 0002 where that is said.
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
