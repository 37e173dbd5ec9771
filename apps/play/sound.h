// The sound of a film: decoded by libavcodec, played by SDL, and the clock that pictures follow.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace trivelet::play {

class Sound {
 public:
  /// The best sound track of `path`; null if there is none or no device plays it. `offset`: seconds to add to the
  /// file's times to get those of the stream.
  static std::unique_ptr<Sound> open(const std::string& path, double offset);
  ~Sound();
  Sound(const Sound&) = delete;
  Sound& operator=(const Sound&) = delete;

  /// Plays from a time of the stream.
  void seek(double time);
  void pause(bool paused);
  void mute(bool muted);
  bool muted() const;
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
