// Chooses the reader by what the input contains and the writer by format name or extension.
#include "io/video/video_io.h"

#include <unistd.h>

#include "codec/limits.h"
#include "io/adapters.h"
#include "io/video/video_format_table.h"

namespace trivelet::io {

namespace {

/// The extension in lower case without the dot; "" when there is none.
std::string extension_of(const std::string& path) {
  const std::size_t slash = path.find_last_of('/');
  const std::size_t dot = path.find_last_of('.');
  if (dot == std::string::npos || (slash != std::string::npos && dot < slash)) return {};
  std::string extension = path.substr(dot + 1);
  for (char& c : extension)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return extension;
}

/// "frames/%03d.png" names a sequence of pictures unless there is a file of that very name.
bool is_pattern(const std::string& path) {
  return path.find('%') != std::string::npos && ::access(path.c_str(), F_OK) != 0;
}

Reader open_with_ffmpeg(const std::string& path, Source source, const std::string& demuxer,
                        const ReaderOptions& options) {
  const FfmpegAdapter* ffmpeg = ffmpeg_adapter(path);
  require(ffmpeg != nullptr, ErrorKind::kUnsupported,
          path + ": this build has no FFmpeg; readable without it: y4m, pgm, ppm, raw");
  return ffmpeg->make_reader(path, std::move(source), demuxer, options);
}

Writer open_ffmpeg_writer(const std::string& path, const VideoInfo& info, const std::string& muxer,
                          const WriterOptions& options) {
  const FfmpegAdapter* ffmpeg = ffmpeg_adapter(path);
  require(ffmpeg != nullptr, ErrorKind::kUnsupported,
          path + (muxer.empty() ? "" : " (" + muxer + ")") +
              ": this build has no FFmpeg; it can write: " + supported_writers());
  return ffmpeg->make_writer(path, info, muxer, options);
}

}  // namespace

std::uint64_t FrameReader::skip(std::uint64_t count) {
  if (count == 0) return 0;
  Gop gop(info(), 1);
  std::uint64_t done = 0;
  while (done < count && read(gop, 0)) ++done;
  return done;
}

int FrameReader::read_frames(Gop& gop, int first, int count) {
  int done = 0;
  while (done < count && read(gop, first + done)) ++done;
  return done;
}

bool FrameReader::unread(int) { return false; }

void FrameWriter::write_frames(const Gop& gop) {
  for (int i = 0; i < gop.frames(); ++i) write(gop, i);
}

bool read_gop(FrameReader& reader, Gop& gop) {
  gop.set_frames(0);
  gop.set_frames(reader.read_frames(gop, 0, gop.capacity()));
  return gop.frames() > 0;
}

namespace {

std::unique_ptr<FrameReader> open_any(const std::string& path, const ReaderOptions& options) {
  require(options.frame_rate.num >= 0 && options.frame_rate.den > 0, ErrorKind::kBadArgument,
          "the frame rate " + std::to_string(options.frame_rate.num) + "/" + std::to_string(options.frame_rate.den) +
              " is not positive");
  if (is_pattern(path)) return open_with_ffmpeg(path, nullptr, "image2", options);
  auto source = std::make_unique<InputBytes>(path);
  const InputFormat* known =
      options.format.empty() ? input_format(*source, extension_of(path)) : input_format(options.format);
  require((known && known->takes_size) || (options.width == 0 && options.height == 0), ErrorKind::kBadArgument,
          source->name() + ": only raw input (ReaderOptions::format raw) takes a frame size");
  if (known && known->can_read(*source, options)) return known->open(std::move(source), options);
  const std::string demuxer(known ? known->demuxer : options.format == "ffmpeg" ? "" : options.format);
  return open_with_ffmpeg(path, std::move(source), demuxer, options);
}

}  // namespace

std::unique_ptr<FrameReader> open_reader(const std::string& path, const ReaderOptions& options) {
  std::unique_ptr<FrameReader> reader = open_any(path, options);
  const VideoInfo& v = reader->info();
  std::uint64_t samples = 0;
  for (int c = 0; c < v.format.components(); ++c)
    samples += static_cast<std::uint64_t>(v.component_width(c)) * static_cast<std::uint64_t>(v.component_height(c));
  const std::string size = std::to_string(v.width) + "x" + std::to_string(v.height);
  check_limit(samples, options.limits.samples, "samples",
              path + ": frames of " + size + ", " + std::to_string(samples) + " samples");
  check_memory(options.limits, samples * static_cast<unsigned>(v.format.bytes_per_sample()),
               path + ": a frame of " + size);
  check_limit(v.frames, options.limits.frames, "frames", path + ": " + std::to_string(v.frames) + " frames");
  return reader;
}

std::unique_ptr<FrameWriter> open_writer(const std::string& path, const VideoInfo& info, const WriterOptions& options) {
  std::string format = options.format;
  if (format.empty() && (path == "null" || path == "md5")) format = path;
  const OutputFormat* known = format.empty() ? output_format_of_extension(extension_of(path)) : output_format(format);
  require(known || !format.empty() || path != "-", ErrorKind::kBadArgument,
          "standard output has no extension; name a format (WriterOptions::format): " + supported_writers());
  if (!known) return open_ffmpeg_writer(path, info, format, options);
  require(options.video_codec.empty(), ErrorKind::kBadArgument,
          "the format " + std::string(known->name()) + " has no choice of codec (" + options.video_codec + ")");
  return known->open(path, info, options);
}

bool holds_company(const std::string& path, const std::string& format) {
  if (path == "null" || path == "md5") return false;
  return (format.empty() ? output_format_of_extension(extension_of(path)) : output_format(format)) == nullptr;
}

bool holds_times(const std::string& path, const std::string& format) {
  return holds_company(path, format) && (format.empty() ? extension_of(path) : format) != "avi";
}

bool holds_rotation(const std::string& path, const std::string& format) {
  const std::string name = format.empty() ? extension_of(path) : format;
  return name == "mp4" || name == "mov" || name == "m4v";
}

std::string pipe_format(const VideoInfo& info) { return y4m_holds(info) ? "y4m" : "matroska"; }

std::string to_string(const Company& company) {
  std::string text;
  const auto add = [&text](const std::string& what) { text += (text.empty() ? "" : ", ") + what; };
  for (const OtherTrack& track : company.tracks) add(track.kind + " (" + track.codec + ")");
  if (company.chapters) add("chapters");
  if (company.attachments) add("attachments");
  if (company.tags) add("tags");
  return text;
}

std::string supported_writers() {
  const std::string own = "y4m (.y4m), raw (.yuv .raw .rgb .gray), pnm (.pgm .ppm), null, md5";
  return have_ffmpeg() ? own +
                             ", matroska (.mkv), avi, nut with ffv1, mp4 and mov with libx264, png of one frame, "
                             "and other formats of FFmpeg by name or extension"
                       : own;
}

}  // namespace trivelet::io
