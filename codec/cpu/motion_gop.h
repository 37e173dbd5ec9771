// What a backend on the CPU does with GOPs that have motion: samples become integers, these are lifted along the
// motion, and back. In between stands the transform in space, which does not know of it.
#pragma once

#include <memory>
#include <vector>

#include "codec/backend.h"
#include "codec/motion/motion.h"
#include "codec/motion/motion_lift.h"
#include "codec/motion/motion_search.h"
#include "codec/transform/dwt.h"

namespace trivelet {

/// The key frame that a GOP leaves to the one behind it: per component, its states; none where it has no such frame.
struct MotionKey {
  std::vector<KeyStates> components;
  bool empty() const { return components.empty(); }
};

/// The keys of a GOP that is transformed, as MotionBorders has them for each component.
struct MotionKeys {
  const MotionKey* before = nullptr;  ///< null or empty: there is none
  MotionKey* own = nullptr;           ///< set to what this GOP leaves; null: not wanted
  const MotionKey* own_exact = nullptr;
};

/// The memory of coefficients for integers: they are lifted where the coefficients stand before or after. What is in it
/// is of one kind at a time, and MotionKernels turn it into the other.
inline Field<std::int32_t> as_integers(const Field<std::int32_t>& field) { return field; }
inline Field<std::int32_t> as_integers(const Field<float>& field) {
  return {reinterpret_cast<std::int32_t*>(field.data), field.shape, field.row_stride, field.frame_stride};
}

/// Whether a GOP of so many frames can have motion; with Motion::kOn it then has.
bool may_move(const StreamHeader& header, int frames, const GopChoices& choices);

class MotionTransform {
 public:
  /// `effort`: of the search.
  MotionTransform(const StreamHeader& header, ThreadPool& pool, SimdLevel simd, Effort effort = Effort::kMedium)
      : header_(header), pool_(pool), simd_(simd), effort_(effort) {}

  /// Samples minus offset, after the colour transform, into memory for all places, of each component. `before`: for
  /// open GOPs.
  void load(const Gop& gop, const MotionPlaces& places, const MotionKey& before,
            const std::vector<Field<std::int32_t>>& memory);
  /// Of what was loaded and not transformed, the last frame, as a MotionKey of which load() can make use; none where
  /// the GOP leaves no key frame.
  MotionKey last_frame();
  /// The same of a GOP that was not loaded.
  MotionKey last_frame_of(const Gop& gop, const MotionPlaces& places);
  /// The motion of what was loaded, with its sections. `closes`: as without_before() leaves it.
  std::shared_ptr<const GopMotion> search(float step, bool closes);
  /// The same by another searcher, of a GOP that need not be loaded. `before`: for open GOPs.
  std::shared_ptr<const GopMotion> search(const Gop& gop, const MotionPlaces& places, const MotionKey& before,
                                          float step, bool closes, MotionSearcher& searcher) const;
  /// What to search with for this quantiser step.
  MotionSearchParams search_params(float step, int levels, bool may_close = false) const;
  /// What was found with them, and its sections.
  std::shared_ptr<const GopMotion> with_sections(GopMotion&& found, float step) const;
  /// A component of what was loaded as the transform along time leaves it, in the same memory: of floats if `real`.
  void forward(const GopMotion& motion, int component, const MotionKeys& keys, bool real);

  /// Samples from the components after the inverse transform in space, of a GOP decoded so much smaller; `gains` as for
  /// inverse_transform(). The fields' memory is used up. Of the first components only, where there are fewer fields.
  template <class T>
  void inverse(const std::vector<Field<T>>& fields, const std::vector<float>& gains, const GopMotion& motion,
               const Reduction& reduction, const MotionKeys& keys, Gop& gop);
  /// The squared error of these samples, of the components from `first` on as `fields` has them, whose memory is used
  /// up; of a colour transform all three. `sum` is what the components before have.
  template <class T>
  double inverse_error(const std::vector<Field<T>>& fields, int first, const GopMotion& motion, const MotionKeys& keys,
                       const Gop& gop, double sum);
  /// correlate_motion() of a component's floats, in place.
  void correlate(const Field<float>& field, const GopMotion& motion, int component) const;

 private:
  /// Samples minus offset of a component, from its first frame on, in the same memory.
  template <class T>
  Field<std::int32_t> inverse_time(const Field<T>& from, float gain, int component, const GopMotion& motion,
                                   const Reduction& reduction, const MotionKeys& keys);
  /// What a component passes from GOP to GOP.
  MotionBorders borders(const MotionKeys& keys, const GopMotion& motion, int component) const;
  MotionScale scale_of(int component, int reduced) const;

  const StreamHeader& header_;
  ThreadPool& pool_;
  SimdLevel simd_;
  Effort effort_;
  MotionPlaces places_;                      // of what was loaded
  std::vector<Field<std::int32_t>> loaded_;  // per component
};

}  // namespace trivelet
