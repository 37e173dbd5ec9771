// trivelet view: slices of a volume as a picture. A slice is cut from a stream without decoding more than its slab.

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "apps/cli/log.h"
#include "apps/volume/volume.h"

namespace trivelet::cli {

namespace {

struct ViewOptions {
  std::string input;
  std::string output;
  std::string slice;
  bool montage = false;
  std::string window;
  VolumeTyped typed;
};

struct Picture {
  int width = 0;
  int height = 0;
  std::vector<double> values;
  double& at(int x, int y) {
    return values[static_cast<std::size_t>(y) * static_cast<std::size_t>(width) + static_cast<std::size_t>(x)];
  }
};

struct Plane {
  int axis = 2;  // 0 x, 1 y, 2 z
  std::uint64_t index = 0;
};

std::uint64_t extent(const io::VolumeInfo& info, int axis) {
  return axis == 0   ? static_cast<std::uint64_t>(info.width)
         : axis == 1 ? static_cast<std::uint64_t>(info.height)
                     : info.slices;
}

/// "z=40", "40".
Plane parse_plane(const std::string& text, const io::VolumeInfo& info) {
  Plane p;
  std::string number = text;
  if (text.size() > 2 && text[1] == '=') {
    const std::size_t axis = std::string("xyz").find(text[0]);
    require(axis != std::string::npos, ErrorKind::kBadArgument, "--slice " + text + ": write x=N, y=N or z=N");
    p.axis = static_cast<int>(axis);
    number = text.substr(2);
  }
  const auto result = std::from_chars(number.data(), number.data() + number.size(), p.index);
  require(result.ec == std::errc() && result.ptr == number.data() + number.size() && !number.empty(),
          ErrorKind::kBadArgument, "--slice " + text + ": write x=N, y=N or z=N");
  require(p.index < extent(info, p.axis), ErrorKind::kBadArgument,
          fmt::format("--slice {}: the volume has {} such slices, from 0", text, extent(info, p.axis)));
  return p;
}

/// Planes of the first volume, in one pass. The vertical axis of x and y planes is z, drawn upwards.
std::vector<Picture> cut(VolumeSource& source, const std::vector<Plane>& planes, std::uint64_t first_slice) {
  const io::VolumeInfo& info = source.info();
  std::vector<Picture> pictures(planes.size());
  for (std::size_t i = 0; i < planes.size(); ++i) {
    Picture& p = pictures[i];
    p.width = planes[i].axis == 0 ? info.height : info.width;
    p.height = planes[i].axis == 2 ? info.height : static_cast<int>(info.slices);
    p.values.assign(static_cast<std::size_t>(p.width) * static_cast<std::size_t>(p.height), 0);
  }
  std::vector<std::byte> slice(info.slice_bytes());
  const std::size_t voxel = info.voxel.bytes();
  const auto value = [&](int x, int y) {
    const std::size_t at =
        static_cast<std::size_t>(y) * static_cast<std::size_t>(info.width) + static_cast<std::size_t>(x);
    return scalar_value(slice.data() + at * voxel, info.voxel.type, info.voxel.big_endian) * info.slope +
           info.intercept;
  };
  for (std::uint64_t z = 0; z < info.slices && source.read(slice.data()); ++z)
    for (std::size_t i = 0; i < planes.size(); ++i) {
      const Plane& p = planes[i];
      const int row = static_cast<int>(info.slices - 1 - z);
      if (p.axis == 2 && p.index == z + first_slice)
        for (int y = 0; y < info.height; ++y)
          for (int x = 0; x < info.width; ++x) pictures[i].at(x, y) = value(x, y);
      if (p.axis == 1)
        for (int x = 0; x < info.width; ++x) pictures[i].at(x, row) = value(x, static_cast<int>(p.index));
      if (p.axis == 0)
        for (int y = 0; y < info.height; ++y) pictures[i].at(y, row) = value(static_cast<int>(p.index), y);
    }
  return pictures;
}

/// Side by side, a black column between.
Picture side_by_side(const std::vector<Picture>& pictures, double black) {
  Picture all;
  for (const Picture& p : pictures) {
    all.width += p.width + (all.width > 0 ? 2 : 0);
    all.height = std::max(all.height, p.height);
  }
  all.values.assign(static_cast<std::size_t>(all.width) * static_cast<std::size_t>(all.height), black);
  int left = 0;
  for (Picture p : pictures) {
    for (int y = 0; y < p.height; ++y)
      for (int x = 0; x < p.width; ++x) all.at(left + x, y) = p.at(x, y);
    left += p.width + 2;
  }
  return all;
}

int run(const ViewOptions& options, const Common& common) {
  check_output(options.input, options.output, true);
  const bool is_stream = volume_in(options.input, common).has_value();
  require(is_stream || wants_volume(options.input, options.typed), ErrorKind::kBadArgument,
          "'" + options.input + "' is not a volume");
  auto source = is_stream ? nullptr : open_volume_source(options.input, volume_options(options.typed, common), common);
  const io::VolumeInfo whole = is_stream ? volume_in(options.input, common)->info : source->info();
  std::vector<Plane> planes;
  if (options.montage) {
    for (const int axis : {2, 1, 0}) planes.push_back({axis, extent(whole, axis) / 2});
  } else {
    planes.push_back(options.slice.empty() ? Plane{2, whole.slices / 2} : parse_plane(options.slice, whole));
  }
  std::uint64_t first = 0;
  if (is_stream) {
    VolumeDecoding decoding;
    if (!options.montage && planes[0].axis == 2) {
      first = planes[0].index;
      decoding.slices = fmt::format("{}:{}", first, first + 1);
    }
    source = decode_volume(options.input, decoding, common);
  }
  const std::vector<Picture> pictures = cut(*source, planes, first);

  // Window: typed, or the least and largest value of the picture.
  double low = std::numeric_limits<double>::infinity();
  double high = -low;
  if (!options.window.empty()) {
    const std::size_t colon = options.window.find(':');
    const std::string bad = "--window " + options.window + ": write LOW:HIGH, in scaled values";
    require(colon != std::string::npos, ErrorKind::kBadArgument, bad);
    const char* begin = options.window.data();
    const auto a = std::from_chars(begin, begin + colon, low);
    const auto b = std::from_chars(begin + colon + 1, begin + options.window.size(), high);
    require(a.ec == std::errc() && b.ec == std::errc() && a.ptr == begin + colon &&
                b.ptr == begin + options.window.size() && low < high,
            ErrorKind::kBadArgument, bad);
  } else {
    for (const Picture& p : pictures)
      for (const double v : p.values)
        if (std::isfinite(v)) {
          low = std::min(low, v);
          high = std::max(high, v);
        }
    if (!(low < high)) high = low + 1;
  }
  Picture picture = side_by_side(pictures, low);
  VideoInfo info;
  info.width = picture.width;
  info.height = picture.height;
  info.format = parse_pixel_format("gray");
  info.colour.range = 2;
  info.frames = 1;
  Gop gop(info, 1);
  gop.set_frames(1);
  for (int y = 0; y < picture.height; ++y)
    for (int x = 0; x < picture.width; ++x) {
      const double v = (picture.at(x, y) - low) / (high - low);
      gop.plane(0).row(0, y)[x] =
          static_cast<std::byte>(std::isfinite(v) ? std::lround(255 * std::clamp(v, 0.0, 1.0)) : 0);
    }
  io::WriterOptions writing;
  writing.overwrite = common.overwrite;
  const auto writer = io::open_writer(options.output, info, writing);
  writer->write(gop, 0);
  writer->finish();
  log::info("{}x{}, values {:g}..{:g} from black to white", picture.width, picture.height, low, high);
  return kExitDone;
}

}  // namespace

Action define_view(Command& app, Common& common) {
  auto options = std::make_shared<ViewOptions>();
  app.add_option("IN", options->input, "Volume, or a stream of a volume").required();
  app.add_option("-o,--output", options->output, "Picture to write: .png (with FFmpeg) or .pgm")
      .required()
      .type_name("FILE");
  auto slice =
      app.add_option("--slice", options->slice, "Slice to draw: x=N, y=N, z=N [the middle along z]").type_name("z=N");
  app.add_flag("--montage", options->montage, "The middle planes along z, y and x side by side").excludes(slice);
  app.add_option("--window", options->window,
                 "Scaled values that become black and white [least and largest in the picture]")
      .type_name("LOW:HIGH");
  app.add_option("--size", options->typed.size, "Size of a raw volume").type_name("WxHxD");
  app.add_option("--type", options->typed.type, "Type of a raw volume, as for encode").type_name("T");
  add_series_options(app, options->typed.series);
  app.add_flag("--allow-outside", options->typed.allow_outside,
               "Read data files in other folders than that of the header");
  add_overwrite_option(app, common);
  add_limit_options(app, common);
  add_work_options(app, common);
  add_log_options(app, common);
  return [options, &common] { return run(*options, common); };
}

}  // namespace trivelet::cli
