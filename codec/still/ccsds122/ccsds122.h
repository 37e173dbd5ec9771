// CCSDS 122.0-B-2 image data compression: encodes a greyscale picture into a conforming stream and decodes such
// streams.
//
//   using namespace trivelet;
//   ThreadPool pool(0);
//   ccsds122::Params p;                                   // lossless: integer DWT, no limits
//   p.bits = 12;
//   ccsds122::Encoded e = ccsds122::encode(view, p, pool);         // view: VolumeView of one frame
//   ccsds122::Decoded d = ccsds122::decode(e.bytes, {}, pool);     // d.view(): the picture; d.segments: the report
//
// Samples are integers of 1..28 bits in 1, 2 or 4 bytes. Every header field of the standard has a parameter. Output
// bytes depend neither on the number of threads nor on the instruction set. Errors are trivelet::Error. CCSDS122.md
// tells what is implemented, the limits, and the format of the side index.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "codec/base/simd.h"
#include "codec/threads/parallel.h"
#include "trivelet/limits.h"
#include "trivelet/types.h"

namespace trivelet::ccsds122 {

enum class Dwt : std::uint8_t { kFloat = 0, kInteger = 1 };

/// Weight exponents in the order of the header: HH1 HL1 LH1 HH2 HL2 LH2 HH3 HL3 LH3 LL3.
using Weights = std::array<std::uint8_t, 10>;
inline constexpr Weights kDefaultWeights = {0, 1, 1, 1, 2, 2, 2, 3, 3, 3};

inline constexpr std::uint32_t kMaxSegmentBlocks = std::uint32_t{1} << 20;
inline constexpr std::uint32_t kMaxSegmentBytes = std::uint32_t{1} << 27;
inline constexpr int kMaxWidth = 1 << 20;
inline constexpr int kMinSide = 17;

struct Params {
  Dwt dwt = Dwt::kInteger;
  int bits = 8;  ///< R. Integer DWT: 1..25; float DWT: 1..27 unsigned, 1..28 signed
  bool is_signed = false;
  bool transpose = false;       ///< code the transposed picture; the decoder transposes it back
  bool custom_weights = false;  ///< use `weights` (0..3 each) instead of the defaults; no effect with the float DWT
  Weights weights = kDefaultWeights;

  /// S, blocks of a segment, 16..2^20: ceil(width / 8) = a strip; all blocks of the picture = a frame.
  std::uint32_t segment_blocks = 256;
  int word_bytes = 1;         ///< coded word length in bytes, 1..8; segments end at a multiple of it
  bool optimal_dc = true;     ///< OptDCSelect: false = heuristic choice of the DC codes
  bool optimal_ac = true;     ///< OptACSelect: the same for the code of AC depths
  bool every_header = false;  ///< repeat header parts 2, 3 and 4 in every segment; false = only where they change

  // Where segments end. If none of these is set and the DWT is integer, the stream is lossless.
  bool dc_stop = false;
  int bit_plane_stop = 0;           ///< 0..31
  int stage_stop = 3;               ///< 0..3: stop after stage 1..4 of plane bit_plane_stop
  std::uint32_t segment_bytes = 0;  ///< SegByteLimit, header included; 0 = no limit. Rounded down to whole words
  bool shorten_last = true;         ///< reduce the limit of a shorter last segment in proportion to its blocks
  bool use_fill = false;            ///< pad every segment with zeros to SegByteLimit (needs segment_bytes)
  /// Size of the stream, distributed over the segments by slope; 0 = no limit. Excludes segment_bytes and use_fill.
  std::uint64_t total_bytes = 0;

  SimdLevel simd = SimdLevel::kBest;

  bool operator==(const Params&) const = default;
};

/// A segment's header with the values in force: parts that were not sent keep the values of earlier segments.
struct SegmentHeader {
  bool start = false;
  bool end = false;
  std::uint8_t count = 0;                            ///< number of the segment modulo 256
  int dc_depth = 1;                                  ///< BitDepthDC 1..32
  int ac_depth = 0;                                  ///< BitDepthAC 0..31
  bool part2 = false, part3 = false, part4 = false;  ///< sent in this header
  int pad_rows = 0;                                  ///< 0..7, valid when `end`
  // part 2
  std::uint32_t byte_limit = 0;  ///< SegByteLimit, 0 = 2^27
  bool dc_stop = false;
  int bit_plane_stop = 0;
  int stage_stop = 3;
  bool use_fill = false;
  // part 3
  std::uint32_t blocks = 0;  ///< S, 1..2^20 (0 until part 3 was sent)
  bool optimal_dc = true;
  bool optimal_ac = true;
  // part 4
  Dwt dwt = Dwt::kInteger;
  bool is_signed = false;
  int bits = 0;   ///< R (0 until part 4 was sent)
  int width = 0;  ///< of the coded array: the height of the picture when transposed
  bool transpose = false;
  int word_bytes = 1;
  bool custom_weights = false;
  Weights weights{};  ///< as sent; all 0 without custom weights

  int bytes() const { return 3 + (end ? 1 : 0) + (part2 ? 5 : 0) + (part3 ? 3 : 0) + (part4 ? 8 : 0); }
  /// The exponents in use: defaults or custom, all 0 for the float DWT.
  Weights shifts() const;
  bool operator==(const SegmentHeader&) const = default;
};

/// Parses the header at the start of `bytes`; values that it does not send come from `previous`. Throws BadStream for
/// truncated headers and impossible values.
SegmentHeader read_header(std::span<const std::byte> bytes, const SegmentHeader& previous);
/// Serialises a header.
std::vector<std::byte> write_header(const SegmentHeader& header);

// --------------------------------------------------------------------------------------------------------- encode

/// Seconds of wall time by stage.
struct StageSeconds {
  double dwt = 0;    ///< transform in either direction, including access to the samples
  double coder = 0;  ///< bit planes: gathering blocks, coding, packing
};

struct Encoded {
  std::vector<std::byte> bytes;
  std::vector<std::uint32_t> segment_bytes;  ///< length of every segment
  StageSeconds seconds;
};

/// Encodes frame 0 of `image`, whose samples have 1, 2 or 4 bytes and at least params.bits bits.
/// Throws BadArgument for sizes outside 17..2^20 (width as coded) x at least 17, parameters outside their ranges,
/// samples outside the range of `bits`, and a total_bytes that is too small for headers and DC data.
Encoded encode(const VolumeView& image, const Params& params, ThreadPool& pool);

// --------------------------------------------------------------------------------------------------------- decode

struct DecodeParams {
  /// Lengths of the segments, if known (Encoded::segment_bytes, SegmentIndex). Segments are then decoded in parallel,
  /// and damage does not spread. Lengths that do not fit the stream throw BadArgument.
  std::span<const std::uint32_t> segment_bytes;
  bool keep_damaged = true;  ///< false: throw BadStream at the first damaged, truncated or missing segment
  Limits limits{};           ///< memory and samples; exceeding them throws Unsupported
  SimdLevel simd = SimdLevel::kBest;
};

enum class SegmentState : std::uint8_t {
  kComplete,  ///< everything the encoder sent was read, possibly up to a byte limit or stop rule
  kCut,       ///< the stream ends inside the segment; the part before is used
  kDamaged,   ///< the bits are contradictory; the part before is used
  kMissing,   ///< not found; a constant fills its blocks
};

struct SegmentReport {
  SegmentHeader header;
  std::uint64_t offset = 0;       ///< in the stream
  std::uint32_t bytes = 0;        ///< with header and padding
  std::uint64_t first_block = 0;  ///< in raster order
  SegmentState state = SegmentState::kComplete;
  bool limited = false;  ///< ended by SegByteLimit
  int last_plane = 0;    ///< lowest plane with decoded bits; ac_depth if there is none
  std::string message;   ///< what is wrong, unless the state is kComplete
};

struct Decoded {
  int width = 0;
  int height = 0;
  int bits = 0;
  bool is_signed = false;
  int bytes_per_sample = 1;        ///< 1 up to 8 bits, 2 up to 16, else 4; native byte order
  std::vector<std::byte> samples;  ///< row-major
  std::vector<SegmentReport> segments;
  std::uint64_t trailing_bytes = 0;  ///< behind the last segment
  StageSeconds seconds;

  bool intact() const;  ///< all segments are complete, including the last one of the picture
  bool ended = false;   ///< a segment with EndImgFlag was found
  VolumeView view() const;
};

/// Decodes a stream. Throws BadStream when the first header is unusable (or, without keep_damaged, for any damage), and
/// Unsupported beyond the limits. Other damage affects only its segments and is reported.
Decoded decode(std::span<const std::byte> stream, const DecodeParams& params, ThreadPool& pool);

/// Reports the segments without reconstructing samples. It parses the whole stream to find them.
std::vector<SegmentReport> inspect(std::span<const std::byte> stream, const DecodeParams& params, ThreadPool& pool);

// ------------------------------------------------------------------------------------------------------ side index

/// The side index: an optional companion file with the segment lengths, which the standard's stream lacks
/// (CCSDS122.md).
std::vector<std::byte> write_index(std::span<const std::uint32_t> segment_bytes);
/// Throws BadStream unless the bytes are an intact index.
std::vector<std::uint32_t> read_index(std::span<const std::byte> bytes);

}  // namespace trivelet::ccsds122
