// Loops over coefficients for AVX-512.
#include "codec/coefficient_kernels.h"
#include "codec/quantiser.h"

#define TRIVELET_COEFFICIENT_TABLE(type) kCoefficient##type##Avx512
#include "codec/coefficient_kernels.inc"
