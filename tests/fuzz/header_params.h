// The parameters of the streams whose GOP headers and chunks header_fuzz reads, for it and its seeds.
#pragma once

#include "codec/encoder/encoder_params.h"

namespace trivelet::fuzz {

inline CodingParams header_params(bool dyadic, Profile profile) {
  CodingParams p;
  p.motion = Motion::kOff;
  p.gop_frames = 5;
  p.threads = 1;
  p.block_size = 32;
  p.layers = 2;
  p.temporal_levels = 2;
  p.spatial_levels = 2;
  p.profile = profile;
  p.layout = dyadic ? Layout::kDyadic : Layout::kT2d;
  return p;
}

}  // namespace trivelet::fuzz
