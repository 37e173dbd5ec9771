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

namespace trivelet::row_coding {

constexpr std::int64_t kMostBitsBeyondEnd = 16;
constexpr std::int64_t kMostBitsLeft = 64;

/// Decisions that are written, and those that are read.
struct WritingBits {
  static constexpr bool kReading = false;
  dense::RangeEncoder coder;
  bool code(std::uint32_t probability, bool bit) {
    coder.put(bit, probability);
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
  coder.start();
  for (int z = 0; z < b.frames(); ++z)
    for (int y = 0; y < b.height; ++y) {
      coder.reserve(most_of_row);
      block.code_row(z, y);
      if (coder.mark().bytes > most) return;
    }
  // No shorter than what was put: a decoder takes more bits behind the end for damage.
  const std::size_t put = coder.mark().bytes;
  coder.finish();
  if (head.size() + std::max(put, coder.size()) > most) return;
  out.insert(out.end(), head.begin(), head.end());
  out.insert(out.end(), coder.data(), coder.data() + coder.size());
  if (coder.size() < put) out.resize(out.size() + put - coder.size());
}

/// Reads the rows of a block behind the head of its codeword, whose `name` is for errors. `block` has been started.
template <class BlockCoder>
void read(BlockCoder& block, const prediction::BlockSamples<MutableVolumeView>& b, const std::uint8_t* rows,
          std::size_t size, const char* name) {
  dense::RangeDecoder& coder = block.bits.coder;
  coder.start(rows, size);
  for (int z = 0; z < b.frames(); ++z)
    for (int y = 0; y < b.height; ++y) {
      block.code_row(z, y);
      if (coder.beyond_end() > kMostBitsBeyondEnd)
        bad(std::string(name) + " ends before row " + std::to_string(y) + " of frame " + std::to_string(z));
      prediction::store_row(block.history, z, y, b);
    }
  if (coder.beyond_end() < -kMostBitsLeft) bad(std::string(name) + " goes on behind its block");
}

}  // namespace trivelet::row_coding
