// The table of readers and writers: one function per format. Internal to io; io.cpp chooses among them.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "io/video/video_io.h"
#include "io/source.h"

namespace trivelet::io {

using Source = std::unique_ptr<ByteSource>;
using Reader = std::unique_ptr<FrameReader>;
using Writer = std::unique_ptr<FrameWriter>;

/// True when the input begins with the signature of Y4M.
bool is_y4m(ByteSource& source);
/// The pixel format a Y4M header announces; consumes nothing. Throws BadStream like the reader.
PixelFormat peek_y4m_format(ByteSource& source);
Reader make_y4m_reader(Source source, const ReaderOptions& options);
Writer make_y4m_writer(const std::string& path, const VideoInfo& info, const WriterOptions& options);

Reader make_raw_reader(Source source, const ReaderOptions& options);
Writer make_raw_writer(const std::string& path, const VideoInfo& info, const WriterOptions& options);

/// True when the input begins like a binary PGM or PPM.
bool is_pnm(ByteSource& source);
Reader make_pnm_reader(Source source, const ReaderOptions& options);
Writer make_pnm_writer(const std::string& path, const VideoInfo& info, const WriterOptions& options);

Writer make_null_writer(const VideoInfo& info);
/// Writes the digest to `path` too unless that is "", "-" or "md5".
Writer make_md5_writer(const std::string& path, const VideoInfo& info, const WriterOptions& options);

}  // namespace trivelet::io
