// Helpers of the fuzzers of code blocks: numbers from the input, geometries by shape, results.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "codec/base/stream_header.h"
#include "codec/entropy/fast/zerotree.h"
#include "tests/fuzz/wrong.h"

namespace trivelet::fuzz {

class Choices {
 public:
  Choices(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}
  unsigned byte() { return at_ < size_ ? data_[at_++] : 0; }
  int upto(int most) { return most <= 0 ? 0 : static_cast<int>(byte() % (static_cast<unsigned>(most) + 1)); }
  const std::uint8_t* rest() const { return data_ + at_; }
  std::size_t left() const { return size_ - at_; }

 private:
  const std::uint8_t* data_;
  std::size_t size_;
  std::size_t at_ = 0;
};

inline Decomposition decomposition_by(Layout layout, unsigned levels) {
  Decomposition d;
  d.layout = layout;
  d.spatial_levels = static_cast<int>(levels % 5);
  d.temporal_levels = static_cast<int>(levels / 5 % 4);
  if (layout == Layout::kDyadic) d.temporal_levels = std::min(d.temporal_levels, d.spatial_levels);
  d.spatial = d.temporal = Wavelet::kCdf53;
  return d;
}

// Geometry is expensive, so the last ones are kept.
struct Geometry {
  BlockGrid grid;
  SubbandTable target;
  StepTable steps;
  Geometry(const Shape& s, const Decomposition& d, int block, const Shape& small, const Decomposition& less)
      : grid(s, d, true, block), target(small, less, true), steps(grid.table(), 0.5f, ComponentHeader{}) {}
};
struct Geometries {
  using Key = std::tuple<int, int, int, int, int, int, int, int>;
  std::map<Key, std::unique_ptr<Geometry>> known;
  const Geometry& get(const Shape& s, const Decomposition& d, int block, int reduce) {
    const Key key{s.frames,          s.height,         s.width, static_cast<int>(d.layout),
                  d.temporal_levels, d.spatial_levels, block,   reduce};
    if (known.size() > 3000) known.clear();
    auto& g = known[key];
    if (g) return *g;
    Decomposition less = d;
    less.spatial_levels -= reduce;
    const int slower = d.layout == Layout::kDyadic ? std::min(reduce, d.temporal_levels) : 0;
    less.temporal_levels -= slower;
    g = std::make_unique<Geometry>(
        s, d, block, Shape{low_length(s.frames, slower), low_length(s.height, reduce), low_length(s.width, reduce)},
        less);
    return *g;
  }
};

template <class T>
struct Result {
  bool refused = false;
  std::vector<T> memory;
};

/// The coefficients of a volume as a field.
template <class T>
Field<T> field_of(std::vector<T>& memory, const Shape& s) {
  Field<T> f;
  f.data = memory.data();
  f.shape = s;
  f.row_stride = s.width;
  f.frame_stride = static_cast<std::ptrdiff_t>(s.width) * s.height;
  return f;
}

}  // namespace trivelet::fuzz
