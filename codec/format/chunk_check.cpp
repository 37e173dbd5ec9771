#include "codec/format/chunk_check.h"

#include <utility>

#include "codec/base/bytes.h"

namespace trivelet {

namespace {

constexpr std::uint8_t kCheckVersion = 1;

}  // namespace

std::vector<std::uint8_t> serialise_checks(const StreamHeader& stream, std::uint64_t gop, const LayeredGop& layers,
                                           const std::vector<std::vector<std::uint8_t>>& chunks) {
  ByteWriter out;
  out.fixed(kCheckVersion);
  out.varint(gop);
  std::size_t i = 0;
  for (int l = 0; l < stream.layers; ++l)
    for (int b = 0; b < layers.temporal_bands(); ++b)
      for (int d = stream.spatial_levels; d >= 0; --d, ++i) {
        const std::vector<std::uint8_t>& chunk = chunks[i];
        if (chunk.empty()) continue;
        std::vector<std::uint32_t> sizes;
        std::size_t head = chunk.size();
        for_parts(stream, layers, b, d, [&](std::size_t c, std::size_t block, std::size_t s) {
          const std::uint32_t size = layers.components[c].blocks[block][s].parts[static_cast<std::size_t>(l)].size;
          if (size > 0) sizes.push_back(size);
          head -= size;
        });
        out.varint(head);
        out.varint(sizes.size());
        out.fixed(crc32c(chunk.data(), head));
        for (std::size_t at = head; const std::uint32_t size : sizes) {
          out.fixed(crc32c(chunk.data() + at, size));
          at += size;
        }
      }
  append_crc(out.bytes);
  return std::move(out.bytes);
}

std::optional<std::vector<ChunkChecks>> parse_checks(const GopHeader& gop, const std::uint8_t* bytes,
                                                     std::size_t size) try {
  if (!crc_matches(bytes, size)) return std::nullopt;
  ByteReader in(bytes, size - 4, "checks of parts");
  std::uint8_t version = 0;
  std::uint64_t index = 0;
  in.fixed(version);
  if (version != kCheckVersion) return std::nullopt;
  in.varint(index);
  if (index != gop.index) return std::nullopt;
  std::vector<ChunkChecks> checks(gop.chunks.size());
  for (std::size_t i = 0; i < checks.size(); ++i) {
    if (gop.chunks[i].size == 0) continue;
    std::uint64_t parts = 0;
    in.varint(checks[i].head_bytes);
    in.varint(parts);
    in.fixed(checks[i].head_crc);
    if (checks[i].head_bytes > gop.chunks[i].size || parts > in.left() / 4) return std::nullopt;
    checks[i].parts.resize(static_cast<std::size_t>(parts));
    for (std::uint32_t& crc : checks[i].parts) in.fixed(crc);
  }
  return checks;
} catch (const Error&) {  // the fields run past the end
  return std::nullopt;
}

}  // namespace trivelet
