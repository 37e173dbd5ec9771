// Loops over coefficients for AVX-512.
#include "codec/entropy/dense/coefficient_kernels.h"
#include "codec/transform/quantiser.h"

#define TRIVELET_COEFFICIENT_TABLE(type) kCoefficient##type##Avx512
#include "codec/entropy/dense/coefficient_kernels.inc"
