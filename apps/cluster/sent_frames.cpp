#include "apps/cluster/sent_frames.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "codec/base/bytes.h"

namespace trivelet::cli {

std::vector<std::uint8_t> pack_frame(const Gop& gop, int frame) {
  ByteWriter out;
  const FrameTime& time = gop.times()[static_cast<std::size_t>(frame)];
  out.signed_varint(time.pts);
  out.signed_varint(time.duration);
  for (int c = 0; c < gop.components(); ++c) {
    const VolumeView v = gop.plane(c);
    const std::size_t row = static_cast<std::size_t>(v.shape.width) * static_cast<std::size_t>(v.bytes_per_sample);
    for (int y = 0; y < v.shape.height; ++y) {
      const auto* from = reinterpret_cast<const std::uint8_t*>(v.row(frame, y));
      out.bytes.insert(out.bytes.end(), from, from + row);
    }
  }
  return std::move(out.bytes);
}

void unpack_frame(const Processes::Message& m, Gop& gop, int frame) {
  ByteReader in(m.bytes.data(), m.bytes.size(), "a frame that was sent");
  FrameTime& time = gop.times()[static_cast<std::size_t>(frame)];
  in.signed_varint(time.pts);
  in.signed_varint(time.duration);
  const std::uint8_t* at = m.bytes.data() + (m.bytes.size() - in.left());
  std::size_t left = in.left();
  for (int c = 0; c < gop.components(); ++c) {
    const MutableVolumeView v = gop.plane(c);
    for (int y = 0; y < v.shape.height; ++y) {
      require(left >= v.row_bytes(), ErrorKind::kInternal, "a frame was sent in part");
      std::copy_n(at, v.row_bytes(), reinterpret_cast<std::uint8_t*>(v.row(frame, y)));
      at += v.row_bytes();
      left -= v.row_bytes();
    }
  }
}

void copy_frames(const Gop& from, Gop& to) {
  std::copy_n(from.times().begin(), to.frames(), to.times().begin());
  for (int c = 0; c < to.components(); ++c) {
    const VolumeView in = from.plane(c);
    const MutableVolumeView out = to.plane(c);
    for (int f = 0; f < to.frames(); ++f)
      for (int y = 0; y < out.shape.height; ++y) std::memcpy(out.row(f, y), in.row(f, y), out.row_bytes());
  }
}

}  // namespace trivelet::cli
