// CUDA on the CPU, as far as Trivelet's kernels use it: one fibre for each thread, one block after the other.
//
// Compile a .cu file as C++ with -DTRIVELET_CUDA_EMULATION; gpu/device/device.h then includes this file instead of
// CUDA's. Barriers, warp shuffles and votes, shared memory and copies to it, atomics and vector types behave as on a
// device, so that the logic of kernels is tested without a GPU, under ASan and UBSan too. Memory of the "device" is the
// heap; streams execute at once. Errors of a device stop the program here: a collective whose lanes disagree about the
// mask or have left, and barriers that not all threads reach. Blocks run their threads forward and backward in turn,
// which reveals most missing barriers. A test can make calls of the runtime and launches fail (emu::failing), and
// unreleased resources are counted. Not emulated: weak memory order, the speed.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <type_traits>
#include <vector>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __shared__ static
#define __constant__ static
#define __grid_constant__
#define __launch_bounds__(...)

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {}
};

#define TRIVELET_EMU_VECTORS(name, type, align2, align4)           \
  struct alignas(align2) name##2 {                                 \
    type x, y;                                                     \
  };                                                               \
  struct alignas(align4) name##4 {                                 \
    type x, y, z, w;                                               \
  };                                                               \
  inline name##2 make_##name##2(type x, type y) { return {x, y}; } \
  inline name##4 make_##name##4(type x, type y, type z, type w) { return {x, y, z, w}; }
TRIVELET_EMU_VECTORS(float, float, 8, 16)
TRIVELET_EMU_VECTORS(int, int, 8, 16)
TRIVELET_EMU_VECTORS(uint, unsigned, 8, 16)
TRIVELET_EMU_VECTORS(short, short, 4, 8)
TRIVELET_EMU_VECTORS(ushort, unsigned short, 4, 8)
TRIVELET_EMU_VECTORS(char, signed char, 2, 4)
TRIVELET_EMU_VECTORS(uchar, unsigned char, 2, 4)
#undef TRIVELET_EMU_VECTORS

inline dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace trivelet::emu {

[[noreturn]] inline void wrong(const char* what) {
  std::fprintf(stderr, "CUDA emulation: %s (block %u,%u,%u thread %u,%u,%u)\n", what, blockIdx.x, blockIdx.y,
               blockIdx.z, threadIdx.x, threadIdx.y, threadIdx.z);
  std::abort();
}

/// An asynchronous copy to shared memory: done when its thread has waited for it, so that an earlier read gives the old
/// contents.
struct PendingCopy {
  void* to;
  std::size_t bytes;
  std::byte value[16];
};

/// What runs the threads of a block by turns (cuda_emu.cpp).
class Block {
 public:
  static constexpr unsigned kLanes = 32;

  Block();
  ~Block();

  /// Runs body once per thread of every block of the grid.
  void launch(dim3 grid, dim3 shape, std::size_t shared_bytes, const std::function<void()>& body);
  void* dynamic_shared() const;

  void barrier();
  /// A numbered barrier for a number of threads.
  void arrive(unsigned number, unsigned threads);
  void arrive_and_wait(unsigned number, unsigned threads);

  /// Exchanges the values of all lanes of the mask; returns them by lane.
  const std::uint64_t* exchange(unsigned mask, std::uint64_t value);
  /// The lanes of the mask whose predicate holds.
  unsigned ballot(unsigned mask, bool predicate);
  unsigned lane() const;

  /// Copies of the thread.
  void begin(const PendingCopy& copy);
  void commit_copies();
  void finish_copies();

 private:
  struct State;

  std::unique_ptr<State> state_;
};

inline Block block;

// Values of lanes as bits: nothing on the stack whose address ASan would have to guard.
template <class T>
std::uint64_t bits_of(T value) {
  if constexpr (sizeof(T) == 8) {
    return __builtin_bit_cast(std::uint64_t, value);
  } else if constexpr (sizeof(T) == 4) {
    return __builtin_bit_cast(std::uint32_t, value);
  } else {
    return static_cast<std::make_unsigned_t<T>>(value);
  }
}
template <class T>
T from_bits(std::uint64_t bits) {
  if constexpr (sizeof(T) == 8) {
    return __builtin_bit_cast(T, bits);
  } else if constexpr (sizeof(T) == 4) {
    return __builtin_bit_cast(T, static_cast<std::uint32_t>(bits));
  } else {
    return static_cast<T>(bits);
  }
}

}  // namespace trivelet::emu

// ------------------------------------------------------------------------------------------------- device functions

inline void __syncthreads() { trivelet::emu::block.barrier(); }
inline void __syncwarp(unsigned mask = ~0u) { trivelet::emu::block.exchange(mask, 0); }
inline void __pipeline_memcpy_async(void* to, const void* from, std::size_t bytes) {
  const auto aligned = [bytes](const void* p) { return reinterpret_cast<std::uintptr_t>(p) % bytes == 0; };
  if ((bytes != 4 && bytes != 8 && bytes != 16) || !aligned(to) || !aligned(from))
    trivelet::emu::wrong("a copy to shared memory is not of 4, 8 or 16 bytes at multiples of them");
  trivelet::emu::PendingCopy copy{to, bytes, {}};
  std::memcpy(copy.value, from, bytes);
  trivelet::emu::block.begin(copy);
}
inline void __pipeline_commit() { trivelet::emu::block.commit_copies(); }
inline void __pipeline_wait_prior(std::size_t under_way) {
  if (under_way != 0) trivelet::emu::wrong("only waiting for all copies is emulated");
  trivelet::emu::block.finish_copies();
}
inline void __threadfence() {}
inline void __threadfence_block() {}
/// Blocks run one after the other: a thread that waits for another block waits for ever.
inline void __nanosleep(unsigned) { trivelet::emu::wrong("a thread waits for a block that comes later"); }

template <class T>
T __shfl_sync(unsigned mask, T v, int from) {
  using namespace trivelet::emu;
  return from_bits<T>(block.exchange(mask, bits_of(v))[static_cast<unsigned>(from) % 32]);
}
template <class T>
T __shfl_up_sync(unsigned mask, T v, unsigned delta) {
  const unsigned lane = trivelet::emu::block.lane();
  return __shfl_sync(mask, v, static_cast<int>(lane >= delta ? lane - delta : lane));
}
template <class T>
T __shfl_down_sync(unsigned mask, T v, unsigned delta) {
  const unsigned lane = trivelet::emu::block.lane();
  return __shfl_sync(mask, v, static_cast<int>(lane + delta < 32 ? lane + delta : lane));
}
template <class T>
T __shfl_xor_sync(unsigned mask, T v, unsigned flip) {
  return __shfl_sync(mask, v, static_cast<int>(trivelet::emu::block.lane() ^ flip));
}
inline unsigned __ballot_sync(unsigned mask, int predicate) {
  return trivelet::emu::block.ballot(mask, predicate != 0);
}
inline int __any_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }
inline int __all_sync(unsigned mask, int predicate) { return __ballot_sync(mask, predicate) == mask; }

template <class T, class V>
T atomicAdd(T* p, V v) {
  const T old = *p;
  *p = static_cast<T>(old + static_cast<T>(v));
  return old;
}
template <class T, class V>
T atomicOr(T* p, V v) {
  const T old = *p;
  *p = static_cast<T>(old | static_cast<T>(v));
  return old;
}
template <class T, class V>
T atomicAnd(T* p, V v) {
  const T old = *p;
  *p = static_cast<T>(old & static_cast<T>(v));
  return old;
}
template <class T, class V>
T atomicMax(T* p, V v) {
  const T old = *p;
  *p = std::max(old, static_cast<T>(v));
  return old;
}
template <class T, class V>
T atomicMin(T* p, V v) {
  const T old = *p;
  *p = std::min(old, static_cast<T>(v));
  return old;
}
template <class T, class V>
T atomicExch(T* p, V v) {
  const T old = *p;
  *p = static_cast<T>(v);
  return old;
}
template <class T, class C, class V>
T atomicCAS(T* p, C expected, V v) {
  const T old = *p;
  if (old == static_cast<T>(expected)) *p = static_cast<T>(v);
  return old;
}

inline int __clz(int v) { return v ? __builtin_clz(static_cast<unsigned>(v)) : 32; }
inline int __clzll(long long v) { return v ? __builtin_clzll(static_cast<unsigned long long>(v)) : 64; }
inline int __popc(unsigned v) { return __builtin_popcount(v); }
inline int __popcll(unsigned long long v) { return __builtin_popcountll(v); }
inline int __ffs(int v) { return __builtin_ffs(v); }
inline unsigned __brev(unsigned v) {
  unsigned r = 0;
  for (int i = 0; i < 32; ++i) r |= (v >> i & 1) << (31 - i);
  return r;
}
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
  const std::uint64_t bytes = std::uint64_t{y} << 32 | x;
  unsigned r = 0;
  for (unsigned i = 0; i < 4; ++i) r |= static_cast<unsigned>(bytes >> 8 * (selector >> 4 * i & 7) & 0xff) << 8 * i;
  return r;
}
inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
  return static_cast<unsigned>((std::uint64_t{high} << 32 | low) >> (shift & 31));
}
inline float __int_as_float(int v) { return __builtin_bit_cast(float, v); }
inline int __float_as_int(float v) { return __builtin_bit_cast(int, v); }

// ---------------------------------------------------------------------------------------------------- runtime library

enum cudaError_t {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInvalidDevice = 101,
  cudaErrorNotReady = 600,
  cudaErrorLaunchFailure = 719
};
enum cudaMemcpyKind {
  cudaMemcpyHostToHost,
  cudaMemcpyHostToDevice,
  cudaMemcpyDeviceToHost,
  cudaMemcpyDeviceToDevice,
  cudaMemcpyDefault
};
enum { cudaStreamNonBlocking = 1, cudaEventBlockingSync = 1, cudaEventDisableTiming = 2, cudaHostAllocDefault = 0 };
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize, cudaFuncAttributePreferredSharedMemoryCarveout };
enum cudaDeviceAttr {
  cudaDevAttrMultiProcessorCount,
  cudaDevAttrMaxThreadsPerMultiProcessor,
  cudaDevAttrMaxSharedMemoryPerBlockOptin,
  cudaDevAttrMaxSharedMemoryPerMultiprocessor,
  cudaDevAttrReservedSharedMemoryPerBlock
};
enum cudaMemoryType { cudaMemoryTypeUnregistered, cudaMemoryTypeHost, cudaMemoryTypeDevice, cudaMemoryTypeManaged };
struct cudaPointerAttributes {
  cudaMemoryType type;
};
/// Each has a separate allocation, so that AddressSanitizer detects use after free.
struct TriveletEmuStream {
  std::atomic<unsigned> calls{0};
  int device = 0;  ///< whose it is
};
struct TriveletEmuEvent {
  std::atomic<unsigned> calls{0};
};
using cudaStream_t = TriveletEmuStream*;
using cudaEvent_t = TriveletEmuEvent*;
struct cudaDeviceProp {
  char name[256] = "CPU emulation";
  int multiProcessorCount = 2;
  int major = 0, minor = 0;
  std::size_t totalGlobalMem = std::size_t{1} << 30;
  int l2CacheSize = 1 << 20;
};

namespace trivelet::emu {

/// A failure that a test requests: one call of the runtime, or one launch of a kernel, counted over all threads.
struct Failing {
  std::atomic<long> countdown{0};  ///< 1: the next call; below: none
  std::atomic<cudaError_t> error{cudaErrorMemoryAllocation};
  std::atomic<bool> lost{false};  ///< the device fails: so does every call from then on, as after a kernel's bad access
  std::atomic<const char*> call{nullptr};  ///< which one it was
};
inline Failing failing;
inline std::atomic<long> handed_out{0};  ///< pieces of memory, streams, events and textures that were not released
inline thread_local cudaError_t last_error = cudaSuccess;

/// The number of devices: TRIVELET_EMULATED_GPUS, otherwise one.
inline int device_count() {
  const char* text = std::getenv("TRIVELET_EMULATED_GPUS");
  return text != nullptr ? std::atoi(text) : 1;
}
inline thread_local int device = 0;  ///< the current device of the thread
/// TRIVELET_EMULATED_FAILURE=DEVICE:CALLS: after this many calls that device fails, and no other. For whole programs.
inline bool device_fails() {
  static std::atomic<long> calls{0};
  static const char* const text = std::getenv("TRIVELET_EMULATED_FAILURE");
  if (text == nullptr || std::atoi(text) != device) return false;
  const char* behind = std::strchr(text, ':');
  return behind != nullptr && ++calls > std::atol(behind + 1);
}

/// TRIVELET_EMULATED_QUEUES=FILE: gets the number of work queues, which a driver creates by the environment of the
/// first call. For whole programs.
inline bool write_queues() {
  const char* const name = std::getenv("TRIVELET_EMULATED_QUEUES");
  std::FILE* const file = name != nullptr ? std::fopen(name, "w") : nullptr;
  if (file == nullptr) return false;
  const char* const queues = std::getenv("CUDA_DEVICE_MAX_CONNECTIONS");
  (void)std::fputs(queues != nullptr ? queues : "8", file);
  return std::fclose(file) == 0;
}

/// Every call of the runtime starts with it.
inline cudaError_t result_of(const char* call) {
  [[maybe_unused]] static const bool written = write_queues();
  if (device_fails()) return last_error = cudaErrorLaunchFailure;
  const bool over = failing.call.load() != nullptr;
  if (over ? !failing.lost : failing.countdown <= 0 || failing.countdown.fetch_sub(1) != 1) return cudaSuccess;
  if (!over) failing.call = call;
  return last_error = failing.error;
}

}  // namespace trivelet::emu
#define TRIVELET_EMU_MAY_FAIL() \
  if (const cudaError_t failed_ = trivelet::emu::result_of(__func__); failed_ != cudaSuccess) return failed_

inline const char* cudaGetErrorName(cudaError_t e) {
  switch (e) {
    case cudaSuccess: return "cudaSuccess";
    case cudaErrorMemoryAllocation: return "cudaErrorMemoryAllocation";
    case cudaErrorLaunchFailure: return "cudaErrorLaunchFailure";
    default: return "error";
  }
}
inline const char* cudaGetErrorString(cudaError_t e) {
  switch (e) {
    case cudaErrorMemoryAllocation: return "out of memory";
    case cudaErrorLaunchFailure: return "unspecified launch failure";
    default: return "error";
  }
}
/// The error of the last failed call in this thread, which is cleared unless the device itself has failed.
inline cudaError_t cudaGetLastError() {
  const cudaError_t last = trivelet::emu::last_error;
  if (!trivelet::emu::failing.lost) trivelet::emu::last_error = cudaSuccess;
  return last;
}
inline cudaError_t cudaGetDeviceCount(int* n) {
  TRIVELET_EMU_MAY_FAIL();
  *n = trivelet::emu::device_count();
  return cudaSuccess;
}
inline cudaError_t cudaGetDevice(int* n) {
  TRIVELET_EMU_MAY_FAIL();
  *n = trivelet::emu::device;
  return cudaSuccess;
}
inline cudaError_t cudaSetDevice(int number) {
  TRIVELET_EMU_MAY_FAIL();
  if (number < 0 || number >= trivelet::emu::device_count()) return cudaErrorInvalidDevice;
  trivelet::emu::device = number;
  return cudaSuccess;
}
inline cudaError_t cudaDeviceGetPCIBusId(char*, int, int) { return trivelet::emu::last_error = cudaErrorInvalidDevice; }
inline cudaError_t cudaGetDeviceProperties(cudaDeviceProp* p, int) {
  TRIVELET_EMU_MAY_FAIL();
  *p = {};
  return cudaSuccess;
}
inline int emulated_shared_memory = 64 << 10;  ///< the limit of a block; tests reduce it
inline cudaError_t cudaDeviceGetAttribute(int* v, cudaDeviceAttr attribute, int) {
  TRIVELET_EMU_MAY_FAIL();
  switch (attribute) {
    case cudaDevAttrMultiProcessorCount: *v = 2; break;
    case cudaDevAttrMaxThreadsPerMultiProcessor: *v = 512; break;
    case cudaDevAttrReservedSharedMemoryPerBlock: *v = 0; break;
    default: *v = emulated_shared_memory;
  }
  return cudaSuccess;
}
template <class K>
cudaError_t cudaFuncSetAttribute(K, cudaFuncAttribute, int) {
  TRIVELET_EMU_MAY_FAIL();
  return cudaSuccess;
}

namespace trivelet::emu {
/// Exactly `bytes` long, so that AddressSanitizer sees every access beyond; filled with junk.
inline cudaError_t allocate(void** p, std::size_t bytes) {
  void* memory = nullptr;
  if (posix_memalign(&memory, 256, bytes ? bytes : 1) != 0) return cudaErrorMemoryAllocation;
  std::memset(memory, 0xA5, bytes);
  *p = memory;
  ++handed_out;
  return cudaSuccess;
}
/// Pieces of memory freed: on a device each waits for all its work.
inline std::atomic<int> given_back = 0;
inline cudaError_t give_back(void* p) {
  if (p) --handed_out, ++given_back;
  std::free(p);
  return cudaSuccess;
}
template <class T>
cudaError_t create(T** handle) {
  *handle = new T;
  ++handed_out;
  return cudaSuccess;
}
template <class T>
cudaError_t destroy(T* handle) {
  if (handle) --handed_out;
  delete handle;
  return cudaSuccess;
}
/// Null is the default stream, which has no device.
template <class... T>
void use(T*... handles) {
  ((handles ? void(++handles->calls) : void()), ...);
}
/// Work for a stream of another device than the thread's stops the program: on real devices it fails.
inline void work_on(TriveletEmuStream* stream) {
  if (stream && stream->device != device) wrong("a stream of another device is used");
  use(stream);
}
inline std::map<const void*, std::size_t> page_locked;  // bytes by address
inline std::mutex page_locked_mutex;
inline std::mutex launching;
}  // namespace trivelet::emu

inline cudaError_t cudaMalloc(void** p, std::size_t bytes) {
  TRIVELET_EMU_MAY_FAIL();
  return trivelet::emu::allocate(p, bytes);
}
inline cudaError_t cudaFree(void* p) { return trivelet::emu::give_back(p); }
inline cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  TRIVELET_EMU_MAY_FAIL();
  *free = *total = std::size_t{8} << 30;
  return cudaSuccess;
}
inline cudaError_t cudaHostAlloc(void** p, std::size_t bytes, unsigned) {
  TRIVELET_EMU_MAY_FAIL();
  const cudaError_t result = trivelet::emu::allocate(p, bytes);
  const std::lock_guard lock(trivelet::emu::page_locked_mutex);
  if (result == cudaSuccess) trivelet::emu::page_locked[*p] = bytes;
  return result;
}
inline cudaError_t cudaFreeHost(void* p) {
  {
    const std::lock_guard lock(trivelet::emu::page_locked_mutex);
    trivelet::emu::page_locked.erase(p);
  }
  return trivelet::emu::give_back(p);
}
inline cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* p) {
  TRIVELET_EMU_MAY_FAIL();
  const std::lock_guard lock(trivelet::emu::page_locked_mutex);
  auto after = trivelet::emu::page_locked.upper_bound(p);
  const bool inside = after != trivelet::emu::page_locked.begin() &&
                      static_cast<const char*>(p) < static_cast<const char*>((--after)->first) + after->second;
  attributes->type = inside ? cudaMemoryTypeHost : cudaMemoryTypeUnregistered;
  return cudaSuccess;
}
inline cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind,
                                   cudaStream_t s = nullptr) {
  TRIVELET_EMU_MAY_FAIL();
  trivelet::emu::work_on(s);
  if (bytes) std::memcpy(to, from, bytes);
  return cudaSuccess;
}
inline cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  return cudaMemcpyAsync(to, from, bytes, kind);
}
inline cudaError_t cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                                     std::size_t width, std::size_t height, cudaMemcpyKind, cudaStream_t s = nullptr) {
  TRIVELET_EMU_MAY_FAIL();
  trivelet::emu::use(s);
  for (std::size_t y = 0; y < height; ++y)
    std::memcpy(static_cast<std::byte*>(to) + y * to_pitch, static_cast<const std::byte*>(from) + y * from_pitch,
                width);
  return cudaSuccess;
}
inline cudaError_t cudaMemsetAsync(void* p, int value, std::size_t bytes, cudaStream_t s = nullptr) {
  TRIVELET_EMU_MAY_FAIL();
  trivelet::emu::work_on(s);
  if (bytes) std::memset(p, value, bytes);
  return cudaSuccess;
}
inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t* s, unsigned) {
  TRIVELET_EMU_MAY_FAIL();
  const cudaError_t made = trivelet::emu::create(s);
  (*s)->device = trivelet::emu::device;
  return made;
}
inline cudaError_t cudaStreamDestroy(cudaStream_t s) { return trivelet::emu::destroy(s); }
inline cudaError_t cudaStreamSynchronize(cudaStream_t s) {
  TRIVELET_EMU_MAY_FAIL();
  trivelet::emu::use(s);
  return cudaSuccess;
}
inline cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned = 0) {
  TRIVELET_EMU_MAY_FAIL();
  trivelet::emu::use(s, e);
  return cudaSuccess;
}
inline cudaError_t cudaEventCreateWithFlags(cudaEvent_t* e, unsigned) {
  TRIVELET_EMU_MAY_FAIL();
  return trivelet::emu::create(e);
}
inline cudaError_t cudaEventDestroy(cudaEvent_t e) { return trivelet::emu::destroy(e); }
inline cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s = nullptr) {
  TRIVELET_EMU_MAY_FAIL();
  trivelet::emu::work_on(s);
  trivelet::emu::use(e);
  return cudaSuccess;
}
inline cudaError_t cudaEventSynchronize(cudaEvent_t e) {
  TRIVELET_EMU_MAY_FAIL();
  trivelet::emu::use(e);
  return cudaSuccess;
}
inline cudaError_t cudaEventQuery(cudaEvent_t e) {
  TRIVELET_EMU_MAY_FAIL();
  trivelet::emu::use(e);
  return cudaSuccess;
}
inline cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t from, cudaEvent_t to) {
  TRIVELET_EMU_MAY_FAIL();
  trivelet::emu::use(from, to);
  *ms = 0;
  return cudaSuccess;
}

// Textures: rows of floats in device memory, unfiltered, clamped, coordinates in samples.
enum cudaResourceType { cudaResourceTypePitch2D };
enum cudaTextureAddressMode { cudaAddressModeClamp };
enum cudaTextureFilterMode { cudaFilterModePoint };
enum cudaTextureReadMode { cudaReadModeElementType };
struct cudaChannelFormatDesc {};
template <class T>
cudaChannelFormatDesc cudaCreateChannelDesc() {
  return {};
}
struct cudaResourceDesc {
  cudaResourceType resType;
  struct {
    struct {
      void* devPtr;
      cudaChannelFormatDesc desc;
      std::size_t width, height, pitchInBytes;
    } pitch2D;
  } res;
};
struct cudaTextureDesc {
  cudaTextureAddressMode addressMode[3];
  cudaTextureFilterMode filterMode;
  cudaTextureReadMode readMode;
};
using cudaTextureObject_t = const cudaResourceDesc*;
inline cudaError_t cudaCreateTextureObject(cudaTextureObject_t* object, const cudaResourceDesc* resource,
                                           const cudaTextureDesc*, const void*) {
  TRIVELET_EMU_MAY_FAIL();
  if (resource->res.pitch2D.pitchInBytes % 32 != 0) return cudaErrorInvalidValue;
  *object = new cudaResourceDesc(*resource);
  ++trivelet::emu::handed_out;
  return cudaSuccess;
}
inline cudaError_t cudaDestroyTextureObject(cudaTextureObject_t object) {
  if (object) --trivelet::emu::handed_out;
  delete object;
  return cudaSuccess;
}
template <class T>
T tex2D(cudaTextureObject_t object, float x, float y) {
  const auto& r = object->res.pitch2D;
  const auto clamped = [](float v, std::size_t n) {
    return static_cast<std::size_t>(std::clamp(std::floor(v), 0.0f, static_cast<float>(n - 1)));
  };
  const auto* row = static_cast<const std::byte*>(r.devPtr) + clamped(y, r.height) * r.pitchInBytes;
  return reinterpret_cast<const T*>(row)[clamped(x, r.width)];
}
#undef TRIVELET_EMU_MAY_FAIL
