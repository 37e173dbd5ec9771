// Reads files and pipes with look ahead.

#include "io/source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "codec/base/wait_until_ready.h"
#include "trivelet/error.h"

namespace trivelet::io {

InputBytes::InputBytes(const std::string& path) : name_(path == "-" ? "standard input" : path) {
  owned_ = path != "-";
  file_ = owned_ ? ::open(path.c_str(), O_RDONLY | O_CLOEXEC) : STDIN_FILENO;
  struct stat status = {};
  if (file_ < 0 || ::fstat(file_, &status) != 0) {
    const int reason = errno;
    if (owned_ && file_ >= 0) ::close(file_);
    fail(ErrorKind::kIo, "cannot read " + name_ + ": " + std::strerror(reason));
  }
  if (S_ISDIR(status.st_mode)) {
    if (owned_) ::close(file_);
    fail(ErrorKind::kIo, "cannot read " + name_ + ": it is a directory");
  }
  if (S_ISREG(status.st_mode)) {
    const off_t offset = ::lseek(file_, 0, SEEK_CUR);
    if (offset >= 0) {
      start_ = static_cast<std::uint64_t>(offset);
      const auto end = static_cast<std::uint64_t>(status.st_size);
      size_ = end > start_ ? end - start_ : 0;
    }
  }
}

InputBytes::~InputBytes() {
  if (owned_) ::close(file_);
}

std::size_t InputBytes::read_file(void* data, std::size_t size) {
  constexpr std::size_t kMost = std::size_t{1} << 30;  // Linux moves at most 2 GiB a call
  for (;;) {
    const ssize_t got = ::read(file_, data, std::min(size, kMost));
    if (got >= 0) return static_cast<std::size_t>(got);
    if (errno != EINTR && !wait_until_ready(file_, POLLIN))
      fail(ErrorKind::kIo, "cannot read " + name_ + ": " + std::strerror(errno));
  }
}

std::string_view InputBytes::peek(std::size_t count) {
  if (ahead_begin_ > 0) {
    ahead_.erase(ahead_.begin(), ahead_.begin() + static_cast<std::ptrdiff_t>(ahead_begin_));
    ahead_begin_ = 0;
  }
  while (ahead_.size() < count) {
    const std::size_t have = ahead_.size();
    ahead_.resize(count);
    const std::size_t got = read_file(ahead_.data() + have, count - have);
    ahead_.resize(have + got);
    if (got == 0) break;
  }
  return {ahead_.data(), std::min(count, ahead_.size())};
}

std::size_t InputBytes::read_some(void* data, std::size_t size) {
  if (size == 0) return 0;
  std::size_t got = std::min(size, ahead_.size() - ahead_begin_);
  if (got > 0) {
    std::memcpy(data, ahead_.data() + ahead_begin_, got);
    ahead_begin_ += got;
  } else {
    got = read_file(data, size);
  }
  position_ += got;
  return got;
}

std::size_t InputBytes::read(void* data, std::size_t size) {
  std::size_t done = 0;
  while (done < size) {
    const std::size_t got = read_some(static_cast<char*>(data) + done, size - done);
    if (got == 0) break;
    done += got;
  }
  return done;
}

std::size_t InputBytes::read_at(std::uint64_t position, void* data, std::size_t size) const {
  std::size_t done = 0;
  while (done < size) {
    const ssize_t got =
        ::pread(file_, static_cast<char*>(data) + done, size - done, static_cast<off_t>(start_ + position + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail(ErrorKind::kIo, "cannot read " + name_ + ": " + std::strerror(errno));
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

std::uint64_t InputBytes::skip(std::uint64_t count) {
  if (size_) {
    const std::uint64_t left = *size_ > position_ ? *size_ - position_ : 0;
    const std::uint64_t step = std::min(count, left);
    seek(position_ + step);
    return step;
  }
  std::array<char, 65536> scratch;
  std::uint64_t done = 0;
  while (done < count) {
    const auto want = static_cast<std::size_t>(std::min<std::uint64_t>(count - done, scratch.size()));
    const std::size_t got = read_some(scratch.data(), want);
    if (got == 0) break;
    done += got;
  }
  return done;
}

void InputBytes::seek(std::uint64_t position) {
  if (::lseek(file_, static_cast<off_t>(start_ + position), SEEK_SET) < 0)
    fail(ErrorKind::kIo, "cannot seek in " + name_ + ": " + std::strerror(errno));
  ahead_.clear();
  ahead_begin_ = 0;
  position_ = position;
}

}  // namespace trivelet::io
