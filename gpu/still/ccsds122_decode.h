// The device side of the CCSDS 122.0 decoder: a warp parses a segment, a thread restores a block.
//
// A segment's codes can only be read one after the other, so segments run in parallel: streams of many small ones
// decode fastest, a picture in one segment slower than on a CPU. The host finds where segments begin
// (codec/still/ccsds122/ccsds122_decode.cpp): from a side index, or by parsing every place that can be a beginning.
#pragma once

#include <memory>

#include "codec/still/ccsds122/ccsds122_device.h"
#include "gpu/device/device.h"
#include "gpu/still/ccsds122_dwt.h"

namespace trivelet::gpu {

/// Belongs to the device that is current when it is made, and to one thread at a time. Keeps its memory for the next
/// stream.
class Ccsds122Decoder : public ccsds122::SegmentDevice {
 public:
  Ccsds122Decoder();
  ~Ccsds122Decoder() override;

  void begin(std::span<const std::byte> bytes) override;
  void parse(std::span<ccsds122::ParseTask> tasks) override;
  void picture(const ccsds122::PictureTask& task, const MutableVolumeView& out, ThreadPool& pool,
               ccsds122::StageSeconds& seconds) override;

  /// For measurements: milliseconds of the kernels in the last parse() and picture(), without transfers.
  struct Times {
    float parse = 0, place = 0, transform = 0;
  };
  Times times() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace trivelet::gpu
