// Still pictures in `.tvs` files: what the codecs vstc and dct share (VSTC.md, section 1).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "trivelet/limits.h"
#include "trivelet/types.h"

namespace trivelet::still {

enum class Codec : std::uint8_t { kVstc = 1, kDct = 2 };

inline constexpr int kMaxSide = 65536;
inline constexpr std::uint64_t kMaxSamples = std::uint64_t{1} << 28;  ///< of the first plane

/// One picture, owning its samples: planes one after the other, rows contiguous, 1 byte per sample up to 8 bits,
/// else 2.
struct Image {
  int width = 0;
  int height = 0;
  PixelFormat format{.model = ColourModel::kGrey};  ///< grey, YUV 4:2:0, YUV 4:4:4 or RGB (in the order G, B, R)
  std::vector<std::byte> samples;

  int components() const { return format.components(); }
  std::size_t plane_offset(int component) const;  ///< bytes; component == components(): the size of all
  int sample(int component, int x, int y) const;
  void set_sample(int component, int x, int y, int value);
  void allocate() { samples.assign(plane_offset(components()), std::byte{0}); }
};

/// The part of a file before the payload.
struct Header {
  Codec codec = Codec::kVstc;
  int width = 0;
  int height = 0;
  PixelFormat format;
  std::vector<std::uint8_t> parameters;  ///< of the codec
};

/// Number of parameter bytes of a codec.
std::size_t parameter_bytes(Codec codec);

/// Throws BadArgument for pictures that no codec takes: sides, number of samples, sample format, size of `samples`.
void check_image(const Image& image, int least_bits, int most_bits);

/// Header, payload and check sum.
std::vector<std::byte> write_file(const Header& header, std::span<const std::uint8_t> payload);

struct File {
  Header header;
  std::span<const std::uint8_t> payload;  ///< into the bytes read
};
/// Throws BadStream for what is no such file or damaged, Unsupported for versions and codecs unknown here.
File read_file(std::span<const std::byte> bytes);

/// Throws Unsupported when a picture of this header, in a file of `file_bytes`, costs more than `limits` allow.
/// `bytes_of_sample`: memory that decoding takes for each sample.
void check_cost(const Header& header, std::uint64_t file_bytes, std::uint64_t bytes_of_sample, const Limits& limits);

/// True when the bytes begin like a `.tvs` file.
bool is_still(std::span<const std::byte> bytes);

}  // namespace trivelet::still
