// BMP: its density and colour profile, whether lines are missing from what is coded in runs, and what FFmpeg does not
// read. Sources: the headers BITMAPINFOHEADER and BITMAPV5HEADER of Windows, BITMAPINFOHEADER2 of OS/2.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>

#include "codec/base/limits.h"
#include "io/source.h"
#include "io/video/ffmpeg/left_out/ffmpeg_left_out.h"

namespace trivelet::io {

namespace {

class BmpBytes {
 public:
  explicit BmpBytes(const InputBytes& file) : file_(file) {}
  /// A number of `size` bytes, the lowest first; bytes behind the end are 0.
  std::uint32_t number(std::uint64_t at, std::size_t size) const {
    std::array<unsigned char, 4> bytes{};
    file_.read_at(at, reinterpret_cast<char*>(bytes.data()), size);
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < size; ++i) value |= static_cast<std::uint32_t>(bytes[i]) << (8 * i);
    return value;
  }
  std::uint64_t size() const { return *file_.size(); }

 private:
  const InputBytes& file_;
};

/// Whether the code that ends the picture is missing, and lines with it. `in_halves`: a byte holds two pixels.
bool lacks_lines(const BmpBytes& bytes, std::uint64_t at, bool in_halves, std::uint32_t lines) {
  enum : std::uint32_t { kEndOfLine = 0, kEndOfPicture = 1, kMove = 2 };
  std::uint64_t line = 0;
  while (at + 2 <= bytes.size() && line < lines) {
    const std::uint32_t count = bytes.number(at, 1), what = bytes.number(at + 1, 1);
    at += 2;
    if (count > 0) continue;
    if (what == kEndOfPicture) return false;
    if (what == kEndOfLine) {
      ++line;
    } else if (what == kMove) {
      line += bytes.number(at + 1, 1);
      at += 2;
    } else {  // so many pixels as they are, filled to 16 bits
      const std::uint32_t size = in_halves ? (what + 1) / 2 : what;
      at += size + size % 2;
    }
  }
  // The last line needs no code behind it.
  return line + 1 < lines;
}

using Masks = std::array<std::uint32_t, 3>;  // of red, green and blue

/// Whether FFmpeg's decoder has pixels like these.
bool is_usual(const Masks& masks, std::uint32_t bits) {
  constexpr std::uint32_t k0 = 0xFF, k1 = 0xFF00, k2 = 0xFF0000, k3 = 0xFF000000;
  constexpr std::array<Masks, 4> kOf32 = {{{k3, k2, k1}, {k2, k1, k0}, {k1, k2, k3}, {k0, k1, k2}}};
  constexpr std::array<Masks, 3> kOf16 = {{{0xF800, 0x7E0, 0x1F}, {0x7C00, 0x3E0, 0x1F}, {0xF00, 0xF0, 0xF}}};
  if (bits == 32) return std::find(kOf32.begin(), kOf32.end(), masks) != kOf32.end();
  return bits != 16 || std::find(kOf16.begin(), kOf16.end(), masks) != kOf16.end();
}

/// Masks that make sense: each has bits, and none has those of another.
bool is_possible(const Masks& m) {
  return m[0] != 0 && m[1] != 0 && m[2] != 0 && (m[0] & m[1]) == 0 && (m[0] & m[2]) == 0 && (m[1] & m[2]) == 0;
}

/// What FFmpeg refuses as damaged, or takes for bits as they are.
void find_unread(const BmpBytes& bytes, PictureFile& picture) {
  constexpr std::uint32_t kOs2Header = 64, kMasks = 3, kHuffman = 3;
  const std::uint32_t bits = bytes.number(28, 2), coding = bytes.number(30, 4);
  if (bytes.number(14, 4) == kOs2Header && coding == kHuffman && bits == 1) {
    picture.unread = "a BMP picture of OS/2 in Huffman's code";
    picture.misread = true;
  } else if (coding == kMasks) {
    constexpr std::uint32_t kV3Header = 56;
    const Masks masks = {bytes.number(54, 4), bytes.number(58, 4), bytes.number(62, 4)};
    // FFmpeg's pixels of 16 bits have none.
    if (bits == 16 && bytes.number(14, 4) >= kV3Header && bytes.number(66, 4) != 0)
      picture.left_out.emplace_back("transparency (some of the sixteen bits of pixels)");
    if (is_usual(masks, bits) || !is_possible(masks)) return;
    std::array<char, 64> text{};
    std::snprintf(text.data(), text.size(), "%X, %X and %X", masks[0], masks[1], masks[2]);
    picture.unread = std::string("a BMP picture with red, green and blue in the bits ") + text.data();
  }
}

}  // namespace

PictureFile describe_bmp(const InputBytes& file) {
  constexpr std::uint32_t kInfoHeader = 40, kV5Header = 124, kRuns = 1, kRunsInHalves = 2;
  constexpr std::uint32_t kEmbedded = 0x4D424544, kLinked = 0x4C494E4B;
  constexpr double kMetresOfInch = 0.0254;
  const BmpBytes bytes(file);
  PictureFile picture;
  const std::uint32_t header = bytes.number(14, 4);
  if (header < kInfoHeader) return picture;
  find_unread(bytes, picture);
  name_density(bytes.number(38, 4) * kMetresOfInch, bytes.number(42, 4) * kMetresOfInch, picture);
  if (header >= kV5Header) {
    const std::uint32_t colours = bytes.number(14 + 56, 4);
    if (colours == kEmbedded)
      picture.left_out.push_back("colour profile (ICC, " + count_of(bytes.number(14 + 116, 4), "byte") + ")");
    if (colours == kLinked) picture.left_out.emplace_back("the name of a colour profile");
  }
  const std::uint32_t coding = bytes.number(30, 4);
  picture.unsaid_alpha = coding == 0 && bytes.number(28, 2) == 32;
  const auto height = static_cast<std::int32_t>(bytes.number(22, 4));
  if (height > 0 && (coding == kRuns || coding == kRunsInHalves))
    picture.lacks_lines =
        lacks_lines(bytes, bytes.number(10, 4), coding == kRunsInHalves, static_cast<std::uint32_t>(height));
  return picture;
}

}  // namespace trivelet::io
