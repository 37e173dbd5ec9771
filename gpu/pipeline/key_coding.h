// Predicted keys in the encoder, on the device (codec/cpu/key_coding.h): the same bits.
//
// Only this depends on the GOP before: a frame in space for each key, forwards, and back for those that are referred
// to. The caller begins and ends the DeviceMotion around each call, so that GOPs take turns.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "gpu/motion/motion.h"
#include "gpu/pipeline/coding_cost.h"
#include "gpu/pipeline/transforms.h"

namespace trivelet::gpu {

class DeviceKeyCoding {
 public:
  explicit DeviceKeyCoding(const StreamHeader& header);

  /// Makes ready for GOPs of this shape with these steps. The shape must live as long as it is used.
  void prepare(const GopShape& shape, float step, float rounding_step);
  /// The lowest band of a GOP as integers, for DeviceMotion::from_samples().
  std::int32_t* keys() { return keys_.data(); }
  /// Finds the differences of keys to their predictions, and their sums if they are wanted.
  void predict(const MotionOfGop& motion, DeviceMotion& lifting, bool sums, const Stream& stream);
  /// Puts the differences into the values that were lifted, if the keys are predicted, and the decoded low key behind
  /// the states of the key frame.
  void finish(const MotionOfGop& motion, DeviceMotion& lifting, const Stream& stream);

  /// Once the stream has done predict(). `sums`: those of the GOP whose keys stand alone; they become those of the GOP
  /// with predicted keys if that pays.
  bool pays(std::vector<CodingSums>& sums, const GopMotion& motion) const;
  std::size_t device_bytes() const;

 private:
  /// A subband of the lowest temporal band.
  struct Band {
    int component = 0;
    CoefficientLayout::Band layout;  // in the coefficients of a frame
    float step = 1, inverse = 1, rounding_step = 1, rounding_inverse = 1, lambda = 0;
    std::size_t sum = 0;  // of its first frame among those of a GOP
  };

  std::size_t samples() const { return origin_.back(); }
  std::int32_t* key(DeviceBuffer<std::int32_t>& of, int number) const {
    return of.data() + static_cast<std::size_t>(number) * samples();
  }
  void prepare_sums(int keys, const Stream& stream);
  void transform(const std::int32_t* from, const Stream& stream);
  void sum(int kind, int number, int keys, const Stream& stream);
  void round(const Stream& stream);
  void decode(const std::int32_t* own, const std::int32_t* difference, int component, std::int32_t* out,
              const Stream& stream);
  float* coefficients() { return reinterpret_cast<float*>(coefficients_.data()); }

  StreamHeader header_;
  Stream setup_;
  std::unique_ptr<GopShape> frame_;  // the shape of a key alone
  std::unique_ptr<GopTransforms<float>> real_;
  std::unique_ptr<GopTransforms<std::int32_t>> integer_;
  std::vector<std::size_t> origin_;  // of a component's samples in a frame; one more at the end
  const GopShape* shape_ = nullptr;
  float step_ = 0, rounding_step_ = 0;
  std::vector<Band> bands_;
  DeviceBuffer<std::int32_t> keys_, differences_;  // [key][component]
  DeviceBuffer<std::int32_t> pair_;                // [component]: a key and the one before, as decoded
  DeviceBuffer<std::int32_t> values_;              // of a key
  DeviceBuffer<std::int32_t> coefficients_, rounded_;
  DeviceBuffer<float> steps_;  // as transforms ask for them, which do not read them
  int summed_ = 0;             // keys
  bool tiles_are_there_ = false;
  PinnedBuffer<CodingTile> host_tiles_;
  DeviceBuffer<CodingTile> tiles_;
  std::size_t tile_count_ = 0;
  DeviceBuffer<unsigned long long> sums_;  // [before rounding, behind][key][band]: a pair
  PinnedBuffer<unsigned long long> host_sums_;
};

}  // namespace trivelet::gpu
