// The `.tvs` container: images, header, checksum and cost limits (VSTC.md, section 1).
#include "trivelet/still.h"

#include <cstring>
#include <string>

#include "codec/base/hash.h"
#include "codec/base/limits.h"

namespace trivelet::still {

namespace {

constexpr std::uint8_t kMagic[4] = {0x89, 'T', 'V', 'S'};
constexpr std::uint8_t kVersion = 1;

void put_number(std::vector<std::byte>& out, std::uint32_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<std::byte>(value | 0x80));
  out.push_back(static_cast<std::byte>(value));
}

int sample_format(const PixelFormat& f) {
  if (f.alpha || f.is_signed) return -1;
  if (f.model == ColourModel::kGrey) return 0;
  if (f.model == ColourModel::kRgb) return 3;
  if (f.log2_chroma_w == 1 && f.log2_chroma_h == 1) return 1;
  return f.log2_chroma_w == 0 && f.log2_chroma_h == 0 ? 2 : -1;
}

/// Reads the header byte by byte; throws BadStream at the end of the data.
class Cursor {
 public:
  explicit Cursor(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::uint8_t byte() {
    require(at_ < bytes_.size(), ErrorKind::kBadStream, "the file ends inside its header");
    return std::to_integer<std::uint8_t>(bytes_[at_++]);
  }
  int side(const char* name) {
    std::uint32_t value = 0;
    for (int shift = 0;; shift += 7) {
      const std::uint32_t b = byte();
      value |= (b & 0x7F) << shift;
      if (b < 0x80) break;
      require(shift < 21, ErrorKind::kBadStream, std::string(name) + " of the picture takes more than 4 bytes");
    }
    require(value >= 1 && value <= kMaxSide, ErrorKind::kBadStream,
            std::string(name) + " is " + std::to_string(value) + "; 1 to 65536 are possible");
    return static_cast<int>(value);
  }
  std::size_t position() const { return at_; }

 private:
  std::span<const std::byte> bytes_;
  std::size_t at_ = 0;
};

}  // namespace

std::size_t Image::plane_offset(int component) const {
  std::size_t samples_before = 0;
  for (int c = 0; c < component; ++c)
    samples_before += checked_mul(static_cast<std::size_t>(format.component_width(width, c)),
                                  static_cast<std::size_t>(format.component_height(height, c)));
  return checked_mul(samples_before, static_cast<std::size_t>(format.bytes_per_sample()));
}

int Image::sample(int component, int x, int y) const {
  const std::byte* plane = samples.data() + plane_offset(component);
  const auto at = static_cast<std::size_t>(y) * static_cast<std::size_t>(format.component_width(width, component)) +
                  static_cast<std::size_t>(x);
  if (format.bytes_per_sample() == 1) return std::to_integer<int>(plane[at]);
  std::uint16_t v;
  std::memcpy(&v, plane + 2 * at, 2);
  return v;
}

void Image::set_sample(int component, int x, int y, int value) {
  std::byte* plane = samples.data() + plane_offset(component);
  const auto at = static_cast<std::size_t>(y) * static_cast<std::size_t>(format.component_width(width, component)) +
                  static_cast<std::size_t>(x);
  if (format.bytes_per_sample() == 1) {
    plane[at] = static_cast<std::byte>(value);
  } else {
    const auto v = static_cast<std::uint16_t>(value);
    std::memcpy(plane + 2 * at, &v, 2);
  }
}

std::size_t parameter_bytes(Codec codec) { return codec == Codec::kVstc ? 2 : 1; }

void check_image(const Image& image, int least_bits, int most_bits) {
  require(image.width >= 1 && image.width <= kMaxSide && image.height >= 1 && image.height <= kMaxSide,
          ErrorKind::kBadArgument,
          "the picture has " + std::to_string(image.width) + "x" + std::to_string(image.height) +
              " samples; sides of 1 to 65536 are possible");
  require(static_cast<std::uint64_t>(image.width) * static_cast<std::uint64_t>(image.height) <= kMaxSamples,
          ErrorKind::kBadArgument, "the picture has more than 2^28 samples; cut it into parts");
  require(image.format.bits >= least_bits && image.format.bits <= most_bits, ErrorKind::kBadArgument,
          "the picture has " + count_of(image.format.bits, "bit") + " per sample; this codec takes " +
              std::to_string(least_bits) + " to " + std::to_string(most_bits));
  require(
      sample_format(image.format) >= 0, ErrorKind::kBadArgument,
      "the sample format " + to_string(image.format) + " is not possible; convert to gray, yuv420p, yuv444p or gbrp");
  require(image.samples.size() == image.plane_offset(image.components()), ErrorKind::kBadArgument,
          "the picture has " + count_of(image.samples.size(), "byte") + " instead of " +
              std::to_string(image.plane_offset(image.components())));
}

std::vector<std::byte> write_file(const Header& header, std::span<const std::uint8_t> payload) {
  std::vector<std::byte> out;
  for (const std::uint8_t b : kMagic) out.push_back(static_cast<std::byte>(b));
  out.push_back(static_cast<std::byte>(header.codec));
  out.push_back(static_cast<std::byte>(kVersion));
  put_number(out, static_cast<std::uint32_t>(header.width));
  put_number(out, static_cast<std::uint32_t>(header.height));
  out.push_back(static_cast<std::byte>(sample_format(header.format) << 4 | (header.format.bits - 1)));
  for (const std::uint8_t b : header.parameters) out.push_back(static_cast<std::byte>(b));
  const auto* data = reinterpret_cast<const std::byte*>(payload.data());
  out.insert(out.end(), data, data + payload.size());
  const std::uint32_t crc = crc32c(out.data(), out.size());
  for (int i = 0; i < 4; ++i) out.push_back(static_cast<std::byte>(crc >> 8 * i));
  return out;
}

bool is_still(std::span<const std::byte> bytes) {
  return bytes.size() >= sizeof kMagic && std::memcmp(bytes.data(), kMagic, sizeof kMagic) == 0;
}

File read_file(std::span<const std::byte> bytes) {
  require(is_still(bytes), ErrorKind::kBadStream, "this is no .tvs file: its first four bytes are not 89 54 56 53");
  Cursor in(bytes.subspan(4));
  File file;
  const int codec = in.byte(), version = in.byte();
  require(codec == 1 || codec == 2, ErrorKind::kUnsupported,
          "codec " + std::to_string(codec) + " is not known; 1 (vstc) and 2 (dct) are");
  require(version == kVersion, ErrorKind::kUnsupported,
          "version " + std::to_string(version) + " of the format is not known, only 1; a newer program may read it");
  file.header.codec = static_cast<Codec>(codec);
  file.header.width = in.side("the width");
  file.header.height = in.side("the height");
  require(static_cast<std::uint64_t>(file.header.width) * static_cast<std::uint64_t>(file.header.height) <= kMaxSamples,
          ErrorKind::kUnsupported, "the picture has more than 2^28 samples");
  const int samples = in.byte();
  PixelFormat& f = file.header.format;
  f.bits = (samples & 15) + 1;
  require(samples >> 4 <= 3, ErrorKind::kBadStream,
          "sample format " + std::to_string(samples >> 4) + " is not defined");
  f.model = samples >> 4 == 0 ? ColourModel::kGrey : samples >> 4 == 3 ? ColourModel::kRgb : ColourModel::kYuv;
  f.log2_chroma_w = f.log2_chroma_h = samples >> 4 == 1 ? 1 : 0;
  for (std::size_t i = 0; i < parameter_bytes(file.header.codec); ++i) file.header.parameters.push_back(in.byte());
  const std::size_t begin = 4 + in.position();
  require(bytes.size() >= begin + 4, ErrorKind::kBadStream, "the file ends before its check sum");
  std::uint32_t crc = 0;
  for (std::size_t i = 0; i < 4; ++i) crc |= std::to_integer<std::uint32_t>(bytes[bytes.size() - 4 + i]) << 8 * i;
  require(has_crc32c(bytes.data(), bytes.size() - 4, crc), ErrorKind::kBadStream,
          "the check sum does not fit: the file is damaged or cut");
  file.payload = {reinterpret_cast<const std::uint8_t*>(bytes.data()) + begin, bytes.size() - begin - 4};
  return file;
}

void check_cost(const Header& header, std::uint64_t file_bytes, std::uint64_t bytes_of_sample, const Limits& limits) {
  std::uint64_t samples = 0;
  for (int c = 0; c < header.format.components(); ++c)
    samples += static_cast<std::uint64_t>(header.format.component_width(header.width, c)) *
               static_cast<std::uint64_t>(header.format.component_height(header.height, c));
  const std::string picture = "a picture of " + std::to_string(header.width) + "x" + std::to_string(header.height);
  check_limit(samples, limits.samples, "samples", picture + ", " + count_of(samples, "sample"));
  check_work(limits, samples, file_bytes);
  check_memory(limits, samples * bytes_of_sample, picture);
}

}  // namespace trivelet::still
