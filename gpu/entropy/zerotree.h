// The fast zerotree coder of codec/entropy/fast/zerotree.h on the device: all code blocks of all components of a GOP at
// once, the same bytes. A TreePlan has the geometry; coefficients are quantised integers in the layout of
// DeviceTransform.
#pragma once

#include <cstdint>
#include <vector>

#include "gpu/plan/tree_plan.h"

namespace trivelet::gpu {

struct ZerotreeEncodeArgs;
struct ZerotreeDecodeArgs;

/// Encoder with its device memory. Per GOP: encode(), then download meta(), then total bytes of output().
class ZerotreeEncoder {
 public:
  /// `planes`: bit planes that magnitudes can have, 1..30 (15 for 16-bit coefficients). `capacity`: bytes of output to
  /// begin with.
  ZerotreeEncoder(const TreePlan& plan, int planes, std::size_t capacity);

  /// Q is std::int16_t or std::int32_t. Gives work to the stream only.
  template <class Q>
  void encode(const Q* coefficients, const Stream& stream);
  /// The last step again, after the output was too small: makes room for `bytes`. Waits for the stream.
  void grow(std::size_t bytes, const Stream& stream);

  /// The first output: [0] bytes of output (0..capacity or more), then the top of every segment, then the bits of every
  /// part, [segment * layers + layer]; each begins at a byte. The parts are in output() in the order of
  /// TreePlan::part_order().
  const std::uint32_t* meta() const { return meta_.data(); }
  std::size_t meta_size() const { return 2 + plan_->segments() + plan_->parts(); }
  static std::uint64_t total(const std::uint32_t* meta) { return meta[0] | static_cast<std::uint64_t>(meta[1]) << 32; }
  const std::uint32_t* tops(const std::uint32_t* meta) const { return meta + 2; }
  const std::uint32_t* bits(const std::uint32_t* meta) const { return meta + 2 + plan_->segments(); }
  const std::uint8_t* output() const { return reinterpret_cast<const std::uint8_t*>(output_.data()); }
  std::size_t capacity() const { return capacity_; }
  std::size_t device_bytes() const;
  /// Memory an encoder will take.
  static std::size_t device_bytes(const TreePlan& plan, int planes, std::size_t capacity);

 private:
  void write(const Stream& stream);
  ZerotreeEncodeArgs args() const;

  const TreePlan* plan_;
  int planes_;
  std::size_t capacity_;
  DeviceBuffer<std::uint64_t> planes_memory_, sign_;
  DeviceBuffer<std::uint16_t> act_;
  DeviceBuffer<std::uint8_t> count_, top_, root_planes_;
  DeviceBuffer<std::int32_t> tile_top_;
  DeviceBuffer<std::uint32_t> bits_, meta_, output_;
  DeviceBuffer<std::uint64_t> part_offset_;
};

/// The description of a segment for a decoder.
struct SegmentInput {
  std::uint8_t top = 0;
  std::uint8_t low = 0;  ///< lowest plane to decode; >= top: none
  std::uint16_t unused = 0;
};
/// A part in the input. `low`: its lowest plane.
struct PartInput {
  std::uint64_t offset = 0;
  std::uint32_t size = 0;
  std::uint32_t low = 0;
};
/// The error of a code block: `used` bytes were needed at `plane` of `segment`, but the part has another size; or it
/// has that size, and bits after its end.
struct BlockError {
  std::uint32_t segment_and_one = 0;  ///< 0: nothing
  std::uint32_t plane = 0;
  std::uint32_t used = 0;
  std::uint32_t size = 0;
};

/// Decoder with its device memory.
class ZerotreeDecoder {
 public:
  /// `planes` as for the encoder: the largest top that can come.
  ZerotreeDecoder(const TreePlan& plan, FastMode mode, int planes);

  /// Where the input goes, [segment] and [segment * layers + layer]; 16 readable bytes follow the parts.
  SegmentInput* segments() const { return segments_.data(); }
  PartInput* parts() const { return parts_.data(); }
  const BlockError* errors() const { return errors_.data(); }  ///< [block]
  int planes() const { return planes_; }

  void decode(const std::uint8_t* bytes, std::size_t size, const Stream& stream);
  /// Writes the significant coefficients of intact blocks into an array of zeros. V is std::int16_t or std::int32_t:
  /// sign * (magnitude + integer offset), or float: sign * ((magnitude + offset) * step). `steps` (per subband, in the
  /// order of the plan's bands) are for float only. `centroid` / 256 is the position of the reconstruction point.
  template <class V>
  void restore(V* coefficients, const float* steps, int centroid, const Stream& stream);
  std::size_t device_bytes() const;
  static std::size_t device_bytes(const TreePlan& plan, int planes);

 private:
  ZerotreeDecodeArgs args() const;
  const TreePlan* plan_;
  bool staged_;
  int planes_;
  std::uint32_t shared_bytes_ = 0;
  DeviceBuffer<std::uint64_t> planes_memory_, sign_, sig_;
  DeviceBuffer<std::uint32_t> history_;
  DeviceBuffer<std::uint16_t> act_, seen_, open_, raw_, single_;  // if shared memory is too small
  DeviceBuffer<std::uint8_t> root_planes_, asked_from_;
  DeviceBuffer<std::uint8_t> first_;  // [tile]: plane at which it came alive, 255: never
  DeviceBuffer<SegmentInput> segments_;
  DeviceBuffer<PartInput> parts_;
  DeviceBuffer<BlockError> errors_;
};

}  // namespace trivelet::gpu
