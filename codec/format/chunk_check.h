// Whether the bytes of a chunk are those that were written: its CRC in the GOP's header, and the CRCs of its single
// parts that let a decoder read some of them alone (FORMAT.md "part").
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "codec/base/hash.h"
#include "codec/format/chunk.h"

namespace trivelet {

/// What a GOP's header says about a chunk with these bytes.
inline ChunkEntry chunk_entry(const std::vector<std::uint8_t>& bytes) {
  ChunkEntry e;
  e.size = bytes.size();
  e.crc = crc32c(bytes.data(), bytes.size());
  return e;
}
/// `bytes`: as many as the header says.
inline bool is_intact(const ChunkEntry& chunk, const std::uint8_t* bytes) {
  return has_crc32c(bytes, static_cast<std::size_t>(chunk.size), chunk.crc);
}

/// What lets a part of a chunk be read alone.
struct ChunkChecks {
  std::uint64_t head_bytes = 0;
  std::uint32_t head_crc = 0;
  std::vector<std::uint32_t> parts;  ///< CRCs of the parts that have bytes, in their order
  /// These are not known yet, and the head may be longer: what a plan goes by until they are.
  bool expected = false;
};

/// The payload of a GOP's "part" box. `chunks` as written, in the order of the chunk table.
std::vector<std::uint8_t> serialise_checks(const StreamHeader& stream, std::uint64_t gop, const LayeredGop& layers,
                                           const std::vector<std::vector<std::uint8_t>>& chunks);
/// One entry per chunk of the GOP; nothing when the bytes are damaged or of another GOP.
std::optional<std::vector<ChunkChecks>> parse_checks(const GopHeader& gop, const std::uint8_t* bytes, std::size_t size);

}  // namespace trivelet
