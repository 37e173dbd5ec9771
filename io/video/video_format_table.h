// The table of video formats that need no FFmpeg (video_format_table.cpp), and the readers and writers in it, one
// function per format. Internal to io, but for is_sgi(). A new format is a file with these functions and a row of the
// table.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "io/source.h"
#include "io/video/video_io.h"

namespace trivelet::io {

using Source = std::unique_ptr<InputBytes>;
using Reader = std::unique_ptr<FrameReader>;
using Writer = std::unique_ptr<FrameWriter>;

struct InputFormat {
  std::string_view names;       ///< the name, then its synonyms, between spaces
  std::string_view extensions;  ///< if content does not decide
  bool takes_size;              ///< ReaderOptions::width and height
  bool (*begins_like)(InputBytes&);
  /// False: FFmpeg reads it, by this demuxer ("" = it looks for itself), since the options ask for another pixel
  /// format.
  bool (*can_read)(InputBytes&, const ReaderOptions&);
  std::string_view demuxer;
  Reader (*open)(Source, const ReaderOptions&);
};
/// By name, or by content and extension. Null: FFmpeg reads or writes it.
const InputFormat* input_format(std::string_view name);
const InputFormat* input_format(InputBytes& source, std::string_view extension);

struct OutputFormat {
  std::string_view names;
  std::string_view extensions;
  bool (*holds)(const VideoInfo&);  ///< such samples; null: all
  Writer (*open)(const std::string& path, const VideoInfo&, const WriterOptions&);

  std::string_view name() const { return names.substr(0, names.find(' ')); }
};
const OutputFormat* output_format(std::string_view name);
const OutputFormat* output_format_of_extension(std::string_view extension);

/// True when the input begins with the signature of Y4M.
bool is_y4m(InputBytes& source);
/// The pixel format a Y4M header announces; consumes nothing. Throws BadStream like the reader.
PixelFormat peek_y4m_format(InputBytes& source);
/// Whether Y4M has a name for such samples.
bool y4m_holds(const VideoInfo& info);
Reader make_y4m_reader(Source source, const ReaderOptions& options);
Writer make_y4m_writer(const std::string& path, const VideoInfo& info, const WriterOptions& options);

Reader make_raw_reader(Source source, const ReaderOptions& options);
Writer make_raw_writer(const std::string& path, const VideoInfo& info, const WriterOptions& options);

/// True when the input begins like a binary PGM or PPM.
bool is_pnm(InputBytes& source);
Reader make_pnm_reader(Source source, const ReaderOptions& options);
bool pnm_holds(const VideoInfo& info);
Writer make_pnm_writer(const std::string& path, const VideoInfo& info, const WriterOptions& options);

Writer make_null_writer(const std::string& path, const VideoInfo& info, const WriterOptions& options);
/// Writes the digest to `path` too unless that is "", "-" or "md5".
Writer make_md5_writer(const std::string& path, const VideoInfo& info, const WriterOptions& options);
/// The same of each frame, with its time, in lines; to standard output if `path` is "", "-" or "framemd5".
Writer make_framemd5_writer(const std::string& path, const VideoInfo& info, const WriterOptions& options);

/// A picture of Silicon Graphics, whose files may be called .rgb as raw frames are.
bool is_sgi(InputBytes& source);

}  // namespace trivelet::io
