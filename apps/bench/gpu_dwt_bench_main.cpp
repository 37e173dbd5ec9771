// gpu_dwt_bench [quick | profile]: the transform's figures of gpu/BENCHMARKS.md.
#include <cstdio>
#include <exception>

#include "apps/bench/gpu_dwt_bench.h"

int main(int argc, char** argv) {
  try {
    return trivelet::gpu::bench(argc > 1 ? argv[1] : "");
  } catch (const std::exception& e) {
    std::fprintf(stderr, "gpu_dwt_bench: %s\n", e.what());
    return 1;
  }
}
