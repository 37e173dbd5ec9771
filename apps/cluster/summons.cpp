#include "apps/cluster/summons.h"

#include <spdlog/fmt/fmt.h>

#include <new>

#include "codec/base/stream_header.h"
#include "trivelet/error.h"

namespace trivelet::cli {

namespace {

constexpr int kCalls = 0;  // the channel
constexpr std::uint8_t kBegin = 1, kFarewell = 0;
constexpr std::uint64_t kNoMemory = 255;  // in the place of an ErrorKind

}  // namespace

Summons::~Summons() {
  for (int i = 1; processes_ && i < processes_->size(); ++i) processes_->send(i, kCalls, {kFarewell});
}

void Summons::call(const std::string& job, const std::vector<std::uint8_t>& along) {
  ByteWriter m;
  m.fixed(kBegin);
  m.text(job, kMaxTextBytes);
  m.bytes.insert(m.bytes.end(), along.begin(), along.end());
  for (int i = 1; processes_ && i < processes_->size(); ++i) processes_->send(i, kCalls, m.bytes);
}

void Call::check(const std::string& own_job) const {
  require(own_job.substr(0, kMaxTextBytes) == job, ErrorKind::kBadArgument,
          "was started with another input or output, and all make one stream; for streams of their own start them "
          "without MPI");
}

std::optional<Call> wait_for_call(Processes& processes) {
  const Processes::Message m = processes.receive(kCalls);
  ByteReader in(m.bytes.data(), m.bytes.size(), "a call");
  std::uint8_t what = kFarewell;
  in.fixed(what);
  if (what == kFarewell) return std::nullopt;
  Call call;
  in.text(call.job, kMaxTextBytes);
  call.along.assign(m.bytes.end() - static_cast<std::ptrdiff_t>(in.left()), m.bytes.end());
  return call;
}

void wait_for_farewell(Processes& processes) { (void)processes.receive(kCalls); }

void put_error(ByteWriter& out, const std::exception_ptr& error) {
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
  out.varint(kind);
  if (text.size() > kMaxTextBytes) text.resize(kMaxTextBytes);
  out.text(text, kMaxTextBytes);
}

void throw_error(ByteReader& in, const Processes& processes, int from) {
  std::uint64_t kind = 0;
  std::string text;
  in.varint(kind);
  in.text(text, kMaxTextBytes);
  if (kind == kNoMemory) throw std::bad_alloc();
  fail(static_cast<ErrorKind>(kind), processes.shares_memory(from) ? text : fmt::format("process {}: {}", from, text));
}

}  // namespace trivelet::cli
