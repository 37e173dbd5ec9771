// Helpers of the fuzzers of whole streams: option bytes, then a .tvl stream. Checksums are valid unless an option says
// otherwise: they are corrected, or in fuzzing builds not checked (codec/base/fuzzing.h).
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "codec/backend.h"
#include "codec/base/fuzzing.h"
#include "codec/format/container.h"
#include "tests/fuzz/wrong.h"
#include "tests/support/boxes.h"
#include "trivelet/codec.h"

namespace trivelet::fuzz {

using test::Bytes;

/// The stream behind the option bytes.
inline Bytes stream_of(const std::uint8_t* data, std::size_t size, std::size_t options, bool damaged) {
  Bytes s(data + options, data + size);
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
  checks_are_believed = !damaged;
  if (!damaged && s.size() >= sizeof kSignature) std::memcpy(s.data(), kSignature, sizeof kSignature);
#else
  if (!damaged) test::repair(s);
#endif
  return s;
}

/// Has a front table say as many bytes as the stream has: a table whose copies may be anything else counts. For fuzzers in
/// which all read them alike.
inline void let_front_table_count(Bytes& s) {
  for (const test::BoxAt& b : test::list_boxes(s.data(), s.size())) {
    if (b.type == "Head") continue;
    if (b.type != "tocF" || b.length < 9 + kBoxCrcBytes) return;
    test::store(s.data() + b.payload() + 1, s.size(), 8);
    test::repair_crc(s.data() + b.payload(), b.length);
    return;
  }
}

/// Streams with larger GOPs are left out: they are slow, not different.
inline bool is_small(const StreamHeader& h) {
  std::uint64_t samples = 0;
  std::uint64_t words = 0;
  for (int c = 0; c < static_cast<int>(h.components.size()); ++c) {
    const Shape s = h.component_shape(c, h.gop_frames);
    const GridSize g = grid_size(s, h.decomposition(c), h.block_size());
    samples += s.samples();
    words += g.words * g.blocks;
    if (g.blocks * static_cast<std::uint64_t>(g.segments) * h.layers > 4000) return false;
  }
  return samples <= 8192 && words <= 1000;
}

/// Reads the header, if there is one. False when it is one of a stream that is too large.
inline bool find_header(const Bytes& s, StreamHeader& h) {
  for (const test::BoxAt& b : test::list_boxes(s.data(), s.size())) {
    if (b.type != "Head") continue;
    try {
      h = parse_stream_header(s.data() + b.payload(), b.length);
      return is_small(h);
    } catch (const Error&) {
      return true;  // reading the stream reports the same
    }
  }
  return true;
}

/// What a fuzzer of streams gets.
struct Given {
  Bytes stream;
  StreamHeader header;
};

/// The stream behind `options` bytes, of which bit 0 of the first says whether its checksums may be wrong. Nullopt if it is
/// too large or there are no option bytes. `counts`: a front table counts, see let_front_table_count().
inline std::optional<Given> given_stream(const std::uint8_t* data, std::size_t size, std::size_t options,
                                         bool counts = false) {
  if (size < options) return std::nullopt;
  Given g;
  g.stream = stream_of(data, size, options, data[0] & 1);
  if (counts) let_front_table_count(g.stream);
  if (!find_header(g.stream, g.header)) return std::nullopt;
  return g;
}

/// A reduced stream by an option byte, of which bits 0, 2 and 3 are left.
inline DecoderParams reduced_by(unsigned options, const StreamHeader& h) {
  DecoderParams p;
  p.threads = 1;
  p.keep_partial = options & 2;
  if (h.components.empty()) return p;
  p.reduce = std::min<int>(options >> 4 & 3, h.max_reduce() - h.dropped_spatial);
  if (h.layout == Layout::kT2d)
    p.temporal_reduce = std::min<int>(options >> 6 & 1, h.temporal_levels - h.dropped_temporal);
  p.max_layers = options & 128 ? 1 : 0;
  return p;
}

/// A part of a stream by an option byte, of which bits 0 and 6, 7 are left.
inline DecoderParams part_of(unsigned options, const StreamHeader& h) {
  DecoderParams p;
  p.threads = 1;
  p.keep_partial = options & 2;
  p.reduce = std::min<int>(options >> 2 & 3, h.max_reduce() - h.dropped_spatial);
  p.max_layers = options & 16 ? 1 : 0;
  p.first_frame = options & 32 ? 1 : 0;
  return p;
}

/// What a stranger's stream may be answered with.
inline void expect_refusal(const Error& e) {
  if (e.kind() == ErrorKind::kBadStream || e.kind() == ErrorKind::kUnsupported) return;
  std::fprintf(stderr, "%s\n", e.what());
  wrong("kind of error");
}

}  // namespace trivelet::fuzz
