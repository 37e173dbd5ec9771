// Writes frames of raw files at positions that follow from their numbers.

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

#include "codec/base/bytes.h"
#include "codec/format/container.h"
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
      : info_(info), line_(output.frame_lines ? "FRAME\n" : ""), file_(SharedFile::open(output)) {
    require(file_ != nullptr, ErrorKind::kIo,
            output.path +
                " is not here: several processes write a file that all see under this name; put the output on a "
                "file system that they share, or write to a pipe, which one of them does");
    position_ = output.head_bytes + first * (line_.size() + frame_bytes(info));
    buffer_.reserve(kBufferBytes);
  }

  void write(const Gop& gop, int index) override {
    check_gop(gop, index, info_);
    put(line_.data(), line_.size());
    write_planes(gop, index, [&](const void* data, std::size_t size) { put(data, size); });
  }
  void finish() override {
    flush();
    file_->finish();
  }

 private:
  static constexpr std::size_t kBufferBytes = std::size_t{1} << 20;

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
    file_->write_at(position_, data, size);
    position_ += size;
  }

  VideoInfo info_;
  std::string_view line_;
  std::unique_ptr<SharedFile> file_;
  std::uint64_t position_ = 0;
  std::vector<char> buffer_;
};

}  // namespace

std::unique_ptr<SharedFile> SharedFile::open(const SharedOutput& output) {
  const int file = ::open(output.path.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
  if (file < 0) return nullptr;
  std::unique_ptr<SharedFile> shared(new SharedFile(output.path, file));
  struct stat status = {};
  const bool same = ::fstat(file, &status) == 0 && status.st_ino == output.file &&
                    (output.machine.empty() || output.machine != this_machine() || status.st_dev == output.device);
  return same ? std::move(shared) : nullptr;
}

SharedFile::~SharedFile() { ::close(file_); }

void SharedFile::give_up() const { fail(ErrorKind::kIo, "cannot write " + name_ + ": " + std::strerror(errno)); }

void SharedFile::write_at(std::uint64_t position, const void* data, std::size_t size) {
  const auto* bytes = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t written = ::pwrite(file_, bytes, std::min(size, std::size_t{1} << 30), static_cast<off_t>(position));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) give_up();
    bytes += written;
    size -= static_cast<std::size_t>(written);
    position += static_cast<std::uint64_t>(written);
  }
}

void SharedFile::finish() {
  if (::fsync(file_) != 0 && errno != EINVAL && errno != ENOTSUP && errno != ENOSYS) give_up();
}

std::vector<std::uint8_t> serialise(const SharedOutput& output) {
  ByteWriter m;
  m.text(output.path, kMaxTextBytes);
  m.varint(output.file);
  m.varint(output.device);
  m.text(output.machine, kMaxTextBytes);
  m.varint(output.head_bytes);
  m.varint(output.frame_lines);
  return std::move(m.bytes);
}

SharedOutput parse_shared_output(const std::uint8_t* data, std::size_t size) {
  ByteReader in(data, size, "a shared output");
  SharedOutput output;
  std::uint64_t lines = 0;
  in.text(output.path, kMaxTextBytes);
  in.varint(output.file);
  in.varint(output.device);
  in.text(output.machine, kMaxTextBytes);
  in.varint(output.head_bytes);
  in.varint(lines);
  output.frame_lines = lines != 0;
  return output;
}

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
