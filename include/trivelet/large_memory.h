// Allocators of huge pages (where the system has them) for the samples and coefficients of whole GOPs. With 4 KiB pages
// the distant rows of a block cost a page walk each, and every first touch of a page a fault.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

namespace trivelet {

/// Where memory never gets smaller (WebAssembly), what is not needed for a while is freed for what is: the memory of
/// samples while coefficients are there. Elsewhere that would cost a fault for each page again and again.
#ifdef __EMSCRIPTEN__
inline constexpr bool kScarceMemory = true;
#else
inline constexpr bool kScarceMemory = false;
#endif

/// Aligned to cache lines, uninitialised. Throws std::bad_alloc. Pass the same `bytes` to free_large().
void* allocate_large(std::size_t bytes);
void free_large(void* memory, std::size_t bytes) noexcept;

/// Zeroed memory. Pages come into being when they are touched: unused memory costs nothing, and the threads that first
/// write it share the page faults. Throws std::bad_alloc.
std::shared_ptr<std::byte> allocate_zeros(std::size_t bytes);

/// Allocator of LargeVector: elements are default-initialised, that is left as they are.
template <class T>
struct LargeAllocator {
  static_assert(std::is_trivial_v<T>);
  using value_type = T;
  LargeAllocator() = default;
  template <class U>
  LargeAllocator(const LargeAllocator<U>&) {}
  T* allocate(std::size_t n) {
    if (n > static_cast<std::size_t>(-1) / (2 * sizeof(T))) throw std::bad_alloc();
    return static_cast<T*>(allocate_large(n * sizeof(T)));
  }
  void deallocate(T* p, std::size_t n) noexcept { free_large(p, n * sizeof(T)); }
  template <class U>
  void construct(U* p) noexcept {
    ::new (static_cast<void*>(p)) U;
  }
  template <class U, class... Args>
  void construct(U* p, Args&&... args) {
    ::new (static_cast<void*>(p)) U(std::forward<Args>(args)...);
  }
  friend bool operator==(const LargeAllocator&, const LargeAllocator&) { return true; }
};

/// A vector whose resize() writes nothing.
template <class T>
using LargeVector = std::vector<T, LargeAllocator<T>>;

}  // namespace trivelet
