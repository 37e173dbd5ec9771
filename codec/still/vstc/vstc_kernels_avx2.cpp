// The kernels of VSTC compiled for AVX2 and BMI2.
#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "codec/still/vstc/vstc_kernels.h"

namespace trivelet::vstc {
namespace {

#include "codec/still/vstc/vstc_kernels.inc"

}  // namespace

const Kernels& avx2_kernels() { return kTable; }

}  // namespace trivelet::vstc
