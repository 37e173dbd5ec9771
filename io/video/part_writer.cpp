#include "io/video/part_writer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <string_view>
#include <vector>

#include "io/video/planes.h"

namespace trivelet::io {

namespace {

std::string this_machine() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  return id;
}

class PartWriter final : public FrameWriter {
 public:
  PartWriter(const SharedOutput& output, const VideoInfo& info, std::uint64_t first)
      : name_(output.path), info_(info), line_(output.frame_lines ? "FRAME\n" : "") {
    file_ = ::open(name_.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
    struct stat status = {};
    const bool same = file_ >= 0 && ::fstat(file_, &status) == 0 && status.st_ino == output.file &&
                      (output.machine.empty() || output.machine != this_machine() || status.st_dev == output.device);
    if (!same && file_ >= 0) ::close(file_);
    require(same, ErrorKind::kIo,
            name_ +
                " is not here: several processes write a file that all see under this name; put the output on a "
                "file system that they share, or write to a pipe, which one of them does");
    position_ = output.head_bytes + first * (line_.size() + frame_bytes(info));
    buffer_.reserve(kBufferBytes);
  }
  ~PartWriter() override {
    if (file_ >= 0) ::close(file_);
  }
  PartWriter(const PartWriter&) = delete;
  PartWriter& operator=(const PartWriter&) = delete;

  void write(const Gop& gop, int index) override {
    check_gop(gop, index, info_);
    put(line_.data(), line_.size());
    write_planes(gop, index, [&](const void* data, std::size_t size) { put(data, size); });
  }
  void finish() override {
    flush();
    if (::fsync(file_) != 0 && errno != EINVAL && errno != ENOTSUP && errno != ENOSYS) give_up();
  }

 private:
  static constexpr std::size_t kBufferBytes = std::size_t{1} << 20;

  [[noreturn]] void give_up() const { fail(ErrorKind::kIo, "cannot write " + name_ + ": " + std::strerror(errno)); }
  void put(const void* data, std::size_t size) {
    if (buffer_.size() + size > kBufferBytes) flush();
    const auto* bytes = static_cast<const char*>(data);
    if (size >= kBufferBytes)
      write_out(bytes, size);
    else
      buffer_.insert(buffer_.end(), bytes, bytes + size);
  }
  void flush() {
    write_out(buffer_.data(), buffer_.size());
    buffer_.clear();
  }
  void write_out(const char* data, std::size_t size) {
    while (size > 0) {
      const ssize_t written =
          ::pwrite(file_, data, std::min(size, std::size_t{1} << 30), static_cast<off_t>(position_));
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) give_up();
      data += written;
      size -= static_cast<std::size_t>(written);
      position_ += static_cast<std::uint64_t>(written);
    }
  }

  std::string name_;
  VideoInfo info_;
  std::string_view line_;
  int file_ = -1;
  std::uint64_t position_ = 0;
  std::vector<char> buffer_;
};

}  // namespace

std::unique_ptr<FrameWriter> open_part_writer(const SharedOutput& output, const VideoInfo& info, std::uint64_t first) {
  return std::make_unique<PartWriter>(output, info, first);
}

SharedOutput shared_output(FrameWriter& writer) {
  auto* const shared = dynamic_cast<SharedWriter*>(&writer);
  return shared ? shared->shared() : SharedOutput{};
}

SharedOutput shared_file(FileSink& file, bool frame_lines) {
  struct stat status = {};
  if (file.temporary_path().empty()) return {};
  const std::uint64_t head = file.position();
  file.seek(head);  // writes out what is buffered
  if (::stat(file.temporary_path().c_str(), &status) != 0) return {};
  SharedOutput shared;
  shared.path = file.temporary_path();
  shared.file = static_cast<std::uint64_t>(status.st_ino);
  shared.device = static_cast<std::uint64_t>(status.st_dev);
  shared.machine = this_machine();
  shared.head_bytes = head;
  shared.frame_lines = frame_lines;
  return shared;
}

}  // namespace trivelet::io
