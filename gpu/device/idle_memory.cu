// Device memory and page-locked memory. cudaFree and cudaFreeHost wait for all work of the device. So memory that is
// released as idle is kept for the next piece of similar size, and GOPs of other lengths do not stall the GOPs in
// flight.
#include <map>
#include <mutex>
#include <new>

#include "gpu/device/device.h"

namespace trivelet::gpu {

namespace {

// A kept piece serves for one that is at most this many times smaller.
constexpr std::size_t kWaste = 4;
constexpr int kHost = -1;  // in the place of a device's number

int current_device() {
  int device = 0;
  forget(cudaGetDevice(&device));
  return device;
}

thread_local int scopes_of_idle = 0;

class Pieces {
 public:
  using Make = cudaError_t (*)(void**, std::size_t);
  using End = void (*)(void*);

  cudaError_t allocate(int place, void** p, std::size_t bytes, Make make, End end) try {
    if (take(place, bytes, p)) return cudaSuccess;
    cudaError_t result = make(p, bytes);
    if (result == cudaErrorMemoryAllocation && free_idle_memory()) {
      forget(result);
      result = make(p, bytes);
    }
    if (result != cudaSuccess) return result;
    try {
      const std::lock_guard lock(mutex_);
      bytes_[*p] = bytes;
    } catch (...) {
      end(*p);
      throw;
    }
    return cudaSuccess;
  } catch (const std::bad_alloc&) {
    return cudaErrorMemoryAllocation;
  }

  void release(int place, void* p, End end) {
    {
      const std::lock_guard lock(mutex_);
      const auto piece = bytes_.find(p);
      if (scopes_of_idle > 0) try {
          idle_[place].emplace(piece->second, p);
          return;
        } catch (const std::bad_alloc&) {  // then it is freed
        }
      bytes_.erase(piece);
    }
    end(p);
  }

  bool free_idle(int place, End end) {
    std::multimap<std::size_t, void*> idle;
    {
      const std::lock_guard lock(mutex_);
      const auto found = idle_.find(place);
      if (found == idle_.end() || found->second.empty()) return false;
      idle.swap(found->second);
      for (const auto& [bytes, p] : idle) bytes_.erase(p);
    }
    for (const auto& [bytes, p] : idle) end(p);
    return true;
  }

 private:
  bool take(int place, std::size_t wanted, void** p) {
    const std::lock_guard lock(mutex_);
    auto& idle = idle_[place];
    const auto found = idle.lower_bound(wanted);
    if (found == idle.end() || found->first / kWaste > wanted) return false;
    *p = found->second;
    idle.erase(found);
    return true;
  }

  std::mutex mutex_;
  std::map<void*, std::size_t> bytes_;                     // of all
  std::map<int, std::multimap<std::size_t, void*>> idle_;  // by device, or kHost, and size
};
// Never ended: memory may be released when the program ends.
Pieces& pieces() {
  static Pieces& all = *new Pieces;
  return all;
}

cudaError_t make_on_device(void** p, std::size_t bytes) { return cudaMalloc(p, bytes); }
void end_on_device(void* p) { forget(cudaFree(p)); }

}  // namespace

IdleMemory::IdleMemory() { ++scopes_of_idle; }
IdleMemory::~IdleMemory() { --scopes_of_idle; }

bool free_idle_memory() noexcept {
  const bool freed_on_device = pieces().free_idle(current_device(), end_on_device);
  return pieces().free_idle(kHost, unlock_pages) || freed_on_device;
}

cudaError_t allocate_on_device(void** p, std::size_t bytes) {
  return pieces().allocate(current_device(), p, bytes, make_on_device, end_on_device);
}
void release_on_device(void* p) { pieces().release(current_device(), p, end_on_device); }

cudaError_t allocate_page_locked(void** p, std::size_t bytes) {
  return pieces().allocate(kHost, p, bytes, lock_new_pages, unlock_pages);
}
void release_page_locked(void* p) { pieces().release(kHost, p, unlock_pages); }

}  // namespace trivelet::gpu
