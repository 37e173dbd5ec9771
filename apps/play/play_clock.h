// The clock of a film that is played. The sound leads it. Without sound (none in the file, another speed, paused) the
// computer's clock is used.
#pragma once

#include <chrono>
#include <memory>

#include "apps/play/sound.h"

namespace trivelet::play {

/// Times are seconds of the stream's clock.
class PlayClock {
 public:
  /// Paused at `begin`, the time of the first frame; `last` is that of the last frame.
  PlayClock(double begin, double last) : begin_(begin), last_(last), position_(begin) {}

  void set_sound(std::unique_ptr<Sound> sound) { sound_ = std::move(sound); }
  const Sound* sound() const { return sound_.get(); }  ///< null if there is none
  void toggle_mute();
  void set_volume(double volume);
  /// Decodes sound; to be called some ten times a second.
  void fill_sound();

  double now() const;
  double position() const { return position_; }  ///< the time when the clock was changed last
  double speed() const { return speed_; }        ///< 1: as recorded
  bool is_paused() const { return paused_; }
  bool is_waiting() const { return waiting_; }    ///< until start()
  bool is_dragging() const { return dragging_; }  ///< the user moves the time line
  bool is_standing() const { return paused_ || dragging_; }
  bool is_running() const { return !paused_ && !waiting_ && !dragging_; }

  /// Goes to a time between the first and the last frame, and waits there until start(). Returns that time.
  double seek(double time);
  void start();
  /// Goes to a time without waiting.
  void hold(double time);
  /// If the sound leads, makes `time` the position from which the computer's clock takes over.
  void follow(double time);
  void set_paused(bool paused);
  void set_dragging(bool dragging);
  /// Limited to 0.1..8, close to 1 made 1.
  void set_speed(double speed);

 private:
  using Time = std::chrono::steady_clock;

  bool sound_leads() const { return sound_ && speed_ == 1 && !sound_->ended(); }

  const double begin_;
  const double last_;
  std::unique_ptr<Sound> sound_;
  double position_;  ///< the time at `since_`
  Time::time_point since_ = Time::now();
  double speed_ = 1;
  bool paused_ = true;
  bool waiting_ = false;
  bool dragging_ = false;
};

}  // namespace trivelet::play
