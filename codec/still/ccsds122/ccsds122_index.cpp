// The side index, an optional companion file of a stream (layout in CCSDS122.md).
#include <cstring>

#include "codec/base/fuzzing.h"
#include "codec/base/limits.h"
#include "codec/still/ccsds122/ccsds122.h"

namespace trivelet::ccsds122 {
namespace {

constexpr char kMagic[8] = {'C', '1', '2', '2', 'I', 'D', 'X', '1'};

/// CRC-32 (reflected 0xEDB88320), bit by bit, because an index is small.
std::uint32_t crc32(std::span<const std::byte> bytes) {
  std::uint32_t crc = 0xFFFFFFFF;
  for (const std::byte b : bytes) {
    crc ^= std::to_integer<std::uint32_t>(b);
    for (int i = 0; i < 8; ++i) crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320U : 0U);
  }
  return ~crc;
}

void put32(std::vector<std::byte>& out, std::uint32_t v) {
  for (int i = 0; i < 4; ++i) out.push_back(static_cast<std::byte>(v >> (8 * i)));
}
std::uint32_t get32(std::span<const std::byte> bytes, std::size_t at) {
  std::uint32_t v = 0;
  for (std::size_t i = 0; i < 4; ++i) v |= std::to_integer<std::uint32_t>(bytes[at + i]) << (8 * i);
  return v;
}

}  // namespace

std::vector<std::byte> write_index(std::span<const std::uint32_t> segment_bytes) {
  std::vector<std::byte> out(sizeof kMagic);
  std::memcpy(out.data(), kMagic, sizeof kMagic);
  put32(out, static_cast<std::uint32_t>(segment_bytes.size()));
  for (const std::uint32_t n : segment_bytes) put32(out, n);
  put32(out, crc32(out));
  return out;
}

std::vector<std::uint32_t> read_index(std::span<const std::byte> bytes) {
  require(bytes.size() >= 16 && std::memcmp(bytes.data(), kMagic, sizeof kMagic) == 0, ErrorKind::kBadStream,
          "not a segment index: it does not begin with C122IDX1");
  const std::size_t count = get32(bytes, 8);
  require((bytes.size() - 16) / 4 == count && bytes.size() % 4 == 0, ErrorKind::kBadStream,
          "segment index of " + count_of(bytes.size(), "byte") + " cannot hold " + count_of(count, "segment"));
  require(checks_are_believed || get32(bytes, bytes.size() - 4) == crc32(bytes.first(bytes.size() - 4)),
          ErrorKind::kBadStream, "segment index is damaged: its checksum differs");
  std::vector<std::uint32_t> lengths(count);
  for (std::size_t i = 0; i < count; ++i) lengths[i] = get32(bytes, 12 + 4 * i);
  return lengths;
}

}  // namespace trivelet::ccsds122
