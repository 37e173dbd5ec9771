// Which temporal and spatial transforms and which GOP length suit a video, found by coding its beginning.
#pragma once

#include <functional>

#include "trivelet/codec.h"
#include "trivelet/scene_cuts.h"

namespace trivelet {

/// What the search may not choose, but has to take from the parameters.
struct FixedStructure {
  bool temporal_wavelet = false;
  bool spatial_wavelet = false;
  bool levels = false;  ///< temporal and spatial ones
  bool gop_frames = false;
};

/// One structure that was tried.
struct StructureTrial {
  Wavelet temporal = Wavelet::kCdf97;
  Wavelet spatial = Wavelet::kCdf97;
  int temporal_levels = 0;
  int spatial_levels = 0;
  int gop_frames = 0;
  double cost = 0;  ///< log2 of the bytes for a picture of the same quality; lower is better
};

/// Codes the first frames of `input` (65 at most) with one structure after another, on the CPU, and returns `params`
/// with the one that needs the fewest bytes for what it brings. `on_trial` sees them as they are tried. Takes as long
/// as coding about fifteen times those frames, of large pictures their middle; with motion, where levels alone are
/// tried, five times. Without a frame `params` come back as they are.
EncoderParams search_structure(const VideoInfo& info, const FrameInput& input, EncoderParams params,
                               const FixedStructure& fixed = {},
                               const std::function<void(const StructureTrial&)>& on_trial = nullptr);

}  // namespace trivelet
