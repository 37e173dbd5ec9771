// Finds when packets are to be decoded from when their pictures are shown.
#include "io/video/ffmpeg/side_streams/ffmpeg_decode_times.h"

#include <algorithm>
#include <new>
#include <vector>

#include "codec/base/frame_times.h"

namespace trivelet::io {

namespace {

constexpr std::size_t kMostHeld = 16;  // ITU-T H.264 and H.265: the largest number of reordered pictures

}  // namespace

void DecodeTimes::add(const AVPacket& packet, const Send& send) {
  held_.push_back(make_packet());
  if (av_packet_ref(held_.back().get(), &packet) < 0) throw std::bad_alloc();
  shown_.insert(packet.pts);
  if (held_.size() > kMostHeld) send_first(send);
}

void DecodeTimes::finish(const Send& send) {
  while (!held_.empty()) send_first(send);
}

/// Finds d in the packets that are held.
void DecodeTimes::begin() {
  begun_ = true;
  const std::vector<std::int64_t> order(shown_.begin(), shown_.end());
  for (std::size_t i = 0; i < held_.size(); ++i) {
    const auto place = std::lower_bound(order.begin(), order.end(), held_[i]->pts) - order.begin();
    reorder_ = std::max(reorder_, static_cast<int>(static_cast<std::ptrdiff_t>(i) - place));
  }
  before_ = reorder_;
  step_ =
      order.size() > 1 ? std::max<std::int64_t>(1, (order.back() - order[0]) / static_cast<int>(order.size() - 1)) : 1;
}

void DecodeTimes::send_first(const Send& send) {
  if (!begun_) begin();
  std::int64_t dts = *shown_.begin();
  if (before_ > 0)
    dts = add_times(dts, -step_ * before_--);
  else
    shown_.erase(shown_.begin());
  // Where d grows on the way, packets are decoded sooner: each a tick before the next, and the last in time.
  for (std::size_t i = 0; i < held_.size(); ++i)
    dts = std::min(dts, add_times(held_[i]->pts, -static_cast<std::int64_t>(i)));
  if (last_ != INT64_MIN) dts = std::max(dts, add_times(last_, 1));
  const PacketPtr packet = std::move(held_.front());
  held_.pop_front();
  packet->dts = last_ = dts;
  send(*packet);
}

}  // namespace trivelet::io
