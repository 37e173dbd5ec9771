// Fuzzes regions of whole streams: six option bytes, then a .tvl stream with valid checksums. A region has the samples
// of the whole, and is accepted if the whole stream is.

#include <cstdint>
#include <vector>

#include "tests/fuzz/stream_support.h"

using namespace trivelet;
using namespace trivelet::fuzz;

namespace {

// The samples of the region of every frame of every component, one after the other.
struct RegionSamples {
  bool refused = false;
  std::size_t damage = 0;
  std::vector<std::byte> bytes;
};

RegionSamples decode(const Bytes& s, const DecoderParams& p, const PictureRegion& r, const PixelFormat& format) {
  RegionSamples out;
  MemorySource source(s.data(), s.size());
  try {
    Decoder d(source, p);
    Gop gop = d.make_gop();
    while (d.pull(gop))
      for (int c = 0; c < gop.components(); ++c) {
        const VolumeView v = static_cast<const Gop&>(gop).plane(c);
        const int w = format.is_chroma(c) ? format.log2_chroma_w : 0;
        const int h = format.is_chroma(c) ? format.log2_chroma_h : 0;
        const int x = r.x >> w, y = r.y >> h;
        const int x_end = (r.x + r.width + (1 << w) - 1) >> w, y_end = (r.y + r.height + (1 << h) - 1) >> h;
        if (x_end > v.shape.width || y_end > v.shape.height) wrong("pictures of another size");
        for (int f = 0; f < v.shape.frames; ++f)
          for (int row = y; row < y_end; ++row)
            out.bytes.insert(out.bytes.end(), v.row(f, row) + x * v.bytes_per_sample,
                             v.row(f, row) + x_end * v.bytes_per_sample);
      }
    out.damage = d.stats().damage.size();
  } catch (const Error& e) {
    out.refused = true;
    expect_refusal(e);
  }
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kOptionBytes = 6;
  const std::optional<Given> given = given_stream(data, size, kOptionBytes, true);
  if (!given) return 0;
  const unsigned options = data[0];
  const Bytes& s = given->stream;
  const StreamHeader& h = given->header;
  if (h.components.empty()) return 0;

  DecoderParams p = part_of(options, h);
  p.simd = options & 64 ? SimdLevel::kScalar : SimdLevel::kBest;
  const int reduced = p.reduce + h.dropped_spatial;
  const int width = low_length(h.video.width, reduced), height = low_length(h.video.height, reduced);
  PictureRegion r;
  r.x = data[2] % width;
  r.y = data[3] % height;
  r.width = 1 + data[4] % (width - r.x);
  r.height = 1 + data[5] % (height - r.y);
  p.region = r;
  const RegionSamples part = decode(s, p, r, h.video.format);
  // Checks of parts that were changed, and are believed, tell of parts that are not there: nothing to compare.
  for (const test::BoxAt& b : test::list_boxes(s.data(), s.size()))
    if (b.type == "part") return 0;
  if (!(options & 128)) return 0;
  p.region = {};
  const RegionSamples whole = decode(s, p, r, h.video.format);
  if (whole.refused || whole.damage > 0) return 0;
  if (part.refused) wrong("a region is refused, the whole is not");
  if (part.bytes != whole.bytes) wrong("a region has other samples than the whole");
  return 0;
}
