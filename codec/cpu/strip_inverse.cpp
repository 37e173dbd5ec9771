// Strips of the inverse transform (strip_inverse.h).
#include "codec/cpu/strip_inverse.h"

#include <algorithm>

#include "codec/cpu/cpu_fields.h"

namespace trivelet {

namespace {

constexpr int kFineLevels = 2;
constexpr std::size_t kStripBytes = std::size_t{56} << 20;  // a fifth of 33 frames of 1080p
// Of a strip, whose overlap would be most of it otherwise.
constexpr int kLeastRows = 64;

// Rows whose values depend on rows behind the end of a strip: those that a filter reaches at each level, of which those
// of the coarser one are twice as far apart. In multiples of 2^kFineLevels.
int overlap_of(Wavelet wavelet) {
  const int reach = wavelet == Wavelet::kHaar ? 1 : wavelet == Wavelet::kCdf53 ? 2 : wavelet == Wavelet::kCdf97 ? 4 : 6;
  return (reach + 2 * reach + 3) / 4 * 4;
}

// Calls body(frame, pool) for all frames. Threads take frames, or share each one if there are few.
template <class Body>
void for_frames(int frames, ThreadPool& pool, const Body& body) {
  if (frames < pool.threads()) {
    for (int t = 0; t < frames; ++t) body(t, pool);
    return;
  }
  pool.parallel_for(frames, [&](int t, int) {
    ThreadPool alone(1);
    body(t, alone);
  });
}

template <class T>
Field<T> frame_of(const Field<T>& field, int t) {
  Field<T> one = field;
  one.data = field.row(t, 0);
  one.shape.frames = 1;
  return one;
}

// Makes room for `shape`; what was in the memory is lost before there is more.
template <class T>
void reserve(LargeVector<T>& memory, const Shape& shape) {
  if (memory.size() >= shape.samples()) return;
  LargeVector<T>().swap(memory);
  memory.resize(shape.samples());
}

}  // namespace

int strips_of(const Shape& shape, const Decomposition& d) {
  if (d.layout != Layout::kT2d || d.spatial_levels < kFineLevels) return 1;
  const std::size_t strips = (shape.samples() * sizeof(float) + kStripBytes - 1) / kStripBytes;
  return static_cast<int>(
      std::min<std::size_t>(strips, static_cast<std::size_t>(std::max(1, shape.height / kLeastRows))));
}

template <class T>
void inverse_in_strips(const PatchStore<T>& patches, int strips, float gain, std::int32_t offset,
                       std::int32_t min_sample, std::int32_t max_sample, const MutableVolumeView& samples,
                       ThreadPool& pool, SimdLevel simd, const std::vector<float>& frame_gains,
                       StripMemory<T>& memory) {
  const Shape shape = patches.target().shape();
  const Decomposition whole = patches.target().decomposition();
  Decomposition coarse = in_space(whole), fine = in_space(whole), time = whole;
  coarse.spatial_levels -= kFineLevels;
  fine.spatial_levels = kFineLevels;
  time.spatial_levels = 0;
  const Shape small{shape.frames, low_length(shape.height, kFineLevels), low_length(shape.width, kFineLevels)};
  reserve(memory.low, small);
  const Field<T> low = packed_field(memory.low.data(), small);
  for_frames(shape.frames, pool, [&](int t, ThreadPool& threads) {
    const Field<T> frame = frame_of(low, t);
    const ZeroPatches left_out = patches.read_low(t, kFineLevels, frame);
    inverse_transform<T>(frame, coarse, threads, simd, {}, &left_out);
  });
  const int overlap = overlap_of(whole.spatial);
  const int rows = ceil_div(ceil_div(shape.height, strips), 1 << kFineLevels) << kFineLevels;
  reserve(memory.strip, {shape.frames, std::min(rows + 2 * overlap, shape.height), shape.width});
  for (int first = 0; first < shape.height; first += rows) {
    const int end = std::min(first + rows, shape.height);
    const int from = std::max(0, first - overlap), to = std::min(shape.height, end + overlap);
    const Field<T> strip = packed_field(memory.strip.data(), {shape.frames, to - from, shape.width});
    for_frames(shape.frames, pool, [&](int t, ThreadPool& threads) {
      const Field<T> frame = frame_of(strip, t);
      for (int y = 0; y < to - from; y += 1 << kFineLevels)
        std::copy_n(low.row(t, (from + y) >> kFineLevels), low.shape.width, frame.row(0, y));
      const ZeroPatches left_out = patches.read_high(t, kFineLevels, from, frame);
      inverse_transform<T>(frame, fine, threads, simd, {}, &left_out);
    });
    Field<T> own = strip;
    own.data = strip.row(0, first - from);
    own.shape.height = end - first;
    MutableVolumeView view = samples;
    view.shape.height = end - first;
    view.data += first * samples.row_stride;
    std::vector<std::byte*> frames;
    for (int t = 0; samples.frames && t < shape.frames; ++t) frames.push_back(samples.row(t, first));
    if (samples.frames) view.frames = frames.data();
    inverse_transform<T>(own, time, gain, offset, min_sample, max_sample, view, pool, simd, frame_gains);
  }
}

template void inverse_in_strips(const PatchStore<float>&, int, float, std::int32_t, std::int32_t, std::int32_t,
                                const MutableVolumeView&, ThreadPool&, SimdLevel, const std::vector<float>&,
                                StripMemory<float>&);
template void inverse_in_strips(const PatchStore<std::int32_t>&, int, float, std::int32_t, std::int32_t, std::int32_t,
                                const MutableVolumeView&, ThreadPool&, SimdLevel, const std::vector<float>&,
                                StripMemory<std::int32_t>&);

}  // namespace trivelet
