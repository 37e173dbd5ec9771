// What was typed for trivelet encode, of videos and of volumes.
#pragma once

#include <string>

#include "apps/video/batch.h"
#include "apps/video/video.h"
#include "apps/volume/volume.h"
#include "trivelet/parameters.h"

namespace trivelet::cli {

struct EncodeOptions {
  std::string device = "auto";
  std::string gpu_memory;
  std::string input;
  std::string output;
  std::string use;  ///< --for
  std::string frames;
  bool joinable = false;
  std::string pin_from;
  bool resume = false;
  bool verify = false;
  std::string hwaccel = "none";
  InputOptions reading;
  CodingOptions coding;
  FilmOptions film;
  std::string voxel_type;
  SeriesChoice series;
  BatchOptions batch;
  std::string transform = "auto";
  // Of volumes, as all below.
  double max_error = -1;  // < 0 = not given
  double max_error_hu = -1;
  std::string fill_values;  // "-9999,1e20"
  double ratio = 0;         // 0 = not given
  int slab = 0;
  std::string access;  // empty = not given
  bool no_verify = false;
  bool verify_full = false;
};

/// The defaults of --for, for options that were not typed. Throws BadArgument for typed ones that contradict it.
void take_use(const Command& app, EncodeOptions& options);

/// Of --preset.
inline Effort effort_of(const EncodeOptions& options) {
  return options.coding.preset == "fast"   ? Effort::kFast
         : options.coding.preset == "slow" ? Effort::kSlow
                                           : Effort::kMedium;
}

}  // namespace trivelet::cli
