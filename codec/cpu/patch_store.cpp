// Copies patches between blocks, chunks of memory and frames (patch_store.h).
#include "codec/cpu/patch_store.h"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace trivelet {

namespace {

constexpr std::size_t kChunkBytes = std::size_t{64} << 10;

}  // namespace

template <class T>
PatchStore<T>::PatchStore(const BlockGrid& grid, const SubbandTable& target)
    : grid_(grid), target_(target), zeros_(grid, target), frames_(static_cast<std::size_t>(target.shape().frames)) {
  const std::size_t bands = 1 + 3 * static_cast<std::size_t>(target.resolutions() - 1);
  for (Frame& f : frames_) f.patches.resize(bands * static_cast<std::size_t>(grid.blocks()));
}

template <class T>
T* PatchStore<T>::Frame::allocate(std::size_t values) {
  const std::lock_guard lock(mutex);
  if (values > left) {
    left = std::max(values, kChunkBytes / sizeof(T));
    chunks.push_back(std::make_unique_for_overwrite<T[]>(left));
    next = chunks.back().get();
  }
  left -= values;
  return std::exchange(next, next + values);
}

template <class T>
std::size_t PatchStore<T>::patch(const Subband& band, int by, int bx) const {
  const int number = band.resolution == 0 ? 0 : 3 * (band.resolution - 1) + band.orientation;
  return static_cast<std::size_t>((number * grid_.rows() + by) * grid_.columns() + bx);
}

template <class T>
void PatchStore<T>::add(int by, int bx, const BlockMemory<T>& memory) {
  for (const Subband& band : target_.all()) {
    const Field<T> from = patch_view(grid_, by, bx, memory, band);
    const auto width = static_cast<std::size_t>(from.shape.width), height = static_cast<std::size_t>(from.shape.height);
    if (width * height == 0) continue;
    for (int t = 0; t < from.shape.frames; ++t) {
      if (band.resolution > 0 && zeros_.is_left_out(band, t, by, bx)) continue;
      Frame& frame = frames_[static_cast<std::size_t>(band.frame_origin + t * band.frame_step)];
      T* to = frame.allocate(width * height);
      frame.patches[patch(band, by, bx)] = to;
      for (int y = 0; y < from.shape.height; ++y, to += width) std::copy_n(from.row(t, y), width, to);
    }
  }
}

template <class T>
ZeroPatches PatchStore<T>::take(int frame, const Field<T>& field) {
  Frame& own = frames_[static_cast<std::size_t>(frame)];
  for (Subband band : target_.all()) {
    const int behind = frame - band.frame_origin;
    if (behind < 0 || behind % band.frame_step != 0 || behind / band.frame_step >= band.shape.frames) continue;
    band.frame_origin = 0;
    band.shape.frames = 1;
    for (int by = 0; by < grid_.rows(); ++by)
      for (int bx = 0; bx < grid_.columns(); ++bx) {
        const T* from = own.patches[patch(band, by, bx)];
        if (!from) continue;
        const Field<T> to = patch_view(grid_, by, bx, field, band);
        for (int y = 0; y < to.shape.height; ++y, from += to.shape.width)
          std::copy_n(from, to.shape.width, to.row(0, y));
      }
  }
  std::vector<std::unique_ptr<T[]>>().swap(own.chunks);
  std::vector<T*>().swap(own.patches);
  own.left = 0;
  return zeros_.select_frame(frame);
}

template class PatchStore<float>;
template class PatchStore<std::int32_t>;

}  // namespace trivelet
