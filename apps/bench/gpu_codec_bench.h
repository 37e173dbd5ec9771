// How fast the codec is on a GPU: GOPs from page-locked memory to chunks in host memory, and back.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "gpu/pipeline/stage_times.h"
#include "trivelet/codec.h"

namespace trivelet::gpu {

/// One direction with a number of GOPs in flight. Medians over the repeats.
struct CodecFigure {
  std::string way;  ///< "encode", "decode"
  int slots = 0;    ///< 1: one after the other
  double frames_per_second = 0;
  double milliseconds = 0;  ///< of a GOP
  StageTimes alone;         ///< of a GOP alone on the device; zeros if `slots` has no 1
  double longest_stage() const;
};

struct CodecFigures {
  std::vector<CodecFigure> rows;
  double bits_per_pixel = 0;
  std::size_t device_bytes = 0;  ///< with the most slots
  bool identical = false;        ///< bytes and samples equal those of the CPU
};

struct CodecBenchOptions {
  int device = 0;
  int threads = 0;  ///< that write and read chunks
  int gops = 40;    ///< per run, at least six for every slot; the clip's are gone through again and again
  int repeat = 5;
  std::vector<int> slots{1, 2, 3};
  bool compare = true;  ///< with the CPU, once
  /// Called before a run is timed and at its end, within its time. With several devices it waits for all of them.
  std::function<void()> in_step = [] {};
};

/// `clip`: GOPs of equal length.
CodecFigures bench_codec(const VideoInfo& info, const std::vector<Gop>& clip, const EncoderParams& params,
                         const CodecBenchOptions& options);

}  // namespace trivelet::gpu
