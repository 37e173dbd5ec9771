// Codes blocks of labels: values that mean nothing as numbers but fill regions, as in label maps and masks (FORMAT.md
// "Labels"). A sample is asked to equal one of its neighbours, the likeliest first; the context is which of 16
// neighbours have that value. A row's stretch whose neighbours above and in frames before are all alike takes a single
// decision.
//
// Against the predictive profile on 142 labels in smooth regions (tests/bench/volume_kinds.py): a tenth of the bytes.
// Tried beside it on the same volume, in bytes: five contexts mixed by learned weights -13 %, for a tenth of the speed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "codec/predict/prediction_block.h"
#include "trivelet/parameters.h"

namespace trivelet::labels {

/// Holds scratch memory; each thread has an encoder of its own.
class LabelEncoder {
 public:
  explicit LabelEncoder(SimdLevel simd = SimdLevel::kBest);
  ~LabelEncoder();
  /// Appends the codeword to `out`. Appends nothing if all numbers are 0, or if it has more than `most` bytes.
  void encode(const prediction::BlockSamples<VolumeView>& block, std::vector<std::uint8_t>& out,
              std::size_t most = ~std::size_t{0});
  /// The bytes of the last call's codeword up to the end of its first `frames` frames.
  std::size_t bytes_until(int frames) const;
  /// Checks the codeword of the last call by reading it as a decoder does, with the probabilities that were written,
  /// and comparing every decision. It does not repeat the contexts.
  bool says_what_was_coded(const std::uint8_t* codeword, std::size_t size) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

class LabelDecoder {
 public:
  explicit LabelDecoder(SimdLevel simd = SimdLevel::kBest);
  ~LabelDecoder();
  /// `most_frames`: decodes no more, and does not look at what is behind them. Throws BadStream if the codeword ends
  /// long before its decisions.
  void decode(const prediction::BlockSamples<MutableVolumeView>& block, const std::uint8_t* codeword, std::size_t size,
              int most_frames = prediction::kAllFrames);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace trivelet::labels
