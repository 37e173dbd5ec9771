// Times of decoding for packets whose container tells only when pictures are shown (Matroska). Internal to io.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <set>

#include "io/video/ffmpeg/ffmpeg_common.h"

namespace trivelet::io {

/// Gives the packets of one track, in the order of decoding, times of decoding (DTS) that increase and never lie behind
/// the times at which pictures are shown (PTS), which stay as they are.
///
/// The n-th packet is decoded when the picture d places before the n-th in the order of showing is shown. d is the
/// smallest number for which no picture is late, over as many packets as a decoder can hold back.
class DecodeTimes {
 public:
  using Send = std::function<void(AVPacket&)>;

  /// `reorder`: d, where it is known to be at least that.
  explicit DecodeTimes(int reorder) : reorder_(reorder) {}

  /// Sends the packets that can be sent by now; all carry a PTS.
  void add(const AVPacket& packet, const Send& send);
  void finish(const Send& send);

 private:
  void send_first(const Send& send);
  void begin();

  int reorder_;
  bool begun_ = false;
  std::deque<PacketPtr> held_;
  std::multiset<std::int64_t> shown_;  ///< times of `held_`, and of the last ones that were sent
  std::int64_t before_ = 0;            ///< packets to send before the first picture is shown
  std::int64_t step_ = 1;              ///< between those
  std::int64_t last_ = INT64_MIN;
};

}  // namespace trivelet::io
