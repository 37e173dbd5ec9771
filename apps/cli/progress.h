// Progress on standard error: a line that redraws itself on a terminal, whole lines elsewhere, or JSON objects.
#pragma once

#include <cstdint>
#include <string>

#include "apps/cli/cli.h"
#include "codec/stopwatch.h"

namespace trivelet::cli {

class Progress {
 public:
  /// `total` frames, 0 = unknown.
  Progress(const Common& common, std::string task, std::uint64_t total);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// `frames` done so far. Draws a few times a second at most.
  void update(std::uint64_t frames);
  /// Takes the line off a terminal; in JSON says the final count. The destructor only cleans the terminal.
  void finish();

 private:
  enum class Mode { kNone, kTerminal, kLines, kJson };
  void draw();
  void erase();

  Mode mode_ = Mode::kNone;
  std::string task_;
  std::uint64_t total_;
  std::uint64_t frames_ = 0;
  bool drawn_ = false;
  double last_ = 0;
  Stopwatch clock_;
};

}  // namespace trivelet::cli
