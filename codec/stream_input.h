// Access to the bytes of a stream for the decoder: the same calls for files, where skipping is a seek, and for pipes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "trivelet/streams.h"

namespace trivelet {

/// Keeps the position and counts what was read; skips by seeking where the source can.
class StreamInput {
 public:
  StreamInput(ByteSource& source, std::uint64_t& bytes_read)
      : source_(source), bytes_read_(bytes_read), seekable_(source.seekable()) {
    if (seekable_) size_ = source.size();
  }
  const ByteSource& source() const { return source_; }
  bool seekable() const { return seekable_; }
  std::uint64_t size() const { return size_; }
  std::uint64_t position() const { return position_; }

  // Up to `size` bytes; fewer at the end.
  std::size_t read(void* data, std::size_t size) {
    std::size_t done = 0;
    while (done < size) {
      const std::size_t n = source_.read(static_cast<std::byte*>(data) + done, size - done);
      if (n == 0) break;
      done += n;
    }
    position_ += done;
    bytes_read_ += done;
    return done;
  }
  // Appends `size` bytes to `out`, growing it only as data arrives. False when the source ends before.
  bool append(std::vector<std::uint8_t>& out, std::uint64_t size) {
    constexpr std::uint64_t kPiece = std::uint64_t{4} << 20;
    while (size > 0) {
      const auto n = static_cast<std::size_t>(std::min(size, kPiece));
      const std::size_t at = out.size();
      out.resize(at + n);
      const std::size_t got = read(out.data() + at, n);
      if (got < n) {
        out.resize(at + got);
        return false;
      }
      size -= n;
    }
    return true;
  }
  void seek(std::uint64_t position) {
    if (position == position_) return;
    source_.seek(position);
    position_ = position;
  }
  // False when the source ends before.
  bool skip(std::uint64_t n) {
    if (seekable_) {
      if (n > size_ - position_) return false;
      seek(position_ + n);
      return true;
    }
    std::vector<std::uint8_t> dump(static_cast<std::size_t>(std::min<std::uint64_t>(n, 1 << 16)));
    while (n > 0) {
      const auto piece = static_cast<std::size_t>(std::min<std::uint64_t>(n, dump.size()));
      if (read(dump.data(), piece) < piece) return false;
      n -= piece;
    }
    return true;
  }

 private:
  ByteSource& source_;
  std::uint64_t& bytes_read_;
  bool seekable_;
  std::uint64_t size_ = 0;
  std::uint64_t position_ = 0;
};

}  // namespace trivelet
