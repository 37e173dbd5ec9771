// Loops of motion compensation for the baseline instruction set.
#include "codec/motion/motion_kernels.h"

#define TRIVELET_MOTION_TABLE kMotionKernelsScalar
#include "codec/motion/motion_kernels.inc"
