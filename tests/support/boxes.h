// The boxes of a stream as bytes, for tests that damage, rearrange or repair them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "codec/base/hash.h"
#include "codec/format/container.h"
#include "trivelet/codec.h"

namespace trivelet::test {

using Bytes = std::vector<std::uint8_t>;

inline std::uint64_t load(const std::uint8_t* p, std::size_t n) {
  std::uint64_t v = 0;
  for (std::size_t i = 0; i < n; ++i) v |= static_cast<std::uint64_t>(p[i]) << (8 * i);
  return v;
}
inline void store(std::uint8_t* p, std::uint64_t v, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) p[i] = static_cast<std::uint8_t>(v >> (8 * i));
}

/// Writes the CRC-32C of all bytes but the last four into the last four.
inline void repair_crc(std::uint8_t* p, std::size_t size) {
  if (size >= 4) store(p + size - 4, crc32c(p, size - 4), 4);
}

struct BoxAt {
  std::string type;
  std::size_t at = 0;      ///< offset of its header
  std::size_t length = 0;  ///< of its payload, clipped to the end of the stream
  std::size_t payload() const { return at + kBoxHeaderBytes; }
  std::size_t end() const { return payload() + length; }
};

/// Boxes in order, whatever their checksums are; the last one may be truncated.
inline std::vector<BoxAt> list_boxes(const std::uint8_t* p, std::size_t size) {
  std::vector<BoxAt> boxes;
  for (std::size_t at = sizeof kSignature; at + kBoxHeaderBytes <= size;) {
    BoxAt b;
    b.type.assign(reinterpret_cast<const char*>(p + at), 4);
    b.at = at;
    const std::uint64_t room = size - b.payload();
    b.length = static_cast<std::size_t>(std::min(load(p + at + 4, 8), room));
    boxes.push_back(b);
    at = b.end();
  }
  return boxes;
}

/// Offset of the fields after the features, beginning with the profile, in the payload of Head.
inline std::size_t head_fields(const std::uint8_t* payload) { return 19u + payload[18]; }

/// A box with this payload, and its checksum if it has one.
inline Bytes make_box(const char* type, const Bytes& payload) {
  Bytes out(kBoxHeaderBytes);
  write_box_header(type, payload.size(), out.data());
  out.insert(out.end(), payload.begin(), payload.end());
  return out;
}

/// An additional box with this content and its checksum.
inline Bytes make_extra_box(const char* type, Bytes content) {
  content.resize(content.size() + kBoxCrcBytes);
  repair_crc(content.data(), content.size());
  return make_box(type, content);
}

/// Offsets of the stored checksums and sizes of chunks in a GOP header. Stops if the header ends early.
struct ChunkPlace {
  std::uint64_t size = 0;
  std::size_t crc_at = 0;  ///< in the header; undefined if the size is 0
};
inline std::vector<ChunkPlace> find_chunks(const StreamHeader& h, const std::uint8_t* p, std::size_t size) {
  std::vector<ChunkPlace> chunks;
  std::size_t at = 4;
  bool ok = true;
  auto skip = [&](std::size_t n) {
    ok = ok && n <= size - at;
    if (ok) at += n;
  };
  auto varint = [&] {
    std::uint64_t v = 0;
    for (int shift = 0; ok && shift < 64; shift += 7) {
      if (at >= size) {
        ok = false;
        return v;
      }
      const std::uint8_t b = p[at++];
      v |= static_cast<std::uint64_t>(b & 127) << shift;
      if (b < 128) break;
    }
    return v;
  };
  varint();
  varint();
  const std::uint64_t frames = varint();
  const std::uint8_t flags = ok && at < size ? p[at] : 0;
  skip(1);
  varint();
  varint();
  if (flags & 2)
    for (std::uint64_t i = 1; ok && i < frames; ++i) {
      varint();
      varint();
    }
  if (flags & 1) skip(8);
  if (!h.lossless) skip(4);
  skip(1u + h.layers);
  const std::size_t n =
      static_cast<std::size_t>(h.layers) * static_cast<std::size_t>(h.temporal_bands()) * (h.spatial_levels + 1u);
  for (std::size_t i = 0; ok && i < n; ++i) {
    ChunkPlace c;
    c.size = varint();
    c.crc_at = at;
    if (c.size > 0) skip(4);
    if (ok) chunks.push_back(c);
  }
  return chunks;
}

/// Corrects all checksums of a stream that can be located: of boxes, headers, chunks, index and end.
inline void repair(Bytes& s) {
  if (s.size() < sizeof kSignature) return;
  std::memcpy(s.data(), kSignature, sizeof kSignature);
  StreamHeader header;
  bool have_header = false;
  for (const BoxAt& b : list_boxes(s.data(), s.size())) {
    repair_crc(s.data() + b.at, kBoxHeaderBytes);
    std::uint8_t* p = s.data() + b.payload();
    if (b.type == "Gop ") {
      if (b.length < 8 || !have_header) continue;
      const std::uint64_t n = load(p, 4);
      if (n < 8 || n > b.length) continue;
      const auto head = static_cast<std::size_t>(n);
      std::size_t body = head;
      for (const ChunkPlace& c : find_chunks(header, p, head - 4)) {
        if (c.size > b.length - body) break;
        const auto bytes = static_cast<std::size_t>(c.size);
        if (bytes > 0) store(p + c.crc_at, crc32c(p + body, bytes), 4);
        body += bytes;
      }
      repair_crc(p, head);
    } else {
      repair_crc(p, b.length);
      if (b.type == "Head" && !have_header) {
        try {
          header = parse_stream_header(p, b.length);
          have_header = true;
        } catch (const Error&) {
          return;
        }
      }
    }
  }
}

/// A forward-only stream that delivers a few bytes at a time.
class Pipe final : public ByteSource {
 public:
  Pipe(const void* data, std::size_t size, std::size_t piece = 1000) : memory_(data, size), piece_(piece) {}
  std::size_t read(void* data, std::size_t size) override { return memory_.read(data, std::min(size, piece_)); }
  bool seekable() const override { return false; }
  void seek(std::uint64_t) override { fail(ErrorKind::kIo, "a pipe cannot seek"); }
  std::uint64_t size() const override { fail(ErrorKind::kIo, "a pipe has no size"); }

 private:
  MemorySource memory_;
  std::size_t piece_;
};

}  // namespace trivelet::test
