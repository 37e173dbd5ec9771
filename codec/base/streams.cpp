// Sources and sinks of bytes, except FileSink (file_sink.cpp).
#include "trivelet/streams.h"
#include "codec/base/limits.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "codec/base/wait_until_ready.h"
#include "trivelet/error.h"

namespace trivelet {

std::size_t MemorySource::read(void* data, std::size_t size) {
  const std::size_t n = std::min(size, size_ - position_);
  if (n > 0) std::memcpy(data, data_ + position_, n);
  position_ += n;
  return n;
}

void MemorySource::seek(std::uint64_t position) {
  require(position <= size_, ErrorKind::kIo, "seek to " + std::to_string(position) + " in " + count_of(size_, "byte"));
  position_ = static_cast<std::size_t>(position);
}

void MemorySink::write(const void* data, std::size_t size) {
  const auto* p = static_cast<const std::byte*>(data);
  bytes.insert(bytes.end(), p, p + size);
}

namespace {

std::string name_of(const std::string& path) { return path == "-" ? "standard input" : "'" + path + "'"; }

[[noreturn]] void fail_errno(const std::string& what) { fail(ErrorKind::kIo, what + ": " + std::strerror(errno)); }

}  // namespace

FileSource::FileSource(const std::string& path) : path_(path) {
  require(path != "-" || isatty(STDIN_FILENO) == 0, ErrorKind::kBadArgument,
          "standard input is a terminal, not a stream");
  fd_ = path == "-" ? STDIN_FILENO : open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd_ < 0) fail_errno("cannot open " + name_of(path_));
  struct stat status {};
  if (fstat(fd_, &status) != 0) fail_errno("cannot read " + name_of(path_));
  if (S_ISDIR(status.st_mode)) fail(ErrorKind::kIo, name_of(path_) + " is a directory");
  seekable_ = S_ISREG(status.st_mode) && lseek(fd_, 0, SEEK_CUR) == 0;
  size_ = seekable_ ? static_cast<std::uint64_t>(status.st_size) : 0;
}

FileSource::~FileSource() {
  if (fd_ > STDIN_FILENO) close(fd_);
}

std::size_t FileSource::read(void* data, std::size_t size) {
  std::size_t done = 0;
  while (done < size) {
    const ssize_t n = ::read(fd_, static_cast<std::byte*>(data) + done, size - done);
    if (n < 0 && (errno == EINTR || wait_until_ready(fd_, POLLIN))) continue;
    if (n < 0) fail_errno("cannot read " + name_of(path_));
    if (n == 0) break;
    done += static_cast<std::size_t>(n);
  }
  return done;
}

void FileSource::seek(std::uint64_t position) {
  require(seekable_, ErrorKind::kInternal, "seek in a pipe");
  if (lseek(fd_, static_cast<off_t>(position), SEEK_SET) < 0) fail_errno("cannot seek in " + name_of(path_));
}

}  // namespace trivelet
