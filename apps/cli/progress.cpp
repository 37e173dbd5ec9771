#include "apps/cli/progress.h"

#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include <cstdio>

#include "apps/cli/json.h"

namespace trivelet::cli {

Progress::Progress(const Common& common, std::string task, std::uint64_t total)
    : task_(std::move(task)), total_(total) {
  const bool terminal = isatty(STDERR_FILENO) != 0;
  if (common.progress == "json") {
    mode_ = Mode::kJson;
  } else if (common.progress == "always" || (common.progress == "auto" && terminal && !common.quiet)) {
    mode_ = terminal ? Mode::kTerminal : Mode::kLines;
  }
}

Progress::~Progress() { erase(); }

void Progress::update(std::uint64_t frames) {
  frames_ = frames;
  if (mode_ == Mode::kNone) return;
  const double now = clock_.seconds();
  const double pause = mode_ == Mode::kTerminal ? 0.1 : 0.5;
  if (drawn_ && now - last_ < pause) return;
  last_ = now;
  draw();
}

void Progress::finish() {
  if (mode_ == Mode::kJson) draw();
  erase();
}

void Progress::erase() {
  if (mode_ == Mode::kTerminal && drawn_) std::fputs("\r\033[K", stderr);
  drawn_ = false;
}

void Progress::draw() {
  const double seconds = clock_.seconds();
  const double rate = seconds > 0 ? static_cast<double>(frames_) / seconds : 0.0;
  drawn_ = true;
  if (mode_ == Mode::kJson) {
    Json json(true);
    json.begin_object();
    json.member("event", "progress");
    json.member("task", task_);
    json.member("frames", frames_);
    if (total_ > 0) json.member("total", total_);
    json.member("seconds", seconds);
    json.member("frames_per_second", rate);
    json.end_object();
    std::fputs(json.text().c_str(), stderr);
    return;
  }
  std::string line = fmt::format("{}: {}", task_, frames_);
  if (total_ > 0)
    line +=
        fmt::format("/{} frames, {:.0f} %", total_, 100.0 * static_cast<double>(frames_) / static_cast<double>(total_));
  else
    line += " frames";
  line += fmt::format(", {:.1f} frames/s", rate);
  if (total_ > frames_ && rate > 0)
    line += fmt::format(", {:.0f} s left", static_cast<double>(total_ - frames_) / rate);
  std::fputs(mode_ == Mode::kTerminal ? ("\r" + line + "\033[K").c_str() : (line + "\n").c_str(), stderr);
}

}  // namespace trivelet::cli
