// Fuzzes the decoder of code blocks. The first bytes choose shape, decomposition, planes and cuts of the segments,
// within what a chunk's header can express: a child has no more planes than its parent. The other bytes are the
// segments' bits. All instruction sets must agree on errors and coefficients.

#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <vector>

#include "tests/fuzz/block_support.h"
#include "trivelet/error.h"

using namespace trivelet;
using namespace trivelet::fuzz;

namespace {

template <class T>
Result<T> decode(BlockDecoder& decoder, const BlockGrid& grid, const SubbandTable& target, int by, int bx,
                 const std::vector<LayeredSegment>& segments, int stop, int centroid, const StepTable* steps) {
  const Shape& s = target.shape();
  Result<T> r;
  r.memory.assign(s.samples(), T(7));
  const Field<T> f = field_of(r.memory, s);
  try {
    decoder.decode(grid, target, by, bx, segments, stop, centroid, steps, BlockMemory<T>{f});
  } catch (const Error& e) {
    r.refused = true;
    if (e.kind() != ErrorKind::kBadStream) wrong("kind of error");
  }
  return r;
}

template <class T>
void compare_all(FastMode mode, const BlockGrid& grid, const SubbandTable& target, int by, int bx,
                 const std::vector<LayeredSegment>& segments, int stop, int centroid, const StepTable* steps) {
  Result<T> first;
  bool compared = false;
  for (const SimdLevel simd : {SimdLevel::kScalar, SimdLevel::kAvx2, SimdLevel::kAvx512}) {
    if (simd > detected_simd()) break;
    // The best always, the others now and then.
    if (simd != detected_simd() && centroid % 4 != static_cast<int>(simd)) continue;
    // One decoder for all inputs, as in a stream: what one block leaves behind must not matter to the next.
    static std::map<std::pair<FastMode, SimdLevel>, std::unique_ptr<BlockDecoder>> decoders;
    auto& decoder = decoders[{mode, simd}];
    if (!decoder) decoder = std::make_unique<BlockDecoder>(mode, simd);
    Result<T> r = decode<T>(*decoder, grid, target, by, bx, segments, stop, centroid, steps);
    if (!compared) {
      first = std::move(r);
      compared = true;
    } else {
      if (r.refused != first.refused) wrong("instruction sets disagree about an error");
      if (!r.refused && std::memcmp(r.memory.data(), first.memory.data(), r.memory.size() * sizeof(T)) != 0)
        wrong("instruction sets disagree");
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static Geometries geometries;
  Choices c(data, size);
  const unsigned options = c.byte();
  // Few shapes, so that their geometry is kept: one sample, thin, odd, powers of two and their neighbours, two blocks.
  static const Shape kShapes[] = {{1, 1, 1},  {1, 1, 36},  {2, 36, 1},  {3, 2, 3},   {5, 7, 5},   {8, 8, 8},
                                  {9, 5, 17}, {4, 16, 16}, {3, 17, 15}, {1, 33, 31}, {2, 35, 36}, {6, 20, 11}};
  const Shape shape = kShapes[c.upto(11)];
  const Decomposition d = decomposition_by(options & 1 ? Layout::kDyadic : Layout::kT2d, c.byte());
  const FastMode mode = options & 2 ? FastMode::kStaged : FastMode::kRaw;
  const bool real = options & 4;
  const int layers = 1 + (options >> 3 & 1);
  const int reduce = std::min<int>(options >> 4 & 3, d.spatial_levels);
  const Geometry& geometry = geometries.get(shape, d, options & 64 ? 64 : 32, reduce);
  const BlockGrid& grid = geometry.grid;
  const SubbandTable& target = geometry.target;
  const int by = options & 128 ? grid.rows() - 1 : 0;
  const int bx = options & 128 ? grid.columns() - 1 : 0;
  const int stop = c.upto(8) - 4;
  const int centroid = static_cast<int>(c.byte());

  // Planes and cuts first, then the bits. With the high bit of a segment's byte its parts share all bits there are, so
  // that decoding goes on until `stop`; otherwise the parts have a size of their own and must end where they say.
  struct Choice {
    bool shared = false;
    int size[2] = {0, 0};
    int low[2] = {0, 0};
  };
  std::vector<LayeredSegment> segments(static_cast<std::size_t>(segment_count(grid)));
  std::vector<Choice> choices(segments.size());
  for (int b = 0; b < grid.table().temporal_bands(); ++b) {
    const Family& f = grid.families()[static_cast<std::size_t>(b)];
    if (f.frames == 0) continue;
    for (int k = 0; k < grid.resolutions(); ++k) {
      const auto s = static_cast<std::size_t>(segment_index(grid, b, k));
      int limit = 30;
      if (k > 0)
        limit = segments[s - 1].top;
      else if (f.parent >= 0)
        limit = segments[static_cast<std::size_t>(segment_index(grid, f.parent, 0))].top;
      if (limit == 0) continue;
      const unsigned v = c.byte();
      const int top = limit - static_cast<int>((v & 127) % static_cast<unsigned>(limit + 1));
      segments[s].top = static_cast<std::uint8_t>(top);
      choices[s].shared = v & 128;
      int low = top;
      for (int l = 0; l < layers; ++l) {
        const unsigned cut = choices[s].shared && l + 1 == layers ? 255 : c.byte();
        low -= static_cast<int>(cut & 15) < low ? static_cast<int>(cut & 15) : low;
        if (cut == 255) low = 0;
        choices[s].low[l] = low;
        choices[s].size[l] = choices[s].shared ? 1 << 20 : c.upto(255);
      }
    }
  }
  const std::size_t bits = c.left();
  auto payload = std::make_unique<std::uint8_t[]>(bits + 16);
  if (bits > 0) std::memcpy(payload.get(), c.rest(), bits);
  std::memset(payload.get() + bits, 0, 16);
  std::size_t at = 0;
  for (std::size_t s = 0; s < segments.size(); ++s) {
    if (segments[s].top == 0) continue;
    for (int l = 0; l < layers; ++l) {
      LayerPart p;
      const std::size_t n = std::min(static_cast<std::size_t>(choices[s].size[l]), bits - at);
      p.data = payload.get() + at;
      p.size = static_cast<std::uint32_t>(n);
      p.low = static_cast<std::uint8_t>(choices[s].low[l]);
      segments[s].parts.push_back(p);
      if (!choices[s].shared) at += n;
    }
    if (choices[s].shared) at = std::min(bits, at + 3);
  }
  if (real) {
    compare_all<float>(mode, grid, target, by, bx, segments, std::max(0, stop), centroid, &geometry.steps);
  } else {
    compare_all<std::int32_t>(mode, grid, target, by, bx, segments, std::max(0, stop), centroid, nullptr);
  }
  return 0;
}
