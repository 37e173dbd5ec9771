// make_seeds FOLDER: writes small streams of every kind, with the option bytes of decode_fuzz in front.

#include <filesystem>
#include <fstream>

#include "tests/support.h"

int main(int argc, char** argv) {
  using namespace trivelet;
  using namespace trivelet::test;
  if (argc != 2) return 2;
  const std::filesystem::path folder = argv[1];
  std::filesystem::create_directories(folder);
  struct Kind {
    const char* name;
    int width, height, frames, gop_frames;
    const char* format;
    bool lossless;
    Layout layout;
    FastMode mode;
    int spatial, temporal, layers;
    std::uint16_t options;
  };
  const Kind kinds[] = {
      {"grey", 8, 8, 4, 2, "gray", true, Layout::kT2d, FastMode::kStaged, 2, 1, 3, 0x3000},
      {"dyadic", 9, 7, 4, 4, "gray", false, Layout::kDyadic, FastMode::kStaged, 2, 2, 2, 0x4002},
      {"dyadic_flat", 9, 12, 3, 3, "gray", true, Layout::kDyadic, FastMode::kStaged, 3, 1, 1, 0x4000},
      {"raw", 8, 8, 5, 2, "gray", false, Layout::kT2d, FastMode::kRaw, 1, 1, 2, 0x3008},
      {"rgb", 6, 5, 2, 2, "gbrp10", true, Layout::kT2d, FastMode::kStaged, 1, 0, 1, 0x8000},
      {"yuv", 8, 6, 2, 1, "yuv420p", false, Layout::kT2d, FastMode::kStaged, 2, 0, 4, 0x0002},
      {"blocks", 40, 34, 1, 1, "gray", false, Layout::kT2d, FastMode::kRaw, 0, 0, 1, 0x3010},
      {"thin", 1, 33, 3, 3, "gray16", true, Layout::kDyadic, FastMode::kRaw, 1, 1, 2, 0x4000},
  };
  for (const Kind& k : kinds) {
    EncoderParams p;
    p.lossless = k.lossless;
    p.layout = k.layout;
    p.fast_mode = k.mode;
    p.spatial_levels = k.spatial;
    p.temporal_levels = k.temporal;
    p.layers = k.layers;
    p.gop_frames = k.gop_frames;
    p.quality = 30;
    p.block_size = 32;
    p.threads = 1;
    const auto stream =
        encode(make_clip(video(k.width, k.height, k.format), k.frames, k.gop_frames, Pattern::kTexture, 9), p);
    std::ofstream out(folder / k.name, std::ios::binary);
    out.put(static_cast<char>(k.options & 255)).put(static_cast<char>(k.options >> 8));
    out.write(reinterpret_cast<const char*>(stream.data()), static_cast<std::streamsize>(stream.size()));
    if (!out.flush()) return 1;
  }
  return 0;
}
