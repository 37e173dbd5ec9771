// The loops of the wavelet transform, compiled once per instruction set. dwt.cpp picks a table and does tiles and
// threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "codec/base/simd.h"

namespace trivelet {

/// Which axes of a plane a call transforms. kTile: columns of a small buffer that is in the cache already.
enum class PlaneAxes { kRowsAndColumns, kRows, kColumns, kTile };

/// One level of the transform of a plane of `rows` x `columns` values, `stride` elements from row to row. Values of a
/// row are separated into [low | high]; rows stay interleaved. Forward does rows (horizontal lifting) before columns
/// (vertical lifting), inverse the reverse. kRows and kRowsAndColumns use `scratch`, which has plane_scratch(columns)
/// values.
template <class T>
using PlaneKernel = void (*)(T* plane, std::ptrdiff_t stride, int rows, int columns, PlaneAxes axes, T* scratch);

/// The inverse of both axes. It calls `prepare` for every row just before the row's first use.
template <class T>
struct RowPreparation {
  void (*prepare)(const void* context, int y, T* row) = nullptr;  ///< null: rows need no preparation
  const void* context = nullptr;
};
template <class T>
using PreparedPlaneKernel = void (*)(T* plane, std::ptrdiff_t stride, int rows, int columns, T* scratch,
                                     const RowPreparation<T>& rows_before);

/// Conversions of a row of samples, which may be unaligned. format_index() gives the index of a sample format.
template <class T>
using LoadKernel = void (*)(const std::byte* samples, std::int32_t offset, T* out, int n);
template <class T>
using StoreKernel = void (*)(const T* in, float gain, std::int32_t offset, std::int32_t min_sample,
                             std::int32_t max_sample, std::byte* samples, int n);

inline constexpr int kWavelets = 4;  ///< number of values of Wavelet

template <class T>
struct DwtKernels {
  PlaneKernel<T> forward[kWavelets];  ///< index: Wavelet; null where T has no such filter
  PlaneKernel<T> inverse[kWavelets];
  PreparedPlaneKernel<T> inverse_prepared[kWavelets];
  LoadKernel<T> load[4];
  StoreKernel<T> store[4];
  /// Copies n values past the caches if the instruction set can and `out` is aligned. stream_end() orders the stores.
  void (*stream)(const T* in, T* out, int n);
  void (*stream_end)();
};

TRIVELET_DECLARE_TABLE(DwtKernels<float>, kDwtFloat)
TRIVELET_DECLARE_TABLE(DwtKernels<std::int32_t>, kDwtInt)

/// The table of T (float or int32) for an instruction set.
template <class T>
const DwtKernels<T>& dwt_kernels(SimdLevel simd) {
  if constexpr (std::is_same_v<T, float>)
    return pick(simd, TRIVELET_TABLES(kDwtFloat));
  else
    return pick(simd, TRIVELET_TABLES(kDwtInt));
}

/// Index of the sample format of a view in DwtKernels::load and store.
template <class View>
int format_index(const View& v) {
  return 2 * (v.bytes_per_sample - 1) + (v.is_signed ? 1 : 0);
}

/// Scratch of a plane kernel in values: the even and odd samples of a row, padded for their extension.
inline constexpr int kRowPad = 16;
inline std::size_t plane_scratch(int columns) { return static_cast<std::size_t>(columns) + 6 * kRowPad; }

}  // namespace trivelet
