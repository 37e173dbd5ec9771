// Measures wall-clock seconds since a moment, or adds the seconds of a scope to a total.
#pragma once

#include <chrono>

namespace trivelet {

class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// Adds the seconds of a scope to a total.
class ScopeTimer {
 public:
  explicit ScopeTimer(double& total) : total_(total) {}
  ~ScopeTimer() { total_ += watch_.seconds(); }
  ScopeTimer(const ScopeTimer&) = delete;
  ScopeTimer& operator=(const ScopeTimer&) = delete;

 private:
  double& total_;
  Stopwatch watch_;
};

}  // namespace trivelet
