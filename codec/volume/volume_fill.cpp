// Pull-push interpolation (Gortler et al. 1996) of the marked places of a slice.
#include "codec/volume/volume_fill.h"

#include <algorithm>
#include <utility>

namespace trivelet {

void SliceFiller::fill(std::span<const std::uint8_t> marks, std::byte* slice) {
  for (std::size_t channel = 0; channel < static_cast<std::size_t>(volume_.voxel.channels); ++channel)
    fill_channel(channel, marks, slice);
}

void SliceFiller::fill_channel(std::size_t channel, std::span<const std::uint8_t> marks, std::byte* slice) {
  const VoxelFormat& format = volume_.voxel;
  const auto channels = static_cast<std::size_t>(format.channels);
  const auto scalar = static_cast<std::size_t>(bytes_of(format.type));
  const std::size_t count = marks.size() / channels;
  levels_.resize(1);
  Level& full = levels_[0];
  full.width = volume_.width;
  full.height = volume_.height;
  full.values.resize(count);
  full.known.resize(count);
  bool all = true;
  for (std::size_t i = 0; i < count; ++i) {
    full.known[i] = marks[i * channels + channel] == 0;
    all = all && full.known[i];
    full.values[i] =
        full.known[i] ? scalar_value(slice + (i * channels + channel) * scalar, format.type, format.big_endian) : 0;
  }
  if (all) return;
  // Pull: means of the known values in 2x2 squares, until all are known.
  while (true) {
    const Level& fine = levels_.back();
    if (std::all_of(fine.known.begin(), fine.known.end(), [](std::uint8_t k) { return k != 0; })) break;
    if (fine.width == 1 && fine.height == 1) {  // no value is known
      levels_.back().values[0] = usual_;
      break;
    }
    Level coarse;
    coarse.width = (fine.width + 1) / 2;
    coarse.height = (fine.height + 1) / 2;
    coarse.values.resize(static_cast<std::size_t>(coarse.width) * static_cast<std::size_t>(coarse.height));
    coarse.known.resize(coarse.values.size());
    std::size_t at = 0;
    for (int y = 0; y < coarse.height; ++y)
      for (int x = 0; x < coarse.width; ++x, ++at) {
        double sum = 0;
        int n = 0;
        for (int j = 2 * y; j < std::min(2 * y + 2, fine.height); ++j)
          for (int i = 2 * x; i < std::min(2 * x + 2, fine.width); ++i) {
            const std::size_t from =
                static_cast<std::size_t>(j) * static_cast<std::size_t>(fine.width) + static_cast<std::size_t>(i);
            if (!fine.known[from]) continue;
            sum += fine.values[from];
            ++n;
          }
        coarse.known[at] = n > 0;
        coarse.values[at] = n > 0 ? sum / n : 0;
      }
    levels_.push_back(std::move(coarse));
  }
  // Push: an unknown value is interpolated from the four around it at the coarser level, with weights 3/4 and 1/4 on
  // each axis.
  for (std::size_t l = levels_.size() - 1; l-- > 0;) {
    const Level& coarse = levels_[l + 1];
    Level& fine = levels_[l];
    std::size_t at = 0;
    for (int y = 0; y < fine.height; ++y)
      for (int x = 0; x < fine.width; ++x, ++at) {
        if (fine.known[at]) continue;
        const int other_x = std::clamp(x / 2 + (x % 2 ? 1 : -1), 0, coarse.width - 1);
        const int other_y = std::clamp(y / 2 + (y % 2 ? 1 : -1), 0, coarse.height - 1);
        const auto value = [&](int j, int i) {
          return coarse.values[static_cast<std::size_t>(j) * static_cast<std::size_t>(coarse.width) +
                               static_cast<std::size_t>(i)];
        };
        fine.values[at] = 0.75 * (0.75 * value(y / 2, x / 2) + 0.25 * value(y / 2, other_x)) +
                          0.25 * (0.75 * value(other_y, x / 2) + 0.25 * value(other_y, other_x));
      }
  }
  usual_ = levels_.back().values[0];
  for (std::size_t i = 0; i < count; ++i)
    if (!levels_[0].known[i])
      store_scalar(scalar_bits_of(levels_[0].values[i], format.type), format,
                   slice + (i * channels + channel) * scalar);
}

FilledSlices::FilledSlices(SliceSource& source, VolumeMarker marker, double usual)
    : source_(source),
      marker_(std::move(marker)),
      usual_(usual),
      filler_(source.description(), usual),
      marks_(source.description().slice_bytes() / static_cast<std::size_t>(bytes_of(source.description().voxel.type))) {
}

void FilledSlices::read(std::byte* slice) {
  source_.read(slice);
  if (marker_.find(slice, marks_)) filler_.fill(marks_, slice);
}

void FilledSlices::rewind() {
  source_.rewind();
  filler_ = SliceFiller(source_.description(), usual_);
}

}  // namespace trivelet
