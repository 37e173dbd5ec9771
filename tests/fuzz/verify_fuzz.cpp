// Fuzzes verification: two option bytes, then a .tvl stream whose checksums are valid or not. A stream reported as
// intact decodes without error, and a file and a pipe give the same report.

#include <cstdint>

#include "tests/fuzz/stream_support.h"
#include "trivelet/edit.h"

using namespace trivelet;
using namespace trivelet::fuzz;

namespace {

struct Verdict {
  bool refused = false;
  VerifyResult result;
};

Verdict verify(ByteSource& source) {
  Verdict v;
  DecoderParams p;
  p.threads = 1;
  try {
    v.result = verify_stream(source, p);
    if (v.result.damaged_gops > 0 && v.result.damage.empty()) wrong("damage that is not listed");
  } catch (const Error& e) {
    v.refused = true;
    expect_refusal(e);
  }
  return v;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kOptionBytes = 2;
  const std::optional<Given> given = given_stream(data, size, kOptionBytes);
  if (!given) return 0;
  const unsigned options = data[0];
  const Bytes& s = given->stream;
  MemorySource file(s.data(), s.size());
  test::Pipe pipe(s.data(), s.size(), 64);
  const Verdict v = verify(options & 2 ? static_cast<ByteSource&>(pipe) : file);
  if (v.refused || !v.result.damage.empty()) return 0;
  DecoderParams p;
  p.threads = 1;
  p.differences = true;  // as the verifier reads them
  std::uint64_t frames = 0;
  MemorySource again(s.data(), s.size());
  try {
    Decoder d(again, p);
    Gop gop = d.make_gop();
    while (d.pull(gop)) frames += static_cast<std::uint64_t>(gop.frames());
  } catch (const Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    wrong("called intact, but not decoded");
  }
  if (frames != v.result.frames) wrong("another number of frames");
  return 0;
}
