// The loops of the wavelet transform, once per instruction set; dwt.cpp picks a table and does tiles and threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "codec/base/simd.h"

namespace trivelet {

/// Which axes of a plane a call transforms. kTile: columns of something small that is in the cache already.
enum class PlaneAxes { kRowsAndColumns, kRows, kColumns, kTile };

/// One level of a transform of a plane of `rows` x `columns` values; `stride` elements from a row to the next.
/// Along a row, values are separated into [low | high]; from row to row they stay interleaved. Forward: rows
/// (horizontal lifting) before columns (vertical lifting); inverse: the reverse.
/// `scratch` has plane_scratch(columns) values and is used for kRows and kRowsAndColumns.
template <class T>
using PlaneKernel = void (*)(T* plane, std::ptrdiff_t stride, int rows, int columns, PlaneAxes axes, T* scratch);

/// The inverse of both axes; `prepare` is called with every row just before its first use.
template <class T>
struct RowPreparation {
  void (*prepare)(const void* context, int y, T* row) = nullptr;  ///< null: nothing to be done
  const void* context = nullptr;
};
template <class T>
using PreparedPlaneKernel = void (*)(T* plane, std::ptrdiff_t stride, int rows, int columns, T* scratch,
                                     const RowPreparation<T>& rows_before);

/// Conversions of a row. Index of a sample format: 2 * (bytes_per_sample - 1) + is_signed; samples may be unaligned.
template <class T>
using LoadKernel = void (*)(const std::byte* samples, std::int32_t offset, T* out, int n);
template <class T>
using StoreKernel = void (*)(const T* in, float gain, std::int32_t offset, std::int32_t min_sample,
                             std::int32_t max_sample, std::byte* samples, int n);

inline constexpr int kWavelets = 4;  ///< entries of Wavelet

template <class T>
struct DwtKernels {
  PlaneKernel<T> forward[kWavelets];  ///< by Wavelet; null where T has no such filter
  PlaneKernel<T> inverse[kWavelets];
  PreparedPlaneKernel<T> inverse_prepared[kWavelets];
  LoadKernel<T> load[4];
  StoreKernel<T> store[4];
  /// Copies n values past the caches where the instruction set can and `out` is aligned; stream_end() orders them.
  void (*stream)(const T* in, T* out, int n);
  void (*stream_end)();
};

namespace scalar {
extern const DwtKernels<float> kDwtFloat;
extern const DwtKernels<std::int32_t> kDwtInt;
}  // namespace scalar
namespace avx2 {
extern const DwtKernels<float> kDwtFloat;
extern const DwtKernels<std::int32_t> kDwtInt;
}  // namespace avx2
namespace avx512 {
extern const DwtKernels<float> kDwtFloat;
extern const DwtKernels<std::int32_t> kDwtInt;
}  // namespace avx512

/// Of float and int32.
template <class T>
const DwtKernels<T>& dwt_kernels(SimdLevel simd) {
  if constexpr (std::is_same_v<T, float>)
    return pick(simd, TRIVELET_TABLES(kDwtFloat));
  else
    return pick(simd, TRIVELET_TABLES(kDwtInt));
}

/// Of the conversions above, those of a view's samples.
template <class View>
int format_index(const View& v) {
  return 2 * (v.bytes_per_sample - 1) + (v.is_signed ? 1 : 0);
}

/// Values that a plane kernel needs as scratch: even and odd samples of a row with room for their extension.
inline constexpr int kRowPad = 16;
inline std::size_t plane_scratch(int columns) { return static_cast<std::size_t>(columns) + 6 * kRowPad; }

}  // namespace trivelet
