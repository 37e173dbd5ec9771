// Lifting wavelet transforms of volumes (time or z, rows, columns), any size >= 1, float and reversible integer.
//
// In place and interleaved: along time and rows a split leaves low samples at even and high samples at odd positions of
// the current low lattice (stride 2^l at level l); along columns every row is separated into [low | high]. So subband
// (temporal band b, level l, orientation) is a strided view with contiguous columns and nothing is ever copied back;
// subband.h gives origin, strides and size of every subband.
//
// Arithmetic (FORMAT.md "Transform"): whole-sample symmetric extension; every lifting step is
//   float:  x[i] = x[i] + c * (x[i-1] + x[i+1])          in IEEE binary32, three roundings, no contraction
//   int:    5/3, 13/7, S-transform with arithmetic shifts
// and no scaling: subband norms are dealt with by the quantiser. Forward t+2D: all temporal levels, then per frame and
// level rows before columns. Dyadic: per level time, rows, columns. The inverse undoes the steps in reverse order. A
// length of 1 is copied. The schedule (tiles, threads, SIMD) never changes a result bit.
//
// Sources: Daubechies and Sweldens, "Factoring wavelet transforms into lifting steps" (1998); ISO/IEC 15444-1 Annex F
// (5/3, 9/7); Calderbank et al. (1998) and Adams (2001) for the 13/7-T filter.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "codec/threads/parallel.h"
#include "trivelet/parameters.h"
#include "trivelet/types.h"

namespace trivelet {

class ZeroPatches;

/// A strided volume of coefficients; strides in elements, columns contiguous.
template <class T>
struct Field {
  T* data = nullptr;
  Shape shape;
  std::ptrdiff_t row_stride = 0;
  std::ptrdiff_t frame_stride = 0;
  T* row(int frame, int y) const { return data + frame * frame_stride + y * row_stride; }
};

/// Transforms samples into coefficients: out = T(sample - offset), then the decomposition in place.
/// T is float (Haar, 5/3, 9/7) or std::int32_t (Haar = S-transform, 5/3, 13/7); other pairs throw BadArgument, as do
/// shapes that differ. `samples` is 1- or 2-byte, signed or unsigned; |offset| <= 2^20.
///
/// `frame_gains` (FORMAT.md "Frame gains"), one per frame or none, are for float and t+2D only: after the temporal
/// transform frame i of the field is multiplied by frame_gains[i], before its inverse by the same number of the
/// inverse's argument.
template <class T>
void forward_transform(const VolumeView& samples, std::int32_t offset, const Field<T>& out, const Decomposition& d,
                       ThreadPool& pool, SimdLevel simd, const std::vector<float>& frame_gains = {});

/// The same when `field` already holds the values (after a colour transform, or data of one's own).
template <class T>
void forward_transform(const Field<T>& field, const Decomposition& d, ThreadPool& pool, SimdLevel simd,
                       const std::vector<float>& frame_gains = {});

/// Undoes forward_transform in place. What `left_out` (zero_patches.h; t+2D) says of the field is taken for zero.
template <class T>
void inverse_transform(const Field<T>& field, const Decomposition& d, ThreadPool& pool, SimdLevel simd,
                       const std::vector<float>& frame_gains = {}, const ZeroPatches* left_out = nullptr);

/// Undoes forward_transform and stores samples: float: clamp(rint(value * gain) + offset), int: clamp(value + offset),
/// with rint rounding half to even and the clamp to [min_sample, max_sample]. `gain` is 1 for full resolution (see
/// dc_gain); it must be 1 for integers. The coefficients in `field` are used up.
template <class T>
void inverse_transform(const Field<T>& field, const Decomposition& d, float gain, std::int32_t offset,
                       std::int32_t min_sample, std::int32_t max_sample, const MutableVolumeView& samples,
                       ThreadPool& pool, SimdLevel simd, const std::vector<float>& frame_gains = {},
                       const ZeroPatches* left_out = nullptr);

/// The sum of squared differences between the samples that this would store and `samples`: rows are summed in integers,
/// frame by frame, then over both as squared_error() does.
template <class T>
double inverse_transform_error(const Field<T>& field, const Decomposition& d, float gain, std::int32_t offset,
                               std::int32_t min_sample, std::int32_t max_sample, const VolumeView& samples,
                               ThreadPool& pool, SimdLevel simd, const std::vector<float>& frame_gains = {});

/// Amplification of a constant signal by one low-pass step of the unscaled lifting: 1.230174105 for the float 9/7, 1
/// for the others. A low band of a levels in time and b in both rows and columns is brought back to sample scale by
/// dividing by dc_gain(temporal)^a * dc_gain(spatial)^(2b).
double dc_gain(Wavelet w);

/// L2 norm of the synthesis basis vectors of one axis: a low-pass (high = false, level 0 allowed: 1) or high-pass
/// sample (level >= 1) at `level` splits. The norm of a subband is the product over its three axes. FORMAT.md lists the
/// values.
double synthesis_norm(Wavelet w, bool reversible, bool high, int level);

/// a / b, rounded up; a >= 0, b > 0.
constexpr int ceil_div(int a, int b) { return a / b + (a % b != 0); }

/// Length of the low band after `levels` splits of `length` samples: ceil(length / 2^levels).
inline int low_length(int length, int levels) {
  for (int l = 0; l < levels; ++l) length = (length + 1) / 2;
  return length;
}

/// How many of `levels` splits of `length` samples find more than one sample and so really divide.
inline int effective_levels(int length, int levels) {
  int n = 0;
  for (; n < levels && length > 1; ++n) length = (length + 1) / 2;
  return n;
}

}  // namespace trivelet
