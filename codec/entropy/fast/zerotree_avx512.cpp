#define TRIVELET_KERNELS avx512
#include "codec/entropy/fast/zerotree_kernels.inc"
