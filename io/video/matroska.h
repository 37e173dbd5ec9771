// Trivelet streams in Matroska, beside sound, subtitles and chapters.
//
// The video track is V_MS/VFW/FOURCC with the FourCC "TRVL". After the BITMAPINFOHEADER of that codec, its CodecPrivate
// holds the stream up to the first GOP: signature, header and the boxes after it. A packet holds the box of a GOP. A
// closed GOP (a key packet) has the same bytes as CodecPrivate before the box, so that players can start there. The
// last packet holds index and end. So CodecPrivate and the packets in order, without these repetitions, are the stream
// byte for byte: nothing is lost by putting a stream into Matroska and taking it out again.
//
// Reading needs only this file: packets are found by their headers, and the stream is read in place. libavformat does
// the writing (ffmpeg_matroska.cpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "io/source.h"
#include "io/video/side_streams.h"
#include "trivelet/plan.h"
#include "trivelet/streams.h"

namespace trivelet::io {

/// True if a regular file is a Matroska file with such a track. False for files that cannot be read.
bool holds_stream(const std::string& path);

/// The same for the beginning of a file; nothing if more bytes are needed.
std::optional<bool> begins_with_stream(const std::uint8_t* data, std::size_t size);

/// The number of bytes that a regular file lacks at its end, by its own headers; 0 for complete files, and for those
/// without such headers. Works for Matroska, MP4, MOV and AVI.
std::uint64_t bytes_missing_at_end(const InputBytes& file);

/// True if it is an MP4 or MOV file that lacks them in its last box of samples alone, and has all that says where
/// samples are: then what it lacks may be in no sample.
bool lacks_samples_alone(const InputBytes& file);

/// The stream of the first such track, as if it were in a separate file. From a damaged file, as much as can be found;
/// truncated parts are missing.
class MatroskaSource final : public ByteSource {
 public:
  /// Throws BadStream for other files and for packets of different streams, Unsupported for tracks that are laced,
  /// compressed or encrypted.
  explicit MatroskaSource(const std::string& path);
  std::size_t read(void* data, std::size_t size) override;
  bool seekable() const override { return true; }
  void seek(std::uint64_t position) override { position_ = position; }
  std::uint64_t size() const override { return size_; }

  /// To be added to times of the file to get those of the frames in the stream, in microseconds. Muxers shift all
  /// tracks together, which the times in the frames do not show.
  std::int64_t clock_offset_us() const;
  const SideStreams& side_streams() const { return side_streams_; }

  /// Where bytes of the stream are in the file; those before the first GOP are in the description of the tracks.
  std::vector<ByteRange> places(std::uint64_t begin, std::uint64_t bytes) const;
  /// The ranges of the file that were read to find the packets.
  const std::vector<ByteRange>& structure() const { return structure_; }

 private:
  struct Piece {
    std::uint64_t begin = 0;  ///< in the stream
    std::uint64_t at = 0;     ///< in the file
    std::uint64_t bytes = 0;
  };
  class Parser;

  void add(std::uint64_t at, std::uint64_t bytes);

  InputBytes file_;
  std::vector<std::uint8_t> head_;  ///< of the stream, before the first packet
  std::vector<Piece> pieces_;
  std::vector<ByteRange> structure_;
  std::int64_t first_block_ns_ = 0;
  std::uint64_t tick_ns_ = 1'000'000;
  SideStreams side_streams_;
  std::uint64_t size_ = 0;
  std::uint64_t position_ = 0;
};

/// The same from a pipe, in order, for a file whose tracks are described before their packets. After damaged elements
/// the next cluster is searched.
class MatroskaPipe final : public ByteSource {
 public:
  /// Waits for the description of the tracks. Throws as MatroskaSource does; so does read().
  explicit MatroskaPipe(const std::string& path);
  ~MatroskaPipe() override;
  std::size_t read(void* data, std::size_t size) override;
  bool seekable() const override { return false; }
  void seek(std::uint64_t position) override;
  std::uint64_t size() const override { return 0; }
  /// What was there until now.
  const SideStreams& side_streams() const { return side_streams_; }

 private:
  class State;

  bool next_packet();
  void find_cluster();
  void tracks(std::uint64_t length);
  bool block(std::uint64_t length);

  InputBytes file_;
  std::unique_ptr<State> walk_;  ///< where it is
  std::vector<std::uint8_t> head_;
  std::size_t head_read_ = 0;
  std::uint64_t track_ = 0;  ///< its number; 0: not yet seen
  std::uint64_t left_ = 0;   ///< of the packet that is being read
  SideStreams side_streams_;
};

/// Where a stream is written to.
class StreamOutput : public ByteSink {
 public:
  /// Completes the file under its temporary name, after the last write. If it was not called, commit() does it.
  virtual void finish() = 0;
  /// Gives it its name.
  virtual void commit() = 0;
  /// Empty for standard output, devices and pipes.
  virtual const std::string& temporary_path() const = 0;
  /// Reads back and rewrites what was written; null if that is not possible.
  virtual FileSink* file() { return nullptr; }
  /// After finish(): reads the sound of the finished file again and compares it with what was written. Returns the
  /// number of tracks. Throws Mismatch.
  virtual int verify_sound() const { return 0; }
  /// What could not be taken over from the other file, a sentence each. Complete after finish().
  virtual std::vector<std::string> remarks() const = 0;
};

/// Writes a stream into Matroska. Its header must not promise a number of frames that it does not have.
std::unique_ptr<StreamOutput> make_matroska_output(const std::string& path, bool overwrite,
                                                   const SideStreamOptions& side_streams);

}  // namespace trivelet::io
