// The temporal transform of GOPs with motion on the CPU: samples become integers, which are lifted along the motion
// (motion_lift.h), and back. The spatial transform lies in between and does not depend on the motion.
#pragma once

#include <memory>
#include <vector>

#include "codec/backend.h"
#include "codec/motion/motion.h"
#include "codec/motion/motion_frames.h"
#include "codec/motion/motion_lift.h"
#include "codec/motion/motion_search.h"
#include "codec/transform/dwt.h"

namespace trivelet {

/// The key frame that a GOP leaves for the next one: its states per component; empty where the GOP leaves none. In
/// streams with predicted keys the last state is the low key.
struct MotionKey {
  std::vector<KeyStates> components;
  std::vector<NarrowKeyStates> narrow;  ///< decoders: states in 16 bits, which are then empty in `components`
  bool empty() const { return components.empty(); }
};

/// The key frames that a GOP's transform uses and leaves, as MotionBorders has them for each component. `own` may be
/// `before`: it is then replaced.
struct MotionKeys {
  const MotionKey* before = nullptr;  ///< null or empty: there is none
  MotionKey* own = nullptr;           ///< receives the key frame that this GOP leaves; null: not wanted
  const MotionKey* own_exact = nullptr;
  const MotionKey* low = nullptr;  ///< has the low key that keys are predicted from; null or empty: there is none
};

/// The memory of coefficients as integers: lifting works in place. The memory holds one kind of number at a time, and
/// MotionKernels convert between them.
inline Field<std::int32_t> as_integers(const Field<std::int32_t>& field) { return field; }
inline Field<std::int32_t> as_integers(const Field<float>& field) {
  return {reinterpret_cast<std::int32_t*>(field.data), field.shape, field.row_stride, field.frame_stride};
}

/// Whether a GOP of `frames` frames can have motion. With Motion::kOn it then has motion.
bool may_move(const StreamHeader& header, int frames, const GopChoices& choices);

class MotionTransform {
 public:
  /// `effort` and `keys_in_place`: of the motion search.
  MotionTransform(const StreamHeader& header, ThreadPool& pool, SimdLevel simd, Effort effort = Effort::kMedium,
                  bool keys_in_place = false)
      : header_(header), pool_(pool), simd_(simd), effort_(effort), keys_in_place_(keys_in_place) {}

  /// Writes samples minus offset, after the colour transform, into the memory of each component, for all places.
  /// `before`: for open GOPs.
  void load(const Gop& gop, const MotionPlaces& places, const MotionKey& before,
            const std::vector<Field<std::int32_t>>& memory);
  /// The last frame that was loaded, as a MotionKey for load(); empty where the GOP leaves no key frame. Call it before
  /// forward().
  MotionKey last_frame();
  /// The same for a GOP that was not loaded.
  MotionKey last_frame_of(const Gop& gop, const MotionPlaces& places);
  /// Finds the motion of what was loaded, and codes its sections. `closes`: make it closed with without_before().
  std::shared_ptr<GopMotion> search(float step, bool closes);
  /// The same with another searcher, for a GOP that need not be loaded. `before`: for open GOPs.
  std::shared_ptr<GopMotion> search(const Gop& gop, const MotionPlaces& places, const MotionKey& before, float step,
                                    bool closes, MotionSearcher& searcher) const;
  /// The parameters of a search for this quantiser step and number of temporal levels.
  MotionSearchParams search_params(float step, int levels, bool may_close = false) const;
  /// The motion that a search found, with its coded sections.
  std::shared_ptr<GopMotion> with_sections(GopMotion&& found, float step) const;
  /// The temporal transform of one loaded component, in the same memory; the result is floats if `real`. `low`, if not
  /// null, gets the frames of the lowest temporal band as integers, one after the other.
  void forward(const GopMotion& motion, int component, const MotionKeys& keys, bool real,
               std::vector<std::int32_t>* low = nullptr);

  /// Makes samples of the components from `first` on, one for each field, after the inverse spatial transform, for a
  /// GOP that is decoded at a reduced size; `gains` as for inverse_transform(). Overwrites the fields. Components of a
  /// colour transform come all three at once.
  template <class T>
  void inverse(const std::vector<Field<T>>& fields, int first, const std::vector<float>& gains, const GopMotion& motion,
               const Reduction& reduction, const MotionKeys& keys, Gop& gop);
  /// Undoes the temporal transform of the frames of one component and leaves `keys.own`. Where `reduction` leaves out
  /// all levels, that is the low key alone.
  void inverse_time(MotionFrames& frames, int component, const GopMotion& motion, const Reduction& reduction,
                    const MotionKeys& keys);
  /// The same, and makes samples of them, which frees them. Not for components of a colour transform. `allocate`: for
  /// samples that were released, see Gop::plane_frame().
  void inverse(MotionFrames& frames, int component, const GopMotion& motion, const Reduction& reduction,
               const MotionKeys& keys, Gop& gop, const SampleAllocator& allocate);
  /// Adds to `sum` the squared error of these samples, for the components from `first` on, one per field. Components of
  /// a colour transform come all three at once. Overwrites the fields. `sum` holds the errors of the components before.
  template <class T>
  double inverse_error(const std::vector<Field<T>>& fields, int first, const GopMotion& motion, const MotionKeys& keys,
                       const Gop& gop, double sum);
  /// How a component is lifted at the full size.
  MotionComponent component(int c, bool real) const;
  /// Applies correlate_motion() to a component's floats, in place.
  void correlate(const Field<float>& field, const GopMotion& motion, int component) const;

 private:
  /// The components of pictures as lifting takes them, in the same memory.
  template <class T>
  Field<std::int32_t> to_integers(const Field<T>& from, float gain) const;
  /// Samples minus offset of a component, from its first frame on, in the same memory.
  template <class T>
  Field<std::int32_t> inverse_time(const Field<T>& from, float gain, int component, const GopMotion& motion,
                                   const Reduction& reduction, const MotionKeys& keys);
  /// The key frames that a component takes over and passes on.
  MotionBorders borders(const MotionKeys& keys, const GopMotion& motion, int component) const;
  MotionScale scale_of(int component, int reduced) const;

  const StreamHeader& header_;
  ThreadPool& pool_;
  SimdLevel simd_;
  Effort effort_;
  bool keys_in_place_;
  MotionPlaces places_;                      // of what was loaded
  std::vector<Field<std::int32_t>> loaded_;  // per component
};

}  // namespace trivelet
