// Smaller streams out of finished ones, without decoding a coefficient: fewer bytes (truncation), fewer pixels, frames
// a second or GOPs (extraction). FORMAT.md "Layers", "Extracts".
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "codec/volume/volume_cuts.h"
#include "trivelet/limits.h"
#include "trivelet/streams.h"

namespace trivelet {

class ReadBack;  // trivelet/volume.h

struct RewriteParams {
  // What to reach; at most one. The whole layers that fit, then the parts of the next one, coarse to fine.
  std::uint64_t target_bytes = 0;  ///< of the new stream, never exceeded; 0 = no target
  double bits_per_pixel = 0;       ///< likewise, of the pictures the new stream delivers
  double bit_rate = 0;             ///< likewise, bits per second
  double psnr = 0;                 ///< predicted by the index, at least; of volumes measured, where the stream tells
  int layers = 0;                  ///< whole layers, so many at most; 0 = all

  // What to leave out.
  int reduce = 0;           ///< finest spatial levels
  int temporal_reduce = 0;  ///< finest temporal levels (t+2D)
  /// GOPs without a frame in [first_frame, end_frame) are left out, but for those before them that open ones need.
  std::uint64_t first_frame = 0;
  std::uint64_t end_frame = std::numeric_limits<std::uint64_t>::max();

  Limits limits{};  ///< refuse what would cost more; throws Unsupported
  /// Leave damaged GOPs out, with the open ones behind them, and say so in the result; else throw BadStream.
  bool keep_partial = false;
};

struct RewriteResult {
  std::uint64_t bytes = 0;
  std::uint64_t gops = 0;
  std::uint64_t frames = 0;         ///< of the source that are in the new stream
  std::uint64_t first_frame = 0;    ///< of the source, where the new stream begins
  double mean_squared_error = -1;   ///< predicted; negative when not known
  int layers = 0;                   ///< whole ones that were kept
  bool part_of_next = false;        ///< something of the next layer was kept too
  VolumeCuts cuts{};                ///< of volumes: what the source knows of its layers; empty when nothing
  int bits = 0;                     ///< of a sample
  std::string index_damage;         ///< of the source, as StreamInfo tells it
  std::vector<std::string> damage;  ///< with keep_partial: what was left out and why, at most 100 lines
};

/// Throws BadArgument when the target is smaller than the heads of the stream or, for a PSNR, the index tells no
/// errors; BadStream when the source is damaged where it is needed: an unfinished one lacks whatever comes after its
/// last frame, so that only ranges of frames before that are intact. A lost index is rebuilt. `source` must be
/// seekable. A front table (front_table.h) is made anew with `again`, what went into the sink, and left out without, or
/// where it would take more than 1/16 of the bytes that there may be, or of those of the whole layers.
RewriteResult rewrite(ByteSource& source, const RewriteParams& params, ByteSink& sink, ReadBack* again = nullptr);

}  // namespace trivelet
