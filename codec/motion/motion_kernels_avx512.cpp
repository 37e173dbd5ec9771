// Loops of motion compensation for AVX-512.
#include "codec/motion/motion_kernels.h"

#define TRIVELET_MOTION_TABLE kMotionKernelsAvx512
#include "codec/motion/motion_kernels.inc"
