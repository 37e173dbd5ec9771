// Lifting loops for the baseline instruction set; the reference.
#include "codec/transform/dwt_kernels.h"
#include "codec/transform/lifting.h"

#define TRIVELET_DWT_TABLE(type) kDwt##type##Scalar
#include "codec/transform/dwt_kernels.inc"
