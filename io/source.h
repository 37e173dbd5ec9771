// Bytes of a file or of standard input, in order, with a look ahead that loses nothing. Internal to io.
//
// Y4M, raw and FFmpeg readers all read through it, so a format can be recognised on a pipe and then be handed the
// untouched stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace trivelet::io {

/// Not a trivelet::ByteSource, because it looks ahead and has a name.
class InputBytes {
 public:
  /// Opens `path`, "-" being standard input. Throws Io.
  explicit InputBytes(const std::string& path);
  ~InputBytes();
  InputBytes(const InputBytes&) = delete;
  InputBytes& operator=(const InputBytes&) = delete;

  /// The next `count` bytes without consuming them; fewer only at the end. Valid until the next call.
  std::string_view peek(std::size_t count);
  /// Reads `size` bytes; returns how many there were, fewer only at the end.
  std::size_t read(void* data, std::size_t size);
  /// Reads the available bytes, at least one and at most `size`; 0 at the end.
  std::size_t read_some(void* data, std::size_t size);
  /// Passes over `count` bytes; returns how many there were.
  std::uint64_t skip(std::uint64_t count);
  /// Bytes in all, for regular files.
  std::optional<std::uint64_t> size() const { return size_; }
  std::uint64_t position() const { return position_; }
  /// Regular files only.
  void seek(std::uint64_t position);
  /// Reads from a position of a regular file, whatever position() is; for any thread. Returns the number of bytes,
  /// fewer than `size` only at the end.
  std::size_t read_at(std::uint64_t position, void* data, std::size_t size) const;
  /// For messages: the path or "standard input".
  const std::string& name() const { return name_; }

 private:
  std::size_t read_file(void* data, std::size_t size);

  std::string name_;
  int file_ = -1;
  bool owned_ = false;
  std::uint64_t start_ = 0;     ///< file offset of our position 0
  std::uint64_t position_ = 0;  ///< of the consumer
  std::optional<std::uint64_t> size_;
  std::vector<char> ahead_;  ///< bytes read but not consumed: [ahead_begin_, ahead_.size())
  std::size_t ahead_begin_ = 0;
};

}  // namespace trivelet::io
