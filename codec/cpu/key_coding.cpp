// The closed loop of predicted keys (see key_coding.h).
#include "codec/cpu/key_coding.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "codec/entropy/dense/coefficient_kernels.h"
#include "codec/entropy/dense/rounding.h"
#include "codec/motion/motion_kernels.h"
#include "codec/motion/motion_lift.h"
#include "codec/transform/quantiser.h"

namespace trivelet {

/// A frame of the lowest temporal band.
struct KeyCoding::Key {
  int place;
  int frame;  // of the band
};

/// A component of a GOP and its lowest temporal band.
template <class T>
struct KeyCoding::Component {
  int index;
  Field<T> field;
  Decomposition in_space;
  SubbandTable table;
  StepTable steps;
  std::vector<std::size_t> first_sum;  // of each subband, in the order of coding_cost()
  std::vector<Key> keys;

  std::size_t samples() const { return static_cast<std::size_t>(field.frame_stride); }
  Field<T> frame(const Key& key) const {
    Field<T> f = field;
    f.data = field.row(key.place, 0);
    f.shape.frames = 1;
    return f;
  }
  /// Calls f(the number of a subband, that) for those of the lowest temporal band that have coefficients.
  template <class F>
  void for_bands(const F& f) const {
    for (std::size_t i = 0; i < table.all().size(); ++i)
      if (table.all()[i].temporal_band == 0 && table.all()[i].shape.samples() > 0) f(i, table.all()[i]);
  }
};

namespace {

template <class T>
Field<T> frame_of_band(Field<T> band, int frame) {
  band.data = band.row(frame, 0);
  band.shape.frames = 1;
  return band;
}

}  // namespace

void KeyCoding::begin() {
  keys_.resize(static_cast<std::size_t>(context_.components()));
  predictions_.resize(keys_.size());
  for (auto& prediction : predictions_) prediction.clear();
}

template <class T>
KeyCoding::Component<T> KeyCoding::component(CoefficientGop& gop, const GopMotion& motion, int c, float step) const {
  const StreamHeader& header = context_.headers.of(&motion);
  const Reduced r(header, {}, gop.frames);
  const SubbandTable table(header.component_shape(c, gop.frames), header.decomposition(c), header.lossless);
  Component<T> of{c,
                  field_of<T>(gop, c, r.shape(c)),
                  in_space(r.decomposition(c)),
                  table,
                  StepTable(table, header.lossless ? 1.0f : step, header.components[static_cast<std::size_t>(c)]),
                  {},
                  {}};
  std::size_t sums = 0;
  for_coding_bands(header, gop.frames, [&](int component, const SubbandTable& bands, std::size_t i) {
    if (component == c) {
      of.first_sum.resize(bands.all().size());
      of.first_sum[i] = sums;
    }
    sums += static_cast<std::size_t>(bands.all()[i].shape.frames);
  });
  for (int i = 0; i < motion.places.keys(); ++i) of.keys.push_back({motion.places.key_place(i), i});
  return of;
}

// Makes the coefficients of a key from samples as lifting leaves them.
template <class T>
void KeyCoding::transform(const Component<T>& of, const std::int32_t* samples, const Key& key) const {
  const Field<T> frame = of.frame(key);
  std::int32_t* const to = as_integers(frame).data;
  std::copy_n(samples, of.samples(), to);
  if constexpr (std::is_floating_point_v<T>) motion_kernels(context_.simd).to_real(to, static_cast<int>(of.samples()));
  forward_transform<T>(frame, of.in_space, context_.pool, context_.simd);
}

template <class T>
void KeyCoding::add_sums(const Component<T>& of, const Key& key, std::vector<CodingSums>& sums) const {
  of.for_bands([&](std::size_t i, const Subband& band) {
    const std::size_t n = of.first_sum[i] + static_cast<std::size_t>(key.frame);
    sums.resize(std::max(sums.size(), n + 1));
    sums[n] = coding_sums(subband_view(of.field, band), key.frame, of.steps.inverse[i], context_.simd);
  });
}

void KeyCoding::round(const Component<float>& of, const Key& key, float step) const {
  if (step == 0) return;
  const StepTable steps(of.table, step, context_.header.components[static_cast<std::size_t>(of.index)]);
  std::vector<float> memory;
  of.for_bands([&](std::size_t i, const Subband& band) {
    round_by_cost(frame_of_band(subband_view(of.field, band), key.frame), steps.step[i], steps.inverse[i],
                  rounding_lambda(band, of.table.decomposition()), memory);
  });
}

// What a decoder of all layers makes of a key. An empty `prediction` is none.
void KeyCoding::decode(const Component<float>& of, const Key& key, const std::vector<std::int32_t>& prediction,
                       std::int32_t* out) const {
  const Field<float> coded = of.frame(key);
  LargeVector<float> memory(of.samples());
  Field<float> decoded = coded;
  decoded.data = memory.data();
  decoded.row_stride = coded.shape.width;
  of.for_bands([&](std::size_t i, const Subband& band) {
    CutRow<float> row;
    row.kept[0] = row.kept[1] = -1;
    row.offset[0] = row.offset[1] = reconstruction_offset_of<float>(context_.header.centroid, 0);
    row.inverse_step = of.steps.inverse[i];
    row.step = of.steps.step[i];
    const Field<float> from = frame_of_band(subband_view(of.field, band), key.frame);
    for (int y = 0; y < from.shape.height; ++y)
      coefficient_kernels<float>(context_.simd)
          .cut(row, from.row(0, y), decoded.data + (from.row(0, y) - coded.data), from.shape.width);
  });
  inverse_transform<float>(decoded, of.in_space, context_.pool, context_.simd);
  const Field<std::int32_t> samples = as_integers(decoded);
  motion_kernels(context_.simd).from_real(samples.data, static_cast<int>(of.samples()), 1 << kMotionFraction);
  for (std::size_t i = 0; i < of.samples(); ++i)
    out[i] = prediction.empty() ? samples.data[i] : wrap_add(samples.data[i], prediction[i]);
}

// Puts the differences of a component's keys into its coefficients, and their sums into `sums`.
template <class T>
void KeyCoding::predict(const Component<T>& of, const GopMotion& motion, const MotionComponent& lifted,
                        const MotionKey& before, float rounding_step, std::vector<CodingSums>& sums) {
  const std::size_t n = of.samples();
  const std::vector<std::int32_t>& keys = keys_[static_cast<std::size_t>(of.index)];
  std::vector<std::int32_t>& prediction = predictions_[static_cast<std::size_t>(of.index)];
  // The key before, as decoded, and the key itself.
  std::vector<std::int32_t> pair(2 * n);
  const Field<std::int32_t> field{
      pair.data(), {2, of.field.shape.height, of.field.shape.width}, of.field.row_stride, of.field.frame_stride};
  GopMotion one({2, GopKey::kFirst, 0}, context_.header.video.width, context_.header.video.height);
  if (motion.places.key == GopKey::kOpen)
    std::copy_n(before.components[static_cast<std::size_t>(of.index)].back().data(), n, pair.data());
  for (const Key& key : of.keys) {
    const std::int32_t* const samples = keys.data() + static_cast<std::size_t>(key.frame) * n;
    std::copy_n(samples, n, pair.data() + n);
    one.fields[1] = motion.fields[static_cast<std::size_t>(key.place)];
    prediction.clear();
    if (!one.fields[1].empty()) {
      predict_key(field, one, lifted, 1, false, context_.pool, context_.simd);
      transform(of, pair.data() + n, key);
      prediction.resize(n);
      for (std::size_t i = 0; i < n; ++i) prediction[i] = samples[i] - pair[n + i];
    }
    add_sums(of, key, sums);
    if (&key == &of.keys.back()) return;  // it is rounded with all other frames
    if constexpr (std::is_floating_point_v<T>) {
      round(of, key, rounding_step);
      decode(of, key, prediction, pair.data());
    } else {
      std::copy_n(samples, n, pair.data());
    }
  }
}

template <class T>
void KeyCoding::decide(CoefficientGop& gop, GopMotion& motion, const MotionTransform& transform,
                       const MotionKey& before, const GopChoices& choices) {
  const StreamHeader& header = context_.headers.of(&motion);
  std::vector<Component<T>> components;
  std::vector<CodingSums> alone, predicted;
  for (int c = 0; c < context_.components(); ++c) {
    const Component<T>& of = components.emplace_back(component<T>(gop, motion, c, choices.step));
    for (const Key& key : of.keys) add_sums(of, key, alone);
    predict(of, motion, transform.component(c, std::is_floating_point_v<T>), before, choices.rounding_step, predicted);
  }
  const auto cost = [&](std::vector<CodingSums>& sums) {
    std::size_t all = 0;
    for_coding_bands(header, gop.frames, [&](int, const SubbandTable& bands, std::size_t i) {
      all += static_cast<std::size_t>(bands.all()[i].shape.frames);
    });
    sums.resize(all);  // nothing of higher bands
    return coding_cost(header, gop.frames, {}, choices.step, sums);
  };
  const double section = cost_of_bytes(header, motion.sections.front().size(), choices.step);
  if (prediction_pays(cost(predicted) + section, cost(alone), motion.keys_in_place)) return;
  motion.leave_keys();
  for (const Component<T>& of : components) {
    predictions_[static_cast<std::size_t>(of.index)].clear();
    for (const Key& key : of.keys)
      this->transform(
          of, keys_[static_cast<std::size_t>(of.index)].data() + static_cast<std::size_t>(key.frame) * of.samples(),
          key);
  }
}

void KeyCoding::keep(CoefficientGop& gop, float step, MotionKey& key) {
  keys_.clear();
  for (int c = 0; c < context_.components() && !context_.header.lossless; ++c) {  // in lossless streams it is there
    const Component<float> of = component<float>(gop, *gop.motion, c, step);
    const auto i = static_cast<std::size_t>(c);
    decode(of, of.keys.back(), predictions_[i], key.components[i].back().data());
  }
  predictions_.clear();  // the memory of a frame or more, while the GOP is coded and measured
}

template void KeyCoding::decide<float>(CoefficientGop&, GopMotion&, const MotionTransform&, const MotionKey&,
                                       const GopChoices&);
template void KeyCoding::decide<std::int32_t>(CoefficientGop&, GopMotion&, const MotionTransform&, const MotionKey&,
                                              const GopChoices&);

}  // namespace trivelet
