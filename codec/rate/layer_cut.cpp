// Truncates a layer by removing its finest parts first, children before parents (see layer_cut.h).
#include "codec/rate/layer_cut.h"

namespace trivelet {

std::vector<std::vector<std::uint8_t>> cut_layer(const StreamHeader& stream, LayeredGop& gop, int layer,
                                                 std::uint64_t budget) {
  // The parts in the order in which they may stay: whatever one hangs on comes before it.
  const int unit = cuts_per_plane(stream.profile);
  std::vector<LayerPart*> parts;
  std::vector<LayerPart> all;
  std::vector<std::uint8_t> before;  // where the segment stood without the part
  for (int d = stream.spatial_levels; d >= 0; --d)
    for (int b = 0; b < gop.temporal_bands(); ++b)
      for_parts(stream, gop, b, d, [&](std::size_t c, std::size_t block, std::size_t s) {
        LayeredSegment& segment = gop.components[c].blocks[block][s];
        const std::size_t n = segment.parts.size();
        parts.push_back(&segment.parts.back());
        all.push_back(segment.parts.back());
        before.push_back(n >= 2 ? segment.parts[n - 2].low : static_cast<std::uint8_t>(unit * segment.top));
      });
  const auto keep = [&](std::size_t n) {
    for (std::size_t i = 0; i < parts.size(); ++i) *parts[i] = i < n ? all[i] : LayerPart{all[i].data, 0, before[i]};
    std::uint64_t sum = 0;
    for (int b = 0; b < gop.temporal_bands(); ++b)
      for (int d = stream.spatial_levels; d >= 0; --d) {
        const std::uint64_t size = chunk_size(stream, gop, layer, b, d);
        sum += size + (size > 0 ? 4 : 0);
        for (std::uint64_t v = size; v >= 128; v >>= 7) ++sum;
      }
    return sum;
  };
  std::vector<std::vector<std::uint8_t>> out;
  std::size_t low = 0;
  std::size_t high = parts.size() + 1;
  if (layer > 0 || keep(0) <= budget) {
    while (high - low > 1) {
      const std::size_t middle = (low + high) / 2;
      (keep(middle) <= budget ? low : high) = middle;
    }
  }
  if (keep(low) > budget && layer > 0) return out;
  for (int b = 0; b < gop.temporal_bands(); ++b)
    for (int d = stream.spatial_levels; d >= 0; --d) out.push_back(write_chunk(stream, gop, layer, b, d));
  return out;
}

}  // namespace trivelet
