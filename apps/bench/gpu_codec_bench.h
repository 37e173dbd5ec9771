// How fast the codec is on a GPU: GOPs from page-locked memory to chunks in host memory, and back.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "gpu/pipeline/stage_times.h"
#include "trivelet/codec.h"

namespace trivelet::gpu {

/// One way, with so many GOPs in flight. Medians over the repeats.
struct CodecFigure {
  std::string way;  ///< "encode", "decode"
  int slots = 0;    ///< 1: one after the other
  double frames_per_second = 0;
  double milliseconds = 0;  ///< of a GOP
  StageTimes alone;         ///< of a GOP that has the device for itself; zeros where `slots` has no 1
  double longest_stage() const;
};

struct CodecFigures {
  std::vector<CodecFigure> rows;
  double bits_per_pixel = 0;
  std::size_t device_bytes = 0;  ///< with the most slots
  bool identical = false;        ///< the bytes are the CPU's, and the samples what the CPU decodes
};

struct CodecBenchOptions {
  int device = 0;
  int threads = 0;  ///< that write and read chunks
  int gops = 40;    ///< per run, at least six for every slot; the clip's are gone through again and again
  int repeat = 5;
  std::vector<int> slots{1, 2, 3};
  bool compare = true;  ///< with the CPU, once
  /// Called before a run is timed and at its end, within its time: where several devices run at once, it waits for all.
  std::function<void()> in_step = [] {};
};

/// `clip`: GOPs of equal length.
CodecFigures bench_codec(const VideoInfo& info, const std::vector<Gop>& clip, const EncoderParams& params,
                         const CodecBenchOptions& options);

}  // namespace trivelet::gpu
