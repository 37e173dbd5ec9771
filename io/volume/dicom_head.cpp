// Replaces elements in the header of a DICOM file without changing the others (PS3.5 7).
#include "io/volume/dicom_head.h"

#include <algorithm>

#include "io/volume/dicom_elements.h"

namespace trivelet::io {

namespace {

constexpr std::uint32_t kShort = 1024;  // longest value that is kept, in bytes
constexpr std::uint32_t kMetaLength = dicom_tag(0x0002, 0x0000);

/// Writes elements in the encoding of a file.
struct Encoding {
  bool explicit_vr = true;
  bool big_endian = false;

  void integer(std::vector<std::byte>& out, std::uint32_t v, int bytes) const {
    for (int i = 0; i < bytes; ++i) out.push_back(static_cast<std::byte>(v >> (8 * (big_endian ? bytes - 1 - i : i))));
  }
  void begin(std::vector<std::byte>& out, std::uint32_t tag, const char* vr) const {
    integer(out, tag >> 16, 2);
    integer(out, tag & 0xFFFF, 2);
    if (!explicit_vr) return;
    out.push_back(static_cast<std::byte>(vr[0]));
    out.push_back(static_cast<std::byte>(vr[1]));
  }
  std::vector<std::byte> element(std::uint32_t tag, const char* vr, std::string value) const {
    if (value.size() % 2) value += vr[0] == 'U' && vr[1] == 'I' ? '\0' : ' ';
    std::vector<std::byte> out;
    begin(out, tag, vr);
    integer(out, static_cast<std::uint32_t>(value.size()), explicit_vr ? 2 : 4);
    const std::vector<std::byte> bytes = to_bytes(value);
    out.insert(out.end(), bytes.begin(), bytes.end());
    return out;
  }
};

std::string padless(const std::string& value) {
  std::string text(trim(value));
  while (!text.empty() && (text.back() == '\0' || text.back() == ' ')) text.pop_back();
  return text;
}

}  // namespace

DicomHead::DicomHead(std::vector<std::byte> bytes, const DicomFile& found)
    : explicit_vr_(found.explicit_vr), big_endian_(found.big_endian) {
  const auto head = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  VolumeInput in(memory_opener(head)(), "DICOM header");
  in.append(preamble_, found.meta_at, "preamble");
  const auto elements = [&](bool is_meta) {
    std::vector<Element> pieces;
    DicomWalker walker(in, is_meta || explicit_vr_, !is_meta && big_endian_);
    while (in.position() < head->size()) {
      if (is_meta) {
        const std::string_view next = in.ahead(2);
        if (next.size() < 2 || next[0] != 2 || next[1] != 0) break;
      }
      Element p;
      const auto start = static_cast<std::ptrdiff_t>(in.position());
      DicomWalker::Element e;
      if (!walker.next(e)) break;
      p.tag = e.tag;
      const bool pixels = in.position() == found.pixels_at;
      if (!pixels) {
        if (e.length <= kShort)
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
  meta_ = elements(true);
  data_ = elements(false);
}

bool DicomHead::has(std::uint32_t tag) const {
  const auto& all = part(tag);
  return std::any_of(all.begin(), all.end(), [tag](const Element& p) { return p.tag == tag; });
}

std::string DicomHead::value(std::uint32_t tag) const {
  for (const Element& p : part(tag))
    if (p.tag == tag) return padless(p.value);
  return {};
}

void DicomHead::replace(std::uint32_t tag, const char* vr, const std::string& value) {
  const bool is_meta = tag >> 16 == 2;
  Element p;
  p.tag = tag;
  p.bytes = Encoding{is_meta || explicit_vr_, !is_meta && big_endian_}.element(tag, vr, value);
  p.value = value;
  std::vector<Element>& all = part(tag);
  std::size_t at = 0;
  while (at < all.size() && all[at].tag < tag) ++at;
  if (at < all.size() && all[at].tag == tag)
    all[at] = std::move(p);
  else
    all.insert(all.begin() + static_cast<std::ptrdiff_t>(at), std::move(p));
}

void DicomHead::remove(std::uint32_t tag) {
  std::erase_if(part(tag), [tag](const Element& p) { return p.tag == tag; });
}

void DicomHead::replace_pixels(const char* vr, std::uint32_t length) {
  require(!data_.empty(), ErrorKind::kInternal, "a DICOM header without pixels");
  const Encoding encoding{explicit_vr_, false};
  std::vector<std::byte> out;
  encoding.begin(out, data_.back().tag, vr);
  if (explicit_vr_) encoding.integer(out, 0, 2);
  encoding.integer(out, length, 4);
  data_.back().bytes = std::move(out);
}

std::vector<std::byte> DicomHead::bytes() {
  std::size_t length = 0;
  for (const Element& p : meta_)
    if (p.tag != kMetaLength) length += p.bytes.size();
  std::string number;
  for (int i = 0; i < 4; ++i) number += static_cast<char>(length >> (8 * i));
  if (has(kMetaLength)) replace(kMetaLength, "UL", number);
  std::vector<std::byte> out = preamble_;
  for (const auto* pieces : {&meta_, &data_})
    for (const Element& p : *pieces) out.insert(out.end(), p.bytes.begin(), p.bytes.end());
  return out;
}

}  // namespace trivelet::io
