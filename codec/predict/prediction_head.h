// The header of a block's codeword: weights, and the frequencies of tokens (FORMAT.md "Head of a codeword").
#pragma once

#include <vector>

#include "codec/base/bits.h"
#include "codec/predict/prediction_history.h"

namespace trivelet::prediction {

/// Frequencies by context. They are all 0 for a context that does not occur, and add up to kFrequencySum otherwise.
struct FrequencyTables {
  std::vector<Frequencies> classes;  ///< classes of tiles, by the class before; empty if there is one class
  std::vector<Frequencies> samples;  ///< kContexts
  std::array<std::uint32_t, kFlatContexts> zero{};  ///< of flat samples that are as predicted, of kZeroSum
  // Only in streams with inter frames:
  std::vector<Frequencies> vectors;        ///< kVectorContexts; empty if no frame is an inter frame
  std::vector<Frequencies> first_samples;  ///< kContexts, for the first frame; empty: the first frame uses `samples`
  std::array<std::uint32_t, kFlatContexts> first_zero{};  ///< `zero` of the first frame
};

/// Turns counts into frequencies. Every symbol that occurs gets at least 1.
Frequencies frequencies_of(const std::vector<std::uint32_t>& counts);

/// The frequency of `zeros` cases among `all`. It is neither 0 nor kZeroSum if both kinds occur.
std::uint32_t zero_frequency(std::uint32_t zeros, std::uint32_t all);

/// The number of bits that the frequencies take in a header.
std::size_t frequency_bits(const Frequencies& f);

/// The facts on which the fields of a header depend.
struct HeadKind {
  int frames = 1;
  bool moved = false;  ///< the stream may have inter frames
};
void write_head(const BlockHead& head, HeadKind kind, const FrequencyTables& tables, BitWriter& out);
/// Throws BadStream. `head` then has no motion vectors yet, and no memory for them.
void read_head(BitReader& in, HeadKind kind, BlockHead& head, FrequencyTables& tables);

/// The header of a codeword with static contexts. Such a codeword has one class, and one tile of all frames; the reader
/// sets these fields.
void write_ahead_head(const BlockHead& head, bool one_frame, const std::vector<Frequencies>& tables, BitWriter& out);
/// The header of a codeword with mixed contexts: weights alone.
void write_mixed_head(const BlockHead& head, bool one_frame, BitWriter& out);
/// Throws BadStream.
void read_mixed_head(BitReader& in, bool one_frame, BlockHead& head);
/// Throws BadStream.
void read_ahead_head(BitReader& in, bool one_frame, BlockHead& head, std::vector<Frequencies>& tables);

}  // namespace trivelet::prediction
