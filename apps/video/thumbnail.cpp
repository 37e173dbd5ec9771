// trivelet thumbnail: a small picture of a stream: the first frame that shows something, decoded at a reduced size, or
// the middle slice of a volume.

#include <algorithm>
#include <cmath>

#include "apps/cli/log.h"
#include "apps/video/video.h"
#include "apps/volume/volume.h"

namespace trivelet::cli {

namespace {

struct ThumbnailOptions {
  std::string input;
  std::string output;
  int size = 256;
  int frame = -1;  // < 0 = the first that shows something
};

double sample(const Gop& gop, int c, int frame, int x, int y) {
  const VolumeView plane = gop.plane(c);
  const std::byte* row = plane.row(frame, y);
  if (plane.bytes_per_sample == 1) return static_cast<double>(reinterpret_cast<const std::uint8_t*>(row)[x]);
  return static_cast<double>(reinterpret_cast<const std::uint16_t*>(row)[x]);
}

/// Standard deviation of the first component, relative to the largest sample.
double contrast(const Gop& gop, int frame, int bits) {
  const VolumeView plane = gop.plane(0);
  double sum = 0;
  double squares = 0;
  for (int y = 0; y < plane.shape.height; ++y)
    for (int x = 0; x < plane.shape.width; ++x) {
      const double v = sample(gop, 0, frame, x, y);
      sum += v;
      squares += v * v;
    }
  const double n = static_cast<double>(plane.shape.width) * plane.shape.height;
  return std::sqrt(std::max(0.0, squares / n - sum / n * (sum / n))) / ((1 << bits) - 1);
}

/// 8 bits R, G, B; by BT.601 below 720 lines of the whole picture unless the stream names BT.709 or BT.2020.
class ToRgb {
 public:
  ToRgb(const VideoInfo& info, int whole_height) : info_(info) {
    const bool hd = info.colour.matrix == 1 || (info.colour.matrix == 2 && whole_height >= 720);
    const bool wide = info.colour.matrix == 9 || info.colour.matrix == 10;
    kr_ = wide ? 0.2627 : hd ? 0.2126 : 0.299;
    kb_ = wide ? 0.0593 : hd ? 0.0722 : 0.114;
    most_ = (1 << info.format.bits) - 1;
    const bool grey = info.format.model == ColourModel::kGrey;
    full_ = info.colour.range == 2 || (grey && info.colour.range == 0) || info.format.model == ColourModel::kRgb;
  }
  void convert(const Gop& gop, int frame, Gop& out) const {
    for (int y = 0; y < info_.height; ++y)
      for (int x = 0; x < info_.width; ++x) {
        const double luma = level(sample(gop, 0, frame, x, y), 219);
        double r = luma;
        double g = luma;
        double b = luma;
        if (info_.format.model == ColourModel::kRgb) {  // planes G, B, R
          b = sample(gop, 1, frame, x, y) / most_;
          r = sample(gop, 2, frame, x, y) / most_;
        } else if (info_.format.model == ColourModel::kYuv) {
          const int cx = x >> info_.format.log2_chroma_w;
          const int cy = y >> info_.format.log2_chroma_h;
          const double u = chroma(sample(gop, 1, frame, cx, cy));
          const double v = chroma(sample(gop, 2, frame, cx, cy));
          r = luma + 2 * (1 - kr_) * v;
          b = luma + 2 * (1 - kb_) * u;
          g = (luma - kr_ * r - kb_ * b) / (1 - kr_ - kb_);
        }
        put(out, 0, x, y, g);
        put(out, 1, x, y, b);
        put(out, 2, x, y, r);
      }
  }

 private:
  double unit() const { return std::ldexp(1.0, info_.format.bits - 8); }
  double level(double v, double range) const { return full_ ? v / most_ : (v - 16 * unit()) / (range * unit()); }
  double chroma(double v) const {
    const double centred = v - std::ldexp(1.0, info_.format.bits - 1);
    return full_ ? centred / most_ : centred / (224 * unit());
  }
  static void put(Gop& out, int c, int x, int y, double v) {
    reinterpret_cast<std::uint8_t*>(out.plane(c).row(0, y))[x] =
        static_cast<std::uint8_t>(std::lround(255 * std::clamp(v, 0.0, 1.0)));
  }

  const VideoInfo& info_;
  double kr_ = 0;
  double kb_ = 0;
  double most_ = 1;
  bool full_ = false;
};

/// How often to halve a picture so that it fits `size`; as often as can be.
int halvings(const StreamInfo& stream, int size) {
  int reduce = 0;
  int longest = std::max(stream.video.width, stream.video.height);
  while (longest > size && reduce < stream.decomposition.spatial_levels) {
    longest = (longest + 1) / 2;
    ++reduce;
  }
  return reduce;
}

void write_picture(const ThumbnailOptions& options, const Common& common, const VideoInfo& info, const Gop& picture) {
  io::WriterOptions writing;
  writing.overwrite = common.overwrite;
  const auto writer = io::open_writer(options.output, info, writing);
  writer->write(picture, 0);
  writer->finish();
}

int run(const ThumbnailOptions& options, const Common& common) {
  check_output(options.input, options.output, true);
  require_tvl_file(options.input);
  if (const std::optional<VolumeInStream> volume = volume_in(options.input, common)) {
    const VolumeThumbnail slice = volume_thumbnail(options.input, *volume, options.size, options.frame, common);
    write_picture(options, common, slice.video, slice.frame);
    return kExitDone;
  }
  const StreamFile file = open_stream_file(options.input);
  require(file.source->seekable(), ErrorKind::kBadArgument, "a thumbnail needs a file, not a pipe");
  const StreamInfo stream = probe(*file.source, limits(common));
  constexpr double kEnough = 0.12;  // black, white and fading pictures have less
  constexpr int kMostGops = 4;
  DecoderParams params = decoder_params(common);
  params.reduce = halvings(stream, options.size);
  params.keep_partial = true;  // a damaged film has a thumbnail, too
  if (options.frame >= 0) params.first_frame = static_cast<std::uint64_t>(options.frame);
  file.source->seek(0);
  Decoder decoder(*file.source, params);
  const VideoInfo& info = decoder.output();
  Gop gop = decoder.make_gop();
  Gop best(info, 1);
  double best_contrast = -1;
  for (int g = 0; g < kMostGops && best_contrast < kEnough && decoder.pull(gop); ++g)
    for (int f = 0; f < gop.frames() && best_contrast < kEnough; ++f) {
      const double here = contrast(gop, f, info.format.bits);
      if (here <= best_contrast) continue;
      best_contrast = options.frame >= 0 ? 1 : here;
      for (int c = 0; c < gop.components(); ++c)
        for (int y = 0; y < gop.plane(c).shape.height; ++y)
          std::copy_n(std::as_const(gop).plane(c).row(f, y), gop.plane(c).row_bytes(), best.plane(c).row(0, y));
    }
  require(best_contrast >= 0, ErrorKind::kBadStream, "'" + options.input + "' holds no frame that can be shown");
  VideoInfo rgb = info;
  rgb.format = {ColourModel::kRgb, 8};
  rgb.colour = {1, 13, 0, 2, 0};
  rgb.rotation = 0;
  Gop picture(rgb, 1);
  picture.set_frames(1);
  ToRgb(info, stream.video.height).convert(best, 0, picture);
  write_picture(options, common, rgb, picture);
  log::debug("{}x{}, halved {} times", info.width, info.height, params.reduce);
  return kExitDone;
}

}  // namespace

Action define_thumbnail(Command& app, Common& common) {
  auto options = std::make_shared<ThumbnailOptions>();
  app.add_option("IN", options->input, "Stream of a video or a volume, or film in Matroska").required();
  app.add_option("-o,--output,OUT", options->output, "Picture to write: .png, .jpg, .ppm").required();
  app.add_option("--size", options->size, "Largest width and height; the picture is halved until it fits")
      .range(16, 65536)
      .type_name("N")
      .show_default();
  app.add_option("--frame", options->frame,
                 "Frame to show [the first one with some contrast], or slice of a volume [the middle]")
      .range(0, 1000000000)
      .type_name("N");
  add_overwrite_option(app, common);
  add_limit_options(app, common);
  add_work_options(app, common);
  add_log_options(app, common);
  return [options, &common] { return naming(options->input, [&] { return run(*options, common); }); };
}

}  // namespace trivelet::cli
