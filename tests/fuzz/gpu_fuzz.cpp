// The decoder of the GPU, emulated: two option bytes, then a .tvl stream whose checks are right. It answers as the CPU
// does, with the same samples.

#include <cstdint>
#include <memory>

#include "codec/gop_hash.h"
#include "tests/fuzz/stream_support.h"
#include "trivelet/cuda.h"

using namespace trivelet;
using namespace trivelet::fuzz;

namespace {

constexpr std::size_t kOptionBytes = 2;

struct Outcome {
  bool refused = false;
  bool unsupported = false;
  std::uint64_t gops = 0;
  std::uint64_t hash = 0;
  std::size_t damage = 0;
};

Outcome decode(const Bytes& s, const DecoderParams& p, const Backend* backend) {
  MemorySource source(s.data(), s.size());
  Outcome out;
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

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::shared_ptr<const Backend> device = gpu::cuda_backend(0, 0);
  if (size < kOptionBytes) return 0;
  const unsigned options = data[0];
  const Bytes s = stream_of(data, size, kOptionBytes, options & 1);
  StreamHeader h;
  if (!find_header(s, h)) return 0;

  DecoderParams p;
  p.threads = 1;
  p.keep_partial = options & 2;
  if (!h.components.empty()) {
    p.reduce = std::min<int>(options >> 4 & 3, h.max_reduce() - h.dropped_spatial);
    if (h.layout == Layout::kT2d)
      p.temporal_reduce = std::min<int>(options >> 6 & 1, h.temporal_levels - h.dropped_temporal);
    p.max_layers = options & 128 ? 1 : 0;
  }
  p.max_planes = data[1] & 7;
  const Outcome gpu = decode(s, p, device.get());
  if (gpu.unsupported) return 0;  // too large for it
  const Outcome cpu = decode(s, p, nullptr);
  if (gpu.refused != cpu.refused || gpu.gops != cpu.gops || gpu.hash != cpu.hash || gpu.damage != cpu.damage)
    wrong("CPU and GPU disagree");
  return 0;
}
