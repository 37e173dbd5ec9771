// The front table of a stream (FORMAT.md "tocF"): copies of the bytes that a reader needs first, placed behind the
// header. A reader that fetches ranges over a network knows after one answer where GOPs, chunks and parts are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "codec/format/container.h"
#include "trivelet/streams.h"

namespace trivelet {

class ReadBack;  // trivelet/volume.h

inline constexpr const char* kFrontTableBox = "tocF";

inline constexpr std::uint8_t kFrontTableVersion = 1;

/// Bytes of the stream from `offset` on.
struct FrontCopy {
  std::uint64_t offset = 0;
  std::vector<std::uint8_t> bytes;
};

struct FrontTable {
  std::uint64_t stream_bytes = 0;
  std::vector<FrontCopy> copies;  ///< the most important first
};

/// Bytes that nearly always suffice for the table of a stream of `gops` GOPs; in rare cases its last copies are left
/// out. `heads`: includes the headers of chunks, if they are small.
std::size_t front_table_room(const StreamHeader& header, std::uint64_t gops, bool heads);
/// The content of the box: exactly `room` bytes, with as many copies as fit, from the first on.
std::vector<std::uint8_t> serialise(const FrontTable& table, std::size_t room);
/// Nothing if the table contradicts itself, has two copies of one byte, or has another version.
std::optional<FrontTable> parse_front_table(const std::uint8_t* bytes, std::size_t size);
/// The table of a finished stream: its index and end, the headers of its GOPs, and the headers of chunks whose parts
/// can be read alone.
FrontTable gather_front_table(ByteSource& stream);

/// A box that reserves `room` bytes behind Head for a table that is written at the end.
ExtraBox empty_front_table(std::size_t room);
/// Writes the table of the finished stream into the reserved bytes.
void write_front_table(ReadBack& again, std::size_t room);

}  // namespace trivelet
