#include "codec/front_table.h"

#include <algorithm>
#include <utility>

#include "codec/bytes.h"
#include "codec/stream_layout.h"
#include "trivelet/volume.h"

namespace trivelet {

namespace {

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

// Whether no byte of the stream is in two of the copies, whose bytes are not read yet.
bool are_apart(const std::vector<FrontCopy>& copies, const std::vector<std::uint64_t>& sizes) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> places;  // begin and end
  for (std::size_t i = 0; i < sizes.size(); ++i) places.emplace_back(copies[i].offset, copies[i].offset + sizes[i]);
  std::sort(places.begin(), places.end());
  return std::adjacent_find(places.begin(), places.end(),
                            [](const auto& a, const auto& b) { return b.first < a.second; }) == places.end();
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

// Per GOP: its entry of the index, with sizes of layers of 3 bytes; the header's fields; sizes and checks of chunks, of 2
// and 4 bytes; the place of the copy. Then the boxes of index and end.
std::size_t front_table_room(const StreamHeader& header, std::uint64_t gops) {
  const std::uint64_t chunks = std::uint64_t{header.layers} * static_cast<std::uint64_t>(header.temporal_bands()) *
                               (header.spatial_levels + std::uint64_t{1});
  const std::uint64_t of_gop = 80 + std::uint64_t{6} * header.layers + 6 * chunks;
  return static_cast<std::size_t>(96 + checked_mul(gops, of_gop));
}

std::vector<std::uint8_t> serialise(const FrontTable& table, std::size_t room) {
  for (std::size_t count = table.copies.size();; --count) {
    ByteWriter w;
    w.fixed(kFrontTableVersion);
    w.fixed(table.stream_bytes);
    write_places(w, table.copies, count);
    for (std::size_t i = 0; i < count; ++i)
      w.bytes.insert(w.bytes.end(), table.copies[i].bytes.begin(), table.copies[i].bytes.end());
    if (w.bytes.size() > room && count > 0) continue;
    w.bytes.resize(room);
    return std::move(w.bytes);
  }
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
