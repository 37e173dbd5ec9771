// Loops of motion compensation for AVX2.
#include "codec/motion/motion_kernels.h"

#define TRIVELET_MOTION_TABLE kMotionKernelsAvx2
#include "codec/motion/motion_kernels.inc"
