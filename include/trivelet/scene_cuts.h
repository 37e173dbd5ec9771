// Where the scene changes, so that a new GOP begins there: a wavelet along time across a cut smears both scenes.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "trivelet/types.h"

namespace trivelet {

/// Where frames come from: fills frame `index` of `gop`, its samples and its time. False when none was left.
using FrameInput = std::function<bool(Gop& gop, int index)>;

/// The same for several frames at once.
struct FramesInput {
  /// Fills up to `count` frames of `gop` from `first` on. Returns how many, fewer only at the end.
  std::function<int(Gop& gop, int first, int count)> read;
  /// Gives back the last `count` frames, to be read again; false if it cannot. Null: it never can, and frames are asked
  /// for one by one.
  std::function<bool(int count)> unread;
};

/// Tells the first frames of scenes. A sparse grid of samples of the first component is compared with the frame before:
/// at a cut their histogram changes, and they differ by much more than from frame to frame within the scene.
class SceneCuts {
 public:
  explicit SceneCuts(const PixelFormat& format) : format_(format) {}
  struct Change {
    double difference = 0;  ///< mean, of the full range
    double moved = 0;       ///< share of samples in other bins of the histogram
  };
  /// Frame `index` >= 1 of `gop` beside the one before; by any number of threads.
  Change compare(const Gop& gop, int index) const;
  /// The rows of the first component that are looked at: from the first, each so many behind the one before.
  struct Rows {
    int first = 0;
    int step = 1;
  };
  static Rows rows(int height);
  /// The samples of frame `index` that are compared.
  std::vector<int> look_at(const Gop& gop, int index) const;
  Change compare(const std::vector<int>& before, const std::vector<int>& after) const;
  /// Whether a scene begins with such a change, by what is usual in this one.
  bool is_cut(const Change& change) const;
  /// True when a scene begins with it. Ask for every frame in order, for what is usual in a scene is learnt from its
  /// frames.
  bool judge(const Change& change);

 private:
  PixelFormat format_;
  double usual_ = 0;  // mean difference from frame to frame in this scene
  int known_ = 0;     // of so many frames
};

/// Fills GOPs with frames and ends them before a cut.
class SceneReader {
 public:
  SceneReader(const VideoInfo& info, FrameInput input);
  /// `threads` look at the frames; 0 = all cores.
  SceneReader(const VideoInfo& info, FramesInput input, int threads);
  ~SceneReader();
  /// Fills `gop` up to its capacity or the next cut, and tells it whether it begins behind one. False when no frame was
  /// left.
  bool read(Gop& gop);
  int cuts() const { return cuts_; }
  /// What looking for cuts took, by the clock of the thread that reads.
  double seconds() const { return seconds_; }

 private:
  int take_held(Gop& gop);
  int find_cut(const Gop& gop, int first, int end);
  bool begins_behind_last(const Gop& gop);
  void give_back(const Gop& gop, int first, int end);

  struct Threads;
  FramesInput input_;
  VideoInfo info_;
  SceneCuts detector_;
  std::unique_ptr<Threads> threads_;
  std::optional<Gop> held_;  // the first frames of the next scene, where the input does not take them back
  int batch_ = 1;            // frames to ask for next
  int cuts_ = 0;
  double seconds_ = 0;
  bool cut_before_ = false;  // the next frame
  std::vector<int> last_;    // of the last frame of the GOP before, what is compared
};

}  // namespace trivelet
