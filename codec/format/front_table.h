// The front table of a stream (FORMAT.md "tocF"): copies of what a reader needs first, behind the header, so that
// whoever fetches ranges over a network knows after one answer where everything is: GOPs, their chunks, and the parts
// of these.
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
  std::vector<FrontCopy> copies;  ///< what is wanted most first
};

/// Bytes that suffice for the table of a stream of so many GOPs but in rare cases, in which the last of its copies are
/// not in it. `heads`: also for those of chunks, if they do not take much.
std::size_t front_table_room(const StreamHeader& header, std::uint64_t gops, bool heads);
/// The content of the box, of exactly `room` bytes, with as many copies from the first on as these hold.
std::vector<std::uint8_t> serialise(const FrontTable& table, std::size_t room);
/// Nothing when it contradicts itself, has two copies of the same byte, or is of another version.
std::optional<FrontTable> parse_front_table(const std::uint8_t* bytes, std::size_t size);
/// Of a finished stream: its index and end, the headers of its GOPs, and, where parts of chunks can be read, the heads
/// of these.
FrontTable gather_front_table(ByteSource& stream);

/// What leaves so much room behind Head for a table that is written when the stream is.
ExtraBox empty_front_table(std::size_t room);
/// Puts the table of the finished stream where that room was left.
void write_front_table(ReadBack& again, std::size_t room);

}  // namespace trivelet
