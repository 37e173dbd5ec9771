// The inner loops of the zerotree coder, compiled once per instruction set. They take plain pointers; zerotree.cpp owns
// all memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "codec/base/simd.h"
#include "codec/transform/tree.h"

namespace trivelet::zerotree {

inline constexpr int kMaxPlanes = 30;

/// The geometry of one level of one family of one block.
struct LevelView {
  int arity = 4;
  int orientations = 1;
  int words = 0;  ///< per orientation; arrays are [orientation * words + word]
  WordKind kind = WordKind::kOther;
  const WordBase* slot = nullptr;
  const WordBase* base = nullptr;
  const std::uint64_t* valid = nullptr;
  const std::uint64_t* child = nullptr;  ///< LevelMasks::child
};

// ---------------------------------------------------------------------------------------------------------- encoder

/// A word of the encoder. Bit planes p < planes are at plane_pool[planes_at + p], group activity masks of planes p <
/// top at act_pool[act_at + p]. Above these both are zero.
struct EncodedWord {
  std::uint64_t sign;
  std::uint32_t planes_at;
  std::uint32_t act_at;
  std::uint8_t planes;
  std::uint8_t top;
};

struct Pools {
  std::uint64_t* planes = nullptr;
  std::uint16_t* act = nullptr;
  std::size_t planes_used = 0;
  std::size_t act_used = 0;
};

/// Quantises the coefficients of one subband patch, slices them into bit planes and joins the children's activity.
template <class T>
struct SliceArgs {
  const T* origin = nullptr;  ///< first coefficient of the patch
  std::ptrdiff_t row_stride = 0;
  std::ptrdiff_t frame_stride = 0;
  float inverse_step = 1;  ///< unused for integers
  LevelView level;
  int orientation_index = 0;
  EncodedWord* words = nullptr;  ///< output, of this orientation
  const EncodedWord* children =
      nullptr;          ///< level k + 1: same orientation; for k = 0 all orientations; null at the finest level
  int child_words = 0;  ///< per orientation
  int child_arity = 4;
  int child_orientations = 0;  ///< used for k = 0
  Pools* pools = nullptr;
};

/// Sub-streams of a plane of a segment, in stream order.
enum SubStream { kSets = 0, kChildren, kRefinement, kFlags, kSignificance, kPositions, kSigns, kSubStreams };

/// A growing run of bits. The caller provides enough memory.
struct BitSink {
  std::uint64_t* begin;
  std::uint64_t* at;
  std::uint64_t acc;
  unsigned fill;
};

struct SegmentArgs {
  bool fine = false;  ///< one of the two finest levels: flags "exactly one" with positions
  int planes = 0;     ///< planes of the segment
  LevelView level;
  const EncodedWord* words = nullptr;
  LevelView parent;  ///< level k - 1, unless root
  bool parent_is_root = false;
  const EncodedWord* parent_words = nullptr;
  bool root = false;  ///< k = 0: no set bits here, because the caller writes kSets for temporal children
  const Pools* pools = nullptr;
  BitSink (*sinks)[kSubStreams] = nullptr;  ///< [plane]
};

// ---------------------------------------------------------------------------------------------------------- decoder

/// Decoding state of one level; arrays are [orientation * words + word].
struct LevelState {
  std::uint64_t* sig = nullptr;  ///< significant slots
  std::uint64_t* sign = nullptr;
  std::uint64_t* found = nullptr;   ///< active child groups; k = 0: [orientation of level 1][word], one bit per group
  std::uint16_t* act = nullptr;     ///< active groups
  std::uint16_t* seen = nullptr;    ///< groups active when the last plane was decoded
  std::uint16_t* fresh = nullptr;   ///< groups that became active in the current plane
  std::uint16_t* open = nullptr;    ///< groups with an active child group
  std::uint8_t* first = nullptr;    ///< plane in which the word became active
  std::uint64_t* live = nullptr;    ///< bitmap of words with an active group
  std::uint64_t* planes = nullptr;  ///< [plane][orientation * words + word], written for live words
  std::uint16_t* raw = nullptr;     ///< scratch of one plane
  std::uint16_t* single = nullptr;  ///< scratch of one plane
  std::size_t significant = 0;      ///< slots in sig
};

/// Bits [position, 8 * size) of a part. A read past the end gives undefined bits but is safe if 16 readable bytes
/// follow the part; the caller detects it by `position`.
struct BitSource {
  const std::uint8_t* data = nullptr;
  std::size_t size = 0;
  std::size_t position = 0;
};

struct PlaneArgs {
  bool staged = true;
  bool fine = false;
  int plane = 0;
  LevelView level;
  LevelState* state = nullptr;
  LevelView parent;
  bool parent_is_root = false;
  LevelState* parent_state = nullptr;  ///< null for k = 0, whose activity the caller sets
  BitSource* bits = nullptr;
};

/// Writes the coefficients of live words into the subband patch, which must be zero.
template <class T>
struct RestoreArgs {
  T* origin = nullptr;
  std::ptrdiff_t row_stride = 0;
  std::ptrdiff_t frame_stride = 0;
  float step = 1;
  float offset = 0;  ///< added to magnitudes before the step: centroid * 2^low
  std::int32_t integer_offset = 0;
  int low = 0;  ///< lowest decoded plane
  LevelView level;
  int orientation_index = 0;
  const LevelState* state = nullptr;
};

/// The inverse of pack(): writes the rows [first_row, end_row) of a patch of tiles, zeros too.
template <class T>
struct UnpackArgs {
  const std::uint32_t* packed = nullptr;  ///< 16 values behind it can be read
  const WordBase* base = nullptr;         ///< of the words
  int words = 0;
  T* origin = nullptr;  ///< the first coefficient of row `first_row`
  std::ptrdiff_t row_stride = 0;
  int first_row = 0;
  int end_row = 0;
  int width = 0;
};

struct Kernels {
  void (*slice_real)(const SliceArgs<float>&);
  void (*slice_integer)(const SliceArgs<std::int32_t>&);
  void (*encode_segment)(const SegmentArgs&);
  void (*append)(BitSink& to, const BitSink& from);
  void (*decode_plane)(const PlaneArgs&);
  void (*restore_real)(const RestoreArgs<float>&);
  void (*restore_integer)(const RestoreArgs<std::int32_t>&);
  /// Restores `number` words from `first` on without zeros: their significant slots go to `words`, the coefficients of
  /// these in slot order to `out`, which has room for 64 a word and 16 more. Returns the number of coefficients.
  std::size_t (*pack_real)(const RestoreArgs<float>&, int first, int number, std::uint64_t* words, float* out);
  std::size_t (*pack_integer)(const RestoreArgs<std::int32_t>&, int first, int number, std::uint64_t* words,
                              std::int32_t* out);
  void (*unpack_real)(const UnpackArgs<float>&);
  void (*unpack_integer)(const UnpackArgs<std::int32_t>&);
};

TRIVELET_DECLARE_TABLE(Kernels, kKernels)

inline const Kernels& kernels(SimdLevel simd) { return pick(simd, TRIVELET_TABLES(kKernels)); }

}  // namespace trivelet::zerotree
