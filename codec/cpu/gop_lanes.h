// Several GOPs beside each other on the CPU. Many threads with one GOP wait for each other at the end of every stage,
// and in stages that divide badly: sixteen do the work of five to seven. So a few of them share a GOP, a lane; the
// first lane has all threads, for a stream of one GOP and while others have nothing to do. What a GOP becomes is the
// same in every lane. GOPs that depend on those before them, and whose bytes are aimed at, are coded one after the
// other.
#pragma once

#include <cstdint>
#include <memory>

#include "codec/backend.h"

namespace trivelet {

/// GOPs beside each other at most, of `gops` that there are (0: not known). Of memory they may take all together what
/// `threads` times kLaneBytes is, of which each needs `bytes`. 1 where they would gain nothing.
int lanes_for(const StreamHeader& header, const BackendOptions& options, std::uint64_t bytes, std::uint64_t gops);
inline constexpr std::uint64_t kLaneBytes = std::uint64_t{160} << 20;

/// What a GOP takes in an encoder, and in a decoder.
std::uint64_t encoding_memory(const StreamHeader& header);
std::uint64_t decoding_memory(const StreamHeader& header, const Reduction& reduction);

/// A lane is a transform encoder or decoder (cpu_backend.h) with a thread of its own, made when all others are busy;
/// there are options.lanes of them at most.
std::unique_ptr<GopEncoder> make_encoder_lanes(const StreamHeader& header, const BackendOptions& options);
std::unique_ptr<GopDecoder> make_decoder_lanes(const StreamHeader& header, const Reduction& reduction,
                                               const BackendOptions& options);

}  // namespace trivelet
