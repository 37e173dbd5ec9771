// Loops over coefficients for the baseline instruction set; the reference.
#include "codec/coefficient_kernels.h"
#include "codec/quantiser.h"

#define TRIVELET_COEFFICIENT_TABLE(type) kCoefficient##type##Scalar
#include "codec/coefficient_kernels.inc"
