// Finds the temporal and spatial wavelets, levels and GOP length for a video by coding its beginning.
#pragma once

#include <functional>

#include "trivelet/codec.h"
#include "trivelet/scene_cuts.h"

namespace trivelet {

/// The choices that the search must take from the parameters.
struct FixedStructure {
  bool temporal_wavelet = false;
  bool spatial_wavelet = false;
  bool levels = false;  ///< temporal and spatial levels
  bool gop_frames = false;
  bool plain_gops = false;  ///< with motion: GOPs do not end at scene cuts
};

/// One structure that was tried.
struct StructureTrial {
  Wavelet temporal = Wavelet::kCdf97;
  Wavelet spatial = Wavelet::kCdf97;
  int temporal_levels = 0;  ///< -1: each GOP chooses
  int spatial_levels = 0;
  int gop_frames = 0;
  double cost = 0;  ///< log2 of the bytes at equal quality; lower is better
};

/// Codes the first frames of `input` (at most 65) with one structure after another, on the CPU, and returns `params`
/// with the cheapest one. Large pictures are cropped to their middle. `on_trial` receives each result. It takes as long
/// as coding these frames about fifteen times; with motion, where only levels are tried, six times. If there is no
/// frame, `params` is returned unchanged.
EncoderParams search_structure(const VideoInfo& info, const FrameInput& input, EncoderParams params,
                               const FixedStructure& fixed = {},
                               const std::function<void(const StructureTrial&)>& on_trial = nullptr);

}  // namespace trivelet
