// The kernels of VSTC compiled for any processor.
#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "codec/still/vstc/vstc_kernels.h"

namespace trivelet::vstc {
namespace {

#include "codec/still/vstc/vstc_kernels.inc"

}  // namespace

const Kernels& scalar_kernels() { return kTable; }

}  // namespace trivelet::vstc
