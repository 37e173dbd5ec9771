// Checks the bytes of a chunk: by its CRC in the GOP's header, or by the CRCs of single parts, with which a decoder
// reads some parts alone (FORMAT.md "part").
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "codec/base/hash.h"
#include "codec/format/chunk.h"

namespace trivelet {

/// The entry of these bytes in a GOP's header.
inline ChunkEntry chunk_entry(const std::vector<std::uint8_t>& bytes) {
  ChunkEntry e;
  e.size = bytes.size();
  e.crc = crc32c(bytes.data(), bytes.size());
  return e;
}
/// `bytes` has the size that the header gives.
inline bool is_intact(const ChunkEntry& chunk, const std::uint8_t* bytes) {
  return has_crc32c(bytes, static_cast<std::size_t>(chunk.size), chunk.crc);
}

/// The checks with which parts of a chunk are read alone.
struct ChunkChecks {
  std::uint64_t head_bytes = 0;
  std::uint32_t head_crc = 0;
  std::vector<std::uint32_t> parts;  ///< CRCs of the parts that have bytes, in their order
  /// The checks are not known yet, and the header may be longer: the state of a plan that has not read them.
  bool expected = false;
};

/// The payload of a GOP's "part" box. `chunks` as written, in the order of the chunk table.
std::vector<std::uint8_t> serialise_checks(const StreamHeader& stream, std::uint64_t gop, const LayeredGop& layers,
                                           const std::vector<std::vector<std::uint8_t>>& chunks);
/// One entry per chunk of the GOP; nothing when the bytes are damaged or of another GOP.
std::optional<std::vector<ChunkChecks>> parse_checks(const GopHeader& gop, const std::uint8_t* bytes, std::size_t size);

}  // namespace trivelet
