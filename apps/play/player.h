// trivelet play: what the command and the module that shows pictures and plays sound (player.cpp) say to each other.
#pragma once

#include <memory>
#include <string>

#include "trivelet/codec.h"

namespace trivelet::play {

/// What of a stream is decoded; it may change at any moment.
struct Quality {
  int layers = 0;    ///< 0 = all
  int reduce = 0;    ///< halvings of the size
  int temporal = 0;  ///< halvings of the frame rate
  bool operator==(const Quality&) const = default;
};

struct Options {
  std::string input;
  std::string compare;  ///< a second stream beside it; "" = none
  Quality quality;
  double start = 0;     ///< seconds after the first frame
  bool budget = false;  ///< decode less where the time does not suffice
  bool mute = false;
  bool full_screen = false;
  bool loop = false;
  bool stats = false;         ///< say at the end how many frames were late
  bool headless = false;      ///< no window
  double screenshot_at = -1;  ///< headless: seconds after the first frame
  std::string screenshot;     ///< file for it
  double quit_after = 0;      ///< seconds of play; 0 = at the end, or when asked to
  bool overlay = false;       ///< begin with the overlay shown, screenshots with it
  bool overwrite = false;
  DecoderParams decoding;
  std::shared_ptr<const Backend> backend;
};

struct Player {
  /// Returns when the window was closed. Throws Error.
  void (*run)(const Options& options);
};

extern "C" const Player trivelet_play;

}  // namespace trivelet::play
