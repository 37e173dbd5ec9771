// The forward transform of GOPs, with and without motion (see gop_transform.h).
#include "codec/cpu/gop_transform.h"

#include <type_traits>
#include <utility>

#include "codec/rate/coding_cost.h"
#include "codec/transform/colour.h"

namespace trivelet {

namespace {

MotionPlaces places_for(const Gop& gop, const GopChoices& choices) {
  return {gop.frames(), choices.key, choices.levels};
}

void set_times(const Gop& gop, CoefficientGop& out) {
  out.frames = gop.frames();
  out.source_frames = gop.frames();
  out.times.assign(gop.times().begin(), gop.times().begin() + gop.frames());
}

}  // namespace

void GopTransform::next_gop() {
  std::swap(key_before_, key_);
  std::swap(last_before_, last_);
  last_ = {};
}

void GopTransform::clear_key() {
  key_ = {};
  last_ = {};
}

void GopTransform::keep_low_key(CoefficientGop& coefficients, float step) {
  if (!context_.header.predicted_keys || key_.empty()) return;
  const StageTimer timer(time_, context_.pool_times());
  key_coding_.keep(coefficients, step, key_);
}

GopChoices GopTransform::with_possible_key(GopChoices choices) {
  const bool left_key = !key_before_.empty();
  search_key_ = choices.search_key(left_key);
  choices.key = choices.key_behind(left_key);
  return choices;
}

void GopTransform::transform(const Gop& gop, const GopChoices& choices, CoefficientGop& out) {
  clear_key();
  transform(gop, choices, {&key_before_, &key_, nullptr}, out);
  if (!out.motion && may_have_motion(gop, choices)) last_ = motion_.last_frame_of(gop, places_for(gop, choices));
}

void GopTransform::transform_alone(const Gop& gop, const GopChoices& choices, CoefficientGop& out) {
  MotionKey unused;
  search_key_ = choices.key;
  transform(gop, choices, {nullptr, &unused, nullptr}, out);
}

void GopTransform::transform_again(const Gop& gop, const GopChoices& choices, CoefficientGop& out) {
  if (!out.motion) return transform_still(gop, out);
  const StageTimer timer(time_, context_.pool_times());
  const std::shared_ptr<const GopMotion> motion = out.motion;
  load(gop, choices, key_before_, out);
  out.motion = motion;
  forward(choices, {&key_before_, &key_, nullptr}, out);
}

void GopTransform::find_motion(const Gop& gop, const GopChoices& choices, CoefficientGop& out) {
  if (searcher_) {
    out.motion = search_elsewhere(gop, choices);
    key_ = motion_.last_frame_of(gop, places_for(gop, choices));
  } else {
    search(gop, choices, out);
    key_ = motion_.last_frame();
  }
}

void GopTransform::transform(const Gop& gop, const GopChoices& choices, const MotionKeys& keys, CoefficientGop& out) {
  const StreamHeader& header = context_.header;
  out.frame_gains = choices.frame_gains;
  out.motion = nullptr;
  const bool moves = may_have_motion(gop, choices);
  if (!moves || choices.motion == Motion::kAuto) transform_still(gop, out);
  if (!moves) return;
  const double still =
      choices.motion == Motion::kAuto ? coding_cost(header, out, choices.step, context_.pool, context_.simd) : 0;
  transform_moving(gop, choices, keys, out);
  if (choices.motion == Motion::kOn ||
      still > coding_cost(context_.headers.of(out.motion.get()), out, choices.step, context_.pool, context_.simd) +
                  motion_cost(header, *out.motion, choices.step))
    return;
  *keys.own = {};
  out.frame_gains = choices.frame_gains;
  out.motion = nullptr;
  transform_still(gop, out);
}

// ------------------------------------------------------------------------------------------------------ without motion

void GopTransform::transform_still(const Gop& gop, CoefficientGop& out) {
  context_.header.lossless ? transform_still_as<std::int32_t>(gop, out) : transform_still_as<float>(gop, out);
}

template <class T>
void GopTransform::transform_still_as(const Gop& gop, CoefficientGop& out) {
  const StageTimer timer(time_, context_.pool_times());
  const Reduced r(context_.header, {}, gop.frames());
  lay_out<T>(r, gop.frames(), 0, out);
  set_times(gop, out);
  transform_components<T>(gop, out.frame_gains, 0, context_.fields<T>(out, r));
}

template <class T>
void GopTransform::transform_group(const Gop& gop, const std::vector<std::uint8_t>& frame_gains, int first,
                                   const std::vector<Field<T>>& fields) {
  const StageTimer timer(time_, context_.pool_times());
  transform_components<T>(gop, frame_gains, first, fields);
}

template <class T>
void GopTransform::transform_components(const Gop& gop, const std::vector<std::uint8_t>& frame_gains, int first,
                                        const std::vector<Field<T>>& fields) {
  const StreamHeader& header = context_.header;
  std::vector<float> gains;
  for (const std::uint8_t g : frame_gains) gains.push_back(static_cast<float>(g) / 64.0f);
  std::size_t i = 0;
  if (first == 0 && header.colour_transform) {
    forward_colour<T>(gop, header.components[0].offset, fields[0], fields[1], fields[2], context_.pool);
    for (; i < 3; ++i)
      forward_transform<T>(fields[i], header.decomposition(static_cast<int>(i)), context_.pool, context_.simd, gains);
  }
  for (; i < fields.size(); ++i) {
    const int c = first + static_cast<int>(i);
    forward_transform<T>(gop.plane(c), header.components[static_cast<std::size_t>(c)].offset, fields[i],
                         header.decomposition(c), context_.pool, context_.simd, gains);
  }
}

// --------------------------------------------------------------------------------------------------------- with motion

void GopTransform::transform_moving(const Gop& gop, const GopChoices& choices, const MotionKeys& keys,
                                    CoefficientGop& out) {
  const StageTimer timer(time_, context_.pool_times());
  out.frame_gains.clear();
  search(gop, choices, out);
  forward(choices, keys, out);
}

// Finds the motion of a GOP. Its samples are in the memory of the coefficients.
void GopTransform::search(const Gop& gop, const GopChoices& choices, CoefficientGop& out) {
  GopChoices searched = choices;
  searched.key = search_key_;
  load(gop, searched, key_to_search(), out);
  found_ = searcher_ ? search_elsewhere(gop, choices) : motion_.search(choices.step, search_key_ != choices.key);
  out.motion = found_;
}

std::shared_ptr<GopMotion> GopTransform::search_elsewhere(const Gop& gop, const GopChoices& choices) const {
  const MotionPlaces places(gop.frames(), search_key_, choices.levels);
  return motion_.search(gop, places, key_to_search(), choices.step, search_key_ != choices.key, *searcher_);
}

// The frame before an open GOP, or before one that is searched as an open one.
const MotionKey& GopTransform::key_to_search() const {
  const MotionKey& before = key_before_.empty() ? last_before_ : key_before_;
  require(search_key_ != GopKey::kOpen || !before.empty(), ErrorKind::kInternal,
          "an open GOP behind one without a key");
  return before;
}

void GopTransform::load(const Gop& gop, const GopChoices& choices, const MotionKey& before, CoefficientGop& out) {
  context_.header.lossless ? load_as<std::int32_t>(gop, choices, before, out)
                           : load_as<float>(gop, choices, before, out);
}

template <class T>
void GopTransform::load_as(const Gop& gop, const GopChoices& choices, const MotionKey& before, CoefficientGop& out) {
  const MotionPlaces places = places_for(gop, choices);
  const Reduced r(context_.headers.of(places), {}, gop.frames());
  lay_out<T>(r, gop.frames(), 0, out);
  set_times(gop, out);
  std::vector<Field<std::int32_t>> integers;
  for (const Field<T>& field : context_.fields<T>(out, r)) integers.push_back(as_integers(field));
  motion_.load(gop, places, before, integers);
}

// Transforms what was loaded, along the motion that was found.
void GopTransform::forward(const GopChoices& choices, const MotionKeys& keys, CoefficientGop& out) {
  context_.header.lossless ? forward_as<std::int32_t>(choices, keys, out) : forward_as<float>(choices, keys, out);
}

template <class T>
void GopTransform::forward_as(const GopChoices& choices, const MotionKeys& keys, CoefficientGop& out) {
  const Reduced r(context_.headers.of(out.motion.get()), {}, out.frames);
  key_coding_.begin();
  for (int c = 0; c < context_.components(); ++c) {
    std::vector<std::int32_t>* const low = out.motion->predicts_keys ? &key_coding_.keys(c) : nullptr;
    motion_.forward(*out.motion, c, keys, std::is_floating_point_v<T>, low);
    forward_transform<T>(field_of<T>(out, c, r.shape(c)), in_space(r.decomposition(c)), context_.pool, context_.simd);
  }
  if (!out.motion->predicts_keys) return;
  if (keys.before)
    key_coding_.decide<T>(out, *found_, motion_, *keys.before, choices);
  else
    found_->leave_keys();  // of a GOP alone they would depend on rounding
}

template void GopTransform::transform_group(const Gop&, const std::vector<std::uint8_t>&, int,
                                            const std::vector<Field<float>>&);
template void GopTransform::transform_group(const Gop&, const std::vector<std::uint8_t>&, int,
                                            const std::vector<Field<std::int32_t>>&);

}  // namespace trivelet
