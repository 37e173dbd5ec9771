// Fuzzes decoding of whole streams. The first two bytes choose the request; the others are a .tvl stream with valid
// checksums. Errors must be BadStream or Unsupported. Other instruction sets, a pipe, and decoding to coefficients must
// give the same result.

#include <cstdint>

#include "codec/base/gop_hash.h"
#include "tests/fuzz/stream_support.h"

using namespace trivelet;
using namespace trivelet::fuzz;

namespace {

struct DecodeOutcome {
  bool error = false;
  std::uint64_t gops = 0;
  std::uint64_t hash = 0;
  std::size_t damage = 0;
};

DecodeOutcome decode(const Bytes& s, const DecoderParams& p, bool pipe, bool coefficients) {
  MemorySource file(s.data(), s.size());
  test::Pipe forward(s.data(), s.size(), 64);
  DecodeOutcome out;
  try {
    Decoder d(pipe ? static_cast<ByteSource&>(forward) : file, p);
    Gop gop = d.make_gop();
    if (coefficients) {  // the zeros that pull() leaves out are written
      CoefficientGop c;
      while (d.pull_coefficients(c)) {
        ++out.gops;
        if (c.frames == 0) continue;
        d.inverse(c, gop);
        out.hash = out.hash * 31 + hash_samples(gop);
      }
    } else {
      while (d.pull(gop)) {
        ++out.gops;
        out.hash = out.hash * 31 + hash_samples(gop);
        if (gop.frames() < 1 || gop.frames() > gop.capacity()) wrong("number of frames");
      }
    }
    out.damage = d.stats().damage.size();
    if (out.damage > 100) wrong("more than 100 damages listed");
    if (d.stats().damaged_gops > 0 && out.damage == 0) wrong("damage that is not listed");
  } catch (const Error& e) {
    out.error = true;
    expect_refusal(e);
  }
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kOptionBytes = 2;
  const std::optional<Given> given = given_stream(data, size, kOptionBytes);
  if (!given) return 0;
  const unsigned options = data[0] | static_cast<unsigned>(data[1]) << 8;
  const Bytes& s = given->stream;
  const StreamHeader& h = given->header;
  DecoderParams p = reduced_by(options, h);
  p.max_planes = options >> 8 & 7;
  p.first_frame = options & 2048 ? 1 : 0;
  const bool coefficients = (options & 4) && p.first_frame == 0;
  const bool pipe = options & 8;
  const SimdLevel choice[4] = {SimdLevel::kScalar, SimdLevel::kAvx2, SimdLevel::kAvx512, SimdLevel::kBest};
  p.simd = choice[options >> 12 & 3];
  if (p.simd != SimdLevel::kBest && p.simd > detected_simd()) p.simd = SimdLevel::kBest;
  const DecodeOutcome first = decode(s, p, pipe, coefficients);
  if (options & 0x4000) {  // another instruction set
    p.simd = p.simd == SimdLevel::kScalar ? SimdLevel::kBest : SimdLevel::kScalar;
    const DecodeOutcome second = decode(s, p, pipe, coefficients);
    if (second.error != first.error || second.gops != first.gops || second.hash != first.hash ||
        second.damage != first.damage)
      wrong("instruction sets disagree");
  } else if ((options & 0x8000) && coefficients && !first.error && first.damage == 0) {
    const DecodeOutcome second = decode(s, p, pipe, false);
    if (!second.error && second.damage == 0 && second.hash != first.hash) wrong("coefficients give other samples");
  } else if ((options & 0x8000) && !first.error && !p.keep_partial && p.first_frame == 0 && !pipe) {
    // A file that is decoded strictly is the same from a pipe, unless the pipe finds more to complain about.
    const DecodeOutcome second = decode(s, p, true, coefficients);
    if (!second.error && (second.gops != first.gops || second.hash != first.hash)) wrong("a pipe gives other samples");
  }
  return 0;
}
