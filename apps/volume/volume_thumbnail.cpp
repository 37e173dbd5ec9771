// The small picture of a volume stream for file managers: a slice, halved until it fits, in a window of its values.

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "apps/cli/log.h"
#include "apps/volume/volume.h"

namespace trivelet::cli {

namespace {

/// Values of one channel.
struct Values {
  int width = 0;
  int height = 0;
  std::vector<double> at;
};

Values channel_of(const std::byte* slice, const io::VolumeInfo& info, int channel) {
  Values v{info.width, info.height, {}};
  const std::size_t pixels = static_cast<std::size_t>(v.width) * static_cast<std::size_t>(v.height);
  const std::size_t first = static_cast<std::size_t>(channel) * static_cast<std::size_t>(bytes_of(info.voxel.type));
  v.at.resize(pixels);
  for (std::size_t i = 0; i < pixels; ++i)
    v.at[i] =
        scalar_value(slice + i * info.voxel.bytes() + first, info.voxel.type, info.voxel.big_endian) * info.slope +
        info.intercept;
  return v;
}

/// The mean of the finite ones of two by two values.
Values halved(const Values& full) {
  Values half{(full.width + 1) / 2, (full.height + 1) / 2, {}};
  half.at.reserve(static_cast<std::size_t>(half.width) * static_cast<std::size_t>(half.height));
  for (int y = 0; y < half.height; ++y)
    for (int x = 0; x < half.width; ++x) {
      double sum = 0;
      int count = 0;
      for (int row = 2 * y; row < std::min(2 * y + 2, full.height); ++row)
        for (int column = 2 * x; column < std::min(2 * x + 2, full.width); ++column) {
          const double v = full.at[static_cast<std::size_t>(row) * static_cast<std::size_t>(full.width) +
                                   static_cast<std::size_t>(column)];
          if (!std::isfinite(v)) continue;
          sum += v;
          ++count;
        }
      half.at.push_back(count > 0 ? sum / count : std::numeric_limits<double>::quiet_NaN());
    }
  return half;
}

/// Black and white: all values but the lowest and highest hundredth of those above the least one, which is the air
/// around what was scanned, or the filling outside the scanner's circle.
std::pair<double, double> window_of(const std::vector<Values>& channels) {
  std::vector<double> sorted;
  for (const Values& c : channels)
    std::copy_if(c.at.begin(), c.at.end(), std::back_inserter(sorted), [](double v) { return std::isfinite(v); });
  if (sorted.empty()) return {0, 1};
  std::sort(sorted.begin(), sorted.end());
  const double least = sorted.front();
  const double largest = sorted.back();
  sorted.erase(sorted.begin(), std::upper_bound(sorted.begin(), sorted.end(), least));
  if (sorted.empty()) return {least, least + 1};  // one value: black
  const std::size_t tail = sorted.size() / 100;
  const double low = sorted[tail];
  const double high = sorted[sorted.size() - 1 - tail];
  return low < high ? std::pair{low, high} : std::pair{least, largest};
}

}  // namespace

VolumeThumbnail volume_thumbnail(const std::string& path, const VolumeInStream& volume, int size, int slice,
                                 const Common& common) {
  const std::uint64_t place = slice < 0 ? volume.info.slices / 2 : static_cast<std::uint64_t>(slice);
  require(place < volume.info.slices, ErrorKind::kBadArgument,
          fmt::format("--frame {}: the volume has {}, from 0", slice, count_of(volume.info.slices, "slice")));
  VolumeDecoding decoding;
  decoding.slices = fmt::format("{}:{}", place, place + 1);
  const auto source = decode_volume(path, decoding, common);
  const io::VolumeInfo& info = source->info();
  std::vector<std::byte> voxels(info.slice_bytes());
  require(source->read(voxels.data()), ErrorKind::kBadStream, "'" + path + "' holds no slice that can be shown");
  const bool colours = info.voxel.channels >= 3;
  std::vector<Values> channels;
  for (int c = 0; c < (colours ? 3 : 1); ++c) {
    channels.push_back(channel_of(voxels.data(), info, c));
    while (std::max(channels.back().width, channels.back().height) > size) channels.back() = halved(channels.back());
  }
  // Colours of 8 bits are what they are; other values are shown in a window.
  const auto [low, high] = colours && info.voxel.type == VoxelType::kU8 ? std::pair{0.0, 255.0} : window_of(channels);
  VideoInfo video;
  video.width = channels[0].width;
  video.height = channels[0].height;
  video.format = colours ? PixelFormat{ColourModel::kRgb, 8} : parse_pixel_format("gray");
  video.colour.range = 2;
  video.frames = 1;
  VolumeThumbnail picture{video, Gop(video, 1)};
  picture.frame.set_frames(1);
  constexpr int kOfPlane[] = {1, 2, 0};  // planes are G, B, R
  for (int plane = 0; plane < static_cast<int>(channels.size()); ++plane) {
    const Values& from = channels[static_cast<std::size_t>(colours ? kOfPlane[plane] : 0)];
    for (int y = 0; y < video.height; ++y)
      for (int x = 0; x < video.width; ++x) {
        const double v = (from.at[static_cast<std::size_t>(y) * static_cast<std::size_t>(video.width) +
                                  static_cast<std::size_t>(x)] -
                          low) /
                         (high - low);
        picture.frame.plane(plane).row(0, y)[x] =
            static_cast<std::byte>(std::isfinite(v) ? std::lround(255 * std::clamp(v, 0.0, 1.0)) : 0);
      }
  }
  log::debug("slice {} of {}, values {:g}..{:g} from black to white", place, volume.info.slices, low, high);
  return picture;
}

}  // namespace trivelet::cli
