// libFuzzer harness of the CCSDS 122.0 decoder. The first byte chooses instruction set and whether segment lengths (cut
// from the rest) are given; memory is bounded by DecodeParams. Only trivelet::Error may come out.
//
//   cmake --preset fuzz && cmake --build --preset fuzz --target ccsds_fuzz
//   build/fuzz/tests/fuzz/ccsds_fuzz -entropic=0 -max_len=400 -len_control=0 CORPUS
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "codec/still/ccsds122/ccsds122.h"

using namespace trivelet;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  static ThreadPool pool(1);
  const int choice = data[0];
  const std::span<const std::byte> stream(reinterpret_cast<const std::byte*>(data + 1), size - 1);
  ccsds122::DecodeParams p;
  p.limits.memory = std::size_t{8} << 20;
  p.limits.samples = 1 << 12;  // 64 blocks, up to four segments: small pictures, more runs a second
  p.simd = std::min(choice % 3 == 0   ? SimdLevel::kScalar
                    : choice % 3 == 1 ? SimdLevel::kAvx2
                                      : SimdLevel::kAvx512,
                    detected_simd());
  std::vector<std::uint32_t> lengths;
  if (choice & 0x80) {
    const std::uint32_t step = static_cast<std::uint32_t>(choice & 0x78) * 8 + 20;
    for (std::size_t at = 0; at < stream.size(); at += step)
      lengths.push_back(static_cast<std::uint32_t>(std::min<std::size_t>(step, stream.size() - at)));
    p.segment_bytes = lengths;
  }
  try {
    const ccsds122::Decoded d = ccsds122::decode(stream, p, pool);
    if (d.samples.size() != static_cast<std::size_t>(d.width) * static_cast<std::size_t>(d.height) *
                                static_cast<std::size_t>(d.bytes_per_sample))
      std::abort();
    // Every instruction set reads the same picture out of whatever this is.
    if (p.simd == SimdLevel::kScalar) return 0;
    p.simd = SimdLevel::kScalar;
    if (ccsds122::decode(stream, p, pool).samples != d.samples) std::abort();
  } catch (const Error&) {
  }
  return 0;
}
