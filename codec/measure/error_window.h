// A rectangle of a component that is transformed as a picture of its own and cut as rate control cut the whole picture:
// what its coefficients err, by the norms of subbands and by the synthesis vectors of each axis, which near borders are
// others than inside. With what its samples err then, the error of all is told from a few rectangles (error_sample.h,
// motion_error.h).
#pragma once

#include <map>
#include <mutex>
#include <tuple>
#include <vector>

#include "codec/base/stream_header.h"
#include "codec/rate/block_cut.h"
#include "codec/rate/rate_control.h"

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

/// The error of some rectangles at a cut.
struct ErrorShare {
  double measured = 0;
  double predicted = 0;   // by the norms of subbands
  double in_window = 0;   // by the synthesis vectors of the rectangle that is transformed alone
  double in_picture = 0;  // and of the rectangle as a part of the picture
  /// By how much more the samples would err as a part of the picture.
  double borders() const { return in_window > 0 ? in_picture / in_window : 1.0; }
};

/// The error of all samples, from `shares` that speak for so many others each. `of_all`: as it is predicted.
SampledError error_of_all(double of_all, const std::vector<double>& weights, const std::vector<ErrorShare>& shares);

/// By how much a frame's rectangle lies elsewhere.
struct Shift {
  int y = 0;
  int x = 0;
};

template <class T>
class ErrorWindow {
 public:
  /// `header`: as of_gop() describes the GOP that `grid` is of. `where`, with the shifts of
  /// frames, begins at multiples of 2^spatial_levels.
  ErrorWindow(const StreamHeader& header, int component, const BlockGrid& grid, const BlockGrid::Patch& where,
              float step, const std::vector<std::uint8_t>& frame_gains, AxisEnergies& energies,
              std::vector<Shift> shifts = {});

  const Field<T>& coefficients() const { return coefficients_; }
  /// As cut() leaves it.
  const Field<T>& decoded() const { return decoded_; }
  int y() const { return where_.y; }
  int x() const { return where_.x; }
  /// As rounding.h says, with its step.
  void round(float step);
  /// `cuts`: of the component, block by block.
  void cut(const std::uint8_t* cuts, SimdLevel simd, ErrorShare& share);

 private:
  struct Band {
    int y = 0, x = 0;  // of the picture's subband, where that of the window begins, if it is not shifted
    int levels_y = 0, levels_x = 0;
    std::vector<double> predicted;  // by frame; what a squared difference of coefficients means
    std::vector<double> frame;      // the same by the synthesis vectors of each axis
    std::vector<double> row;
    std::vector<double> row_of_picture;  // all there are
    std::vector<double> column;
    std::vector<double> column_of_picture;
  };
  Band band_of(std::size_t i, const ErrorWeights& weights, const std::vector<std::uint8_t>& frame_gains,
               AxisEnergies& energies) const;
  std::vector<double> frame_energies(const Subband& s, AxisEnergies& energies) const;
  void cut_block(const BlockCut<T>& block, int number, SimdLevel simd, ErrorShare& share);

  const StreamHeader& header_;
  int component_;
  const BlockGrid& grid_;
  BlockGrid::Patch where_;
  SubbandTable table_;
  StepTable steps_;
  std::vector<Shift> shifts_;  // by frame; or none
  std::vector<int> blocks_;    // that it has a part of
  std::vector<T> memory_;
  Field<T> coefficients_;
  Field<T> decoded_;
  std::vector<Band> bands_;
};

}  // namespace trivelet
