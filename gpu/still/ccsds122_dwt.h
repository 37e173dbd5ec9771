// The three-level wavelet transform of CCSDS 122.0-B-2 §3 on the device: the bits of the CPU's (ccsds122_dwt.cpp).
//
// Float 9/7 is computed in the order of operations of ccsds122_lifting.h without contraction, integer 9/7M in 32 bits
// (up to 16 bits a sample) or with 64-bit intermediates, as on the CPU. Bytes that must move for each sample, 4-byte
// samples to 4-byte coefficients: 8 at the first level, a quarter of that at the next, ...: 10.5 in all; 8-bit samples
// 7.5.
#pragma once

#include <cstddef>
#include <cstdint>

#include "codec/still/ccsds122/ccsds122.h"
#include "codec/still/ccsds122/ccsds122_kernels.h"
#include "gpu/device/device.h"

namespace trivelet::gpu {

/// Samples in device memory. kF32 (the transform's own type) only with the float DWT.
enum class SampleType : std::uint8_t { kU8 = 0, kS8 = 1, kU16 = 2, kS16 = 3, kS32 = 4, kF32 = 5 };

inline SampleType sample_type_of(int bytes_per_sample, bool is_signed) {
  return bytes_per_sample == 4 ? SampleType::kS32
                               : static_cast<SampleType>(2 * (bytes_per_sample - 1) + (is_signed ? 1 : 0));
}
inline int sample_bytes(SampleType f) { return f <= SampleType::kS8 ? 1 : f <= SampleType::kS16 ? 2 : 4; }

/// A picture in device memory; rows contiguous, `row_stride` in bytes.
template <class Byte>
struct BasicDevicePicture {
  Byte* data = nullptr;
  SampleType format = SampleType::kU8;
  int width = 0, height = 0;
  std::ptrdiff_t row_stride = 0;
};
using DevicePicture = BasicDevicePicture<const std::byte>;
using MutableDevicePicture = BasicDevicePicture<std::byte>;

/// `to` becomes the transpose of `from`; the row stride of `to` is a whole number of samples.
void transpose_picture(const DevicePicture& from, const MutableDevicePicture& to, const Stream& stream);

/// Ten subbands in device memory, int32 or float. Rows are `pitch[level - 1]` values apart, a multiple of 8; the
/// padding between rows is written too.
struct DeviceBands {
  std::int32_t* data[ccsds122::kBands] = {};
  int pitch[3] = {};  ///< of level 1, 2, 3
  int blocks_wide = 0, blocks_high = 0;
};
inline int band_level(int band) { return band < ccsds122::kHL2 ? 3 : band < ccsds122::kHL1 ? 2 : 1; }

/// The transform of pictures of one padded size, with its memory. Calls only queue work on the stream; one call at a
/// time for each object and stream.
class Ccsds122Transform {
 public:
  /// For pictures of blocks_wide x blocks_high blocks, 3 at least each way. Throws Unsupported when the device has too
  /// little memory.
  Ccsds122Transform(int blocks_wide, int blocks_high);

  const DeviceBands& bands() const { return bands_; }
  std::size_t bytes() const { return memory_.size() * sizeof(std::int32_t); }

  /// Pads, transforms, and rounds the coefficients of the float DWT: bands() then holds int32.
  void forward(const DevicePicture& picture, ccsds122::Dwt dwt, int bits, const Stream& stream);

  /// The inverse of the coefficients in bands(): int32, or float for the float DWT. Rounds and clamps to [low, high]; a
  /// picture of kF32 receives the values unchanged.
  void inverse(ccsds122::Dwt dwt, int bits, std::int64_t low, std::int64_t high, const MutableDevicePicture& picture,
               const Stream& stream);

 private:
  DeviceBuffer<std::int32_t> memory_;
  DeviceBands bands_;
  std::int32_t* low_[2] = {};  ///< low band of levels 1 and 2, between the levels
  int processors_ = 1;
};

}  // namespace trivelet::gpu
