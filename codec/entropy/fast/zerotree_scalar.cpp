#define TRIVELET_KERNELS scalar
#include "codec/entropy/fast/zerotree_kernels.inc"
