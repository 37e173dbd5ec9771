// Which instruction set the CPU kernels use. Every level gives the same bytes; the scalar code is the reference.
#pragma once

#include <string>

namespace trivelet {

enum class SimdLevel {
  kScalar = 0,
  kAvx2 = 1,    ///< AVX2 and BMI2
  kAvx512 = 2,  ///< AVX-512 F, BW, DQ, VL and BMI2
  kBest = 99,   ///< whatever this machine has
};

/// The best level this machine and this build have.
SimdLevel detected_simd();

/// `wanted` when the machine has it (kBest = detected). Throws Unsupported otherwise.
SimdLevel resolve_simd(SimdLevel wanted);

/// "scalar", "avx2", "avx512", "auto"; parse throws BadArgument for other names.
std::string to_string(SimdLevel level);
SimdLevel parse_simd(const std::string& name);

}  // namespace trivelet
