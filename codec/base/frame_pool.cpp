// Blocks of memory, each divided into pieces of one size while any of them is in use (frame_pool.h).
#include "codec/base/frame_pool.h"

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include "trivelet/large_memory.h"

namespace trivelet {

namespace {

constexpr std::size_t kCacheLine = 64;

struct Block {
  LargeVector<std::byte> memory;
  std::size_t piece_bytes = 0;
  std::vector<std::size_t> free;  // pieces
  std::size_t pieces() const { return memory.size() / piece_bytes; }
  bool is_unused() const { return piece_bytes == 0 || free.size() == pieces(); }
  void divide(std::size_t bytes) {
    piece_bytes = bytes;
    free.resize(pieces());
    for (std::size_t i = 0; i < free.size(); ++i) free[i] = free.size() - 1 - i;
  }
};

}  // namespace

struct FramePool::State {
  std::mutex mutex;
  std::size_t block_bytes;
  std::vector<std::unique_ptr<Block>> blocks;

  // A block with a free piece of this size.
  Block& block_for(std::size_t bytes) {
    Block* unused = nullptr;
    for (const auto& block : blocks) {
      if (block->piece_bytes == bytes && !block->free.empty() && !block->is_unused()) return *block;
      if (block->is_unused() && block->memory.size() >= bytes) unused = block.get();
    }
    if (!unused) {
      auto made = std::make_unique<Block>();
      made->memory.resize(std::max(block_bytes, bytes));
      blocks.push_back(std::move(made));
      unused = blocks.back().get();
    }
    unused->divide(bytes);
    return *unused;
  }
  std::pair<Block*, std::size_t> take(std::size_t bytes) {
    const std::lock_guard lock(mutex);
    Block& block = block_for(bytes);
    const std::size_t number = block.free.back();
    block.free.pop_back();
    return {&block, number};
  }
  // Allocates nothing: `free` has room for all pieces.
  void give_back(Block& block, std::size_t number) noexcept {
    const std::lock_guard lock(mutex);
    block.free.push_back(number);
  }
};

FramePool::FramePool(std::size_t block_bytes) : state_(std::make_shared<State>()) { state_->block_bytes = block_bytes; }

std::shared_ptr<std::byte> FramePool::take(std::size_t bytes) {
  const std::size_t piece = std::max(kCacheLine, (bytes + kCacheLine - 1) / kCacheLine * kCacheLine);
  const auto [block, number] = state_->take(piece);
  return {block->memory.data() + number * piece,
          [state = state_, block = block, number = number](std::byte*) noexcept { state->give_back(*block, number); }};
}

void FramePool::trim() {
  const std::lock_guard lock(state_->mutex);
  std::erase_if(state_->blocks, [](const auto& block) { return block->is_unused(); });
}

}  // namespace trivelet
