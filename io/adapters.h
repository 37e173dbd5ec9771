// What the libraries of other projects do for io. Each is reached through a table of functions, so that a program can
// have it linked (io/adapters.cpp) or load it when it is first needed, as apps/cli/modules.cpp does: FFmpeg alone
// brings a hundred shared libraries, which take the loader longer than many a run.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "io/video/convert.h"
#include "io/video/matroska.h"
#include "io/video/video_format_table.h"

namespace trivelet::io {

struct FfmpegAdapter {
  /// `demuxer`: a name of FFmpeg's, "" = by content. A null source = a sequence of pictures named by `path`.
  Reader (*make_reader)(const std::string& path, Source source, const std::string& demuxer,
                        const ReaderOptions& options);
  /// `muxer`: a name of FFmpeg's or an extension, "" = by the extension of `path`.
  Writer (*make_writer)(const std::string& path, const VideoInfo& info, const std::string& muxer,
                        const WriterOptions& options);
  /// io/video/matroska.h
  std::unique_ptr<StreamOutput> (*make_matroska_output)(const std::string& path, bool overwrite,
                                                        const SideStreamOptions& side_streams);
  /// To the pixel format of `to`, and to full range if that has it. `user` begins messages.
  std::unique_ptr<FrameConverter> (*make_converter)(const std::string& user, const VideoInfo& from,
                                                    const VideoInfo& to);
  /// Of all formats that an output holds the one that loses least; nothing if there is none.
  std::optional<VideoInfo> (*nearest)(const VideoInfo& from, const Holds& holds);
  /// Whether make_writer takes frames of `info` as they are. Throws for outputs that it would refuse for other reasons.
  bool (*output_holds)(const std::string& path, const VideoInfo& info, const std::string& muxer,
                       const WriterOptions& options);
  /// True if make_writer writes files of one picture.
  bool (*writes_picture)(const std::string& path, const std::string& muxer);
};

/// A picture of a DICOM file, as its codestream describes it.
struct DicomFrame {
  std::string coding;  ///< UID of the transfer syntax
  unsigned columns = 0, rows = 0, samples = 1;
  unsigned bits = 8;  ///< 1..32 of a sample
  bool is_signed = false;
  bool is_ybr = false;  ///< the header says that its colours are; they are not converted
};

struct GdcmAdapter {
  /// Decodes the samples of the frame into `pixels`, which has their size: 1, 2 or 4 bytes each, little-endian, packed.
  /// False if GDCM cannot decode them. It may crash: see io/volume/child_process.h.
  bool (*decode)(const DicomFrame& frame, const std::byte* data, std::size_t size, std::vector<std::byte>& pixels);
};

/// Null in builds without the library. `user`: the file that needs it; it begins the message of the Error if it cannot
/// be loaded.
const FfmpegAdapter* ffmpeg_adapter(const std::string& user);
const GdcmAdapter* gdcm_adapter(const std::string& user);

extern "C" const FfmpegAdapter trivelet_ffmpeg;
extern "C" const GdcmAdapter trivelet_gdcm;

}  // namespace trivelet::io
