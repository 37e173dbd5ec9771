// Many short streams of one kind: what a Decoder takes its time to make (on a GPU tables, memory, queues of work) is
// made once for all of them.
#pragma once

#include <cstddef>
#include <memory>

namespace trivelet {

struct Backend;  // for Decoder (codec.h), which it must outlive

/// So many are kept, those that were used last: every other size of pictures is another kind.
inline constexpr std::size_t kMostKeptDecoders = 32;

/// A backend whose decoders are those of `backend`. What one of them is made of is kept when it is destroyed with
/// nothing left in it, for the next stream of the same header and request, as long as this backend is there, and so are
/// tables of a few kinds of streams, which those beside each other share. Streams may be decoded beside
/// each other. Of streams with motion, and for a caller with a runner of its own (Workers::run), nothing is kept.
std::shared_ptr<const Backend> keep_decoders(std::shared_ptr<const Backend> backend);

}  // namespace trivelet
