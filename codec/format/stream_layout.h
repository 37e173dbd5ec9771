// The layout of a stream: its header, the boxes behind it, and the places of its GOPs, read from the index at its end
// or, if the index is lost, from the intact packets. All readers of streams begin here: decoding, truncation, `info`,
// `verify`.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "codec/format/container.h"
#include "codec/format/stream_input.h"
#include "trivelet/limits.h"
#include "trivelet/stream_info.h"

namespace trivelet {

struct StreamLayout {
  Limits limits{};  ///< memory: of the list of GOPs
  StreamHeader header;
  StreamInfo info;
  std::uint64_t promised_frames = 0;  ///< given by the end of the stream, once it is known
  std::uint64_t index_offset = 0;     ///< of its box; 0 unless `info.gops` came from it
  bool has_front_table = false;       ///< there is a box of that name in its place, whatever its content
  /// Whether copies in the front table (front_table.h) may replace the original bytes. Not for readers that change or
  /// check everything.
  bool uses_front_table = false;
  std::optional<std::array<std::uint8_t, kBoxHeaderBytes>> pending_box;  ///< read from a pipe, not yet looked at

  /// Reads header, boxes up to the first GOP and, from a seekable source, the index. Afterwards the input is at the
  /// first GOP; a pipe is behind that GOP's box header, which is `pending_box`. Throws BadStream or Unsupported; a lost
  /// index is no error.
  void read(StreamInput& in);
  /// The most frames that a GOP of this stream has, as far as its index or its header says. The header's `gop_frames`
  /// says how many one may have: a picture is often a GOP of 1 of 32.
  int largest_gop() const;

 private:
  std::optional<std::uint64_t> damaged_box_;  ///< before the first GOP
  void read_head(StreamInput& in);
  void read_extra_boxes(StreamInput& in);
  void use_front_table(StreamInput& in, const ExtraBox& box) const;
  void read_end(StreamInput& in);
  void read_index(StreamInput& in, std::uint64_t start, std::uint64_t offset, std::uint64_t end);
  void scan(StreamInput& in);
};

/// As probe() of codec.h.
StreamInfo probe(ByteSource& source, const Limits& limits, bool uses_front_table);

/// The most frames of one of these GOPs, 1 or more.
int longest_gop(const std::vector<GopInfo>& gops);

/// The index entry that the header of a GOP packet gives. Only the index knows the errors of layers, but a hash means
/// that a lossless GOP is complete.
GopInfo describe_gop(const StreamHeader& stream, const GopHeader& gop, std::uint64_t offset, std::uint64_t bytes);

/// Moves to the next intact header of a GOP packet, index or end. Only for seekable sources.
bool resync(StreamInput& in);

struct Reduction;  // codec/backend.h
/// Size and frame rate of what it leaves.
VideoInfo reduced_video(VideoInfo video, const Reduction& reduction);

}  // namespace trivelet
