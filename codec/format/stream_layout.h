// What a stream says about itself: its header, the boxes behind it, and where its GOPs are, from the index at its end
// or, where that is lost, from what is intact of the packets. Everything that reads streams begins with it: decoding,
// truncation, `info`, `verify`.
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
  std::uint64_t promised_frames = 0;  ///< what the end of the stream says, once it is known
  std::uint64_t index_offset = 0;     ///< of its box; 0 unless `info.gops` came from it
  bool has_front_table = false;       ///< a box of that name stands where it counts, whatever is in it
  /// Whether the front table (front_table.h) may stand for what it has copies of. Not for those who change or check
  /// all.
  bool uses_front_table = false;
  std::optional<std::array<std::uint8_t, kBoxHeaderBytes>> pending_box;  ///< read from a pipe, not yet looked at

  /// Header, boxes up to the first GOP and, from a seekable source, the index. Stands at the first GOP afterwards, of a
  /// pipe behind its box header, which is `pending_box`. Throws BadStream or Unsupported; a lost index is no error.
  void read(StreamInput& in);

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

/// What the header of a GOP packet tells of what stands in the index. The errors of layers are known to the index
/// alone, but a hash says that nothing was taken from a lossless GOP.
GopInfo describe_gop(const StreamHeader& stream, const GopHeader& gop, std::uint64_t offset, std::uint64_t bytes);

/// Moves to the next intact header of a GOP packet, index or end. Only for seekable sources.
bool resync(StreamInput& in);

struct Reduction;  // codec/backend.h
/// Size and frame rate of what it leaves.
VideoInfo reduced_video(VideoInfo video, const Reduction& reduction);

}  // namespace trivelet
