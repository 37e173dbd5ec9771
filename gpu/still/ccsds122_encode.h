// The CCSDS 122.0 encoder on the device: the bytes of codec/still, every parameter.
//
// A picture goes through the transform, then every block becomes bit planes. Gaggles of 16 blocks are coded in
// parallel, twice: once for the lengths of their codes, whose prefix sums are the positions in the stream, and once to
// write the codes there. Only a limit for the whole stream (total_bytes) needs the host in the middle.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "codec/still/ccsds122/ccsds122.h"
#include "codec/still/ccsds122/ccsds122_plan.h"
#include "gpu/device/device.h"
#include "gpu/still/ccsds122_dwt.h"

namespace trivelet::gpu {

/// Encodes pictures in device memory of one size and set of parameters. All memory is allocated at construction. One
/// picture at a time; not thread-safe.
class Ccsds122Encoder {
 public:
  /// `width` and `height` of the picture as given, before transposing. Throws like ccsds122::encode, and Unsupported if
  /// the device has too little memory.
  Ccsds122Encoder(int width, int height, SampleType format, const ccsds122::Params& params);
  ~Ccsds122Encoder();
  Ccsds122Encoder(Ccsds122Encoder&&) noexcept;
  Ccsds122Encoder& operator=(Ccsds122Encoder&&) noexcept;

  /// Gives the work to the stream. The picture has to stay until finish().
  void start(const DevicePicture& picture, const Stream& stream);
  /// Waits for the stream; the bytes are then in device memory, ready for the next start(). Throws BadArgument for
  /// samples out of range and when total_bytes is too small.
  void finish(const Stream& stream);

  const std::byte* bytes() const;  ///< device memory, after finish()
  std::size_t size() const;
  const std::vector<std::uint32_t>& segment_bytes() const;

  /// For measurements: only the transform of start(), or only the coding of its result.
  void start_transform(const DevicePicture& picture, const Stream& stream);
  void start_coding(const Stream& stream);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace trivelet::gpu
