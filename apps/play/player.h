// trivelet play: the interface between the command and the module that shows pictures and plays sound (player.cpp).
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trivelet/codec.h"

namespace trivelet::play {

/// What of a stream is decoded; it may change at any moment.
struct Quality {
  int layers = 0;    ///< 0 = all
  int reduce = 0;    ///< times the size is halved
  int temporal = 0;  ///< times the frame rate is halved
  bool operator==(const Quality&) const = default;
};

struct Options {
  std::string input;
  std::string compare;  ///< a second stream beside it; "" = none
  Quality quality;
  double start = 0;    ///< seconds after the first frame
  bool budget = true;  ///< reduce the quality if there is not enough time
  bool mute = false;
  int sound = 0;      ///< track to begin with, from 1; 0 = the best
  int subtitles = 0;  ///< track to begin with, from 1; 0 = none
  bool full_screen = false;
  bool loop = false;
  bool stats = false;        ///< say at the end how many frames were late
  bool headless = false;     ///< no window
  double screenshot_at = 0;  ///< headless: seconds after the first frame
  std::string screenshot;    ///< file for it
  double quit_after = 0;     ///< seconds of play; 0 = at the end, or when asked to
  bool overlay = false;      ///< begin with the overlay shown, screenshots with it
  bool overwrite = false;
  DecoderParams decoding;
  std::shared_ptr<const Backend> backend;
  int gpu = -1;  ///< the GPU in whose memory the backend leaves frames; -1: host memory
};

/// A volume as it is shown: values in scaled units, x fastest.
struct Volume {
  std::array<int, 3> size{};  ///< along x, y, z
  std::array<double, 3> spacing{1, 1, 1};
  std::vector<float> values;
};

struct VolumeOptions {
  std::string input;
  /// Decodes the volume; of Quality it heeds layers and reduce. Called by one thread at a time.
  std::function<Volume(const Quality&)> load;
  Quality quality;
  int layers = 1;
  int most_reduce = 0;
  std::array<int, 3> size{};                    ///< of the whole volume, along x, y, z
  std::optional<std::array<int, 3>> place;      ///< where the planes cut, voxels of the whole volume; otherwise the
                                                ///< middle
  std::optional<std::array<double, 2>> window;  ///< values that are black and white; otherwise the least and largest
  bool headless = false;
  std::string screenshot;
  bool overlay = false;
  bool overwrite = false;
  bool full_screen = false;
  double quit_after = 0;
};

struct Player {
  /// Return when the window was closed. Throw Error.
  void (*run)(const Options& options);
  void (*show)(const VolumeOptions& options);
};

extern "C" const Player trivelet_play;

}  // namespace trivelet::play
