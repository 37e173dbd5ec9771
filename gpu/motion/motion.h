// Motion on the device: lifts the integers of a GOP along its motion and back (codec/motion/motion_lift.h), the same
// bits.
//
// A pipeline has one of these for all its GOPs, which take turns, because its buffers are large, and an open GOP needs
// the key frame of the one before anyway.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "codec/motion/motion.h"
#include "gpu/device/device.h"
#include "gpu/plan/gop_shape.h"

namespace trivelet::gpu {

/// A MotionCell as kernels read it, 16 bytes at once. Cells that predict alike (MotionCell::predicts_as) are equal:
/// what they do not use is 0.
struct alignas(16) DeviceMotionCell {
  std::int16_t x[2];
  std::int16_t y[2];
  std::int8_t plain[4];
  MotionMode mode;
  std::uint8_t unused[3];  ///< 0
};

/// The motion of a GOP on its way to the device: each slot has one.
class MotionUpload {
 public:
  /// Allocates the memory for a GOP, so that submit() allocates nothing.
  void reserve(const GopMotion& motion);
  /// Copies the levels from `first_level` on; `motion` is not needed afterwards. `pool` null: alone.
  void submit(const GopMotion& motion, int first_level, ThreadPool* pool, const Stream& stream);
  /// [place][cell]; empty at places whose level was left out.
  const DeviceMotionCell* cells() const { return cells_.data(); }
  std::size_t device_bytes() const { return cells_.size() * sizeof(DeviceMotionCell); }

 private:
  PinnedBuffer<DeviceMotionCell> host_;
  DeviceBuffer<DeviceMotionCell> cells_;
};

/// The description of a GOP's motion for kernels.
struct MotionOfGop {
  MotionPlaces places;
  const DeviceMotionCell* cells = nullptr;
  bool follows = false;        ///< an open GOP, and the key frame before it was lifted last
  bool predicts_keys = false;  ///< cells have the motion of keys
  bool only_keys = false;      ///< to_samples() makes keys for later GOPs, and no samples
};

/// Samples minus offset, after the colour transform, with this many binary places. Each component has a pointer and a
/// number of samples; those of a colour transform have equal numbers.
void integers_from_samples(const StreamHeader& header, const std::vector<const std::byte*>& samples,
                           const std::vector<std::size_t>& counts, int fraction,
                           const std::vector<std::int32_t*>& integers, const Stream& stream);

struct DeviceMotionComponent;

class DeviceMotion {
 public:
  /// `header`: of the stream; for GOPs of all lengths it allows. `reduction`: what decoding leaves out. `again`: a GOP
  /// may be lifted more than once before next_gop().
  DeviceMotion(const StreamHeader& header, const Reduction& reduction, bool again);
  std::size_t device_bytes() const;

  /// The stream waits until the GOP before is done with all this.
  void begin(const Stream& stream);
  /// The values of a component: floats before to_samples(), place by place without gaps.
  template <class T>
  T* values(const GopShape& shape, int component) {
    return reinterpret_cast<T*>(values_.data() + value_origin(shape, component));
  }
  /// Samples from values as the inverse transform in space leaves them: T is float or std::int32_t. `gain` per
  /// component for floats.
  template <class T>
  void to_samples(const GopShape& shape, const MotionOfGop& motion, const float* gain, std::byte* samples,
                  const Stream& stream);
  /// Values for the transform in space from samples. `low`, if not null, gets the frames of the lowest band as
  /// integers: key by key, each component by component.
  template <class T>
  void from_samples(const GopShape& shape, const MotionOfGop& motion, const std::byte* samples, const Stream& stream,
                    std::int32_t* low = nullptr);
  void end(const Stream& stream);

  /// Predicted keys in an encoder. `pair`: the key before the one at this place, as decoded, and that one, which
  /// becomes the difference to its prediction.
  void predict_key(const GopShape& shape, const MotionOfGop& motion, int component, int place, std::int32_t* pair,
                   const Stream& stream) const;
  /// Makes values of a frame of a component from integers.
  void set_frame(const GopShape& shape, const MotionOfGop& motion, int component, int place, const std::int32_t* from,
                 const Stream& stream) const;
  /// Integers become floats in place, as from_samples() makes them.
  static void to_floats(std::int32_t* values, std::size_t count, const Stream& stream);
  /// The low key of the GOP before, and that which this one leaves.
  const std::int32_t* low_key_before(int component) const { return low_key_of(key_sets_ - 1 - keys_own_, component); }
  std::int32_t* low_key(int component) const { return low_key_of(keys_own_, component); }
  /// The next GOP to be lifted follows the one lifted last.
  void next_gop() { keys_own_ = keys_own_ == 0 ? key_sets_ - 1 : 0; }
  /// The next GOP for to_samples() begins another stream.
  void forget_keys() { has_low_key_ = false; }

 private:
  std::size_t value_origin(const GopShape& shape, int component) const;
  std::int32_t* low_key_of(int set, int component) const {
    return keys_.data() + static_cast<std::size_t>(set * key_states_ + header_.temporal_levels) * key_origin_.back() +
           key_origin_[static_cast<std::size_t>(component)];
  }
  DeviceMotionComponent component(const GopShape& shape, const MotionOfGop& motion, int c) const;
  static void predict(const DeviceMotionComponent& c, int level, bool inverse, const Stream& stream);
  /// The same for some high frames of a level, the first one at this place.
  static void predict(const DeviceMotionComponent& c, int level, int first, std::size_t count, bool inverse,
                      const Stream& stream);
  void update(const DeviceMotionComponent& c, int level, bool inverse, const Stream& stream);
  void pass_keys(const DeviceMotionComponent& c, int level, bool follows, const Stream& stream);
  void add_to_keys(const DeviceMotionComponent& c, const Stream& stream);
  void keep_coarser_keys(const DeviceMotionComponent& c, const Stream& stream);

  StreamHeader header_;
  Reduction reduction_;
  MotionGrid grid_;
  DeviceBuffer<std::int32_t> values_;
  DeviceBuffer<unsigned long long> sums_;  // of an update of a component: see scatter_kernel
  int key_sets_;
  int key_states_;                       // the levels, and with predicted keys the low key
  int keys_own_ = 0;                     // the set that the current GOP fills; the other one is of the GOP before
  DeviceBuffer<std::int32_t> keys_;      // [set][state][component]
  bool has_low_key_ = false;             // of a GOP before; else it counts as zeros
  std::vector<std::size_t> key_origin_;  // per component; one more at the end
  Event done_;
};

}  // namespace trivelet::gpu
