// CCSDS 122.0 on a GPU, from and to host memory: the bytes and pictures of codec/still/ccsds122. This header includes
// no CUDA.
//
//   gpu::Ccsds122Codec codec(0);                               // device 0
//   ccsds122::Encoded e = codec.encode(view, params, pool);    // like ccsds122::encode
//   ccsds122::Decoded d = codec.decode(e.bytes, {}, pool);     // like ccsds122::decode
//
// A codec belongs to one thread at a time and processes one picture after the other: upload, kernels, download. It
// keeps its memory for the next picture of the same size and parameters. To overlap the transfers of one picture with
// the kernels of another, give two or three threads a codec each; every codec has its own stream.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "codec/still/ccsds122/ccsds122.h"

namespace trivelet::gpu {

/// GPUs that can be used; 0 without a driver.
int still_device_count();

class Ccsds122Codec {
 public:
  /// Throws Unsupported when there is no such device.
  explicit Ccsds122Codec(int device);
  ~Ccsds122Codec();
  Ccsds122Codec(Ccsds122Codec&&) noexcept;
  Ccsds122Codec& operator=(Ccsds122Codec&&) noexcept;

  /// Throws like ccsds122::encode, and Unsupported when the device has too little memory. `pool` is used to look for
  /// the sample that is out of range, when there is one.
  ccsds122::Encoded encode(const VolumeView& image, const ccsds122::Params& params, ThreadPool& pool);
  /// Throws like ccsds122::decode. Streams of few segments decode faster on a CPU.
  ccsds122::Decoded decode(std::span<const std::byte> stream, const ccsds122::DecodeParams& params, ThreadPool& pool);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Median seconds of the stages on a device; the picture is in device memory, except for the transfers.
struct Ccsds122Times {
  double upload = 0, download = 0;           ///< of the picture, page-locked memory
  double forward = 0, coder = 0;             ///< transform; everything after it up to the bytes in device memory
  double encode = 0;                         ///< the two together
  double parse = 0, place = 0, inverse = 0;  ///< segments to planes, planes to coefficients, transform
  std::size_t bytes = 0;
  bool exact = false;  ///< stream and picture are the CPU's
};
/// Codes and decodes `image` with `params`, `repeat` times after a warm-up, and compares with codec/still.
Ccsds122Times measure_ccsds122(int device, const VolumeView& image, const ccsds122::Params& params, int repeat,
                               ThreadPool& pool);

/// Median seconds of the float transform of a width x height picture of 4-byte floats in device memory.
struct Ccsds122TransformTimes {
  double upload = 0, forward = 0, inverse = 0, download = 0;
};
Ccsds122TransformTimes measure_ccsds122_transform(int device, int width, int height, ccsds122::Dwt dwt, int repeat);

}  // namespace trivelet::gpu
