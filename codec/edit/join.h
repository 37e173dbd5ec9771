// One stream out of several that were encoded alike, one after the other in time: GOPs are numbered anew, the indexes
// merged, all other bytes copied.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "codec/base/stream_header.h"
#include "trivelet/limits.h"
#include "trivelet/streams.h"

namespace trivelet {

class ReadBack;  // trivelet/volume.h

/// A stream to join, and what messages call it.
struct JoinInput {
  std::string name;
  ByteSource* source = nullptr;
};

struct JoinResult {
  std::uint64_t bytes = 0;
  std::uint64_t gops = 0;
  std::uint64_t frames = 0;
  std::vector<std::string>
      index_damage;  ///< of each stream, as StreamInfo tells it: errors of its layers are not known
};

/// Header, boxes behind it and settings are those of the first stream. Times of a stream that does not begin where the
/// one before ends, or later, are shifted to that. All that is copied is checked: BadStream for damaged and unfinished
/// streams (a lost index is rebuilt), BadArgument for streams that differ in more than their length (the message names
/// it), Unsupported for volumes and for more frames than the limits allow in all, or samples in a GOP. Sources must be
/// seekable; they are read one after the other, a chunk at a time. With `again`, what went into the sink, the whole
/// gets a front table (front_table.h) if the first one has one.
JoinResult join(std::span<const JoinInput> inputs, ByteSink& sink, const Limits& limits = {},
                ReadBack* again = nullptr);

/// Where the frames of a stream come to stand in the whole, in units of its time.
struct JoinPlace {
  std::int64_t begin_pts = 0;
  std::int64_t end_pts = 0;
  std::int64_t shift_pts = 0;  ///< added to the times that they have
  bool empty = true;           ///< no frames: the times are 0
};

struct JoinPlaces {
  std::vector<JoinPlace> of;  ///< each stream
  Rational time_base;
};

/// What join() will do to times. Throws what it throws for streams that do not fit. Sources are left at their
/// beginnings.
JoinPlaces join_places(std::span<const JoinInput> inputs, const Limits& limits = {});

/// The first thing that two streams' headers say differently about how they are coded, "GOPs of 33 frames and of 17";
/// empty when there is none. Length, settings, writer and, unless `gop_frames`, the most frames of a GOP do not count.
std::string header_difference(const StreamHeader& a, const StreamHeader& b, bool gop_frames);

}  // namespace trivelet
