// Still pictures in `.tvs` files: the container that the codecs VSTC and DCT share (VSTC.md, section 1).
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
inline constexpr std::uint64_t kMaxSamples = std::uint64_t{1} << 28;  ///< samples of the first plane

/// One picture that owns its samples: plane after plane, rows without gaps, one byte a sample up to 8 bits, else two.
struct Image {
  int width = 0;
  int height = 0;
  PixelFormat format{.model = ColourModel::kGrey};  ///< grey, YUV 4:2:0, YUV 4:4:4 or RGB (stored as G, B, R)
  std::vector<std::byte> samples;

  int components() const { return format.components(); }
  std::size_t plane_offset(int component) const;  ///< in bytes; for components(): the size of all planes
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
  std::vector<std::uint8_t> parameters;  ///< of the codec; parameter_bytes() bytes
};

/// Number of parameter bytes of a codec.
std::size_t parameter_bytes(Codec codec);

/// Throws BadArgument unless sides, number of samples, sample format and size of `samples` suit the codecs.
void check_image(const Image& image, int least_bits, int most_bits);

/// Concatenates header, payload and checksum.
std::vector<std::byte> write_file(const Header& header, std::span<const std::uint8_t> payload);

struct File {
  Header header;
  std::span<const std::uint8_t> payload;  ///< a view into the bytes given to read_file()
};
/// Throws BadStream for damage and other kinds of files, Unsupported for unknown versions and codecs.
File read_file(std::span<const std::byte> bytes);

/// Throws Unsupported if decoding this picture from a file of `file_bytes` bytes would exceed `limits`.
/// `bytes_of_sample`: memory for each sample while decoding.
void check_cost(const Header& header, std::uint64_t file_bytes, std::uint64_t bytes_of_sample, const Limits& limits);

/// True when the bytes begin like a `.tvs` file.
bool is_still(std::span<const std::byte> bytes);

}  // namespace trivelet::still
