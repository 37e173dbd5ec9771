// The sound of a film: decoded by libavcodec, played by SDL, and the clock that pictures follow.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace trivelet::play {

class Sound {
 public:
  /// A sound track of `path`, by its place among them, or the best one (-1); null if there is none or no device plays
  /// it. `offset`: seconds to add to the file's times to get those of the stream.
  static std::unique_ptr<Sound> open(const std::string& path, double offset, int track = -1);
  ~Sound();
  Sound(const Sound&) = delete;
  Sound& operator=(const Sound&) = delete;

  /// Plays from a time of the stream.
  void seek(double time);
  void pause(bool paused);
  void mute(bool muted);
  bool muted() const;
  /// 0 to 1.
  void set_volume(double volume);
  double volume() const;
  /// Languages and titles of the sound tracks, in the order of the file, and which of them is played.
  const std::vector<std::string>& names() const;
  int track() const;
  /// Decodes as much as is needed; to be called some ten times a second.
  void fill();
  /// The time of the stream that is heard now. Negative infinity before anything was played.
  double now() const;
  /// Nothing is left to be played.
  bool ended() const;

 private:
  Sound();
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace trivelet::play
