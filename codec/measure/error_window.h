// A rectangle of a component that is transformed as a picture of its own and cut as rate control cut the whole picture.
// Gives the error of its coefficients twice: by the norms of subbands, and by the synthesis vectors of each axis, which
// differ near borders. With the measured errors of samples a few rectangles give the error of all (error_sample.h,
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

/// Squared norms of the synthesis vectors of an axis, which are different near its ends. Threads may share an object.
class AxisEnergies {
 public:
  /// Norms of the low coefficients after `levels` splits, or of the high ones of the last split, in order.
  std::vector<double> of(int length, int levels, bool high, Wavelet wavelet);

 private:
  std::mutex mutex_;
  std::map<std::tuple<int, int, bool, Wavelet>, std::vector<double>> known_;
};

/// A squared error estimated from a sample, and its standard deviation.
struct SampledError {
  double error = 0;
  double deviation = 0;
};

/// The error of a rectangle at a cut.
struct ErrorShare {
  double measured = 0;
  double predicted = 0;   // by the norms of subbands
  double in_window = 0;   // by the synthesis vectors of the rectangle transformed alone
  double in_picture = 0;  // by those of the rectangle as a part of the picture
  /// Ratio of the rectangle's error as a part of the picture to its error when transformed alone.
  double borders() const { return in_window > 0 ? in_picture / in_window : 1.0; }
};

/// The errors of all samples at some cuts, whose predicted errors are `predicted`. shares[i] are those of a rectangle
/// at these cuts, which represents weights[i] rectangles.
std::vector<SampledError> errors_of_all(const std::vector<double>& predicted, const std::vector<double>& weights,
                                        const std::vector<std::vector<ErrorShare>>& shares);

/// Offset of a frame's rectangle from `where`.
struct Shift {
  int y = 0;
  int x = 0;
};

template <class T>
class ErrorWindow {
 public:
  /// `header` describes the GOP of `grid`, by describe_gop(). `where` and the shifts of frames are multiples of
  /// 2^spatial_levels.
  ErrorWindow(const StreamHeader& header, int component, const BlockGrid& grid, const BlockGrid::Patch& where,
              float step, const std::vector<std::uint8_t>& frame_gains, AxisEnergies& energies,
              std::vector<Shift> shifts = {});

  const Field<T>& coefficients() const { return coefficients_; }
  /// The coefficients after cut().
  const Field<T>& decoded() const { return decoded_; }
  int y() const { return where_.y; }
  int x() const { return where_.x; }
  /// Rounds the coefficients as rounding.h does, with this step.
  void round(float step);
  /// Cuts the window. `cuts` are those of the component, block by block. Adds the errors of coefficients to `share`.
  void cut(const std::uint8_t* cuts, SimdLevel simd, ErrorShare& share);

 private:
  struct Band {
    int y = 0, x = 0;  // origin of the window's subband in the picture's, without shift
    int levels_y = 0, levels_x = 0;
    std::vector<double> predicted;  // by frame: the error of samples per squared difference of coefficients
    std::vector<double> frame;      // the same by the synthesis vectors of each axis
    std::vector<double> row;
    std::vector<double> row_of_picture;  // of the whole axis
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
  std::vector<Shift> shifts_;  // by frame, or empty
  std::vector<int> blocks_;    // that the window overlaps
  std::vector<T> memory_;
  Field<T> coefficients_;
  Field<T> decoded_;
  std::vector<Band> bands_;
};

}  // namespace trivelet
