// Reuse of decoder and encoder state for many short streams of one kind: what is expensive to set up (on a GPU tables,
// memory and work queues) is made once.
#pragma once

#include <cstddef>
#include <memory>

namespace trivelet {

struct Backend;  // for Decoder and Encoder (codec.h), which it must outlive

/// The most decoder states kept; the least recently used is dropped. Every other picture size needs its own.
inline constexpr std::size_t kMostKeptDecoders = 32;

/// Wraps `backend` and keeps the state of its finished decoders for the next stream of the same header and request,
/// until the wrapper is destroyed. Tables of a few kinds of streams are kept as well and shared. Streams may be decoded
/// in parallel. Nothing is kept for streams with motion, nor for callers with Workers::run.
std::shared_ptr<const Backend> keep_decoders(std::shared_ptr<const Backend> backend);

/// The most encoder states kept; the least recently used is dropped.
inline constexpr std::size_t kMostKeptEncoders = 32;

/// The same for encoders: wraps `backend` and keeps the state of its finished encoders for the next stream with the
/// same header and options.
std::shared_ptr<const Backend> keep_encoders(std::shared_ptr<const Backend> backend);

}  // namespace trivelet
