// Estimates on the device the bits of a GOP with its motion and without it, for Motion::kAuto, and with predicted keys
// and without them (codec/rate/coding_cost.h). One GOP at a time, which is lifted for that. If motion wins, a slot of
// the pipeline continues from the lifted samples.
#pragma once

#include <memory>
#include <vector>

#include "gpu/motion/motion.h"
#include "gpu/pipeline/coding_cost.h"
#include "gpu/pipeline/key_coding.h"
#include "gpu/pipeline/transforms.h"

namespace trivelet::gpu {

class GopWeighing {
 public:
  explicit GopWeighing(const StreamHeader& header) : header_(header) {}
  ~GopWeighing() { forget(cudaStreamSynchronize(stream_.get())); }

  /// Takes the memory that begin() needs for such GOPs. `still` null: only keys are weighed.
  void reserve(const GopShape* still, const GopShape& moving, const GopChoices& choices, const GopMotion& motion);
  /// `samples`: on the device, until done() is over. `lifting` is this GOP's then, and `keys`, null in streams without
  /// predicted ones. The one before must have ended.
  void begin(const GopShape* still, const GopShape& moving, const GopChoices& choices, const std::byte* samples,
             const GopMotion& motion, DeviceMotion& lifting, DeviceKeyCoding* keys, ThreadPool* pool);
  const Event& done() const { return done_; }
  /// Squared errors of samples; the bits of motion are not among them.
  struct Costs {
    double still = 0;
    double moving = 0;
    bool predicts_keys = false;
  };
  /// Waits for them. `motion` as begin() had it.
  Costs end(const GopMotion& motion) const;
  std::size_t device_bytes() const;

 private:
  struct Side {
    const GopShape* shape = nullptr;
    std::unique_ptr<GopTransforms<float>> real;
    std::unique_ptr<GopTransforms<std::int32_t>> integer;
    DeviceCodingCost cost;
  };
  void prepare(Side& side, const GopShape& shape, const GopChoices& choices);
  template <class T>
  void run(GopTransforms<T>* still, GopTransforms<T>& moving, const std::byte* samples, const MotionOfGop& gop_motion,
           DeviceMotion& lifting);

  StreamHeader header_;
  Stream stream_;
  Event done_;
  Side still_, moving_;
  DeviceBuffer<std::byte> coefficients_;  // of either, one after the other
  std::vector<std::uint8_t> frame_gains_;
  DeviceBuffer<float> steps_;  // as transforms ask for them, which do not read them; then gains
  PinnedBuffer<float> host_gains_;
  MotionUpload upload_;
  DeviceKeyCoding* keys_ = nullptr;
  bool weighs_still_ = false;
};

}  // namespace trivelet::gpu
