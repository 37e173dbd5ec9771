// Finished streams without decoding them: smaller ones (rewrite), several in one (join), and whether they are what
// their writer made (verify). FORMAT.md "Layers", "Extracts".
//
//   FileSource source("film.tvl");
//   FileSink small("small.tvl");
//   rewrite(source, {.target_bytes = 10'000'000, .reduce = 1}, small);
//   small.commit();
//
//   const JoinInput parts[] = {{"a.tvl", &a}, {"b.tvl", &b}};
//   join(parts, whole);
//
//   for (const std::string& line : verify_stream(source, {}).damage) report(line);
//
// All functions throw Error. Sources have to be seekable, but for StreamVerifier. None of them keeps what it is given.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "trivelet/codec.h"
#include "trivelet/limits.h"
#include "trivelet/streams.h"
#include "trivelet/volume.h"

namespace trivelet {

/// What a smaller stream keeps: fewer bytes (whole layers that fit, then parts of the next one, coarse to fine), fewer
/// pixels, frames a second, or GOPs.
struct RewriteParams {
  // The target; at most one is set.
  std::uint64_t target_bytes = 0;  ///< of the new stream, never exceeded; 0 = no target
  double bits_per_pixel = 0;       ///< of the pictures that the new stream delivers, never exceeded; 0 = no target
  double bit_rate = 0;             ///< bits per second, never exceeded; 0 = no target
  double psnr = 0;                 ///< at least: predicted by the index, of volumes measured if the stream tells it
  int layers = 0;                  ///< whole layers, so many at most; 0 = all

  // What is left out.
  int reduce = 0;           ///< finest spatial levels
  int temporal_reduce = 0;  ///< finest temporal levels (t+2D)
  /// GOPs without a frame in [first_frame, end_frame) are left out, but for earlier ones that open GOPs depend on.
  std::uint64_t first_frame = 0;
  std::uint64_t end_frame = std::numeric_limits<std::uint64_t>::max();  ///< behind the last frame that is kept

  Limits limits{};  ///< refuses what would cost more: throws Unsupported
  /// Leaves out damaged GOPs and the open ones behind them, and reports it in the result. False: throws BadStream.
  bool keep_partial = false;
};

/// What a smaller stream came to.
struct RewriteResult {
  std::uint64_t bytes = 0;          ///< of the new stream
  std::uint64_t gops = 0;           ///< in it
  std::uint64_t frames = 0;         ///< of the source that are in it
  std::uint64_t first_frame = 0;    ///< of the source, where the new stream begins
  double mean_squared_error = -1;   ///< predicted; negative when not known
  int layers = 0;                   ///< whole ones that were kept
  bool part_of_next = false;        ///< something of the next layer was kept too
  VolumeCuts cuts{};                ///< of volumes: what the source knows of its layers; empty when nothing
  int bits = 0;                     ///< of a sample
  std::string index_damage;         ///< of the source, as in StreamInfo
  std::vector<std::string> damage;  ///< with keep_partial: what was left out and why, at most 100 lines
};

/// Writes a smaller stream. Throws BadArgument when the target is smaller than the headers of the stream or, for a
/// PSNR, the index has no errors; BadStream when the source is damaged where it is needed: an unfinished one lacks what
/// comes after its last frame, so that only ranges of frames before that are intact. A lost index is rebuilt. `again`:
/// what went into the sink, to make its front table (FORMAT.md). Without it, or where the table would take more than
/// 1/16 of the bytes that there may be or of those of the whole layers, the new stream has none.
RewriteResult rewrite(ByteSource& source, const RewriteParams& params, ByteSink& sink, ReadBack* again = nullptr);

/// A stream to join.
struct JoinInput {
  std::string name;              ///< in messages
  ByteSource* source = nullptr;  ///< the stream
};

/// What joining came to.
struct JoinResult {
  std::uint64_t bytes = 0;   ///< of the whole
  std::uint64_t gops = 0;    ///< in it
  std::uint64_t frames = 0;  ///< in it
  /// Of each stream, as in StreamInfo: errors of its layers are not known.
  std::vector<std::string> index_damage;
};

/// Makes one stream of several that were encoded alike, one after the other in time: GOPs get new numbers, the indexes
/// are merged, all other bytes are copied. Header, boxes behind it and settings are those of the first stream. Times of
/// a stream that does not begin where the one before ends, or later, are shifted to that. All that is copied is
/// checked: BadStream for damaged and unfinished streams (a lost index is rebuilt), BadArgument for streams that differ
/// in more than their length (the message names it), Unsupported for volumes and for more frames than the limits allow
/// in all, or samples in a GOP. Sources are read one after the other, a chunk at a time. `again`: what went into the
/// sink; with it the whole gets a front table if the first stream has one.
JoinResult join(std::span<const JoinInput> inputs, ByteSink& sink, const Limits& limits = {},
                ReadBack* again = nullptr);

/// Where the frames of a stream come to stand in the whole, in units of its time.
struct JoinPlace {
  std::int64_t begin_pts = 0;  ///< of its first frame
  std::int64_t end_pts = 0;    ///< where its last frame ends
  std::int64_t shift_pts = 0;  ///< added to the times that its frames have
  bool empty = true;           ///< no frames: the times are 0
};

/// What join() does to times.
struct JoinPlaces {
  std::vector<JoinPlace> of;  ///< each stream
  Rational time_base;         ///< unit of the times
};

/// What join() will do to times. Throws what it throws for streams that do not fit. Sources are left at their
/// beginnings.
JoinPlaces join_places(std::span<const JoinInput> inputs, const Limits& limits = {});

/// What verifying found.
struct VerifyResult {
  std::uint64_t frames = 0;         ///< that were decoded
  std::uint64_t gops = 0;           ///< in the stream
  std::uint64_t damaged_gops = 0;   ///< of them
  std::vector<std::string> damage;  ///< what and where, a line each, about a hundred at most; empty: intact
};

/// A decoder that checks everything else in the stream, too: every checksum and hash, the order of the boxes, the index
/// against the packets, and the end. Pull all GOPs, then finish(). One thread uses it.
class StreamVerifier {
 public:
  /// Damage is collected, so `params.keep_partial` does not matter; nothing may be selected or reduced. The source may
  /// be a pipe; it and the backend outlive this. Throws what Decoder throws.
  StreamVerifier(ByteSource& source, DecoderParams params, const Backend* backend = nullptr);
  ~StreamVerifier();
  /// As of Decoder.
  const StreamInfo& info() const;
  /// As of Decoder.
  const VideoInfo& output() const;
  /// As of Decoder: a Gop for pull().
  Gop make_gop() const;
  /// Decodes the next GOP; false at the end.
  bool pull(Gop& gop);
  /// What was found in all of the stream.
  VerifyResult finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Decodes the whole stream with a StreamVerifier.
VerifyResult verify_stream(ByteSource& source, const DecoderParams& params, const Backend* backend = nullptr);

/// What is wrong with the boxes of a seekable stream: without decoding, and without reading chunks.
std::vector<std::string> check_boxes(ByteSource& source);

}  // namespace trivelet
