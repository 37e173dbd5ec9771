// Scene cut detection. A new GOP begins at a cut, because a temporal wavelet across it would smear both scenes.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "trivelet/types.h"

namespace trivelet {

/// Reads a frame: fills samples and time of frame `index` of `gop`. False at the end of the input.
using FrameInput = std::function<bool(Gop& gop, int index)>;

/// Reads several frames at once.
struct FramesInput {
  /// Fills up to `count` frames of `gop` from `first` on. Returns how many; fewer than `count` only at the end.
  std::function<int(Gop& gop, int first, int count)> read;
  /// Gives the last `count` frames back to be read again; false if it cannot. Null: it never can, and frames are read
  /// one by one.
  std::function<bool(int count)> unread;
};

/// Detects the first frames of scenes. It compares a sparse grid of samples of the first component with the frame
/// before: at a cut their histogram changes, and the difference is much larger than usual within the scene.
class SceneCuts {
 public:
  explicit SceneCuts(const PixelFormat& format) : format_(format) {}
  struct Change {
    double difference = 0;  ///< mean absolute difference as a share of the full range
    double moved = 0;       ///< share of samples that changed their histogram bin
  };
  /// The rows of the first component that are sampled: `first`, then every `step`-th.
  struct Rows {
    int first = 0;
    int step = 1;
  };
  static Rows rows(int height);
  /// Bins of the histogram. A bin is wider than noise and slow changes of light, so that only another picture fills
  /// other bins.
  static constexpr int kBins = 32;
  /// What is compared of a frame.
  struct Look {
    std::vector<int> samples;       ///< of the grid, from 0
    std::array<int, kBins> bins{};  ///< how many of them each bin of the histogram has
  };
  /// Takes the samples of frame `index` and counts them. Any number of threads may call it.
  void look_at(const Gop& gop, int index, Look& to) const;
  /// Compares a frame with the one before it.
  Change compare(const Look& before, const Look& after) const;
  /// Whether such a change begins a scene, compared with what is usual in this one.
  bool is_cut(const Change& change) const;
  /// As is_cut(), and updates the usual difference. Call it for every frame in order.
  bool judge(const Change& change);

 private:
  PixelFormat format_;
  double usual_ = 0;  // mean difference between successive frames of this scene
  int known_ = 0;     // number of frames in that mean
};

/// Fills GOPs with frames and ends them before a cut.
class SceneReader {
 public:
  SceneReader(const VideoInfo& info, FrameInput input);
  /// `threads` compare frames; 0 = all cores.
  SceneReader(const VideoInfo& info, FramesInput input, int threads);
  ~SceneReader();
  /// Fills `gop` up to its capacity or the next cut, and marks it if it begins a scene. False when no frame is left.
  bool read(Gop& gop);
  int cuts() const { return cuts_; }
  /// Time spent on detection by the reading thread, by the clock.
  double seconds() const { return seconds_; }

 private:
  int take_held(Gop& gop);
  void look_at(const Gop& gop, int first, int end);
  SceneCuts::Look& look_of(int frame) { return looks_[static_cast<std::size_t>(frame)]; }
  int find_cut(int first, int end);
  bool begins_behind_last();
  void give_back(const Gop& gop, int first, int end);

  struct Threads;
  FramesInput input_;
  VideoInfo info_;
  SceneCuts detector_;
  std::unique_ptr<Threads> threads_;
  std::optional<Gop> held_;  // the first frames of the next scene, if the input cannot take them back
  int batch_ = 1;            // number of frames to read next
  int cuts_ = 0;
  double seconds_ = 0;
  bool cut_before_ = false;             // whether the next frame begins a scene
  std::vector<SceneCuts::Look> looks_;  // of the GOP's frames
  SceneCuts::Look last_;                // of the previous GOP's last frame
};

}  // namespace trivelet
