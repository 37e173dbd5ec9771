// Fuzzes the layout of a stream without decoding: an option byte, an unused byte, then a .tvl stream. The index is read
// or rebuilt from the packets, and the boxes are checked.

#include <cstdint>

#include "tests/fuzz/stream_support.h"
#include "trivelet/edit.h"

using namespace trivelet;
using namespace trivelet::fuzz;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kOptionBytes = 2;
  if (size < kOptionBytes) return 0;
  const unsigned options = data[0];
  const Bytes s = stream_of(data, size, kOptionBytes, options & 1);
  MemorySource file(s.data(), s.size());
  test::Pipe pipe(s.data(), s.size(), 64);
  try {
    const StreamInfo info = probe(options & 2 ? static_cast<ByteSource&>(pipe) : file);
    std::uint64_t frame = 0;
    for (const GopInfo& g : info.gops) {
      // An index that was rebuilt tells of packets as they are.
      if (g.frames < 1 || (g.first_frame < frame && info.index_damage.empty())) wrong("frames out of order");
      if (g.offset > s.size()) wrong("a GOP outside of the file");  // its end may be, of a file that was cut
      frame = g.first_frame + static_cast<std::uint64_t>(g.frames);
    }
    if (!info.has_index && !info.gops.empty()) wrong("an index that is none");
  } catch (const Error& e) {
    expect_refusal(e);
  }
  if (options & 4) return 0;
  MemorySource again(s.data(), s.size());
  try {
    if (check_boxes(again).size() > 200) wrong("more damage than anybody reads");
  } catch (const Error& e) {
    expect_refusal(e);
  }
  return 0;
}
