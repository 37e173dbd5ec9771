// Marks lossy DICOM files as PS3.3 C.7.6.1.1.5 requires (Lossy Image Compression, ratio, method) and gives them new SOP
// Instance UIDs, because they are other instances than their originals. All other attributes stay as they are.
#include <cmath>

#include "codec/base/hash.h"
#include "io/volume/dicom_elements.h"
#include "io/volume/dicom_head.h"

namespace trivelet::io {

namespace {

/// A UID under the root for UUIDs (PS3.5 B.2), derived from the old one, so that it is reproducible.
std::string new_uid(const std::string& old) {
  const auto hash = [&old](char which) {
    XxHash64 h;
    h.update(old.data(), old.size());
    h.update(&which, 1);
    return h.digest();
  };
  std::uint64_t high = hash('1');
  std::uint64_t low = hash('2');
  high = (high & ~std::uint64_t{0xF000}) | 0x8000;                       // version 8: custom
  low = (low & 0x3FFFFFFFFFFFFFFF) | std::uint64_t{0x8000000000000000};  // variant of RFC 4122
  std::string digits;
  while (high != 0 || low != 0) {  // long division by ten, 32 bits at a time
    std::uint64_t rest = 0;
    std::uint64_t words[4] = {high >> 32, high & 0xFFFFFFFF, low >> 32, low & 0xFFFFFFFF};
    for (std::uint64_t& w : words) {
      const std::uint64_t v = rest << 32 | w;
      w = v / 10;
      rest = v % 10;
    }
    high = words[0] << 32 | words[1];
    low = words[2] << 32 | words[3];
    digits.insert(digits.begin(), static_cast<char>('0' + rest));
  }
  return "2.25." + digits;
}

void mark(VolumeFile& file, double ratio) {
  const auto before = std::make_shared<const std::vector<std::byte>>(file.head);
  VolumeInput in(memory_opener(before)(), file.name);
  DicomHead head(file.head, read_dicom(in));

  const std::string uid = new_uid(head.value(dicom_tag(0x0008, 0x0018)) + " at ratio " + number_text(ratio));
  head.replace(dicom_tag(0x0002, 0x0003), "UI", uid);
  head.replace(dicom_tag(0x0002, 0x0000), "UL", "    ");  // DicomHead computes the length
  head.replace(dicom_tag(0x0008, 0x0018), "UI", uid);
  const std::string type = head.value(dicom_tag(0x0008, 0x0008));
  if (type.rfind("ORIGINAL", 0) == 0) head.replace(dicom_tag(0x0008, 0x0008), "CS", "DERIVED" + type.substr(8));
  const auto behind = [&head](std::uint32_t tag, const std::string& value) {
    const std::string earlier = head.value(tag);  // earlier compressions stay recorded
    return earlier.empty() ? value : earlier + "\\" + value;
  };
  head.replace(dicom_tag(0x0028, 0x2110), "CS", "01");
  head.replace(dicom_tag(0x0028, 0x2112), "DS",
               behind(dicom_tag(0x0028, 0x2112), number_text(std::round(100 * ratio) / 100)));
  head.replace(dicom_tag(0x0028, 0x2114), "CS", behind(dicom_tag(0x0028, 0x2114), "TRIVELET_3DDWT"));
  file.head = head.bytes();
}

}  // namespace

Envelope mark_lossy(Envelope envelope, double ratio) {
  if (envelope.format == "dicom")
    for (VolumeFile& file : envelope.files) mark(file, ratio);
  return envelope;
}

}  // namespace trivelet::io
