// The wavelet transform of codec/transform/dwt.h on the device: the same bits, another arrangement in memory.
//
// Coefficients lie frame by frame in the order of codec/transform/dwt.h (temporal splits interleave), but inside a
// frame the subbands are separated along rows and columns, every one starting at a column that is a multiple of kAlign:
//
//     LL2 | HL2 |       pad      a subband of level l and orientation o (bit 0: high along x, bit 1: high along y) has
//     ----+-----+ HL1            its first column at 0 or high_column(l), its first row at 0 or low_rows(l), and rows
//     LH2 | HH2 |                one pitch apart. CoefficientLayout::band() says so for each Subband of subband.h.
//     ----------+-----
//     LH1       | HH1
//
// Between the levels only the low band is kept, in scratch memory of its own. Bytes that must move, float in and out,
// t+2D: 8 per sample for time, 8 for the first level in space, a quarter of that for the next ...
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "codec/transform/dwt.h"
#include "codec/transform/subband.h"
#include "gpu/device/device.h"

/// INSTANTIATE(T, Q) for all types of values T in the transforms and of coefficients Q in memory.
#define TRIVELET_FOR_COEFFICIENTS(INSTANTIATE) \
  INSTANTIATE(float, float)                    \
  INSTANTIATE(float, std::int16_t)             \
  INSTANTIATE(float, std::int32_t)             \
  INSTANTIATE(std::int32_t, std::int32_t)      \
  INSTANTIATE(std::int32_t, std::int16_t)

namespace trivelet::gpu {

/// What samples in device memory are. kValues: the transform's own type, float or std::int32_t.
enum class SampleFormat : std::uint8_t { kU8 = 0, kS8 = 1, kU16 = 2, kS16 = 3, kValues = 4 };

inline SampleFormat sample_format(int bytes_per_sample, bool is_signed) {
  return static_cast<SampleFormat>(2 * (bytes_per_sample - 1) + (is_signed ? 1 : 0));
}

/// Samples in device memory; strides in bytes, rows contiguous.
template <class Byte>
struct BasicDeviceSamples {
  Byte* data = nullptr;
  SampleFormat format = SampleFormat::kU8;
  std::ptrdiff_t row_stride = 0;
  std::ptrdiff_t frame_stride = 0;
};
using DeviceSamples = BasicDeviceSamples<const std::byte>;
using MutableDeviceSamples = BasicDeviceSamples<std::byte>;

/// Where subbands lie in a device array of coefficients.
class CoefficientLayout {
 public:
  static constexpr int kAlign = 16;  ///< values

  CoefficientLayout(const Shape& shape, const Decomposition& d);

  const Shape& shape() const { return shape_; }
  const Decomposition& decomposition() const { return d_; }
  int pitch() const { return high_column(0); }  ///< values from a row to the next
  std::size_t frame_stride() const;             ///< values from a frame to the next
  std::size_t size() const;                     ///< values in all
  int low_columns(int level) const { return low_length(shape_.width, level); }
  int low_rows(int level) const { return low_length(shape_.height, level); }
  /// First column of the bands that are high along x at `level` >= 1; at level 0 the pitch.
  int high_column(int level) const { return high_column_[static_cast<std::size_t>(level)]; }

  /// A subband inside an array of size() values.
  struct Band {
    std::size_t origin = 0;
    std::size_t row_stride = 0;
    std::size_t frame_stride = 0;
    Shape shape;
  };
  Band band(const Subband& s) const;

  /// Steps as the kernels read them: [level - 1][frame][orientation & 3]; `steps_by_subband` in the order of
  /// SubbandTable::all(). Pass StepTable::inverse to quantise and StepTable::step to restore.
  std::vector<float> spread(const SubbandTable& table, const std::vector<float>& steps_by_subband) const;
  std::size_t steps() const;  ///< values in spread()'s result

 private:
  int level_of(const Subband& s) const {
    return s.resolution == 0 ? d_.spatial_levels : d_.spatial_levels - s.resolution + 1;
  }
  Shape shape_;
  Decomposition d_;
  std::array<int, 9> high_column_{};
};

/// For which levels that split time, of a dyadic transform of floats by CDF 9/7, one kernel replaces two; the bits are
/// the same. Others than kWhereFaster are for tests and measurements.
enum class JointLevels : std::uint8_t {
  kWhereFaster,
  kWherePossible,  ///< small ones, too
  kNone
};

/// How samples are rounded at the end of the inverse transform; see codec/transform/dwt.h.
struct SampleRange {
  float gain = 1;
  std::int32_t offset = 0;
  std::int32_t min_sample = 0;
  std::int32_t max_sample = 255;
};

/// A transform of one shape with its scratch memory. T is float or std::int32_t as in codec/transform/dwt.h.
/// Coefficients Q:
///   T              as they are;
///   std::int32_t   from float: int(|c| * inverse_step) with c's sign, limited to 2^30 as in
///   codec/entropy/fast/zerotree.h;
///   std::int16_t   the same limited to +-32767; integers are limited, not divided.
/// Calls only give work to the stream; one call at a time per object and stream. Samples and coefficients do not
/// overlap. They say how many levels one kernel did (JointLevels).
template <class T>
class DeviceTransform {
 public:
  /// Throws BadArgument like codec/transform/dwt.h, Unsupported when the device has too little memory.
  DeviceTransform(const Shape& shape, const Decomposition& d, JointLevels joint = JointLevels::kWhereFaster);

  const CoefficientLayout& layout() const { return layout_; }
  std::size_t scratch_bytes() const;

  /// out = T(sample - offset), then the decomposition. `inverse_steps` (device, CoefficientLayout::spread) is read when
  /// Q is an integer and T is not. `frame_gains` (device, one per frame, or none): codec/transform/dwt.h; float and
  /// t+2D only.
  template <class Q>
  int forward(const DeviceSamples& samples, std::int32_t offset, Q* coefficients, const float* inverse_steps,
              const Stream& stream, const float* frame_gains = nullptr);

  /// Undoes forward. Quantised floats are restored as (|q| + centroid) * step with q's sign, 0 as 0. `coefficients` are
  /// not changed. When samples.format is kValues, `range` is not used.
  template <class Q>
  int inverse(const Q* coefficients, const float* steps, float centroid, const SampleRange& range,
              const MutableDeviceSamples& samples, const Stream& stream, const float* frame_gains = nullptr);

 private:
  struct Plane {  ///< low band of a level: the input of the next
    DeviceBuffer<T> memory;
    int pitch = 0;
    std::size_t frame_stride = 0;
    T* data = nullptr;
  };
  int frames(int level) const;  ///< of the low band of a level
  bool splits_time(int level) const;
  int time_levels(int level) const;  ///< temporal levels done before the level in space
  template <class Byte>
  bool may_be_joint(int level, const BasicDeviceSamples<Byte>& samples, const float* frame_gains) const;

  CoefficientLayout layout_;
  std::vector<Plane> low_;  ///< [level], level 0: all frames after the temporal transform
  JointLevels joint_;
  int processors_ = 1;
  int shared_bytes_ = 0;  ///< that a block may have
};

}  // namespace trivelet::gpu
