// Loops over coefficients for the baseline instruction set; the reference.
#include "codec/entropy/dense/coefficient_kernels.h"
#include "codec/transform/quantiser.h"

#define TRIVELET_COEFFICIENT_TABLE(type) kCoefficient##type##Scalar
#include "codec/entropy/dense/coefficient_kernels.inc"
