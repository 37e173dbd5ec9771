// The transform coefficients of a GOP. Encoder::push_coefficients and Decoder::pull_coefficients exchange them between
// transform and quantiser, for experiments (statistics, watermarks).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "trivelet/large_memory.h"
#include "trivelet/types.h"

namespace trivelet {

/// One subband of a component: a view into a CoefficientGop, columns contiguous, strides in elements.
struct SubbandView {
  int component = 0;
  int temporal_band = 0;  ///< t+2D: 0 = lowest … temporal_levels = finest; dyadic: 0
  int level = 0;          ///< spatial splits: spatial_levels = lowest … 1 = finest; 0 without a spatial transform
  int orientation = 0;    ///< bit 0: high-pass in x, bit 1: in y, bit 2: in t (dyadic); 0 = the lowest band
  double norm = 1;        ///< L2 norm of its synthesis basis vectors
  float step = 1;         ///< quantiser step (1 when lossless)
  Shape shape;
  std::ptrdiff_t row_stride = 0;
  std::ptrdiff_t frame_stride = 0;
  float* real = nullptr;            ///< not null in lossy streams
  std::int32_t* integer = nullptr;  ///< not null in lossless streams
};

struct GopMotion;

/// The transform coefficients of a GOP, all components. Avoid copies: they take hundreds of megabytes.
struct CoefficientGop {
  int frames = 0;         ///< after temporal reduction; with motion, fields may have one more frame in front
  int source_frames = 0;  ///< frames of the source GOP
  bool lossless = false;
  std::vector<std::uint8_t> frame_gains;      ///< gain of each source frame, 64 = 1; empty: none were applied
  std::shared_ptr<const GopMotion> motion{};  ///< motion along which the temporal transform went; null: none
  bool follows = false;      ///< the GOP before was decoded immediately before: an open GOP needs its key frame,
  std::uint64_t number = 0;  ///< so inverse transforms run in this order
  std::vector<FrameTime> times;
  std::vector<SubbandView> subbands;               ///< by component, each coarse to fine; views into the memory below
  std::vector<LargeVector<float>> real;            ///< memory of each component (lossy)
  std::vector<LargeVector<std::int32_t>> integer;  ///< memory of each component (lossless)
};

}  // namespace trivelet
