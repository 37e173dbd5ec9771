// Compressed pixels of DICOM files. This file parses headers, items and run lengths. GDCM decodes JPEG, JPEG-LS and
// JPEG 2000, one codestream at a time, after its size was checked against the header. It runs in a child process, so
// that no input can crash this process or exceed its memory limit. Sources: DICOM PS3.5 A.4 (encapsulated pixels), G
// (run lengths), PS3.6 A (syntaxes); ISO 10918-1 B.2.2, ISO 14495-1 C.2.2, ISO 15444-1 A.5.1 (sizes in codestreams).
#include "io/volume/dicom_pixels.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <optional>
#include <utility>

#include "codec/base/limits.h"
#include "io/adapters.h"
#include "io/volume/child_process.h"
#include "io/volume/dicom_elements.h"
#include "io/volume/dicom_head.h"

namespace trivelet::io {

namespace {

using Bytes = std::vector<std::byte>;

constexpr DicomSyntax kSyntaxes[] = {
    {kImplicitLittleEndian, "implicit little-endian", DicomCoding::kPlain},
    {kExplicitLittleEndian, "explicit little-endian", DicomCoding::kPlain},
    {"1.2.840.10008.1.2.1.98", "encapsulated uncompressed", DicomCoding::kUnknown},
    {kDeflatedLittleEndian, "deflated explicit little-endian", DicomCoding::kDeflated},
    {kExplicitBigEndian, "explicit big-endian", DicomCoding::kPlain},
    {"1.2.840.10008.1.2.4.50", "JPEG baseline", DicomCoding::kJpeg},
    {"1.2.840.10008.1.2.4.51", "JPEG extended", DicomCoding::kJpeg},
    {"1.2.840.10008.1.2.4.52", "JPEG extended, arithmetic (retired)", DicomCoding::kUnknown},
    {"1.2.840.10008.1.2.4.53", "JPEG spectral selection (retired)", DicomCoding::kJpeg},
    {"1.2.840.10008.1.2.4.54", "JPEG spectral selection, arithmetic (retired)", DicomCoding::kUnknown},
    {"1.2.840.10008.1.2.4.55", "JPEG full progression (retired)", DicomCoding::kJpeg},
    {"1.2.840.10008.1.2.4.56", "JPEG full progression, arithmetic (retired)", DicomCoding::kUnknown},
    {"1.2.840.10008.1.2.4.57", "JPEG lossless", DicomCoding::kJpeg},
    {"1.2.840.10008.1.2.4.70", "JPEG lossless, first-order prediction", DicomCoding::kJpeg},
    {"1.2.840.10008.1.2.4.80", "JPEG-LS lossless", DicomCoding::kJpegLs},
    {"1.2.840.10008.1.2.4.81", "JPEG-LS near-lossless", DicomCoding::kJpegLs},
    {"1.2.840.10008.1.2.4.90", "JPEG 2000 lossless", DicomCoding::kJpeg2000},
    {"1.2.840.10008.1.2.4.91", "JPEG 2000", DicomCoding::kJpeg2000},
    {"1.2.840.10008.1.2.4.92", "JPEG 2000 multi-component lossless", DicomCoding::kUnknown},
    {"1.2.840.10008.1.2.4.93", "JPEG 2000 multi-component", DicomCoding::kUnknown},
    {"1.2.840.10008.1.2.4.94", "JPIP referenced", DicomCoding::kUnknown},
    {"1.2.840.10008.1.2.4.95", "JPIP referenced deflated", DicomCoding::kUnknown},
    {"1.2.840.10008.1.2.4.100", "MPEG-2 main level", DicomCoding::kUnknown},
    {"1.2.840.10008.1.2.4.101", "MPEG-2 high level", DicomCoding::kUnknown},
    {"1.2.840.10008.1.2.4.102", "MPEG-4 AVC/H.264 high", DicomCoding::kUnknown},
    {"1.2.840.10008.1.2.4.103", "MPEG-4 AVC/H.264 BD-compatible", DicomCoding::kUnknown},
    {"1.2.840.10008.1.2.4.104", "MPEG-4 AVC/H.264 high 4.2 for 2D", DicomCoding::kUnknown},
    {"1.2.840.10008.1.2.4.105", "MPEG-4 AVC/H.264 high 4.2 for 3D", DicomCoding::kUnknown},
    {"1.2.840.10008.1.2.4.106", "MPEG-4 AVC/H.264 stereo high", DicomCoding::kUnknown},
    {"1.2.840.10008.1.2.4.107", "HEVC/H.265 main", DicomCoding::kUnknown},
    {"1.2.840.10008.1.2.4.108", "HEVC/H.265 main 10", DicomCoding::kUnknown},
    {"1.2.840.10008.1.2.4.110", "JPEG XL lossless", DicomCoding::kUnknown},
    {"1.2.840.10008.1.2.4.111", "JPEG XL JPEG recompression", DicomCoding::kUnknown},
    {"1.2.840.10008.1.2.4.112", "JPEG XL", DicomCoding::kUnknown},
    {"1.2.840.10008.1.2.4.201", "High-Throughput JPEG 2000 lossless", DicomCoding::kJpeg2000},
    {"1.2.840.10008.1.2.4.202", "High-Throughput JPEG 2000 with RPCL lossless", DicomCoding::kJpeg2000},
    {"1.2.840.10008.1.2.4.203", "High-Throughput JPEG 2000", DicomCoding::kJpeg2000},
    {"1.2.840.10008.1.2.4.204", "JPIP High-Throughput JPEG 2000 referenced", DicomCoding::kUnknown},
    {"1.2.840.10008.1.2.4.205", "JPIP High-Throughput JPEG 2000 referenced deflated", DicomCoding::kUnknown},
    {"1.2.840.10008.1.2.5", "run lengths (RLE)", DicomCoding::kRunLength},
    {"1.2.840.10008.1.2.8.1", "deflated image frames", DicomCoding::kUnknown},
};

constexpr std::uint32_t kPlanarConfiguration = dicom_tag(0x0028, 0x0006);
constexpr std::uint32_t kPhotometric = dicom_tag(0x0028, 0x0004);
constexpr std::uint32_t kDigitalSignatures = dicom_tag(0xFFFA, 0xFFFA);  // these two may follow the pixels
constexpr std::uint32_t kTrailingPadding = dicom_tag(0xFFFC, 0xFFFC);
// Upper bound of a decoded frame: 65535 x 65535 pixels are refused.
constexpr std::size_t kHuge = std::size_t{1} << 31;

unsigned octet(const std::byte* p) { return std::to_integer<unsigned>(*p); }
std::uint32_t big16(const std::byte* p) { return octet(p) << 8 | octet(p + 1); }
std::uint32_t big32(const std::byte* p) { return big16(p) << 16 | big16(p + 2); }
std::uint32_t little32(const std::byte* p) {
  return octet(p) | octet(p + 1) << 8 | octet(p + 2) << 16 | octet(p + 3) << 24;
}

/// The size and format that a codestream declares.
struct Shape {
  std::uint64_t columns = 0, rows = 0, samples = 0, bits = 0;
  bool is_signed = false;
};

std::optional<Shape> shape_of_jpeg(const std::byte* p, std::size_t size) {
  if (size < 4 || big16(p) != 0xFFD8) return std::nullopt;
  for (std::size_t at = 2; at + 4 <= size;) {
    if (octet(p + at) != 0xFF) return std::nullopt;
    const unsigned marker = octet(p + at + 1);
    if (marker == 0xFF) {  // fill byte
      ++at;
      continue;
    }
    const std::size_t length = big16(p + at + 2);
    const bool is_table = marker == 0xC4 || marker == 0xC8 || marker == 0xCC;
    if ((marker >= 0xC0 && marker <= 0xCF && !is_table) || marker == 0xF7) {
      if (length < 8 || at + 10 > size) return std::nullopt;
      return Shape{big16(p + at + 7), big16(p + at + 5), octet(p + at + 9), octet(p + at + 4)};
    }
    if (marker == 0xDA || length < 2) return std::nullopt;
    at += 2 + length;
  }
  return std::nullopt;
}

/// What a JPEG codestream of three colours says of them: by a marker of Adobe (T.872), or by being JFIF (T.871).
std::string colours_of_jpeg(const std::byte* p, std::size_t size) {
  const auto begins = [&](std::size_t at, std::string_view name) {
    return at + name.size() <= size && std::memcmp(p + at, name.data(), name.size()) == 0;
  };
  std::string colours;
  for (std::size_t at = 2; at + 4 <= size && octet(p + at) == 0xFF;) {
    const unsigned marker = octet(p + at + 1);
    if (marker == 0xFF) {
      ++at;
      continue;
    }
    if (marker < 0xC4 || marker == 0xDA) break;  // the picture
    if (marker == 0xE0 && begins(at + 4, "JFIF")) colours = "YBR_FULL";
    if (marker == 0xEE && begins(at + 4, "Adobe") && at + 16 <= size)
      return octet(p + at + 15) == 1 ? "YBR_FULL" : "RGB";
    at += 2 + std::max<std::size_t>(2, big16(p + at + 2));
  }
  return colours;
}

std::optional<Shape> shape_of_jpeg2000(const std::byte* p, std::size_t size) {
  constexpr std::byte kStart[4] = {std::byte{0xFF}, std::byte{0x4F}, std::byte{0xFF}, std::byte{0x51}};
  // The codestream may be inside boxes.
  const std::byte* at = std::search(p, p + size, std::begin(kStart), std::end(kStart));
  if (p + size - at < 42) return std::nullopt;
  at += 4;
  const std::uint32_t samples = big16(at + 36);
  if (p + size - at < static_cast<std::ptrdiff_t>(38 + 3 * samples) || samples == 0) return std::nullopt;
  Shape s{big32(at + 4) - big32(at + 12), big32(at + 8) - big32(at + 16), samples, (octet(at + 38) & 127) + 1,
          (octet(at + 38) & 128) != 0};
  for (std::uint32_t i = 1; i < samples; ++i)
    if (octet(at + 38 + 3 * i) != octet(at + 38)) return std::nullopt;
  return s;
}

/// The codestreams of the frames in order.
struct Frames {
  Bytes data;
  std::vector<std::pair<std::size_t, std::size_t>> parts;  // [begin, end) of each fragment
  bool has_end = true;                                     // the delimiter follows the items
};

/// Groups fragments into frames: one fragment a frame, or by an offset table, or by start markers.
class Fragments {
 public:
  Fragments(VolumeInput& in, const DicomFile& d, const Limits& limits) : in_(in), d_(d), limits_(limits) {}

  Frames read() {
    table_ = item("offset table");
    Frames frames;
    while (!ended_) {
      const std::size_t begin = frames.data.size();
      const std::optional<Bytes> one = item_or_end();
      if (!one) break;
      check_memory(limits_, frames.data.size() + one->size(), in_.name() + ": compressed pixels");
      frames.data.insert(frames.data.end(), one->begin(), one->end());
      pieces_.emplace_back(begin, frames.data.size());
      places_.push_back(place_);
      place_ += 8 + one->size();
    }
    divide(frames);
    frames.has_end = has_end_;
    return frames;
  }

 private:
  std::optional<Bytes> item_or_end() {
    const std::string_view next = in_.ahead(8);
    const auto* head = reinterpret_cast<const std::byte*>(next.data());
    const auto tag_of = [](const std::byte* p) {
      return (octet(p) | octet(p + 1) << 8) << 16 | octet(p + 2) | octet(p + 3) << 8;
    };
    const std::uint32_t tag = next.size() < 8 ? 0 : tag_of(head);
    ended_ = next.size() < 8 || tag == kSequenceEnd || tag == kTrailingPadding || tag == kDigitalSignatures;
    has_end_ = !ended_ || tag == kSequenceEnd;
    if (ended_) {
      if (has_end_) in_.skip(8, "end of items");
      return std::nullopt;
    }
    const std::uint32_t length = little32(head + 4);
    in_.skip(8, "item");
    require(tag == kItem && length != kUndefined, ErrorKind::kBadStream,
            in_.name() + ": something else than items in its compressed pixels");
    check_memory(limits_, length, in_.name() + ": compressed pixels");
    Bytes bytes;
    while (bytes.size() < length) {
      const std::size_t n = std::min<std::size_t>(length - bytes.size(), std::size_t{1} << 20);
      const std::size_t at = bytes.size();
      bytes.resize(at + n);
      in_.read_exactly(bytes.data() + at, n, "compressed pixels");
    }
    return bytes;
  }
  Bytes item(const char* what) {
    std::optional<Bytes> bytes = item_or_end();
    require(bytes.has_value(), ErrorKind::kBadStream, in_.name() + ": no " + what + " before its compressed pixels");
    return std::move(*bytes);
  }

  void divide(Frames& frames) const {
    const std::uint64_t n = d_.frames;
    const std::string found = in_.name() + ": " + std::to_string(pieces_.size()) +
                              " fragments of compressed pixels for " + std::to_string(n) +
                              (n == 1 ? " frame" : " frames");
    require(pieces_.size() >= n, ErrorKind::kBadStream, found);
    if (pieces_.size() == n) {
      frames.parts = pieces_;
    } else if (n == 1) {
      frames.parts = {{0, frames.data.size()}};
    } else if (table_.size() / 4 == n) {
      std::vector<std::size_t> first;
      for (std::uint64_t i = 0; i < n; ++i) {
        const auto place = std::find(places_.begin(), places_.end(), little32(table_.data() + 4 * i));
        require(place != places_.end() && (first.empty() ? place == places_.begin() : true), ErrorKind::kBadStream,
                in_.name() + ": its offset table points to where no fragment begins");
        first.push_back(static_cast<std::size_t>(place - places_.begin()));
        require(i == 0 || first[i - 1] < first[i], ErrorKind::kBadStream,
                in_.name() + ": its offset table is not in order");
      }
      for (std::uint64_t i = 0; i < n; ++i)
        frames.parts.emplace_back(pieces_[first[i]].first,
                                  i + 1 < n ? pieces_[first[i + 1]].first : frames.data.size());
    } else {
      // A frame begins with a codestream's start marker.
      const unsigned start = dicom_syntax(d_.transfer_syntax)->coding == DicomCoding::kJpeg2000 ? 0xFF4F : 0xFFD8;
      for (const auto& [begin, end] : pieces_) {
        if (end - begin >= 2 && big16(frames.data.data() + begin) == start)
          frames.parts.emplace_back(begin, end);
        else if (!frames.parts.empty())
          frames.parts.back().second = end;
      }
      require(frames.parts.size() == n, ErrorKind::kUnsupported,
              found + ", and no offset table that says which belong together");
    }
  }

  VolumeInput& in_;
  const DicomFile& d_;
  const Limits& limits_;
  Bytes table_;
  bool ended_ = false;
  bool has_end_ = true;
  std::uint64_t place_ = 0;  // offset of the next item behind the table
  std::vector<std::pair<std::size_t, std::size_t>> pieces_;
  std::vector<std::uint64_t> places_;
};

/// Unpacks a frame of run lengths (PS3.5 G). It has a segment for each byte of a sample, the most significant first,
/// colour by colour.
void unpack_runs(const std::byte* data, std::size_t size, const DicomFile& d, const std::string& name, std::byte* out) {
  const std::size_t width = d.bits / 8;
  const std::size_t pixels = d.rows * d.columns;
  const std::size_t due = d.samples * width;
  require(size >= 64, ErrorKind::kBadStream, name + ": a frame of run lengths of " + count_of(size, "byte"));
  const std::size_t segments = little32(data);
  require(segments == due && segments <= 15, ErrorKind::kBadStream,
          name + ": " + count_of(segments, "segment") + " of run lengths where " + std::to_string(due) + " are due");
  for (std::size_t s = 0; s < segments; ++s) {
    const std::size_t begin = little32(data + 4 + 4 * s);
    const std::size_t end = s + 1 < segments ? little32(data + 8 + 4 * s) : size;
    require(begin >= 64 && begin <= end && end <= size, ErrorKind::kBadStream,
            name + ": a segment of run lengths lies outside of its frame");
    std::byte* to = out + (s / width) * width + (width - 1 - s % width);  // little-endian
    std::size_t made = 0;
    for (std::size_t at = begin; at < end && made < pixels;) {
      const unsigned count = octet(data + at++);
      if (count == 128) continue;
      const std::size_t n = std::min<std::size_t>(count < 128 ? count + 1 : 257 - count, pixels - made);
      if (at + (count < 128 ? n : 1) > end) break;
      for (std::size_t i = 0; i < n; ++i) to[(made + i) * due] = data[at + (count < 128 ? i : 0)];
      at += count < 128 ? n : 1;
      made += n;
    }
    require(made == pixels, ErrorKind::kBadStream,
            name + ": a segment of run lengths ends after " + std::to_string(made) + " of " + count_of(pixels, "byte"));
  }
}

/// Widens a codestream's samples to the size that the header declares, little-endian.
void widen(const Bytes& from, std::size_t bytes, bool is_signed, std::size_t wanted, Bytes& to) {
  const std::size_t n = from.size() / bytes;
  to.resize(n * wanted);
  for (std::size_t i = 0; i < n; ++i) {
    const bool negative = is_signed && (octet(&from[i * bytes + bytes - 1]) & 128) != 0;
    for (std::size_t b = 0; b < wanted; ++b)
      to[i * wanted + b] = b < bytes ? from[i * bytes + b] : negative ? std::byte{255} : std::byte{0};
  }
}

std::optional<Shape> shape_of(const DicomFile& d, const std::byte* p, std::size_t size) {
  const bool is_2000 = dicom_syntax(d.transfer_syntax)->coding == DicomCoding::kJpeg2000;
  return is_2000 ? shape_of_jpeg2000(p, size) : shape_of_jpeg(p, size);
}

/// Whether unsigned numbers of codestreams may exceed Bits Stored: no other bits than those of a number survive loss.
bool exceed_stored_bits(const DicomFile& d, const Frames& frames) {
  constexpr std::string_view kWithLoss[] = {
      "1.2.840.10008.1.2.4.50", "1.2.840.10008.1.2.4.51", "1.2.840.10008.1.2.4.53", "1.2.840.10008.1.2.4.55",
      "1.2.840.10008.1.2.4.81", "1.2.840.10008.1.2.4.91", "1.2.840.10008.1.2.4.203"};
  if (d.is_signed || std::find(std::begin(kWithLoss), std::end(kWithLoss), d.transfer_syntax) == std::end(kWithLoss))
    return false;
  return std::any_of(frames.parts.begin(), frames.parts.end(), [&](const auto& part) {
    const std::optional<Shape> s = shape_of(d, frames.data.data() + part.first, part.second - part.first);
    return s && !s->is_signed && s->bits > d.stored_bits;
  });
}

/// What the first codestream says of its colours, if the header says otherwise. Only of JPEG with loss, whose encoders
/// write these markers.
std::string other_colours(const DicomFile& d, const Frames& frames) {
  const bool has_markers =
      d.transfer_syntax == "1.2.840.10008.1.2.4.50" || d.transfer_syntax == "1.2.840.10008.1.2.4.51";
  if (!has_markers || d.samples != 3 || frames.parts.empty()) return {};
  const auto [begin, end] = frames.parts.front();
  const std::string found = colours_of_jpeg(frames.data.data() + begin, end - begin);
  const bool is_ybr = d.photometric.rfind("YBR_FULL", 0) == 0;
  if (d.photometric == "RGB" && found == "YBR_FULL") return found;
  return is_ybr && found == "RGB" ? found : std::string();
}

/// Decodes the codestreams of frames by GDCM in a child process.
class GdcmFrames {
 public:
  GdcmFrames(const GdcmAdapter& gdcm, const DicomFile& d, const Frames& frames, const std::string& name,
             const Limits& limits)
      : name_(name), syntax_(d.transfer_syntax) {
    std::vector<Shape> shapes;
    for (const auto& [begin, end] : frames.parts) shapes.push_back(checked(d, frames.data.data() + begin, end - begin));
    const std::uint64_t bytes = d.frames * d.rows * d.columns * d.samples * d.bits / 8;
    constexpr std::uint64_t kSeconds = 30, kBytesPerSecond = 1'000'000;  // a tenth of the slowest decoder's speed
    child_.emplace([&](const ChildProcess::Write& write) { return decode(gdcm, d, frames, shapes, write); },
                   limits.memory, kSeconds + bytes / kBytesPerSecond);
  }

  void read(std::byte* data, std::size_t size) {
    while (size > 0) {
      const std::size_t n = child_->read(data, size);
      if (n == 0) {
        const std::string why = child_->wait();
        fail(ErrorKind::kUnsupported, name_ + ": GDCM cannot decompress its pixels (" + syntax_text(syntax_) +
                                          "): " + (why.empty() ? "it gives too few of them" : why));
      }
      data += n;
      size -= n;
    }
  }

 private:
  /// The codestream's declared format, if it equals the header's.
  Shape checked(const DicomFile& d, const std::byte* p, std::size_t size) const {
    const std::optional<Shape> s = shape_of(d, p, size);
    require(s.has_value(), ErrorKind::kBadStream,
            name_ + ": its compressed pixels are not what the header says (" + syntax_text(syntax_) + ")");
    require(s->columns == d.columns && s->rows == d.rows && s->samples == d.samples && s->bits <= d.bits,
            ErrorKind::kBadStream,
            name_ + ": its compressed pixels are " + std::to_string(s->columns) + " x " + std::to_string(s->rows) +
                " of " + count_of(s->samples, "sample") + " of " + count_of(s->bits, "bit") + ", its header promises " +
                std::to_string(d.columns) + " x " + std::to_string(d.rows) + " of " + std::to_string(d.samples) +
                " of " + std::to_string(d.bits));
    return *s;
  }

  static bool decode(const GdcmAdapter& gdcm, const DicomFile& d, const Frames& frames,
                     const std::vector<Shape>& shapes, const ChildProcess::Write& write) {
    Bytes made, wide;
    for (std::size_t i = 0; i < frames.parts.size(); ++i) {
      const Shape& s = shapes[i];
      DicomFrame f;
      f.coding = d.transfer_syntax;
      if (dicom_syntax(f.coding)->coding == DicomCoding::kJpeg2000) f.coding = "1.2.840.10008.1.2.4.91";
      f.columns = static_cast<unsigned>(s.columns);
      f.rows = static_cast<unsigned>(s.rows);
      f.samples = static_cast<unsigned>(s.samples);
      f.bits = static_cast<unsigned>(s.bits);
      f.is_signed = s.is_signed;
      f.is_ybr = d.photometric.rfind("YBR", 0) == 0;
      const std::size_t bytes = s.bits <= 8 ? 1 : s.bits <= 16 ? 2 : 4;
      made.assign(s.columns * s.rows * s.samples * bytes, std::byte{0});
      const auto [begin, end] = frames.parts[i];
      if (!gdcm.decode(f, frames.data.data() + begin, end - begin, made)) return false;
      if (bytes == d.bits / 8) {
        write(made.data(), made.size());
      } else {
        widen(made, bytes, s.is_signed, d.bits / 8, wide);
        write(wide.data(), wide.size());
      }
    }
    return true;
  }

  std::string name_;
  std::string syntax_;
  std::optional<ChildProcess> child_;
};

/// Delivers head, decoded pixels, a padding byte if their size is odd, and tail.
class DecodedFeed final : public Feed {
 public:
  DecodedFeed(const FileToRead& file, const DicomFile& found, const GdcmAdapter* gdcm, DicomCodestreams& about)
      : name_(file.path), limits_(file.limits), d_(found), gdcm_(gdcm) {
    VolumeInput in(file.open(), file.path);
    Bytes head;
    in.append(head, d_.pixels_at, "header");
    frames_ = Fragments(in, d_, limits_).read();
    colours_ = other_colours(d_, frames_);
    about = {frames_.has_end, exceed_stored_bits(d_, frames_), colours_};
    tail_ = in.rest("data behind the pixels", kMaxTailBytes);
    frame_bytes_ = d_.rows * d_.columns * d_.samples * (d_.bits / 8);
    const std::uint64_t all = frame_bytes_ * d_.frames;
    require(
        frame_bytes_ < kHuge && all < kUndefined - 1, ErrorKind::kUnsupported,
        name_ + ": " + count_of(all, "byte") + " of pixels once they are uncompressed; a DICOM file has room for 2^32");
    check_memory(limits_, frame_bytes_, name_ + ": a frame");
    if (all % 2) tail_.insert(tail_.begin(), std::byte{0});
    head_ = plain(std::move(head), static_cast<std::uint32_t>(all + all % 2));
  }

  std::size_t read(std::byte* data, std::size_t size) override {
    if (const std::size_t n = take(head_, head_at_, data, size)) return n;
    if (at_ == frame_.size() && next_ < d_.frames) next_frame();
    if (const std::size_t n = take(frame_, at_, data, size)) return n;
    return take(tail_, tail_at_, data, size);
  }

 private:
  static std::size_t take(const Bytes& from, std::size_t& at, std::byte* data, std::size_t size) {
    const std::size_t n = std::min(size, from.size() - at);
    std::copy_n(from.data() + at, n, data);
    at += n;
    return n;
  }

  void next_frame() {
    const auto [first, last] = frames_.parts[next_];
    constexpr std::uint64_t kMostTimes = 64;  // two bytes of run lengths give at most 128
    require(dicom_syntax(d_.transfer_syntax)->coding != DicomCoding::kRunLength ||
                frame_bytes_ / kMostTimes <= last - first,
            ErrorKind::kBadStream,
            name_ + ": " + count_of(last - first, "byte") + " of run lengths for a frame of " +
                std::to_string(frame_bytes_));
    frame_.resize(static_cast<std::size_t>(frame_bytes_));
    if (dicom_syntax(d_.transfer_syntax)->coding == DicomCoding::kRunLength) {
      unpack_runs(frames_.data.data() + first, last - first, d_, name_, frame_.data());
    } else {
      if (!decoder_) decoder_.emplace(*gdcm_, d_, frames_, name_, limits_);
      decoder_->read(frame_.data(), frame_.size());
    }
    at_ = 0;
    ++next_;
  }

  /// The header in explicit little-endian, without the attributes about compression.
  Bytes plain(Bytes from, std::uint32_t pixel_bytes) const {
    DicomHead head(std::move(from), d_);
    head.replace(dicom_tag(0x0002, 0x0010), "UI", d_.explicit_vr ? kExplicitLittleEndian : kImplicitLittleEndian);
    if (!head.value(kPlanarConfiguration).empty() || d_.planar)
      head.replace(kPlanarConfiguration, "US", std::string(2, '\0'));
    const DicomCoding coding = dicom_syntax(d_.transfer_syntax)->coding;
    // Decoders upsample chroma, and JPEG 2000 inverts its own colour transform.
    if (coding == DicomCoding::kJpeg2000 && (d_.photometric == "YBR_ICT" || d_.photometric == "YBR_RCT"))
      head.replace(kPhotometric, "CS", "RGB");
    else if (coding != DicomCoding::kRunLength && d_.photometric == "YBR_FULL_422")
      head.replace(kPhotometric, "CS", "YBR_FULL");
    if (!colours_.empty()) head.replace(kPhotometric, "CS", colours_);
    head.remove(dicom_tag(0x7FE0, 0x0001));  // offsets and lengths of frames
    head.remove(dicom_tag(0x7FE0, 0x0002));
    head.replace_pixels(d_.bits > 8 ? "OW" : "OB", pixel_bytes);
    return head.bytes();
  }

  std::string name_;
  Limits limits_;
  DicomFile d_;
  const GdcmAdapter* gdcm_;
  Frames frames_;
  std::string colours_;  // of the codestreams, if not the header's
  Bytes head_, frame_, tail_;
  std::size_t head_at_ = 0, at_ = 0, tail_at_ = 0;
  std::uint64_t frame_bytes_ = 0;
  std::uint64_t next_ = 0;
  std::optional<GdcmFrames> decoder_;
};

/// Inflates a data set that was deflated as a whole.
class InflatedFeed final : public Feed {
 public:
  explicit InflatedFeed(const FileToRead& file, const DicomFile& found) : in_(file.open(), file.path) {
    Bytes head;
    in_.append(head, found.data_at, "meta information");
    DicomHead meta(std::move(head), found);
    meta.replace(dicom_tag(0x0002, 0x0010), "UI", kExplicitLittleEndian);
    head_ = meta.bytes();
    inflated_ = make_deflate_reader(in_, file.limits);
  }
  std::size_t read(std::byte* data, std::size_t size) override {
    const std::size_t n = std::min(size, head_.size() - at_);
    std::copy_n(head_.data() + at_, n, data);
    at_ += n;
    return n > 0 ? n : inflated_->read(data, size);
  }

 private:
  VolumeInput in_;
  std::unique_ptr<Feed> inflated_;
  Bytes head_;
  std::size_t at_ = 0;
};

}  // namespace

const DicomSyntax* dicom_syntax(std::string_view uid) {
  for (const DicomSyntax& s : kSyntaxes)
    if (s.uid == uid) return &s;
  return nullptr;
}

std::string syntax_text(const std::string& uid) {
  const DicomSyntax* s = dicom_syntax(uid);
  return "transfer syntax " + printable(uid.substr(0, 64)) + (s ? ", " + std::string(s->name) : "");
}

void check_bits(const DicomFile& found, const std::string& name) {
  if (found.bits == 8 || found.bits == 16 || found.bits == 32) return;
  require(found.bits > 0, ErrorKind::kBadStream,
          name + ": Bits Allocated (0028,0100), the size of its samples, is missing or 0");
  const std::string packed = found.bits == 1    ? ", which are packed, eight to a byte,"
                             : found.bits == 12 ? ", which are packed, two to three bytes,"
                                                : "";
  fail(ErrorKind::kUnsupported,
       name + ": samples of " + std::to_string(found.bits) + (found.bits == 1 ? " bit" : " bits") + packed +
           " are not read; those of 8, 16 and 32 bits are (Bits Allocated): convert the file first");
}

Opener decompressed_dicom(const FileToRead& file, const DicomFile& found, std::shared_ptr<DicomCodestreams> about) {
  const DicomCoding coding = dicom_syntax(found.transfer_syntax)->coding;
  require(
      coding != DicomCoding::kUnknown, ErrorKind::kUnsupported,
      file.path + ": pixels in " + syntax_text(found.transfer_syntax) + ", cannot be decoded; convert the file first");
  if (coding == DicomCoding::kDeflated) return [file, found] { return std::make_unique<InflatedFeed>(file, found); };
  check_bits(found, file.path);
  require(found.rows > 0 && found.columns > 0 && found.samples >= 1 && found.samples <= 4, ErrorKind::kBadStream,
          file.path + ": pictures of " + std::to_string(found.columns) + " x " + std::to_string(found.rows) + ", " +
              count_of(found.samples, "sample") + " per pixel");
  const GdcmAdapter* gdcm = coding == DicomCoding::kRunLength ? nullptr : gdcm_adapter(file.path);
  require(gdcm != nullptr || coding == DicomCoding::kRunLength, ErrorKind::kUnsupported,
          file.path + ": its pixels are compressed (" + syntax_text(found.transfer_syntax) +
              "), and this build has no GDCM to decompress them");
  return [gdcm, file, found, about = std::move(about)] {
    return std::make_unique<DecodedFeed>(file, found, gdcm, *about);
  };
}

}  // namespace trivelet::io
