// Lifting loops for AVX2.
#include "codec/dwt_kernels.h"
#include "codec/lifting.h"

#define TRIVELET_DWT_TABLE(type) kDwt##type##Avx2
#include "codec/dwt_kernels.inc"
