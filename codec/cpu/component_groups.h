// Divides the components of a GOP into groups that are transformed and coded one after the other, so that the
// coefficients of one group are in memory at once instead of those of all components.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "codec/cpu/cpu_fields.h"

namespace trivelet {

/// Used by one thread at a time.
class ComponentGroups {
 public:
  explicit ComponentGroups(const StreamHeader& header) : header_(header) {}

  /// Returns the end of the group that begins with component `first`: as many components as fit into the memory of the
  /// largest one, or the three of a colour transform.
  int end(int first, int frames) const {
    if (first == 0 && header_.colour_transform) return 3;
    const int components = static_cast<int>(header_.components.size());
    std::size_t limit = 0;
    for (int c = 0; c < components; ++c) limit = std::max(limit, samples(c, frames));
    int end = first;
    for (std::size_t used = 0; end < components; ++end) {
      used += samples(end, frames);
      if (end > first && used > limit) break;
    }
    return end;
  }

  /// Fields for the components [first, end), one after the other in the memory that all groups use. T: float or
  /// std::int32_t.
  template <class T>
  std::vector<Field<T>> fields(int first, int end, int frames) {
    std::size_t sum = 0;
    for (int c = first; c < end; ++c) sum += samples(c, frames);
    LargeVector<T>& memory = this->memory<T>();
    if (memory.size() < sum) memory.resize(sum);
    std::vector<Field<T>> fields;
    T* at = memory.data();
    for (int c = first; c < end; ++c) {
      fields.push_back(packed_field(at, header_.component_shape(c, frames)));
      at += fields.back().shape.samples();
    }
    return fields;
  }

  /// Frees the memory of floats.
  void release() { LargeVector<float>().swap(real_); }

 private:
  std::size_t samples(int c, int frames) const { return header_.component_shape(c, frames).samples(); }
  template <class T>
  LargeVector<T>& memory() {
    if constexpr (std::is_same_v<T, float>)
      return real_;
    else
      return integer_;
  }

  const StreamHeader& header_;
  LargeVector<float> real_;
  LargeVector<std::int32_t> integer_;
};

}  // namespace trivelet
