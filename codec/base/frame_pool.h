// Memory for frames of a GOP that is used again and again: samples are written where frames of coefficients lay, and
// those of the next GOP where samples lay that nobody needs any more. To touch new memory takes a tenth of the time of
// decoding.
#pragma once

#include <cstddef>
#include <memory>

namespace trivelet {

/// Any threads may take and free pieces.
class FramePool {
 public:
  /// Pieces are parts of blocks of `block_bytes` or more.
  explicit FramePool(std::size_t block_bytes);

  /// A piece of at least so many bytes, of any values, aligned to cache lines. It may outlive the pool. Throws
  /// std::bad_alloc.
  std::shared_ptr<std::byte> take(std::size_t bytes);
  /// Frees the blocks of which no piece is in use.
  void trim();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace trivelet
