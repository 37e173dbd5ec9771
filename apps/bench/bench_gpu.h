// trivelet bench gpu: the GPU's transform and codec measured; a table, CSV, a plot.
#pragma once

#include <string>
#include <vector>

#include "apps/cli/backends.h"

namespace trivelet::cli {

struct GpuBench {
  std::string device;  ///< of several GPUs all at once, with as many threads each
  int threads = 0;
  int repeat = 5;
  std::string csv;             ///< file to write, or none
  std::string plot;            ///< gnuplot script to write, or none; it reads the CSV file
  bool codec_only = false;     ///< without the transforms
  std::vector<int> in_flight;  ///< GOPs; empty: the defaults of the profile
};

/// `clip`: GOPs of equal length. Prints a table on standard output.
int bench_gpu(const GpuBench& bench, const VideoInfo& info, const std::vector<Gop>& clip, const EncoderParams& params);

}  // namespace trivelet::cli
