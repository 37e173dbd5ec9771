// The shortest way through the library: frames in memory, a .tvl file, frames again, and how far they are apart.
#include <cmath>
#include <cstdio>

#include "trivelet/codec.h"

using namespace trivelet;

int main(int argc, char** argv) {
  const char* path = argc > 1 ? argv[1] : "roundtrip.tvl";
  constexpr int kFrames = 50;
  VideoInfo info;
  info.width = 320;
  info.height = 240;
  info.format = parse_pixel_format("gray");
  std::vector<std::uint8_t> video;  // waves that wander to the left
  for (int t = 0; t < kFrames; ++t)
    for (int y = 0; y < info.height; ++y)
      for (int x = 0; x < info.width; ++x)
        video.push_back(static_cast<std::uint8_t>(128 + 60 * std::sin(0.1 * (x + 2 * t)) + 40 * std::cos(0.07 * y)));
  const auto* samples = reinterpret_cast<const std::byte*>(video.data());

  FileSink sink(path, true);
  Encoder encoder(info, {.quality = 75}, sink);
  for (int first = 0; first < kFrames; first += encoder.gop_frames()) {
    std::vector<FrameView> frames;  // nothing is copied: they are coded where they are
    for (int t = first; t < std::min(kFrames, first + encoder.gop_frames()); ++t)
      frames.push_back({{{{samples + t * info.width * info.height, info.width}}}, {t, 1}});
    encoder.push(frames);
  }
  encoder.finish();
  sink.commit();

  FileSource source(path);
  Decoder decoder(source, {});
  Gop gop = decoder.make_gop();
  double squared = 0;
  for (int t = 0; decoder.pull(gop); t += gop.frames())
    for (int f = 0; f < gop.frames(); ++f)
      for (int y = 0; y < info.height; ++y)
        for (int x = 0; x < info.width; ++x) {
          const int before = video[static_cast<std::size_t>(((t + f) * info.height + y) * info.width + x)];
          squared += std::pow(before - static_cast<int>(gop.plane(0).row(f, y)[x]), 2);
        }
  const double psnr = 10 * std::log10(255.0 * 255 * static_cast<double>(video.size()) / squared);
  std::printf("%d frames, %zu bytes -> %ju, PSNR %.2f dB\n", kFrames, video.size(),
              static_cast<std::uintmax_t>(encoder.stats().stream_bytes), psnr);
  return psnr > 40 ? 0 : 1;
}
