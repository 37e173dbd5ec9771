// What codewords of the predictive profile have in common that code a block row by row through the range coder: labels
// (label_block.h) and mixed contexts (mixed_block.h).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "codec/base/bad_stream.h"
#include "codec/entropy/dense/range_coder.h"
#include "codec/predict/prediction_block.h"
#include "codec/predict/prediction_history.h"
#include "trivelet/large_memory.h"

namespace trivelet::row_coding {

constexpr std::int64_t kMostBitsBeyondEnd = 16;
constexpr std::int64_t kMostBitsLeft = 64;

/// Decisions that are written, written and kept to compare them with the codeword, and read.
struct WritingBits {
  static constexpr bool kReading = false;
  dense::RangeEncoder coder;
  void start() { coder.start(); }
  void reserve(std::size_t decisions) { coder.reserve(decisions); }
  void end_frame() {}
  bool code(std::uint32_t probability, bool bit) {
    coder.put(bit, probability);
    return bit;
  }
};

struct RecordingBits {
  static constexpr bool kReading = false;
  dense::RangeEncoder coder;
  LargeVector<std::uint32_t> decisions;  ///< twice the probability, plus the decision
  std::size_t count = 0;
  std::vector<std::size_t> bytes_until;  ///< the end of each frame
  void start() {
    coder.start();
    count = 0;
    bytes_until.clear();
  }
  void end_frame() { bytes_until.push_back(coder.mark().bytes); }
  void reserve(std::size_t more) {
    coder.reserve(more);
    if (count + more <= decisions.size()) return;
    LargeVector<std::uint32_t> larger(2 * (count + more));
    std::copy_n(decisions.begin(), count, larger.begin());
    decisions.swap(larger);
  }
  bool code(std::uint32_t probability, bool bit) {
    coder.put(bit, probability);
    decisions[count++] = 2 * probability + (bit ? 1 : 0);
    return bit;
  }
};

struct ReadingBits {
  static constexpr bool kReading = true;
  dense::RangeDecoder coder;
  bool code(std::uint32_t probability, bool) { return coder.get(probability); }
};

/// Appends `head` and the rows of a block to `out`, nothing if that has more than `most` bytes. `block` has been
/// started and has the samples in its history; a row takes at most `most_of_row` decisions.
template <class BlockCoder>
void write(BlockCoder& block, const prediction::BlockSamples<VolumeView>& b, std::size_t most_of_row,
           const std::vector<std::uint8_t>& head, std::size_t most, std::vector<std::uint8_t>& out) {
  dense::RangeEncoder& coder = block.bits.coder;
  block.bits.start();
  for (int z = 0; z < b.frames(); ++z) {
    for (int y = 0; y < b.height; ++y) {
      block.bits.reserve(most_of_row);
      block.code_row(z, y);
      if (coder.mark().bytes > most) return;
    }
    block.bits.end_frame();
  }
  // No shorter than what was put: a decoder takes more bits behind the end for damage.
  const std::size_t put = coder.mark().bytes;
  coder.finish();
  if (head.size() + std::max(put, coder.size()) > most) return;
  out.insert(out.end(), head.begin(), head.end());
  out.insert(out.end(), coder.data(), coder.data() + coder.size());
  if (coder.size() < put) out.resize(out.size() + put - coder.size());
}

/// Whether a decoder reads the decisions that write() has recorded from these rows.
inline bool says(const RecordingBits& bits, const std::uint8_t* rows, std::size_t size) {
  dense::RangeDecoder coder;
  coder.start(rows, size);
  bool right = true;
  for (std::size_t i = 0; i < bits.count; ++i)
    right &= coder.get(bits.decisions[i] >> 1) == ((bits.decisions[i] & 1) != 0);
  return right && coder.beyond_end() <= kMostBitsBeyondEnd && coder.beyond_end() >= -kMostBitsLeft;
}

/// Reads the rows of a block behind the head of its codeword, whose `name` is for errors. `block` has been started. No
/// more than `most_frames` are read.
template <class BlockCoder>
void read(BlockCoder& block, const prediction::BlockSamples<MutableVolumeView>& b, const std::uint8_t* rows,
          std::size_t size, const char* name, int most_frames = prediction::kAllFrames) {
  dense::RangeDecoder& coder = block.bits.coder;
  coder.start(rows, size);
  for (int z = 0; z < std::min(b.frames(), most_frames); ++z)
    for (int y = 0; y < b.height; ++y) {
      block.code_row(z, y);
      if (coder.beyond_end() > kMostBitsBeyondEnd)
        bad(std::string(name) + " ends before row " + std::to_string(y) + " of frame " + std::to_string(z));
      prediction::store_row(block.history, z, y, b);
    }
  if (most_frames >= b.frames() && coder.beyond_end() < -kMostBitsLeft)
    bad(std::string(name) + " goes on behind its block");
}

}  // namespace trivelet::row_coding
