// The inverse transform of a component without motion, strip of rows by strip, of coefficients that are kept where they
// are not zero (patch_store.h): the field of one strip is in memory instead of the whole component's. Coarse spatial
// levels are undone for all rows at first, whose results are small. Strips overlap by the rows that filters of the two
// finest levels reach, so that every value is computed as in one piece.
#pragma once

#include <cstdint>
#include <vector>

#include "codec/cpu/patch_store.h"
#include "codec/threads/parallel.h"
#include "codec/transform/dwt.h"
#include "trivelet/large_memory.h"

namespace trivelet {

/// 4-byte values of a strip, with its overlaps: 60 MiB, which hold a fifth of 33 frames of 1080p. A few rows of more
/// columns or frames take more.
inline constexpr std::size_t kStripValues = std::size_t{15} << 20;

/// The number of strips for a component of this shape; 1: it is not worth it.
int strips_of(const Shape& shape, const Decomposition& d);

/// Memory that one component after the other uses. `strip` gets room for kStripValues or more at once: components of
/// shorter GOPs then find room, too. Where no memory is given back (WebAssembly), the hole of a smaller one would be
/// lost.
template <class T>
struct StripMemory {
  LargeVector<T>& low;
  LargeVector<T>& strip;
};

/// As inverse_transform() with these arguments, for the field that `patches` stand for, which has at least two spatial
/// levels and is in t+2D.
template <class T>
void inverse_in_strips(const PatchStore<T>& patches, int strips, float gain, std::int32_t offset,
                       std::int32_t min_sample, std::int32_t max_sample, const MutableVolumeView& samples,
                       ThreadPool& pool, SimdLevel simd, const std::vector<float>& frame_gains,
                       const StripMemory<T>& memory);

}  // namespace trivelet
