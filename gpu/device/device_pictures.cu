// Pictures from a video engine. Its surfaces are few and have interleaved chroma, while a Gop has planes. A kernel
// copies a surface into planes in device memory, where the picture is kept, and read() is a copy without gaps.
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <utility>
#include <vector>

#include "gpu/device/device.h"
#include "trivelet/cuda.h"
#include "trivelet/device_pictures.h"
#include "trivelet/types.h"

namespace trivelet::gpu {

namespace {

constexpr int kThreads = 256;
// The divisor of the free memory for pictures: an encoder beside it takes three quarters.
constexpr std::size_t kShare = 6;
constexpr std::size_t kAtOnce = 64;  // pictures

template <class T>
__global__ void take_plane_kernel(const std::byte* from, std::ptrdiff_t pitch, int step, int shift, int width, T* to) {
  const int x = static_cast<int>(blockIdx.x) * kThreads + static_cast<int>(threadIdx.x);
  const int y = static_cast<int>(blockIdx.y);
  if (x >= width) return;
  const T* row = reinterpret_cast<const T*>(from + static_cast<std::ptrdiff_t>(y) * pitch);
  to[static_cast<std::size_t>(y) * static_cast<std::size_t>(width) + static_cast<std::size_t>(x)] =
      static_cast<T>(row[static_cast<std::size_t>(x) * static_cast<std::size_t>(step)] >> shift);
}

std::size_t plane_bytes(const DevicePlane& plane, int bytes_per_sample) {
  return checked_mul(checked_mul(static_cast<std::size_t>(plane.width), static_cast<std::size_t>(plane.height)),
                     static_cast<std::size_t>(bytes_per_sample));
}

// Where planes of two-byte samples begin, and copies are quick.
constexpr std::size_t aligned(std::size_t bytes) { return (bytes + 255) / 256 * 256; }

#if defined(TRIVELET_CUDA_EMULATION)
void wait_for_default_stream(void*) {}
#else
// From the driver API, because the runtime has no names for its contexts.
class Driver {
 public:
  Driver() {
    void* const library = dlopen("libcuda.so.1", RTLD_NOW);
    if (library == nullptr) return;
    push_ = reinterpret_cast<Push>(dlsym(library, "cuCtxPushCurrent_v2"));
    pop_ = reinterpret_cast<Pop>(dlsym(library, "cuCtxPopCurrent_v2"));
    synchronize_ = reinterpret_cast<Synchronize>(dlsym(library, "cuStreamSynchronize"));
  }
  void wait_for_default_stream(void* context) const {
    require(push_ != nullptr && pop_ != nullptr && synchronize_ != nullptr, ErrorKind::kUnsupported,
            "this driver of CUDA has no contexts");
    int result = push_(context);
    if (result == 0) {
      void* popped = nullptr;
      result = synchronize_(nullptr);
      pop_(&popped);
    }
    require(result == 0, ErrorKind::kInternal,
            "decoding on the GPU failed: error " + std::to_string(result) + " of the driver");
  }

 private:
  using Push = int (*)(void*);
  using Pop = int (*)(void**);
  using Synchronize = int (*)(void*);
  Push push_ = nullptr;
  Pop pop_ = nullptr;
  Synchronize synchronize_ = nullptr;
};

void wait_for_default_stream(void* context) {
  static const Driver driver;
  if (context == nullptr)
    check(cudaStreamSynchronize(nullptr), "cudaStreamSynchronize");
  else
    driver.wait_for_default_stream(context);
}
#endif

class Pictures final : public DevicePictures {
 public:
  explicit Pictures(int number) : number_(on(number)) { most_ = usable_memory() / kShare; }
  ~Pictures() override { forget(cudaSetDevice(number_)); }
  Pictures(const Pictures&) = delete;
  Pictures& operator=(const Pictures&) = delete;

  int device() const override { return number_; }

  std::shared_ptr<const void> keep(const DevicePicture& picture) override {
    check(cudaSetDevice(number_), "cudaSetDevice");
    Kept kept = room_for(picture);
    Stream stream = take_stream();
    try {
      wait_for_default_stream(picture.context);
      for (int c = 0; c < picture.components; ++c) take_plane(picture, c, kept, stream);
      stream.synchronize();
    } catch (...) {
      put_back(kept);
      throw;
    }
    {
      const std::lock_guard lock(mutex_);
      streams_.push_back(std::move(stream));
    }
    return std::shared_ptr<const Kept>(new Kept(kept), [this](const Kept* p) {
      put_back(*p);
      delete p;
    });
  }

  bool is_full() const override {
    const std::lock_guard lock(mutex_);
    return used_ >= most_;
  }

  void read(const std::shared_ptr<const void>& kept, Gop& gop, int index) override {
    check(cudaSetDevice(number_), "cudaSetDevice");
    const Kept& from = *static_cast<const Kept*>(kept.get());
    for (int c = 0; c < gop.components(); ++c) {
      const MutableVolumeView to = gop.plane(c);
      const auto i = static_cast<std::size_t>(c);
      const std::size_t row = to.row_bytes();
      require(row * static_cast<std::size_t>(to.shape.height) == from.bytes[i], ErrorKind::kInternal,
              "a picture on the device is not of the size of its Gop");
      copy_from_device(number_, {to.row(index, 0), to.row_stride},
                       {from.memory + from.at[i], static_cast<std::ptrdiff_t>(row)}, row,
                       static_cast<std::size_t>(to.shape.height), reading_.get());
    }
    read_.push_back(kept);
  }

  void wait() override {
    check(cudaSetDevice(number_), "cudaSetDevice");
    reading_.synchronize();
    read_.clear();
  }

 private:
  struct Kept {
    std::byte* memory = nullptr;
    std::array<std::size_t, 4> at{};
    std::array<std::size_t, 4> bytes{};
  };
  static int on(int number) {
    check(cudaSetDevice(number), "cudaSetDevice");
    return number;
  }

  Stream take_stream() {
    const std::lock_guard lock(mutex_);
    if (streams_.empty()) return {};
    Stream stream = std::move(streams_.back());
    streams_.pop_back();
    return stream;
  }

  Kept room_for(const DevicePicture& picture) {
    Kept kept;
    std::size_t end = 0;
    for (std::size_t c = 0; c < static_cast<std::size_t>(picture.components); ++c) {
      kept.at[c] = end;
      kept.bytes[c] = plane_bytes(picture.planes[c], picture.bytes_per_sample);
      end += aligned(kept.bytes[c]);
    }
    const std::lock_guard lock(mutex_);
    if (picture_bytes_ == 0) picture_bytes_ = end;
    require(end == picture_bytes_, ErrorKind::kInternal, "pictures of several sizes on the device");
    if (free_.empty()) make_room();
    kept.memory = free_.back();
    free_.pop_back();
    used_ += picture_bytes_;
    return kept;
  }

  // The device may be busy at any time, so memory is requested seldom, but never more than there is.
  void make_room() {
    const std::size_t count = std::clamp<std::size_t>((most_ - std::min(most_, used_)) / picture_bytes_, 1, kAtOnce);
    blocks_.emplace_back(checked_mul(count, picture_bytes_));
    for (std::size_t i = 0; i < count; ++i) free_.push_back(blocks_.back().data() + i * picture_bytes_);
  }

  void put_back(const Kept& kept) {
    const std::lock_guard lock(mutex_);
    used_ -= picture_bytes_;
    free_.push_back(kept.memory);
  }

  static void take_plane(const DevicePicture& picture, int component, const Kept& kept, const Stream& stream) {
    const auto c = static_cast<std::size_t>(component);
    const DevicePlane& plane = picture.planes[c];
    const auto* from = static_cast<const std::byte*>(plane.data);
    std::byte* const to = kept.memory + kept.at[c];
    const dim3 grid(static_cast<unsigned>((plane.width + kThreads - 1) / kThreads),
                    static_cast<unsigned>(plane.height));
    if (picture.bytes_per_sample == 1)
      launch("take_plane_kernel", take_plane_kernel<std::uint8_t>, grid, dim3(kThreads), 0, stream.get(), from,
             plane.pitch, plane.step, 0, plane.width, reinterpret_cast<std::uint8_t*>(to));
    else
      launch("take_plane_kernel", take_plane_kernel<std::uint16_t>, grid, dim3(kThreads), 0, stream.get(), from,
             plane.pitch, plane.step, picture.shift, plane.width, reinterpret_cast<std::uint16_t*>(to));
  }

  int number_;
  std::size_t most_ = 0;
  mutable std::mutex mutex_;
  std::size_t picture_bytes_ = 0;  // of each; 0: there was none
  std::size_t used_ = 0;
  std::vector<DeviceBuffer<std::byte>> blocks_;  // many pictures each
  std::vector<std::byte*> free_;                 // places in them
  std::vector<Stream> streams_;                  // of threads that keep
  Stream reading_;
  std::vector<std::shared_ptr<const void>> read_;  // until wait()
};

}  // namespace

std::shared_ptr<DevicePictures> device_pictures(int number) { return std::make_shared<Pictures>(number); }

}  // namespace trivelet::gpu
