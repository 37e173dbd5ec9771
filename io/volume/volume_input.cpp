#include "io/volume/volume_input.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <system_error>
#include <thread>
#include <utility>

#include "codec/fuzzing.h"
#include "codec/limits.h"
#include "codec/stage_queue.h"
#include "codec/trace.h"
#include "io/source.h"
#ifdef TRIVELET_HAVE_ZLIB
#include <zlib.h>
#endif

namespace trivelet::io {

namespace {

constexpr std::size_t kBuffer = std::size_t{64} << 10;
constexpr std::size_t kMaxLine = std::size_t{16} << 20;

class FileFeed final : public Feed {
 public:
  explicit FileFeed(const std::string& path) : source_(path) {}
  std::size_t read(std::byte* data, std::size_t size) override { return source_.read_some(data, size); }
  std::optional<std::uint64_t> size() const override { return source_.size(); }
  bool seekable() const override { return source_.size().has_value(); }
  void seek(std::uint64_t position) override { source_.seek(position); }
  std::size_t read_at(std::uint64_t position, std::byte* data, std::size_t size) const override {
    return source_.read_at(position, data, size);
  }

 private:
  InputBytes source_;
};

class MemoryFeed final : public Feed {
 public:
  explicit MemoryFeed(std::shared_ptr<const std::vector<std::byte>> bytes) : bytes_(std::move(bytes)) {}
  std::size_t read(std::byte* data, std::size_t size) override {
    const std::size_t n = std::min(size, bytes_->size() - at_);
    if (n > 0) std::memcpy(data, bytes_->data() + at_, n);
    at_ += n;
    return n;
  }
  std::optional<std::uint64_t> size() const override { return bytes_->size(); }

 private:
  std::shared_ptr<const std::vector<std::byte>> bytes_;
  std::size_t at_ = 0;
};

}  // namespace

Opener file_opener(const std::string& path) {
  return [path] { return std::make_unique<FileFeed>(path); };
}

Opener memory_opener(std::shared_ptr<const std::vector<std::byte>> bytes) {
  return [bytes] { return std::make_unique<MemoryFeed>(bytes); };
}

// -------------------------------------------------------------------------------------------------------------- input

VolumeInput::VolumeInput(std::unique_ptr<Feed> feed, std::string name)
    : feed_(std::move(feed)), name_(std::move(name)) {}

std::string_view VolumeInput::ahead(std::size_t wanted) {
  while (end_ - begin_ < wanted) {
    if (begin_ > 0) {
      std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
      end_ -= begin_;
      begin_ = 0;
    }
    const std::size_t room =
        std::max<std::size_t>(wanted, std::min<std::uint64_t>(kBuffer, feed_->size().value_or(kBuffer)) + 1);
    if (buffer_.size() < room) buffer_.resize(room);
    const std::size_t got = feed_->read(buffer_.data() + end_, buffer_.size() - end_);
    if (got == 0) break;
    end_ += got;
  }
  return {reinterpret_cast<const char*>(buffer_.data()) + begin_, end_ - begin_};
}

void VolumeInput::consume(std::size_t bytes) {
  begin_ += bytes;
  position_ += bytes;
}

std::size_t VolumeInput::read(std::byte* data, std::size_t size) {
  std::size_t done = 0;
  while (done < size) {
    std::size_t n = std::min(size - done, end_ - begin_);
    if (n > 0) {
      std::memcpy(data + done, buffer_.data() + begin_, n);
      begin_ += n;
    } else if (size - done >= kBuffer) {
      n = feed_->read(data + done, size - done);
    } else {
      if (ahead(1).empty()) break;
      continue;
    }
    if (n == 0) break;
    done += n;
    position_ += n;
  }
  return done;
}

void VolumeInput::read_exactly(std::byte* data, std::size_t size, const char* what) {
  const std::uint64_t start = position_;
  const std::size_t got = read(data, size);
  require(got == size, ErrorKind::kBadStream,
          name_ + ": ends at byte " + std::to_string(start + got) + ", " + std::to_string(size - got) +
              " bytes of the " + what + " are missing");
}

void VolumeInput::append(std::vector<std::byte>& out, std::uint64_t size, const char* what) {
  require(
      size <= kMaxHeadBytes, ErrorKind::kBadStream,
      name_ + ": " + std::to_string(size) + " bytes of " + what + "; the limit is " + std::to_string(kMaxHeadBytes));
  while (size > 0) {
    const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(size, kBuffer));
    const std::size_t at = out.size();
    out.resize(at + n);
    read_exactly(out.data() + at, n, what);
    size -= n;
  }
}

void VolumeInput::skip(std::uint64_t size, const char* what) {
  std::vector<std::byte> dump(static_cast<std::size_t>(std::min<std::uint64_t>(size, kBuffer)));
  while (size > 0) {
    const auto n = static_cast<std::size_t>(std::min<std::uint64_t>(size, dump.size()));
    read_exactly(dump.data(), n, what);
    size -= n;
  }
}

void VolumeInput::jump(std::uint64_t size) {
  begin_ = end_ = 0;
  position_ += size;
  feed_->seek(position_);
}

bool VolumeInput::line(std::string& out) {
  out.clear();
  for (;;) {
    const std::string_view text = ahead(1);
    if (text.empty()) return !out.empty();
    const std::size_t end = text.find('\n');
    const std::size_t n = end == std::string_view::npos ? text.size() : end + 1;
    require(out.size() + n <= kMaxLine, ErrorKind::kBadStream,
            name_ + ": a header line of more than " + std::to_string(kMaxLine) + " bytes");
    out.append(text.substr(0, n));
    consume(n);
    if (end != std::string_view::npos) return true;
  }
}

std::vector<std::byte> VolumeInput::rest(const char* what, std::size_t limit) {
  std::vector<std::byte> out;
  for (;;) {
    const std::string_view text = ahead(1);
    if (text.empty()) return out;
    require(out.size() + text.size() <= limit, ErrorKind::kBadStream,
            name_ + ": more than " + std::to_string(limit) + " bytes of " + what);
    const auto* p = reinterpret_cast<const std::byte*>(text.data());
    out.insert(out.end(), p, p + text.size());
    consume(text.size());
  }
}

std::vector<std::string> listed_files(VolumeInput& in, const Limits& limits) {
  std::vector<std::string> names;
  const std::uint64_t start = in.position();
  for (std::string line; in.line(line);) {
    check_limit(names.size() + 1, limits.files, "files",
                in.name() + ": " + std::to_string(names.size() + 1) + " data files or more");
    require(in.position() - start <= kMaxListBytes, ErrorKind::kBadStream,
            in.name() + ": data files with more than " + std::to_string(kMaxListBytes) + " bytes of their names");
    if (!trim(line).empty()) names.emplace_back(trim(line));
  }
  return names;
}

// --------------------------------------------------------------------------------------------------------------- zlib

#ifdef TRIVELET_HAVE_ZLIB

bool have_zlib() { return true; }

namespace {

constexpr int kGzipWindow = 15 + 16;  // zlib's way to ask for the gzip format
constexpr int kZlibWindow = 15;

class InflateFeed final : public Feed {
 public:
  InflateFeed(VolumeInput& input, bool zlib_format, const Limits& limits)
      : input_(input), zlib_format_(zlib_format), most_(limits.unpacked) {
    const int result = inflateInit2(&stream_, zlib_format ? kZlibWindow : kGzipWindow);
    require(result == Z_OK, ErrorKind::kInternal, "zlib: cannot begin");
  }
  ~InflateFeed() override { inflateEnd(&stream_); }
  InflateFeed(const InflateFeed&) = delete;
  InflateFeed& operator=(const InflateFeed&) = delete;

  std::size_t read(std::byte* data, std::size_t size) override {
    if (size == 0) return 0;
    const auto room = static_cast<uInt>(std::min<std::size_t>(size, std::size_t{1} << 30));
    stream_.next_out = reinterpret_cast<Bytef*>(data);
    stream_.avail_out = room;
    while (stream_.avail_out == room && !ended_) {
      const std::string_view in = input_.ahead(1);
      require(!in.empty(), ErrorKind::kBadStream, input_.name() + ": the compressed data ends too early");
      stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(in.data()));
      stream_.avail_in = static_cast<uInt>(in.size());
      const int result = inflate(&stream_, Z_NO_FLUSH);
      input_.consume(in.size() - stream_.avail_in);
      if (result == Z_STREAM_END) {
        // A .gz may have several members, one after the other.
        const std::string_view next = input_.ahead(2);
        if (!zlib_format_ && next.size() >= 2 && next[0] == '\x1f' && next[1] == '\x8b')
          inflateReset(&stream_);
        else
          ended_ = true;
      } else if (result != Z_OK && result != Z_BUF_ERROR) {
        fail(ErrorKind::kBadStream, input_.name() + ": damaged compressed data" +
                                        (stream_.msg ? std::string(" (") + stream_.msg + ")" : std::string()));
      }
    }
    const std::size_t done = room - stream_.avail_out;
    unpacked_ += done;
    check_limit(unpacked_, most_, "unpacked",
                input_.name() + ": compressed data of " + std::to_string(unpacked_) + " bytes or more");
    return done;
  }

 private:
  VolumeInput& input_;
  bool zlib_format_;
  std::uint64_t most_;
  std::uint64_t unpacked_ = 0;
  bool ended_ = false;
  z_stream stream_ = {};
};

// Between a thread that unpacks or packs and the one that reads or writes: pieces of this size, and so many of them.
// Headers and small files are not worth a thread.
constexpr std::size_t kPiece = std::size_t{512} << 10;
constexpr std::size_t kPieces = 4;
constexpr std::uint64_t kWorthThread = std::uint64_t{1} << 20;

/// Reads another feed ahead, in a thread of its own once enough was read.
class FeedAhead final : public Feed {
 public:
  explicit FeedAhead(std::unique_ptr<Feed> feed) : feed_(std::move(feed)) {}
  ~FeedAhead() override {
    full_.stop();
    free_.stop();
    if (thread_.joinable()) thread_.join();
  }
  FeedAhead(const FeedAhead&) = delete;
  FeedAhead& operator=(const FeedAhead&) = delete;

  std::size_t read(std::byte* data, std::size_t size) override {
    if (size == 0) return 0;
    if (!thread_.joinable() && !start()) {
      const std::size_t n = feed_->read(data, size);
      read_ += n;
      return n;
    }
    if (at_ == piece_.size()) {
      if (!piece_.empty()) (void)free_.push(std::move(piece_));
      at_ = 0;
      piece_.clear();
      if (auto next = full_.pop()) piece_ = std::move(*next);
    }
    const std::size_t n = std::min(size, piece_.size() - at_);
    if (n > 0) std::memcpy(data, piece_.data() + at_, n);
    at_ += n;
    return n;
  }

 private:
  bool start() {
    if (!kThreadsAhead || alone_ || read_ < kWorthThread) return false;
    try {
      thread_ = std::thread([this] { run(); });
      return true;
    } catch (const std::system_error&) {  // the system starts no more threads
      alone_ = true;
      return false;
    }
  }

  void run() try {
    trace::name_thread("unpack");
    for (std::size_t made = 0;;) {
      std::optional<std::vector<std::byte>> piece;
      if (made == kPieces) {
        if (!(piece = free_.pop())) return;
      } else if (!(piece = free_.try_pop())) {
        piece.emplace();
        ++made;
      }
      piece->resize(kPiece);
      const std::size_t n = feed_->read(piece->data(), piece->size());
      if (n == 0) break;
      piece->resize(n);
      if (!full_.push(std::move(*piece))) return;
    }
    full_.close();
  } catch (...) {
    full_.close(std::current_exception());
  }

  std::unique_ptr<Feed> feed_;  ///< the thread's, once there is one
  std::uint64_t read_ = 0;      ///< without it
  bool alone_ = false;
  std::vector<std::byte> piece_;  ///< what is being read
  std::size_t at_ = 0;            ///< of it
  StageQueue<std::vector<std::byte>> full_{kPieces};
  StageQueue<std::vector<std::byte>> free_{kPieces + 1};
  std::thread thread_;
};

/// Owns the packed input too.
class GzipFile final : public Feed {
 public:
  GzipFile(std::unique_ptr<VolumeInput> packed, const Limits& limits)
      : packed_(std::move(packed)), inflate_(*packed_, false, limits) {}
  std::size_t read(std::byte* data, std::size_t size) override { return inflate_.read(data, size); }

 private:
  std::unique_ptr<VolumeInput> packed_;
  InflateFeed inflate_;
};

}  // namespace

std::unique_ptr<Feed> make_inflater(VolumeInput& input, bool zlib_format, const Limits& limits) {
  return std::make_unique<FeedAhead>(std::make_unique<InflateFeed>(input, zlib_format, limits));
}

struct Deflater::State {
  Sink sink;
  z_stream stream = {};
  std::vector<Bytef> out = std::vector<Bytef>(kBuffer);

  void run(const std::byte* data, std::size_t size, int flush) {
    int result = Z_OK;
    do {
      const std::size_t piece = std::min<std::size_t>(size, std::size_t{1} << 30);
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(data));
      stream.avail_in = static_cast<uInt>(piece);
      do {
        stream.next_out = out.data();
        stream.avail_out = static_cast<uInt>(out.size());
        result = deflate(&stream, flush);
        require(result != Z_STREAM_ERROR, ErrorKind::kInternal, "zlib: cannot pack");
        if (const std::size_t n = out.size() - stream.avail_out; n > 0) sink(out.data(), n);
      } while (stream.avail_out == 0);
      data += piece;
      size -= piece;
    } while (size > 0);
  }
};

Deflater::Deflater(Sink sink, bool zlib_format) : state_(std::make_unique<State>()) {
  state_->sink = std::move(sink);
  const int result = deflateInit2(&state_->stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED,
                                  zlib_format ? kZlibWindow : kGzipWindow, 8, Z_DEFAULT_STRATEGY);
  require(result == Z_OK, ErrorKind::kInternal, "zlib: cannot begin");
}
Deflater::~Deflater() { deflateEnd(&state_->stream); }
void Deflater::write(const std::byte* data, std::size_t size) {
  if (size > 0) state_->run(data, size, Z_NO_FLUSH);
}
void Deflater::finish() { state_->run(nullptr, 0, Z_FINISH); }

std::unique_ptr<VolumeInput> open_input(const Opener& opener, const std::string& name, bool& gzip,
                                        const Limits& limits) {
  auto input = std::make_unique<VolumeInput>(opener(), name);
  const std::string_view begin = input->ahead(2);
  gzip = begin.size() >= 2 && begin[0] == '\x1f' && begin[1] == '\x8b';
  if (!gzip) return input;
  return std::make_unique<VolumeInput>(
      std::make_unique<FeedAhead>(std::make_unique<GzipFile>(std::move(input), limits)), name);
}

#else

bool have_zlib() { return false; }

namespace {
[[noreturn]] void refuse(const std::string& name) {
  fail(ErrorKind::kUnsupported, name + ": is compressed, and this build has no zlib; unpack it first");
}
}  // namespace

std::unique_ptr<Feed> make_inflater(VolumeInput& input, bool, const Limits&) { refuse(input.name()); }
struct Deflater::State {};
Deflater::Deflater(Sink, bool) { refuse("the output"); }
Deflater::~Deflater() = default;
void Deflater::write(const std::byte*, std::size_t) {}
void Deflater::finish() {}

std::unique_ptr<VolumeInput> open_input(const Opener& opener, const std::string& name, bool& gzip, const Limits&) {
  auto input = std::make_unique<VolumeInput>(opener(), name);
  const std::string_view begin = input->ahead(2);
  gzip = false;
  if (begin.size() >= 2 && begin[0] == '\x1f' && begin[1] == '\x8b') refuse(name);
  return input;
}

#endif

}  // namespace trivelet::io
