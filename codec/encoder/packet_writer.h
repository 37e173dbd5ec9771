// Writes a stream: its boxes, the packets of its GOPs, and the index at the end.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "codec/encoder/encoder_context.h"
#include "codec/encoder/gop_work.h"
#include "codec/rate/rate_bound.h"

namespace trivelet {

/// Keeps the position in the stream and the index. Used by one thread at a time: the writing thread of an OutputStage
/// while that runs, else the thread that calls the encoder. Any thread may call counts().
class PacketWriter {
 public:
  PacketWriter(EncoderContext& context, ByteSink& sink);

  /// Writes the signature, the header and the boxes before the first GOP. Throws BadArgument for boxes that a stream
  /// cannot have.
  void write_head();
  /// Writes a packet. `errors`: mean squared errors of the layers; empty if they are set later, in index().
  void write_packet(const PendingGop& p, const LayeredGop& layers, const GopChunks& chunks,
                    const std::vector<double>& errors);
  /// The same of a GOP that is divided into layers; makes its chunks.
  void write_divided(const PendingGop& p, const LayeredGop& layers, const std::vector<double>& errors);
  /// Writes the index and the end.
  void write_end();

  /// The bytes of a packet without its chunks and their entries.
  std::uint64_t head_bytes(const PendingGop& p) const;
  /// The most bytes that the bound on the rate leaves to the chunks of the next GOP and their entries; without a bound
  /// the largest number.
  std::uint64_t bytes_allowed(const PendingGop& p) const;

  std::uint64_t position() const { return position_; }
  std::vector<GopInfo>& index() { return index_; }
  /// The entry of the packet written last, for an observer that keeps the index itself.
  GopInfo take_entry();

  struct Counts {
    std::uint64_t gops = 0;
    std::uint64_t bytes = 0;
  };
  Counts counts() const;

 private:
  void check_boxes(const std::vector<ExtraBox>& boxes) const;
  static GopHeader packet_header(const PendingGop& p);
  void write(const void* data, std::size_t size);
  void end_packet(const PacketInfo& packet);
  void write_box(const char* type, const std::vector<std::uint8_t>& payload);

  EncoderContext& context_;
  ByteSink& sink_;
  std::optional<RateBound> bound_;
  std::vector<GopInfo> index_;
  std::uint64_t position_ = 0;
  std::uint64_t frames_ = 0;
  mutable std::mutex mutex_;
  Counts counts_;
};

}  // namespace trivelet
