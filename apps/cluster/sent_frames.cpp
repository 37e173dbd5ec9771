// Packs frames into messages and copies them between Gops.

#include "apps/cluster/sent_frames.h"

#include <cstring>

namespace trivelet::cli {

void pack_frame(const Gop& gop, int frame, MessageWriter& message) {
  const FrameTime& time = gop.times()[static_cast<std::size_t>(frame)];
  message.signed_number(time.pts).signed_number(time.duration);
  for (int c = 0; c < gop.components(); ++c) {
    const VolumeView v = gop.plane(c);
    for (int y = 0; y < v.shape.height; ++y) message.append(v.row(frame, y), v.row_bytes());
  }
}

void unpack_frame(MessageReader& message, Gop& gop, int frame) {
  FrameTime& time = gop.times()[static_cast<std::size_t>(frame)];
  time.pts = message.signed_number();
  time.duration = message.signed_number();
  for (int c = 0; c < gop.components(); ++c) {
    const MutableVolumeView v = gop.plane(c);
    for (int y = 0; y < v.shape.height; ++y) message.read(v.row(frame, y), v.row_bytes());
  }
}

void send_frames(Processes& processes, int to, Channel channel, const Gop& gop) {
  for (int f = 0; f < gop.frames(); ++f) {
    MessageWriter message(MessageKind::kFrame);
    pack_frame(gop, f, message);
    message.send(processes, to, channel);
  }
}

void copy_frame(const Gop& from, int frame, Gop& to, int at) {
  to.times()[static_cast<std::size_t>(at)] = from.times()[static_cast<std::size_t>(frame)];
  for (int c = 0; c < to.components(); ++c) {
    const VolumeView in = from.plane(c);
    const MutableVolumeView out = to.plane(c);
    for (int y = 0; y < out.shape.height; ++y) std::memcpy(out.row(at, y), in.row(frame, y), out.row_bytes());
  }
}

void copy_frames(const Gop& from, Gop& to) {
  for (int f = 0; f < to.frames(); ++f) copy_frame(from, f, to, f);
}

}  // namespace trivelet::cli
