// The squared error of decoded samples of a GOP with motion, measured in a few windows of its pictures. Each window is
// a video of its own: it is transformed along its part of the motion, rounded and cut as the GOP was, and transformed
// back. Its own borders change the predicted error in the same way as the measured one. The ratio of measured to
// predicted error of the windows is applied to the whole GOP.
//
// An open GOP depends on the key frame of the GOP before. The error of that frame is computed in the same way, from its
// samples and the cuts of its GOP.
#pragma once

#include <vector>

#include "codec/backend.h"
#include "codec/cpu/motion_gop.h"
#include "codec/measure/error_window.h"
#include "codec/rate/rate_control.h"
#include "codec/threads/parallel.h"
#include "trivelet/types.h"

namespace trivelet {

/// The key frame at the end of a GOP, and how it was coded.
class CodedKey {
 public:
  /// `coded` gives step, rounding step and temporal levels; `layers` are the cuts of the GOP's layers.
  CodedKey(const StreamHeader& header, const Gop& gop, const GopChoices& coded, const RateControl& control,
           const std::vector<Cuts>& layers);

  /// The key's original samples in the part of the pictures that `window` describes, from sample (y, x) of the first
  /// component; the same for all levels.
  MotionKey exact(const StreamHeader& window, int y, int x, ThreadPool& pool, SimdLevel simd) const;
  /// The key's error in that part, for a decoder of layers 0..layer.
  MotionKey error(const StreamHeader& window, int y, int x, std::size_t layer, AxisEnergies& energies, ThreadPool& pool,
                  SimdLevel simd) const;

 private:
  template <class T>
  void find_error(const KeyStates& exact, KeyStates& error, int component, const BlockGrid::Patch& where,
                  std::size_t layer, AxisEnergies& energies, ThreadPool& pool, SimdLevel simd) const;

  StreamHeader header_;  // describes a single frame
  Gop frame_;
  GopChoices coded_;
  std::vector<BlockGrid> grids_;                              // by component
  std::vector<std::vector<std::vector<std::uint8_t>>> cuts_;  // by layer and component, block by block
};

class MotionErrorSample {
 public:
  MotionErrorSample(const StreamHeader& header, SimdLevel simd) : header_(header), simd_(simd) {}
  /// True for pictures so small that all windows are measured.
  static bool looks_at_all(const StreamHeader& header);

  /// The squared error of all samples at the layers `points`. `coded` gives step and rounding step; `before` is null
  /// for closed GOPs. The result does not depend on threads and instruction set.
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
