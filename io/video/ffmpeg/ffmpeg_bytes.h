// Input and output of libavformat through our files instead of its own. Internal to io.
#pragma once

#include <algorithm>
#include <cstdint>
#include <exception>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include "io/source.h"
#include "io/video/ffmpeg/ffmpeg_common.h"
#include "io/video/ffmpeg/ffmpeg_real_media.h"
#include "trivelet/streams.h"

namespace trivelet::io {

/// Callbacks of libavformat for input and output. Exceptions are kept here until the C code has returned.
class CustomIo {
 public:
  AVIOContext* context() const { return context_.get(); }
  void rethrow() {
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  }

 protected:
  using Byte = std::conditional_t<(LIBAVFORMAT_VERSION_MAJOR >= 61), const std::uint8_t, std::uint8_t>;
  using Read = int (*)(void*, std::uint8_t*, int);
  using Write = int (*)(void*, Byte*, int);
  using Seek = std::int64_t (*)(void*, std::int64_t, int);

  /// One of `read` and `write`; without `seek` it is a pipe. They get `opaque`.
  CustomIo(void* opaque, Read read, Write write, Seek seek) {
    constexpr int kBufferSize = 1 << 16;
    auto* buffer = static_cast<unsigned char*>(av_malloc(kBufferSize));
    context_.reset(avio_alloc_context(buffer, kBufferSize, write != nullptr, opaque, read, write, seek));
    if (!context_) {
      av_free(buffer);
      throw std::bad_alloc();
    }
  }
  ~CustomIo() = default;
  CustomIo(const CustomIo&) = delete;
  CustomIo& operator=(const CustomIo&) = delete;

  /// What f() returns, or an error for the C code.
  template <class F>
  auto guarded(F f) -> decltype(f()) {
    try {
      return f();
    } catch (...) {
      error_ = std::current_exception();
      return AVERROR(EIO);
    }
  }

  /// A seek in `bytes`, a source or a sink of `size` bytes.
  template <class Bytes>
  std::int64_t seek_in(Bytes& bytes, std::uint64_t size, std::int64_t offset, int whence) {
    whence &= ~AVSEEK_FORCE;
    if (whence == AVSEEK_SIZE) return static_cast<std::int64_t>(size);
    if (whence == SEEK_CUR) offset += static_cast<std::int64_t>(bytes.position());
    if (whence == SEEK_END) offset += static_cast<std::int64_t>(size);
    constexpr std::int64_t kFarthest = std::int64_t{1} << 43;  // file systems refuse what is farther
    if (offset < 0 || offset > kFarthest) return AVERROR(EINVAL);
    return guarded([&] {
      bytes.seek(static_cast<std::uint64_t>(offset));
      return offset;
    });
  }

 private:
  IoPtr context_;
  std::exception_ptr error_;
};

/// Lets libavformat read from an InputBytes, up to where its packets end.
class SourceIo final : public CustomIo {
 public:
  explicit SourceIo(InputBytes& source)
      : CustomIo(this, read, nullptr, source.size() ? seek : nullptr),
        source_(source),
        end_(second_data_of_real_media(source).value_or(UINT64_MAX)) {}

 private:
  static int read(void* opaque, std::uint8_t* data, int size) {
    auto& self = *static_cast<SourceIo*>(opaque);
    return self.guarded([&] {
      const std::uint64_t left = self.end_ - std::min(self.end_, self.source_.position());
      if (left == 0) return AVERROR_EOF;
      const std::size_t got = self.source_.read_some(data, std::min(left, static_cast<std::uint64_t>(size)));
      return got == 0 ? AVERROR_EOF : static_cast<int>(got);
    });
  }
  static std::int64_t seek(void* opaque, std::int64_t offset, int whence) {
    auto& self = *static_cast<SourceIo*>(opaque);
    return self.seek_in(self.source_, *self.source_.size(), offset, whence);
  }

  InputBytes& source_;
  const std::uint64_t end_;
};

struct CloseInput {
  void operator()(AVFormatContext* p) const { avformat_close_input(&p); }
};
using InputPtr = std::unique_ptr<AVFormatContext, CloseInput>;

/// Lets libavformat write to a FileSink.
class FileIo final : public CustomIo {
 public:
  explicit FileIo(FileSink& file) : CustomIo(this, nullptr, write, file.seekable() ? seek : nullptr), file_(file) {}

 private:
  static int write(void* opaque, Byte* data, int size) {
    auto& self = *static_cast<FileIo*>(opaque);
    return self.guarded([&] {
      self.file_.write(data, static_cast<std::size_t>(size));
      self.end_ = std::max(self.end_, self.file_.position());
      return size;
    });
  }
  static std::int64_t seek(void* opaque, std::int64_t offset, int whence) {
    auto& self = *static_cast<FileIo*>(opaque);
    return self.seek_in(self.file_, self.end_, offset, whence);
  }

  FileSink& file_;
  std::uint64_t end_ = 0;
};

struct FreeFormat {
  void operator()(AVFormatContext* p) const { avformat_free_context(p); }
};
using FormatPtr = std::unique_ptr<AVFormatContext, FreeFormat>;

}  // namespace trivelet::io
