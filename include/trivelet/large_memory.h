// Memory for the samples and coefficients of whole GOPs, in huge pages where the system has them: a block's rows are
// far apart, so that in small pages each would cost a page walk, and every first touch of 4 KiB a fault.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

namespace trivelet {

/// Aligned to cache lines, not initialised. Throws std::bad_alloc. `bytes` of both are the same.
void* allocate_large(std::size_t bytes);
void free_large(void* memory, std::size_t bytes) noexcept;

/// Zeros, of which the system makes the huge pages when they are touched: room that is not used takes no memory, and
/// who fills it first, with as many threads as that has, takes the faults. Throws std::bad_alloc.
std::shared_ptr<std::byte> allocate_zeros(std::size_t bytes);

/// For LargeVector: elements are left as they are unless a value is given.
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

/// resize() writes nothing.
template <class T>
using LargeVector = std::vector<T, LargeAllocator<T>>;

}  // namespace trivelet
