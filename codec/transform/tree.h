// Spatio-temporal orientation trees in word form: the parent-child relation of coefficients as arrays of 64-bit masks
// (FORMAT.md "Trees").
//
// A code block is a patch of root groups of one component (2x2 or 2x2x2 coefficients of the lowest band each) in all
// frames of the GOP. Per temporal band ("family") it holds a pyramid of levels k = 0..K; level k >= 1 exists once per
// orientation. Coefficients of a level are in *slot order*: group by group, where group g of level k + 1 holds the
// children of slot g of level k (level 1: the children of root group g). 64 slots are one word. The mask of significant
// sets of a word, cut into pieces, is the mask of active groups of the next level's words, so there are no lists and no
// pointers.
//
// Slots outside the picture exist in the arrays but are not `valid`. A set exists if any descendant is valid.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "codec/transform/subband.h"

namespace trivelet {

class ZeroPatches;

/// Position of the first slot of a word, relative to the block's patch in its subband.
struct WordBase {
  std::uint16_t t = 0;
  std::uint16_t y = 0;
  std::uint16_t x = 0;
};

/// Arrangement of the 64 slots of a word relative to its base; the same for all words of a level.
enum class WordKind : std::uint8_t {
  kTile8x8,    ///< one frame, 8x8, slots in Z order: x0 y0 x1 y1 x2 y2
  kCube4x4x4,  ///< 4 frames of 4x4: slot bits x0 y0 t0 x1 y1 t1
  kOther,      ///< by the table TreeLevel::slot
};

/// One level of a family: the geometry that all blocks share.
struct TreeLevel {
  int arity = 4;         ///< coefficients per group: 4 (2x2) or 8 (2x2x2)
  int orientations = 1;  ///< 1 at level 0, else 3 or 7; the index is o - 1
  int words = 0;         ///< per orientation
  int side = 0;          ///< rows and columns of the block's patch at this level
  WordKind kind = WordKind::kOther;
  std::array<WordBase, 64> slot{};
  std::vector<WordBase> base;  ///< per word
};

/// One family of a block: the tree geometry for a given number of frames.
struct Family {
  int temporal_band = 0;
  int frames = 0;                 ///< frames of the lowest band (0: the family is empty)
  int root_frames = 0;            ///< frames of root groups: `frames`, or half, rounded up, when groups are 2x2x2
  int parent = -1;                ///< index of the family whose root groups are the temporal parents, -1 for none
  std::vector<int> parent_frame;  ///< parent's frame, per root frame
  std::vector<TreeLevel> levels;
  std::size_t total_words() const;
};

/// Which slots of a block's words exist. Blocks inside the picture share one set; those at its right and lower border
/// differ.
struct LevelMasks {
  std::vector<std::uint64_t> valid;  ///< [orientation * words + word]
  /// k >= 1: per slot, whether its child group exists. k = 0: [orientation of level 1][word], one bit per root group.
  std::vector<std::uint64_t> child;
};
struct FamilyMasks {
  std::vector<LevelMasks> levels;
  std::vector<std::uint16_t> root_exists;  ///< per word of level 0, one bit per root group
};
struct BlockMasks {
  std::vector<FamilyMasks> families;
};

/// The code blocks of one component of a GOP.
class BlockGrid {
 public:
  /// `block_size` is 32, 64, 128 or 256 samples; a block has at least one root group. The predictive profile passes
  /// trees = false: the grid then has neither words nor masks.
  BlockGrid(const Shape& shape, const Decomposition& d, bool reversible, int block_size, bool trees = true);

  const SubbandTable& table() const { return table_; }
  int rows() const { return rows_; }
  int columns() const { return columns_; }
  int blocks() const { return rows_ * columns_; }
  int resolutions() const { return table_.resolutions(); }
  const std::vector<Family>& families() const { return families_; }
  const BlockMasks& masks(int by, int bx) const {
    return masks_[static_cast<std::size_t>((by == rows_ - 1 ? 2 : 0) + (bx == columns_ - 1 ? 1 : 0))];
  }
  /// The orientation (as in Subband) of orientation index i at level k.
  static int orientation(int k, int i) { return k == 0 ? 0 : i + 1; }
  /// Origin and size of the block's patch inside a subband; size 0 when it is outside.
  struct Patch {
    int y = 0;
    int x = 0;
    int height = 0;
    int width = 0;
  };
  Patch patch(const Subband& band, int by, int bx) const;
  /// Rows and columns of a patch at resolution k that the picture's border does not cut.
  int side(int k) const { return group_columns_ << (k > 1 ? k : 1); }
  /// Rows and columns of the picture of a block, decoded to `levels` spatial levels.
  int block_side(int levels) const { return levels == 0 ? side(0) : 2 * side(levels); }
  /// The samples that depend on the block: its own and the ones next to it.
  Patch extent(int block) const;

 private:
  SubbandTable table_;
  int group_columns_ = 1;  // root groups per side of a block
  int rows_ = 1;
  int columns_ = 1;
  std::vector<Family> families_;
  std::array<BlockMasks, 4> masks_;
};

/// Index of subband (b, k, orientation index) in SubbandTable::all().
std::size_t subband_slot(const BlockGrid& grid, int b, int k, int orientation_index);

/// View of the block's patch of a subband of `field`.
template <class T>
Field<T> patch_view(const BlockGrid& grid, int by, int bx, const Field<T>& field, const Subband& band) {
  Field<T> v = subband_view(field, band);
  const BlockGrid::Patch p = grid.patch(band, by, bx);
  v.data += p.y * v.row_stride + p.x;
  v.shape.height = p.height;
  v.shape.width = p.width;
  return v;
}

/// Whether the words of a detail subband are squares of 8x8 coefficients of one frame.
inline bool has_tiles(const BlockGrid& grid, const Subband& band) {
  return band.resolution > 0 && grid.families()[static_cast<std::size_t>(band.temporal_band)]
                                        .levels[static_cast<std::size_t>(band.resolution)]
                                        .kind == WordKind::kTile8x8;
}

/// Takes patches of blocks without their zeros.
template <class T>
class TileSink {
 public:
  virtual ~TileSink() = default;
  /// A patch of one frame of a subband for which has_tiles() is true: of each word its slots that are not zero, then
  /// the `count` coefficients of these slots.
  virtual void add(const Subband& band, int frame_of_band, int by, int bx, const std::vector<std::uint64_t>& words,
                   const T* coefficients, std::size_t count) = 0;
};

/// Where the coefficients of a block are written: to the field of its component, or to one of the block alone.
template <class T>
struct BlockMemory {
  Field<T> field;
  bool is_separate = false;      ///< `field` has all frames of a picture of BlockGrid::block_side() rows and columns
  TileSink<T>* tiles = nullptr;  ///< of the fast profile: gets patches that have tiles in place of `field`
};
template <class T>
Field<T> patch_view(const BlockGrid& grid, int by, int bx, const BlockMemory<T>& memory, const Subband& band) {
  if (!memory.is_separate) return patch_view(grid, by, bx, memory.field, band);
  const BlockGrid::Patch p = grid.patch(band, by, bx);
  Subband own = band;
  own.column_origin = (band.orientation & 1) != 0 ? grid.side(band.resolution) : 0;
  Field<T> v = subband_view(memory.field, own);
  v.shape.height = p.height;
  v.shape.width = p.width;
  return v;
}

/// Size of a grid and of the coder's work per block, computed without building the grid.
struct GridSize {
  std::uint64_t blocks = 0;
  int segments = 0;         ///< per block
  std::uint64_t words = 0;  ///< per block, all families, levels and orientations
};
GridSize grid_size(const Shape& shape, const Decomposition& d, int block_size);

/// One bit per group of a word of arity 4 or 8: set when any slot of the group is set.
std::uint32_t any_in_group(std::uint64_t slots, int arity);

}  // namespace trivelet
