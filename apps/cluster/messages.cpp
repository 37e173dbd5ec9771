// Writes and reads the fields of messages, and handles failures and ends of workers.

#include "apps/cluster/messages.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "codec/base/stream_header.h"
#include "trivelet/error.h"

namespace trivelet::cli {

namespace {

constexpr std::uint64_t kNoMemory = 255;  // std::bad_alloc, instead of an ErrorKind

}  // namespace

MessageWriter& MessageWriter::text(const std::string& s) {
  out_.text(s, kMaxTextBytes);
  return *this;
}

MessageWriter& MessageWriter::append(const void* data, std::size_t size) {
  const auto* from = static_cast<const std::uint8_t*>(data);
  out_.bytes.insert(out_.bytes.end(), from, from + size);
  return *this;
}

std::uint64_t MessageReader::number() {
  std::uint64_t v = 0;
  in_.varint(v);
  return v;
}

std::int64_t MessageReader::signed_number() {
  std::int64_t v = 0;
  in_.signed_varint(v);
  return v;
}

double MessageReader::real() {
  double v = 0;
  in_.real(v);
  return v;
}

std::string MessageReader::text() {
  std::string s;
  in_.text(s, kMaxTextBytes);
  return s;
}

void MessageReader::read(void* data, std::size_t size) {
  const std::size_t at = message_.bytes.size() - in_.left();
  (void)in_.piece(size);
  if (size > 0) std::memcpy(data, message_.bytes.data() + at, size);
}

void MessageReader::throw_error(const Processes& processes) {
  const std::uint64_t kind = number();
  const std::string what = text();
  if (kind == kNoMemory) throw std::bad_alloc();
  fail(static_cast<ErrorKind>(kind),
       processes.shares_memory(from()) ? what : fmt::format("process {}: {}", from(), what));
}

void report_failure(Processes& processes, Channel channel, const std::exception_ptr& error) {
  auto kind = static_cast<std::uint64_t>(ErrorKind::kInternal);
  std::string text;
  try {
    std::rethrow_exception(error);
  } catch (const Error& e) {
    kind = static_cast<std::uint64_t>(e.kind());
    text = e.what();
  } catch (const std::bad_alloc&) {
    kind = kNoMemory;
  } catch (const std::exception& e) {
    text = e.what();
  }
  MessageWriter(MessageKind::kFailed).number(kind).text(text).send(processes, 0, channel);
}

void run_and_report(Processes& processes, Channel channel, const std::function<void()>& work) try {
  work();
} catch (const Stopped&) {
} catch (...) {
  report_failure(processes, channel, std::current_exception());
}

bool WorkerStates::all_ended() const {
  return std::all_of(ended_.begin(), ended_.end(), [](bool ended) { return ended; });
}

bool WorkerStates::take(MessageReader& message) {
  if (message.kind() == MessageKind::kEnded) {
    set_ended(message.from());
    return true;
  }
  if (stopped_) return false;
  if (message.kind() == MessageKind::kFailed) message.throw_error(processes_);
  return true;
}

void WorkerStates::stop(Channel channel, int first) {
  stopped_ = true;
  MessageWriter(MessageKind::kStop).send_to_all(processes_, channel, first);
}

void WorkerStates::lead(const std::function<void()>& work, const std::function<bool()>& receive, Channel stop_channel) {
  std::exception_ptr failure;
  try {
    work();
    set_ended(processes_.rank());
    wait(receive);
  } catch (...) {
    failure = std::current_exception();
  }
  if (!failure) return;
  stop(stop_channel, 1);
  set_ended(processes_.rank());
  wait(receive);
  std::rethrow_exception(failure);
}

void WorkerStates::wait(const std::function<bool()>& receive) const {
  Backoff backoff;
  while (!all_ended()) receive() ? backoff.reset() : backoff.wait();
}

}  // namespace trivelet::cli
