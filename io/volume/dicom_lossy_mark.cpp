// Lossy DICOM files say so: PS3.3 C.7.6.1.1.5 (Lossy Image Compression, ratio, method), and are other instances than
// those they come from (new SOP Instance UIDs). All other attributes stay as they are.
#include <cmath>

#include "codec/base/hash.h"
#include "io/volume/dicom.h"
#include "io/volume/dicom_elements.h"

namespace trivelet::io {

namespace {

struct DicomElement {
  std::uint32_t tag = 0;
  std::vector<std::byte> bytes;  // of the whole element
  std::string value;             // of short ones
};

/// Writes elements in the encoding of a file.
struct Encoding {
  bool explicit_vr = true;
  bool big_endian = false;

  void integer(std::vector<std::byte>& out, std::uint32_t v, int bytes) const {
    for (int i = 0; i < bytes; ++i) out.push_back(static_cast<std::byte>(v >> (8 * (big_endian ? bytes - 1 - i : i))));
  }
  std::vector<std::byte> element(std::uint32_t tag, const char* vr, std::string value) const {
    if (value.size() % 2) value += vr[0] == 'U' && vr[1] == 'I' ? '\0' : ' ';
    std::vector<std::byte> out;
    integer(out, tag >> 16, 2);
    integer(out, tag & 0xFFFF, 2);
    if (explicit_vr) {
      out.push_back(static_cast<std::byte>(vr[0]));
      out.push_back(static_cast<std::byte>(vr[1]));
      integer(out, static_cast<std::uint32_t>(value.size()), 2);
    } else {
      integer(out, static_cast<std::uint32_t>(value.size()), 4);
    }
    const std::vector<std::byte> bytes = to_bytes(value);
    out.insert(out.end(), bytes.begin(), bytes.end());
    return out;
  }
};

std::string padless(const std::string& value) {
  std::string text(trim(value));
  while (!text.empty() && text.back() == '\0') text.pop_back();
  return text;
}

/// A UID under the root for UUIDs (PS3.5 B.2), made from the old one, so that it is the same every time.
std::string new_uid(const std::string& old) {
  const auto hash = [&old](char which) {
    XxHash64 h;
    h.update(old.data(), old.size());
    h.update(&which, 1);
    return h.digest();
  };
  std::uint64_t high = hash('1');
  std::uint64_t low = hash('2');
  high = (high & ~std::uint64_t{0xF000}) | 0x8000;                       // version 8: our own making
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
  const auto head = std::make_shared<const std::vector<std::byte>>(file.head);
  DicomFile found;
  {
    VolumeInput in(memory_opener(head)(), file.name);
    found = read_dicom(in);
  }
  const Encoding data{found.transfer_syntax != "1.2.840.10008.1.2", found.big_endian};
  const Encoding meta{};

  VolumeInput in(memory_opener(head)(), file.name);
  std::vector<std::byte> out;
  in.append(out, 132, "preamble");
  const auto elements = [&](const Encoding& encoding, bool is_meta) {
    std::vector<DicomElement> pieces;
    DicomWalker walker(in, encoding.explicit_vr, encoding.big_endian);
    while (in.position() < head->size()) {
      if (is_meta) {
        const std::string_view next = in.ahead(2);
        if (next.size() < 2 || next[0] != 2 || next[1] != 0) break;
      }
      DicomElement p;
      const auto start = static_cast<std::ptrdiff_t>(in.position());
      DicomWalker::Element e;
      if (!walker.next(e)) break;
      p.tag = e.tag;
      const bool pixels = in.position() == found.pixels_at;
      if (!pixels) {
        if (e.length <= 1024)
          p.value = walker.value(e);
        else
          walker.skip(e);
      }
      p.bytes.assign(head->begin() + start, head->begin() + static_cast<std::ptrdiff_t>(in.position()));
      pieces.push_back(std::move(p));
      if (pixels) break;
    }
    return pieces;
  };
  const auto replace = [](std::vector<DicomElement>& pieces, const Encoding& encoding, std::uint32_t tag,
                          const char* vr, const std::string& value) {
    DicomElement p;
    p.tag = tag;
    p.bytes = encoding.element(tag, vr, value);
    std::size_t at = 0;
    while (at < pieces.size() && pieces[at].tag < tag) ++at;
    if (at < pieces.size() && pieces[at].tag == tag)
      pieces[at] = std::move(p);
    else
      pieces.insert(pieces.begin() + static_cast<std::ptrdiff_t>(at), std::move(p));
  };
  const auto value_of = [](const std::vector<DicomElement>& pieces, std::uint32_t tag) {
    for (const DicomElement& p : pieces)
      if (p.tag == tag) return padless(p.value);
    return std::string();
  };

  std::vector<DicomElement> first = elements(meta, true);
  std::vector<DicomElement> rest = elements(data, false);
  const std::string uid = new_uid(value_of(rest, dicom_tag(0x0008, 0x0018)) + " at ratio " + number_text(ratio));
  replace(first, meta, dicom_tag(0x0002, 0x0003), "UI", uid);
  std::size_t length = 0;
  for (const DicomElement& p : first)
    if (p.tag != dicom_tag(0x0002, 0x0000)) length += p.bytes.size();
  std::string number;
  for (int i = 0; i < 4; ++i) number += static_cast<char>(length >> (8 * i));
  replace(first, meta, dicom_tag(0x0002, 0x0000), "UL", number);

  replace(rest, data, dicom_tag(0x0008, 0x0018), "UI", uid);
  const std::string type = value_of(rest, dicom_tag(0x0008, 0x0008));
  if (type.rfind("ORIGINAL", 0) == 0) replace(rest, data, dicom_tag(0x0008, 0x0008), "CS", "DERIVED" + type.substr(8));
  const auto behind = [&](std::uint32_t tag, const std::string& value) {
    const std::string before = value_of(rest, tag);  // earlier compressions stay on record
    return before.empty() ? value : before + "\\" + value;
  };
  replace(rest, data, dicom_tag(0x0028, 0x2110), "CS", "01");
  replace(rest, data, dicom_tag(0x0028, 0x2112), "DS",
          behind(dicom_tag(0x0028, 0x2112), number_text(std::round(100 * ratio) / 100)));
  replace(rest, data, dicom_tag(0x0028, 0x2114), "CS", behind(dicom_tag(0x0028, 0x2114), "TRIVELET_3DDWT"));
  for (const auto* pieces : {&first, &rest})
    for (const DicomElement& p : *pieces) out.insert(out.end(), p.bytes.begin(), p.bytes.end());
  file.head = std::move(out);
}

}  // namespace

Envelope mark_lossy(Envelope envelope, double ratio) {
  if (envelope.format == "dicom")
    for (VolumeFile& file : envelope.files) mark(file, ratio);
  return envelope;
}

}  // namespace trivelet::io
