#include "codec/region.h"

#include <algorithm>

#include "codec/bits.h"
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

void put_varint(std::vector<std::uint8_t>& out, std::uint64_t v) {
  for (; v >= 128; v >>= 7) out.push_back(static_cast<std::uint8_t>(v | 128));
  out.push_back(static_cast<std::uint8_t>(v));
}
void put_u32(std::vector<std::uint8_t>& out, std::uint32_t v) {
  for (int i = 0; i < 4; ++i) out.push_back(static_cast<std::uint8_t>(v >> (8 * i)));
}

/// Reads fields; past the end they are 0 and ok() is false from then on.
class Fields {
 public:
  Fields(const std::uint8_t* bytes, std::size_t size) : bytes_(bytes), size_(size) {}
  std::uint64_t fixed(std::size_t n) {
    std::uint64_t v = 0;
    if (n > left()) return ok_ = false, 0;
    for (std::size_t i = 0; i < n; ++i) v |= static_cast<std::uint64_t>(bytes_[at_++]) << (8 * i);
    return v;
  }
  std::uint64_t varint() {
    std::uint64_t v = 0;
    for (int shift = 0; shift < 63; shift += 7) {
      const std::uint64_t b = fixed(1);
      v |= (b & 127) << shift;
      if (b < 128) return v;
    }
    ok_ = false;
    return 0;
  }
  bool ok() const { return ok_; }
  std::size_t left() const { return size_ - at_; }

 private:
  const std::uint8_t* bytes_;
  std::size_t size_;
  std::size_t at_ = 0;
  bool ok_ = true;
};

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
  std::vector<std::uint8_t> out = {kVersion};
  put_varint(out, gop);
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
        put_varint(out, head);
        put_varint(out, sizes.size());
        put_u32(out, crc32c(chunk.data(), head));
        for (std::size_t at = head; const std::uint32_t size : sizes) {
          put_u32(out, crc32c(chunk.data() + at, size));
          at += size;
        }
      }
  put_u32(out, crc32c(out.data(), out.size()));
  return out;
}

std::optional<std::vector<ChunkChecks>> parse_checks(const GopHeader& gop, const std::uint8_t* bytes,
                                                     std::size_t size) {
  if (size < 4 || crc32c(bytes, size - 4) != Fields(bytes + size - 4, 4).fixed(4)) return std::nullopt;
  Fields in(bytes, size - 4);
  if (in.fixed(1) != kVersion || in.varint() != gop.index) return std::nullopt;
  std::vector<ChunkChecks> checks(gop.chunks.size());
  for (std::size_t i = 0; i < checks.size(); ++i) {
    if (gop.chunks[i].size == 0) continue;
    checks[i].head_bytes = in.varint();
    const std::uint64_t parts = in.varint();
    checks[i].head_crc = static_cast<std::uint32_t>(in.fixed(4));
    if (!in.ok() || checks[i].head_bytes > gop.chunks[i].size || parts > in.left() / 4) return std::nullopt;
    for (std::uint64_t p = 0; p < parts; ++p) checks[i].parts.push_back(static_cast<std::uint32_t>(in.fixed(4)));
  }
  if (!in.ok() || in.left() != 0) return std::nullopt;
  return checks;
}

}  // namespace trivelet
