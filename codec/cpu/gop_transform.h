// Transforms the samples of GOPs into coefficients on the CPU. Searches for motion and decides which GOPs have motion
// (Motion::kAuto). Keeps the key frames that pass from GOP to GOP.
#pragma once

#include <memory>
#include <vector>

#include "codec/cpu/cpu_context.h"
#include "codec/cpu/key_coding.h"
#include "codec/cpu/motion_gop.h"
#include "codec/threads/stage_timer.h"

namespace trivelet {

/// Used by one thread at a time. GOPs come in their order, each after next_gop().
class GopTransform {
 public:
  /// `searcher`: finds the motion vectors instead of the CPU; may be null.
  GopTransform(CpuContext& context, MotionSearcher* searcher)
      : context_(context),
        motion_(context.header, context.pool, context.simd, context.effort, context.keys_in_place),
        searcher_(searcher),
        key_coding_(context) {}

  void next_gop();
  /// Replaces the key by one that is possible, given what the GOP before has left.
  GopChoices with_possible_key(GopChoices choices);

  /// Makes the coefficients of a GOP whose choices are from with_possible_key(). It may come again.
  void transform(const Gop& gop, const GopChoices& choices, CoefficientGop& out);
  /// Makes the coefficients of a GOP that stands alone: it uses no key frame and leaves none.
  void transform_alone(const Gop& gop, const GopChoices& choices, CoefficientGop& out);
  /// Makes the coefficients of a GOP again, with the motion of `out` or without motion if it has none.
  void transform_again(const Gop& gop, const GopChoices& choices, CoefficientGop& out);
  /// Finds the motion of a GOP that is not coded. The memory of `out` may be used for its samples.
  void find_motion(const Gop& gop, const GopChoices& choices, CoefficientGop& out);
  /// Transforms components without motion from `first` on, one for each field.
  template <class T>
  void transform_group(const Gop& gop, const std::vector<std::uint8_t>& frame_gains, int first,
                       const std::vector<Field<T>>& fields);

  MotionTransform& motion() { return motion_; }
  /// The key frame that the GOP leaves, and that of the GOP before. Not quantised; empty: there is none.
  const MotionKey& key() const { return key_; }
  const MotionKey& key_before() const { return key_before_; }
  /// The GOP leaves no key frame.
  void clear_key();
  /// Streams with predicted keys: the low key of key() becomes the decoded one of these rounded coefficients.
  void keep_low_key(CoefficientGop& coefficients, float step);

  const StageTime& time() const { return time_; }

 private:
  bool may_have_motion(const Gop& gop, const GopChoices& choices) const {
    return may_move(context_.header, gop.frames(), choices);
  }
  void transform(const Gop& gop, const GopChoices& choices, const MotionKeys& keys, CoefficientGop& out);
  void transform_still(const Gop& gop, CoefficientGop& out);
  void transform_moving(const Gop& gop, const GopChoices& choices, const MotionKeys& keys, CoefficientGop& out);
  void search(const Gop& gop, const GopChoices& choices, CoefficientGop& out);
  std::shared_ptr<GopMotion> search_elsewhere(const Gop& gop, const GopChoices& choices) const;
  const MotionKey& key_to_search() const;
  void load(const Gop& gop, const GopChoices& choices, const MotionKey& before, CoefficientGop& out);
  void forward(const GopChoices& choices, const MotionKeys& keys, CoefficientGop& out);
  template <class T>
  void transform_still_as(const Gop& gop, CoefficientGop& out);
  template <class T>
  void transform_components(const Gop& gop, const std::vector<std::uint8_t>& frame_gains, int first,
                            const std::vector<Field<T>>& fields);
  template <class T>
  void load_as(const Gop& gop, const GopChoices& choices, const MotionKey& before, CoefficientGop& out);
  template <class T>
  void forward_as(const GopChoices& choices, const MotionKeys& keys, CoefficientGop& out);

  CpuContext& context_;
  MotionTransform motion_;
  MotionSearcher* searcher_;  // null: motion_ searches
  KeyCoding key_coding_;
  std::shared_ptr<GopMotion>
      found_;                     // that of the coefficients, which loses the motion of keys if they are not predicted
  MotionKey key_, key_before_;    // of the current GOP and of the one before
  MotionKey last_, last_before_;  // the last frames of GOPs that could have motion and have none
  GopKey search_key_ = GopKey::kFirst;  // of the current GOP
  StageTime time_;
};

}  // namespace trivelet
