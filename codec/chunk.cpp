#include "codec/chunk.h"

#include <algorithm>
#include <string>
#include <utility>

#include "codec/bad_stream.h"
#include "codec/bits.h"

namespace trivelet {

namespace {

constexpr unsigned kUnaryLimit = 128;
unsigned zigzag(int v) { return v > 0 ? 2 * static_cast<unsigned>(v) - 1 : 2 * static_cast<unsigned>(-v); }
int unzigzag(unsigned v) { return v & 1 ? static_cast<int>(v / 2) + 1 : -static_cast<int>(v / 2); }

// Rice parameter that codes these sizes in the fewest bits.
int best_rice(const std::vector<std::uint32_t>& sizes) {
  int best = 0;
  std::uint64_t fewest = ~std::uint64_t{0};
  for (int k = 0; k < 24; ++k) {
    std::uint64_t bits = 0;
    for (const std::uint32_t s : sizes) bits += (s >> k) + 1u + static_cast<unsigned>(k);
    if (bits < fewest) {
      fewest = bits;
      best = k;
    }
  }
  return best;
}

// The plane or pass most segments end at, as the unary codes of the others are short, and whether all do.
// `steps` are (where the segment stands, where it ends).
int best_nominal(const std::vector<std::pair<int, int>>& steps, bool& uniform) {
  int least = 60;
  int most = 0;
  for (const auto& [before, low] : steps) {
    least = std::min(least, low);
    most = std::max(most, low);
  }
  int best = std::min(least, most);
  std::uint64_t fewest = ~std::uint64_t{0};
  uniform = steps.empty();
  for (int p = least; p <= most; ++p) {
    std::uint64_t bits = 0;
    bool same = true;
    for (const auto& [before, low] : steps) {
      const int n = std::min(before, p);
      bits += zigzag(low - n) + 1;
      same = same && low == n;
    }
    if (same) bits = 0;
    if (bits < fewest) {
      fewest = bits;
      best = p;
      uniform = same;
    }
  }
  return best;
}

// The head of a chunk; `body` gets the bytes of its parts. Empty when the chunk says nothing.
std::vector<std::uint8_t> write_head(const StreamHeader& stream, const LayeredGop& gop, int layer, int band,
                                     int distance, std::size_t& body) {
  const auto l = static_cast<std::size_t>(layer);
  const int unit = cuts_per_plane(stream.profile);
  BitWriter head;
  bool says_something = false;
  body = 0;
  std::vector<std::uint32_t> sizes;
  std::vector<std::pair<int, int>> steps;  // (low before, low) of the segments that are not at the bottom already
  for_shares(stream, gop, band, distance, [&](std::size_t c, int k) {
    const auto& component = gop.components[c];
    const auto s = static_cast<std::size_t>(segment_index(*component.grid, band, k));
    const int parent = parent_segment(*component.grid, band, k);
    auto before_of = [&](const LayeredSegment& seg) {
      return layer == 0 ? unit * seg.top : static_cast<int>(seg.parts[l - 1].low);
    };
    sizes.clear();
    steps.clear();
    for (const auto& block : component.blocks) {
      const LayeredSegment& seg = block[s];
      const int before = before_of(seg);
      const LayerPart& part = seg.parts[l];
      if (part.low < before) sizes.push_back(part.size);
      body += part.size;
      if (before > 0) steps.emplace_back(before, part.low);
      says_something = says_something || part.low < before || (layer == 0 && seg.top > 0);
    }
    bool uniform = false;
    const int nominal = best_nominal(steps, uniform);
    const int rice = best_rice(sizes);
    head.put(static_cast<std::uint32_t>(nominal), 6);
    head.put(uniform, 1);
    head.put(static_cast<std::uint32_t>(rice), 5);
    int top_before = 0;
    for (const auto& block : component.blocks) {
      const LayeredSegment& seg = block[s];
      if (layer == 0) {
        if (parent < 0) {
          head.put_unary(zigzag(seg.top - top_before));
          top_before = seg.top;
        } else if (const int limit = block[static_cast<std::size_t>(parent)].top; limit > 0) {
          head.put_unary(static_cast<unsigned>(limit - seg.top));
        }
      }
      const int before = before_of(seg);
      const LayerPart& part = seg.parts[l];
      if (!uniform && before > 0) head.put_unary(zigzag(part.low - std::min(before, nominal)));
      if (part.low < before) head.put_rice(part.size, rice);
    }
  });
  if (!says_something) return {};
  return head.take();
}

}  // namespace

int parent_segment(const BlockGrid& grid, int b, int k) {
  if (k > 0) return segment_index(grid, b, k - 1);
  const int parent = grid.families()[static_cast<std::size_t>(b)].parent;
  return parent < 0 ? -1 : segment_index(grid, parent, 0);
}

void divide_by_plan(const CodedGop& coded, LayeredGop& out) {
  out.components.resize(coded.components.size());
  for (std::size_t c = 0; c < coded.components.size(); ++c) {
    const auto& from = coded.components[c];
    const auto layers = static_cast<std::size_t>(from.plan.layers);
    out.components[c].grid = from.grid;
    auto& blocks = out.components[c].blocks;
    blocks.resize(from.blocks.size());
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      const CodedBlock& block = from.blocks[i];
      blocks[i].resize(block.top.size());
      for (std::size_t s = 0; s < block.top.size(); ++s) {
        LayeredSegment& segment = blocks[i][s];
        segment.top = block.top[s];
        segment.parts.resize(layers);
        for (std::size_t l = 0; l < layers; ++l) {
          const std::size_t part = s * layers + l;
          segment.parts[l] = {(block.memory ? block.memory : block.bytes.data()) + block.offset[part], block.size[part],
                              std::min(segment.top, from.plan.low[l * block.top.size() + s])};
        }
      }
    }
  }
}

void set_planes(const StreamHeader& stream, const LayeredGop& gop, GopHeader& header) {
  const int unit = cuts_per_plane(stream.profile);
  header.planes = 0;
  header.layer_top.assign(stream.layers, 0);
  for (const auto& c : gop.components)
    for (const auto& block : c.blocks)
      for (const LayeredSegment& segment : block) {
        header.planes = std::max(header.planes, segment.top);
        int before = unit * segment.top;
        for (std::size_t l = 0; l < segment.parts.size(); ++l) {
          const int low = segment.parts[l].low;
          if (low < before)
            header.layer_top[l] = std::max(header.layer_top[l], static_cast<std::uint8_t>((before + unit - 1) / unit));
          before = low;
        }
      }
}

std::size_t chunk_size(const StreamHeader& stream, const LayeredGop& gop, int layer, int band, int distance) {
  std::size_t body = 0;
  return write_head(stream, gop, layer, band, distance, body).size() + body;
}

std::vector<std::uint8_t> write_chunk(const StreamHeader& stream, const LayeredGop& gop, int layer, int band,
                                      int distance) {
  std::size_t body = 0;
  std::vector<std::uint8_t> out = write_head(stream, gop, layer, band, distance, body);
  out.reserve(out.size() + body);
  const std::uint8_t* run = nullptr;  // parts that follow each other in memory are copied together
  std::size_t run_bytes = 0;
  const auto flush = [&] {
    if (run_bytes > 0) out.insert(out.end(), run, run + run_bytes);
    run_bytes = 0;
  };
  for_parts(stream, gop, band, distance, [&](std::size_t c, std::size_t b, std::size_t s) {
    const LayerPart& part = gop.components[c].blocks[b][s].parts[static_cast<std::size_t>(layer)];
    if (part.size == 0) return;
    if (run_bytes == 0 || run + run_bytes != part.data) {
      flush();
      run = part.data;
    }
    run_bytes += part.size;
  });
  flush();
  return out;
}

void read_chunk(const StreamHeader& stream, const std::uint8_t* bytes, std::size_t size, int layer, int band,
                int distance, LayeredGop& gop) {
  const int unit = cuts_per_plane(stream.profile);
  if (size == 0) {  // nothing new: tops stay 0, later layers add nothing; also for a band without frames
    for (std::size_t c = 0; c < gop.components.size(); ++c) {
      const int k = stream.components[c].spatial_levels - distance;
      if (k < 0) continue;
      const auto s = static_cast<std::size_t>(segment_index(*gop.components[c].grid, band, k));
      for (auto& block : gop.components[c].blocks) {
        LayeredSegment& seg = block[s];
        const auto low = seg.parts.empty() ? static_cast<std::uint8_t>(unit * seg.top) : seg.parts.back().low;
        seg.parts.push_back({bytes, 0, low});
      }
    }
    return;
  }
  const std::string where = "chunk of layer " + std::to_string(layer) + ", temporal band " + std::to_string(band) +
                            ", distance " + std::to_string(distance);
  BitReader head(bytes, size);
  for_shares(stream, gop, band, distance, [&](std::size_t c, int k) {
    auto& component = gop.components[c];
    const auto s = static_cast<std::size_t>(segment_index(*component.grid, band, k));
    const int bound = parent_segment(*component.grid, band, k);
    const int nominal = static_cast<int>(head.get(6));
    const bool uniform = head.get(1) != 0;
    const int rice = static_cast<int>(head.get(5));
    int before = 0;
    for (auto& block : component.blocks) {
      LayeredSegment& seg = block[s];
      if (layer == 0) {
        int top = 0;
        if (bound < 0) {
          top = before + unzigzag(head.get_unary(kUnaryLimit));
          before = top;
        } else if (const int limit = block[static_cast<std::size_t>(bound)].top; limit > 0) {
          top = limit - static_cast<int>(head.get_unary(static_cast<unsigned>(limit)));
        }
        if (head.overrun() || top < 0 || top > 30) bad(where + ": a segment of " + std::to_string(top) + " bit planes");
        seg.top = static_cast<std::uint8_t>(top);
      }
      const int low = seg.parts.empty() ? unit * seg.top : seg.parts.back().low;
      int to = std::min(low, nominal);
      if (!uniform && low > 0) to += unzigzag(head.get_unary(kUnaryLimit));
      if (to < 0 || to > low) bad(where + ": a segment cut at " + std::to_string(to) + " below " + std::to_string(low));
      std::uint32_t bytes_of_part = 0;
      if (to < low)
        bytes_of_part = head.get_rice(rice, static_cast<std::uint32_t>(std::min<std::size_t>(size, 0x7fffffff)));
      if (head.overrun() || bytes_of_part > size) bad(where + ": the head runs past its end");
      seg.parts.push_back({nullptr, bytes_of_part, static_cast<std::uint8_t>(to)});
    }
  });
  std::size_t at = head.bytes();
  for_parts(stream, gop, band, distance, [&](std::size_t c, std::size_t b, std::size_t s) {
    LayerPart& part = gop.components[c].blocks[b][s].parts.back();
    if (part.size > size - at)
      bad(where + ": a part of " + std::to_string(part.size) + " bytes, " + std::to_string(size - at) + " are left");
    part.data = bytes + at;
    at += part.size;
  });
  if (at != size) bad(where + ": " + std::to_string(size - at) + " bytes too many");
}

}  // namespace trivelet
