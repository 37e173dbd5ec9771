// Fuzzes .tvs files of codec dct. The first bytes choose sample format, QP and a size of up to 12x12 (45 for one value
// of each); the rest is the payload. Only BadStream may be thrown. The memory accesses of the transform do not depend
// on values, so tiny pictures suffice and save nearly all the time.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "codec/still/dct/dct.h"

using namespace trivelet;

namespace {
struct NoTransform final : dct::Transform {
  const char* name() const override { return "none"; }
  void forward(double*, int, int) override {}
  void inverse(double*, int, int) override {}
};
int side(int byte) { return byte == 0x9D ? 45 : 1 + byte % 12; }
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 5) return 0;
  static ThreadPool pool(1);
  static const auto own = dct::make_own_transform(pool);
  static NoTransform none;
  still::Header h;
  h.codec = still::Codec::kDct;
  h.width = side(data[1]);
  h.height = side(data[2]);
  const int kind = data[0] & 3;
  h.format.model = kind == 0 ? ColourModel::kGrey : kind == 3 ? ColourModel::kRgb : ColourModel::kYuv;
  h.format.log2_chroma_w = h.format.log2_chroma_h = kind == 1;
  h.format.bits = 8 + (data[0] >> 2) % 9;
  h.parameters = {static_cast<std::uint8_t>(data[3] % 53)};
  try {
    const still::Image image =
        dct::decode(still::write_file(h, {data + 4, size - 4}), {}, h.width * h.height <= 16 ? *own : none);
    if (image.samples.size() != image.plane_offset(image.components())) std::abort();
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::kBadStream) std::abort();
  }
  return 0;
}
