// Feeds of files and memory, buffers over them, and the parsing that readers of headers share.

#include "io/volume/volume_input.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "codec/base/limits.h"
#include "io/source.h"

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
          name_ + ": ends at byte " + std::to_string(start + got) + ", " + count_of(size - got, "byte") + " of the " +
              what + " are missing");
}

void VolumeInput::append(std::vector<std::byte>& out, std::uint64_t size, const char* what) {
  require(size <= kMaxHeadBytes, ErrorKind::kBadStream,
          name_ + ": " + count_of(size, "byte") + " of " + what + "; the limit is " + std::to_string(kMaxHeadBytes));
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
            name_ + ": more than " + count_of(limit, "byte") + " of " + what);
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

}  // namespace trivelet::io
