// Lifting loops for the baseline instruction set; the reference.
#include "codec/dwt_kernels.h"
#include "codec/lifting.h"

#define TRIVELET_DWT_TABLE(type) kDwt##type##Scalar
#include "codec/dwt_kernels.inc"
