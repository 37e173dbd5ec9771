// The .tvl container: reads and writes boxes, stream header, GOP packets with their chunk tables, index and end.
// FORMAT.md is normative; section names there are the names here.
//
// This code works on bytes; it reads no files and does not know the coder's bits. Every length that comes from a stream
// is checked against a limit before memory is taken for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "codec/base/stream_header.h"
#include "trivelet/stream_info.h"
#include "trivelet/streams.h"

namespace trivelet {

inline constexpr std::uint8_t kSignature[8] = {0x89, 'T', 'V', 'L', 0x0D, 0x0A, 0x1A, 0x0A};

// --------------------------------------------------------------------------------------------------------------- box

/// Every element of a stream after the signature is a box: type, payload length, CRC-32C of both, payload.
/// Types beginning with a capital letter are critical: a reader that does not know one must refuse the stream. Those
/// whose fourth letter is a capital depend on the coded data.
struct Box {
  char type[5] = {};
  std::uint64_t length = 0;
  bool is(const char* name) const { return std::string(type) == name; }
  bool critical() const { return type[0] >= 'A' && type[0] <= 'Z'; }
};
inline constexpr std::size_t kBoxHeaderBytes = 16;
/// The CRC at the end of the payload of every box but "Gop ".
inline constexpr std::size_t kBoxCrcBytes = 4;
/// Extra boxes (codec.h): the largest a decoder takes in.
inline constexpr std::size_t kMaxExtraBytes = std::size_t{1} << 28;
/// Header and CRC of a box with this content. The box is header, content and CRC, one after the other.
struct BoxEnds {
  std::uint8_t header[kBoxHeaderBytes];
  std::uint8_t crc[kBoxCrcBytes];
};
BoxEnds box_around(const char* type, const std::vector<std::uint8_t>& content);
/// The boxes a stream consists of.
inline bool is_stream_box(const std::string& type) {
  return type == "Head" || type == "Gop " || type == "Indx" || type == "Done";
}

/// Whether a box of this type depends on the coded data.
inline bool is_bound(const std::string& type) { return type[3] >= 'A' && type[3] <= 'Z'; }
/// Boxes between header and first GOP of which there is at most one.
inline bool is_known_extra_box(const std::string& type) {
  for (const char* known : {"Volm", "Mask", "volh", "volq", "mdcv", "clli", "chap", "meta"})
    if (type == known) return true;
  return false;
}

void write_box_header(const char* type, std::uint64_t length, std::uint8_t* out);
/// False if the CRC does not match or the type is invalid.
bool parse_box_header(const std::uint8_t* bytes, Box& box);

// ------------------------------------------------------------------------------------------------------ stream header

std::vector<std::uint8_t> serialise(const StreamHeader& header);
/// Throws BadStream or Unsupported with the field, its value and its range.
StreamHeader parse_stream_header(const std::uint8_t* bytes, std::size_t size);

// --------------------------------------------------------------------------------------------------------- GOP packet

/// The end of the last of these frames.
std::int64_t end_of(const std::vector<FrameTime>& times);

PacketInfo packet_info(const GopHeader& gop);

std::vector<std::uint8_t> serialise(const StreamHeader& stream, const GopHeader& gop);
GopHeader parse_gop_header(const StreamHeader& stream, const std::uint8_t* bytes, std::size_t size);

// ---------------------------------------------------------------------------------------------------------- index, end

/// `gops` have `layers` entries each.
std::vector<std::uint8_t> serialise_index(const std::vector<GopInfo>& gops);
/// Upper bound of the bytes of a GOP's entry, if none of its layers has more than `layer_bytes`. The GOP begins at
/// `begin_pts`, the GOP before it ends at `before_pts`.
std::uint64_t index_entry_bound(int layers, std::uint64_t layer_bytes, std::int64_t before_pts, std::int64_t begin_pts,
                                std::int64_t end_pts);
std::vector<GopInfo> parse_index(const std::uint8_t* bytes, std::size_t size, int layers);

/// Codes of mean squared errors in the index: 512 * log2, in steps of 1/512 of an octave.
std::uint16_t error_code(double mean_squared_error);
double error_of(std::uint16_t code);
inline constexpr std::uint16_t kErrorUnknown = 65535;

/// The content of the "Done" box, the last of a finished stream: fixed size, so that it is found from the end.
struct StreamEnd {
  std::uint64_t frames = 0;
  std::uint64_t index_offset = 0;  ///< of the index box in the file
};
inline constexpr std::size_t kEndPayloadBytes = 20;
std::vector<std::uint8_t> serialise(const StreamEnd& end);
/// False when the CRC does not match.
bool parse_stream_end(const std::uint8_t* bytes, std::size_t size, StreamEnd& end);

}  // namespace trivelet
