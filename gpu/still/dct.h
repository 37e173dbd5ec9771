// The cosine transform of a whole picture on a GPU: the codec dct's transform, quantiser and scan.
#pragma once

#include <memory>

#include "codec/still/dct/dct.h"

namespace trivelet::gpu {

/// How rows become Fourier transforms.
enum class DctWay {
  kFolded,  ///< Makhoul 1980: even samples rising, odd ones falling, as many values as the row has
  kMirror,  ///< the row and its mirror image, twice as many: Ghetia, Gajjar and Gajjar
};

/// Computes on GPU `device`. Its results differ from the CPU's by rounding errors of binary64. Throws Unsupported
/// without cuFFT; calls throw Unsupported when the device has too little memory.
std::unique_ptr<dct::Transform> make_dct_transform(int device, DctWay way = DctWay::kFolded);

struct DctFigure {
  double forward = 0;         ///< milliseconds, median: samples to quantised levels in scan order, on the device
  double inverse = 0;         ///< and back
  double with_transfers = 0;  ///< forward with samples from and levels to page-locked memory
  double inverse_with_transfers = 0;
  std::size_t device_bytes = 0;
};
/// Times a grey picture of 8 bits.
DctFigure bench_dct(const still::Image& image, double step, double keep, int device, DctWay way);

}  // namespace trivelet::gpu
