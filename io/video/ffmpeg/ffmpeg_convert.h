// Pictures of one size from one pixel format to another by swscale. Internal to io.
#pragma once

#include <string>

#include "io/video/ffmpeg/ffmpeg_common.h"

namespace trivelet::io {

class Converter {
 public:
  /// Pictures of `from`, the size and the colour tags of `info`, become `to`. The tags are then those of what comes
  /// out:
  /// RGB has full range, YCbCr and grey of RGB limited range; a range between the two kinds stays unless
  /// `full_range` says that the output has no other. `name` begins messages.
  Converter(AVPixelFormat from, AVPixelFormat to, VideoInfo& info, bool full_range, const std::string& name);
  /// Valid until the next call.
  const AVFrame& convert(const AVFrame& frame);

 private:
  ScalerPtr scaler_;
  FramePtr picture_;
};

}  // namespace trivelet::io
