// Loops of motion in the predictive profile for AVX-512.
#include "codec/predict/prediction_motion_kernels.h"

#define TRIVELET_BETWEEN_TABLE kBetweenKernelsAvx512
#include "codec/predict/prediction_motion_kernels.inc"
