// The packets of a Trivelet track, as the modules for players get them from a demultiplexer (io/video/matroska.h).
//
// A packet is a GOP. One that decodes alone begins with the stream's header; those behind it are decoded together with
// it, as far as they need what came before. The packet with the index shows nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "trivelet/codec.h"

namespace trivelet {

class PacketRun {
 public:
  /// After a jump: nothing that came before is needed.
  void clear() { packets_.clear(); }

  /// False if the packet shows nothing: the index, or a GOP that leans on one that was not seen.
  bool add(const void* data, std::size_t size) {
    const bool alone = is_tvl(data, size);
    const bool gop = alone || (size >= 4 && std::memcmp(data, "Gop ", 4) == 0);
    if (alone) packets_.clear();
    if (!gop || (!alone && packets_.empty())) return false;
    const auto* bytes = static_cast<const std::uint8_t*>(data);
    packets_.insert(packets_.end(), bytes, bytes + size);
    return true;
  }

  /// Decodes the packet added last, `layers` and `reduce` of it: show(const VideoInfo&, const Gop&) gets its frames.
  /// Throws what Decoder throws.
  template <class Show>
  void decode(int layers, int reduce, int threads, const Show& show) const {
    MemorySource source(packets_.data(), packets_.size());
    const StreamInfo stream = probe(source);
    if (stream.gops.empty()) return;
    DecoderParams params;
    params.first_frame = stream.gops.back().first_frame;
    params.keep_partial = true;  // after seeking, what came before is missing
    params.max_layers = layers < stream.layers ? layers : stream.layers;
    params.reduce = reduce;
    params.threads = threads;
    source.seek(0);
    Decoder decoder(source, params);
    Gop gop = decoder.make_gop();
    while (decoder.pull(gop)) show(decoder.output(), gop);
  }

 private:
  std::vector<std::uint8_t> packets_;  ///< from the last one that decodes alone
};

}  // namespace trivelet
