// Progress on standard error: a line that redraws itself on a terminal, whole lines elsewhere, or JSON objects. A
// thread draws it, so that it moves before the first GOP is done and after the last one.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>

#include "apps/cli/cli.h"
#include "codec/threads/stopwatch.h"
#include "codec/threads/worker.h"

namespace trivelet::cli {

class Progress {
 public:
  /// `total` frames, or what else `unit` names; 0 = unknown.
  Progress(const Common& common, std::string task, std::uint64_t total, std::string unit = "frames");
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// `frames` done so far.
  void update(std::uint64_t frames) { frames_ = frames; }
  /// One more is done, by any thread.
  void add_done() { ++frames_; }
  /// Frames that were taken in so far, by any thread: more than are done.
  void add_read(int frames) { read_ += static_cast<std::uint64_t>(frames); }
  /// What is done now, if it is not the frames: "dividing bytes". A string literal.
  void stage(const char* words) { stage_ = words; }
  /// Takes the line off a terminal; in JSON says the final count. The destructor only cleans the terminal.
  void finish();

 private:
  enum class Mode { kNone, kTerminal, kLines, kJson };
  void draw_on();
  void stop();
  void draw();
  std::string line(double seconds) const;
  void erase();

  Mode mode_ = Mode::kNone;
  std::string task_, unit_;
  std::uint64_t total_;
  std::atomic<std::uint64_t> frames_ = 0;
  std::atomic<std::uint64_t> read_ = 0;
  std::atomic<const char*> stage_ = nullptr;
  bool drawn_ = false;
  bool done_ = false;
  Stopwatch clock_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Worker worker_{"progress"};  ///< last: it ends first
};

}  // namespace trivelet::cli
