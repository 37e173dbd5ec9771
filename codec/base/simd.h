// The instruction set that kernels are chosen by (trivelet/parameters.h names them).
#pragma once

#include "trivelet/parameters.h"

namespace trivelet {

/// `wanted` when the machine has it (kBest = detected). Throws Unsupported otherwise.
SimdLevel resolve_simd(SimdLevel wanted);

}  // namespace trivelet
