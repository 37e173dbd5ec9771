// VSTC's encoder search: the prediction tree of a block and the residual trees under it that minimise D + lambda R.
//
// Costs J are integers in 1/65536 of a squared sample step. R uses the contexts frozen at the start of the block. D of
// residual trials comes from the coefficients (the transforms are orthonormal up to rounding); D of the chosen mode
// comes from the reconstructed samples.
//
// Residual trees: for a given prediction and mode the best cost of a sub-block does not depend on the path of the
// recursion, so it is computed once (Params::remember). All sub-blocks of a size are transformed together, for all
// modes on trial, when the first of them is needed.
//
// Early termination without a change of the result: a split is abandoned when its first half alone costs as much as the
// best so far; a block is not split when the symbols of a split alone would cost as much.
// so far; nothing is halved when the symbols of a halving alone would cost as much.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "codec/still/vstc/vstc.h"
#include "codec/still/vstc/vstc_io.h"
#include "codec/still/vstc/vstc_picture.h"
#include "codec/still/vstc/vstc_syntax.h"

namespace trivelet::vstc {

using Joint = std::int64_t;
inline constexpr Joint kNever = Joint{1} << 60;
inline constexpr int kRoundBits = 20;
/// Rounding offset of 0.36, below one half because the distribution within a step falls.
inline constexpr std::int64_t kRound = static_cast<std::int64_t>(0.36 * (1 << kRoundBits));
/// Blocks predicted without a residual are not split if their distortion is worth fewer bits than this.
inline constexpr Cost kLeastGain = 6 * kBit;
/// Modes ordered so that those with a sine transform across come first and those with one down last.
inline constexpr std::array<std::uint8_t, kModes> kModeOrder = {2,  3,  4,  5,  6,  7,  8,  9,  10, 0,  1,  11,
                                                                12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23,
                                                                24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34};

/// Constants of the search, derived from QP and bits per sample.
struct SearchConstants {
  SearchConstants(int qp, int bits);
  Joint lambda;                   ///< J per 1/256 bit
  std::int64_t mode_root[7];      ///< for the selection of modes: magnitudes * 256 per 1/256 bit, by log2 of the area
  std::int64_t step_inverse[13];  ///< 2^20 / quantisation step, by log2 of the area
  int threshold[13];              ///< least coefficient with a non-zero level
};
/// The number of modes with a full trial.
int trial_modes(Effort effort);

/// One per thread. They share the picture; each writes the samples and cells of its block.
class Search {
 public:
  /// `source` has the planes of the picture, padded to coded sizes.
  Search(Picture& picture, const std::vector<Plane>& source, const Params& params);
  ~Search();

  /// Searches and reconstructs block (bx, by); appends its tokens.
  void block(int bx, int by, const Contexts& contexts, std::vector<Token>& tokens);

  const Statistics& statistics() const { return statistics_; }

 private:
  struct Sheets;
  struct Leaf;

  void freeze(const Contexts& contexts);
  Joint tree(Tree& tree, int x, int y, int log2_w, int log2_h, Joint limit, Team* team, std::vector<Token>& tokens);
  Joint leaf(Tree& tree, int x, int y, int log2_w, int log2_h, Team* team, std::vector<Token>& tokens);
  void choose_modes(const Tree& tree, int x, int y, int log2_w, int log2_h);
  void load(const Tree& tree, int x, int y, int log2_w, int log2_h, const int* modes, int count);
  Joint coded(Sheets& s, int mode_index, int a, int b, int tx, int ty);
  Joint levels(Sheets& s, int mode_index, int a, int b, int tx, int ty);
  bool emit(Sheets& s, int mode_index, int a, int b, int tx, int ty, std::vector<Token>& tokens);
  void emit_levels(Sheets& s, int mode_index, int a, int b, int tx, int ty, Token* out);
  void optimise(int log2_w, int log2_h, const std::int16_t* values, Token* levels);
  Joint last_cost(int log2_w, int log2_h, int at) const;
  Cost magnitude_cost(int log2_area, int x, int y, std::uint32_t around, int magnitude) const;
  Joint weighed(std::int64_t cost) const { return constants_.lambda * cost; }

  Picture& picture_;
  const std::vector<Plane>& source_;
  Params params_;
  const Kernels& kernels_;
  Dequantiser dequantiser_;
  Reconstructor reconstructor_;
  Statistics statistics_;
  int bits_;
  int set_ = 0;
  int candidates_;
  SearchConstants constants_;
  int value_of_[13][64];  ///< for small levels
  std::array<CostSet, 2> costs_;
  std::vector<Cost> zero_run_[2][49];  ///< [rank]: cost of zeros up to rank without non-zero neighbours
  std::unique_ptr<Leaf> leaf_;
};

}  // namespace trivelet::vstc
