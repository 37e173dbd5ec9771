// The squared error of decoded samples, measured on a few code blocks of a GOP. Each is transformed as a picture of its
// own, cut as rate control cut it, and transformed back; what borders of its own do to it is reckoned with, for the
// synthesis vectors of every axis are known, in the block and in the picture. What these blocks have over the error that
// is predicted from their coefficients (sample_error.h), all blocks are taken to have.
//
// Blocks are drawn half by the error they are predicted to have, half by their samples: a few large errors count as much
// as many small ones, of which rounding makes something else.
#pragma once

#include <map>
#include <mutex>
#include <tuple>
#include <vector>

#include "codec/container.h"
#include "codec/parallel.h"
#include "codec/rate_control.h"
#include "trivelet/types.h"

namespace trivelet {

/// Squared norms of the synthesis vectors of an axis: near its ends they are others than inside.
class AxisEnergies {
 public:
  /// Of the low coefficients after `levels` splits, or of the high ones of the last split, in their order.
  std::vector<double> of(int length, int levels, bool high, Wavelet wavelet);

 private:
  std::mutex mutex_;
  std::map<std::tuple<int, int, bool, Wavelet>, std::vector<double>> known_;
};

/// A squared error as a sample tells it, and how far off that may be: one standard deviation.
struct SampledError {
  double error = 0;
  double deviation = 0;
};

class ErrorSample {
 public:
  ErrorSample(const StreamHeader& header, SimdLevel simd) : header_(header), simd_(simd) {}

  /// The squared error of all samples at each of these cuts of a GOP without motion. It is the same whatever the threads
  /// and the instruction set.
  std::vector<SampledError> errors(const Gop& gop, float step, const std::vector<std::uint8_t>& frame_gains,
                                   const RateControl& control, const std::vector<const Cuts*>& points,
                                   ThreadPool& pool);

 private:
  struct Unit;
  struct Share;
  template <class T>
  struct Window;

  std::vector<Unit> all_units(const RateControl& control, const std::vector<const Cuts*>& points) const;
  static std::vector<Unit> draw(std::vector<Unit> units);
  template <class T>
  Window<T> window_of(const Unit& unit, int component, const RateControl& control, float step,
                      const std::vector<std::uint8_t>& frame_gains);
  template <class T>
  std::vector<Share> measure(const Unit& unit, const Gop& gop, float step, const std::vector<std::uint8_t>& frame_gains,
                             const RateControl& control, const std::vector<const Cuts*>& points);

  const StreamHeader& header_;
  SimdLevel simd_;
  AxisEnergies energies_;
};

}  // namespace trivelet
