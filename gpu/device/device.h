// Owners of CUDA resources, and the check that turns error codes into exceptions.
//
// All owners are move-only and release in their destructor. The runtime is linked statically, so a program that
// contains this starts on machines without a driver, and device_count() returns 0 there. With TRIVELET_CUDA_EMULATION
// the kernels run on the CPU (gpu/emulation/cuda_emu.h).
#pragma once

#if defined(TRIVELET_CUDA_EMULATION)
#include "gpu/emulation/cuda_emu.h"
#else
#include <cuda_runtime.h>
#endif

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "trivelet/error.h"
#include "trivelet/types.h"

namespace trivelet::gpu {

/// Throws when `result` is an error. `call` names the CUDA function or the kernel.
inline void check(cudaError_t result, const char* call, const char* file = __builtin_FILE(),
                  int line = __builtin_LINE()) {
  if (result == cudaSuccess) return;
  (void)cudaGetLastError();  // clears the error, so that a later launch does not report it
  const bool memory = result == cudaErrorMemoryAllocation;
  fail(memory ? ErrorKind::kUnsupported : ErrorKind::kInternal, std::string(call) + ": " + cudaGetErrorString(result) +
                                                                    " (" + cudaGetErrorName(result) + ", " + file +
                                                                    ":" + std::to_string(line) + ")");
}

/// For errors that cannot be handled, as in destructors: clears them, too.
inline void forget(cudaError_t result) noexcept {
  if (result != cudaSuccess) (void)cudaGetLastError();
}

/// Devices that can be used; 0 without a driver or without a GPU.
inline int device_count() {
  int n = 0;
  const cudaError_t result = cudaGetDeviceCount(&n);
  forget(result);
  return result == cudaSuccess ? n : 0;
}

/// A stream or an event: created by `create`, destroyed by `destroy`.
template <class Handle, cudaError_t (*destroy)(Handle)>
class Owner {
 public:
  Owner(Owner&& other) noexcept
      : handle_(std::exchange(other.handle_, Handle{})), owns_(std::exchange(other.owns_, false)) {}
  Owner& operator=(Owner&& other) noexcept {
    std::swap(handle_, other.handle_);
    std::swap(owns_, other.owns_);
    return *this;
  }
  ~Owner() {
    if (owns_) forget(destroy(handle_));
  }
  Handle get() const { return handle_; }

 protected:
  Owner() = default;
  Handle handle_{};
  bool owns_ = false;
};

/// A stream that does not wait for the default stream.
class Stream : public Owner<cudaStream_t, cudaStreamDestroy> {
 public:
  Stream() {
    check(cudaStreamCreateWithFlags(&handle_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    owns_ = true;
  }
  void synchronize() const { check(cudaStreamSynchronize(handle_), "cudaStreamSynchronize"); }
};

class Event : public Owner<cudaEvent_t, cudaEventDestroy> {
 public:
  /// `sleeping`: a thread that waits for it uses no core, and wakes a little later.
  explicit Event(bool timing = false, bool sleeping = false) {
    const unsigned flags = (timing ? 0u : static_cast<unsigned>(cudaEventDisableTiming)) |
                           (sleeping ? static_cast<unsigned>(cudaEventBlockingSync) : 0u);
    check(cudaEventCreateWithFlags(&handle_, flags), "cudaEventCreateWithFlags");
    owns_ = true;
  }
  void record(const Stream& stream) const { check(cudaEventRecord(handle_, stream.get()), "cudaEventRecord"); }
  void synchronize() const { check(cudaEventSynchronize(handle_), "cudaEventSynchronize"); }
  bool is_reached() const {
    const cudaError_t result = cudaEventQuery(handle_);
    if (result != cudaErrorNotReady) check(result, "cudaEventQuery");
    forget(result);
    return result == cudaSuccess;
  }
  /// Later work on `stream` waits for the recorded event.
  void hold(const Stream& stream) const { check(cudaStreamWaitEvent(stream.get(), handle_, 0), "cudaStreamWaitEvent"); }
  /// Milliseconds from `start` to this; both made with timing and reached.
  float since(const Event& start) const {
    float ms = 0;
    check(cudaEventElapsedTime(&ms, start.get(), handle_), "cudaEventElapsedTime");
    return ms;
  }
};

/// Uninitialised memory for `size()` values of T. `Space` has allocate(void**, bytes), release(void*) and its name.
template <class T, class Space>
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(std::size_t size) : size_(size) {
    if (size == 0) return;
    void* p = nullptr;
    const std::size_t bytes = checked_mul(size, sizeof(T));
    check(Space::allocate(&p, bytes), Space::kName);
    data_ = static_cast<T*>(p);
  }
  Buffer(Buffer&& other) noexcept : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~Buffer() {
    if (data_) Space::release(data_);
  }
  T* data() const { return data_; }
  std::size_t size() const { return size_; }

 private:
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

// host_memory.cu
cudaError_t lock_new_pages(void** p, std::size_t bytes);
void unlock_pages(void* p);
// idle_memory.cu
cudaError_t allocate_on_device(void** p, std::size_t bytes);
void release_on_device(void* p);
cudaError_t allocate_page_locked(void** p, std::size_t bytes);
void release_page_locked(void* p);
/// While one exists, this thread asserts that nothing uses the memory that it releases. Device memory is then kept for
/// the next allocation on the device, page-locked memory for the next one, and nothing waits.
class IdleMemory {
 public:
  IdleMemory();
  ~IdleMemory();
  IdleMemory(const IdleMemory&) = delete;
  IdleMemory& operator=(const IdleMemory&) = delete;
};
/// Frees the kept memory of the current device and the kept page-locked memory; false if there was none.
bool free_idle_memory() noexcept;

struct DeviceSpace {
  static constexpr const char* kName = "cudaMalloc";
  static cudaError_t allocate(void** p, std::size_t bytes) { return allocate_on_device(p, bytes); }
  static void release(void* p) { release_on_device(p); }
};
struct PinnedSpace {
  static constexpr const char* kName = "cudaHostAlloc";
  static cudaError_t allocate(void** p, std::size_t bytes) { return allocate_page_locked(p, bytes); }
  static void release(void* p) { release_page_locked(p); }
};
template <class T>
using DeviceBuffer = Buffer<T, DeviceSpace>;
/// Page-locked host memory: copies from and to it overlap with other work. Large pieces are in huge pages if the system
/// has them; these are locked ten times as fast.
template <class T>
using PinnedBuffer = Buffer<T, PinnedSpace>;

/// Gives both room for `count` elements, whose values are lost if there was less. Not while they are used.
template <class T>
void make_room(DeviceBuffer<T>& on_device, PinnedBuffer<T>& on_host, std::size_t count) {
  if (on_device.size() >= count) return;
  const IdleMemory idle;
  on_device = {};
  on_device = DeviceBuffer<T>(count);
  on_host = PinnedBuffer<T>(count);
}

/// Most device memory for a pipeline without a limit of its user: three quarters of the free memory. The rest is for
/// other programs and for growth.
inline std::size_t usable_memory() {
  std::size_t free = 0, total = 0;
  check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  return free / 4 * 3;
}

/// Copies `count` values between host and device in the order of the stream.
template <class T>
void copy(T* to, const T* from, std::size_t count, cudaMemcpyKind kind, const Stream& stream) {
  check(cudaMemcpyAsync(to, from, checked_mul(count, sizeof(T)), kind, stream.get()), "cudaMemcpyAsync");
}

#if defined(TRIVELET_CUDA_EMULATION)
template <class... Parameters, class... Arguments>
void launch(const char* name, void (*kernel)(Parameters...), dim3 grid, dim3 block, std::size_t shared_bytes,
            cudaStream_t stream, const Arguments&... arguments) {
  emu::work_on(stream);
  if (emu::result_of(name) == cudaSuccess) {
    const std::lock_guard lock(emu::launching);  // they take turns, whichever thread asks
    emu::block.launch(grid, block, shared_bytes, [&] { kernel(arguments...); });
  }
  check(cudaGetLastError(), name);
}
template <class T>
T* dynamic_shared() {
  return static_cast<T*>(emu::block.dynamic_shared());
}
#elif defined(__CUDACC__)
/// Starts a kernel; `name` is for the error message.
template <class... Parameters, class... Arguments>
void launch(const char* name, void (*kernel)(Parameters...), dim3 grid, dim3 block, std::size_t shared_bytes,
            cudaStream_t stream, const Arguments&... arguments) {
  // clang-format off
  kernel<<<grid, block, shared_bytes, stream>>>(arguments...);
  // clang-format on
  check(cudaGetLastError(), name);
}
/// The shared memory whose size is set at launch.
template <class T>
__device__ T* dynamic_shared() {
  extern __shared__ __align__(16) unsigned char trivelet_dynamic_shared[];
  return reinterpret_cast<T*>(trivelet_dynamic_shared);
}
#endif

/// A copy of `v` on the device; at least one element. `v` must stay until the stream has read it.
template <class T>
DeviceBuffer<T> to_device(const std::vector<T>& v, const Stream& stream) {
  DeviceBuffer<T> b(std::max<std::size_t>(v.size(), 1));
  if (!v.empty()) copy(b.data(), v.data(), v.size(), cudaMemcpyHostToDevice, stream);
  return b;
}

}  // namespace trivelet::gpu
