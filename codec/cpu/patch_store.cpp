// Packs patches of blocks into chunks of memory, and writes them to frames (patch_store.h).
#include "codec/cpu/patch_store.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "codec/entropy/fast/zerotree.h"

namespace trivelet {

namespace {

constexpr std::size_t kChunkWords = std::size_t{4} << 10;

constexpr std::size_t kReadBehind = 16;  // words, by write_tiles()

constexpr std::size_t mask_words(int width) { return (static_cast<std::size_t>(width) + 31) / 32; }

// Packs a row of up to 32 values. Returns the end of the values that are not zero.
template <class T>
std::uint32_t* pack(const T* from, int count, std::uint32_t& mask, std::uint32_t* to) {
  const auto bits = [from](int i) { return std::bit_cast<std::uint32_t>(from[i]); };
  mask = 0;
  const auto find = [&](int n) {
    for (int i = 0; i < n; ++i) mask |= bits(i) != 0 ? std::uint32_t{1} << i : 0;
  };
  count == 32 ? find(32) : find(count);  // a known number makes vector instructions
  for (std::uint32_t left = mask; left != 0; left &= left - 1) *to++ = bits(std::countr_zero(left));
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
PatchStore<T>::PatchStore(const BlockGrid& grid, const SubbandTable& target, bool tiles, SimdLevel simd)
    : grid_(grid),
      target_(target),
      tiles_(tiles),
      simd_(simd),
      zeros_(grid, target),
      frames_(static_cast<std::size_t>(target.shape().frames)) {
  const std::size_t bands = 1 + 3 * static_cast<std::size_t>(target.resolutions() - 1);
  for (Frame& f : frames_) f.patches.resize(bands * static_cast<std::size_t>(grid.blocks()));
}

template <class T>
std::uint32_t* PatchStore<T>::Frame::allocate(std::size_t words) {
  const std::lock_guard lock(mutex);
  if (words > left) {
    left = std::max(words, kChunkWords);
    chunks.push_back(std::make_unique_for_overwrite<std::uint32_t[]>(left + kReadBehind));
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
    if (width == 0 || height == 0 || in_tiles(band)) continue;
    const std::size_t masks = mask_words(width) * static_cast<std::size_t>(height);
    packed.resize(masks + static_cast<std::size_t>(width) * static_cast<std::size_t>(height));
    for (int t = 0; t < from.shape.frames; ++t) {
      if (band.resolution > 0 && zeros_.is_left_out(band, t, by, bx)) continue;
      std::uint32_t* mask = packed.data();
      std::uint32_t* end = mask + masks;
      for (int y = 0; y < height; ++y)
        for (int x = 0; x < width; x += 32) end = pack(from.row(t, y) + x, std::min(32, width - x), *mask++, end);
      add(band, t, by, bx, packed.data(), static_cast<std::size_t>(end - packed.data()));
    }
  }
}

template <class T>
void PatchStore<T>::add(const Subband& band, int frame_of_band, int by, int bx, const std::vector<std::uint64_t>& words,
                        const T* coefficients, std::size_t count) {
  Frame& frame = frames_[static_cast<std::size_t>(band.frame_origin + frame_of_band * band.frame_step)];
  std::uint32_t* const to = frame.allocate(2 * words.size() + count);
  std::memcpy(to, words.data(), words.size() * sizeof words[0]);
  std::transform(coefficients, coefficients + count, to + 2 * words.size(),
                 [](T value) { return std::bit_cast<std::uint32_t>(value); });
  frame.patches[patch(band, by, bx)] = to;
}

template <class T>
void PatchStore<T>::add(const Subband& band, int frame_of_band, int by, int bx, const std::uint32_t* packed,
                        std::size_t words) {
  Frame& frame = frames_[static_cast<std::size_t>(band.frame_origin + frame_of_band * band.frame_step)];
  std::uint32_t* const to = frame.allocate(words);
  std::copy_n(packed, words, to);
  frame.patches[patch(band, by, bx)] = to;
}

template <class T>
void PatchStore<T>::write_patch(const Subband& band, const BlockGrid::Patch& p, const std::uint32_t* packed, int first,
                                const Field<T>& view) const {
  const int begin = std::max(p.y, first) - p.y, end = std::min(p.y + p.height, first + view.shape.height) - p.y;
  if (begin >= end) return;
  if (in_tiles(band))
    return write_tiles(grid_, band, p, packed, begin, end, view.row(0, p.y + begin - first) + p.x, view.row_stride,
                       simd_);
  const std::uint32_t* values = packed + mask_words(p.width) * static_cast<std::size_t>(p.height);
  for (int y = 0; y < end; ++y)
    for (int x = 0; x < p.width; x += 32, ++packed)
      values = y < begin ? values + std::popcount(*packed)
                         : unpack(*packed, values, view.row(0, p.y + y - first) + p.x + x, std::min(32, p.width - x));
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
      for (int bx = 0; bx < grid_.columns(); ++bx)
        if (const std::uint32_t* packed = own.patches[patch(band, by, bx)])
          write_patch(band, grid_.patch(band, by, bx), packed, first, view);
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
