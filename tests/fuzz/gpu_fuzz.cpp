// Fuzzes the emulated GPU decoder: two option bytes, then a .tvl stream with valid checksums. It must give the CPU's
// answer and samples, also in a decoder that earlier streams used. Volumes of a batch have the CPU's voxels.

#include <cstdint>
#include <memory>

#include "codec/base/gop_hash.h"
#include "tests/fuzz/stream_support.h"
#include "trivelet/cuda.h"
#include "trivelet/kept_decoders.h"
#include "trivelet/volume.h"

using namespace trivelet;
using namespace trivelet::fuzz;

namespace {

struct GpuOutcome {
  bool refused = false;
  bool unsupported = false;
  std::uint64_t gops = 0;
  std::uint64_t hash = 0;
  std::size_t damage = 0;
};

GpuOutcome decode(const Bytes& s, const DecoderParams& p, const Backend* backend) {
  MemorySource source(s.data(), s.size());
  GpuOutcome out;
  try {
    Decoder d(source, p, backend);
    Gop gop = d.make_gop();
    while (d.pull(gop)) {
      ++out.gops;
      out.hash = out.hash * 31 + hash_samples(gop);
    }
    out.damage = d.stats().damage.size();
  } catch (const Error& e) {
    out.refused = true;
    out.unsupported = e.kind() == ErrorKind::kUnsupported;
    expect_refusal(e);
  }
  return out;
}

// A volume as a batch decodes it.
void check_batch(const Bytes& s) {
  static gpu::VolumeBatch batch(0, 0);
  VolumeDecoderParams p;
  p.threads = 1;
  std::vector<std::byte> voxels(1 << 16);
  MemorySource source(s.data(), s.size());
  voxels.resize(batch.decode(0, source, p, voxels.data(), voxels.size()));
  if (!batch.finish().empty() || voxels.empty()) return;
  std::vector<std::byte> expected(voxels.size());
  MemorySource again(s.data(), s.size());
  try {
    VolumeDecoder d(again, p);
    const std::size_t slice = d.output().slice_bytes();
    std::size_t at = 0;
    for (; at + slice <= expected.size() && d.read(expected.data() + at); at += slice) {
    }
    if (at != expected.size()) wrong("a batch has slices that there are not");
  } catch (const Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    wrong("a batch decodes a volume that is refused");
  }
  if (voxels != expected) wrong("a batch has other voxels");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::shared_ptr<const Backend> device = gpu::cuda_backend(0, 0);
  static const std::shared_ptr<const Backend> kept = keep_decoders(device);
  constexpr std::size_t kOptionBytes = 2;
  const std::optional<Given> given = given_stream(data, size, kOptionBytes);
  if (!given) return 0;
  const unsigned options = data[0];
  const Bytes& s = given->stream;
  const StreamHeader& h = given->header;
  DecoderParams p = reduced_by(options, h);
  p.max_planes = data[1] & 7;
  if (data[1] & 16) check_batch(s);
  const GpuOutcome gpu = decode(s, p, data[1] & 8 ? kept.get() : device.get());
  if (gpu.unsupported) return 0;  // too large for it
  const GpuOutcome cpu = decode(s, p, nullptr);
  if (gpu.refused != cpu.refused || gpu.gops != cpu.gops || gpu.hash != cpu.hash || gpu.damage != cpu.damage)
    wrong("CPU and GPU disagree");
  return 0;
}
