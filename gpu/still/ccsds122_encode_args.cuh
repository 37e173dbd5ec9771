// Common data of the kernels of the CCSDS 122.0 encoder: the description of segments, and the addresses of all arrays.
#pragma once

#include <cstdint>

#include "codec/still/ccsds122/ccsds122_segment.h"
#include "gpu/still/ccsds122_dwt.h"
#include "gpu/still/ccsds122_words.cuh"

namespace trivelet::gpu {

namespace ccsds122_encode {

using ccsds122::kBands;
using ccsds122::kLL3;

constexpr int kGaggle = 16;
constexpr int kCoderThreads = 128;
constexpr std::uint32_t kNoEnd = ~std::uint32_t{0};

enum Fault : std::uint32_t { kBadSample = 1, kTooLong = 2, kNoRoom = 4 };

/// What is known about a segment beforehand.
struct SegmentIn {
  std::uint32_t first = 0, blocks = 0;
  std::uint32_t first_gaggle = 0, gaggles = 0;
  std::uint32_t header_bytes = 0;
  std::uint32_t byte_limit = 0;     ///< 0: none
  std::uint32_t end_bits = kNoEnd;  ///< nothing is written beyond
  std::uint8_t header[20] = {};     ///< depths are 0
};
/// What becomes known.
struct SegmentOut {
  std::int32_t dc_depth, ac_depth;
  std::uint32_t bits;
  std::uint32_t padding;
  std::uint64_t offset;  ///< in the stream, bytes
};
struct Summary {
  std::uint64_t total;
  std::uint32_t faults;
  std::int32_t depth;  ///< largest AC depth
};

struct CoderArgs {
  DeviceBands bands;
  int shift[kBands];
  PlaneMasks masks;
  std::uint32_t blocks, gaggles, segments;
  std::uint32_t segment_blocks, segment_gaggles;  ///< of all but the last segment
  int planes;                                     ///< capacity
  int last_plane, last_stage;                     ///< coded down to stage last_stage (1..4) of plane last_plane
  bool no_ac;                                     ///< DCStop
  bool optimal_dc, optimal_ac, count, fill, limited;
  std::uint32_t word_bytes;
  std::uint64_t capacity;  ///< bytes of `stream`

  const SegmentIn* in;
  SegmentOut* out;
  Summary* summary;
  std::uint32_t* lengths;  ///< bytes per segment
  std::int32_t* dc;
  std::uint8_t* depth;
  std::uint64_t* sign;
  std::uint64_t* plane;    ///< [plane][block]
  std::uint32_t* note;     ///< [plane][block]: lengths of stages 1..3 in 5, 6, 8 bits, option ids sent in 9
  std::uint8_t* options;   ///< [plane][gaggle]
  std::int8_t* parameter;  ///< [2][gaggle]: k of DC values and AC depths, -1 uncoded
  std::uint32_t* pieces;   ///< per segment [list][gaggle]: lengths, then places, in bits
  std::uint32_t*
      raw_at;            ///< [segment][planes + 1]: stage 0 of every plane; the last one: DC planes above the AC planes
  std::uint32_t* marks;  ///< [segment][2 + 4 planes]: where lists end; with `count`
  std::uint32_t* counts;  ///< [segment][planes][4]: coefficients; with `count`
  std::uint32_t* stream;
};

/// Lists of pieces: 0 DC, 1 AC depths, then stages 1..4 of the planes from the highest on.
__host__ __device__ inline int list_count(int planes) { return 2 + 4 * planes; }
__device__ __forceinline__ int plane_list(const CoderArgs& a, int plane) { return 2 + 4 * (a.planes - 1 - plane); }

}  // namespace ccsds122_encode

}  // namespace trivelet::gpu
