// Motion on the device: the cells of a GOP, its memory, and the keys that it takes and leaves. Bound of its kernels
// (motion_predict.cu, motion_update.cu, motion_samples.cu): what is read and written of values, 4 bytes each, but for
// blocks at places between samples, where the filters' arithmetic counts as much.
#include <algorithm>

#include "codec/threads/parallel.h"
#include "gpu/motion/motion_component.cuh"

namespace trivelet::gpu {

void MotionUpload::reserve(const GopMotion& motion) {
  const std::size_t size = checked_mul(static_cast<std::size_t>(motion.places.count), motion.grid.cells());
  if (host_.size() >= size) return;
  host_ = {};
  cells_ = {};
  host_ = PinnedBuffer<DeviceMotionCell>(size);
  cells_ = DeviceBuffer<DeviceMotionCell>(size);
}

void MotionUpload::submit(const GopMotion& motion, int first_level, ThreadPool* pool, const Stream& stream) {
  reserve(motion);
  const std::size_t cells = motion.grid.cells();
  const int apart = 1 << first_level;
  const int frames = (motion.places.count + apart - 1) / apart;
  const auto convert = [&](int i) {
    const auto place = static_cast<std::size_t>(i) * static_cast<std::size_t>(apart);
    const MotionField& field = motion.fields[place];
    DeviceMotionCell* to = host_.data() + place * cells;
    for (const MotionCell& c : field) {
      DeviceMotionCell& d = *to++;
      d = {};
      d.mode = c.mode;
      if (c.mode == MotionMode::kPlain) {
        std::copy(c.plain.begin(), c.plain.end(), d.plain);
        continue;
      }
      for (int r = 0; r < 2; ++r) {
        if (!c.uses(r)) continue;
        d.x[r] = c.vector[static_cast<std::size_t>(r)].x;
        d.y[r] = c.vector[static_cast<std::size_t>(r)].y;
      }
    }
  };
  if (pool)
    pool->parallel_for(frames, [&](int i, int) { convert(i); });
  else
    for (int i = 0; i < frames; ++i) convert(i);
  for (int i = 0; i < frames; ++i) {
    const auto place = static_cast<std::size_t>(i) * static_cast<std::size_t>(apart);
    if (!motion.fields[place].empty())
      copy(cells_.data() + place * cells, host_.data() + place * cells, cells, cudaMemcpyHostToDevice, stream);
  }
}

DeviceMotion::DeviceMotion(const StreamHeader& header, const Reduction& reduction, bool again)
    : header_(header),
      reduction_(reduction),
      grid_(header.video.width, header.video.height),
      key_sets_(again ? 2 : 1),
      key_states_(header.temporal_levels + (header.predicted_keys ? 1 : 0)) {
  const int least = reduction.clamped(header.least_levels()).temporal;
  const auto places = static_cast<std::size_t>(low_length(header.gop_frames + 1, least));
  std::size_t most = 0;
  key_origin_.push_back(0);
  for (int c = 0; c < static_cast<int>(header.components.size()); ++c) {
    const Shape s = header.component_shape(c, 1);
    const std::size_t samples = checked_mul(static_cast<std::size_t>(low_length(s.height, reduction.spatial)),
                                            static_cast<std::size_t>(low_length(s.width, reduction.spatial)));
    most = std::max(most, samples);
    key_origin_.push_back(key_origin_.back() + samples);
  }
  values_ = DeviceBuffer<std::int32_t>(checked_mul(key_origin_.back(), places));
  sums_ = DeviceBuffer<unsigned long long>(checked_mul(most, (places + 1) / 2));
  keys_ = DeviceBuffer<std::int32_t>(checked_mul(key_origin_.back(), key_sets_ * key_states_));
}

std::size_t DeviceMotion::device_bytes() const {
  return values_.size() * sizeof(std::int32_t) + sums_.size() * sizeof(unsigned long long) +
         keys_.size() * sizeof(std::int32_t);
}

void DeviceMotion::begin(const Stream& stream) { done_.hold(stream); }
void DeviceMotion::end(const Stream& stream) { done_.record(stream); }

std::size_t DeviceMotion::value_origin(const GopShape& shape, int component) const {
  return key_origin_[static_cast<std::size_t>(component)] * static_cast<std::size_t>(shape.shapes[0].frames);
}

DeviceMotionComponent DeviceMotion::component(const GopShape& shape, const MotionOfGop& motion, int c) const {
  const auto n = static_cast<std::size_t>(c);
  const PixelFormat& f = header_.video.format;
  const bool chroma = f.is_chroma(c);
  DeviceMotionComponent d;
  d.values = values_.data() + value_origin(shape, c);
  d.sums = sums_.data();
  d.key_stride = static_cast<std::ptrdiff_t>(key_origin_.back());
  const std::ptrdiff_t set = key_states_ * d.key_stride;
  d.keys = keys_.data() + keys_own_ * set + key_origin_[n];
  d.before = keys_.data() + (key_sets_ - 1 - keys_own_) * set + key_origin_[n];
  d.frame = static_cast<std::ptrdiff_t>(key_origin_[n + 1] - key_origin_[n]);
  d.cells = motion.cells;
  d.places = motion.places;
  d.height = shape.shapes[n].height;
  d.width = shape.shapes[n].width;
  d.rows = grid_.rows;
  d.columns = grid_.columns;
  d.scale = {(chroma ? f.log2_chroma_w : 0) + reduction_.spatial, (chroma ? f.log2_chroma_h : 0) + reduction_.spatial};
  d.cell_y = cell_size(d.scale.shift_y);
  d.cell_x = cell_size(d.scale.shift_x);
  d.dropped = reduction_.clamped(d.places.levels).temporal;
  d.index = c;
  d.fraction = header_.lossless ? 0 : kMotionFraction;
  d.bits = f.bits;
  d.limit = motion_update_limit(d.fraction, d.bits);
  return d;
}

// Moves the key frame of the GOP before to place 0, and this GOP's own key, if needed, to the old place, both as level
// `level` predicts from them.
void DeviceMotion::pass_keys(const DeviceMotionComponent& c, int level, bool follows, const Stream& stream) {
  const auto samples = static_cast<std::size_t>(c.frame);
  const auto move = [&](std::int32_t* to, const std::int32_t* from) {
    copy(to, from, samples, cudaMemcpyDeviceToDevice, stream);
  };
  const int last = c.places.count - 1;
  const int substitute = 1 << c.places.levels;
  if (c.places.key == GopKey::kOpen) {
    if (follows)
      move(c.values, c.before + level * c.key_stride);
    else if (substitute <= last)
      move(c.values, c.values + c.frame_at(substitute));
    else
      check(cudaMemsetAsync(c.values, 0, samples * sizeof *c.values, stream.get()), "cudaMemsetAsync");
  }
  if (c.places.ends_with_key()) move(c.keys + level * c.key_stride, c.values + c.frame_at(last));
}

// Adds the predictions of keys, each from the one before.
void DeviceMotion::add_to_keys(const DeviceMotionComponent& c, const Stream& stream) {
  const auto samples = static_cast<std::size_t>(c.frame);
  if (c.places.key == GopKey::kOpen) {
    if (has_low_key_)
      copy(c.values, c.before + header_.temporal_levels * c.key_stride, samples, cudaMemcpyDeviceToDevice, stream);
    else
      check(cudaMemsetAsync(c.values, 0, samples * sizeof *c.values, stream.get()), "cudaMemsetAsync");
  }
  for (const int t : motion_frames(c.places.levels, c.places)) predict(c, c.places.levels, t, 1, true, stream);
}

// This GOP's own key frame for levels of the next GOP that this one does not have; with predicted keys, the last one of
// these is the low key.
void DeviceMotion::keep_coarser_keys(const DeviceMotionComponent& c, const Stream& stream) {
  for (int level = c.places.levels; level < key_states_ && c.places.ends_with_key(); ++level)
    copy(c.keys + level * c.key_stride, c.values + c.frame_at(c.places.count - 1), static_cast<std::size_t>(c.frame),
         cudaMemcpyDeviceToDevice, stream);
}

}  // namespace trivelet::gpu
