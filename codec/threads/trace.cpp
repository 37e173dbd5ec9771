// Spans of all threads go to one list under a mutex. A span is recorded when it ends, a few times per GOP and stage.
#include "codec/threads/trace.h"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <map>
#include <mutex>
#include <vector>

namespace trivelet::trace {

namespace {

struct Kept {
  const char* name;
  std::int64_t number;
  int thread;
  double begin;  // microseconds since start()
  double end;
};

struct Recorder {
  std::chrono::steady_clock::time_point start;
  std::mutex mutex;
  std::vector<Kept> spans;
  std::map<int, const char*> names;
};

std::atomic<bool> on{false};

Recorder& recorder() {
  static Recorder r;
  return r;
}

int thread_number() {
  static std::atomic<int> next{0};
  thread_local const int number = next.fetch_add(1);
  return number;
}

double now() {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - recorder().start).count();
}

}  // namespace

void start() {
  recorder().start = std::chrono::steady_clock::now();
  on.store(true);
}

bool is_on() { return on.load(std::memory_order_relaxed); }

void name_thread(const char* name) {
  if (!is_on()) return;
  Recorder& r = recorder();
  const int number = thread_number();
  const std::lock_guard lock(r.mutex);
  r.names[number] = name;
}

Span::Span(const char* name, std::int64_t number) : name_(name), number_(number), begin_(is_on() ? now() : -1) {}

Span::~Span() {
  if (begin_ < 0) return;
  Recorder& r = recorder();
  const Kept kept{name_, number_, thread_number(), begin_, now()};
  const std::lock_guard lock(r.mutex);
  try {
    r.spans.push_back(kept);
  } catch (...) {  // a span that does not fit in memory is dropped, and the work goes on
  }
}

std::string json() {
  Recorder& r = recorder();
  const std::lock_guard lock(r.mutex);
  std::string out = "{\"traceEvents\":[\n";
  char line[256];
  const char* comma = "";
  for (const auto& [thread, name] : r.names) {
    std::snprintf(line, sizeof line,
                  "%s{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":1,\"tid\":%d,\"args\":{\"name\":\"%s\"}}", comma,
                  thread, name);
    out += line;
    comma = ",\n";
  }
  for (const Kept& k : r.spans) {
    std::snprintf(line, sizeof line, "%s{\"ph\":\"X\",\"name\":\"%s\",\"pid\":1,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f",
                  comma, k.name, k.thread, k.begin, k.end - k.begin);
    out += line;
    if (k.number >= 0) {
      std::snprintf(line, sizeof line, ",\"args\":{\"gop\":%lld}", static_cast<long long>(k.number));
      out += line;
    }
    out += "}";
    comma = ",\n";
  }
  return out + "\n]}\n";
}

}  // namespace trivelet::trace
