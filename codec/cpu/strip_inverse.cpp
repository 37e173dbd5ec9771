// Strips of the inverse transform (strip_inverse.h).
#include "codec/cpu/strip_inverse.h"

#include <algorithm>

#include "codec/cpu/cpu_fields.h"

namespace trivelet {

namespace {

constexpr int kFineLevels = 2;
// Of a strip, whose overlap would be most of it otherwise.
constexpr int kLeastRows = 64;
// A larger strip of a large component, whose memory matters less than the time for more overlaps.
constexpr std::size_t kMostStrips = 16;

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

// Makes room for so many values; what was in the memory is lost before there is more.
template <class T>
void reserve(LargeVector<T>& memory, std::size_t values) {
  if (memory.size() >= values) return;
  LargeVector<T>().swap(memory);
  memory.resize(values);
}

// Of the component's rows, those that a strip makes samples of.
int own_rows(int height, int strips) { return ceil_div(ceil_div(height, strips), 1 << kFineLevels) << kFineLevels; }

// With the overlaps.
Shape strip_shape(const Shape& shape, Wavelet wavelet, int strips) {
  return {shape.frames, std::min(own_rows(shape.height, strips) + 2 * overlap_of(wavelet), shape.height), shape.width};
}

}  // namespace

int strips_of(const Shape& shape, const Decomposition& d) {
  if (d.layout != Layout::kT2d || d.spatial_levels < kFineLevels) return 1;
  const std::size_t limit = std::max(kStripValues, shape.samples() / kMostStrips);
  const int most = std::max(1, shape.height / kLeastRows);
  int strips = static_cast<int>(std::min((shape.samples() + limit - 1) / limit, static_cast<std::size_t>(most)));
  while (strips < most && strip_shape(shape, d.spatial, strips).samples() > limit) ++strips;
  return strips;
}

template <class T>
void inverse_in_strips(const PatchStore<T>& patches, int strips, float gain, std::int32_t offset,
                       std::int32_t min_sample, std::int32_t max_sample, const MutableVolumeView& samples,
                       ThreadPool& pool, SimdLevel simd, const std::vector<float>& frame_gains,
                       const StripMemory<T>& memory) {
  const Shape shape = patches.target().shape();
  const Decomposition whole = patches.target().decomposition();
  Decomposition coarse = in_space(whole), fine = in_space(whole), time = whole;
  coarse.spatial_levels -= kFineLevels;
  fine.spatial_levels = kFineLevels;
  time.spatial_levels = 0;
  const Shape small{shape.frames, low_length(shape.height, kFineLevels), low_length(shape.width, kFineLevels)};
  reserve(memory.low, small.samples());
  const Field<T> low = packed_field(memory.low.data(), small);
  for_frames(shape.frames, pool, [&](int t, ThreadPool& threads) {
    const Field<T> frame = frame_of(low, t);
    const ZeroPatches left_out = patches.read_low(t, kFineLevels, frame);
    inverse_transform<T>(frame, coarse, threads, simd, {}, &left_out);
  });
  const int overlap = overlap_of(whole.spatial);
  const int rows = own_rows(shape.height, strips);
  reserve(memory.strip, std::max(kStripValues, strip_shape(shape, whole.spatial, strips).samples()));
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
                                const StripMemory<float>&);
template void inverse_in_strips(const PatchStore<std::int32_t>&, int, float, std::int32_t, std::int32_t, std::int32_t,
                                const MutableVolumeView&, ThreadPool&, SimdLevel, const std::vector<float>&,
                                const StripMemory<std::int32_t>&);

}  // namespace trivelet
