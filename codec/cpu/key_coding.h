// Predicted keys in the encoder (FORMAT.md "Predicted keys"): the frames of the lowest temporal band become differences
// to predictions from the decoded ones before them, where that costs less. Keeps what a decoder has of the last one for
// the next GOP.
#pragma once

#include <cstdint>
#include <vector>

#include "codec/cpu/cpu_context.h"
#include "codec/cpu/motion_gop.h"
#include "codec/rate/coding_cost.h"

namespace trivelet {

/// Used by one thread at a time. For each GOP with motion: begin(); keys() of each component and decide(), if its keys
/// may be predicted; and keep() once all coefficients are rounded.
class KeyCoding {
 public:
  explicit KeyCoding(CpuContext& context) : context_(context) {}

  void begin();
  /// The lowest band of a component after lifting, frame by frame; MotionTransform::forward() fills it.
  std::vector<std::int32_t>& keys(int component) { return keys_[static_cast<std::size_t>(component)]; }
  /// Predicts the keys in `gop`, which has the coefficients of the keys themselves, along the motion that was found for
  /// them, or removes that motion if the keys themselves cost less. `before` has the low key of the GOP before. All
  /// predicted keys but the last one are rounded.
  template <class T>
  void decide(CoefficientGop& gop, GopMotion& motion, const MotionTransform& transform, const MotionKey& before,
              const GopChoices& choices);
  /// Puts the decoded low key into `key`. The last key in `gop` is rounded.
  void keep(CoefficientGop& gop, float step, MotionKey& key);

 private:
  struct Key;
  template <class T>
  struct Component;

  template <class T>
  Component<T> component(CoefficientGop& gop, const GopMotion& motion, int c, float step) const;
  template <class T>
  void transform(const Component<T>& of, const std::int32_t* samples, const Key& key) const;
  template <class T>
  void add_sums(const Component<T>& of, const Key& key, std::vector<CodingSums>& sums) const;
  void round(const Component<float>& of, const Key& key, float step) const;
  void decode(const Component<float>& of, const Key& key, const std::vector<std::int32_t>& prediction,
              std::int32_t* out) const;
  template <class T>
  void predict(const Component<T>& of, const GopMotion& motion, const MotionComponent& lifted, const MotionKey& before,
               float rounding_step, std::vector<CodingSums>& sums);

  CpuContext& context_;
  std::vector<std::vector<std::int32_t>> keys_;         // by component, frame by frame
  std::vector<std::vector<std::int32_t>> predictions_;  // of the last key, by component; empty: it is not predicted
};

}  // namespace trivelet
