#include "codec/region.h"

#include <algorithm>
#include <utility>

#include "codec/bytes.h"
#include "codec/hash.h"

namespace trivelet {

namespace {

constexpr std::uint8_t kVersion = 1;

/// How far apart, in samples of a level, an output and the coefficients it depends on can be (interleaved order).
int reach_of(Wavelet w) {
  switch (w) {
    case Wavelet::kHaar: return 1;
    case Wavelet::kCdf53: return 2;
    case Wavelet::kCdf97: return 4;
    case Wavelet::kRev137: return 6;
  }
  return 6;
}

struct Range {
  int begin = 0;
  int end = 0;
};

// From a range of samples to that of the coefficients of the next level, low and high together. What lies beyond the
// borders is mirrored to within the reach.
Range next_level(Range r, int reach, int length) {
  r.begin = std::max(0, r.begin - reach) / 2;
  r.end = (std::min(length, r.end + reach) + 1) / 2;
  return r;
}

bool overlap(int begin, int length, const Range& r) { return length > 0 && begin < r.end && begin + length > r.begin; }

}  // namespace

std::vector<std::uint8_t> needed_segments(const BlockGrid& grid, int reduced, const PictureRegion& region) {
  const SubbandTable& table = grid.table();
  const int levels = table.decomposition().spatial_levels;
  const int reach = reach_of(table.decomposition().spatial);
  const auto resolutions = static_cast<std::size_t>(levels) + 1;
  std::vector<std::uint8_t> needed(static_cast<std::size_t>(grid.blocks()) * resolutions, 0);
  Range x{region.x, region.x + region.width};
  Range y{region.y, region.y + region.height};
  const auto mark = [&](int k) {
    for (int by = 0; by < grid.rows(); ++by)
      for (int bx = 0; bx < grid.columns(); ++bx) {
        bool any = false;
        for (int o = k == 0 ? 0 : 1; o <= (k == 0 ? 0 : table.orientations()); ++o) {
          const BlockGrid::Patch p = grid.patch(table.at(0, k, o), by, bx);
          any = any || (overlap(p.x, p.width, x) && overlap(p.y, p.height, y));
        }
        if (!any) continue;
        // A segment is decoded with the coarser ones of its block.
        const auto first = static_cast<std::size_t>(by * grid.columns() + bx) * resolutions;
        std::fill_n(needed.begin() + static_cast<std::ptrdiff_t>(first), k + 1, std::uint8_t{1});
      }
  };
  for (int l = reduced + 1; l <= levels; ++l) {
    x = next_level(x, reach, low_length(table.shape().width, l - 1));
    y = next_level(y, reach, low_length(table.shape().height, l - 1));
    mark(levels - l + 1);
  }
  mark(0);
  return needed;
}

std::vector<std::uint8_t> serialise_checks(const StreamHeader& stream, std::uint64_t gop, const LayeredGop& layers,
                                           const std::vector<std::vector<std::uint8_t>>& chunks) {
  ByteWriter out;
  out.fixed(kVersion);
  out.varint(gop);
  std::size_t i = 0;
  for (int l = 0; l < stream.layers; ++l)
    for (int b = 0; b < stream.temporal_bands(); ++b)
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
  if (version != kVersion) return std::nullopt;
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
  in.expect_end();
  return checks;
} catch (const Error&) {  // the fields run past the end, or leave bytes over
  return std::nullopt;
}

}  // namespace trivelet
