// Fuzzes the front table of a stream. Any bytes are refused, or give a table that follows FORMAT.md and is written back
// unchanged.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <vector>

#include "codec/format/front_table.h"

using namespace trivelet;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::optional<FrontTable> table = parse_front_table(data, size);
  if (!table) return 0;
  std::vector<const FrontCopy*> copies;
  for (const FrontCopy& c : table->copies) copies.push_back(&c);
  std::sort(copies.begin(), copies.end(), [](const auto* a, const auto* b) { return a->offset < b->offset; });
  std::uint64_t end = 0;
  for (const FrontCopy* c : copies) {
    if (c->bytes.empty() || c->offset < end || c->offset > table->stream_bytes ||
        c->bytes.size() > table->stream_bytes - c->offset)
      std::abort();
    end = c->offset + c->bytes.size();
  }
  std::vector<std::uint8_t> again = serialise(*table, size);
  while (!again.empty() && again.back() == 0) again.pop_back();  // what is behind the copies need not be zeros
  if (again.size() > size || !std::equal(again.begin(), again.end(), data)) std::abort();
  return 0;
}
