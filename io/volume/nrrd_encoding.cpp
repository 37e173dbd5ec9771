// Converts text, hex and bzip2 in NRRD files to raw scalars. Source: "Definition of NRRD File Format", section
// "Encodings": numbers of text stand between white space and commas, pairs of hex digits are the bytes in their order.
#include "io/volume/nrrd_encoding.h"

#ifdef TRIVELET_HAVE_BZIP2
#include <bzlib.h>
#endif

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>
#include <utility>

#include "codec/base/limits.h"

namespace trivelet::io {

namespace {

using Bytes = std::vector<std::byte>;
constexpr std::size_t kConverted = 65536;    // bytes at a time
constexpr std::size_t kLongestNumber = 512;  // of a double, written out

/// Numbers of text as little-endian scalars.
class TextFeed final : public Feed {
 public:
  TextFeed(VolumeInput& in, const NrrdScalars& scalars)
      : in_(in), type_(scalars.type), left_(scalars.bytes / static_cast<std::uint64_t>(bytes_of(scalars.type))) {}

  std::size_t read(std::byte* data, std::size_t size) override {
    if (at_ == made_.size()) {
      made_.clear();
      at_ = 0;
      while (left_ > 0 && made_.size() < kConverted) {
        add(word());
        --left_;
      }
      if (made_.empty()) {
        require(!next_word(), ErrorKind::kBadStream, in_.name() + ": holds more numbers than its header promises");
        return 0;
      }
    }
    const std::size_t n = std::min(size, made_.size() - at_);
    std::copy_n(made_.data() + at_, n, data);
    at_ += n;
    return n;
  }

 private:
  static bool separates(char c) { return c == ' ' || (c >= '\t' && c <= '\r') || c == ',' || c == '\0'; }

  /// Whether a word begins at the input's position, behind what separates it from the one before.
  bool next_word() {
    while (true) {
      const std::string_view text = in_.ahead(1);
      if (text.empty()) return false;
      const auto begin = std::find_if_not(text.begin(), text.end(), separates);
      in_.consume(static_cast<std::size_t>(begin - text.begin()));
      if (begin != text.end()) return true;
    }
  }
  std::string word() {
    require(next_word(), ErrorKind::kBadStream,
            in_.name() + ": its text ends, " + count_of(left_, "number", "is", "are") + " missing");
    const std::string_view text = in_.ahead(kLongestNumber + 1);
    const auto end = std::find_if(text.begin(), text.end(), separates);
    std::string found(text.begin(), end);
    require(found.size() <= kLongestNumber, ErrorKind::kBadStream,
            in_.name() + ": '" + printable(found.substr(0, 40)) + "...' is no number");
    in_.consume(found.size());
    return found;
  }

  template <typename T>
  void put(T value) {
    std::byte bytes[sizeof value];
    std::memcpy(bytes, &value, sizeof value);
    if constexpr (std::endian::native == std::endian::big) std::reverse(std::begin(bytes), std::end(bytes));
    made_.insert(made_.end(), std::begin(bytes), std::end(bytes));
  }
  template <typename T>
  void add_as(const std::string& text) {
    const char* first = text.data() + (text[0] == '+' ? 1 : 0);
    const char* last = text.data() + text.size();
    T value = 0;
    auto result = std::from_chars(first, last, value);
    if constexpr (std::is_integral_v<T>) {  // "3.0" is 3
      double real = 0;
      const auto as_real = std::from_chars(first, last, real);
      if (result.ptr != last && as_real.ec == std::errc() && as_real.ptr == last && real == std::floor(real) &&
          std::fabs(real) < 0x1p53 &&
          std::cmp_less_equal(static_cast<std::int64_t>(real), std::numeric_limits<T>::max()) &&
          std::cmp_greater_equal(static_cast<std::int64_t>(real), std::numeric_limits<T>::min())) {
        value = static_cast<T>(real);
        result = as_real;
      }
    } else if (result.ec == std::errc::result_out_of_range) {  // too large or too small: infinity or 0, as elsewhere
      value = static_cast<T>(std::strtod(text.c_str(), nullptr));
      result.ec = std::errc();
    }
    require(
        result.ec == std::errc() && result.ptr == last, ErrorKind::kBadStream,
        in_.name() + ": '" + printable(text.substr(0, 40)) + "' is no number of type " + trivelet::to_string(type_));
    put(value);
  }
  void add(const std::string& text) {
    switch (type_) {
      case VoxelType::kU8: return add_as<std::uint8_t>(text);
      case VoxelType::kI8: return add_as<std::int8_t>(text);
      case VoxelType::kU16: return add_as<std::uint16_t>(text);
      case VoxelType::kI16: return add_as<std::int16_t>(text);
      case VoxelType::kU32: return add_as<std::uint32_t>(text);
      case VoxelType::kI32: return add_as<std::int32_t>(text);
      case VoxelType::kU64: return add_as<std::uint64_t>(text);
      case VoxelType::kI64: return add_as<std::int64_t>(text);
      case VoxelType::kF32: return add_as<float>(text);
      case VoxelType::kF64: return add_as<double>(text);
    }
  }

  VolumeInput& in_;
  VoxelType type_;
  std::uint64_t left_;  // numbers
  Bytes made_;
  std::size_t at_ = 0;
};

/// Pairs of hex digits as bytes.
class HexFeed final : public Feed {
 public:
  HexFeed(VolumeInput& in, std::uint64_t bytes) : in_(in), left_(bytes) {}

  std::size_t read(std::byte* data, std::size_t size) override {
    const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(size, left_));
    for (std::size_t i = 0; i < n; ++i) {
      const int high = digit(), low = digit();
      require(low >= 0, ErrorKind::kBadStream,
              in_.name() + ": its hex digits end, " + count_of(left_ - i, "byte", "is", "are") + " missing");
      data[i] = static_cast<std::byte>(16 * high + low);
    }
    left_ -= n;
    if (size > 0 && n == 0)
      require(digit() < 0, ErrorKind::kBadStream, in_.name() + ": holds more hex digits than its header promises");
    return n;
  }

 private:
  /// -1 at the end.
  int digit() {
    while (true) {
      const std::string_view text = in_.ahead(1);
      if (text.empty()) return -1;
      const char c = text[0];
      in_.consume(1);
      if (c == ' ' || (c >= '\t' && c <= '\r')) continue;
      int value = -1;
      const auto result = std::from_chars(&c, &c + 1, value, 16);
      require(result.ec == std::errc() && value >= 0, ErrorKind::kBadStream,
              in_.name() + ": '" + printable({&c, 1}) + "' is no hex digit");
      return value;
    }
  }

  VolumeInput& in_;
  std::uint64_t left_;
};

#ifdef TRIVELET_HAVE_BZIP2
/// Unpacks streams of bzip2, one behind the other, to a number of bytes.
class Bzip2Feed final : public Feed {
 public:
  Bzip2Feed(VolumeInput& in, std::uint64_t bytes) : in_(in), left_(bytes) { begin(); }
  ~Bzip2Feed() override { BZ2_bzDecompressEnd(&stream_); }
  Bzip2Feed(const Bzip2Feed&) = delete;
  Bzip2Feed& operator=(const Bzip2Feed&) = delete;

  std::size_t read(std::byte* data, std::size_t size) override {
    std::byte more{};
    const bool at_end = left_ == 0;
    const std::size_t n =
        at_end ? unpack(&more, 1) : unpack(data, static_cast<std::size_t>(std::min<std::uint64_t>(size, left_)));
    require(!at_end || n == 0, ErrorKind::kBadStream, in_.name() + ": holds more voxels than its header says");
    require(at_end || n > 0, ErrorKind::kBadStream,
            in_.name() + ": its compressed data end, " + count_of(left_, "byte", "is", "are") + " missing");
    left_ -= n;
    return n;
  }

 private:
  void begin() {
    stream_ = {};
    const int result = BZ2_bzDecompressInit(&stream_, 0, 0);
    if (result == BZ_MEM_ERROR) throw std::bad_alloc();
    require(result == BZ_OK, ErrorKind::kInternal, "bzip2: cannot begin");
  }
  /// 0 at the end of the data.
  std::size_t unpack(std::byte* data, std::size_t size) {
    std::size_t made = 0;
    while (!is_done_ && made == 0) {
      const std::string_view packed = in_.ahead(1);
      require(!packed.empty(), ErrorKind::kBadStream, in_.name() + ": its compressed data (bzip2) are cut");
      const auto given = static_cast<unsigned>(std::min(packed.size(), kConverted));
      const auto room = static_cast<unsigned>(std::min(size, kConverted));
      stream_.next_in = const_cast<char*>(packed.data());
      stream_.avail_in = given;
      stream_.next_out = reinterpret_cast<char*>(data);
      stream_.avail_out = room;
      const int result = BZ2_bzDecompress(&stream_);
      if (result == BZ_MEM_ERROR) throw std::bad_alloc();
      require(result == BZ_OK || result == BZ_STREAM_END, ErrorKind::kBadStream,
              in_.name() + ": its compressed data (bzip2) are damaged");
      made = room - stream_.avail_out;
      in_.consume(given - stream_.avail_in);
      if (result != BZ_STREAM_END) continue;
      is_done_ = !in_.ahead(3).starts_with("BZh");  // or another stream follows
      BZ2_bzDecompressEnd(&stream_);
      begin();
    }
    return made;
  }

  VolumeInput& in_;
  std::uint64_t left_;
  bz_stream stream_ = {};
  bool is_done_ = false;
};
#endif

/// A new head, then the converted scalars.
class RawFeed final : public Feed {
 public:
  RawFeed(const FileToRead& file, const Opener& data, NrrdEncoding encoding, const NrrdScalars& scalars,
          std::uint64_t head_bytes, Bytes head)
      : head_(std::move(head)) {
    bool gzip = false;
    in_ = open_input(data, file.path, gzip, file.limits);
    in_->skip(head_bytes, "header");
    if (encoding == NrrdEncoding::kText) scalars_ = std::make_unique<TextFeed>(*in_, scalars);
    if (encoding == NrrdEncoding::kHex) scalars_ = std::make_unique<HexFeed>(*in_, scalars.bytes);
    if (encoding == NrrdEncoding::kGzip) scalars_ = make_inflater(*in_, false, scalars.bytes, file.limits);
#ifdef TRIVELET_HAVE_BZIP2
    if (encoding == NrrdEncoding::kBzip2) scalars_ = std::make_unique<Bzip2Feed>(*in_, scalars.bytes);
#endif
    require(scalars_ != nullptr, ErrorKind::kInternal, "a NRRD encoding that is not converted");
  }
  std::size_t read(std::byte* data, std::size_t size) override {
    const std::size_t n = std::min(size, head_.size() - at_);
    std::copy_n(head_.data() + at_, n, data);
    at_ += n;
    return n > 0 ? n : scalars_->read(data, size);
  }

 private:
  std::unique_ptr<VolumeInput> in_;
  std::unique_ptr<Feed> scalars_;
  Bytes head_;
  std::size_t at_ = 0;
};

/// The name of the field of a header line, in lower case; "" if there is none.
std::string field_of(std::string_view line) {
  const std::size_t colon = line.find(':');
  if (line.starts_with('#') || colon == std::string_view::npos || line.substr(colon).starts_with(":=")) return {};
  return lower(trim(line.substr(0, colon)));
}

}  // namespace

std::optional<NrrdEncoding> nrrd_encoding(const std::string& name) {
  if (name == "raw") return NrrdEncoding::kRaw;
  if (name == "gzip" || name == "gz") return NrrdEncoding::kGzip;
  if (name == "text" || name == "txt" || name == "ascii") return NrrdEncoding::kText;
  if (name == "hex") return NrrdEncoding::kHex;
  if (name == "bzip2" || name == "bz2") return NrrdEncoding::kBzip2;
  return std::nullopt;
}

bool have_bzip2() {
#ifdef TRIVELET_HAVE_BZIP2
  return true;
#else
  return false;
#endif
}

Bytes raw_nrrd_header(const Bytes& header, bool little_endian) {
  const std::string_view text(reinterpret_cast<const char*>(header.data()), header.size());
  std::string out;
  bool ended = false;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    const std::string eol(line.ends_with('\r') ? "\r\n" : "\n");
    ended = ended || trim(line).empty();
    const std::string field = ended ? std::string() : field_of(line);
    if (field == "encoding")
      out += "encoding: raw" + eol + (little_endian ? "endian: little" + eol : "");
    else if (field != "endian" || !little_endian)
      out += std::string(line) + (end < text.size() ? "\n" : "");
    at = end + 1;
  }
  return to_bytes(out);
}

std::uint64_t unpacked_bytes(const FileToRead& file, const Opener& data, std::uint64_t head_bytes) {
  bool gzip = false;
  // A data file is unpacked here, a header and its data may be packed once more.
  const auto in = head_bytes > 0 ? open_input(data, file.path, gzip, file.limits)
                                 : std::make_unique<VolumeInput>(data(), file.path);
  in->skip(head_bytes, "header");
  const auto unpacked = make_inflater(*in, false, 0, file.limits);
  Bytes piece(kConverted);
  std::uint64_t bytes = 0;
  while (const std::size_t n = unpacked->read(piece.data(), piece.size())) bytes += n;
  return bytes;
}

Opener raw_nrrd(const FileToRead& file, const Opener& data, NrrdEncoding encoding, const NrrdScalars& scalars,
                std::uint64_t head_bytes, Bytes head) {
  check_limit(scalars.bytes, file.limits.unpacked, "unpacked",
              file.path + ": unpacks to " + count_of(scalars.bytes, "byte"));
  return [=] { return std::make_unique<RawFeed>(file, data, encoding, scalars, head_bytes, head); };
}

}  // namespace trivelet::io
