// The benchmarks of the GPU code in a build without it: see gpu/without_cuda.cpp. These functions are never called,
// because the commands first look for a device.
#include "apps/bench/gpu_codec_bench.h"
#include "apps/bench/gpu_dwt_bench.h"
#include "apps/bench/papers_dwt2d_gpu.h"
#include "trivelet/error.h"

namespace trivelet::gpu {

namespace {

[[noreturn]] void without_cuda() { fail(ErrorKind::kUnsupported, "this program was built without CUDA"); }

}  // namespace

double CodecFigure::longest_stage() const { without_cuda(); }
CodecFigures bench_codec(const VideoInfo&, const std::vector<Gop>&, const EncoderParams&, const CodecBenchOptions&) {
  without_cuda();
}
std::vector<TransformFigure> bench_transforms(const std::vector<Shape>&, bool) { without_cuda(); }
Dwt3dFigure bench_dwt3d(const Shape&) { without_cuda(); }

const char* name_of(Dwt2dMethod) { without_cuda(); }
void use_device(int) { without_cuda(); }
Dwt2dFigure bench_dwt2d(Dwt2dMethod, const std::vector<float>&, const std::vector<float>&, int, int, int,
                        const Dwt2dBlocks&) {
  without_cuda();
}

}  // namespace trivelet::gpu
