#include "codec/format/chunk.h"

#include <algorithm>
#include <array>
#include <bit>
#include <string>
#include <utility>

#include "codec/base/bad_stream.h"
#include "codec/base/bits.h"
#include "codec/base/limits.h"

namespace trivelet {

namespace {

constexpr unsigned kUnaryLimit = 128;
unsigned zigzag(int v) { return v > 0 ? 2 * static_cast<unsigned>(v) - 1 : 2 * static_cast<unsigned>(-v); }
int unzigzag(unsigned v) { return v & 1 ? static_cast<int>(v / 2) + 1 : -static_cast<int>(v / 2); }

// The smallest Rice parameter that codes the sizes of the parts in the fewest bits. A larger parameter takes one bit
// more for each part and halves the unary codes, so the bits fall and then rise: the search begins near the mean.
int best_rice(const HeadRows& rows, std::uint64_t& fewest) {
  constexpr int kParameters = 24;
  std::vector<std::uint32_t> sizes;
  sizes.reserve(rows.low.size());
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < rows.low.size(); ++i)
    if (rows.low[i] < rows.before[i]) {
      sizes.push_back(rows.size[i]);
      sum += rows.size[i];
    }
  fewest = 0;
  if (sizes.empty()) return 0;
  const auto bits_with = [&](int k) {
    std::uint64_t bits = sizes.size() * static_cast<std::uint64_t>(k + 1);
    for (const std::uint32_t size : sizes) bits += size >> k;
    return bits;
  };
  int best = std::min<int>(static_cast<int>(std::bit_width(sum / sizes.size())), kParameters - 1);
  fewest = bits_with(best);
  while (best > 0) {
    const std::uint64_t bits = bits_with(best - 1);
    if (bits > fewest) break;
    fewest = bits;
    --best;
  }
  while (best + 1 < kParameters) {
    const std::uint64_t bits = bits_with(best + 1);
    if (bits >= fewest) break;
    fewest = bits;
    ++best;
  }
  return best;
}

// The plane or pass most segments end at, as the unary codes of the others are short, and whether all do. Segments that
// are at the bottom already do not count. With p a segment takes 2 (low - p) bits if p < low, else
// 2 (min(p, before) - low) + 1, so that how many have which low and which before says what all take.
int best_nominal(const HeadRows& rows, bool& uniform, std::uint64_t& fewest) {
  constexpr int kCuts = 256;
  std::array<std::uint32_t, kCuts> lows{}, befores{}, both{};
  int least = 60;
  int most = 0;
  std::uint64_t count = 0;
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < rows.low.size(); ++i) {
    const std::uint8_t low = rows.low[i];
    const std::uint8_t before = rows.before[i];
    if (before == 0) continue;
    least = std::min<int>(least, low);
    most = std::max<int>(most, low);
    ++lows[low];
    ++befores[before];
    if (low == before) ++both[low];
    ++count;
    sum += low;
  }
  uniform = count == 0;
  fewest = uniform ? 0 : ~std::uint64_t{0};
  int best = std::min(least, most);
  // Of the segments with low, or before, up to p: how many, and the sum of it; and how many with both the same, below
  // p.
  std::uint64_t n_low = 0, sum_low = 0, n_before = 0, sum_before = 0, n_both = 0;
  for (int p = 0; p <= most; ++p) {
    const auto v = static_cast<std::uint64_t>(p);
    const auto at = static_cast<std::size_t>(p);
    n_low += lows[at];
    sum_low += v * lows[at];
    n_before += befores[at];
    sum_before += v * befores[at];
    if (p >= least) {
      const bool same = lows[at] + n_both == count;
      const std::uint64_t above = 2 * (sum - sum_low - v * (count - n_low));
      const std::uint64_t others = 2 * (v * (n_low - n_before) + sum_before - sum_low) + n_low;
      const std::uint64_t bits = same ? 0 : above + others;
      if (bits < fewest) {
        fewest = bits;
        best = p;
        uniform = same;
      }
    }
    n_both += both[at];
  }
  return best;
}

// Calls f(rows, has a parent) for the components that have parts in a chunk.
template <class F>
void for_head_rows(const StreamHeader& stream, const LayeredGop& gop, int layer, int band, int distance, const F& f) {
  const auto l = static_cast<std::size_t>(layer);
  const int unit = cuts_per_plane(stream.profile);
  HeadRows rows;
  for_shares(stream, gop, band, distance, [&](std::size_t c, int k) {
    const auto& component = gop.components[c];
    const auto s = static_cast<std::size_t>(segment_index(*component.grid, band, k));
    const int parent = parent_segment(*component.grid, band, k);
    rows.resize(component.blocks.size());
    for (std::size_t i = 0; i < component.blocks.size(); ++i) {
      const LayeredSegment& segment = component.blocks[i][s];
      rows.top[i] = segment.top;
      rows.limit[i] = parent < 0 ? std::uint8_t{0} : component.blocks[i][static_cast<std::size_t>(parent)].top;
      rows.before[i] = layer == 0 ? static_cast<std::uint8_t>(unit * segment.top) : segment.parts[l - 1].low;
      rows.low[i] = segment.parts[l].low;
      rows.size[i] = segment.parts[l].size;
    }
    f(rows, parent < 0);
  });
}

void write_rows(const HeadRows& rows, const HeadCodes& codes, bool first_layer, bool root, BitWriter& head) {
  head.put(static_cast<std::uint32_t>(codes.nominal), 6);
  head.put(codes.uniform, 1);
  head.put(static_cast<std::uint32_t>(codes.rice), 5);
  int top_before = 0;
  for (std::size_t i = 0; i < rows.low.size(); ++i) {
    if (first_layer && root) {
      head.put_unary(zigzag(rows.top[i] - top_before));
      top_before = rows.top[i];
    } else if (first_layer && rows.limit[i] > 0) {
      head.put_unary(static_cast<unsigned>(rows.limit[i] - rows.top[i]));
    }
    if (!codes.uniform && rows.before[i] > 0)
      head.put_unary(zigzag(rows.low[i] - std::min<int>(rows.before[i], codes.nominal)));
    if (rows.low[i] < rows.before[i]) head.put_rice(rows.size[i], codes.rice);
  }
}

// The header of a chunk; `body` gets the bytes of its parts. Empty if no part has bytes.
std::vector<std::uint8_t> write_head(const StreamHeader& stream, const LayeredGop& gop, int layer, int band,
                                     int distance, std::size_t& body) {
  BitWriter head;
  bool says_something = false;
  body = 0;
  for_head_rows(stream, gop, layer, band, distance, [&](const HeadRows& rows, bool root) {
    const HeadCodes codes = head_codes(rows, layer == 0, root);
    write_rows(rows, codes, layer == 0, root, head);
    body += codes.body;
    says_something = says_something || codes.says_something;
  });
  if (!says_something) return {};
  return head.take();
}

}  // namespace

void HeadRows::resize(std::size_t blocks) {
  for (std::vector<std::uint8_t>* v : {&top, &limit, &before, &low}) v->resize(blocks);
  size.resize(blocks);
}

HeadCodes head_codes(const HeadRows& rows, bool first_layer, bool root) {
  constexpr std::uint64_t kFixedBits = 6 + 1 + 5;
  HeadCodes codes;
  std::uint64_t size_cost = 0;
  std::uint64_t cut_cost = 0;
  codes.nominal = best_nominal(rows, codes.uniform, cut_cost);
  codes.rice = best_rice(rows, size_cost);
  codes.bits = kFixedBits + size_cost + cut_cost;
  int top_before = 0;
  for (std::size_t i = 0; i < rows.low.size(); ++i) {
    codes.body += rows.size[i];
    codes.says_something |= rows.low[i] < rows.before[i] || (first_layer && rows.top[i] > 0);
    if (!first_layer) continue;
    if (root) {
      codes.bits += zigzag(rows.top[i] - top_before) + 1;
      top_before = rows.top[i];
    } else if (rows.limit[i] > 0) {
      codes.bits += static_cast<unsigned>(rows.limit[i] - rows.top[i]) + 1;
    }
  }
  return codes;
}

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
  ChunkSize size;
  for_head_rows(stream, gop, layer, band, distance,
                [&](const HeadRows& rows, bool root) { size.add(head_codes(rows, layer == 0, root)); });
  return static_cast<std::size_t>(size.bytes());
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
        seg.parts.reserve(stream.layers);
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
  if (!head.padding_is_zero()) bad(where + ": the padding of its head is not zero");
  std::size_t at = head.bytes();
  for_parts(stream, gop, band, distance, [&](std::size_t c, std::size_t b, std::size_t s) {
    LayerPart& part = gop.components[c].blocks[b][s].parts.back();
    if (part.size > size - at)
      bad(where + ": a part of " + count_of(part.size, "byte") + ", " + std::to_string(size - at) + " are left");
    part.data = bytes + at;
    at += part.size;
  });
  if (at != size) bad(where + ": " + count_of(size - at, "byte") + " too many");
}

}  // namespace trivelet
