// Packs patches of blocks into chunks of memory, and writes them to frames (patch_store.h).
#include "codec/cpu/patch_store.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

namespace trivelet {

namespace {

constexpr std::size_t kChunkWords = std::size_t{4} << 10;

constexpr std::size_t mask_words(int width) { return (static_cast<std::size_t>(width) + 31) / 32; }

// Packs a row of up to 32 values. Returns the end of the values that are not zero.
template <class T>
std::uint32_t* pack(const T* from, int count, std::uint32_t& mask, std::uint32_t* to) {
  std::uint32_t words[32];
  std::memcpy(words, from, static_cast<std::size_t>(count) * sizeof *words);
  std::uint32_t any = 0;
  for (int i = 0; i < count; ++i) any |= words[i];
  mask = 0;
  if (any == 0) return to;
  for (int i = 0; i < count; ++i) {
    const bool there = words[i] != 0;
    mask |= static_cast<std::uint32_t>(there) << i;
    *to = words[i];
    to += there;
  }
  return to;
}

// The inverse of pack(). Returns the end of the values that were read.
template <class T>
const std::uint32_t* unpack(std::uint32_t mask, const std::uint32_t* from, T* to, int count) {
  std::fill_n(to, count, T{});
  for (; mask != 0; mask &= mask - 1) to[std::countr_zero(mask)] = std::bit_cast<T>(*from++);
  return from;
}

}  // namespace

template <class T>
PatchStore<T>::PatchStore(const BlockGrid& grid, const SubbandTable& target)
    : grid_(grid), target_(target), zeros_(grid, target), frames_(static_cast<std::size_t>(target.shape().frames)) {
  const std::size_t bands = 1 + 3 * static_cast<std::size_t>(target.resolutions() - 1);
  for (Frame& f : frames_) f.patches.resize(bands * static_cast<std::size_t>(grid.blocks()));
}

template <class T>
std::uint32_t* PatchStore<T>::Frame::allocate(std::size_t words) {
  const std::lock_guard lock(mutex);
  if (words > left) {
    left = std::max(words, kChunkWords);
    chunks.push_back(std::make_unique_for_overwrite<std::uint32_t[]>(left));
    next = chunks.back().get();
  }
  left -= words;
  return std::exchange(next, next + words);
}

template <class T>
std::size_t PatchStore<T>::patch(const Subband& band, int by, int bx) const {
  const int number = band.resolution == 0 ? 0 : 3 * (band.resolution - 1) + band.orientation;
  return static_cast<std::size_t>((number * grid_.rows() + by) * grid_.columns() + bx);
}

template <class T>
void PatchStore<T>::add(int by, int bx, const BlockMemory<T>& memory) {
  static_assert(sizeof(T) == sizeof(std::uint32_t));
  std::vector<std::uint32_t> packed;
  for (const Subband& band : target_.all()) {
    const Field<T> from = patch_view(grid_, by, bx, memory, band);
    const int width = from.shape.width, height = from.shape.height;
    if (width == 0 || height == 0) continue;
    const std::size_t masks = mask_words(width) * static_cast<std::size_t>(height);
    packed.resize(masks + static_cast<std::size_t>(width) * static_cast<std::size_t>(height) +
                  1);  // 1: written, unused
    for (int t = 0; t < from.shape.frames; ++t) {
      if (band.resolution > 0 && zeros_.is_left_out(band, t, by, bx)) continue;
      std::uint32_t* mask = packed.data();
      std::uint32_t* end = mask + masks;
      for (int y = 0; y < height; ++y)
        for (int x = 0; x < width; x += 32) end = pack(from.row(t, y) + x, std::min(32, width - x), *mask++, end);
      Frame& frame = frames_[static_cast<std::size_t>(band.frame_origin + t * band.frame_step)];
      const auto words = static_cast<std::size_t>(end - packed.data());
      std::uint32_t* const to = frame.allocate(words);
      std::copy_n(packed.data(), words, to);
      frame.patches[patch(band, by, bx)] = to;
    }
  }
}

template <class T>
void PatchStore<T>::write(int frame, int from, int to, int levels, int first_row, const Field<T>& field) const {
  const Frame& own = frames_[static_cast<std::size_t>(frame)];
  Decomposition d = target_.decomposition();
  const int left_out = from > 0 ? d.spatial_levels - levels : 0;  // coarser levels
  d.spatial_levels = levels;
  d.temporal_levels = 0;
  d.key_last = false;
  const SubbandTable table({1, field.shape.height, field.shape.width}, d, std::is_integral_v<T>);
  for (const Subband& band : target_.all()) {
    if (band.resolution < from || band.resolution >= to) continue;
    const int behind = frame - band.frame_origin;
    if (behind < 0 || behind % band.frame_step != 0 || behind / band.frame_step >= band.shape.frames) continue;
    const Subband& place = table.at(0, band.resolution - left_out, band.orientation);
    const Field<T> view = subband_view(field, place);
    const int first = first_row / place.row_step;
    for (int by = 0; by < grid_.rows(); ++by)
      for (int bx = 0; bx < grid_.columns(); ++bx) {
        const BlockGrid::Patch p = grid_.patch(band, by, bx);
        const std::uint32_t* mask = own.patches[patch(band, by, bx)];
        if (!mask || p.y + p.height <= first || p.y >= first + view.shape.height) continue;
        const std::uint32_t* values = mask + mask_words(p.width) * static_cast<std::size_t>(p.height);
        for (int y = p.y - first; y < std::min(p.y + p.height - first, view.shape.height); ++y)
          for (int x = 0; x < p.width; x += 32, ++mask)
            values = y < 0 ? values + std::popcount(*mask)
                           : unpack(*mask, values, view.row(0, y) + p.x + x, std::min(32, p.width - x));
      }
  }
}

template <class T>
ZeroPatches PatchStore<T>::take(int frame, const Field<T>& field) {
  const int resolutions = target_.resolutions();
  write(frame, 0, resolutions, resolutions - 1, 0, field);
  Frame& own = frames_[static_cast<std::size_t>(frame)];
  std::vector<std::unique_ptr<std::uint32_t[]>>().swap(own.chunks);
  std::vector<std::uint32_t*>().swap(own.patches);
  own.left = 0;
  return zeros_.select(frame, 0, 0);
}

template <class T>
ZeroPatches PatchStore<T>::read_low(int frame, int levels, const Field<T>& field) const {
  const int resolutions = target_.resolutions() - levels;
  write(frame, 0, resolutions, resolutions - 1, 0, field);
  return zeros_.select(frame, levels, 0);
}

template <class T>
ZeroPatches PatchStore<T>::read_high(int frame, int levels, int first_row, const Field<T>& field) const {
  const int resolutions = target_.resolutions();
  write(frame, resolutions - levels, resolutions, levels, first_row, field);
  return zeros_.select(frame, 0, first_row);
}

template class PatchStore<float>;
template class PatchStore<std::int32_t>;

}  // namespace trivelet
