// Reads the bytes of a stream: the same calls for files, where skipping is a seek, and for pipes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include "trivelet/streams.h"

namespace trivelet {

/// Keeps the position and counts the bytes read. Skips by seeking if the source can seek. Begins at the source's first
/// byte.
class StreamInput {
 public:
  using Known = std::map<std::uint64_t, std::vector<std::uint8_t>>;

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
    auto* out = static_cast<std::byte*>(data);
    std::size_t done = 0;
    while (done < size) {
      const auto next = known_.upper_bound(position_);
      std::size_t n = copy_known(next, out + done, size - done);
      if (n == 0) {
        const std::uint64_t gap = next == known_.end() ? size - done : next->first - position_;
        move_source();
        n = source_.read(out + done, static_cast<std::size_t>(std::min<std::uint64_t>(gap, size - done)));
        if (n == 0) break;
        source_at_ += n;
        bytes_read_ += n;
      }
      position_ += n;
      done += n;
    }
    return done;
  }
  const Known& known() const { return known_; }
  // These bytes are at `offset` of a source that can seek: they are not read from the source.
  void know(std::uint64_t offset, std::vector<std::uint8_t> bytes) { known_[offset] = std::move(bytes); }
  // Appends `size` bytes to `out`, which grows only as data arrives. False if the source ends before.
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
    position_ = position;
    if (known_.empty()) move_source();
  }
  // False if the source ends before.
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
  void move_source() {
    if (source_at_ == position_) return;
    source_.seek(position_);
    source_at_ = position_;
  }
  // Up to `size` known bytes from the position on, but not beyond `next`; 0 if there are none.
  std::size_t copy_known(Known::const_iterator next, std::byte* out, std::size_t size) const {
    if (next == known_.begin()) return 0;
    const auto& [offset, bytes] = *std::prev(next);
    const std::uint64_t skipped = position_ - offset;
    if (skipped >= bytes.size()) return 0;
    const std::size_t n = std::min(size, bytes.size() - static_cast<std::size_t>(skipped));
    std::memcpy(out, bytes.data() + skipped, n);
    return n;
  }

  ByteSource& source_;
  std::uint64_t& bytes_read_;
  bool seekable_;
  std::uint64_t size_ = 0;
  std::uint64_t position_ = 0;
  std::uint64_t source_at_ = 0;  ///< the position of a source that can seek
  Known known_;
};

}  // namespace trivelet
