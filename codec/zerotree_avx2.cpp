#define TRIVELET_KERNELS avx2
#include "codec/zerotree_kernels.inc"
