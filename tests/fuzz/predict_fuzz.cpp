// Fuzzes the prediction of volumes: size, bits and kind from the first four bytes, the rest are differences. Any
// differences give samples whose differences are the same.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "codec/volume/volume_predict.h"

using namespace trivelet;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kHead = 4;
  if (size < kHead) return 0;
  const int bits = 1 + data[0] % 16;
  const auto kind = static_cast<VolumeMap::Prediction>(data[1] % 3);
  VideoInfo info;
  info.width = 1 + data[2] % 16;
  info.height = 1 + (data[2] >> 4);
  info.format.model = ColourModel::kGrey;
  info.format.alpha = data[3] & 1;
  info.format.bits = bits;
  info.format.is_signed = true;
  const int frames = 1 + (data[3] >> 1) % 5;
  Gop gop(info, frames);
  gop.set_frames(frames);
  std::size_t at = kHead;
  for (int c = 0; c < gop.components(); ++c) {
    const MutableVolumeView v = gop.plane(c);
    for (int f = 0; f < frames; ++f)
      for (int y = 0; y < v.shape.height; ++y)
        for (int x = 0; x < v.shape.width; ++x) {
          unsigned raw = at < size ? data[at++] : 0;
          if (v.bytes_per_sample == 2 && at < size) raw |= static_cast<unsigned>(data[at++]) << 8;
          const int shift = 32 - bits;
          const int d = static_cast<int>(raw << shift) >> shift;
          std::memcpy(v.row(f, y) + x * v.bytes_per_sample, &d, static_cast<std::size_t>(v.bytes_per_sample));
        }
  }
  Gop again = gop;
  unpredict(kind, bits, again);
  predict(kind, bits, again);
  for (int c = 0; c < gop.components(); ++c) {
    const VolumeView a = static_cast<const Gop&>(gop).plane(c), b = static_cast<const Gop&>(again).plane(c);
    for (int f = 0; f < frames; ++f)
      for (int y = 0; y < a.shape.height; ++y)
        if (std::memcmp(a.row(f, y), b.row(f, y), a.row_bytes()) != 0) {
          std::fprintf(stderr, "wrong: other differences\n");
          std::abort();
        }
  }
  return 0;
}
