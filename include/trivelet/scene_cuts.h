// Where the scene changes, so that a new GOP begins there: a wavelet along time across a cut smears both scenes.
#pragma once

#include <functional>

#include "trivelet/types.h"

namespace trivelet {

/// Where frames come from: fills frame `index` of `gop`, its samples and its time. False when none was left.
using FrameInput = std::function<bool(Gop& gop, int index)>;

/// Tells the first frames of scenes. A sparse grid of samples of the first component is compared with the frame before:
/// at a cut their histogram changes, and they differ by much more than from frame to frame within the scene.
class SceneCuts {
 public:
  explicit SceneCuts(const PixelFormat& format) : format_(format) {}
  /// True when a scene begins at frame `index` >= 1 of `gop`; `index - 1` is the frame before. Ask for every frame in
  /// order, for what is usual in a scene is learnt from its frames.
  bool begins_at(const Gop& gop, int index);

 private:
  PixelFormat format_;
  double usual_ = 0;  // mean difference from frame to frame in this scene
  int known_ = 0;     // of so many frames
};

/// Fills GOPs with frames and ends them before a cut.
class SceneReader {
 public:
  SceneReader(const VideoInfo& info, FrameInput input);
  /// Fills `gop` up to its capacity or the next cut. False when no frame was left.
  bool read(Gop& gop);
  int cuts() const { return cuts_; }

 private:
  FrameInput input_;
  SceneCuts detector_;
  Gop held_;  // the first frame of the next scene
  bool holds_ = false;
  int cuts_ = 0;
};

}  // namespace trivelet
