// Loops of motion in the predictive profile for AVX2.
#include "codec/predict/prediction_motion_kernels.h"

#define TRIVELET_BETWEEN_TABLE kBetweenKernelsAvx2
#include "codec/predict/prediction_motion_kernels.inc"
