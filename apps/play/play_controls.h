// The controls over the picture: the time line, and sliders for the quality or the comparison of two streams.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "apps/play/play_clock.h"
#include "apps/play/video_view.h"

namespace trivelet::play {

class PlayControls {
 public:
  PlayControls(const Quality& quality, bool pinned) : quality_(quality), pinned_(pinned) {}

  /// The controls are visible for a while after the mouse moved, and always if they are pinned.
  bool are_visible() const;
  void note_mouse() { mouse_moved_ = Time::now(); }
  void toggle_pinned() { pinned_ = !pinned_; }
  void toggle_keys() { keys_ = !keys_; }
  /// Shows a few words for a moment.
  void say(std::string words);
  /// Describes what is shown whether the controls are visible or not: the words, the keys.
  void describe_words() const;
  bool has_words() const;
  /// The height of the controls in the window.
  static float height();

  /// The quality to decode: the one of the sliders or, while the time line is dragged, a fast one.
  Quality quality(const FrameStore& store, bool dragging) const;
  const Quality& chosen_quality() const { return quality_; }
  double split() const { return split_; }  ///< the part of the width that shows the first of two streams
  void set_split(double split);

  /// What the user does with the time line.
  struct TimeLine {
    std::optional<double> seek{};
    std::optional<double> volume{};
    bool dragging = false;
  };
  /// Describes the controls to Dear ImGui. `compares`: two streams are shown. `late`: frames that were late.
  TimeLine describe(const PlayClock& clock, const VideoView& view, bool compares, std::uint64_t late);

 private:
  using Time = std::chrono::steady_clock;

  static TimeLine describe_times(const PlayClock& clock, const VideoView& view);
  void describe_sliders(const FrameStore& store, bool compares);
  void describe_figures(double time, const VideoView& view, bool dragging, std::uint64_t late);

  Quality quality_;
  bool pinned_;
  bool keys_ = false;
  std::string words_{};
  Time::time_point said_{};
  double split_ = 0.5;
  Time::time_point mouse_moved_ = Time::now();
  double decode_seconds_ = 0;  ///< of the GOP that was shown last
};

}  // namespace trivelet::play
