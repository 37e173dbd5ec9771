#include "codec/format/front_table.h"

#include <algorithm>
#include <utility>

#include "codec/base/bytes.h"
#include "codec/format/chunk_check.h"
#include "codec/format/container.h"
#include "codec/format/stream_layout.h"
#include "trivelet/volume.h"

namespace trivelet {

namespace {

/// Bytes up to which the heads of all chunks are worth their place in the first answer: what a reader takes with it at
/// most (plan.cpp).
constexpr std::uint64_t kMostHeaderBytes = std::uint64_t{1} << 16;

FrontCopy copy_of(StreamInput& in, std::uint64_t offset, std::uint64_t size) {
  FrontCopy copy{offset, {}};
  in.seek(offset);
  require(in.append(copy.bytes, size), ErrorKind::kBadStream, "the stream ends where its front table should begin");
  return copy;
}

void write_places(ByteWriter& w, const std::vector<FrontCopy>& copies, std::size_t count) {
  w.varint(count);
  for (std::size_t i = 0; i < count; ++i) {
    w.varint(copies[i].offset);
    w.varint(copies[i].bytes.size());
  }
}

// How many of the copies, from the first on, have room with their places.
std::size_t copies_within(const std::vector<FrontCopy>& copies, std::size_t room) {
  ByteWriter places;
  std::size_t bytes = 0;
  std::size_t count = 0;
  for (; count < copies.size(); ++count) {
    places.varint(copies[count].offset);
    places.varint(copies[count].bytes.size());
    bytes += copies[count].bytes.size();
    ByteWriter number;
    number.varint(count + 1);
    if (number.bytes.size() + places.bytes.size() + bytes > room) break;
  }
  return count;
}

// Whether no byte of the stream is in two of the copies, whose bytes are not read yet.
bool are_apart(const std::vector<FrontCopy>& copies, const std::vector<std::uint64_t>& sizes) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> places;  // begin and end
  for (std::size_t i = 0; i < sizes.size(); ++i) places.emplace_back(copies[i].offset, copies[i].offset + sizes[i]);
  std::sort(places.begin(), places.end());
  return std::adjacent_find(places.begin(), places.end(),
                            [](const auto& a, const auto& b) { return b.first < a.second; }) == places.end();
}

// The heads of a GOP's chunks, of which `header` is a copy of box and header, if there are checks behind it that tell
// how long they are.
void gather_heads(StreamInput& in, const StreamHeader& stream, const GopInfo& gop, const FrontCopy& header,
                  std::vector<FrontCopy>& copies) {
  const GopHeader head =
      parse_gop_header(stream, header.bytes.data() + kBoxHeaderBytes, header.bytes.size() - kBoxHeaderBytes);
  std::uint8_t begin[kBoxHeaderBytes];
  Box box;
  std::vector<std::uint8_t> payload;
  in.seek(gop.offset + gop.bytes);
  if (in.read(begin, sizeof begin) < sizeof begin || !parse_box_header(begin, box) || !box.is("part") ||
      box.length > kMaxExtraBytes || !in.append(payload, box.length))
    return;
  const std::optional<std::vector<ChunkChecks>> checks = parse_checks(head, payload.data(), payload.size());
  if (!checks) return;
  const std::uint64_t body = gop.offset + header.bytes.size();
  for (std::size_t i = 0; i < checks->size(); ++i)
    if ((*checks)[i].head_bytes > 0)
      copies.push_back(copy_of(in, body + head.chunks[i].offset, (*checks)[i].head_bytes));
}

// Where the payload of the front table begins in a stream: behind Head, and a header of its own.
std::uint64_t place_of_front_table(ByteSource& stream) {
  std::uint8_t begin[sizeof kSignature + kBoxHeaderBytes];
  Box head;
  stream.seek(0);
  require(stream.read(begin, sizeof begin) == sizeof begin && parse_box_header(begin + sizeof kSignature, head),
          ErrorKind::kIo, "what was written of the stream cannot be read back");
  return sizeof begin + head.length + kBoxHeaderBytes;
}

}  // namespace

// Per GOP: its entry of the index, with sizes of layers of 3 bytes; the header's fields; sizes and checks of chunks, of
// 2 and 4 bytes; the place of the copy. Then the boxes of index and end. For heads per chunk the place of the copy and
// a component's share; per segment what suffices for MR, CT and noise of 16 bits: 1.2 bytes and a quarter of one for
// each layer; with loss, and where floats take several components, 1.5 and a half.
std::size_t front_table_room(const StreamHeader& header, std::uint64_t gops, bool heads) {
  const std::uint64_t bands = static_cast<std::uint64_t>(header.temporal_bands());
  const std::uint64_t chunks = header.layers * bands * (header.spatial_levels + std::uint64_t{1});
  const std::uint64_t gop_bytes = 80 + std::uint64_t{6} * header.layers + 6 * chunks;
  const std::uint64_t room = 96 + checked_mul(gops, gop_bytes);
  if (!heads) return static_cast<std::size_t>(room);
  const auto blocks_along = [&](int n) {
    return static_cast<std::uint64_t>((n + header.block_size() - 1) / header.block_size());
  };
  std::uint64_t segments = 0;
  for (std::size_t c = 0; c < header.components.size(); ++c)
    segments += blocks_along(header.video.component_width(static_cast<int>(c))) *
                blocks_along(header.video.component_height(static_cast<int>(c))) * bands *
                (header.components[c].spatial_levels + std::uint64_t{1});
  const bool few = header.lossless && header.components.size() == 1;
  const std::uint64_t header_bytes =
      8 * chunks + segments * (few ? 19u + 4u * header.layers : 24u + 8u * header.layers) / 16;
  const std::uint64_t all_headers = checked_mul(gops, header_bytes);
  return static_cast<std::size_t>(all_headers <= kMostHeaderBytes ? room + all_headers : room);
}

std::vector<std::uint8_t> serialise(const FrontTable& table, std::size_t room) {
  ByteWriter w;
  w.fixed(kFrontTableVersion);
  w.fixed(table.stream_bytes);
  const std::size_t count = copies_within(table.copies, room - std::min(room, w.bytes.size()));
  write_places(w, table.copies, count);
  for (std::size_t i = 0; i < count; ++i)
    w.bytes.insert(w.bytes.end(), table.copies[i].bytes.begin(), table.copies[i].bytes.end());
  w.bytes.resize(room);
  return std::move(w.bytes);
}

std::optional<FrontTable> parse_front_table(const std::uint8_t* bytes, std::size_t size) try {
  ByteReader r(bytes, size, "front table");
  FrontTable table;
  std::uint8_t version = 0;
  std::uint64_t count = 0;
  r.fixed(version);
  if (version != kFrontTableVersion) return std::nullopt;
  r.fixed(table.stream_bytes);
  r.varint(count);
  if (count > r.left() / 2) return std::nullopt;
  std::vector<std::uint64_t> sizes;
  for (std::uint64_t i = 0; i < count; ++i) {
    std::uint64_t offset = 0;
    std::uint64_t n = 0;
    r.varint(offset);
    r.varint(n);
    if (n == 0 || offset > table.stream_bytes || n > table.stream_bytes - offset) return std::nullopt;
    table.copies.push_back({offset, {}});
    sizes.push_back(n);
  }
  if (!are_apart(table.copies, sizes)) return std::nullopt;
  for (std::size_t i = 0; i < sizes.size(); ++i) table.copies[i].bytes = r.piece(sizes[i]).rest();
  return table;
} catch (const Error&) {
  return std::nullopt;
}

FrontTable gather_front_table(ByteSource& stream) {
  std::uint64_t bytes_read = 0;
  stream.seek(0);
  StreamInput in(stream, bytes_read);
  StreamLayout layout;
  layout.read(in);
  FrontTable table;
  table.stream_bytes = in.size();
  if (layout.index_offset == 0) return table;
  table.copies.push_back(copy_of(in, layout.index_offset, in.size() - layout.index_offset));
  for (const GopInfo& g : layout.info.gops) {
    const FrontCopy begin = copy_of(in, g.offset, kBoxHeaderBytes + 4);
    const auto head_bytes = load_little_endian<std::uint32_t>(begin.bytes.data() + kBoxHeaderBytes);
    table.copies.push_back(copy_of(in, g.offset, std::min<std::uint64_t>(g.bytes, kBoxHeaderBytes + head_bytes)));
  }
  for (std::size_t i = 0; i < layout.info.gops.size(); ++i) {
    const FrontCopy header = table.copies[1 + i];
    gather_heads(in, layout.header, layout.info.gops[i], header, table.copies);
  }
  return table;
}

ExtraBox empty_front_table(std::size_t room) { return {kFrontTableBox, std::vector<std::uint8_t>(room)}; }

void write_front_table(ReadBack& again, std::size_t room) {
  const std::unique_ptr<ByteSource> coded = again.open();
  std::vector<std::uint8_t> table = serialise(gather_front_table(*coded), room);
  append_crc(table);
  again.replace(place_of_front_table(*coded), table.data(), table.size());
}

}  // namespace trivelet
