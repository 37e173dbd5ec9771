// The squared error of decoded samples of a GOP with motion, measured in a few windows of its pictures. Each is a video
// of its own: it is transformed along its part of the motion, rounded and cut as the GOP was, and transformed back;
// where that differs from what becomes of it among others, what is predicted from its coefficients differs, too. What
// the windows have over the error that is predicted so, the whole GOP is taken to have.
//
// An open GOP depends on the key frame of the one before, whose error is found in the same way: from its samples, at
// the cuts of that GOP.
#pragma once

#include <vector>

#include "codec/backend.h"
#include "codec/cpu/motion_gop.h"
#include "codec/measure/error_window.h"
#include "codec/rate/rate_control.h"
#include "codec/threads/parallel.h"
#include "trivelet/types.h"

namespace trivelet {

/// The key frame at the end of a GOP, and how that was coded.
class CodedKey {
 public:
  /// `coded`: step, rounding step and temporal levels; `layers`: the cuts of the GOP's layers.
  CodedKey(const StreamHeader& header, const Gop& gop, const GopChoices& coded, const RateControl& control,
           const std::vector<Cuts>& layers);

  /// Of a part of the pictures that `window` describes, which begins at a sample (y, x) of the first component: as it
  /// was, all levels alike.
  MotionKey exact(const StreamHeader& window, int y, int x, ThreadPool& pool, SimdLevel simd) const;
  /// What that of a decoder with so many layers errs, likewise.
  MotionKey error(const StreamHeader& window, int y, int x, std::size_t layer, AxisEnergies& energies, ThreadPool& pool,
                  SimdLevel simd) const;

 private:
  template <class T>
  void find_error(const KeyStates& exact, KeyStates& error, int component, const BlockGrid::Patch& where,
                  std::size_t layer, AxisEnergies& energies, ThreadPool& pool, SimdLevel simd) const;

  StreamHeader header_;  // of a single frame
  Gop frame_;
  GopChoices coded_;
  std::vector<BlockGrid> grids_;                              // by component
  std::vector<std::vector<std::vector<std::uint8_t>>> cuts_;  // by layer and component, block by block
};

class MotionErrorSample {
 public:
  MotionErrorSample(const StreamHeader& header, SimdLevel simd) : header_(header), simd_(simd) {}
  /// Where pictures are so small that there is nothing to choose.
  static bool looks_at_all(const StreamHeader& header);

  /// The squared error of all samples at some of the layers' cuts. `coded`: its step and rounding step; `before`: of
  /// open GOPs. It is the same whatever the threads and the instruction set.
  std::vector<SampledError> errors(const Gop& gop, const GopChoices& coded, const GopMotion& motion,
                                   const CodedKey* before, const RateControl& control, const std::vector<Cuts>& layers,
                                   const std::vector<std::size_t>& points, ThreadPool& pool);

 private:
  struct Job;
  struct Unit;

  std::vector<Unit> all_units(const Job& job) const;
  BlockGrid::Patch around(const Unit& unit) const;
  template <class T>
  void transform(const Job& job, const Unit& unit, ThreadPool& alone, std::vector<ErrorWindow<T>>& windows,
                 std::vector<std::vector<std::int32_t>>& original);
  double squared_error(const Job& job, const Unit& unit, int component, const std::vector<Field<std::int32_t>>& errors,
                       const std::vector<std::vector<std::int32_t>>& original, ThreadPool& alone) const;
  template <class T>
  void inverse(const StreamHeader& window, const GopMotion& motion, int component, const Field<T>& field,
               const MotionKey& before, ThreadPool& alone) const;
  static std::vector<Unit> draw(std::vector<Unit> units);
  template <class T>
  std::vector<ErrorShare> measure(const Job& job, const Unit& unit);

  const StreamHeader& header_;
  SimdLevel simd_;
  AxisEnergies energies_;
};

}  // namespace trivelet
