// The three-level wavelet transform of CCSDS 122.0-B-2 §3, between a padded picture and ten subbands. Threads transform
// strips of rows; the strips do not affect the result.
#pragma once

#include <memory>

#include "codec/still/ccsds122/ccsds122.h"
#include "codec/still/ccsds122/ccsds122_kernels.h"
#include "codec/threads/parallel.h"
#include "trivelet/types.h"

namespace trivelet::ccsds122 {

/// The memory of the ten subbands. For the float DWT the decoder keeps floats in it.
class Subbands {
 public:
  Subbands(int blocks_wide, int blocks_high);
  const BandView& view() const { return view_; }

 private:
  std::unique_ptr<std::int32_t[]> memory_;  // uninitialised
  BandView view_;
};

/// Transforms frame 0 of `image` into quantised (float DWT: rounded) coefficients, before weighting.
void forward_dwt(const VolumeView& image, Dwt dwt, int bits, const Subbands& out, const Kernels& k, ThreadPool& pool);

/// The inverse, clamped to [low, high]. With the float DWT the subbands hold floats. `image` may be smaller than the
/// subbands.
void inverse_dwt(const Subbands& in, Dwt dwt, int bits, std::int64_t low, std::int64_t high,
                 const MutableVolumeView& image, const Kernels& k, ThreadPool& pool);

}  // namespace trivelet::ccsds122
