// trivelet info: describes a stream or any other video without decoding it.

#include <spdlog/fmt/fmt.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <vector>

#include "apps/cli/json.h"
#include "apps/cli/log.h"
#include "apps/video/batch.h"
#include "apps/video/colour_names.h"
#include "apps/video/metrics.h"
#include "apps/video/video.h"
#include "apps/volume/volume.h"
#include "codec/format/container.h"
#include "codec/format/stream_layout.h"
#include "io/md5.h"

namespace trivelet::cli {

namespace {

struct InfoOptions {
  std::string input;
  bool json = false;
  bool show_private = false;
  bool digest = false;
  SeriesChoice series;
  // With --digest
  std::string file_md5{};     ///< empty: not a file
  std::string samples_md5{};  ///< as 'decode IN md5' prints it
};

/// MD5 of the samples of a video, or of the scalars of a volume.
std::string md5_of_samples(const InfoOptions& options, const Common& common) {
  if (volume_in(options.input, common) || io::is_volume(options.input)) {
    VolumeTyped typed;
    typed.series = options.series;
    const auto source = open_volume_source(options.input, volume_options(typed, common), common);
    std::vector<std::byte> slice(source->info().slice_bytes());
    io::Md5 digest;
    while (source->read(slice.data())) digest.update(slice.data(), slice.size());
    return digest.hex();
  }
  VideoInput video(options.input, {.limits = limits(common)}, common);
  video.leave_remarks_to_others();
  const auto writer = io::open_writer("md5", video.info(), {});
  for (Gop gop(video.info(), buffer_frames(video.info())); video.read(gop);) writer->write_frames(gop);
  writer->finish();
  return writer->result().substr(writer->result().find('=') + 1);
}

void take_digests(InfoOptions& options, const Common& common) {
  require(options.input != "-", ErrorKind::kBadArgument, "--digest reads the input twice, which a pipe does not allow");
  if (std::filesystem::is_regular_file(options.input)) options.file_md5 = md5_of_file(options.input);
  options.samples_md5 = md5_of_samples(options, common);
}

void put_name(Json& json, const InfoOptions& options) {
  json.member("file", options.input);
  if (!options.file_md5.empty()) json.member("file_md5", options.file_md5);
  if (!options.samples_md5.empty()) json.member("samples_md5", options.samples_md5);
}

std::string ratio(const Rational& r) { return r.num == 0 ? "unknown" : fmt::format("{}/{}", r.num, r.den); }

const char* range_name(const ColourTags& tags) {
  return tags.range == 1 ? "limited" : tags.range == 2 ? "full" : "unspecified";
}

/// What of a stream is shown: how many frames and for how long, which extracts and variable rates change.
struct Length {
  std::uint64_t frames = 0;  ///< 0 = unknown
  double seconds = 0;        ///< 0 = unknown
};

/// Frames that decoding gives: for an extract at a lower frame rate not the original number.
std::uint64_t delivered_frames(const StreamLayout& layout) {
  const int halved = layout.header.layout == Layout::kDyadic
                         ? std::min<int>(layout.header.dropped_spatial, layout.header.temporal_levels)
                         : layout.header.dropped_temporal;
  const std::uint64_t round = (std::uint64_t{1} << halved) - 1;
  std::uint64_t frames = 0;
  for (const GopInfo& gop : layout.info.gops)
    frames += (static_cast<std::uint64_t>(gop.frames) + (gop.key == GopKey::kFirst ? round : 0)) >> halved;
  return frames;
}

Length length_of(ByteSource& source, const StreamInfo& stream) {
  Length length;
  length.frames = stream.video.frames;
  if (stream.gops.empty() || !source.seekable()) return length;
  const GopInfo& last = stream.gops.back();
  const Rational base = stream.video.time_base;
  try {
    source.seek(0);
    std::uint64_t bytes_read = 0;
    StreamInput in(source, bytes_read);
    StreamLayout layout;
    layout.read(in);
    length.frames = delivered_frames(layout);
    if (base.num <= 0 || base.den <= 0 || stream.video.frame_rate.num == 0) return length;
    const FrameTime begin = read_gop_header(in, layout.header, stream.gops.front()).times.front();
    const FrameTime end = read_gop_header(in, layout.header, last).times.back();
    const double ticks =
        static_cast<double>(end.pts) + static_cast<double>(end.duration) - static_cast<double>(begin.pts);
    length.seconds = std::max(0.0, ticks * base.value());
  } catch (const Error& e) {  // damaged: only the index is left
    if (e.kind() != ErrorKind::kBadStream && e.kind() != ErrorKind::kUnsupported) throw;
  }
  return length;
}

struct Figures {
  double seconds = 0;         ///< 0 = unknown
  double bits_per_pixel = 0;  ///< 0 = unknown
};

Figures figures(const VideoInfo& video, const Length& length, std::uint64_t bytes) {
  Figures f;
  const double pixels = static_cast<double>(video.width) * video.height * static_cast<double>(length.frames);
  f.seconds = length.seconds;
  if (f.seconds == 0 && video.frame_rate.num > 0)
    f.seconds = static_cast<double>(length.frames) / video.frame_rate.value();
  if (pixels > 0) f.bits_per_pixel = 8.0 * static_cast<double>(bytes) / pixels;
  return f;
}

/// null if unknown
template <class T>
void put_known(Json& json, const std::string& name, bool known, const T& value) {
  known ? json.member(name, value) : json.member(name, std::numeric_limits<double>::quiet_NaN());
}

/// GOPs whose keys are predicted from those of the GOP before.
std::uint64_t gops_with_predicted_keys(const StreamInfo& stream) {
  return static_cast<std::uint64_t>(
      std::count_if(stream.gops.begin(), stream.gops.end(), [](const GopInfo& g) { return g.predicts_keys; }));
}

void put_video(Json& json, const VideoInfo& video, const Length& length) {
  json.begin_object("video");
  json.member("width", video.width);
  json.member("height", video.height);
  json.member("pixel_format", trivelet::to_string(video.format));
  json.member("bits", video.format.bits);
  json.member("components", video.format.components());
  json.member("signed", video.format.is_signed);
  put_known(json, "frames", length.frames > 0, length.frames);
  json.member("frame_rate", ratio(video.frame_rate));
  json.member("frames_per_second", video.frame_rate.value());
  const double seconds = figures(video, length, 0).seconds;
  put_known(json, "duration_seconds", seconds > 0, seconds);
  json.member("sample_aspect", ratio(video.sample_aspect));
  json.member("time_base", ratio(video.time_base));
  json.member("rotation", video.rotation);
  json.member("mirrored", video.mirrored);
  json.member("premultiplied", video.premultiplied);
  json.member("field_order", video.field_order == 1 ? "top" : video.field_order == 2 ? "bottom" : "progressive");
  json.begin_object("colour");
  json.member("primaries", video.colour.primaries);
  json.member("transfer", video.colour.transfer);
  json.member("matrix", video.colour.matrix);
  json.member("range", range_name(video.colour));
  json.member("chroma_location", video.colour.chroma_location);
  json.end_object();
  json.end_object();
}

void print_row(const std::string& name, const std::string& value) {
  fmt::print("{:<12} {}\n", log::printable(name), log::printable(value));
}

void print_name(const InfoOptions& options) {
  print_row("file", options.input);
  if (!options.file_md5.empty()) print_row("file MD5", options.file_md5);
  if (!options.samples_md5.empty()) print_row("samples", "MD5 " + options.samples_md5);
}

void print_video(const VideoInfo& video, const Length& length) {
  print_row("picture", fmt::format("{}x{} {}, {}, {}", video.width, video.height, trivelet::to_string(video.format),
                                   count_of(static_cast<std::uint64_t>(video.format.bits), "bit"),
                                   count_of(static_cast<std::uint64_t>(video.format.components()), "component")));
  const Figures f = figures(video, length, 0);
  std::string text = length.frames > 0 ? count_of(length.frames, "frame") : "number of frames unknown";
  if (video.frame_rate.num > 0) text += fmt::format(", {:.6g} frames/s", video.frame_rate.value());
  if (f.seconds > 0) text += fmt::format(", {:.3f} s", f.seconds);
  print_row("length", text);
  if (video.sample_aspect.num > 0 && !(video.sample_aspect == Rational{1, 1}))
    print_row("aspect", "samples " + ratio(video.sample_aspect));
  if (video.rotation != 0 || video.mirrored)
    print_row("rotation",
              fmt::format("{}{} degrees clockwise", video.mirrored ? "mirrored, then " : "", video.rotation));
  if (video.format.alpha && video.premultiplied) print_row("alpha", "premultiplied");
  if (video.field_order != 0) print_row("fields", video.field_order == 1 ? "top first" : "bottom first");
  if (!(video.colour == ColourTags{})) print_row("colour", describe_colour(video.colour));
}

/// What was said on standard error, for programs. Last, when all is looked at.
void put_warnings(Json& json) {
  json.begin_array("warnings");
  for (const std::string& warning : log::warnings()) json.value(warning);
  json.end_array();
}

void put_side_streams(Json& json, const io::SideStreams& side_streams) {
  json.begin_array("other_tracks");
  for (const io::OtherTrack& track : side_streams.tracks) {
    json.begin_object();
    json.member("kind", track.kind);
    json.member("codec", track.codec);
    json.member("language", track.language);
    json.member("name", track.name);
    json.end_object();
  }
  json.end_array();
  json.member("chapters", side_streams.chapters);
  json.member("attachments", side_streams.attachments);
}

void print_side_streams(const io::SideStreams& side_streams) {
  for (const io::OtherTrack& track : side_streams.tracks)
    print_row(track.kind, track.codec + (track.language.empty() ? "" : ", " + track.language) +
                              (track.name.empty() ? "" : ", " + track.name));
  std::string more = side_streams.chapters ? "chapters" : "";
  if (side_streams.attachments) more += more.empty() ? "attachments" : ", attachments";
  if (!more.empty()) print_row("also", more);
}

int info_of_volume(const InfoOptions& options, const Common& common) {
  io::VolumeOptions reading;
  reading.limits = limits(common);
  reading.series = options.series.name;
  reading.only_matching = options.series.only_matching;
  reading.allow_outside = true;  // contents of data files are not shown
  const auto reader = io::open_volume(options.input, reading);
  io::Envelope envelope;
  if (options.show_private) {
    std::vector<std::byte> slice(reader->info().slice_bytes());
    for (std::uint64_t z = 0; z < reader->info().all_slices(); ++z) reader->read(slice.data(), slice.size());
    envelope = reader->envelope();
  }
  if (options.json) {
    Json json;
    json.begin_object();
    put_name(json, options);
    json.member("type", "volume");
    put_volume(json, reader->info(), nullptr, envelope, options.show_private);
    for (const std::string& remark : reader->remarks()) log::warn("'{}': {}", options.input, in_options(remark));
    put_warnings(json);
    json.end_object();
    fmt::print("{}", json.text());
  } else {
    print_name(options);
    for (const auto& [name, value] : volume_rows(reader->info(), nullptr, envelope, options.show_private))
      print_row(name, value);
    for (const std::string& remark : reader->remarks()) print_row("remark", in_options(remark));
  }
  return kExitDone;
}

int info_of_video(const InfoOptions& options, const Common& common) {
  const auto reader = io::open_reader(options.input, {.recover = true, .limits = limits(common)});
  const VideoInfo& video = reader->info();
  for (const std::string& remark : reader->remarks()) log::warn("'{}': {}", options.input, in_options(remark));
  if (reader->missing_bytes() > 0)
    log::warn("'{}' is cut short: {} bytes are missing at its end", options.input, reader->missing_bytes());
  if (options.json) {
    Json json;
    json.begin_object();
    put_name(json, options);
    json.member("type", "video");
    put_video(json, video, {video.frames, reader->seconds()});
    put_side_streams(json, reader->side_streams());
    json.member("missing_bytes", reader->missing_bytes());
    put_warnings(json);
    json.end_object();
    fmt::print("{}", json.text());
  } else {
    print_name(options);
    print_video(video, {video.frames, reader->seconds()});
    print_side_streams(reader->side_streams());
  }
  return kExitDone;
}

/// A row for each quality layer: the stream if it ended there, from the index.
struct LayerRow {
  std::uint64_t bytes = 0;
  double bits_per_pixel = 0;
  double mse = -1;  ///< predicted; negative: not known
  VolumeCuts::Cut measured{};
  double measured_psnr = 0;
};

std::vector<LayerRow> layer_rows(const StreamInfo& stream, const VolumeCuts& cuts) {
  std::vector<LayerRow> rows;
  if (stream.gops.empty()) return rows;
  std::uint64_t chunks = 0;
  double frames = 0;
  for (const GopInfo& gop : stream.gops) {
    if (gop.layers.empty()) return {};
    rows.resize(gop.layers.size());
    frames += gop.frames;
    for (const LayerInfo& layer : gop.layers) chunks += layer.bytes;
  }
  std::uint64_t bytes = stream.file_bytes - std::min(stream.file_bytes, chunks);  // heads
  for (std::size_t l = 0; l < rows.size(); ++l) {
    double sum = 0;
    bool known = true;
    for (const GopInfo& gop : stream.gops) {
      bytes += gop.layers[l].bytes;
      known = known && gop.layers[l].error != 65535;
      sum += error_of(gop.layers[l].error) * gop.frames;
    }
    rows[l].bytes = bytes;
    rows[l].bits_per_pixel =
        8.0 * static_cast<double>(bytes) / (static_cast<double>(stream.video.width) * stream.video.height * frames);
    if (known) rows[l].mse = sum / frames;
    if (l < cuts.cuts.size() && cuts.cuts[l].known()) {
      rows[l].measured = cuts.cuts[l];
      rows[l].measured_psnr = psnr_of(cuts, l);
    }
  }
  return rows;
}

std::string psnr_of(double mse, int bits) {
  if (mse < 0) return "unknown";
  if (mse == 0) return "lossless";
  const double peak = (1 << bits) - 1;
  return format_psnr(10 * std::log10(peak * peak / mse));
}

void put_metadata(Json& json, const Metadata& m) {
  json.begin_object("metadata");
  if (m.mastering_display) {
    json.begin_object("mastering_display");
    json.begin_array("chromaticity");  // x and y of red, green, blue, white
    for (const auto& xy : m.mastering_display->chromaticity)
      for (const std::uint16_t v : xy) json.value(v / 50000.0);
    json.end_array();
    json.member("max_luminance", m.mastering_display->max_luminance / 10000.0);
    json.member("min_luminance", m.mastering_display->min_luminance / 10000.0);
    json.end_object();
  }
  if (m.content_light) {
    json.member("max_content_light", static_cast<int>(m.content_light->max_content));
    json.member("max_frame_average_light", static_cast<int>(m.content_light->max_frame_average));
  }
  json.begin_array("chapters");
  for (const Chapter& c : m.chapters) {
    json.begin_object();
    json.member("begin", static_cast<double>(c.begin) * m.chapter_time_base.value());
    json.member("end", static_cast<double>(c.end) * m.chapter_time_base.value());
    json.member("title", c.title);
    json.end_object();
  }
  json.end_array();
  json.begin_array("entries");
  for (const auto& [key, value] : m.entries) {
    json.begin_object();
    json.member("key", key);
    json.member("value", value);
    json.end_object();
  }
  json.end_array();
  json.end_object();
}

void print_metadata(const Metadata& m) {
  if (m.mastering_display) {
    const auto& xy = m.mastering_display->chromaticity;
    const auto place = [&](std::size_t i) {
      return fmt::format("{:.4g},{:.4g}", xy[i][0] / 50000.0, xy[i][1] / 50000.0);
    };
    print_row("mastered", fmt::format("red {}, green {}, blue {}, white {}, {:g} to {:g} cd/m2", place(0), place(1),
                                      place(2), place(3), m.mastering_display->min_luminance / 10000.0,
                                      m.mastering_display->max_luminance / 10000.0));
  }
  if (m.content_light)
    print_row("light", fmt::format("at most {} cd/m2, {} on average of a frame", m.content_light->max_content,
                                   m.content_light->max_frame_average));
  for (const Chapter& c : m.chapters)
    print_row("chapter",
              fmt::format("{:.3f} to {:.3f} s: {}", static_cast<double>(c.begin) * m.chapter_time_base.value(),
                          static_cast<double>(c.end) * m.chapter_time_base.value(), c.title));
  for (const auto& [key, value] : m.entries) print_row("metadata", key + " = " + value);
}

void print_stream_json(const InfoOptions& options, const StreamInfo& stream, const Length& length,
                       const io::SideStreams& side_streams) {
  const Decomposition& d = stream.decomposition;
  const Figures f = figures(stream.video, length, stream.file_bytes);
  Json json;
  json.begin_object();
  put_name(json, options);
  json.member("type", "tvl");
  put_known(json, "bytes", stream.file_bytes > 0, stream.file_bytes);  // of a pipe none
  json.member("format_version", fmt::format("{}.{}", stream.format_major, stream.format_minor));
  json.member("writer", stream.writer);
  json.member("settings", stream.settings);
  put_known(json, "bits_per_pixel", f.bits_per_pixel > 0, f.bits_per_pixel);
  put_known(json, "bits_per_second", f.seconds > 0 && stream.file_bytes > 0,
            8.0 * static_cast<double>(stream.file_bytes) / f.seconds);
  put_video(json, stream.video, length);
  put_side_streams(json, side_streams);
  if (!stream.metadata.empty()) put_metadata(json, stream.metadata);
  json.begin_object("coding");
  json.member("lossless", stream.lossless);
  json.member("profile", to_string(stream.profile));
  json.member("mode", to_string(stream.fast_mode));
  json.member("layout", to_string(d.layout));
  json.member("temporal_levels", d.temporal_levels);
  json.member("spatial_levels", d.spatial_levels);
  json.member("temporal_wavelet", to_string(d.temporal));
  json.member("motion", stream.motion);
  json.member("spatial_wavelet", to_string(d.spatial));
  json.member("gop_frames", stream.gop_frames);
  json.member("block_size", stream.block_size);
  json.member("layers", stream.layers);
  json.member("gops_with_predicted_keys", gops_with_predicted_keys(stream));
  json.end_object();
  const auto volume = volume_in(stream);
  if (volume) put_volume(json, volume->info, &volume->coded, volume->envelope, options.show_private);
  json.member("has_index", stream.has_index);
  json.member("index_rebuilt", !stream.index_damage.empty());
  json.member("complete", stream.complete);
  json.begin_array("layers");
  for (const LayerRow& row : layer_rows(stream, volume ? volume->coded.cuts : VolumeCuts{})) {
    json.begin_object();
    json.member("bytes", row.bytes);
    json.member("bits_per_pixel", row.bits_per_pixel);
    if (row.mse >= 0) json.member("mse", row.mse);
    if (row.measured.known()) {
      json.member("psnr", row.measured_psnr);
      json.member("max_error", row.measured.max_error);
    }
    json.end_object();
  }
  json.end_array();
  json.begin_array("gops");
  for (const GopInfo& gop : stream.gops) {
    json.begin_object();
    json.member("offset", gop.offset);
    json.member("bytes", gop.bytes);
    json.member("first_frame", gop.first_frame);
    json.member("frames", gop.frames);
    json.begin_array("layers");
    for (const LayerInfo& layer : gop.layers) {
      json.begin_object();
      json.member("bytes", layer.bytes);
      if (layer.error != 65535) json.member("mse", error_of(layer.error));
      json.end_object();
    }
    json.end_array();
    json.end_object();
  }
  json.end_array();
  put_warnings(json);
  json.end_object();
  fmt::print("{}", json.text());
}

void print_stream(const InfoOptions& options, const StreamInfo& stream, const Length& length,
                  const io::SideStreams& side_streams, bool verbose) {
  const Decomposition& d = stream.decomposition;
  const Figures f = figures(stream.video, length, stream.file_bytes);
  print_name(options);
  print_row("stream", fmt::format("Trivelet {}.{}, written by {}", stream.format_major, stream.format_minor,
                                  stream.writer.empty() ? "unknown" : stream.writer));
  const auto volume = volume_in(stream);
  if (volume)
    for (const auto& [name, value] : volume_rows(volume->info, &volume->coded, volume->envelope, options.show_private))
      print_row(name, value);
  else
    print_video(stream.video, length);
  print_side_streams(side_streams);
  print_metadata(stream.metadata);
  if (stream.file_bytes > 0) {
    std::string size = fmt::format("{} bytes", stream.file_bytes);
    if (f.bits_per_pixel > 0) size += fmt::format(", {:.4g} bits per pixel", f.bits_per_pixel);
    if (f.seconds > 0)
      size += fmt::format(", {:.4g} Mbit/s", 8e-6 * static_cast<double>(stream.file_bytes) / f.seconds);
    print_row("size", size);
  }
  print_row("coding",
            fmt::format("{}, profile {}", stream.lossless ? "lossless" : "lossy",
                        to_string(stream.profile) +
                            (stream.profile == Profile::kFast ? " (" + to_string(stream.fast_mode) + ")" : "")));
  if (stream.profile == Profile::kPredictive)
    print_row("transform",
              "prediction: contains no smaller sizes, frame rates or qualities; encode --transform wavelet does");
  else
    print_row("transform", fmt::format("{}, {} temporal levels {}{}, {} spatial levels {}", to_string(d.layout),
                                       d.temporal_levels, to_string(d.temporal), stream.motion ? " or with motion" : "",
                                       d.spatial_levels, to_string(d.spatial)));
  const std::uint64_t predicted = gops_with_predicted_keys(stream);
  print_row("structure", fmt::format("GOPs of {}, blocks of {}, {}",
                                     count_of(static_cast<std::uint64_t>(stream.gop_frames), "frame"),
                                     stream.block_size, count_of(static_cast<std::uint64_t>(stream.layers), "layer")) +
                             (predicted > 0 ? ", predicted keys in " + count_of(predicted, "GOP") : ""));
  if (!stream.settings.empty()) print_row("settings", stream.settings);
  if (stream.file_bytes > 0)
    print_row("state", std::string(stream.complete ? "complete" : "cut short") +
                           (stream.has_index ? ", " + count_of(stream.gops.size(), "GOP") : ", no index") +
                           (stream.index_damage.empty() ? "" : ", index rebuilt"));
  const VolumeCuts cuts = volume ? volume->coded.cuts : VolumeCuts{};
  if (const std::vector<LayerRow> rows = layer_rows(stream, cuts); !rows.empty() && cuts.cuts.empty()) {
    fmt::print("\n{:>6} {:>14} {:>11} {:>15}\n", "layers", "bytes", "bits/pixel", "predicted PSNR");
    for (std::size_t l = 0; l < rows.size(); ++l)
      fmt::print("{:>6} {:>14} {:>11.4g} {:>15}\n", l + 1, rows[l].bytes, rows[l].bits_per_pixel,
                 psnr_of(rows[l].mse, stream.video.format.bits));
  } else if (!rows.empty()) {
    fmt::print("\n{:>6} {:>14} {:>11} {:>15} {:>14}\n", "layers", "bytes", "bits/voxel", "PSNR", "largest error");
    for (std::size_t l = 0; l < rows.size(); ++l)
      fmt::print("{:>6} {:>14} {:>11.4g} {:>15} {:>14}\n", l + 1, rows[l].bytes, rows[l].bits_per_pixel,
                 !rows[l].measured.known()                  ? "unknown"
                 : rows[l].measured.mean_squared_error == 0 ? "lossless"
                                                            : format_psnr(rows[l].measured_psnr),
                 rows[l].measured.known() ? fmt::format("{:g}", rows[l].measured.max_error) : "unknown");
  }
  if (!verbose || stream.gops.empty()) return;
  fmt::print("\n{:>6} {:>14} {:>12} {:>10} {:>7} {:>10}\n", "GOP", "offset", "bytes", "first", "frames", "bits/pixel");
  for (std::size_t i = 0; i < stream.gops.size(); ++i) {
    const GopInfo& gop = stream.gops[i];
    fmt::print("{:>6} {:>14} {:>12} {:>10} {:>7} {:>10.4g}\n", i, gop.offset, gop.bytes, gop.first_frame, gop.frames,
               figures(stream.video, {static_cast<std::uint64_t>(gop.frames)}, gop.bytes).bits_per_pixel);
  }
}

int run(InfoOptions& options, const Common& common) {
  if (options.digest) take_digests(options, common);
  const bool is_stream = is_tvl_file(options.input);
  require(!options.series.is_typed() || (!is_stream && io::is_volume(options.input)), ErrorKind::kBadArgument,
          "--series, --only-matching: '" + options.input + "' is not a folder of DICOM files");
  if (!is_stream)
    return io::is_volume(options.input) ? info_of_volume(options, common) : info_of_video(options, common);
  const StreamFile file = open_stream_file(options.input);
  const StreamInfo stream = probe(*file.source, limits(common));
  warn_of_lost_index(options.input, stream.index_damage);
  if (!stream.header_damage.empty()) log::warn("'{}': {}", options.input, stream.header_damage);
  for (const ExtraBox& box : stream.damaged_boxes) log::warn("'{}': the box '{}' is damaged", options.input, box.type);
  if (const auto volume = volume_in(stream))
    for (const std::string& remark : volume->remarks) log::warn("'{}': {}", options.input, in_options(remark));
  const Length length = length_of(*file.source, stream);
  options.json ? print_stream_json(options, stream, length, file.side_streams)
               : print_stream(options, stream, length, file.side_streams, common.verbose);
  return kExitDone;
}

}  // namespace

Action define_info(Command& app, Common& common) {
  auto options = std::make_shared<InfoOptions>();
  app.add_option("IN", options->input, "Stream or any other video; - = standard input").required();
  app.add_flag("--json", options->json, "Print JSON, with every GOP");
  add_series_options(app, options->series);
  app.add_flag("--digest", options->digest,
               "Also print the MD5 of the file, and of its decoded samples, as 'trivelet decode IN md5' does");
  app.add_flag("--show-private", options->show_private,
               "Volumes: also print the texts of the original header, which may name the patient");
  add_limit_options(app, common);
  add_log_options(app, common);
  app.add_footer("With -v every GOP gets a line: offset, bytes, first frame, frames, bits per pixel.");
  return [options, &common] { return naming(options->input, [&] { return run(*options, common); }); };
}

}  // namespace trivelet::cli
