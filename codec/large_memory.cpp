#include "trivelet/large_memory.h"

#include <cstdint>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace trivelet {

namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::size_t kLine = 64;

// Memory of one huge page or less would mostly lie beside it.
bool is_huge(std::size_t bytes) { return bytes >= 2 * kHugePage; }
std::align_val_t alignment(std::size_t bytes) { return std::align_val_t{is_huge(bytes) ? kHugePage : kLine}; }

}  // namespace

void* allocate_large(std::size_t bytes) {
  void* memory = ::operator new(bytes, alignment(bytes));
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  // Where the kernel has none it says no, and that is all.
  if (is_huge(bytes)) (void)madvise(memory, bytes / kHugePage * kHugePage, MADV_HUGEPAGE);
#endif
  return memory;
}

void free_large(void* memory, std::size_t bytes) noexcept { ::operator delete(memory, alignment(bytes)); }

}  // namespace trivelet
