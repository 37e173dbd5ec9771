// Several GOPs side by side on the CPU. When many threads share one GOP they wait for each other at the end of every
// stage, and some stages divide badly: sixteen threads do the work of five to seven. So a GOP gets a few threads, which
// form a lane. The first lane has all threads; it serves streams of one GOP, and works alone while the other lanes are
// idle. A GOP's bytes are the same in every lane. GOPs that depend on earlier ones, or that aim at a number of bytes,
// are coded one after the other.
#pragma once

#include <cstdint>
#include <memory>

#include "codec/backend.h"

namespace trivelet {

/// The number of lanes for a stream of `gops` GOPs (0: not known), of which each needs `bytes` of memory. All lanes
/// together may use kLaneBytes per thread. 1 where more lanes would gain nothing.
int lanes_for(const StreamHeader& header, const BackendOptions& options, std::uint64_t bytes, std::uint64_t gops);
inline constexpr std::uint64_t kLaneBytes = std::uint64_t{160} << 20;

/// Bytes of memory that one GOP takes in an encoder, and in a decoder.
std::uint64_t encoding_memory(const StreamHeader& header);
std::uint64_t decoding_memory(const StreamHeader& header, const Reduction& reduction);

/// A lane is a transform encoder or decoder (cpu_backend.h) with a thread of its own. A lane is made when all others
/// are busy; there are at most options.lanes of them.
std::unique_ptr<GopEncoder> make_encoder_lanes(const StreamHeader& header, const BackendOptions& options);
std::unique_ptr<GopDecoder> make_decoder_lanes(const StreamHeader& header, const Reduction& reduction,
                                               const BackendOptions& options);

}  // namespace trivelet
