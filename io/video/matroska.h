// Trivelet streams in Matroska, which has room for sound, subtitles and chapters beside them.
//
// The video track is V_MS/VFW/FOURCC with the FourCC "TRVL". Its CodecPrivate holds, behind the BITMAPINFOHEADER of
// that codec, the stream up to the first GOP: signature, header and the boxes behind it. A packet holds the box of a
// GOP, and before the box, where the GOP decodes alone (then it is a key packet), the same bytes as CodecPrivate once
// more, so that players can begin there. The last packet holds index and end. So the packets in their order, without
// these repetitions and behind CodecPrivate, are the stream byte for byte: putting a stream into Matroska and taking it
// out again loses nothing.
//
// Reading needs nothing but this file: positions of packets are found by their headers, and the stream is read where it
// lies. Writing is libavformat's (ffmpeg_matroska.cpp).
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

/// Whether a regular file is a Matroska file with such a track. False for what cannot be read.
bool holds_stream(const std::string& path);

/// The same of the beginning of a file; nothing where more of it would tell.
std::optional<bool> begins_with_stream(const std::uint8_t* data, std::size_t size);

/// How many bytes a regular file lacks at its end by what it says of itself; 0 for whole ones, and for those that do
/// not say. Known are Matroska, MP4 and MOV, AVI.
std::uint64_t bytes_missing_at_end(const InputBytes& file);

/// The stream of the first such track, as if it lay in a file of its own. Of a damaged file what can be found; what is
/// cut away of a stream is missing in it.
class MatroskaSource final : public ByteSource {
 public:
  /// Throws BadStream for files that are something else or whose packets belong to different streams, Unsupported for
  /// tracks that are laced, compressed or encrypted.
  explicit MatroskaSource(const std::string& path);
  std::size_t read(void* data, std::size_t size) override;
  bool seekable() const override { return true; }
  void seek(std::uint64_t position) override { position_ = position; }
  std::uint64_t size() const override { return size_; }

  /// What to add to times of the file to come to those of the frames in the stream, in microseconds. Muxers shift all
  /// tracks together, of which the frames know nothing.
  std::int64_t clock_offset_us() const;
  const SideStreams& side_streams() const { return side_streams_; }

  /// Where bytes of the stream are in the file; those before the first GOP are where its tracks are described.
  std::vector<ByteRange> places(std::uint64_t begin, std::uint64_t bytes) const;
  /// What was read of the file to find the packets.
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

/// The same from a pipe, in order: of a file whose tracks are described before their packets. Behind damaged elements
/// the next cluster is looked for.
class MatroskaPipe final : public ByteSource {
 public:
  /// Waits for the description of the tracks. Throws as MatroskaSource does; read() does, too.
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
  /// Completes the file under its temporary name, after the last write; commit() does it where it was not done.
  virtual void finish() = 0;
  /// Gives it its name.
  virtual void commit() = 0;
  /// Empty for standard output, devices and pipes.
  virtual const std::string& temporary_path() const = 0;
  /// Where what was written can be written again; null if nowhere.
  virtual FileSink* file() { return nullptr; }
  /// What of the other file could not be taken over, a sentence each. Complete after finish().
  virtual std::vector<std::string> remarks() const = 0;
};

/// Writes a stream into Matroska. Its header must not promise a number of frames that it does not have.
std::unique_ptr<StreamOutput> make_matroska_output(const std::string& path, bool overwrite,
                                                   const SideStreamOptions& side_streams);

}  // namespace trivelet::io
