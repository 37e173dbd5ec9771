// What coder and decoder of codewords known ahead have in common (FORMAT.md "Known ahead").
#pragma once

#include <vector>

#include "codec/predict/prediction_head.h"
#include "codec/predict/prediction_kernels.h"

namespace trivelet::prediction {

/// Of every context kFrequencySum entries, by the lowest bits of a state.
void make_lookups(const std::vector<Frequencies>& tables, std::vector<std::uint32_t>& out);

/// Whether one of 16 tokens, or of fewer, has extra bits.
bool any_extra(const std::uint8_t* tokens, int n);

/// The parts of a codeword behind its head.
struct AheadParts {
  const std::uint8_t* extra = nullptr;
  std::size_t extra_bytes = 0;
  StateLanes lanes;
};
/// Throws BadStream.
AheadParts split_ahead(const std::uint8_t* data, std::size_t size);

/// All states are back where a coder began, and no word is left.
bool is_used_up(const StateLanes& lanes);

}  // namespace trivelet::prediction
