// What the coefficients of a GOP would take, found on the device: the sums of codec/rate/coding_cost.h.
#pragma once

#include <cstdint>
#include <vector>

#include "codec/rate/coding_cost.h"
#include "gpu/pipeline/pipeline.h"

namespace trivelet::gpu {

/// A piece of a frame of a subband: rows that are looked at.
struct CodingTile {
  std::uint64_t origin;
  std::uint32_t row_stride;  ///< from one to the next of them
  std::uint32_t rows, width;
  float inverse_step;
  std::uint32_t sum;  ///< of its frame
};

/// The pieces of the first frame of a subband that lies at `origin`, with this number of its sums.
void add_coding_tiles(const CoefficientLayout::Band& band, std::size_t origin, float inverse_step, std::size_t sum,
                      std::vector<CodingTile>& tiles);
/// Adds to a pair of sums for each number.
template <class T>
void sum_coding_tiles(const CodingTile* tiles, std::size_t count, const T* coefficients, unsigned long long* sums,
                      const Stream& stream);

class DeviceCodingCost {
 public:
  /// Makes ready for GOPs of this shape, which must live as long as it is used, with this step. Not while it works.
  void prepare(const GopShape& shape, float step, const Stream& stream);
  /// Begins with coefficients, laid out as the shape says: T is float or std::int32_t.
  template <class T>
  void begin(const T* coefficients, const Stream& stream);
  /// Once the stream has done that.
  std::vector<CodingSums> sums() const;
  double cost(const std::vector<std::uint8_t>& frame_gains, const std::vector<CodingSums>& sums) const;
  std::size_t device_bytes() const;

 private:
  const GopShape* shape_ = nullptr;
  float step_ = 0;
  std::size_t count_ = 0, tile_count_ = 0;
  PinnedBuffer<CodingTile> host_tiles_;
  DeviceBuffer<CodingTile> tiles_;
  DeviceBuffer<unsigned long long> sums_;  // a pair of each frame
  PinnedBuffer<unsigned long long> host_sums_;
};

}  // namespace trivelet::gpu
