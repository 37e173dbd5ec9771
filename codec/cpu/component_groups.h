// Divides the components of a GOP into groups that are coded or decoded, and transformed, one after the other, so that
// the coefficients of one group are in memory at once instead of those of all components.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "codec/cpu/cpu_fields.h"

namespace trivelet {

/// The shapes of all components of a GOP of `frames` frames.
inline std::vector<Shape> component_shapes(const StreamHeader& header, int frames) {
  std::vector<Shape> shapes;
  for (int c = 0; c < static_cast<int>(header.components.size()); ++c)
    shapes.push_back(header.component_shape(c, frames));
  return shapes;
}

/// Used by one thread at a time.
class ComponentGroups {
 public:
  explicit ComponentGroups(const StreamHeader& header) : header_(header) {}

  /// Returns the end of the group that begins with component `first`: as many components as fit into the memory of the
  /// largest one, or the three of a colour transform.
  int end(int first, const std::vector<Shape>& shapes) const {
    std::size_t limit = 0;
    for (const Shape& s : shapes) limit = std::max(limit, s.samples());
    return end(first, shapes, limit);
  }
  /// The same for memory of `limit` samples, or of one component that needs more.
  int end(int first, const std::vector<Shape>& shapes, std::size_t limit) const {
    if (first == 0 && header_.colour_transform) return 3;
    const int components = static_cast<int>(shapes.size());
    int end = first;
    for (std::size_t used = 0; end < components; ++end) {
      used += shapes[static_cast<std::size_t>(end)].samples();
      if (end > first && used > limit) break;
    }
    return end;
  }

  /// Fields for the components [first, end), one after the other in the memory that all groups use. T: float or
  /// std::int32_t.
  template <class T>
  std::vector<Field<T>> fields(int first, int end, const std::vector<Shape>& shapes) {
    std::size_t sum = 0;
    for (int c = first; c < end; ++c) sum += shapes[static_cast<std::size_t>(c)].samples();
    LargeVector<T>& memory = this->memory<T>();
    if (memory.size() < sum) {
      LargeVector<T>().swap(memory);  // before the larger one is there
      // Open GOPs have a place more than the first one. Where no memory is given back (WebAssembly), the hole that the
      // first one's leaves would be lost.
      const auto frames = static_cast<std::size_t>(shapes[static_cast<std::size_t>(first)].frames);
      memory.resize(header_.motion ? sum + sum / frames : sum);
    }
    std::vector<Field<T>> fields;
    T* at = memory.data();
    for (int c = first; c < end; ++c) {
      fields.push_back(packed_field(at, shapes[static_cast<std::size_t>(c)]));
      at += fields.back().shape.samples();
    }
    return fields;
  }

  /// The memory, which may be used for anything between the groups.
  template <class T>
  LargeVector<T>& memory() {
    if constexpr (std::is_same_v<T, float>)
      return real_;
    else
      return integer_;
  }
  /// Frees the memory.
  void release() {
    LargeVector<float>().swap(real_);
    LargeVector<std::int32_t>().swap(integer_);
  }

 private:
  const StreamHeader& header_;
  LargeVector<float> real_;
  LargeVector<std::int32_t> integer_;
};

}  // namespace trivelet
