// The inner loops of the CCSDS 122.0 codec, one table of functions per instruction set. All tables give the same bits.
//
// A block's 63 AC coefficients are stored as bit planes: bit 63 - i of the 64-bit word of plane b is bit b of the
// magnitude of coefficient i. The index i follows stage 4: 0 DC (always 0 here), 1..3 parents, 4..15 children of the
// three families, 16..63 grandchildren. Hence nibble 15 (the highest) holds the parents, nibbles 14, 13, 12 the
// children of families 0, 1, 2, and nibbles 11..0 the quarters H_00, H_01, ... H_23. A "word" of the standard is a
// compressed nibble.
#pragma once

#include <cstddef>
#include <cstdint>

#include "codec/base/simd.h"
#include "codec/still/ccsds122/ccsds122_bits.h"

namespace trivelet::ccsds122 {

/// Subbands, coarse to fine; families (HL, LH, HH) in the order of the standard.
enum Band : int { kLL3, kHL3, kLH3, kHH3, kHL2, kLH2, kHH2, kHL1, kLH1, kHH1, kBands };

/// Ten contiguous subbands of int32 (or float of the same size). Sizes in blocks: LL3 is blocks_wide x blocks_high.
struct BandView {
  std::int32_t* data[kBands] = {};
  int blocks_wide = 0;
  int blocks_high = 0;
};

/// Bit planes of a run of blocks. Plane b of block m is planes[b * stride + m], valid for b < depth[m] only.
struct BlockPlanes {
  std::int32_t* dc = nullptr;
  std::uint64_t* sign = nullptr;  ///< 1 = negative
  std::uint8_t* depth = nullptr;  ///< BitDepthAC_Block
  std::uint64_t* planes = nullptr;
  std::size_t stride = 0;
};

/// Stages 1 to 4 of one plane of a run of blocks, as separate bit strings (words padded on the right).
struct PlaneBits {
  std::uint64_t* words[4];  ///< memory of kStageWords words per block + 8
  std::uint64_t bits[4];
  std::uint32_t coefficients[4];  ///< stages 1 to 3: newly significant; stage 4: refined
};
inline constexpr std::size_t kStageWords = 4;

/// The 4-bit reader state of a gaggle in one plane: an option per word length, or kUnread.
inline constexpr std::uint8_t kUnread = 0xFF;
struct GaggleOptions {
  std::uint8_t option[5] = {0, 0, kUnread, kUnread, kUnread};
};

enum class PlaneEnd : std::uint8_t { kDone, kOutOfBits, kDamaged };

/// One plane of a segment during decoding.
struct PlaneDecoder {
  std::uint64_t* plane;  ///< per block, of depth > bit: receives the plane
  std::uint64_t* sign;
  const std::uint64_t* significant;  ///< before this plane
  const std::uint8_t* depth;
  std::uint8_t* families;  ///< scratch, one byte per block
  GaggleOptions* options;  ///< scratch, one per gaggle, in their initial state
  std::uint32_t blocks;
  int bit;
  std::uint64_t eligible;  ///< coefficients of bands with shift <= bit
  int stages;              ///< 1..4: stop after this stage
  // results
  int stage_reached = 0;             ///< stages completed
  std::uint32_t refined_blocks = 0;  ///< blocks whose stage 4 is complete
  std::uint64_t partly_refined = 0;  ///< coefficients of the next block that were refined
};

/// The reconstruction rule: value = (magnitude >> shift) + offset if magnitude != 0, with the sign of the coefficient.
struct Dequantiser {
  alignas(64) std::int32_t shift[64];  ///< per lane (lane 63 - i is coefficient i)
  /// [0]: for coefficients with bit `last_plane` known, [1]: with only the bits above known
  alignas(64) std::int32_t offset[2][64];
  alignas(64) float real_offset[2][64];  ///< the same for the float DWT
  bool real = false;
  int last_plane = 0;
  bool partial = false;  ///< the last plane is incomplete; [1] applies where its bit is unknown
  std::uint32_t refined_blocks = 0;
  std::uint64_t partly_refined = 0;
};

/// The wavelet kernels for one sample type. Rows of `pairs` low and `pairs` high samples; `scratch` holds 2 * pairs
/// + 64.
template <class T>
struct LineKernels {
  void (*forward_row)(const T* x, int pairs, T* low, T* high, T* scratch);
  void (*inverse_row)(const T* low, const T* high, int pairs, T* x, T* scratch);
  /// rows: the 7 samples around x[2j+1], x[2j-2] first.
  void (*forward_high)(const T* const* rows, int count, T* high);
  /// rows: the 9 samples around x[2j], x[2j-4] first; highs: D[j-1], D[j].
  void (*forward_low)(const T* const* rows, const T* const* highs, int count, T* low);
  /// lows: C[j-1], C[j], C[j+1]; highs: D[j-2] .. D[j+1].
  void (*inverse_even)(const T* const* lows, const T* const* highs, int count, T* even);
  /// lows: C[j-1] .. C[j+2]; highs: D[j-2] .. D[j+2]; evens: x[2j-2], x[2j], x[2j+2], x[2j+4] (integer DWT only).
  void (*inverse_odd)(const T* const* lows, const T* const* highs, const T* const* evens, int count, T* odd);
  void (*load_row)(const void* samples, int bytes, bool is_signed, int width, int padded, T* row);
  void (*store_row)(const T* row, int bytes, std::int64_t low, std::int64_t high, int width, void* samples);
};

struct Kernels {
  LineKernels<std::int32_t> narrow;  ///< integer DWT with 32-bit intermediates: R <= 16
  LineKernels<std::int32_t> wide;    ///< integer DWT with 64-bit intermediates
  LineKernels<float> real;
  /// Rounds to the nearest integer; ties go away from zero.
  void (*round_row)(const float* row, int count, std::int32_t* out);
  /// The smallest and the largest sample of a row.
  void (*range_row)(const void* samples, int bytes, bool is_signed, int width, std::int64_t* low, std::int64_t* high);

  /// Splits `count` blocks from first_block on into planes; bands are multiplied by 2^shift[band].
  void (*gather)(const BandView& bands, std::uint64_t first_block, int count, const int* shift, BlockPlanes out);
  /// Codes stages 1 to 4 of plane `bit` and ORs the plane into `significant`.
  void (*encode_plane)(const std::uint64_t* plane, const std::uint64_t* sign, const std::uint8_t* depth,
                       std::uint64_t* significant, int blocks, int bit, std::uint64_t eligible, PlaneBits& out);
  PlaneEnd (*decode_plane)(BitCursor& bits, PlaneDecoder& state);
  /// The inverse of gather for `count` blocks of a segment from `from` on, AC only.
  void (*scatter)(const BlockPlanes& in, std::uint32_t from, int count, std::uint64_t first_block, const Dequantiser& q,
                  const BandView& bands);
};

TRIVELET_DECLARE_TABLE(Kernels, kKernels)

inline const Kernels& kernels(SimdLevel simd) { return pick(simd, TRIVELET_TABLES(kKernels)); }

/// A mask of the coefficients whose band's shift is at most `bit`; shift is indexed by Band.
std::uint64_t eligible_mask(const int* shift, int bit);

}  // namespace trivelet::ccsds122
