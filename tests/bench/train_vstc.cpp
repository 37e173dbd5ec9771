// Trains the initial values of VSTC's contexts: codec/still/vstc/vstc_tables.h.
//
//   train_vstc PICTURE... > codec/still/vstc/vstc_tables.h
//
// The program codes the middle (up to 320x320 luma samples) of the first frame of every picture at QP 22, 27, 32 and 37
// and counts the decisions of every context. Initial value = (ones + 1/2) / (all + 1), with pictures weighted by their
// decisions. Exclude pictures that are used to compare codecs. Decisions depend slightly on the tables, so run it
// twice.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <exception>

#include "codec/still/vstc/vstc.h"
#include "codec/still/vstc/vstc_model.h"
#include "io/video/video_io.h"

using namespace trivelet;

namespace {

still::Image middle_of(const char* path) {
  const auto reader = io::open_reader(path, {});
  Gop gop(reader->info(), 1);
  require(io::read_gop(*reader, gop), ErrorKind::kBadStream, std::string(path) + " holds no picture");
  const Gop& all = gop;
  still::Image image;
  image.format = reader->info().format;
  image.width = std::min(reader->info().width, 320);
  image.height = std::min(reader->info().height, 320);
  image.allocate();
  for (int c = 0; c < image.components(); ++c) {
    const VolumeView plane = all.plane(c);
    const int w = image.format.component_width(image.width, c), h = image.format.component_height(image.height, c);
    const std::ptrdiff_t x = (plane.shape.width - w) / 2;
    const std::size_t bytes = static_cast<std::size_t>(plane.bytes_per_sample);
    std::byte* to = image.samples.data() + image.plane_offset(c);
    for (int y = 0; y < h; ++y, to += static_cast<std::size_t>(w) * bytes)
      std::memcpy(to, plane.row(0, (plane.shape.height - h) / 2 + y) + x * plane.bytes_per_sample,
                  static_cast<std::size_t>(w) * bytes);
  }
  return image;
}

int run(int count, char** paths) {
  ThreadPool pool(0);
  std::printf(
      "// Start values of the contexts, for QP 22, 27, 32 and 37, of luma and chroma. Written by "
      "tests/bench/train_vstc.cpp.\n#pragma once\n\n#include <cstdint>\n\nnamespace trivelet::vstc {\n\n");
  std::printf("inline constexpr std::uint16_t kStart[4][2][%d] = {\n", vstc::kContexts);
  for (const int qp : {22, 27, 32, 37}) {
    std::vector<double> counts[2];
    for (auto& c : counts) c.assign(2 * vstc::kContexts, 0.0);
    for (int i = 0; i < count; ++i) {
      vstc::Params params;
      params.qp = qp;
      params.effort = vstc::Effort::kFast;
      params.log2_block = i % 2 ? 5 : 6;
      const vstc::Encoded e = vstc::encode(middle_of(paths[i]), params, pool);
      for (std::size_t set = 0; set < 2; ++set)
        for (std::size_t k = 0; k < counts[set].size(); ++k) counts[set][k] += e.statistics.decisions[set][k];
      std::fprintf(stderr, "QP %d %s: %zu bytes\n", qp, paths[i], e.bytes.size());
    }
    std::printf("    {");
    for (std::size_t set = 0; set < 2; ++set) {
      std::printf("%s{", set ? ",\n     " : "");
      for (std::size_t k = 0; k < vstc::kContexts; ++k) {
        const double zeros = counts[set][2 * k], ones = counts[set][2 * k + 1];
        const double p = (ones + 0.5) / (zeros + ones + 1);
        std::printf("%s%d",
                    k == 0        ? ""
                    : k % 16 == 0 ? ",\n      "
                                  : ", ",
                    std::clamp(static_cast<int>(p * 65536), 256, 65280));
      }
      std::printf("}");
    }
    std::printf("},\n");
  }
  std::printf("};\n\n}  // namespace trivelet::vstc\n");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc - 1, argv + 1);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "train_vstc: %s\n", e.what());
    return 1;
  }
}
