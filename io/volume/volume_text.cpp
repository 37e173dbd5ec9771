// The texts in the header of a volume's first file, for people. They may name the patient.
#include <algorithm>
#include <cstdio>

#include "codec/base/limits.h"
#include "io/volume/dicom.h"
#include "io/volume/dicom_elements.h"

namespace trivelet::io {

namespace {

/// A field without its padding.
std::string text_of(std::string_view text) {
  const std::string out = printable(trim(text.substr(0, text.find('\0'))));
  return out.size() > 200 ? out.substr(0, 200) + "..." : out;
}

std::vector<std::string> nifti_texts(std::string_view head) {
  struct Field {
    const char* name;
    std::size_t at, size;
  };
  static constexpr Field kFields1[] = {
      {"data_type", 4, 10}, {"db_name", 14, 18}, {"descrip", 148, 80}, {"aux_file", 228, 24}, {"intent_name", 328, 16}};
  static constexpr Field kFields2[] = {{"descrip", 240, 80}, {"aux_file", 320, 24}, {"intent_name", 508, 16}};
  const bool second = head.size() >= 540 && head.substr(4, 1) == "n" && head.substr(5, 2) != "\0\0";
  std::vector<std::string> lines;
  const auto add = [&](const auto& fields) {
    for (const Field& f : fields) {
      if (f.at + f.size > head.size()) continue;
      const std::string text = text_of(head.substr(f.at, f.size));
      if (!text.empty()) lines.push_back(f.name + std::string(" = ") + text);
    }
  };
  second ? add(kFields2) : add(kFields1);
  const std::size_t header = second ? 540 : 348;
  if (head.size() > header + 4) lines.push_back(count_of(head.size() - header - 4, "byte") + " of extensions");
  return lines;
}

std::vector<std::string> dicom_texts(const VolumeFile& file) {
  const auto head = std::make_shared<const std::vector<std::byte>>(file.head);
  DicomFile found;
  {
    VolumeInput in(memory_opener(head)(), file.name);
    found = read_dicom(in);
  }
  VolumeInput in(memory_opener(head)(), file.name);
  in.skip(132, "preamble");
  std::vector<std::string> lines;
  DicomWalker meta(in, true, false);
  DicomWalker data(in, found.explicit_vr, found.big_endian);
  DicomWalker::Element e;
  while (lines.size() < 10000) {
    const std::string_view next = in.ahead(2);
    if (next.size() < 2) break;
    const bool is_meta = next[0] == 2 && next[1] == 0;
    DicomWalker& walker = is_meta ? meta : data;
    if (!walker.next(e) || in.position() == found.pixels_at) break;
    char name[32];
    std::snprintf(name, sizeof name, "(%04x,%04x) %s ", e.tag >> 16, e.tag & 0xFFFF, e.vr);
    if (e.length > 1024) {
      lines.push_back(name + std::string("..."));
      walker.skip(e);
      continue;
    }
    const std::string value = walker.value(e);
    const bool binary = e.vr[0] != 0 && std::strstr("US UL SS SL FL FD AT OB OW OF OD UN", e.vr) != nullptr;
    const bool text = !binary && std::all_of(value.begin(), value.end(),
                                             [](char c) { return c == '\0' || static_cast<unsigned char>(c) >= 9; });
    lines.push_back(name + (text ? text_of(value) : count_of(value.size(), "byte")));
  }
  return lines;
}

}  // namespace

std::vector<std::string> header_texts(const Envelope& envelope) {
  if (envelope.files.empty()) return {};
  const VolumeFile& file = envelope.files[0];
  if (envelope.format == "dicom") return dicom_texts(file);
  std::string_view head(reinterpret_cast<const char*>(file.head.data()), file.head.size());
  if (envelope.format.rfind("nifti", 0) == 0) return nifti_texts(head);
  std::vector<std::string> lines;
  while (!head.empty()) {
    const std::size_t end = std::min(head.find('\n'), head.size());
    lines.push_back(text_of(head.substr(0, end)));
    head.remove_prefix(std::min(end + 1, head.size()));
  }
  return lines;
}

}  // namespace trivelet::io
