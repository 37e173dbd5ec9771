#define TRIVELET_KERNELS avx2
#include "codec/entropy/fast/zerotree_kernels.inc"
