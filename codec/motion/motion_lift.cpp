// The order of the lifting steps, and the key frames between GOPs (motion_lift.h).
#include "codec/motion/motion_lift.h"

#include <algorithm>
#include <vector>

#include "codec/motion/lifted_component.h"
#include "codec/motion/motion_predict.h"
#include "codec/motion/motion_update.h"

namespace trivelet {

namespace {

/// The key frames that a component takes from the GOP before and passes on.
class KeyPassing {
 public:
  KeyPassing(const LiftedComponent& lifted, const MotionBorders& borders) : lifted_(lifted), borders_(borders) {}

  /// Keeps the own key frame for levels that only the next GOP has: they use its state at the coarsest level here.
  void keep_coarser() {
    if (!leaves_key()) return;
    for (auto l = static_cast<std::size_t>(lifted_.motion.places.levels); l < borders_.own->size(); ++l) keep_key(l);
  }

  /// Copies the low key of the GOP before to place 0, for predicted keys.
  void pass_low_key() const {
    if (lifted_.motion.places.key != GopKey::kOpen) return;
    const auto row_samples = static_cast<std::size_t>(lifted_.width());
    for (int y = 0; y < lifted_.height(); ++y) {
      if (borders_.low_key)
        std::copy_n(borders_.low_key->data() + static_cast<std::size_t>(y) * row_samples, row_samples,
                    lifted_.row(0, y));
      else
        std::fill_n(lifted_.row(0, y), row_samples, 0);
    }
  }

  /// Copies the key frame of the GOP before to place 0 and keeps the own one, both in the state that level l predicts
  /// from. In this order, because both may have the same memory.
  void pass(int l) {
    const auto i = static_cast<std::size_t>(l);
    if (lifted_.motion.places.key == GopKey::kOpen) take_key(i);
    if (leaves_key()) keep_key(i);
  }

 private:
  bool leaves_key() const { return borders_.own && lifted_.motion.places.ends_with_key(); }

  void take_key(std::size_t l) {
    const auto row_samples = static_cast<std::size_t>(lifted_.width());
    const int last = lifted_.motion.places.count - 1;
    const int substitute = 1 << lifted_.motion.places.levels;
    // Of a GOP whose keys alone were made there is no more than the low key: this one is made for its key frame.
    const bool is_there = borders_.before && !(*borders_.before)[l].empty();
    for (int y = 0; y < lifted_.height(); ++y) {
      const std::size_t at = static_cast<std::size_t>(y) * row_samples;
      if (is_there)
        std::copy_n((*borders_.before)[l].data() + at, row_samples, lifted_.row(0, y));
      else if (substitute <= last && !lifted_.differences)
        std::copy_n(lifted_.row(substitute, y), row_samples, lifted_.row(0, y));
      else
        std::fill_n(lifted_.row(0, y), row_samples, 0);
    }
    if (borders_.own_exact && lifted_.motion.places.ends_with_key())
      add_error((*borders_.own_exact)[l], lifted_.row(last, 0));
  }

  // Keeps the own key frame in the state that level l predicts from.
  void keep_key(std::size_t l) {
    const auto row_samples = static_cast<std::size_t>(lifted_.width());
    std::vector<std::int32_t>& to = (*borders_.own)[l];
    to.resize(row_samples * static_cast<std::size_t>(lifted_.height()));
    for (int y = 0; y < lifted_.height(); ++y)
      std::copy_n(lifted_.row(lifted_.motion.places.count - 1, y), row_samples,
                  to.data() + static_cast<std::size_t>(y) * row_samples);
  }

  // Adds the error of the own key frame to place 0 with the signs of a chessboard. With equal signs the two errors
  // would add up in frames that are predicted from both.
  void add_error(const std::vector<std::int32_t>& exact, const std::int32_t* decoded) {
    constexpr int kSquare = 5;  // log2
    for (int y = 0; y < lifted_.height(); ++y)
      for (int x = 0; x < lifted_.width(); ++x) {
        const std::int32_t error = decoded[y * lifted_.field.row_stride + x] -
                                   exact[static_cast<std::size_t>(y) * static_cast<std::size_t>(lifted_.width()) +
                                         static_cast<std::size_t>(x)];
        lifted_.row(0, y)[x] += ((x ^ y) >> kSquare & 1) != 0 ? -error : error;
      }
  }

  const LiftedComponent& lifted_;
  const MotionBorders borders_;
};

/// The order of the steps.
class MotionLift {
 public:
  MotionLift(const Field<std::int32_t>& field, const GopMotion& motion, const MotionComponent& component, int dropped,
             bool differences, const MotionBorders& borders, ThreadPool& pool, SimdLevel simd)
      : lifted_(field, motion, component, dropped, differences, pool, simd),
        keys_(lifted_, borders),
        predictor_(lifted_),
        updater_(lifted_) {
    require(component.fraction == 0 || component.fraction == kMotionFraction, ErrorKind::kInternal,
            "an unknown number of binary places");
    require(field.shape.frames == low_length(motion.places.count, dropped), ErrorKind::kBadArgument,
            "motion of another number of frames than the field's");
  }

  void forward() {
    for (int l = lifted_.dropped; l < levels(); ++l) {
      keys_.pass(l);
      predictor_.run(l, false);
      updater_.run(l, false);
    }
    keys_.keep_coarser();
  }
  void inverse() {
    inverse_keys();
    for (int l = levels() - 1; l >= lifted_.dropped; --l) {
      updater_.run(l, true);
      keys_.pass(l);
      predictor_.run(l, true);
    }
  }
  void inverse_keys() {
    if (lifted_.motion.predicts_keys && !lifted_.differences) {
      keys_.pass_low_key();
      for (const int t : motion_frames(levels(), lifted_.motion.places)) predictor_.run(levels(), {t}, true);
    }
    keys_.keep_coarser();
  }
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

  template <class F>
  void scale_high(int level, const F& scaled) {
    const std::vector<int> frames = motion_frames(level, lifted_.motion.places);
    lifted_.pool.parallel_for(static_cast<int>(frames.size()), [&](int i, int) {
      for (int y = 0; y < lifted_.height(); ++y) {
        std::int32_t* x = lifted_.row(frames[static_cast<std::size_t>(i)], y);
        std::transform(x, x + lifted_.width(), x, scaled);
      }
    });
  }

  const LiftedComponent lifted_;
  KeyPassing keys_;
  MotionPredictor predictor_;
  MotionUpdater updater_;
};

}  // namespace

void forward_motion(const Field<std::int32_t>& field, const GopMotion& motion, const MotionComponent& component,
                    const MotionBorders& borders, ThreadPool& pool, SimdLevel simd) {
  MotionLift(field, motion, component, 0, false, borders, pool, simd).forward();
}

void inverse_motion(const Field<std::int32_t>& field, const GopMotion& motion, const MotionComponent& component,
                    int dropped, const MotionBorders& borders, ThreadPool& pool, SimdLevel simd) {
  MotionLift(field, motion, component, dropped, false, borders, pool, simd).inverse();
}

void inverse_keys(const Field<std::int32_t>& field, const GopMotion& motion, const MotionComponent& component,
                  int dropped, const MotionBorders& borders, ThreadPool& pool, SimdLevel simd) {
  MotionLift(field, motion, component, dropped, false, borders, pool, simd).inverse_keys();
}

void predict_key(const Field<std::int32_t>& field, const GopMotion& motion, const MotionComponent& component, int t,
                 bool add, ThreadPool& pool, SimdLevel simd) {
  const LiftedComponent lifted(field, motion, component, 0, false, pool, simd);
  MotionPredictor(lifted).run(motion.places.levels, {t}, add);
}

void correlate_motion(const Field<std::int32_t>& field, const GopMotion& motion, const MotionComponent& component,
                      ThreadPool& pool, SimdLevel simd) {
  MotionLift(field, motion, component, 0, true, {}, pool, simd).inverse_and_transposed();
}

}  // namespace trivelet
