#define TRIVELET_KERNELS scalar
#include "codec/zerotree_kernels.inc"
