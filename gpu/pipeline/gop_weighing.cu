// Transforms a GOP with motion and without it, and sums the estimated bits of both.

#include "gpu/pipeline/gop_weighing.h"

#include <algorithm>

namespace trivelet::gpu {

void GopWeighing::prepare(Side& side, const GopShape& shape, const GopChoices& choices) {
  if (side.shape != &shape) {
    const IdleMemory idle;  // the GOP before has ended
    side.shape = nullptr;
    side.real.reset();
    side.integer.reset();
    if (header_.lossless)
      side.integer = std::make_unique<GopTransforms<std::int32_t>>(shape);
    else
      side.real = std::make_unique<GopTransforms<float>>(shape);
    const std::size_t bytes = checked_mul(shape.coefficient_origin.back(), sizeof(float));
    if (coefficients_.size() < bytes) {
      coefficients_ = {};
      coefficients_ = DeviceBuffer<std::byte>(bytes);
    }
    const std::size_t steps = shape.step_origin.back() + static_cast<std::size_t>(shape.frames);
    if (steps_.size() < steps) {
      steps_ = {};
      steps_ = DeviceBuffer<float>(steps);
    }
    side.shape = &shape;
  }
  side.cost.prepare(shape, choices.step, stream_);
}

void GopWeighing::reserve(const GopShape* still, const GopShape& moving, const GopChoices& choices,
                          const GopMotion& motion) {
  if (still) prepare(still_, *still, choices);
  prepare(moving_, moving, choices);
  upload_.reserve(motion);
  stream_.synchronize();
}

void GopWeighing::begin(const GopShape* still, const GopShape& moving, const GopChoices& choices,
                        const std::byte* samples, const GopMotion& motion, DeviceMotion& lifting, DeviceKeyCoding* keys,
                        ThreadPool* pool) {
  weighs_still_ = still != nullptr;
  keys_ = keys;
  if (still) prepare(still_, *still, choices);
  if (keys) keys->prepare(moving, choices.step, choices.rounding_step);
  prepare(moving_, moving, choices);
  frame_gains_ = choices.frame_gains;
  if (still && !frame_gains_.empty() && !header_.lossless) {
    if (host_gains_.size() < frame_gains_.size()) host_gains_ = PinnedBuffer<float>(frame_gains_.size());
    std::transform(frame_gains_.begin(), frame_gains_.end(), host_gains_.data(),
                   [](std::uint8_t g) { return static_cast<float>(g) / 64.0f; });
    copy(steps_.data() + still->step_origin.back(), host_gains_.data(), frame_gains_.size(), cudaMemcpyHostToDevice,
         stream_);
  }
  upload_.submit(motion, 0, pool, stream_);
  const MotionOfGop gop_motion{motion.places, upload_.cells(), motion.places.key == GopKey::kOpen,
                               motion.predicts_keys};
  header_.lossless ? run(still_.integer.get(), *moving_.integer, samples, gop_motion, lifting)
                   : run(still_.real.get(), *moving_.real, samples, gop_motion, lifting);
  done_.record(stream_);
}

template <class T>
void GopWeighing::run(GopTransforms<T>* still, GopTransforms<T>& moving, const std::byte* samples,
                      const MotionOfGop& gop_motion, DeviceMotion& lifting) {
  auto* coefficients = reinterpret_cast<T*>(coefficients_.data());
  const bool gains = !frame_gains_.empty() && !header_.lossless;
  if (weighs_still_) {
    still->forward(samples, coefficients, steps_.data(),
                   gains ? steps_.data() + still_.shape->step_origin.back() : nullptr, stream_);
    still_.cost.begin(coefficients, stream_);
  }
  const GopShape& shape = *moving_.shape;
  lifting.begin(stream_);
  lifting.from_samples<T>(shape, gop_motion, samples, stream_, keys_ ? keys_->keys() : nullptr);
  for (int c = 0; c < static_cast<int>(shape.shapes.size()); ++c)
    moving.forward(lifting.values<T>(shape, c), c, coefficients, steps_.data(), stream_);
  if (gop_motion.predicts_keys) keys_->predict(gop_motion, lifting, true, stream_);
  lifting.end(stream_);
  moving_.cost.begin(coefficients, stream_);
}

GopWeighing::Costs GopWeighing::end(const GopMotion& motion) const {
  done_.synchronize();
  check(cudaGetLastError(), "a kernel that weighs a GOP");
  Costs costs;
  if (weighs_still_) costs.still = still_.cost.cost(frame_gains_, still_.cost.sums());
  std::vector<CodingSums> moving = moving_.cost.sums();
  costs.predicts_keys = motion.predicts_keys && keys_->pays(moving, motion);
  costs.moving = moving_.cost.cost({}, moving);
  return costs;
}

std::size_t GopWeighing::device_bytes() const {
  const auto side_bytes = [](const Side& side) {
    return (side.real ? side.real->device_bytes() : 0) + (side.integer ? side.integer->device_bytes() : 0) +
           side.cost.device_bytes();
  };
  return side_bytes(still_) + side_bytes(moving_) + coefficients_.size() + steps_.size() * sizeof(float) +
         upload_.device_bytes();
}

}  // namespace trivelet::gpu
