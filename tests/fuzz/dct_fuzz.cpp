// libFuzzer harness of .tvs files with the codec dct: sample format, QP and a size of up to 40x40 from the first bytes,
// the rest is the payload. Only BadStream may come out.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "codec/still/dct.h"

using namespace trivelet;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 5) return 0;
  static ThreadPool pool(1);
  static const auto transform = dct::make_own_transform(pool);
  still::Header h;
  h.codec = still::Codec::kDct;
  h.width = 1 + data[1] % 40;
  h.height = 1 + data[2] % 40;
  const int kind = data[0] & 3;
  h.format.model = kind == 0 ? ColourModel::kGrey : kind == 3 ? ColourModel::kRgb : ColourModel::kYuv;
  h.format.log2_chroma_w = h.format.log2_chroma_h = kind == 1;
  h.format.bits = 8 + (data[0] >> 2) % 9;
  h.parameters = {static_cast<std::uint8_t>(data[3] % 53)};
  try {
    const still::Image image = dct::decode(still::write_file(h, {data + 4, size - 4}), {}, *transform);
    if (image.samples.size() != image.plane_offset(image.components())) std::abort();
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::kBadStream) std::abort();
  }
  return 0;
}
