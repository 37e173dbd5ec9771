// Lifting loops for AVX2.
#include "codec/transform/dwt_kernels.h"
#include "codec/transform/lifting.h"

#define TRIVELET_DWT_TABLE(type) kDwt##type##Avx2
#include "codec/transform/dwt_kernels.inc"
