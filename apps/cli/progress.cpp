// Draws progress on standard error in a thread of its own.

#include "apps/cli/progress.h"

#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>

#include "apps/cli/json.h"

namespace trivelet::cli {

Progress::Progress(const Common& common, std::string task, std::uint64_t total, std::string unit)
    : task_(std::move(task)), unit_(std::move(unit)), total_(total) {
  const bool terminal = isatty(STDERR_FILENO) != 0;
  if (common.progress == "json") {
    mode_ = Mode::kJson;
  } else if (common.progress == "always" || (common.progress == "auto" && terminal && !common.quiet)) {
    mode_ = terminal ? Mode::kTerminal : Mode::kLines;
  }
  if (mode_ == Mode::kNone) return;
  // If no thread can be created, progress is not shown; the work goes on.
  (void)worker_.try_begin([this] { draw_on(); });
}

Progress::~Progress() {
  stop();
  erase();
}

void Progress::finish() {
  stop();
  stage_ = nullptr;
  if (mode_ == Mode::kJson) draw();
  erase();
}

// A few times a second on a terminal. Lines and objects come when something changed, and once before the first second
// is over.
void Progress::draw_on() {
  const std::chrono::milliseconds pause(mode_ == Mode::kTerminal ? 100 : 500);
  std::uint64_t seen = ~std::uint64_t{0};
  const char* stage = nullptr;
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, pause, [this] { return done_; })) {
    const std::uint64_t now = frames_ + read_;
    if (mode_ != Mode::kTerminal && now == seen && stage == stage_) continue;
    seen = now;
    stage = stage_;
    draw();
  }
}

void Progress::stop() {
  {
    const std::lock_guard lock(mutex_);
    done_ = true;
  }
  changed_.notify_all();
  worker_.wait();
}

void Progress::erase() {
  if (mode_ == Mode::kTerminal && drawn_) std::fputs("\r\033[K", stderr);
  drawn_ = false;
}

void Progress::draw() {
  const double seconds = clock_.seconds();
  drawn_ = true;
  if (mode_ == Mode::kJson) {
    Json json(true);
    json.begin_object();
    json.member("event", "progress");
    json.member("task", task_);
    if (const char* stage = stage_) json.member("stage", stage);
    json.member(unit_, frames_.load());
    if (read_ > 0) json.member(unit_ + "_read", read_.load());
    if (total_ > 0) json.member("total", total_);
    json.member("seconds", seconds);
    json.member(unit_ + "_per_second", seconds > 0 ? static_cast<double>(frames_) / seconds : 0.0);
    json.end_object();
    std::fputs(json.text().c_str(), stderr);
    return;
  }
  const std::string text = line(seconds);
  std::fputs(mode_ == Mode::kTerminal ? ("\r" + text + "\033[K").c_str() : (text + "\n").c_str(), stderr);
}

std::string Progress::line(double seconds) const {
  const std::uint64_t frames = frames_;
  const std::uint64_t read = read_;
  const double rate = seconds > 0 ? static_cast<double>(frames) / seconds : 0.0;
  std::string text = fmt::format("{}: {}", task_, frames);
  if (total_ > 0)
    text += fmt::format("/{} {}, {:.0f} %", total_, unit_,
                        100.0 * static_cast<double>(frames) / static_cast<double>(total_));
  else
    text += " " + unit_;
  if (read > frames) text += fmt::format(", {} read", read);
  if (const char* stage = stage_) return text + fmt::format(", {}, {:.0f} s", stage, seconds);
  if (frames == 0) return text + fmt::format(", {:.0f} s", seconds);
  text += fmt::format(", {:.1f} {}/s", rate, unit_);
  if (total_ > frames) text += fmt::format(", {:.0f} s left", static_cast<double>(total_ - frames) / rate);
  return text;
}

}  // namespace trivelet::cli
