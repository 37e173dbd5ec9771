// Lifting loops for AVX-512.
#include "codec/dwt_kernels.h"
#include "codec/lifting.h"

#define TRIVELET_DWT_TABLE(type) kDwt##type##Avx512
#include "codec/dwt_kernels.inc"
