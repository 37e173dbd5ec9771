// Lifting wavelet transforms of volumes (time or z, rows, columns) of any size >= 1, in float and reversible integer.
//
// The transform works in place. Along time and rows it is interleaved: a split leaves low samples at even and high
// samples at odd positions of the current low lattice (stride 2^l at level l). Along columns every row is separated
// into [low | high]. A subband (temporal band b, level l, orientation) is therefore a strided view with contiguous
// columns, and nothing is copied back. subband.h gives origin, strides and size of every subband.
//
// Arithmetic (FORMAT.md "Transform"): whole-sample symmetric extension; every lifting step is
//   float:  x[i] = x[i] + c * (x[i-1] + x[i+1])          in IEEE binary32, three roundings, no contraction
//   int:    5/3, 13/7, S-transform with arithmetic shifts
// without scaling: the quantiser takes the subband norms into account. Forward t+2D transforms all temporal levels
// first, then per frame and level rows before columns. Forward dyadic transforms time, rows, columns per level. The
// inverse undoes the steps in reverse order. An axis of length 1 is copied. The schedule (tiles, threads, SIMD) never
// changes a result bit.
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

/// Transforms samples into coefficients: out = T(sample - offset), then the decomposition in place. T is float (Haar,
/// 5/3, 9/7) or std::int32_t (Haar = S-transform, 5/3, 13/7). Other pairs and shapes that differ throw BadArgument.
/// `samples` has 1 or 2 bytes a sample, signed or unsigned; |offset| <= 2^20.
///
/// `frame_gains` (FORMAT.md "Frame gains") has one factor per frame or is empty. It is for float and t+2D only. Frame i
/// of the field is multiplied by frame_gains[i] after the temporal transform, and before its inverse.
template <class T>
void forward_transform(const VolumeView& samples, std::int32_t offset, const Field<T>& out, const Decomposition& d,
                       ThreadPool& pool, SimdLevel simd, const std::vector<float>& frame_gains = {});

/// The same for a `field` that holds the values already, for example after a colour transform.
template <class T>
void forward_transform(const Field<T>& field, const Decomposition& d, ThreadPool& pool, SimdLevel simd,
                       const std::vector<float>& frame_gains = {});

/// Undoes forward_transform in place. Patches marked in `left_out` (zero_patches.h; t+2D only) count as zero.
template <class T>
void inverse_transform(const Field<T>& field, const Decomposition& d, ThreadPool& pool, SimdLevel simd,
                       const std::vector<float>& frame_gains = {}, const ZeroPatches* left_out = nullptr);

/// Undoes forward_transform and stores samples. float: clamp(rint(value * gain) + offset), where rint rounds half to
/// even; int: clamp(value + offset). Both clamp to [min_sample, max_sample]. `gain` is 1 for full resolution (see
/// dc_gain) and must be 1 for integers. The call overwrites the coefficients in `field`.
template <class T>
void inverse_transform(const Field<T>& field, const Decomposition& d, float gain, std::int32_t offset,
                       std::int32_t min_sample, std::int32_t max_sample, const MutableVolumeView& samples,
                       ThreadPool& pool, SimdLevel simd, const std::vector<float>& frame_gains = {},
                       const ZeroPatches* left_out = nullptr);

/// The sum of squared differences between `samples` and the samples that inverse_transform() would store. Each row is
/// summed in integers; rows and frames are summed as squared_error() does.
template <class T>
double inverse_transform_error(const Field<T>& field, const Decomposition& d, float gain, std::int32_t offset,
                               std::int32_t min_sample, std::int32_t max_sample, const VolumeView& samples,
                               ThreadPool& pool, SimdLevel simd, const std::vector<float>& frame_gains = {});

/// Gain of a constant signal in one low-pass step of the unscaled lifting: 1.230174105 for the float 9/7, 1 for the
/// others. A low band of `a` levels in time and `b` levels in rows and columns returns to sample scale when it is
/// divided by dc_gain(temporal)^a * dc_gain(spatial)^(2b).
double dc_gain(Wavelet w);

/// L2 norm of the synthesis basis vectors of one axis after `level` splits: of a low-pass sample (high = false; level 0
/// gives 1) or of a high-pass sample (level >= 1). The norm of a subband is the product over its three axes. FORMAT.md
/// lists the values.
double synthesis_norm(Wavelet w, bool reversible, bool high, int level);

/// a / b, rounded up; a >= 0, b > 0.
constexpr int ceil_div(int a, int b) { return a / b + (a % b != 0); }

/// Length of the low band after `levels` splits of `length` samples: ceil(length / 2^levels).
inline int low_length(int length, int levels) {
  for (int l = 0; l < levels; ++l) length = (length + 1) / 2;
  return length;
}

/// The number of the `levels` splits that divide an axis of `length` samples: a split of one sample does nothing.
inline int effective_levels(int length, int levels) {
  int n = 0;
  for (; n < levels && length > 1; ++n) length = (length + 1) / 2;
  return n;
}

}  // namespace trivelet
