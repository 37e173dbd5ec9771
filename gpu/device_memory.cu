// Memory of devices. cudaFree waits for all that the device does; what is released as idle is kept for the next piece that
// is not much smaller, so that GOPs of other lengths cost the GOPs in flight nothing.
#include <map>
#include <mutex>
#include <new>

#include "gpu/device.h"

namespace trivelet::gpu {

namespace {

// A piece serves for one so many times smaller; what is smaller still is small beside all others of its owner.
constexpr std::size_t kWaste = 4;

struct Pieces {
  std::mutex mutex;
  std::map<void*, std::size_t> bytes;                     // of all
  std::map<int, std::multimap<std::size_t, void*>> idle;  // by device and size
  bool take(int device, std::size_t wanted, void** p) {
    const std::lock_guard lock(mutex);
    auto& of_device = idle[device];
    const auto found = of_device.lower_bound(wanted);
    if (found == of_device.end() || found->first / kWaste > wanted) return false;
    *p = found->second;
    of_device.erase(found);
    return true;
  }
};
// Never ended: memory may be released when the program ends.
Pieces& pieces() {
  static Pieces& all = *new Pieces;
  return all;
}

thread_local int scopes_of_idle = 0;

int current_device() {
  int device = 0;
  forget(cudaGetDevice(&device));
  return device;
}

}  // namespace

IdleMemory::IdleMemory() { ++scopes_of_idle; }
IdleMemory::~IdleMemory() { --scopes_of_idle; }

bool free_idle_memory() noexcept {
  std::multimap<std::size_t, void*> idle;
  {
    Pieces& all = pieces();
    const std::lock_guard lock(all.mutex);
    const auto of_device = all.idle.find(current_device());
    if (of_device == all.idle.end() || of_device->second.empty()) return false;
    idle.swap(of_device->second);
    for (const auto& [bytes, p] : idle) all.bytes.erase(p);
  }
  for (const auto& [bytes, p] : idle) forget(cudaFree(p));
  return true;
}

cudaError_t allocate_on_device(void** p, std::size_t bytes) try {
  const int device = current_device();
  if (pieces().take(device, bytes, p)) return cudaSuccess;
  cudaError_t result = cudaMalloc(p, bytes);
  if (result == cudaErrorMemoryAllocation && free_idle_memory()) {
    forget(result);
    result = cudaMalloc(p, bytes);
  }
  if (result != cudaSuccess) return result;
  try {
    const std::lock_guard lock(pieces().mutex);
    pieces().bytes[*p] = bytes;
  } catch (...) {
    forget(cudaFree(*p));
    throw;
  }
  return cudaSuccess;
} catch (const std::bad_alloc&) {
  return cudaErrorMemoryAllocation;
}

void release_on_device(void* p) {
  {
    Pieces& all = pieces();
    const std::lock_guard lock(all.mutex);
    const auto piece = all.bytes.find(p);
    if (scopes_of_idle > 0) try {
        all.idle[current_device()].emplace(piece->second, p);
        return;
      } catch (const std::bad_alloc&) {  // then it is given back
      }
    all.bytes.erase(piece);
  }
  forget(cudaFree(p));
}

}  // namespace trivelet::gpu
