// Encodings of NRRD files that are converted when they are read: text, hex, bzip2, and gzip with bytes to skip in it.
// Internal to io.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "io/volume/volume_input.h"

namespace trivelet::io {

enum class NrrdEncoding { kRaw, kGzip, kText, kHex, kBzip2 };
/// By its name in a header, in lower case; nothing for others.
std::optional<NrrdEncoding> nrrd_encoding(const std::string& name);
bool have_bzip2();

/// The header of the same volume in raw encoding; `little_endian`: with that byte order.
std::vector<std::byte> raw_nrrd_header(const std::vector<std::byte>& header, bool little_endian);

/// What the scalars of a converted file are.
struct NrrdScalars {
  VoxelType type = VoxelType::kU8;
  std::uint64_t bytes = 0;  ///< of all, as they are stored raw
};
/// The bytes that gzip data from `head_bytes` on unpack to.
std::uint64_t unpacked_bytes(const FileToRead& file, const Opener& data, std::uint64_t head_bytes);
/// The file with `head` in place of its first `head_bytes`, and with the scalars behind them raw: of text
/// little-endian, of gzip all that is in it. Throws BadStream for other text than so many numbers of the type.
Opener raw_nrrd(const FileToRead& file, const Opener& data, NrrdEncoding encoding, const NrrdScalars& scalars,
                std::uint64_t head_bytes, std::vector<std::byte> head);

}  // namespace trivelet::io
