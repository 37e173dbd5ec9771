// Readers and writers of video: files, pipes, raw planes. Data flows frame by frame into and out of Gop buffers.
//
//   auto in = open_reader("clip.mkv", {});
//   Gop gop(in->info(), 32);
//   while (read_gop(*in, gop)) …
//
// Formats: Y4M, PGM/PPM and raw planar always; everything FFmpeg reads, and .mkv/.mp4/… writing, when built with
// FFmpeg; "null" (counts frames), "md5" (prints the MD5 of the raw little-endian planar samples) and "framemd5" (of
// every frame) as writers. A path of "-" is standard input or output. Errors are trivelet::Error: Io for the operating
// system, BadStream for damaged input, Unsupported for formats this build lacks. Objects are not thread safe; use one
// per thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "io/video/side_streams.h"
#include "trivelet/device_pictures.h"
#include "trivelet/limits.h"
#include "trivelet/metadata.h"
#include "trivelet/streams.h"
#include "trivelet/types.h"

namespace trivelet::io {

/// The input is neither film nor picture: FFmpeg finds no pictures in it (a sound), or does not know it, and its name
/// is none of a film or picture either (a text).
class NoPictures : public Error {
 public:
  using Error::Error;
};

class FrameReader {
 public:
  virtual ~FrameReader() = default;
  virtual const VideoInfo& info() const = 0;
  /// Reads the next frame into frame `index` of `gop` (all components, and times()[index]). False at the end of input.
  virtual bool read(Gop& gop, int index) = 0;
  /// Reads up to `count` frames into those from `first` on; returns how many, fewer only at the end of input. Files of
  /// raw frames are read by several threads.
  virtual int read_frames(Gop& gop, int first, int count);
  /// Skips the frames that begin earlier than this many seconds after the first; returns their number. Must be called
  /// before anything is read. The default counts by the frame rate.
  virtual std::uint64_t skip_before(double seconds);
  /// The time of the first frame, in units of the time base.
  virtual std::int64_t begin_pts() const { return 0; }
  /// Whether any frame can be found without reading those before it: files of raw frames.
  virtual bool can_look() const { return false; }
  /// As read_frames(), but only rows `row`, `row + step`, … of the first component; available if can_look() is true.
  virtual int look(Gop& gop, int first, int count, int row, int step);
  /// Stretches that decode independently, each beginning with a key frame, for files in which FFmpeg finds them. 0:
  /// unknown.
  virtual std::size_t stretches() { return 0; }
  /// The next frame is the first one of a stretch, and the end is the end of the stretch.
  virtual void go_to(std::size_t stretch);
  /// Returns the last `count` frames: they are read next. False, and no change, if that is not possible.
  virtual bool unread(int count);
  /// Skips `count` frames without delivering them; returns how many there were. The default reads and drops.
  virtual std::uint64_t skip(std::uint64_t count);
  /// What FORMAT.md has boxes for: of HDR pictures the display they were mastered on, and their light level; chapters
  /// and tags.
  virtual Metadata metadata() const { return {}; }
  /// With ReaderOptions::recover: why it ended before its end, or began behind its beginning; "" if it did not.
  virtual std::string damage() const { return {}; }
  /// Warnings about the input so far, a sentence each.
  virtual std::vector<std::string> remarks() const { return {}; }
  /// With ReaderOptions::recover: the number of bytes that the input lacks at its end, by its own headers.
  virtual std::uint64_t missing_bytes() const { return 0; }
  /// Its duration, if the input has it; 0 = unknown.
  virtual double seconds() const { return 0; }
  /// The side streams of the input.
  virtual SideStreams side_streams() const { return {}; }
  /// Whether a GPU decodes it.
  virtual bool on_device() const { return false; }
};

/// Whether the video engine of a GPU decodes for FFmpeg. It conceals damage in pictures without reporting it.
enum class DeviceDecoding : std::uint8_t { kNever, kWherePossible, kAlways };

struct ReaderOptions {
  std::string format{};        ///< "" = by content and name; "y4m", "pnm", "raw", "ffmpeg", or a name FFmpeg knows
  int width = 0;               ///< raw only
  int height = 0;              ///< raw only
  std::string pixel_format{};  ///< raw: required. Elsewhere converts to this format (FFmpeg's swscale) when it differs
  Rational frame_rate{0, 1};   ///< raw: default 25/1. Elsewhere overrides the file's when non-zero
  int threads = 0;             ///< threads of the decoder, or of the reader of raw frames; 0 = all cores
  /// Playlists may name further files to read. If not set, the author of an input cannot have other files of the user
  /// coded into the stream.
  bool allow_outside = false;
  /// Of a damaged or cut file take the frames before the damage, as far as they decode; if there are none, those behind
  /// it, from a key frame up to further damage (FFmpeg's readers).
  bool recover = false;
  std::string stream{};  ///< FFmpeg's specifier of the video track: "v:1", "3"; "" = the best
  DeviceDecoding device_decoding = DeviceDecoding::kNever;
  std::shared_ptr<DevicePictures> pictures{};  ///< on the GPU that is to decode
  /// Decoders that run at once, each on a stretch between key frames, if the file has an index of them.
  int decoders = 1;
  Limits limits{};  ///< samples, memory of a frame; frames, if the input has their number. Throws Unsupported
};

/// Opens a file or "-" for reading. Content decides (Y4M and PGM/PPM signatures, then FFmpeg). Raw is used only if it
/// is named as format, or by the extensions .yuv, .raw, .rgb, .gray. A name with a number pattern ("frames/%03d.png")
/// is a sequence of pictures, and so is a folder.
std::unique_ptr<FrameReader> open_reader(const std::string& path, const ReaderOptions& options);

/// Fills `gop` with up to gop.capacity() frames; sets gop.frames(). False when not a single frame was left.
bool read_gop(FrameReader& reader, Gop& gop);

class FrameWriter {
 public:
  virtual ~FrameWriter() = default;
  /// Writes frame `index` of `gop`.
  virtual void write(const Gop& gop, int index) = 0;
  /// Writes all frames of `gop`; raw frames into a file by several threads.
  virtual void write_frames(const Gop& gop);
  /// After the last frame: writes the remaining data and frees memory, so that finish() only gives the name. For the
  /// many files of a sequence.
  virtual void complete() {}
  /// Flushes, closes and renames the temporary file to its final name. Without this call the destructor removes the
  /// temporary file.
  virtual void finish() = 0;
  /// A result to print at the end: the digest of "md5", otherwise empty.
  virtual std::string result() const { return {}; }
  /// What could not be taken over, a sentence each. Complete after finish().
  virtual std::vector<std::string> remarks() const { return {}; }
};

struct WriterOptions {
  std::string format{};  ///< "" = by extension; "y4m", "pnm", "raw", "null", "md5", "framemd5", or FFmpeg's name
  std::string
      pixel_format{};  ///< samples_of() it, by swscale; "auto": the format of the output that loses least; "" = never
  bool overwrite = false;     ///< replace an existing file
  std::string video_codec{};  ///< FFmpeg only: "" = ffv1 for .mkv/.avi/.nut, libx264 for .mp4/.mov
  /// FFmpeg only: options of the video codec by FFmpeg's names. Throws BadArgument for those that it does not have.
  std::vector<std::pair<std::string, std::string>> codec_options{};
  int crf = -1;  ///< constant rate factor of codecs that have one; -1 = 18 for libx264, otherwise the codec's default
  int threads = 0;
  /// Write frames at the frame rate, each as often as it lasts, so that formats without times last as long as the
  /// video.
  bool constant_rate = false;
  Metadata metadata{};               ///< FFmpeg only, and only the HDR metadata
  SideStreamOptions side_streams{};  ///< FFmpeg only; other formats hold nothing but pictures
};

/// Opens a destination for frames of `info`. `path` may be "-", "null" and "md5" (also as `format`; md5 with a file
/// name writes the digest there). A number pattern in the name of a picture ("out/%04d.png") gives a file for each
/// frame, from 1 on. Throws Unsupported if the format cannot hold such frames; the message names formats that can.
std::unique_ptr<FrameWriter> open_writer(const std::string& path, const VideoInfo& info, const WriterOptions& options);

/// The samples of a pixel format: parse_pixel_format(), also for packed ones (rgb24, bgra, rgb48 …). Raw bytes have
/// their order, and only those; frames have planes.
PixelFormat samples_of(const std::string& pixel_format);

/// The default format for standard output: "y4m", or "matroska" if Y4M has no name for the samples.
std::string pipe_format(const VideoInfo& info);
/// Whether a format keeps the times of frames, and the rotation, by its name or extension.
bool holds_times(const std::string& path, const std::string& format);
bool holds_rotation(const std::string& path, const std::string& format);
/// Whether the format needs no FFmpeg: samples as they are, digests, nothing.
bool is_plain(const std::string& path, const std::string& format);
/// Whether files of the format can hold more than pictures, by its name or extension.
bool holds_side_streams(const std::string& path, const std::string& format);

/// Extensions and formats this build can write, for messages and --help.
std::string supported_writers();
/// True when the build has FFmpeg.
bool have_ffmpeg();

}  // namespace trivelet::io
