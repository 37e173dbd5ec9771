// Chooses the reader by the content of the input and the writer by format name or extension.
#include "io/video/video_io.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <optional>

#include "codec/base/frame_times.h"
#include "codec/base/limits.h"
#include "io/adapters.h"
#include "io/video/packed.h"
#include "io/video/pictures.h"
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

/// A folder, or "frames/%03d.png" unless there is a file of that very name.
bool is_sequence(const std::string& path) {
  std::error_code ignored;
  return path != "-" && (std::filesystem::is_directory(path, ignored) ||
                         (path.find('%') != std::string::npos && ::access(path.c_str(), F_OK) != 0));
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

std::uint64_t FrameReader::skip_before(double seconds) {
  constexpr double kMost = 1e15;
  // Times are rounded to ticks, so a microsecond early is not earlier.
  const double frames = std::ceil((seconds - 1e-6) * info().frame_rate.value());
  return frames > 0 ? skip(static_cast<std::uint64_t>(std::min(frames, kMost))) : 0;
}

int FrameReader::read_frames(Gop& gop, int first, int count) {
  int done = 0;
  while (done < count && read(gop, first + done)) ++done;
  return done;
}

void FrameReader::go_to(std::size_t) { fail(ErrorKind::kBadArgument, "this video is not read in stretches"); }

bool FrameReader::unread(int) { return false; }

int FrameReader::look(Gop& gop, int first, int count, int, int) { return read_frames(gop, first, count); }

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
          "the frame rate " + to_string(options.frame_rate) + " is not positive");
  if (is_sequence(path)) {
    require(options.width == 0 && options.height == 0 && options.format.empty(), ErrorKind::kBadArgument,
            path + ": pictures say themselves what they are and take neither ReaderOptions::format nor a frame size");
    return make_pictures_reader(path, options);
  }
  auto source = std::make_unique<InputBytes>(path);
  const InputFormat* known =
      options.format.empty() ? input_format(*source, extension_of(path)) : input_format(options.format);
  const bool says_size = options.width > 0 || options.height > 0;
  if (options.format.empty() && known && known->takes_size && !says_size && is_sgi(*source)) known = nullptr;
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
              path + ": frames of " + size + ", " + count_of(samples, "sample"));
  check_memory(options.limits, samples * static_cast<unsigned>(v.format.bytes_per_sample()),
               path + ": a frame of " + size);
  check_limit(v.frames, options.limits.frames, "frames", path + ": " + count_of(v.frames, "frame"));
  return reader;
}

namespace {

/// Frames converted on their way to another writer.
class ConvertingWriter final : public FrameWriter {
 public:
  ConvertingWriter(std::unique_ptr<FrameConverter> converter, Writer writer, std::string remark = {})
      : remark_(std::move(remark)),
        converter_(std::move(converter)),
        writer_(std::move(writer)),
        one_(converter_->info(), 1) {
    one_.set_frames(1);
  }
  void write(const Gop& gop, int index) override {
    converter_->convert(gop, index, one_, 0);
    writer_->write(one_, 0);
  }
  void complete() override { writer_->complete(); }
  void finish() override { writer_->finish(); }
  std::string result() const override { return writer_->result(); }
  std::vector<std::string> remarks() const override {
    std::vector<std::string> all = writer_->remarks();
    if (!remark_.empty()) all.push_back(remark_);
    return all;
  }

 private:
  std::string remark_;
  std::unique_ptr<FrameConverter> converter_;
  Writer writer_;
  Gop one_;
};

/// More bits a sample: values times a number, so that nothing is lost. It makes the greatest value of the greatest one
/// where there is such a number (of 1, 2, 4 bits in 8, for example); otherwise it is a power of two.
class Widener final : public FrameConverter {
 public:
  Widener(const VideoInfo& from, int bits) : to_(from), times_(1u << (bits - from.format.bits)) {
    const bool is_limited = from.format.model == ColourModel::kYuv || from.colour.range == 1;
    if (bits % from.format.bits == 0 && !is_limited) times_ = ((1u << bits) - 1) / ((1u << from.format.bits) - 1);
    to_.format.bits = bits;
  }
  const VideoInfo& info() const override { return to_; }
  unsigned times() const { return times_; }

  void convert(const Gop& from, int index, Gop& to, int to_index) override {
    for (int c = 0; c < from.components(); ++c) {
      const VolumeView in = from.plane(c);
      const MutableVolumeView out = to.plane(c);
      for (int y = 0; y < in.shape.height; ++y)
        for (int x = 0; x < in.shape.width; ++x) {
          const unsigned value = times_ * sample(in.row(index, y), x, in.bytes_per_sample);
          std::byte* to_sample = out.row(to_index, y) + x * out.bytes_per_sample;
          to_sample[0] = static_cast<std::byte>(value);
          if (out.bytes_per_sample == 2) to_sample[1] = static_cast<std::byte>(value >> 8);
        }
    }
    to.times()[static_cast<std::size_t>(to_index)] = from.times()[static_cast<std::size_t>(index)];
  }

 private:
  static unsigned sample(const std::byte* row, int x, int bytes) {
    const std::byte* at = row + x * bytes;
    return std::to_integer<unsigned>(at[0]) | (bytes == 2 ? std::to_integer<unsigned>(at[1]) << 8 : 0);
  }
  VideoInfo to_;
  unsigned times_;
};

/// Frames on their way to another writer, as often as they last.
class ConstantRateWriter final : public FrameWriter {
 public:
  ConstantRateWriter(const VideoInfo& info, Writer writer)
      : writer_(std::move(writer)), rate_(info.frame_rate.value() * info.time_base.value()), kept_(info, 1) {
    kept_.set_frames(1);
  }
  void write(const Gop& gop, int index) override {
    const FrameTime time = gop.times()[static_cast<std::size_t>(index)];
    if (!begun_) begin_ = time.pts;
    const std::int64_t place = place_of(time.pts);
    if (begun_) fill(place);
    begun_ = true;
    for (int c = 0; c < gop.components(); ++c) {
      const VolumeView in = gop.plane(c);
      const MutableVolumeView out = kept_.plane(c);
      for (int y = 0; y < in.shape.height; ++y) std::memcpy(out.row(0, y), in.row(index, y), in.row_bytes());
    }
    end_ = std::max(place + 1, place_of(add_times(time.pts, std::max<std::int64_t>(0, time.duration))));
  }
  void complete() override {
    if (begun_) fill(end_);
    begun_ = false;
    writer_->complete();
  }
  void finish() override {
    complete();
    writer_->finish();
  }
  std::string result() const override { return writer_->result(); }
  std::vector<std::string> remarks() const override { return writer_->remarks(); }

 private:
  std::int64_t place_of(std::int64_t pts) const {
    constexpr double kMost = 1e12;
    return std::llround(std::clamp((static_cast<double>(pts) - static_cast<double>(begin_)) * rate_, 0.0, kMost));
  }
  /// Writes the kept frame until `place`.
  void fill(std::int64_t place) {
    for (; written_ < place; ++written_) {
      kept_.times()[0] = {std::llround(static_cast<double>(written_) / rate_) + begin_,
                          std::max<std::int64_t>(1, std::llround(1 / rate_))};
      writer_->write(kept_, 0);
    }
  }

  Writer writer_;
  double rate_;  ///< frames a tick of the times
  Gop kept_;     ///< the frame that is shown until the next one comes
  bool begun_ = false;
  std::int64_t begin_ = 0;
  std::int64_t end_ = 0;  ///< place behind the last frame
  std::int64_t written_ = 0;
};

const OutputFormat* known_format(const std::string& path, const std::string& format) {
  if (format.empty() && (path == "null" || path == "md5" || path == "framemd5")) return output_format(path);
  return format.empty() ? output_format_of_extension(extension_of(path)) : output_format(format);
}

/// True if files of the format are one picture each.
bool writes_picture(const std::string& path, const std::string& format) {
  if (const OutputFormat* known = known_format(path, format)) return known->names.substr(0, 3) == "pnm";
  const FfmpegAdapter* ffmpeg = ffmpeg_adapter(path);
  return ffmpeg != nullptr && ffmpeg->writes_picture(path, format);
}

/// What the output takes without conversion, as far as FFmpeg knows. The arguments must outlive it.
Holds holds_of(const std::string& path, const WriterOptions& options) {
  const FfmpegAdapter* ffmpeg = ffmpeg_adapter(path);
  require(ffmpeg != nullptr, ErrorKind::kUnsupported,
          path + ": this build has no FFmpeg, which converts to " + options.pixel_format);
  return [&path, &options, ffmpeg, known = known_format(path, options.format)](const VideoInfo& candidate) {
    return known ? known->holds == nullptr || known->holds(candidate)
                 : ffmpeg->output_holds(path, candidate, options.format, options);
  };
}

/// Bits a sample that frames get before FFmpeg converts them, because it has no pixels of as many as they have (7, 11,
/// 13 or 15, for example). 0: they need none.
int bits_to_convert(const std::string& path, const VideoInfo& info, const WriterOptions& options) {
  const Holds holds = holds_of(path, options);
  const bool is_auto = options.pixel_format == "auto";
  const PixelFormat wanted = is_auto ? info.format : samples_of(options.pixel_format);
  if (info.format.is_signed || (is_auto ? holds(info) : wanted == info.format)) return 0;
  const auto is_known = [&](const VideoInfo& v) {
    return ffmpeg_adapter(path)->nearest(v, [&](const VideoInfo& c) { return c.format == v.format; }).has_value();
  };
  if (is_known(info)) return 0;
  int first = 0;
  for (VideoInfo wide = info; ++wide.format.bits <= 16;) {
    if (is_auto ? holds(wide) : wide.format == wanted) return wide.format.bits;
    if (first == 0 && is_known(wide)) first = wide.format.bits;
  }
  return first;
}

/// What frames of `info` become on their way into the output.
VideoInfo converted_info(const std::string& path, const VideoInfo& info, const WriterOptions& options) {
  const Holds holds = holds_of(path, options);
  if (options.pixel_format == "auto") {
    if (holds(info)) return info;
    std::optional<VideoInfo> nearest = ffmpeg_adapter(path)->nearest(info, holds);
    require(nearest.has_value(), ErrorKind::kUnsupported,
            path + ": the output holds nothing that FFmpeg can convert " + to_string(info.format) + " to");
    return *nearest;
  }
  VideoInfo to = info;
  to.format = samples_of(options.pixel_format);
  VideoInfo full = to;
  full.colour.range = 2;
  return !holds(to) && holds(full) ? full : to;
}

}  // namespace

std::unique_ptr<FrameWriter> open_writer(const std::string& path, const VideoInfo& info, const WriterOptions& options) {
  if (options.constant_rate) {
    require(info.frame_rate.num > 0 && info.time_base.num > 0, ErrorKind::kBadArgument,
            path + ": a constant rate needs a frame rate and times, and the video has none");
    WriterOptions even = options;
    even.constant_rate = false;
    return std::make_unique<ConstantRateWriter>(info, open_writer(path, info, even));
  }
  if (const int bits = options.pixel_format.empty() ? 0 : bits_to_convert(path, info, options); bits > 0) {
    auto widener = std::make_unique<Widener>(info, bits);
    const std::string times = std::to_string(widener->times());
    Writer writer = open_writer(path, widener->info(), options);
    return std::make_unique<ConvertingWriter>(std::move(widener), std::move(writer),
                                              "samples of " + count_of(info.format.bits, "bit") + " (these are of " +
                                                  count_of(bits, "bit") + ", every value times " + times + ")");
  }
  if (const std::optional<NumberedName> names = NumberedName::parse(path);
      names && writes_picture(path, options.format)) {
    WriterOptions each = options;
    if (each.pixel_format == "auto") each.pixel_format = to_string(converted_info(path, info, options).format);
    return make_pictures_writer(*names, info, each);
  }
  if (!options.pixel_format.empty()) {
    const VideoInfo wanted = converted_info(path, info, options);
    if (wanted.format != info.format || wanted.colour.range != info.colour.range) {
      auto converter = ffmpeg_adapter(path)->make_converter(path, info, wanted);
      Writer writer = open_writer(path, converter->info(), options);
      return std::make_unique<ConvertingWriter>(std::move(converter), std::move(writer));
    }
  }
  const OutputFormat* known = known_format(path, options.format);
  require(known || !options.format.empty() || path != "-", ErrorKind::kBadArgument,
          "standard output has no extension; name a format (WriterOptions::format): " + supported_writers());
  if (!known) return open_ffmpeg_writer(path, info, options.format, options);
  require(options.video_codec.empty(), ErrorKind::kBadArgument,
          "the format " + std::string(known->name()) + " has no choice of codec (" + options.video_codec + ")");
  return known->open(path, info, options);
}

bool holds_side_streams(const std::string& path, const std::string& format) {
  return known_format(path, format) == nullptr && !writes_picture(path, format);
}

bool is_plain(const std::string& path, const std::string& format) { return known_format(path, format) != nullptr; }

bool holds_times(const std::string& path, const std::string& format) {
  if (is_plain(path, format)) return known_format(path, format)->name() == "framemd5";
  return holds_side_streams(path, format) && (format.empty() ? extension_of(path) : format) != "avi";
}

bool holds_rotation(const std::string& path, const std::string& format) {
  const std::string name = format.empty() ? extension_of(path) : format;
  return name == "mp4" || name == "mov" || name == "m4v";
}

PixelFormat samples_of(const std::string& pixel_format) {
  const PackedFormat* packed = packed_format(pixel_format);
  return packed ? packed->samples : parse_pixel_format(pixel_format);
}

std::string pipe_format(const VideoInfo& info) { return y4m_holds(info) ? "y4m" : "matroska"; }

std::string to_string(const SideStreams& side_streams) {
  std::string text;
  const auto add = [&text](const std::string& what) { text += (text.empty() ? "" : ", ") + what; };
  for (const OtherTrack& track : side_streams.tracks) add(track.kind + " (" + track.codec + ")");
  if (side_streams.chapters) add("chapters");
  if (side_streams.attachments) add("attachments");
  if (side_streams.tags) add("tags");
  return text;
}

std::string supported_writers() {
  const std::string own = "y4m (.y4m), raw (.yuv .raw .rgb .gray), pnm (.pgm .ppm), null, md5";
  return have_ffmpeg() ? own +
                             ", matroska (.mkv), avi, nut with ffv1, mp4 and mov with libx264, pictures and sequences "
                             "of them (png, jpg, tif, %04d.png), gif, "
                             "and other formats of FFmpeg by name or extension"
                       : own;
}

}  // namespace trivelet::io
