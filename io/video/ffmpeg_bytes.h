// What libavformat reads from and writes to: our files instead of its own. Internal to io.
#pragma once

#include <algorithm>
#include <cstdint>
#include <exception>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include "io/source.h"
#include "io/video/ffmpeg_common.h"
#include "trivelet/streams.h"

namespace trivelet::io {

/// Lets libavformat read from a InputBytes. Exceptions wait here until the C code has returned.
class SourceIo {
 public:
  explicit SourceIo(InputBytes& source) : source_(source) {
    constexpr int kBufferSize = 1 << 16;
    auto* buffer = static_cast<unsigned char*>(av_malloc(kBufferSize));
    context_.reset(avio_alloc_context(buffer, kBufferSize, 0, this, read, nullptr, source.size() ? seek : nullptr));
    if (!context_) {
      av_free(buffer);
      throw std::bad_alloc();
    }
  }
  AVIOContext* context() const { return context_.get(); }
  void rethrow() {
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  }

 private:
  static int read(void* opaque, std::uint8_t* data, int size) {
    auto& self = *static_cast<SourceIo*>(opaque);
    try {
      const std::size_t got = self.source_.read_some(data, static_cast<std::size_t>(size));
      return got == 0 ? AVERROR_EOF : static_cast<int>(got);
    } catch (...) {
      self.error_ = std::current_exception();
      return AVERROR(EIO);
    }
  }

  static std::int64_t seek(void* opaque, std::int64_t offset, int whence) {
    auto& self = *static_cast<SourceIo*>(opaque);
    const auto size = static_cast<std::int64_t>(*self.source_.size());
    whence &= ~AVSEEK_FORCE;
    if (whence == AVSEEK_SIZE) return size;
    if (whence == SEEK_CUR) offset += static_cast<std::int64_t>(self.source_.position());
    if (whence == SEEK_END) offset += size;
    if (offset < 0) return AVERROR(EINVAL);
    try {
      self.source_.seek(static_cast<std::uint64_t>(offset));
      return offset;
    } catch (...) {
      self.error_ = std::current_exception();
      return AVERROR(EIO);
    }
  }

  InputBytes& source_;
  IoPtr context_;
  std::exception_ptr error_;
};

struct CloseInput {
  void operator()(AVFormatContext* p) const { avformat_close_input(&p); }
};
using InputPtr = std::unique_ptr<AVFormatContext, CloseInput>;

/// Lets libavformat write to a FileSink. Exceptions wait here until the C code has returned.
class FileIo {
 public:
  explicit FileIo(FileSink& file) : file_(file) {
    constexpr int kBufferSize = 1 << 16;
    auto* buffer = static_cast<unsigned char*>(av_malloc(kBufferSize));
    context_.reset(avio_alloc_context(buffer, kBufferSize, 1, this, nullptr, write, file.seekable() ? seek : nullptr));
    if (!context_) {
      av_free(buffer);
      throw std::bad_alloc();
    }
  }
  AVIOContext* context() const { return context_.get(); }
  void rethrow() {
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  }

 private:
  using Byte = std::conditional_t<(LIBAVFORMAT_VERSION_MAJOR >= 61), const std::uint8_t, std::uint8_t>;

  static int write(void* opaque, Byte* data, int size) {
    auto& self = *static_cast<FileIo*>(opaque);
    try {
      self.file_.write(data, static_cast<std::size_t>(size));
      self.end_ = std::max(self.end_, self.file_.position());
      return size;
    } catch (...) {
      self.error_ = std::current_exception();
      return AVERROR(EIO);
    }
  }

  static std::int64_t seek(void* opaque, std::int64_t offset, int whence) {
    auto& self = *static_cast<FileIo*>(opaque);
    whence &= ~AVSEEK_FORCE;
    if (whence == AVSEEK_SIZE) return static_cast<std::int64_t>(self.end_);
    if (whence == SEEK_CUR) offset += static_cast<std::int64_t>(self.file_.position());
    if (whence == SEEK_END) offset += static_cast<std::int64_t>(self.end_);
    if (offset < 0) return AVERROR(EINVAL);
    try {
      self.file_.seek(static_cast<std::uint64_t>(offset));
      return offset;
    } catch (...) {
      self.error_ = std::current_exception();
      return AVERROR(EIO);
    }
  }

  FileSink& file_;
  IoPtr context_;
  std::uint64_t end_ = 0;
  std::exception_ptr error_;
};

struct FreeFormat {
  void operator()(AVFormatContext* p) const { avformat_free_context(p); }
};
using FormatPtr = std::unique_ptr<AVFormatContext, FreeFormat>;

}  // namespace trivelet::io
