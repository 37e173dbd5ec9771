// JPEG XL: the boxes beside the codestream, and whether the codestream is an animation. Sources: ISO/IEC 18181-1 (the
// header of the codestream), 18181-2 (the boxes).
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "io/source.h"
#include "io/video/ffmpeg/left_out/ffmpeg_left_out.h"

namespace trivelet::io {

namespace {

constexpr int kMostJxlBoxes = 10'000;
constexpr std::size_t kCodestreamHead = 64;  // bytes, more than the fields up to the animation's can have

/// Bits of a codestream, the lowest of a byte first. Behind the end they are 0.
class JxlBits {
 public:
  explicit JxlBits(std::string_view bytes) : bytes_(bytes) {}
  std::uint32_t take(int count) {
    std::uint32_t value = 0;
    for (int i = 0; i < count; ++i, ++at_) {
      const std::size_t byte = at_ / 8;
      const unsigned bit = byte < bytes_.size() ? static_cast<unsigned char>(bytes_[byte]) >> (at_ % 8) & 1u : 0u;
      value |= bit << i;
    }
    return value;
  }
  bool flag() { return take(1) != 0; }
  /// A number whose length two bits choose; only the place behind it is of use here.
  void pass_number(const std::array<int, 4>& lengths) { take(lengths[take(2)]); }

 private:
  std::string_view bytes_;
  std::size_t at_ = 0;
};

void pass_size(JxlBits& bits) {
  constexpr int kSmall = 5, kRatio = 3;
  constexpr std::array<int, 4> kLengths = {9, 13, 18, 30};
  const bool small = bits.flag();
  const auto pass = [&] { small ? static_cast<void>(bits.take(kSmall)) : bits.pass_number(kLengths); };
  pass();
  if (bits.take(kRatio) == 0) pass();
}

void pass_size_of_preview(JxlBits& bits) {
  constexpr int kRatio = 3;
  const std::array<int, 4> lengths = bits.flag() ? std::array{0, 0, 5, 9} : std::array{6, 8, 10, 12};
  bits.pass_number(lengths);
  if (bits.take(kRatio) == 0) bits.pass_number(lengths);
}

/// `codestream`: its first bytes.
bool is_animation(std::string_view codestream) {
  constexpr std::size_t kSignature = 2;
  constexpr int kOrientationBits = 3;
  if (codestream.size() <= kSignature) return false;
  JxlBits bits(codestream.substr(kSignature));
  pass_size(bits);
  const bool all_default = bits.flag();
  if (all_default || !bits.flag()) return false;  // no further fields
  bits.take(kOrientationBits);
  if (bits.flag()) pass_size(bits);  // at which it is meant to be shown
  if (bits.flag()) pass_size_of_preview(bits);
  return bits.flag();
}

std::uint64_t number_at(const InputBytes& file, std::uint64_t at, std::size_t size) {
  std::array<char, 8> bytes{};
  std::uint64_t value = 0;
  const std::size_t got = file.read_at(at, bytes.data(), size);
  for (std::size_t i = 0; i < got; ++i) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

std::string bytes_at(const InputBytes& file, std::uint64_t at, std::uint64_t size) {
  std::string bytes(static_cast<std::size_t>(std::min<std::uint64_t>(size, kCodestreamHead)), '\0');
  bytes.resize(file.read_at(at, bytes.data(), bytes.size()));
  return bytes;
}

/// What a box is called among what is left out; "" for those that are of no use without their file.
std::string_view name_of_box(std::string_view type) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kNames = {
      {{"Exif", "Exif"}, {"xml ", "XMP"}, {"jumb", "JUMBF"}, {"jbrd", "what restores the JPEG file it was made of"}}};
  const auto* const known =
      std::find_if(kNames.begin(), kNames.end(), [type](auto& name) { return name.first == type; });
  return known != kNames.end() ? known->second : std::string_view();
}

}  // namespace

PictureFile describe_jxl(const InputBytes& file) {
  PictureFile picture;
  picture.is_jxl = true;
  std::string codestream = bytes_at(file, 0, kCodestreamHead);
  if (codestream.substr(0, 2) != "\xff\x0a") {
    codestream.clear();
    std::set<std::string> names;
    const std::uint64_t end = *file.size();
    std::uint64_t at = 0;
    for (int i = 0; i < kMostJxlBoxes && at < end; ++i) {
      std::uint64_t size = number_at(file, at, 4), begin = at + 8;
      if (size == 1) {
        size = number_at(file, begin, 8);
        begin += 8;
      }
      if (size == 0) size = end - at;
      picture.is_cut = size < begin - at || size > end - at;
      if (picture.is_cut) break;
      std::string type = bytes_at(file, at + 4, 4);
      const bool is_part = type == "jxlp";  // behind its number
      if (codestream.size() < kCodestreamHead && (is_part || type == "jxlc")) {
        const std::uint64_t from = begin + (is_part ? 4 : 0);
        codestream += bytes_at(file, from, at + size > from ? at + size - from : 0);
      }
      if (type == "brob") type = bytes_at(file, begin, 4);  // compressed
      if (const std::string_view name = name_of_box(type); !name.empty()) names.emplace(name);
      at += size;
    }
    picture.left_out.assign(names.begin(), names.end());
  }
  // Later versions have a demuxer for animations, which reads all pictures.
  if (is_animation(codestream) && av_find_input_format("jpegxl_anim") == nullptr)
    picture.left_out.insert(picture.left_out.begin(), "the pictures of the animation behind the first");
  return picture;
}

}  // namespace trivelet::io
