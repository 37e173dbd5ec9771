// Where the scene changes, so that a new GOP begins there: a wavelet along time across a cut smears both scenes.
#pragma once

#include <array>

#include "apps/video/video.h"

namespace trivelet::cli {

/// Fills GOPs from a video and ends them before a cut. Cuts are found on a sparse grid of the first component: the
/// histogram changes and most samples differ, much more than from frame to frame before.
class SceneReader {
 public:
  /// Both must outlive it. Without `cuts` GOPs are filled to the brim.
  SceneReader(VideoInput& video, bool cuts);
  /// False when no frame was left.
  bool read(Gop& gop);
  int cuts() const { return cuts_; }

 private:
  bool is_cut(const Gop& gop, int frame);

  VideoInput& video_;
  bool enabled_;
  Gop held_;  // the first frame of the next scene
  bool holds_ = false;
  double usual_ = 0;  // mean difference from frame to frame in this scene
  int known_ = 0;
  int cuts_ = 0;
};

}  // namespace trivelet::cli
