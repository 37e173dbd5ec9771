// The coefficients of a component between its code blocks, which are decoded in any order, and the inverse spatial
// transform, which takes frame by frame. Of a patch that is not zero, values that are not zero are kept, and which ones
// they are: of a film at a usual rate a small part of all coefficients is there. The decoders give
// patches without zeros themselves (TileSink, PackedSink).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "codec/entropy/dense/packed_patch.h"
#include "codec/transform/tree.h"
#include "codec/transform/zero_patches.h"

namespace trivelet {

/// T: float or std::int32_t.
template <class T>
class PatchStore final : public TileSink<T>, public PackedSink<T> {
 public:
  /// For a component whose blocks are decoded to `target`, as of BlockDecoder::decode (t+2D). `tiles`: the decoder
  /// gives them.
  PatchStore(const BlockGrid& grid, const SubbandTable& target, bool tiles, SimdLevel simd);

  const SubbandTable& target() const { return target_; }
  /// Marks patches that a decoder leaves out, for add().
  ZeroPatches& zeros() { return zeros_; }
  /// Copies block (by, bx) from its own memory (BlockMemory::is_separate), but not what was given as tiles. Threads may
  /// add different blocks at once.
  void add(int by, int bx, const BlockMemory<T>& memory);
  void add(const Subband& band, int frame_of_band, int by, int bx, const std::vector<std::uint64_t>& words,
           const T* coefficients, std::size_t count) override;
  void add(const Subband& band, int frame_of_band, int by, int bx, const std::uint32_t* packed,
           std::size_t words) override;
  /// Writes a frame to the one frame of `field`, without the patches that the result has, and frees it. Threads may
  /// take different frames at once.
  ZeroPatches take(int frame, const Field<T>& field);
  /// The same without the `levels` finest levels, for a field of the size that is left. Frees nothing.
  ZeroPatches read_low(int frame, int levels, const Field<T>& field) const;
  /// The same with nothing but the `levels` finest levels, for a field of the rows of the frame from `first_row` on, a
  /// multiple of 2^levels.
  ZeroPatches read_high(int frame, int levels, int first_row, const Field<T>& field) const;

 private:
  struct Frame {
    std::mutex mutex;
    std::vector<std::unique_ptr<std::uint32_t[]>> chunks;
    std::uint32_t* next = nullptr;
    std::size_t left = 0;  // words behind `next`
    // [subband of the frame][block row][block column]; null: zero. Of each row its bits, one for each value that is not
    // zero, then of each row these values. The same of each tile.
    std::vector<std::uint32_t*> patches;
    std::uint32_t* allocate(std::size_t words);
  };
  std::size_t patch(const Subband& band, int by, int bx) const;
  bool in_tiles(const Subband& band) const { return tiles_ && has_tiles(grid_, band); }
  // Writes those rows of a patch that `view` has, whose first row is row `first` of the subband.
  void write_patch(const Subband& band, const BlockGrid::Patch& patch, const std::uint32_t* packed, int first,
                   const Field<T>& view) const;
  // Writes the bands of resolutions [from, to) to a field of `levels` levels whose first row is row `first_row`.
  void write(int frame, int from, int to, int levels, int first_row, const Field<T>& field) const;

  const BlockGrid& grid_;
  const SubbandTable target_;
  const bool tiles_;
  const SimdLevel simd_;
  ZeroPatches zeros_;
  std::vector<Frame> frames_;
};

}  // namespace trivelet
