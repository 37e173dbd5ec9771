#define TRIVELET_KERNELS avx512
#include "codec/zerotree_kernels.inc"
