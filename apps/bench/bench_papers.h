// Sections of "trivelet bench papers" that stand in files of their own.
#pragma once

#include <string>
#include <vector>

#include "apps/cli/backends.h"
#include "apps/still/ccsds_image.h"
#include "codec/base/simd.h"
#include "codec/threads/parallel.h"

namespace trivelet::cli {

struct PapersDwt3d {
  std::vector<std::string> frame_sizes;  ///< "WxH"
  std::vector<int> gops;                 ///< frames
  int repeat = 3;                        ///< best of so many, but for line by line
  int gpu = -1;                          ///< its number; -1: none
  SimdLevel simd = SimdLevel::kBest;
};
/// The table of the 3D wavelet paper: every size and GOP.
void print_papers_dwt3d(const PapersDwt3d& options, ThreadPool& pool);

struct PapersEnergy {
  CcsdsImage image;
  DeviceChoice device;
  int threads = 1;     ///< of the second row
  double seconds = 2;  ///< of every row
  SimdLevel simd = SimdLevel::kBest;
};
/// Joules a megapixel of one thread, of all and of the GPU; or one line that says why they cannot be known.
void print_papers_energy(const PapersEnergy& options);

}  // namespace trivelet::cli
