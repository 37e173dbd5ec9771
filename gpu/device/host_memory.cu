// cudaHostAlloc spends its time on locking single pages: 45 ms for 100 MB on the host of an H200. Huge pages, first
// touched by several threads and then registered, take 7.
#include <sys/mman.h>

#include <cstdlib>
#include <exception>
#include <mutex>
#include <new>
#include <set>
#include <thread>
#include <vector>

#include "gpu/device/device.h"

namespace trivelet::gpu {

namespace {

#if !defined(TRIVELET_CUDA_EMULATION)

constexpr std::size_t kHuge = std::size_t{2} << 20;
constexpr std::size_t kLeast = 2 * kHuge;  // smaller ones gain nothing
constexpr std::size_t kOfThread = std::size_t{16} << 20;

struct Registered {
  std::mutex mutex;
  std::set<void*> pieces;
};
Registered& registered() {
  static Registered r;
  return r;
}

// The system provides a page at the first write to it, which takes most of the time.
void touch(std::byte* memory, std::size_t bytes) {
  const auto some = [=](std::size_t first) {
    for (std::size_t i = first; i < bytes && i < first + kOfThread; i += 4096)
      static_cast<volatile std::byte*>(memory)[i] = std::byte{0};
  };
  std::vector<std::thread> threads;
  std::size_t first = 0;
  try {
    threads.reserve(bytes / kOfThread);
    for (; first + kOfThread < bytes; first += kOfThread) threads.emplace_back(some, first);
  } catch (
      const std::exception&) {  // no more threads, or no memory for them: locking touches the rest
  }
  some(first);
  for (std::thread& t : threads) t.join();
}

bool allocate_huge(void** p, std::size_t bytes) {
  const std::size_t size = (bytes + kHuge - 1) / kHuge * kHuge;
  void* memory = std::aligned_alloc(kHuge, size);
  if (memory == nullptr) return false;
  if (madvise(memory, size, MADV_HUGEPAGE) == 0) {
    touch(static_cast<std::byte*>(memory), size);
    if (cudaHostRegister(memory, size, cudaHostRegisterDefault) == cudaSuccess) {
      try {
        const std::lock_guard lock(registered().mutex);
        registered().pieces.insert(memory);
        *p = memory;
        return true;
      } catch (const std::bad_alloc&) {  // it could not be recognised when it is released
        forget(cudaHostUnregister(memory));
      }
    }
    (void)cudaGetLastError();  // not sticky: the next call starts afresh
  }
  std::free(memory);
  return false;
}

#endif

}  // namespace

cudaError_t lock_new_pages(void** p, std::size_t bytes) {
#if !defined(TRIVELET_CUDA_EMULATION)
  if (bytes >= kLeast && allocate_huge(p, bytes)) return cudaSuccess;
#endif
  return cudaHostAlloc(p, bytes, cudaHostAllocDefault);
}

void unlock_pages(void* p) {
#if !defined(TRIVELET_CUDA_EMULATION)
  {
    std::unique_lock lock(registered().mutex);
    if (registered().pieces.erase(p) > 0) {
      lock.unlock();
      forget(cudaHostUnregister(p));
      std::free(p);
      return;
    }
  }
#endif
  forget(cudaFreeHost(p));
}

}  // namespace trivelet::gpu
