// BackendOptions::geometry: an encoder on the CPU codes with the geometry it is given, asks once for GOPs of one kind,
// and gives the bytes that it gives with its own.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "codec/backend.h"
#include "trivelet/codec.h"

namespace trivelet {
namespace {

std::vector<std::byte> coded_with(const Backend* backend) {
  VideoInfo info;
  info.width = 96;
  info.height = 64;
  info.format = parse_pixel_format("yuv420p");
  EncoderParams params;
  params.motion = Motion::kOff;
  params.gop_frames = 4;
  params.threads = 1;
  MemorySink sink;
  Encoder encoder(info, params, sink, backend);
  for (int n = 0; n < 3; ++n) {
    Gop gop(info, 4);
    gop.set_frames(4);
    for (int c = 0; c < 3; ++c) {
      const MutableVolumeView v = gop.plane(c);
      for (int f = 0; f < 4; ++f)
        for (int y = 0; y < v.shape.height; ++y)
          for (int x = 0; x < v.shape.width; ++x) v.row(f, y)[x] = static_cast<std::byte>(5 * x + 3 * y + f + n);
    }
    encoder.push(gop);
  }
  encoder.finish();
  return std::move(sink.bytes);
}

TEST(GivenGeometry, IsUsedAndAskedForOnce) {
  int asked = 0;
  Backend backend = cpu_backend();
  backend.make_encoder = [&asked](const StreamHeader& header, const BackendOptions& options) {
    BackendOptions with = options;
    with.geometry = [&asked](const StreamHeader& of, int frames) {
      ++asked;
      return std::make_shared<const StreamGeometry>(of, frames);
    };
    return cpu_backend().make_encoder(header, with);
  };
  EXPECT_TRUE(coded_with(&backend) == coded_with(nullptr));
  EXPECT_EQ(asked, 1);
}

}  // namespace
}  // namespace trivelet
