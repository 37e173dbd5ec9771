// Reads and writes greyscale pictures for CCSDS 122.0: PGM, raw samples, and others by FFmpeg.

#include "apps/still/ccsds_image.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <utility>

#include "codec/base/limits.h"

namespace trivelet::cli {

namespace {

struct RawType {
  int bytes = 1;
  bool is_signed = false;
  bool big_endian = false;
};

RawType parse_type(const std::string& name) {
  for (const bool is_signed : {false, true})
    for (const int bytes : {1, 2, 4})
      for (const bool big : {false, true}) {
        const std::string base = fmt::format("{}{}", is_signed ? 's' : 'u', 8 * bytes);
        if (name == base + (big ? "be" : "le") || (!big && name == base)) return {bytes, is_signed, big};
      }
  fail(ErrorKind::kBadArgument,
       "unknown sample type '" + name + "'; known: u8 s8 u16le s16le u16be s16be u32le s32le u32be s32be");
}

/// Samples of any type into the size that the bit depth asks for.
void convert(const std::byte* from, const RawType& type, CcsdsImage& image) {
  const std::size_t count = static_cast<std::size_t>(image.width) * static_cast<std::size_t>(image.height);
  const std::size_t size = static_cast<std::size_t>(image.bytes_per_sample());
  image.bytes.resize(checked_mul(count, size));
  const int bytes = type.bytes;
  if (size == 1 && bytes == 1) {
    std::memcpy(image.bytes.data(), from, count);
    return;
  }
  for (std::size_t i = 0; i < count; ++i, from += bytes) {
    std::uint32_t v = 0;
    for (int k = 0; k < bytes; ++k)
      v |= std::to_integer<std::uint32_t>(from[k]) << 8 * (type.big_endian ? bytes - 1 - k : k);
    if (type.is_signed && bytes < 4 && v >> (8 * bytes - 1)) v |= ~std::uint32_t{0} << (8 * bytes);
    const auto s =
        static_cast<std::int64_t>(type.is_signed ? static_cast<std::int32_t>(v) : static_cast<std::int64_t>(v));
    const std::int64_t low = image.is_signed ? -(std::int64_t{1} << (image.bits - 1)) : 0;
    const std::int64_t high = (std::int64_t{1} << (image.is_signed ? image.bits - 1 : image.bits)) - 1;
    require(s >= low && s <= high, ErrorKind::kBadArgument,
            fmt::format("sample {} does not fit {} bits; set --bits", s, image.bits));
    if (size == 2) {
      const auto w = static_cast<std::uint16_t>(v);
      std::memcpy(image.bytes.data() + 2 * i, &w, 2);
    } else if (size == 4) {
      std::memcpy(image.bytes.data() + 4 * i, &v, 4);
    } else {
      image.bytes[i] = static_cast<std::byte>(v);
    }
  }
}

bool ends_with(const std::string& path, const char* extension) {
  std::string e = std::filesystem::path(path).extension().string();
  for (char& c : e) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return e == extension;
}

/// Numbers of a PGM header, comments skipped.
class PgmHeader {
 public:
  explicit PgmHeader(const std::vector<std::byte>& data) : data_(data) {}
  int number() {
    while (at_ < data_.size() && (space() || now() == '#'))
      if (now() == '#') {
        while (at_ < data_.size() && now() != '\n') ++at_;
      } else {
        ++at_;
      }
    int v = -1;
    for (; at_ < data_.size() && now() >= '0' && now() <= '9'; ++at_) {
      v = 10 * std::max(v, 0) + (now() - '0');
      if (v > 1 << 28) break;
    }
    require(v > 0 && at_ < data_.size(), ErrorKind::kBadStream, "damaged PGM header");
    return v;
  }
  std::size_t samples() const { return at_ + 1; }

 private:
  int now() const { return std::to_integer<int>(data_[at_]); }
  bool space() const { return now() == ' ' || (now() >= 9 && now() <= 13); }
  const std::vector<std::byte>& data_;
  std::size_t at_ = 2;
};

void check_size(const std::string& path, const CcsdsImage& image, const Limits& limits) {
  const auto samples = checked_mul(static_cast<std::size_t>(image.width), static_cast<std::size_t>(image.height));
  check_limit(samples, limits.samples, "samples", path + ": a picture of " + count_of(samples, "sample"));
  check_memory(limits, checked_mul(samples, sizeof(std::int32_t)), path + ": a picture of so many samples");
}

CcsdsImage read_pgm(const std::string& path, const std::vector<std::byte>& data, const CcsdsInput& o,
                    const Limits& limits) {
  PgmHeader header(data);
  CcsdsImage image;
  image.width = header.number();
  image.height = header.number();
  check_size(path, image, limits);
  const int most = header.number();
  require(most <= 65535, ErrorKind::kBadStream, path + ": the largest PGM value is 65535, not " + std::to_string(most));
  image.bits = o.bits ? o.bits : static_cast<int>(std::bit_width(static_cast<unsigned>(most)));
  const int bytes = most > 255 ? 2 : 1;
  const std::size_t need =
      checked_mul(checked_mul(static_cast<std::size_t>(image.width), static_cast<std::size_t>(image.height)),
                  static_cast<std::size_t>(bytes));
  require(data.size() - header.samples() >= need && data.size() >= header.samples(), ErrorKind::kBadStream,
          path + ": the samples are cut off");
  convert(data.data() + header.samples(), {bytes, false, true}, image);
  return image;
}

CcsdsImage read_raw(const std::string& path, const CcsdsInput& o, const Limits& limits) {
  require(!o.size.empty() && !o.type.empty(), ErrorKind::kBadArgument,
          path + ": raw samples need --size WxH and --type, e.g. --type s16le");
  const auto [width, height] = parse_pair(o.size, "--size", "width x height");
  const RawType type = parse_type(o.type);
  const std::vector<std::byte> data = read_bytes(path);
  CcsdsImage image;
  image.width = width;
  image.height = height;
  check_size(path, image, limits);
  image.is_signed = type.is_signed;
  image.bits = o.bits ? o.bits : type.bytes == 4 ? 25 : 8 * type.bytes;
  const std::size_t need = checked_mul(checked_mul(static_cast<std::size_t>(width), static_cast<std::size_t>(height)),
                                       static_cast<std::size_t>(type.bytes));
  require(
      data.size() == need, ErrorKind::kBadArgument,
      fmt::format("{} has {} bytes, {}x{} samples of type {} need {}", path, data.size(), width, height, o.type, need));
  convert(data.data(), type, image);
  return image;
}

}  // namespace

VolumeView CcsdsImage::view() const {
  VolumeView v;
  v.data = bytes.data();
  v.shape = {1, height, width};
  v.bytes_per_sample = bytes_per_sample();
  v.is_signed = is_signed;
  v.row_stride = static_cast<std::ptrdiff_t>(width) * v.bytes_per_sample;
  return v;
}

void add_ccsds_input_options(Command& app, CcsdsInput& o) {
  constexpr const char* kGroup = "Input";
  app.add_option("--size", o.size, "Width and height of raw samples").type_name("WxH").group(kGroup);
  app.add_option("--type", o.type, "Type of raw samples: u8 s8 u16le s16le u16be s16be u32le s32le u32be s32be")
      .group(kGroup);
  app.add_option("--bits", o.bits, "Significant bits per sample (default: what the file or type says)")
      .range(1, 28)
      .group(kGroup);
  app.add_option("--pix-fmt", o.pixel_format, "Convert to this pixel format when FFmpeg reads, e.g. gray")
      .type_name("FORMAT")
      .group(kGroup);
}

CcsdsImage read_ccsds_image(const std::string& path, const CcsdsInput& o, const Common& common) {
  if (ends_with(path, ".raw") || !o.type.empty()) return read_raw(path, o, limits(common));
  if (ends_with(path, ".pgm")) {
    const std::vector<std::byte> data = read_bytes(path);
    if (data.size() > 8 && data[0] == std::byte{'P'} && data[1] == std::byte{'5'})
      return read_pgm(path, data, o, limits(common));
  }
  io::ReaderOptions reading;
  reading.pixel_format = o.pixel_format;
  reading.threads = common.threads;
  reading.limits = limits(common);
  const auto reader = io::open_reader(path, reading);
  const VideoInfo& info = reader->info();
  require(info.format.model != ColourModel::kRgb, ErrorKind::kBadArgument,
          path + " is a colour picture; choose --pix-fmt gray to convert it");
  Gop gop(info, 1);
  require(io::read_gop(*reader, gop), ErrorKind::kBadStream, path + " holds no picture");
  const VolumeView plane = std::as_const(gop).plane(0);
  CcsdsImage image;
  image.width = plane.shape.width;
  image.height = plane.shape.height;
  image.is_signed = info.format.is_signed;
  image.bits = o.bits ? o.bits : info.format.bits;
  std::vector<std::byte> samples;
  const std::size_t row =
      static_cast<std::size_t>(plane.shape.width) * static_cast<std::size_t>(plane.bytes_per_sample);
  for (int y = 0; y < image.height; ++y) samples.insert(samples.end(), plane.row(0, y), plane.row(0, y) + row);
  convert(samples.data(), {plane.bytes_per_sample, image.is_signed, std::endian::native == std::endian::big}, image);
  return image;
}

CcsdsImage image_of(const ccsds122::Decoded& decoded) {
  CcsdsImage image;
  image.width = decoded.width;
  image.height = decoded.height;
  image.bits = decoded.bits;
  image.is_signed = decoded.is_signed;
  image.bytes = decoded.samples;
  return image;
}

void write_ccsds_image(const std::string& path, const CcsdsImage& image, bool overwrite) {
  const std::size_t count = static_cast<std::size_t>(image.width) * static_cast<std::size_t>(image.height);
  const std::size_t size = static_cast<std::size_t>(image.bytes_per_sample());
  if (ends_with(path, ".png")) {
    require(!image.is_signed && (image.bits == 8 || image.bits == 16), ErrorKind::kUnsupported,
            fmt::format("PNG is written for 8 and 16 unsigned bits, not {}{}; use .pgm or .raw", image.bits,
                        image.is_signed ? " signed" : ""));
    VideoInfo info;
    info.width = image.width;
    info.height = image.height;
    info.format.model = ColourModel::kGrey;
    info.format.bits = image.bits;
    info.frames = 1;
    Gop gop(info, 1);
    gop.set_frames(1);
    const MutableVolumeView plane = gop.plane(0);
    for (int y = 0; y < image.height; ++y)
      std::memcpy(plane.row(0, y),
                  image.bytes.data() + static_cast<std::size_t>(y) * static_cast<std::size_t>(image.width) * size,
                  static_cast<std::size_t>(image.width) * size);
    io::WriterOptions writing;
    writing.overwrite = overwrite;
    const auto writer = io::open_writer(path, info, writing);
    writer->write(gop, 0);
    writer->finish();
    return;
  }
  const bool pgm = ends_with(path, ".pgm");
  require(!pgm || (!image.is_signed && image.bits <= 16), ErrorKind::kUnsupported,
          fmt::format("PGM holds at most 16 unsigned bits, not {}{}; use .raw", image.bits,
                      image.is_signed ? " signed" : ""));
  std::vector<std::byte> out = image.bytes;
  if (size > 1 && (pgm != (std::endian::native == std::endian::big)))  // PGM is big-endian, raw little-endian
    for (std::size_t i = 0; i < count; ++i)
      std::reverse(out.begin() + static_cast<std::ptrdiff_t>(i * size),
                   out.begin() + static_cast<std::ptrdiff_t>((i + 1) * size));
  FileSink file(path, overwrite);
  if (pgm) {
    const std::string header = fmt::format("P5\n{} {}\n{}\n", image.width, image.height, (1 << image.bits) - 1);
    file.write(header.data(), header.size());
  }
  file.write(out.data(), out.size());
  file.commit();
}

std::vector<std::byte> read_bytes(const std::string& path) {
  const auto close = [](std::FILE* f) {
    if (f != stdin) std::fclose(f);
  };
  const std::unique_ptr<std::FILE, decltype(close)> file(path == "-" ? stdin : std::fopen(path.c_str(), "rb"), close);
  require(file != nullptr, ErrorKind::kIo, "cannot open " + path + ": " + std::strerror(errno));
  std::vector<std::byte> bytes;
  std::size_t used = 0;
  for (;;) {
    bytes.resize(std::max<std::size_t>(used * 2, std::size_t{1} << 20));
    const std::size_t n = std::fread(bytes.data() + used, 1, bytes.size() - used, file.get());
    used += n;
    if (n == 0) break;
  }
  require(std::ferror(file.get()) == 0, ErrorKind::kIo, "cannot read " + path + ": " + std::strerror(errno));
  bytes.resize(used);
  return bytes;
}

}  // namespace trivelet::cli
