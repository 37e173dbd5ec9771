// The estimate that chooses the temporal levels of a GOP (codec/motion/level_choice.h), on the device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "codec/base/stream_header.h"
#include "codec/motion/level_choice.h"
#include "codec/motion/level_estimate.h"
#include "gpu/device/device.h"

namespace trivelet::gpu {

/// Makes the choices of choose_levels(). Used by one thread at a time.
class DeviceLevelChoice {
 public:
  DeviceLevelChoice(const StreamHeader& header, int device);
  ~DeviceLevelChoice() { forget(cudaStreamSynchronize(stream_.get())); }
  DeviceLevelChoice(const DeviceLevelChoice&) = delete;
  DeviceLevelChoice& operator=(const DeviceLevelChoice&) = delete;

  /// Waits for the result. Samples in memory that is not page-locked take longer.
  LevelChoice choose(const Gop& gop, int most);
  /// Most memory of the device for a stream.
  static std::size_t device_bytes(const StreamHeader& header);

 private:
  struct Sizes {
    explicit Sizes(const StreamHeader& header);
    int factor, height, width, rows, columns;  // of reduced pictures, in samples and blocks
    std::size_t frame_bytes, reduced_samples;  // of the first component
    int levels;                                // whose distance fits into a GOP
  };

  template <class T>
  void reduce(int frame, int of, const Gop& gop);
  void reduce(int frame, int of, const Gop& gop);

  StreamHeader header_;
  int device_;
  Sizes sizes_;
  DeviceBuffer<std::byte> samples_;                  // of a few frames
  DeviceBuffer<std::int16_t> pictures_;              // [frame]
  DeviceBuffer<level_estimate::LostContrast> lost_;  // [level]
  PinnedBuffer<level_estimate::LostContrast> host_lost_;
  Stream stream_;  // last: the others are used until it ends
};

}  // namespace trivelet::gpu
