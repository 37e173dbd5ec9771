// The head of a block's codeword: weights, and the frequencies of tokens (FORMAT.md "Head of a codeword").
#pragma once

#include <vector>

#include "codec/base/bits.h"
#include "codec/predict/prediction_history.h"

namespace trivelet::prediction {

/// By context; all 0 where a context is not used. Else they add up to kFrequencySum.
struct FrequencyTables {
  std::vector<Frequencies> classes;  ///< of the map of tiles, by the class before; empty when there is one class
  std::vector<Frequencies> samples;  ///< kContexts
  std::array<std::uint32_t, kFlatContexts> zero{};  ///< of kZeroSum: of flat samples that are as predicted
  // With the feature moved:
  std::vector<Frequencies> vectors;                       ///< kVectorContexts; empty when no frame moves
  std::vector<Frequencies> first_samples;                 ///< kContexts, of the first frame; empty: those of the others
  std::array<std::uint32_t, kFlatContexts> first_zero{};  ///< likewise
};

/// What occurred so often -> frequencies. Everything that occurs gets at least 1.
Frequencies frequencies_of(const std::vector<std::uint32_t>& counts);

/// Of `zeros` among `all`: neither 0 nor kZeroSum if both kinds occur.
std::uint32_t zero_frequency(std::uint32_t zeros, std::uint32_t all);

/// Bits that they take in a head.
std::size_t frequency_bits(const Frequencies& f);

/// What a head has besides what it always has depends on the block and on its stream.
struct HeadKind {
  int frames = 1;
  bool moved = false;  ///< the feature
};
void write_head(const BlockHead& head, HeadKind kind, const FrequencyTables& tables, BitWriter& out);
/// Throws BadStream. Of motion there is no vector yet, nor room for it.
void read_head(BitReader& in, HeadKind kind, BlockHead& head, FrequencyTables& tables);

/// Of codewords whose contexts are known ahead. What is not in them, classes and tiles, is set: one of all frames.
void write_ahead_head(const BlockHead& head, bool one_frame, const std::vector<Frequencies>& tables, BitWriter& out);
/// Throws BadStream.
void read_ahead_head(BitReader& in, bool one_frame, BlockHead& head, std::vector<Frequencies>& tables);

}  // namespace trivelet::prediction
