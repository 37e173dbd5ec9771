// Memory for volumes and coefficients, aligned to cache lines, or to huge pages if it is one of them or more.
#include "trivelet/large_memory.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace trivelet {

namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::size_t kLine = 64;
#if defined(__linux__) && defined(MADV_HUGEPAGE)
constexpr bool kHasHugePages = true;
#else
constexpr bool kHasHugePages = false;  // alignment to them would leave holes of up to a page
#endif

// What a block takes: whole huge pages if that is at most a thirty-second more, as for a frame of 1080p of 16 bits, and
// one where it is at most a seventh more, as for 56 slices of a block of 128x128 of 16 bits: 448 faults for small pages
// take several times as long as one for a huge page.
std::size_t size_of(std::size_t bytes) {
  const std::size_t pages = (bytes + kHugePage - 1) / kHugePage * kHugePage;
  const std::size_t most = bytes / (pages == kHugePage ? 7 : 32);
  return kHasHugePages && pages - bytes <= most ? pages : bytes;
}
// A block shorter than two huge pages contains one of them whole only where it is aligned to them.
bool is_huge(std::size_t bytes) { return bytes >= kHugePage; }
bool is_huge_anywhere(std::size_t bytes) { return bytes >= 2 * kHugePage; }
std::align_val_t alignment(std::size_t bytes) {
  return std::align_val_t{kHasHugePages && is_huge(bytes) ? kHugePage : kLine};
}

// `memory` must be untouched: the kernel chooses the size of a page when the page is first touched.
void prefer_huge_pages([[maybe_unused]] void* memory, [[maybe_unused]] std::size_t bytes) {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  const std::uintptr_t begin = (address + kHugePage - 1) / kHugePage * kHugePage;
  const std::uintptr_t end = (address + bytes) / kHugePage * kHugePage;
  // A kernel without huge pages refuses, which does no harm.
  if (begin < end) (void)madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
#endif
}

}  // namespace

void* allocate_large(std::size_t bytes) {
  const std::size_t size = size_of(bytes);
  void* memory = ::operator new(size, alignment(size));
  if (is_huge(size)) prefer_huge_pages(memory, size);
  return memory;
}

void free_large(void* memory, std::size_t bytes) noexcept { ::operator delete(memory, alignment(size_of(bytes))); }

std::shared_ptr<std::byte> allocate_zeros(std::size_t bytes) {
  if (kHasHugePages && is_huge(size_of(bytes)) && !is_huge_anywhere(bytes)) {
    const std::shared_ptr<void> memory(allocate_large(bytes), [bytes](void* m) { free_large(m, bytes); });
    std::memset(memory.get(), 0, bytes);
    return {memory, static_cast<std::byte*>(memory.get())};
  }
  std::shared_ptr<std::byte> memory(static_cast<std::byte*>(std::calloc(std::max<std::size_t>(bytes, 1), 1)),
                                    std::free);
  if (!memory) throw std::bad_alloc();
  if (is_huge_anywhere(bytes)) prefer_huge_pages(memory.get(), bytes);
  return memory;
}

}  // namespace trivelet
