// Encoders and decoders of one block of the predictive profile (FORMAT.md "Predictive profile"): numbers <-> a
// codeword.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "trivelet/parameters.h"
#include "trivelet/types.h"

namespace trivelet::prediction {

/// How thoroughly an encoder searches.
struct Effort {
  int classes = 8;      ///< at most
  int rounds = 2;       ///< of assigning classes to tiles
  int tap_set = 1;      ///< index of kTapSets
  int log2_edge = 4;    ///< log2 of the edge of tiles
  int log2_frames = 2;  ///< log2 of the frames of tiles
  int frame_step = 2;   ///< every n-th frame serves to fit the weights
  // Every n-th row serves to fit the weights.
  int row_step = 2;
  bool moved = false;        ///< the stream may have inter frames
  int log2_cell = 4;         ///< log2 of the edge of motion cells
  bool same_motion = false;  ///< reuse the motion of the previous call, which was of the same block
};

/// Where the samples of a block lie in a component.
template <class View>
struct BlockSamples {
  View plane;
  int y = 0;
  int x = 0;
  int height = 0;
  int width = 0;
  int bits = 8;  ///< of a sample; numbers lie in -2^(bits - 1) .. 2^(bits - 1) - 1

  int frames() const { return plane.shape.frames; }
  int low() const { return -(1 << (bits - 1)); }
  int high() const { return (1 << (bits - 1)) - 1; }
  /// The difference between a sample and its number.
  int offset() const { return plane.is_signed ? 0 : 1 << (bits - 1); }
  auto* row(int frame, int row) const {
    return plane.row(frame, y + row) + static_cast<std::ptrdiff_t>(x) * plane.bytes_per_sample;
  }
};

/// For a decoder: all frames of a block.
inline constexpr int kAllFrames = std::numeric_limits<int>::max();

/// Encodes blocks. It holds scratch memory; each thread has an encoder of its own.
class BlockEncoder {
 public:
  explicit BlockEncoder(SimdLevel simd);
  ~BlockEncoder();
  /// Appends the codeword to `out`. Appends nothing if all numbers are 0.
  void encode(const BlockSamples<VolumeView>& block, const Effort& effort, std::vector<std::uint8_t>& out);
  /// Checks the codeword of the last call by reading it as a decoder does. Compares weights, frequencies, classes,
  /// every token and the extra bits. It does not repeat the prediction.
  bool says_what_was_coded(const std::uint8_t* codeword, std::size_t size) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

class BlockDecoder {
 public:
  explicit BlockDecoder(SimdLevel simd);
  ~BlockDecoder();
  /// `moved`: the stream may have inter frames. `most_frames`: decodes no more, and does not look at what is behind
  /// them. Throws BadStream if the codeword contradicts itself.
  void decode(const BlockSamples<MutableVolumeView>& block, const std::uint8_t* codeword, std::size_t size, bool moved,
              int most_frames = kAllFrames);
  /// Sets all numbers of the block to 0.
  static void clear(const BlockSamples<MutableVolumeView>& block);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Encodes blocks as codewords with static contexts (FORMAT.md "Known ahead"). They are twice as fast to encode and
/// 1.5 times to decode, and a twentieth longer.
class AheadEncoder {
 public:
  explicit AheadEncoder(SimdLevel simd);
  ~AheadEncoder();
  /// What the first frames are to take at most.
  struct Most {
    int frames = kAllFrames;
    std::size_t bytes = 0;
  };
  /// Appends nothing if all numbers are 0, or if the entropy of the first frames is more than `most`.
  void encode(const BlockSamples<VolumeView>& block, std::vector<std::uint8_t>& out, const Most& most);
  void encode(const BlockSamples<VolumeView>& block, std::vector<std::uint8_t>& out) { encode(block, out, Most{}); }
  bool says_what_was_coded(const std::uint8_t* codeword, std::size_t size) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

class AheadDecoder {
 public:
  explicit AheadDecoder(SimdLevel simd);
  ~AheadDecoder();
  /// `most_frames` as above. Throws BadStream if the codeword contradicts itself.
  void decode(const BlockSamples<MutableVolumeView>& block, const std::uint8_t* codeword, std::size_t size,
              int most_frames = kAllFrames);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace trivelet::prediction
