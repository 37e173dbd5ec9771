// Loops over coefficients for AVX2.
#include "codec/entropy/dense/coefficient_kernels.h"
#include "codec/transform/quantiser.h"

#define TRIVELET_COEFFICIENT_TABLE(type) kCoefficient##type##Avx2
#include "codec/entropy/dense/coefficient_kernels.inc"
