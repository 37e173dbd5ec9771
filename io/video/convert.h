// Frames in another pixel format, for outputs that hold no such samples as there are. FFmpeg's swscale does the work.
#pragma once

#include <functional>
#include <memory>

#include "trivelet/types.h"

namespace trivelet::io {

class FrameConverter {
 public:
  virtual ~FrameConverter() = default;
  /// The description of the output: its format and colour tags differ from those of the input.
  virtual const VideoInfo& info() const = 0;
  /// Puts frame `index` of `from` into frame `to_index` of `to`, its time included.
  virtual void convert(const Gop& from, int index, Gop& to, int to_index) = 0;
};

/// True if an output takes frames of such samples without conversion.
using Holds = std::function<bool(const VideoInfo&)>;

}  // namespace trivelet::io
