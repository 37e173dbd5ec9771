// Codes blocks of numbers with mixed contexts (FORMAT.md "Mixed"): the predictive profile's neighbours and prediction,
// but each residual in binary decisions whose probabilities adapt and are mixed from six contexts. A codeword has no
// tables of frequencies, so that it also suits blocks of a few thousand samples. 5 to 10 % smaller than other codewords
// on noisy volumes, and slow: each decision depends on the one before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "codec/predict/prediction_block.h"

namespace trivelet::mixed {

/// Holds scratch memory; each thread has an encoder of its own.
class MixedEncoder {
 public:
  MixedEncoder();
  ~MixedEncoder();
  /// Appends the codeword to `out`. Appends nothing if all numbers are 0, or if it has more than `most` bytes.
  void encode(const prediction::BlockSamples<VolumeView>& block, std::vector<std::uint8_t>& out,
              std::size_t most = ~std::size_t{0});

 private:
  struct State;
  std::unique_ptr<State> state_;
};

class MixedDecoder {
 public:
  MixedDecoder();
  ~MixedDecoder();
  /// Throws BadStream if the codeword contradicts itself or ends long before its decisions.
  void decode(const prediction::BlockSamples<MutableVolumeView>& block, const std::uint8_t* codeword, std::size_t size);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace trivelet::mixed
