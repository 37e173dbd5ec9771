// What a player asks of a PacketDecoder: its settings of quality and size as a request that the stream can answer.
#pragma once

#include <algorithm>

#include "trivelet/packet_decoder.h"

namespace trivelet {

/// The user's settings.
struct PlayerRequest {
  int layers = 0;   ///< 0 = all; also more than there are
  int reduce = 0;   ///< how often width and height are halved
  int threads = 0;  ///< 0 = one per core
};

/// For the packets of `decoder`, which has a header. What is intact of a damaged packet is shown.
inline DecoderParams request_for(const PacketDecoder& decoder, const PlayerRequest& wanted) {
  DecoderParams p;
  p.max_layers = std::min(wanted.layers, decoder.stream().layers);
  p.reduce = wanted.reduce;
  p.threads = wanted.threads;
  p.keep_partial = true;
  return p;
}

}  // namespace trivelet
