// One block of the predictive profile (FORMAT.md "Predictive profile"): numbers <-> a codeword.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "trivelet/parameters.h"
#include "trivelet/types.h"

namespace trivelet::prediction {

/// How much an encoder looks for.
struct Effort {
  int classes = 8;      ///< at most
  int rounds = 2;       ///< of choosing classes for tiles
  int tap_set = 1;      ///< index of kTapSets
  int log2_edge = 4;    ///< of tiles
  int log2_frames = 2;  ///< of tiles
  int frame_step = 2;   ///< of the frames and rows that weights are made from
  int row_step = 2;
  bool moved = false;        ///< the stream has the feature: frames may move
  int log2_cell = 4;         ///< of motion
  bool same_motion = false;  ///< as in the call before, which was of the same block
};

/// Where the samples of a block are in those of a component.
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
  /// A number is a sample minus this.
  int offset() const { return plane.is_signed ? 0 : 1 << (bits - 1); }
  auto* row(int frame, int row) const {
    return plane.row(frame, y + row) + static_cast<std::ptrdiff_t>(x) * plane.bytes_per_sample;
  }
};

/// Codes blocks. Holds scratch memory; one object per thread.
class BlockEncoder {
 public:
  explicit BlockEncoder(SimdLevel simd);
  ~BlockEncoder();
  /// Appends the codeword to `out`; nothing when all numbers are 0.
  void encode(const BlockSamples<VolumeView>& block, const Effort& effort, std::vector<std::uint8_t>& out);
  /// Reads the codeword that was made last as a decoder does and compares: weights, frequencies, classes, every token
  /// with the one that was to be coded, extra bits. What it does not do is predict again.
  bool says_what_was_coded(const std::uint8_t* codeword, std::size_t size) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

class BlockDecoder {
 public:
  explicit BlockDecoder(SimdLevel simd);
  ~BlockDecoder();
  /// `moved`: the stream has the feature. Throws BadStream when the codeword contradicts itself.
  void decode(const BlockSamples<MutableVolumeView>& block, const std::uint8_t* codeword, std::size_t size, bool moved);
  /// All numbers 0.
  static void clear(const BlockSamples<MutableVolumeView>& block);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Likewise, codewords whose contexts are known ahead (FORMAT.md "Known ahead"): several times as fast both ways, and a
/// twentieth longer.
class AheadEncoder {
 public:
  explicit AheadEncoder(SimdLevel simd);
  ~AheadEncoder();
  void encode(const BlockSamples<VolumeView>& block, std::vector<std::uint8_t>& out);
  bool says_what_was_coded(const std::uint8_t* codeword, std::size_t size) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

class AheadDecoder {
 public:
  explicit AheadDecoder(SimdLevel simd);
  ~AheadDecoder();
  /// Throws BadStream when the codeword contradicts itself.
  void decode(const BlockSamples<MutableVolumeView>& block, const std::uint8_t* codeword, std::size_t size);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace trivelet::prediction
