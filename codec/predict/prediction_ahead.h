// What encoder and decoder of codewords with static contexts share (FORMAT.md "Known ahead").
#pragma once

#include <vector>

#include "codec/predict/prediction_head.h"
#include "codec/predict/prediction_kernels.h"

namespace trivelet::prediction {

/// Makes kFrequencySum entries for every context, indexed by the lowest bits of a state.
void make_lookups(const std::vector<Frequencies>& tables, std::vector<std::uint32_t>& out);

/// Whether any of n tokens, at most 16, has extra bits.
bool any_extra(const std::uint8_t* tokens, int n);

/// The parts of a codeword behind its header.
struct AheadParts {
  const std::uint8_t* extra = nullptr;
  std::size_t extra_bytes = 0;
  StateLanes lanes;
};
/// Throws BadStream.
AheadParts split_ahead(const std::uint8_t* data, std::size_t size);

/// Whether every state has its initial value and no word is left, as at the end of a valid codeword.
bool is_used_up(const StateLanes& lanes);

}  // namespace trivelet::prediction
