// The transform coefficients of a GOP, as Encoder::push_coefficients and Decoder::pull_coefficients exchange them: for
// experiments between the transform and the quantiser (statistics, watermarks).
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
  int level = 0;          ///< spatial splits: spatial_levels for the lowest … 1 for the finest; 0 when there is none
  int orientation = 0;    ///< bit 0: high in x, bit 1: high in y, bit 2: high in t (dyadic); 0 = the lowest band
  double norm = 1;        ///< L2 norm of its synthesis basis vectors
  float step = 1;         ///< quantiser step in use (1 when lossless)
  Shape shape;
  std::ptrdiff_t row_stride = 0;
  std::ptrdiff_t frame_stride = 0;
  float* real = nullptr;            ///< set for lossy streams
  std::int32_t* integer = nullptr;  ///< set for lossless streams
};

struct GopMotion;

/// The transform coefficients of a GOP, all components. Move-only in spirit: copying copies hundreds of megabytes.
struct CoefficientGop {
  int frames = 0;         ///< of the GOP after a temporal reduction; with motion fields may have one more before them
  int source_frames = 0;  ///< of the GOP they come from
  bool lossless = false;
  std::vector<std::uint8_t> frame_gains;  ///< per frame of the GOP they come from, 64 = 1: the factors in them; or none
  std::shared_ptr<const GopMotion> motion{};  ///< that the transform along time followed; null: none
  bool follows = false;      ///< the GOP before was decoded just before: an open GOP with motion needs its key frame,
  std::uint64_t number = 0;  ///< in this order: samples are made of one after the other
  std::vector<FrameTime> times;
  std::vector<SubbandView> subbands;     ///< coarse to fine, component by component; views into the memory below
  std::vector<LargeVector<float>> real;  ///< per component (lossy)
  std::vector<LargeVector<std::int32_t>> integer;  ///< per component (lossless)
};

}  // namespace trivelet
