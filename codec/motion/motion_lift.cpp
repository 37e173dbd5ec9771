// The order of the lifting steps, and the key frames between GOPs (motion_lift.h).
#include "codec/motion/motion_lift.h"

#include <algorithm>
#include <type_traits>
#include <utility>
#include <vector>

#include "codec/motion/field_frames.h"
#include "codec/motion/lifted_component.h"
#include "codec/motion/motion_frames.h"
#include "codec/motion/motion_predict.h"
#include "codec/motion/motion_update.h"

namespace trivelet {

namespace {

/// The key frames that a component takes from the GOP before and passes on. S: as of LiftedComponent.
template <class S>
class KeyPassing {
 public:
  KeyPassing(const LiftedComponent<S>& lifted, const MotionBorders& borders) : lifted_(lifted), borders_(borders) {}

  /// Keeps the own key frame for levels that only the next GOP has: they use its state at the coarsest level here.
  void keep_coarser() {
    if (!leaves_key()) return;
    for (auto l = static_cast<std::size_t>(lifted_.motion.places.levels); l < borders_.own->size(); ++l) keep_key(l);
  }

  /// Copies the low key of the GOP before to place 0, for predicted keys.
  void pass_low_key() const {
    if (lifted_.motion.places.key != GopKey::kOpen) return;
    if (!read_state(borders_.low_key, borders_.narrow_low_key))
      for (int y = 0; y < lifted_.height(); ++y) std::fill_n(lifted_.row(0, y), lifted_.width(), S{0});
  }

  /// Copies the key frame of the GOP before to place 0 and keeps the own one, both in the state that level l predicts
  /// from. In this order, because both may have the same memory. Where 16 bits do not hold the first, that is all.
  void pass(int l) {
    const auto i = static_cast<std::size_t>(l);
    if (lifted_.motion.places.key == GopKey::kOpen) take_key(i);
    if (leaves_key() && !lifted_.overflows) keep_key(i);
  }

 private:
  std::size_t row_samples() const { return static_cast<std::size_t>(lifted_.width()); }
  std::size_t row_at(int y) const { return static_cast<std::size_t>(y) * row_samples(); }
  bool leaves_key() const { return borders_.own && lifted_.motion.places.ends_with_key(); }

  // Copies a state to place 0; false where there is none.
  bool read_state(const std::vector<std::int32_t>* wide, const std::vector<std::int16_t>* narrow) const {
    if (narrow && !narrow->empty()) {
      for (int y = 0; y < lifted_.height(); ++y)
        std::copy_n(narrow->data() + row_at(y), row_samples(), lifted_.row(0, y));
      return true;
    }
    if (!wide || wide->empty()) return false;
    for (int y = 0; y < lifted_.height(); ++y)
      lifted_.write(wide->data() + row_at(y), lifted_.row(0, y), lifted_.width());
    return true;
  }

  void take_key(std::size_t l) {
    const int last = lifted_.motion.places.count - 1;
    const int substitute = 1 << lifted_.motion.places.levels;
    // Of a GOP whose keys alone were made there is no more than the low key: this one is made for its key frame.
    const bool is_there = read_state(borders_.before ? &(*borders_.before)[l] : nullptr,
                                     borders_.narrow_before ? &(*borders_.narrow_before)[l] : nullptr);
    for (int y = 0; y < lifted_.height() && !is_there; ++y)
      if (substitute <= last && !lifted_.differences)
        std::copy_n(lifted_.row(substitute, y), row_samples(), lifted_.row(0, y));
      else
        std::fill_n(lifted_.row(0, y), row_samples(), S{0});
    if constexpr (!LiftedComponent<S>::kNarrow)
      if (borders_.own_exact && lifted_.motion.places.ends_with_key())
        add_error((*borders_.own_exact)[l], lifted_.row(last, 0));
  }

  // Keeps the own key frame in the state that level l predicts from.
  void keep_key(std::size_t l) {
    std::vector<std::int32_t>& wide = (*borders_.own)[l];
    if constexpr (LiftedComponent<S>::kNarrow) {
      if (!borders_.narrow_own) return keep_rows(wide);
      std::vector<std::int32_t>().swap(wide);
      keep_rows((*borders_.narrow_own)[l]);
    } else {
      if (borders_.narrow_own) std::vector<std::int16_t>().swap((*borders_.narrow_own)[l]);
      keep_rows(wide);
    }
  }
  template <class To>
  void keep_rows(std::vector<To>& to) {
    to.resize(row_samples() * static_cast<std::size_t>(lifted_.height()));
    for (int y = 0; y < lifted_.height(); ++y) {
      const S* const from = lifted_.row(lifted_.motion.places.count - 1, y);
      if constexpr (std::is_same_v<S, To>)
        std::copy_n(from, row_samples(), to.data() + row_at(y));
      else
        lifted_.read(from, to.data() + row_at(y), lifted_.width());
    }
  }

  // Adds the error of the own key frame to place 0 with the signs of a chessboard. With equal signs the two errors
  // would add up in frames that are predicted from both.
  void add_error(const std::vector<std::int32_t>& exact, const std::int32_t* decoded) {
    constexpr int kSquare = 5;  // log2
    for (int y = 0; y < lifted_.height(); ++y)
      for (int x = 0; x < lifted_.width(); ++x) {
        const std::int32_t error = decoded[y * lifted_.row_stride + x] - exact[row_at(y) + static_cast<std::size_t>(x)];
        lifted_.row(0, y)[x] += ((x ^ y) >> kSquare & 1) != 0 ? -error : error;
      }
  }

  const LiftedComponent<S>& lifted_;
  const MotionBorders borders_;
};

/// The order of the steps.
template <class S>
class MotionLift {
 public:
  MotionLift(std::vector<S*> frames, std::ptrdiff_t row_stride, const Shape& shape, const GopMotion& motion,
             const MotionComponent& component, int dropped, bool differences, const MotionBorders& borders,
             ThreadPool& pool, SimdLevel simd)
      : lifted_(std::move(frames), row_stride, shape, motion, component, dropped, differences, pool, simd),
        keys_(lifted_, borders),
        predictor_(lifted_),
        updater_(lifted_) {
    require(component.fraction == 0 || component.fraction == kMotionFraction, ErrorKind::kInternal,
            "an unknown number of binary places");
    require(shape.frames == low_length(motion.places.count, dropped), ErrorKind::kBadArgument,
            "motion of another number of frames than the field's");
  }

  /// The steps from `first` on. Returns the number of the step whose result 16 bits do not hold, which is undone: it
  /// and those after it remain. forward_steps() if there is none.
  int forward(int first = 0) {
    for (int step = first; step < forward_steps(); ++step)
      if (!forward_step(step)) return step;
    keys_.keep_coarser();
    return forward_steps();
  }
  /// Of each level from the finest the key frames, the prediction and the update.
  int forward_steps() const { return 3 * std::max(0, levels() - lifted_.dropped); }

  /// The steps of the inverse from `first` on. Returns the number of the step whose result 16 bits do not hold, which
  /// is undone: it and those after it remain. steps() if there is none.
  int inverse(int first = 0) {
    for (int step = first; step < steps(); ++step)
      if (!inverse_step(step)) return step;
    return steps();
  }
  /// First the keys, then of each level from the coarsest the update, the key frames and the prediction.
  int steps() const { return 1 + 3 * std::max(0, levels() - lifted_.dropped); }

  void inverse_and_transposed() {
    inverse();
    for (int l = 0; l < levels(); ++l) {
      scale_high(l, [](std::int32_t v) { return wrap_add(v, v); });
      updater_.run(l, false);
      predictor_.run(l, false);
      scale_high(l, [](std::int32_t v) { return v / 2; });
    }
  }

 private:
  int levels() const { return lifted_.motion.places.levels; }

  // False where it overflowed and was undone.
  bool forward_step(int step) {
    const int level = lifted_.dropped + step / 3;
    switch (step % 3) {
      case 0: keys_.pass(level); break;
      case 1:
        predictor_.run(level, false);
        if (lifted_.overflows) predictor_.run(level, true);
        break;
      default:
        updater_.run(level, false);
        if (lifted_.overflows) updater_.run(level, true);
    }
    return !lifted_.overflows;
  }

  // False where it overflowed and was undone.
  bool inverse_keys() {
    if (lifted_.motion.predicts_keys && !lifted_.differences) {
      keys_.pass_low_key();
      if (lifted_.overflows) return false;
      std::vector<int> frames = motion_frames(levels(), lifted_.motion.places);
      for (std::size_t i = 0; i < frames.size(); ++i) {
        predictor_.run(levels(), {frames[i]}, true);
        if (!lifted_.overflows) continue;
        for (std::size_t done = i + 1; done-- > 0;) predictor_.run(levels(), {frames[done]}, false);
        return false;
      }
    }
    keys_.keep_coarser();
    return true;
  }

  // False where it overflowed and was undone.
  bool inverse_step(int step) {
    if (step == 0) return inverse_keys();
    const int level = levels() - 1 - (step - 1) / 3;
    switch ((step - 1) % 3) {
      case 0:
        updater_.run(level, true);
        if (lifted_.overflows) updater_.run(level, false);
        break;
      case 1: keys_.pass(level); break;
      default:
        predictor_.run(level, true);
        if (lifted_.overflows) predictor_.run(level, false);
    }
    return !lifted_.overflows;
  }

  template <class F>
  void scale_high(int level, const F& scaled) {
    const std::vector<int> frames = motion_frames(level, lifted_.motion.places);
    lifted_.pool.parallel_for(static_cast<int>(frames.size()), [&](int i, int) {
      for (int y = 0; y < lifted_.height(); ++y) {
        S* x = lifted_.row(frames[static_cast<std::size_t>(i)], y);
        std::transform(x, x + lifted_.width(), x, scaled);
      }
    });
  }

  const LiftedComponent<S> lifted_;
  KeyPassing<S> keys_;
  MotionPredictor<S> predictor_;
  MotionUpdater<S> updater_;
};

MotionLift<std::int32_t> lift_of(const Field<std::int32_t>& field, const GopMotion& motion,
                                 const MotionComponent& component, int dropped, bool differences,
                                 const MotionBorders& borders, ThreadPool& pool, SimdLevel simd) {
  return {frames_of(field), field.row_stride, field.shape, motion, component,
          dropped,          differences,      borders,     pool,   simd};
}

template <class S, class Frames>
MotionLift<S> lift_of(Frames& frames, const GopMotion& motion, const MotionComponent& component, int dropped,
                      const MotionBorders& borders, ThreadPool& pool, SimdLevel simd) {
  return {frames.template frames<S>(),
          frames.shape().width,
          frames.shape(),
          motion,
          component,
          dropped,
          false,
          borders,
          pool,
          simd};
}

}  // namespace

void forward_motion(const Field<std::int32_t>& field, const GopMotion& motion, const MotionComponent& component,
                    const MotionBorders& borders, ThreadPool& pool, SimdLevel simd) {
  lift_of(field, motion, component, 0, false, borders, pool, simd).forward();
}

void forward_motion(FieldFrames& frames, const GopMotion& motion, const MotionComponent& component,
                    const MotionBorders& borders, ThreadPool& pool, SimdLevel simd) {
  int step = 0;
  if (frames.is_narrow()) {
    MotionLift<std::int16_t> narrow = lift_of<std::int16_t>(frames, motion, component, 0, borders, pool, simd);
    step = narrow.forward();
    if (step == narrow.forward_steps()) return;
  }
  frames.widen();
  lift_of<std::int32_t>(frames, motion, component, 0, borders, pool, simd).forward(step);
}

void inverse_motion(const Field<std::int32_t>& field, const GopMotion& motion, const MotionComponent& component,
                    int dropped, const MotionBorders& borders, ThreadPool& pool, SimdLevel simd) {
  lift_of(field, motion, component, dropped, false, borders, pool, simd).inverse();
}

void inverse_motion(MotionFrames& frames, const GopMotion& motion, const MotionComponent& component, int dropped,
                    const MotionBorders& borders, ThreadPool& pool, SimdLevel simd) {
  int step = 0;
  if (frames.is_narrow()) {
    MotionLift<std::int16_t> narrow = lift_of<std::int16_t>(frames, motion, component, dropped, borders, pool, simd);
    step = narrow.inverse();
    if (step == narrow.steps()) return;
  }
  frames.widen();
  lift_of<std::int32_t>(frames, motion, component, dropped, borders, pool, simd).inverse(step);
}

void predict_key(const Field<std::int32_t>& field, const GopMotion& motion, const MotionComponent& component, int t,
                 bool add, ThreadPool& pool, SimdLevel simd) {
  const LiftedComponent<std::int32_t> lifted(frames_of(field), field.row_stride, field.shape, motion, component, 0,
                                             false, pool, simd);
  MotionPredictor(lifted).run(motion.places.levels, {t}, add);
}

void correlate_motion(const Field<std::int32_t>& field, const GopMotion& motion, const MotionComponent& component,
                      ThreadPool& pool, SimdLevel simd) {
  lift_of(field, motion, component, 0, true, {}, pool, simd).inverse_and_transposed();
}

}  // namespace trivelet
