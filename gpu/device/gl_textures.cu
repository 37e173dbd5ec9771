// Frames from a device's memory into textures of OpenGL: a copy on the device, and nothing of it on the host.
#include <array>
#include <string>

#include "gpu/device/device.h"
#include "trivelet/cuda.h"
#include "trivelet/types.h"

#if !defined(TRIVELET_CUDA_EMULATION)
// As in cuda_gl_interop.h, which needs the headers of OpenGL for two integers.
extern "C" cudaError_t CUDARTAPI cudaGraphicsGLRegisterImage(cudaGraphicsResource_t* resource, unsigned image,
                                                             unsigned target, unsigned flags);
#endif

namespace trivelet::gpu {

#if defined(TRIVELET_CUDA_EMULATION)

std::unique_ptr<Textures> share_textures(int, std::span<const unsigned>) {
  fail(ErrorKind::kUnsupported, "OpenGL does not know the emulated device");
}

#else

namespace {

constexpr unsigned kTexture2d = 0x0DE1;  // GL_TEXTURE_2D
constexpr std::size_t kMost = 4;         // planes

class SharedTextures final : public Textures {
 public:
  SharedTextures(int number, std::span<const unsigned> names) : number_(number) {
    require(names.size() <= kMost, ErrorKind::kBadArgument, std::to_string(names.size()) + " textures; a frame has 4");
    try {
      for (const unsigned name : names) {
        const cudaError_t result = cudaGraphicsGLRegisterImage(&resources_[static_cast<std::size_t>(count_)], name,
                                                               kTexture2d, cudaGraphicsRegisterFlagsWriteDiscard);
        forget(result);
        require(result == cudaSuccess, ErrorKind::kUnsupported,
                std::string("OpenGL and GPU ") + std::to_string(number) +
                    " share no textures: " + cudaGetErrorString(result));
        ++count_;
      }
    } catch (...) {
      release();
      throw;
    }
  }
  ~SharedTextures() override { release(); }
  SharedTextures(const SharedTextures&) = delete;
  SharedTextures& operator=(const SharedTextures&) = delete;

  void fill(const Gop& gop, int frame) override {
    require(gop.components() == count_ && frame >= 0 && frame < gop.frames(), ErrorKind::kBadArgument,
            "a frame that the textures were not made for");
    check(cudaSetDevice(number_), "cudaSetDevice");
    check(cudaGraphicsMapResources(count_, resources_.data(), stream_.get()), "cudaGraphicsMapResources");
    try {
      for (int c = 0; c < count_; ++c) copy_plane(gop.plane(c), frame, resources_[static_cast<std::size_t>(c)]);
    } catch (...) {
      forget(cudaGraphicsUnmapResources(count_, resources_.data(), stream_.get()));
      throw;
    }
    check(cudaGraphicsUnmapResources(count_, resources_.data(), stream_.get()), "cudaGraphicsUnmapResources");
    stream_.synchronize();
  }

 private:
  void copy_plane(const VolumeView& plane, int frame, cudaGraphicsResource_t to) const {
    cudaArray_t array = nullptr;
    check(cudaGraphicsSubResourceGetMappedArray(&array, to, 0, 0), "cudaGraphicsSubResourceGetMappedArray");
    check(cudaMemcpy2DToArrayAsync(array, 0, 0, plane.row(frame, 0), static_cast<std::size_t>(plane.row_stride),
                                   plane.row_bytes(), static_cast<std::size_t>(plane.shape.height),
                                   cudaMemcpyDeviceToDevice, stream_.get()),
          "cudaMemcpy2DToArrayAsync");
  }
  void release() noexcept {
    forget(cudaSetDevice(number_));
    for (int i = 0; i < count_; ++i) forget(cudaGraphicsUnregisterResource(resources_[static_cast<std::size_t>(i)]));
  }

  int number_;
  Stream stream_;
  std::array<cudaGraphicsResource_t, kMost> resources_{};
  int count_ = 0;
};

}  // namespace

std::unique_ptr<Textures> share_textures(int number, std::span<const unsigned> names) {
  check(cudaSetDevice(number), "cudaSetDevice");
  return std::make_unique<SharedTextures>(number, names);
}

#endif

}  // namespace trivelet::gpu
