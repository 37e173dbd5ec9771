// Fuzzes streams of volumes: eight option bytes, then a .tvl stream with valid checksums. A region has the voxels of
// the whole volume.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "codec/volume/volume_map.h"
#include "tests/fuzz/stream_support.h"
#include "trivelet/volume.h"

using namespace trivelet;
using namespace trivelet::fuzz;

namespace {

constexpr std::uint64_t kMostSlices = 64;

struct Voxels {
  bool refused = false;
  VolumeDescription shape;
  std::vector<std::byte> bytes;
  std::uint64_t slices = 0;
};

Voxels decode(const Bytes& s, const VolumeDecoderParams& p) {
  Voxels out;
  MemorySource source(s.data(), s.size());
  try {
    VolumeDecoder d(source, p);
    out.shape = d.output();
    const std::size_t bytes = out.shape.slice_bytes();
    do out.bytes.resize(out.bytes.size() + bytes);
    while (d.read(out.bytes.data() + out.bytes.size() - bytes) && ++out.slices <= 2 * kMostSlices);
  } catch (const Error& e) {
    out.refused = true;
    // "This stream holds no volume" is the caller's fault.
    if (e.kind() != ErrorKind::kBadArgument) expect_refusal(e);
  }
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kOptionBytes = 8;
  const std::optional<Given> given = given_stream(data, size, kOptionBytes, true);
  if (!given) return 0;
  const unsigned options = data[0];
  const Bytes& s = given->stream;
  std::optional<VolumeStreamInfo> info;
  bool has_parts = false;
  for (const test::BoxAt& b : test::list_boxes(s.data(), s.size())) has_parts = has_parts || b.type == "part";
  try {
    MemorySource source(s.data(), s.size());
    info = volume_stream_info(probe(source));
  } catch (const Error& e) {
    expect_refusal(e);
    return 0;
  }
  if (!info || info->volume.all_slices() > kMostSlices) return 0;
  const VolumeDescription& v = info->volume;

  VolumeDecoderParams p;
  p.threads = 1;
  p.limits.memory = std::size_t{256} << 20;
  if (info->prediction == VolumePrediction::kNone) {
    p.reduce = options & 2 ? 1 : 0;
    p.max_layers = options & 4 ? 1 : 0;
    p.max_planes = options & 8 ? 3 : 0;
  }
  const Voxels whole = decode(s, p);
  if (options & 16 || p.reduce > 0) return 0;
  VoxelRegion r;
  r.x = data[2] % static_cast<unsigned>(v.width);
  r.y = data[3] % static_cast<unsigned>(v.height);
  r.z = data[4] % v.slices;
  r.width = 1 + data[5] % (static_cast<unsigned>(v.width) - r.x);
  r.height = 1 + data[6] % (static_cast<unsigned>(v.height) - r.y);
  r.depth = 1 + data[7] % (v.slices - r.z);
  p.region = r;
  const Voxels part = decode(s, p);
  if (whole.refused || has_parts || whole.slices != v.all_slices()) return 0;
  if (part.refused) wrong("a region is refused, the whole is not");
  if (part.slices != r.depth * v.volumes) wrong("another number of slices");
  const std::size_t voxel = v.voxel.bytes(), row = r.width * voxel;
  const std::byte* got = part.bytes.data();
  for (std::uint64_t i = 0; i < part.slices; ++i)
    for (std::uint64_t y = 0; y < r.height; ++y, got += row) {
      const std::uint64_t z = i / r.depth * v.slices + r.z + i % r.depth;
      const std::byte* expected =
          whole.bytes.data() + z * v.slice_bytes() + ((r.y + y) * static_cast<std::uint64_t>(v.width) + r.x) * voxel;
      if (std::memcmp(got, expected, row) != 0) wrong("a region has other voxels than the whole");
    }
  return 0;
}
