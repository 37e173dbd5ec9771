// Propagates a region through the levels of the transform to the segments it needs (region.h).
#include "codec/decoder/region.h"

#include <algorithm>

namespace trivelet {

namespace {

/// Largest distance, in samples of a level in interleaved order, from an output to a coefficient that it depends on.
int reach_of(Wavelet w) {
  switch (w) {
    case Wavelet::kHaar: return 1;
    case Wavelet::kCdf53: return 2;
    case Wavelet::kCdf97: return 4;
    case Wavelet::kRev137: return 6;
    case Wavelet::kMotion: break;  // temporal only
  }
  return 6;
}

struct Range {
  int begin = 0;
  int end = 0;
};

// The range of coefficients of the next level, low and high together, for a range of samples. Mirroring at the borders
// stays within the reach.
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
        // A segment needs the coarser ones of its block.
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

}  // namespace trivelet
