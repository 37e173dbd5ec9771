// Detects the instruction sets of the processor. A set counts only if the operating system saves its registers.
#include "codec/base/simd.h"

#include "trivelet/error.h"

namespace trivelet {

SimdLevel detected_simd() {
#if defined(__x86_64__) && defined(TRIVELET_HAVE_X86_KERNELS)
  static const SimdLevel level = [] {
    __builtin_cpu_init();
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2");
    const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    return avx512 ? SimdLevel::kAvx512 : avx2 ? SimdLevel::kAvx2 : SimdLevel::kScalar;
  }();
  return level;
#else
  return SimdLevel::kScalar;
#endif
}

SimdLevel resolve_simd(SimdLevel wanted) {
  const SimdLevel best = detected_simd();
  if (wanted == SimdLevel::kBest) return best;
  require(wanted <= best, ErrorKind::kUnsupported,
          "this machine or build has no " + to_string(wanted) + " (best: " + to_string(best) +
              "); use SimdLevel::kBest");
  return wanted;
}

std::string to_string(SimdLevel level) {
  switch (level) {
    case SimdLevel::kScalar: return "scalar";
    case SimdLevel::kAvx2: return "avx2";
    case SimdLevel::kAvx512: return "avx512";
    case SimdLevel::kBest: return "auto";
  }
  return "?";
}

SimdLevel parse_simd(const std::string& name) {
  for (const SimdLevel l : {SimdLevel::kScalar, SimdLevel::kAvx2, SimdLevel::kAvx512, SimdLevel::kBest})
    if (name == to_string(l)) return l;
  fail(ErrorKind::kBadArgument, "unknown instruction set '" + name + "'; known: scalar, avx2, avx512, auto");
}

}  // namespace trivelet
