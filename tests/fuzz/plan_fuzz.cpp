// Fuzzes read plans: six option bytes, then a .tvl stream with valid checksums. A plan asks for existing bytes only and
// ends. With the planned bytes alone the stream decodes, or is refused, as the whole one does. A stream that can be
// joined to itself gives all its frames twice.

#include <cstdint>
#include <vector>

#include "tests/fuzz/stream_support.h"
#include "trivelet/edit.h"
#include "trivelet/plan.h"
#include "trivelet/volume.h"

using namespace trivelet;
using namespace trivelet::fuzz;

namespace {

struct PlanOutcome {
  bool refused = false;
  std::uint64_t frames = 0;
  std::uint64_t sum = 0;  // of samples inside the region
  bool operator==(const PlanOutcome&) const = default;
};

PlanOutcome decode(ByteSource& source, const DecoderParams& p) {
  PlanOutcome out;
  try {
    Decoder d(source, p);
    Gop gop = d.make_gop();
    const bool all = p.region.width == 0;
    while (d.pull(gop)) {
      out.frames += static_cast<std::uint64_t>(gop.frames());
      const VolumeView v = static_cast<const Gop&>(gop).plane(0);
      for (int f = 0; f < v.shape.frames; ++f)
        for (int y = all ? 0 : p.region.y; y < (all ? v.shape.height : p.region.y + p.region.height); ++y)
          for (int x = all ? 0 : p.region.x; x < (all ? v.shape.width : p.region.x + p.region.width); ++x)
            out.sum = out.sum * 31 + static_cast<std::uint64_t>(v.row(f, y)[x * v.bytes_per_sample]);
    }
  } catch (const Error& e) {
    out.refused = true;
    expect_refusal(e);
  }
  return out;
}

// False when the plan is refused.
bool fetch(ReadPlan& plan, const Bytes& s) {
  try {
    int rounds = 0;
    for (std::vector<ByteRange> wanted = plan.next(); !wanted.empty(); wanted = plan.next(), ++rounds) {
      if (rounds > 200) wrong("a plan without an end");
      for (const ByteRange& r : wanted) {
        if (r.size == 0 || r.offset > s.size() || r.size > s.size() - r.offset) wrong("bytes that there are not");
        plan.give(r.offset, s.data() + r.offset, static_cast<std::size_t>(r.size));
      }
    }
  } catch (const Error& e) {
    expect_refusal(e);
    return false;
  }
  return true;
}

void check_join(const Bytes& s) {
  MemorySource a(s.data(), s.size());
  MemorySource b(s.data(), s.size());
  const JoinInput inputs[] = {{"a", &a}, {"b", &b}};
  MemorySink sink;
  MemoryReadBack again(sink);
  JoinResult result;
  try {
    result = join(inputs, sink, {}, &again);
  } catch (const Error& e) {
    expect_refusal(e);
    return;
  }
  MemorySource joined(sink.bytes.data(), sink.bytes.size());
  const StreamInfo info = probe(joined);
  if (result.bytes != sink.bytes.size() || info.gops.size() != result.gops || !info.index_damage.empty())
    wrong("a joined stream that says something else");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kOptionBytes = 6;
  const std::optional<Given> given = given_stream(data, size, kOptionBytes, true);
  if (!given) return 0;
  const unsigned options = data[0];
  const Bytes& s = given->stream;
  const StreamHeader& h = given->header;
  if (h.components.empty()) return 0;

  DecoderParams p = part_of(options, h);
  if (options & 64) {
    const int reduced = p.reduce + h.dropped_spatial;
    const int width = low_length(h.video.width, reduced), height = low_length(h.video.height, reduced);
    p.region.x = data[2] % width;
    p.region.y = data[3] % height;
    p.region.width = 1 + data[4] % (width - p.region.x);
    p.region.height = 1 + data[5] % (height - p.region.y);
  }
  ReadPlan plan(s.size(), p);
  if (fetch(plan, s)) {
    MemorySource whole(s.data(), s.size());
    if (!(decode(plan.source(), p) == decode(whole, p))) wrong("what was planned decodes to something else");
  }
  if (options & 128) check_join(s);
  return 0;
}
