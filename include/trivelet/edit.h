// Operations on finished streams without decoding: rewrite makes smaller streams, join concatenates streams, and verify
// checks a stream against its checksums and hashes. See FORMAT.md "Layers" and "Extracts".
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
// All functions throw Error. Sources must be seekable, except for StreamVerifier. The caller keeps ownership of
// everything.
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
/// pixels, a lower frame rate, or fewer GOPs.
struct RewriteParams {
  // The target; at most one is set.
  std::uint64_t target_bytes = 0;  ///< of the new stream, never exceeded; 0 = no target
  double bits_per_pixel = 0;       ///< bits per pixel of the new stream's pictures, never exceeded; 0 = no target
  double bit_rate = 0;             ///< bits per second, never exceeded; 0 = no target
  /// Least PSNR in dB, as the index predicts it; for volumes as measured, if the stream tells.
  double psnr = 0;
  int layers = 0;  ///< the most whole layers; 0 = all

  // What is left out.
  int reduce = 0;           ///< number of finest spatial levels to drop
  int temporal_reduce = 0;  ///< number of finest temporal levels to drop (t+2D)
  /// GOPs without a frame in [first_frame, end_frame) are dropped, except earlier ones that open GOPs depend on.
  std::uint64_t first_frame = 0;
  std::uint64_t end_frame = std::numeric_limits<std::uint64_t>::max();  ///< one past the last frame to keep

  Limits limits{};  ///< throws Unsupported for streams that would exceed them
  /// Drops damaged GOPs and the open ones that follow, and reports them in the result. False: throws BadStream.
  bool keep_partial = false;
};

/// The outcome of rewrite().
struct RewriteResult {
  std::uint64_t bytes = 0;          ///< size of the new stream
  std::uint64_t gops = 0;           ///< in the new stream
  std::uint64_t frames = 0;         ///< frames of the source in the new stream
  std::uint64_t first_frame = 0;    ///< number, in the source, of the new stream's first frame
  double mean_squared_error = -1;   ///< predicted; negative when unknown
  int layers = 0;                   ///< whole layers kept
  bool part_of_next = false;        ///< a part of the next layer was kept too
  VolumeCuts cuts{};                ///< of volumes: what the source knows of its layers; may be empty
  int bits = 0;                     ///< bits per sample
  std::string index_damage;         ///< of the source, as in StreamInfo
  std::vector<std::string> damage;  ///< with keep_partial: what was dropped and why, at most 100 lines
};

/// Writes a smaller stream. Throws BadArgument when the target is smaller than the stream's headers, or when a PSNR is
/// asked for and the index has no errors. Throws BadStream when the source is damaged where it is needed; an unfinished
/// source is damaged after its last frame, so an earlier range of frames still works. A lost index is rebuilt. `again`
/// reads the sink back to write a front table (FORMAT.md). The new stream has none without `again`, or if it would take
/// more than 1/16 of the target or of the whole layers.
RewriteResult rewrite(ByteSource& source, const RewriteParams& params, ByteSink& sink, ReadBack* again = nullptr);

/// A stream to join.
struct JoinInput {
  std::string name;              ///< for messages
  ByteSource* source = nullptr;  ///< the stream
};

/// The outcome of join().
struct JoinResult {
  std::uint64_t bytes = 0;   ///< size of the joined stream
  std::uint64_t gops = 0;    ///< in the joined stream
  std::uint64_t frames = 0;  ///< in the joined stream
  /// For each input, as in StreamInfo: such a stream's layer errors are unknown.
  std::vector<std::string> index_damage;
};

/// Concatenates streams that were encoded alike. GOPs are renumbered, indexes are merged, and all other bytes are
/// copied. Header, boxes and settings are those of the first stream. If a stream does not begin where the one before
/// ends, or later, its times are shifted to that point. All copied bytes are checked. Throws BadStream for damaged and
/// unfinished streams (a lost index is rebuilt), BadArgument for streams that differ in more than their length (the
/// message names the difference), and Unsupported for volumes and beyond the limits for frames in all or samples of a
/// GOP. Sources are read one after the other, chunk by chunk. `again` reads the sink back; with it the result has a
/// front table if the first stream has one.
JoinResult join(std::span<const JoinInput> inputs, ByteSink& sink, const Limits& limits = {},
                ReadBack* again = nullptr);

/// Where the frames of one input lie in the joined stream, in units of its time base.
struct JoinPlace {
  std::int64_t begin_pts = 0;  ///< of its first frame
  std::int64_t end_pts = 0;    ///< end of its last frame
  std::int64_t shift_pts = 0;  ///< added to the times of its frames
  bool empty = true;           ///< no frames: the times are 0
};

/// The times in a joined stream.
struct JoinPlaces {
  std::vector<JoinPlace> of;  ///< one entry for each input
  Rational time_base;         ///< unit of the times
};

/// Computes what join() will do to times, and throws what join() throws for streams that do not fit. Sources are
/// rewound.
JoinPlaces join_places(std::span<const JoinInput> inputs, const Limits& limits = {});

/// The outcome of verification.
struct VerifyResult {
  std::uint64_t frames = 0;        ///< decoded frames
  std::uint64_t gops = 0;          ///< in the stream
  std::uint64_t damaged_gops = 0;  ///< of these, the damaged ones
  /// What is damaged and where, a line each, at most about a hundred; empty: intact.
  std::vector<std::string> damage;
};

/// A decoder that also checks the rest of the stream: every checksum and hash, the order of boxes, the index against
/// the packets, and the end. Pull all GOPs, then call finish(). One thread uses it.
class StreamVerifier {
 public:
  /// Always collects damage, whatever `params.keep_partial` says; selections and reductions are not allowed. The source
  /// may be a pipe. Source and backend must outlive this. Throws what Decoder throws.
  StreamVerifier(ByteSource& source, DecoderParams params, const Backend* backend = nullptr);
  ~StreamVerifier();
  /// As Decoder::info().
  const StreamInfo& info() const;
  /// As Decoder::output().
  const VideoInfo& output() const;
  /// As Decoder::make_gop().
  Gop make_gop() const;
  /// Decodes the next GOP; false at the end.
  bool pull(Gop& gop);
  /// What was found in the whole stream.
  VerifyResult finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Decodes the whole stream with a StreamVerifier.
VerifyResult verify_stream(ByteSource& source, const DecoderParams& params, const Backend* backend = nullptr);

/// A stream that is checked while it is read from its beginning to its end: what StreamVerifier checks, but for the
/// hashes of decoded samples. It passes on the bytes of its source, damaged ones, too. One thread uses it.
class CheckedSource final : public ByteSource {
 public:
  /// `source` must outlive this and hold a stream, as probe() finds.
  explicit CheckedSource(ByteSource& source);
  ~CheckedSource() override;
  std::size_t read(void* data, std::size_t size) override;
  bool seekable() const override;
  /// Throws Internal; so does size().
  void seek(std::uint64_t position) override;
  std::uint64_t size() const override;
  /// After the last read(): what is damaged and where, as in VerifyResult.
  std::vector<std::string> finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Checks the boxes of a seekable stream, without decoding or reading chunks; one line for each fault.
std::vector<std::string> check_boxes(ByteSource& source);

}  // namespace trivelet
