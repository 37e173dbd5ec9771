// Loops over coefficients for AVX2.
#include "codec/coefficient_kernels.h"
#include "codec/quantiser.h"

#define TRIVELET_COEFFICIENT_TABLE(type) kCoefficient##type##Avx2
#include "codec/coefficient_kernels.inc"
