// The inner loops of VSTC, one table of functions per instruction set. All arithmetic is on integers, so all tables
// give the same results. Only plain pointers appear, because these files are compiled with flags of their own.
//
// A sheet holds blocks of one size side by side, one for each prediction mode on trial: index order row y, mode, x. The
// last kSheetPad values of each row of `stride` values may be overwritten.
#pragma once

#include <cstddef>
#include <cstdint>

#include "codec/base/simd.h"
#include "codec/transform/lifting.h"

namespace trivelet::vstc {

inline constexpr int kModes = 35;
inline constexpr int kMaxSide = 64;
inline constexpr std::ptrdiff_t kSheetPad = 64;
/// Transform matrices: rows of at most 64 coefficients of magnitude at most 91.
using Coefficient = std::int16_t;

struct Kernels {
  /// Prediction of a w x h block (log2 sizes) into out. `ref` points at the corner: ref[-1 - y] is left of row y, ref[1
  /// + x] above column x; w + h samples on each side. `edges`: the edge filters of DC, 10 and 26.
  void (*predict)(const std::uint16_t* ref, int mode, int log2_w, int log2_h, int bits, bool edges, std::int16_t* out,
                  std::ptrdiff_t stride);
  /// out = a - prediction, for `count` rows x `width`; returns the sum of squares.
  std::int64_t (*subtract)(const std::uint16_t* a, std::ptrdiff_t a_stride, int width, int height, std::int16_t* inout,
                           std::ptrdiff_t stride);
  /// One-dimensional transforms along the columns of a sheet: every n = 2^log2_n rows become n levels, out[k] = (sum_i
  /// m[k * n + i] in[i] + round) >> shift (log2_n = 0: in << up). `symmetric`: m is the DCT. Works on whole vectors and
  /// may write up to 15 values beyond `lanes`.
  void (*forward)(const std::int16_t* in, std::ptrdiff_t in_stride, int rows, int lanes, const Coefficient* m,
                  int log2_n, bool symmetric, int shift, std::int16_t* out, std::ptrdiff_t out_stride);
  /// Transposes a sheet of w x h blocks into one of h x w blocks.
  void (*transpose)(const std::int16_t* in, std::ptrdiff_t in_stride, int w, int h, int blocks, std::int16_t* out,
                    std::ptrdiff_t out_stride);
  /// Adds the absolute values of every block of a sheet to sums[block].
  void (*add_magnitudes)(const std::int16_t* in, std::ptrdiff_t stride, int w, int h, int blocks, std::int32_t* sums);
  /// Bit i of the words of row y: |in[y][i]| >= threshold. `words` words per row; reads words * 64 values.
  void (*find_large)(const std::int16_t* in, std::ptrdiff_t stride, int rows, int words, int threshold,
                     std::uint64_t* out);
  /// The two-dimensional inverse of one block (VSTC.md, section 4): values to residual.
  void (*inverse)(const std::int16_t* values, int log2_w, int log2_h, const Coefficient* horizontal,
                  const Coefficient* vertical, int bits, std::int16_t* out, std::ptrdiff_t stride);
};

TRIVELET_DECLARE_TABLE(Kernels, kKernels)

inline const Kernels& kernels(SimdLevel simd) { return pick(simd, TRIVELET_TABLES(kKernels)); }

/// Matrix of 2^log2_n rows: `sine` the DST-VII, else the DCT.
const Coefficient* matrix_of(int log2_n, bool sine);

/// Whether the references are smoothed for this mode (VSTC.md, section 3).
TRIVELET_HOST_DEVICE static inline bool smooths(int mode, int log2_w, int log2_h) {
  const int s = (log2_w + log2_h) >> 1;
  if (mode == 0) return s >= 3;
  if (mode == 1) return false;
  const int to_26 = mode < 26 ? 26 - mode : mode - 26, to_10 = mode < 10 ? 10 - mode : mode - 10;
  return (to_26 < to_10 ? to_26 : to_10) > (s < 3 ? 255 : s == 3 ? 7 : s == 4 ? 1 : 0);
}

/// Which transform a mode uses along each axis.
TRIVELET_HOST_DEVICE constexpr bool sine_across(int mode) { return mode <= 25; }
TRIVELET_HOST_DEVICE constexpr bool sine_down(int mode) { return mode <= 1 || mode >= 11; }
inline constexpr int kMaxSineLog2 = 5;

inline constexpr int kAngles[kModes] = {0,   0,   32,  26,  21,  17, 13, 9,  5, 2, 0, -2, -5, -9, -13, -17, -21, -26,
                                        -32, -26, -21, -17, -13, -9, -5, -2, 0, 2, 5, 9,  13, 17, 21,  26,  32};

}  // namespace trivelet::vstc
