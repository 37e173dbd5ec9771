// Fuzzes .tvs files of VSTC. If bit 0 of the first byte is set, the rest is a whole file whose checksum is corrected.
// Otherwise this and the next two bytes give block size, sample format and QP, two bytes a size of up to 8x8, and the
// rest is the payload. One size value means 68, for large blocks; this costs a hundred times as much, so one in eight
// of the inputs that ask for it gets it. Only trivelet::Error may be thrown. If bit 7 is set, all instruction sets must
// give the same picture.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "codec/base/hash.h"
#include "codec/still/vstc/vstc.h"
#include "tests/fuzz/draw.h"

using namespace trivelet;

namespace {
int side(int byte, bool may_be_large) { return byte == 0x9D && may_be_large ? 68 : 1 + byte % 8; }
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 6) return 0;
  static ThreadPool pool(1);
  std::vector<std::byte> file;
  if (data[0] & 1) {
    for (std::size_t i = 1; i < size; ++i) file.push_back(static_cast<std::byte>(data[i]));
    const std::uint32_t crc = crc32c(file.data(), file.size());
    for (int i = 0; i < 4; ++i) file.push_back(static_cast<std::byte>(crc >> 8 * i));
  } else {
    still::Header h;
    const bool may_be_large = fuzz::drawn(data, size) % 8 == 0;
    h.width = side(data[1], may_be_large);
    h.height = side(data[2], may_be_large);
    const int kind = data[0] >> 1 & 3;
    h.format.model = kind == 0 ? ColourModel::kGrey : kind == 3 ? ColourModel::kRgb : ColourModel::kYuv;
    h.format.log2_chroma_w = h.format.log2_chroma_h = kind == 1;
    h.format.bits = 8 + data[4] % 5;
    h.parameters = {static_cast<std::uint8_t>(4 + (data[0] >> 3) % 3), static_cast<std::uint8_t>(data[3] % 52)};
    file = still::write_file(h, {data + 5, size - 5});
  }
  try {
    vstc::DecodeParams params;
    params.limits.samples = data[0] & 1 ? 3 * 64 : 3 * 68 * 68;
    params.simd = SimdLevel::kScalar;
    const still::Image image = vstc::decode(file, params, pool);
    if (image.samples.size() != image.plane_offset(image.components())) std::abort();
    params.simd = SimdLevel::kBest;
    if (data[0] & 128 && vstc::decode(file, params, pool).samples != image.samples) std::abort();
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::kBadStream && e.kind() != ErrorKind::kUnsupported) std::abort();
  }
  return 0;
}
