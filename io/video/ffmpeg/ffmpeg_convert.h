// Converts pictures of one size from one pixel format to another by swscale. Internal to io.
#pragma once

#include <string>

#include "io/video/ffmpeg/ffmpeg_common.h"

namespace trivelet::io {

class Converter {
 public:
  /// Converts pictures of `from`, with the size and the colour tags of `info`, to `to`. The tags are then those of the
  /// output: RGB has full range, YCbCr and grey made from RGB have limited range. Between YCbCr and grey the range
  /// stays, unless `full_range` says that the output has no other. `name` begins messages.
  Converter(AVPixelFormat from, AVPixelFormat to, VideoInfo& info, bool full_range, const std::string& name);
  /// Valid until the next call.
  const AVFrame& convert(const AVFrame& frame);

 private:
  ScalerPtr scaler_;
  FramePtr picture_;
};

}  // namespace trivelet::io
