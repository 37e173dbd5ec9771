// The zerotree coder of one code block in the fast profile: coefficients <-> embedded segments.
//
// A block has one segment per (temporal band b, resolution k). The bits of a segment run from its top bit plane down to
// plane 0, and it may be cut after any plane. An encoder's cuts divide it into parts, one per quality layer. Decoding a
// segment to plane p requires its spatial parent (b, k-1), for k = 0 its temporal parent, to be decoded to p as well.
//
// All decisions are comparisons of magnitudes (M: most significant plane of a coefficient, G: the largest M in a set),
// so no lists of coefficients are kept (FORMAT.md "Fast profile"). Sources for the trees: Shapiro (1993), Said and
// Pearlman (1996), Kim, Xiong and Pearlman (2000). The form without lists is our own.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "codec/entropy/coded_block.h"
#include "codec/transform/tree.h"
#include "trivelet/parameters.h"

namespace trivelet {

/// Writes the rows [first_row, end_row) of a patch, of which `origin` is the first coefficient of row `first_row`.
/// `packed` is what a TileSink got: two numbers for each word, then the bits of the coefficients. 16 numbers behind it
/// can be read.
template <class T>
void write_tiles(const BlockGrid& grid, const Subband& band, const BlockGrid::Patch& patch, const std::uint32_t* packed,
                 int first_row, int end_row, T* origin, std::ptrdiff_t row_stride, SimdLevel simd);
/// The number of words of a patch of one frame.
inline std::size_t tiles_of(const BlockGrid& grid, const Subband& band) {
  const auto side = static_cast<std::size_t>(grid.side(band.resolution));
  return side * side / 64;
}

/// Codes blocks in FastMode::kStaged. It holds scratch memory, so each thread needs its own object.
class BlockEncoder {
 public:
  explicit BlockEncoder(SimdLevel simd);
  ~BlockEncoder();
  /// Quantises (float) and codes block (by, bx) of `field`. |quantised| is limited to 2^30 - 1.
  void encode(const BlockGrid& grid, int by, int bx, const Field<float>& field, const StepTable& steps,
              const LayerPlan& plan, CodedBlock& out);
  void encode(const BlockGrid& grid, int by, int bx, const Field<std::int32_t>& field, const LayerPlan& plan,
              CodedBlock& out);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

class BlockDecoder {
 public:
  BlockDecoder(FastMode mode, SimdLevel simd);
  ~BlockDecoder();
  /// Decodes planes >= stop_plane and writes every coefficient of the block that `target` has into `memory`. `target`
  /// is grid.table() or, for a lower resolution or frame rate, the table of the reduced volume, whose subbands are the
  /// coarsest ones of the grid. `centroid` / 256 is the place of the reconstruction point in its interval. `steps` (of
  /// grid.table()) is null for integers. With `left_out`, zero patches are marked there and not written; tiles are for
  /// this case alone. Throws BadStream when the bits contradict the sizes.
  template <class T>
  void decode(const BlockGrid& grid, const SubbandTable& target, int by, int bx,
              const std::vector<LayeredSegment>& segments, int stop_plane, int centroid, const StepTable* steps,
              const BlockMemory<T>& memory, ZeroPatches* left_out = nullptr);
  /// Writes zeros, for a block that cannot be decoded.
  template <class T>
  static void clear(const BlockGrid& grid, const SubbandTable& target, int by, int bx, const BlockMemory<T>& memory,
                    ZeroPatches* left_out = nullptr);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace trivelet
