#include "apps/play/play_clock.h"

#include <algorithm>
#include <cmath>

namespace trivelet::play {

void PlayClock::toggle_mute() {
  if (sound_) sound_->mute(!sound_->muted());
}

void PlayClock::set_volume(double volume) {
  if (!sound_) return;
  sound_->set_volume(volume);
  if (volume > 0) sound_->mute(false);
}

void PlayClock::fill_sound() {
  if (sound_ && !is_standing()) sound_->fill();
}

double PlayClock::now() const {
  if (!is_running()) return position_;
  if (sound_leads()) {
    const double heard = sound_->now();
    if (std::isfinite(heard)) return heard;
  }
  return position_ + std::chrono::duration<double>(Time::now() - since_).count() * speed_;
}

double PlayClock::seek(double time) {
  time = std::clamp(time, begin_, last_);
  hold(time);
  if (sound_) {
    sound_->pause(true);
    sound_->seek(time);
  }
  waiting_ = true;
  return time;
}

void PlayClock::start() {
  hold(position_);
  waiting_ = false;
  if (sound_) sound_->pause(paused_ || speed_ != 1 || dragging_);
}

void PlayClock::hold(double time) {
  position_ = time;
  since_ = Time::now();
}

void PlayClock::follow(double time) {
  if (sound_leads()) hold(time);
}

void PlayClock::set_paused(bool paused) {
  hold(now());
  paused_ = paused;
  if (sound_ && !waiting_) sound_->pause(paused || speed_ != 1);
}

void PlayClock::set_dragging(bool dragging) {
  if (dragging && !dragging_ && sound_) sound_->pause(true);
  dragging_ = dragging;
}

void PlayClock::set_speed(double speed) {
  speed_ = std::clamp(speed, 0.1, 8.0);
  if (std::abs(speed_ - 1) < 0.05) speed_ = 1;
}

}  // namespace trivelet::play
