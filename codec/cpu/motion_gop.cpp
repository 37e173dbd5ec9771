// The temporal transform of GOPs with motion (motion_gop.h). All of it works on integers: samples minus offset, with
// kMotionFraction more bits in lossy streams.
#include "codec/cpu/motion_gop.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "codec/base/squared_error.h"
#include "codec/motion/field_frames.h"
#include "codec/motion/motion_field.h"
#include "codec/motion/motion_kernels.h"
#include "codec/motion/motion_lift.h"
#include "codec/motion/motion_search.h"
#include "codec/rate/rate_control.h"
#include "codec/transform/colour.h"
#include "codec/transform/dwt_kernels.h"
#include "codec/transform/lifting.h"

namespace trivelet {

namespace {

constexpr Decomposition kNoTransform{Layout::kT2d, 0, 0, Wavelet::kHaar, Wavelet::kHaar};

// Lossless streams have no quantiser step. There motion must beat noise of one or two grey levels.
constexpr double kLosslessStep = 3;

// Frames whose samples are made together: threads wait for each other seldom, and little memory waits to be freed.
constexpr int kFramesAtOnce = 4;

// The field without its first frames.
Field<std::int32_t> frames_from(Field<std::int32_t> field, int first) {
  field.data += first * field.frame_stride;
  field.shape.frames -= first;
  return field;
}

}  // namespace

bool may_move(const StreamHeader& header, int frames, const GopChoices& choices) {
  return header.motion && choices.motion != Motion::kOff && (frames > 1 || choices.key == GopKey::kOpen);
}

MotionScale MotionTransform::scale_of(int component, int reduced) const {
  const PixelFormat& f = header_.video.format;
  const bool chroma = f.is_chroma(component);
  return {(chroma ? f.log2_chroma_w : 0) + reduced, (chroma ? f.log2_chroma_h : 0) + reduced};
}

MotionComponent MotionTransform::component(int c, bool real) const {
  return {c, scale_of(c, 0), real ? kMotionFraction : 0, header_.video.format.bits};
}

MotionBorders MotionTransform::borders(const MotionKeys& keys, const GopMotion& motion, int component) const {
  const auto c = static_cast<std::size_t>(component);
  MotionBorders b;
  if (keys.before && !keys.before->empty()) b.before = &keys.before->components[c];
  if (keys.own_exact && !keys.own_exact->empty()) b.own_exact = &keys.own_exact->components[c];
  if (keys.before && !keys.before->narrow.empty()) b.narrow_before = &keys.before->narrow[c];
  if (keys.low && !keys.low->empty() && !keys.low->components[c].empty()) b.low_key = &keys.low->components[c].back();
  if (b.low_key && !keys.low->narrow.empty() && !keys.low->narrow[c].empty())
    b.narrow_low_key = &keys.low->narrow[c].back();
  if (keys.own && motion.places.ends_with_key()) {
    keys.own->components.resize(header_.components.size());
    keys.own->components[c].resize(header_.temporal_levels + (header_.predicted_keys ? 1u : 0u));
    b.own = &keys.own->components[c];
    keys.own->narrow.resize(header_.components.size());
    keys.own->narrow[c].resize(b.own->size());
    b.narrow_own = &keys.own->narrow[c];
  }
  return b;
}

void MotionTransform::load(const Gop& gop, const MotionPlaces& places, const MotionKey& before,
                           const std::vector<Field<std::int32_t>>& memory) {
  places_ = places;
  const GopKey key = places.key;
  loaded_ = memory;
  const auto frames_at = [&](int c) { return frames_from(loaded_[static_cast<std::size_t>(c)], first_place(key)); };
  int c = 0;
  if (header_.colour_transform) {
    forward_colour<std::int32_t>(gop, header_.components[0].offset, frames_at(0), frames_at(1), frames_at(2), pool_);
    c = 3;
  }
  for (; c < gop.components(); ++c)
    forward_transform<std::int32_t>(gop.plane(c), header_.components[static_cast<std::size_t>(c)].offset, frames_at(c),
                                    kNoTransform, pool_, simd_);
  if (key == GopKey::kFirst) return;
  const int fraction = header_.lossless ? 0 : kMotionFraction;
  for (c = 0; c < gop.components(); ++c) {
    const Field<std::int32_t> field = loaded_[static_cast<std::size_t>(c)];
    const std::size_t samples = static_cast<std::size_t>(field.frame_stride);
    if (before.empty())
      std::fill_n(field.data, samples, 0);
    else  // at the finest level, lifting has not changed the key frame
      std::transform(before.components[static_cast<std::size_t>(c)][0].begin(),
                     before.components[static_cast<std::size_t>(c)][0].end(), field.data,
                     [fraction](std::int32_t x) { return x >> fraction; });
  }
}

MotionKey MotionTransform::last_frame() {
  MotionKey key;
  if (!places_.ends_with_key()) return key;
  const int fraction = header_.lossless ? 0 : kMotionFraction;
  for (int c = 0; c < static_cast<int>(header_.components.size()); ++c) {
    const Field<std::int32_t> field = loaded_[static_cast<std::size_t>(c)];
    const std::int32_t* last = field.row(places_.count - 1, 0);
    std::vector<std::int32_t> samples(last, last + field.frame_stride);
    for (std::int32_t& x : samples) x *= 1 << fraction;
    key.components.push_back({std::move(samples)});
  }
  return key;
}

MotionKey MotionTransform::last_frame_of(const Gop& gop, const MotionPlaces& places) {
  if (!places.ends_with_key()) return {};
  Gop last(header_.video, 1);
  last.set_frames(1);
  std::vector<std::vector<std::int32_t>> memory;
  std::vector<Field<std::int32_t>> fields;
  for (int c = 0; c < gop.components(); ++c) {
    const VolumeView from = gop.plane(c);
    const MutableVolumeView to = last.plane(c);
    for (int y = 0; y < from.shape.height; ++y)
      std::memcpy(to.row(0, y), from.row(gop.frames() - 1, y), from.row_bytes());
    memory.emplace_back(to.shape.samples());
    fields.push_back({memory.back().data(), to.shape, to.shape.width,
                      static_cast<std::ptrdiff_t>(to.shape.width) * to.shape.height});
  }
  load(last, {1, GopKey::kFirst, places.levels}, {}, fields);
  MotionKey last_key = last_frame();
  loaded_.clear();
  return last_key;
}

MotionSearchParams MotionTransform::search_params(float step, int levels, bool may_close) const {
  MotionSearchParams params;
  params.levels = levels;
  params.keys = header_.predicted_keys;
  params.keys_in_place = keys_in_place_;
  params.may_close = may_close;
  params.bits = header_.video.format.bits;
  params.effort = effort_;
  params.step = header_.lossless ? kLosslessStep : static_cast<double>(step);
  return params;
}

std::shared_ptr<GopMotion> MotionTransform::with_sections(GopMotion&& found, float step) const {
  auto motion = std::make_shared<GopMotion>(std::move(found));
  motion->step = step;
  for (int level = motion->places.levels - (motion->predicts_keys ? 0 : 1); level >= 0; --level)
    motion->sections.push_back(encode_motion(*motion, level, static_cast<int>(header_.components.size()), &pool_));
  return motion;
}

std::shared_ptr<GopMotion> MotionTransform::search(float step, bool closes) {
  std::vector<MotionPlane> planes;
  const int components = static_cast<int>(header_.components.size());
  for (int c = 0; c < components; ++c) planes.push_back({loaded_[static_cast<std::size_t>(c)], scale_of(c, 0)});
  GopMotion found = search_motion(planes, search_params(step, places_.levels, closes), places_.key, pool_, simd_);
  return with_sections(closes ? without_before(std::move(found)) : std::move(found), step);
}

std::shared_ptr<GopMotion> MotionTransform::search(const Gop& gop, const MotionPlaces& places, const MotionKey& before,
                                                   float step, bool closes, MotionSearcher& searcher) const {
  const std::int32_t* luma = places.key == GopKey::kOpen ? before.components[0][0].data() : nullptr;
  GopMotion found = searcher.search(gop, places.key, luma, search_params(step, places.levels, closes));
  return with_sections(closes ? without_before(std::move(found)) : std::move(found), step);
}

void MotionTransform::forward(const GopMotion& motion, int component, const MotionKeys& keys, bool real,
                              std::vector<std::int32_t>* low) {
  const Field<std::int32_t> field = loaded_[static_cast<std::size_t>(component)];
  MotionBorders wide = borders(keys, motion, component);
  wide.narrow_before = nullptr, wide.narrow_own = nullptr, wide.narrow_low_key = nullptr;
  FieldFrames frames(field, real ? kMotionFraction : 0, pool_, simd_);
  forward_motion(frames, motion, this->component(component, real), wide, pool_, simd_);
  if (low) low->clear();
  for (int i = 0; low && i < motion.places.keys(); ++i) frames.append(motion.places.key_place(i), *low);
  real ? frames.make_real() : frames.widen();
  if (motion.places.key != GopKey::kFirst)
    std::fill_n(field.data, static_cast<std::size_t>(field.frame_stride), 0);  // place 0 is not coded
}

void MotionTransform::correlate(const Field<float>& field, const GopMotion& motion, int component) const {
  const MotionKernels& kernels = motion_kernels(resolve_simd(simd_));
  const Field<std::int32_t> integers = as_integers(field);
  const int width = field.shape.width, height = field.shape.height;
  const auto for_rows = [&](const auto& body) {
    pool_.parallel_for(field.shape.frames * height, [&](int i, int) { body(integers.row(i / height, i % height)); });
  };
  for_rows([&](std::int32_t* x) { kernels.from_real(x, width, 1 << kMotionFraction); });
  correlate_motion(integers, motion, {component, scale_of(component, 0), kMotionFraction, header_.video.format.bits},
                   pool_, simd_);
  for_rows([&](std::int32_t* x) { kernels.to_real(x, width); });
}

template <class T>
Field<std::int32_t> MotionTransform::to_integers(const Field<T>& from, float gain) const {
  const Field<std::int32_t> field = as_integers(from);
  if constexpr (std::is_floating_point_v<T>) {
    const MotionKernels& kernels = motion_kernels(resolve_simd(simd_));
    const int height = field.shape.height;
    pool_.parallel_for(field.shape.frames * height, [&](int i, int) {
      kernels.from_real(field.row(i / height, i % height), field.shape.width, gain * (1 << kMotionFraction));
    });
  }
  return field;
}

template <class T>
Field<std::int32_t> MotionTransform::inverse_time(const Field<T>& from, float gain, int component,
                                                  const GopMotion& motion, const Reduction& reduction,
                                                  const MotionKeys& keys) {
  constexpr bool kReal = std::is_floating_point_v<T>;
  const Field<std::int32_t> field = to_integers(from, gain);
  inverse_motion(
      field, motion,
      {component, scale_of(component, reduction.spatial), kReal ? kMotionFraction : 0, header_.video.format.bits},
      reduction.temporal, borders(keys, motion, component), pool_, simd_);
  return frames_from(field, first_place(motion.places.key));
}

template <class T>
void MotionTransform::inverse(const std::vector<Field<T>>& fields, int first, const std::vector<float>& gains,
                              const GopMotion& motion, const Reduction& reduction, const MotionKeys& keys, Gop& gop) {
  const SimdLevel simd = resolve_simd(simd_);
  const PixelFormat& f = header_.video.format;
  // Rounds each row to whole grey levels just before it is used.
  const auto for_rows = [&](const Field<std::int32_t>& field, const auto& body) {
    const int height = field.shape.height;
    pool_.parallel_for(field.shape.frames * height, [&](int i, int) {
      std::int32_t* x = field.row(i / height, i % height);
      if constexpr (std::is_floating_point_v<T>) motion_kernels(simd).round(x, field.shape.width);
      body(x, i / height, i % height);
    });
  };
  const auto field_of = [&](int c) {
    const auto i = static_cast<std::size_t>(c - first);
    return inverse_time(fields[i], gains[i], c, motion, reduction, keys);
  };
  int c = first;
  if (first == 0 && header_.colour_transform) {
    Field<std::int32_t> colour[3];
    for (; c < 3; ++c) {
      colour[c] = field_of(c);
      for_rows(colour[c], [](std::int32_t*, int, int) {});
    }
    inverse_colour<std::int32_t>(colour[0], colour[1], colour[2], 1.0f, header_.components[0].offset, highest_sample(f),
                                 gop, pool_);
  }
  for (; c < first + static_cast<int>(fields.size()); ++c) {
    const Field<std::int32_t> field = field_of(c);
    const MutableVolumeView samples = gop.plane(c);
    const StoreKernel<std::int32_t> store = dwt_kernels<std::int32_t>(simd).store[format_index(samples)];
    const std::int32_t offset = header_.components[static_cast<std::size_t>(c)].offset;
    for_rows(field, [&](const std::int32_t* x, int t, int y) {
      store(x, 1.0f, offset, lowest_sample(f), highest_sample(f), samples.row(t, y), field.shape.width);
    });
  }
}

void MotionTransform::inverse_time(MotionFrames& frames, int component, const GopMotion& motion,
                                   const Reduction& reduction, const MotionKeys& keys) {
  const int fraction = header_.lossless ? 0 : kMotionFraction;
  inverse_motion(frames, motion,
                 {component, scale_of(component, reduction.spatial), fraction, header_.video.format.bits},
                 reduction.temporal, borders(keys, motion, component), pool_, simd_);
}

void MotionTransform::inverse(MotionFrames& frames, int component, const GopMotion& motion, const Reduction& reduction,
                              const MotionKeys& keys, Gop& gop, const SampleAllocator& allocate) {
  inverse_time(frames, component, motion, reduction, keys);
  const SimdLevel simd = resolve_simd(simd_);
  const PixelFormat& f = header_.video.format;
  const std::int32_t offset = header_.components[static_cast<std::size_t>(component)].offset;
  const int fraction = header_.lossless ? 0 : kMotionFraction;
  const int uncoded = first_place(motion.places.key);
  const int width = frames.shape().width, height = frames.shape().height;
  const bool is_narrow = frames.is_narrow();
  std::vector<std::vector<std::int32_t>> rows(static_cast<std::size_t>(pool_.threads()));
  // Frames are freed when their samples are made, whose memory may come frame by frame.
  for (int first = uncoded; first < frames.shape().frames; first += kFramesAtOnce) {
    const int count = std::min(kFramesAtOnce, frames.shape().frames - first);
    std::array<MutableVolumeView, kFramesAtOnce> samples;
    for (int t = 0; t < count; ++t)
      samples[static_cast<std::size_t>(t)] = gop.plane_frame(component, first - uncoded + t, allocate);
    const int format = format_index(samples[0]);
    const StoreKernel<std::int32_t> store = dwt_kernels<std::int32_t>(simd).store[format];
    pool_.parallel_for(count * height, [&](int i, int worker) {
      const int t = first + i / height, y = i % height;
      std::byte* const to = samples[static_cast<std::size_t>(i / height)].row(0, y);
      if (is_narrow) return frames.store_row(t, y, format, fraction, offset, lowest_sample(f), highest_sample(f), to);
      std::vector<std::int32_t>& row = rows[static_cast<std::size_t>(worker)];
      row.resize(static_cast<std::size_t>(width));
      frames.read_row(t, y, row.data());
      if (fraction > 0) motion_kernels(simd).round(row.data(), width);
      store(row.data(), 1.0f, offset, lowest_sample(f), highest_sample(f), to, width);
    });
    for (int t = first; t < first + count; ++t) frames.release(t);
  }
}

template <class T>
double MotionTransform::inverse_error(const std::vector<Field<T>>& fields, int first, const GopMotion& motion,
                                      const MotionKeys& keys, const Gop& gop, double sum) {
  if (first == 0 && header_.colour_transform) {
    Gop decoded(header_.video, gop.frames());
    decoded.set_frames(gop.frames());
    inverse(fields, 0, std::vector<float>(fields.size(), 1.0f), motion, {}, keys, decoded);
    for (int c = 0; c < 3; ++c) sum += squared_error(gop.plane(c), std::as_const(decoded).plane(c));
    return sum;
  }
  const PixelFormat& f = header_.video.format;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const int c = first + static_cast<int>(i);
    const Field<std::int32_t> field = inverse_time(fields[i], 1.0f, c, motion, {}, keys);
    if constexpr (std::is_floating_point_v<T>)
      pool_.parallel_for(field.shape.frames * field.shape.height, [&](int k, int) {
        motion_kernels(resolve_simd(simd_))
            .round(field.row(k / field.shape.height, k % field.shape.height), field.shape.width);
      });
    sum += inverse_transform_error<std::int32_t>(field, kNoTransform, 1.0f,
                                                 header_.components[static_cast<std::size_t>(c)].offset,
                                                 lowest_sample(f), highest_sample(f), gop.plane(c), pool_, simd_);
  }
  return sum;
}

template void MotionTransform::inverse(const std::vector<Field<float>>&, int, const std::vector<float>&,
                                       const GopMotion&, const Reduction&, const MotionKeys&, Gop&);
template void MotionTransform::inverse(const std::vector<Field<std::int32_t>>&, int, const std::vector<float>&,
                                       const GopMotion&, const Reduction&, const MotionKeys&, Gop&);
template double MotionTransform::inverse_error(const std::vector<Field<float>>&, int, const GopMotion&,
                                               const MotionKeys&, const Gop&, double);
template double MotionTransform::inverse_error(const std::vector<Field<std::int32_t>>&, int, const GopMotion&,
                                               const MotionKeys&, const Gop&, double);

}  // namespace trivelet
