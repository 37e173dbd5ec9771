// The kernels of VSTC compiled for AVX-512 F, BW, DQ and VL.
#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "codec/still/vstc/vstc_kernels.h"

namespace trivelet::vstc {
namespace {

#include "codec/still/vstc/vstc_kernels.inc"

}  // namespace

const Kernels& avx512_kernels() { return kTable; }

}  // namespace trivelet::vstc
