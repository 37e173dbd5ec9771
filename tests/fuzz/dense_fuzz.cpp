// Fuzzes the decoder of dense code blocks. The first bytes choose shape, decomposition, planes and cuts of the
// segments, within what a chunk's header can express: a child has no more planes than its parent, and cuts may ask for
// more than the parent has. The other bytes are the codewords, without a byte after them.
//
// Every input decodes. A new decoder, a smaller table of subbands, and a round trip through the encoder must give the
// same coefficients. Magnitudes stay below the promised planes.

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "codec/entropy/dense/dense.h"
#include "tests/fuzz/block_support.h"
#include "trivelet/error.h"

using namespace trivelet;
using namespace trivelet::fuzz;

namespace {

template <class T>
struct Coders {
  DenseDecoder decoder;  // one for all inputs: what one block leaves behind must not matter to the next
  DenseEncoder encoder;
};

struct Input {
  const Geometry& geometry;
  int by, bx;
  std::vector<LayeredSegment> segments;
  int stop, centroid;
};

template <class T>
std::vector<T> decode(DenseDecoder& decoder, const Input& in, const SubbandTable& target,
                      const std::vector<LayeredSegment>& segments, int stop, int centroid, const StepTable* steps) {
  std::vector<T> memory(target.shape().samples(), T(7));
  try {
    decoder.decode<T>(in.geometry.grid, target, in.by, in.bx, segments, stop, centroid, steps,
                      {field_of(memory, target.shape())});
  } catch (const Error&) {
    wrong("refused");
  }
  return memory;
}

template <class T>
bool same(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

// The coefficients of `small`, a table of fewer levels, must be those of `whole`.
template <class T>
void compare_reduced(const Input& in, std::vector<T>& whole, std::vector<T>& small) {
  const SubbandTable& table = in.geometry.grid.table();
  const SubbandTable& less = in.geometry.target;
  const Field<T> a = field_of(whole, table.shape());
  const Field<T> b = field_of(small, less.shape());
  for (const Subband& band : less.all()) {
    const Field<T> from = subband_view(a, table.at(band.temporal_band, band.resolution, band.orientation));
    const Field<T> to = subband_view(b, band);
    for (int t = 0; t < to.shape.frames; ++t)
      for (int y = 0; y < to.shape.height; ++y)
        for (int x = 0; x < to.shape.width; ++x)
          if (std::memcmp(&from.row(t, y)[x], &to.row(t, y)[x], sizeof(T)) != 0) wrong("a smaller table differs");
  }
}

// What was decoded, as integers, coded and decoded once more.
void again(Coders<std::int32_t>& coders, const Input& in, std::vector<std::int32_t>& values) {
  CodedBlock coded;
  PassTable table;
  coders.encoder.encode(in.geometry.grid, in.by, in.bx, field_of(values, in.geometry.grid.table().shape()), in.centroid,
                        nullptr, coded, table);
  std::vector<LayeredSegment> segments(coded.top.size());
  for (std::size_t s = 0; s < segments.size(); ++s) {
    if (coded.top[s] > in.segments[s].top) wrong("more planes than were promised");
    segments[s].top = coded.top[s];
    segments[s].parts.push_back({coded.bytes.data() + coded.offset[s], coded.size[s], 0});
  }
  if (!same(values,
            decode<std::int32_t>(coders.decoder, in, in.geometry.grid.table(), segments, 0, in.centroid, nullptr)))
    wrong("not the same after encoding it");
}

template <class T>
void run(const Input& in, unsigned checks, const StepTable* steps) {
  static Coders<T> coders;
  std::vector<T> small = decode<T>(coders.decoder, in, in.geometry.target, in.segments, in.stop, in.centroid, steps);
  switch (checks) {
    case 0: {
      std::vector<T> whole =
          decode<T>(coders.decoder, in, in.geometry.grid.table(), in.segments, in.stop, in.centroid, steps);
      compare_reduced(in, whole, small);
      break;
    }
    case 1: {
      DenseDecoder fresh;
      if (!same(small, decode<T>(fresh, in, in.geometry.target, in.segments, in.stop, in.centroid, steps)))
        wrong("what was decoded before matters");
      break;
    }
    case 2:
      if constexpr (std::is_same_v<T, std::int32_t>) {
        std::vector<T> values = decode<T>(coders.decoder, in, in.geometry.grid.table(), in.segments, in.stop, 0, steps);
        again(coders, in, values);
      }
      break;
    default: break;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static Geometries geometries;
  Choices c(data, size);
  const unsigned options = c.byte();
  const unsigned more = c.byte();
  // Few shapes, so that their geometry is kept: one sample, thin, odd, powers of two and their neighbours, two blocks.
  static const Shape kShapes[] = {{1, 1, 1}, {1, 1, 33}, {2, 33, 1}, {3, 2, 3}, {4, 4, 4}, {2, 8, 8},
                                  {5, 3, 5}, {3, 5, 7},  {1, 6, 34}, {2, 4, 4}, {8, 2, 2}, {1, 8, 8}};
  const Shape shape = kShapes[c.upto(11)];
  const Decomposition d = decomposition_by(options & 1 ? Layout::kDyadic : Layout::kT2d, c.byte());
  const bool real = options & 2;
  const int layers = 1 + (options >> 2 & 1);
  const int reduce = std::min<int>(options >> 3 & 3, d.spatial_levels);
  const Geometry& geometry = geometries.get(shape, d, 32, reduce);
  const BlockGrid& grid = geometry.grid;
  Input in{geometry, options & 32 ? grid.rows() - 1 : 0, options & 32 ? grid.columns() - 1 : 0, {}, 0, 0};
  in.stop = options & 64 ? c.upto(4) : 0;
  in.centroid = static_cast<int>(c.byte());

  // Planes, cuts and sizes first, then the bytes.
  in.segments.resize(static_cast<std::size_t>(segment_count(grid)));
  std::vector<std::array<unsigned, 2>> sizes(in.segments.size());
  for (int b = 0; b < grid.table().temporal_bands(); ++b) {
    const Family& f = grid.families()[static_cast<std::size_t>(b)];
    if (f.frames == 0) continue;
    for (int k = 0; k < grid.resolutions(); ++k) {
      const auto s = static_cast<std::size_t>(segment_index(grid, b, k));
      int limit = 1 + static_cast<int>(more & 128 ? more % 30 : more % 6);
      if (k > 0)
        limit = in.segments[s - 1].top;
      else if (f.parent >= 0)
        limit = in.segments[static_cast<std::size_t>(segment_index(grid, f.parent, 0))].top;
      if (limit == 0) continue;
      const unsigned v = c.byte();
      // Few planes less than the parent: what is coded, not what is left out, is to be tested.
      const int top = std::max(0, limit - static_cast<int>(v & 64 ? v & 31 : v & 1));
      in.segments[s].top = static_cast<std::uint8_t>(top);
      int low = 2 * top;
      for (int l = 0; l < layers; ++l) {
        const bool all = l + 1 == layers && !(v & 128);
        low = all ? 0 : low - std::min<int>(low, static_cast<int>(c.byte() & 15));
        in.segments[s].parts.push_back({nullptr, 0, static_cast<std::uint8_t>(low)});
        sizes[s][static_cast<std::size_t>(l)] = c.byte() & 31;
      }
    }
  }
  const std::size_t left = c.left();
  const std::unique_ptr<std::uint8_t[]> bytes(new std::uint8_t[left]);
  if (left > 0) std::memcpy(bytes.get(), c.rest(), left);
  std::size_t at = 0;
  for (std::size_t s = 0; s < in.segments.size(); ++s) {
    // Without bytes every decision is 1: slow, and the same for all. Such segments are not coded, but now and then.
    if (at == left && !(options & 128))
      for (LayerPart& p : in.segments[s].parts) p.low = static_cast<std::uint8_t>(2 * in.segments[s].top);
    for (std::size_t l = 0; l < in.segments[s].parts.size(); ++l) {
      LayerPart& p = in.segments[s].parts[l];
      p.data = bytes.get() + at;
      p.size = static_cast<std::uint32_t>(std::min<std::size_t>(sizes[s][l], left - at));
      at += p.size;
    }
  }
  if (real)
    run<float>(in, more >> 3 & 15, &geometry.steps);
  else
    run<std::int32_t>(in, more >> 3 & 15, nullptr);
  return 0;
}
