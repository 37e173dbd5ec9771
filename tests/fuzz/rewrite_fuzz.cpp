// Fuzzes truncation and extraction: six option bytes, then a .tvl stream with valid checksums. The result is not larger
// than asked for, is in order, and decodes if the source does.

#include <cstdint>

#include "tests/fuzz/stream_support.h"
#include "trivelet/edit.h"
#include "trivelet/volume.h"

using namespace trivelet;
using namespace trivelet::fuzz;

namespace {

// False when the stream is damaged.
bool decode(const void* bytes, std::size_t size) {
  MemorySource source(bytes, size);
  DecoderParams p;
  p.threads = 1;
  try {
    Decoder d(source, p);
    Gop gop = d.make_gop();
    while (d.pull(gop)) {
    }
  } catch (const Error& e) {
    expect_refusal(e);
    return false;
  }
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kOptionBytes = 6;
  const std::optional<Given> given = given_stream(data, size, kOptionBytes);
  if (!given) return 0;
  const unsigned options = data[0];
  const Bytes& s = given->stream;
  const StreamHeader& h = given->header;
  RewriteParams p;
  p.keep_partial = options & 2;
  switch (options >> 2 & 7) {
    case 1: p.target_bytes = data[1] | (data[2] & 3u) << 8; break;
    case 2: p.bits_per_pixel = (1 + data[1]) / 16.0; break;
    case 3: p.psnr = 20 + data[1] % 60; break;
    case 4: p.layers = 1 + data[1] % 16; break;
    case 5: p.bit_rate = 100.0 * (1 + data[1]); break;
    default: break;
  }
  if (!h.components.empty()) {
    p.reduce = std::min<int>(data[3] & 3, h.max_reduce() - h.dropped_spatial);
    if (h.layout == Layout::kT2d)
      p.temporal_reduce = std::min<int>(data[3] >> 2 & 3, h.temporal_levels - h.dropped_temporal);
  }
  p.first_frame = data[4] & 15;
  if (data[5] & 128) p.end_frame = p.first_frame + 1 + (data[5] & 15);

  MemorySink sink;
  MemoryReadBack again(sink);
  RewriteResult result;
  try {
    MemorySource source(s.data(), s.size());
    result = rewrite(source, p, sink, &again);
  } catch (const Error& e) {
    // A target that is too small, or that asks for what the stream does not tell, is the caller's fault.
    if (e.kind() != ErrorKind::kBadArgument) expect_refusal(e);
    return 0;
  }
  if (result.bytes != sink.bytes.size()) wrong("the size told is not the size written");
  if (p.target_bytes > 0 && sink.bytes.size() > p.target_bytes) wrong("more bytes than the target");
  MemorySource written(sink.bytes.data(), sink.bytes.size());
  const std::vector<std::string> damage = check_boxes(written);
  if (!damage.empty() && !(options & 1)) {
    for (const std::string& line : damage) std::fprintf(stderr, "%s\n", line.c_str());
    wrong("boxes out of order");
  }
  if (!(options & 32) || p.keep_partial) return 0;
  if (decode(s.data(), s.size()) && !decode(sink.bytes.data(), sink.bytes.size()))
    wrong("a source that decodes became a stream that does not");
  return 0;
}
