// SAD, SATD and interpolation of the motion search (sad_kernels.h).
#include "codec/motion/sad_kernels.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace trivelet::TRIVELET_ISA {
namespace {

using Index = std::ptrdiff_t;
using Byte = std::uint8_t;
using Deep = std::int16_t;

constexpr int kCell = 8;
constexpr int kRoot = 64;

// Samples of 16 bits of one, two or four cells side by side, the same of 8 bits, and sums of pairs.
typedef std::int16_t Lanes8 __attribute__((vector_size(16)));
typedef Byte Bytes8 __attribute__((vector_size(8)));
typedef std::uint32_t Pairs8 __attribute__((vector_size(16)));
#if defined(__AVX2__)
typedef std::int16_t Lanes16 __attribute__((vector_size(32)));
typedef Byte Bytes16 __attribute__((vector_size(16)));
typedef std::uint32_t Pairs16 __attribute__((vector_size(32)));
#endif
#if defined(__AVX512BW__)
typedef std::int16_t Lanes32 __attribute__((vector_size(64)));
typedef Byte Bytes32 __attribute__((vector_size(32)));
typedef std::uint32_t Pairs32 __attribute__((vector_size(64)));
#endif

struct One {
  using Lanes = Lanes8;
  using Bytes = Bytes8;
  using Pairs = Pairs8;
  static constexpr int kCells = 1;
};
#if defined(__AVX2__)
struct Two {
  using Lanes = Lanes16;
  using Bytes = Bytes16;
  using Pairs = Pairs16;
  static constexpr int kCells = 2;
};
#endif
#if defined(__AVX512BW__)
struct Four {
  using Lanes = Lanes32;
  using Bytes = Bytes32;
  using Pairs = Pairs32;
  static constexpr int kCells = 4;
};
#endif

template <class W>
inline typename W::Lanes load(const Byte* p) {
  typename W::Bytes v;
  __builtin_memcpy(&v, p, sizeof v);
  return __builtin_convertvector(v, typename W::Lanes);
}
template <class W>
inline typename W::Lanes load(const Deep* p) {
  typename W::Lanes v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}

template <class V>
inline V magnitude(V v) {
  return v < 0 ? -v : v;
}

// In units of 8 bits. Differences to a mean or of one are within nine bits and their transforms within 16.
template <class Sample, class V>
inline V difference_of(V a, V b) {
  return sizeof(Sample) == 1 ? a - b : (a - b + (1 << (kDeepShift - 1))) >> kDeepShift;
}

// ---------------------------------------------------------------------------------------------------------- transforms

// Stages of an 8-point Hadamard transform; the last one only if `all`.
template <class V>
inline void butterflies(V m[8], bool all) {
  for (int s = 4; s > (all ? 0 : 1); s >>= 1)
    for (int first = 0; first < 8; first += 2 * s)
      for (int j = first; j < first + s; ++j) {
        const V u = m[j];
        const V v = m[j + s];
        m[j] = u + v;
        m[j + s] = u - v;
      }
}

// The lower and the upper halves of two rows, interleaved, in each eight lanes.
inline Lanes8 lower(Lanes8 a, Lanes8 b) { return __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11); }
inline Lanes8 upper(Lanes8 a, Lanes8 b) { return __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15); }
#if defined(__AVX2__)
inline Lanes16 lower(Lanes16 a, Lanes16 b) {
  return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 8, 24, 9, 25, 10, 26, 11, 27);
}
inline Lanes16 upper(Lanes16 a, Lanes16 b) {
  return __builtin_shufflevector(a, b, 4, 20, 5, 21, 6, 22, 7, 23, 12, 28, 13, 29, 14, 30, 15, 31);
}
#endif
#if defined(__AVX512BW__)
inline Lanes32 lower(Lanes32 a, Lanes32 b) {
  return __builtin_shufflevector(a, b, 0, 32, 1, 33, 2, 34, 3, 35, 8, 40, 9, 41, 10, 42, 11, 43, 16, 48, 17, 49, 18, 50,
                                 19, 51, 24, 56, 25, 57, 26, 58, 27, 59);
}
inline Lanes32 upper(Lanes32 a, Lanes32 b) {
  return __builtin_shufflevector(a, b, 4, 36, 5, 37, 6, 38, 7, 39, 12, 44, 13, 45, 14, 46, 15, 47, 20, 52, 21, 53, 22,
                                 54, 23, 55, 28, 60, 29, 61, 30, 62, 31, 63);
}
#endif

// Interleaves rows i and i + 4 three times, which transposes each cell.
template <class V>
inline void transpose(V m[8]) {
  for (int round = 0; round < 3; ++round) {
    V t[8];
    for (int i = 0; i < 4; ++i) {
      t[2 * i] = lower(m[i], m[i + 4]);
      t[2 * i + 1] = upper(m[i], m[i + 4]);
    }
    for (int i = 0; i < 8; ++i) m[i] = t[i];
  }
}

// Half the magnitudes of the transforms of cells side by side, as sums of pairs of lanes.
template <class W>
inline typename W::Pairs transformed(typename W::Lanes m[8]) {
  using V = typename W::Lanes;
  butterflies(m, true);
  transpose(m);
  butterflies(m, false);
  // The last stage and the sum of its magnitudes: |u + v| + |u - v| = 2 max(|u|, |v|).
  typename W::Pairs sum = {};
  for (int j = 0; j < 8; j += 2) {
    const V u = magnitude(m[j]);
    const V v = magnitude(m[j + 1]);
    const auto p = (typename W::Pairs)(u > v ? u : v);
    sum += (p & 0xffff) + (p >> 16);
  }
  return sum;
}

// The sum of each cell's four pairs.
template <class W>
inline void store_sums(typename W::Pairs p, int count, std::int32_t* out) {
  std::uint32_t of[W::kCells * 4];
  __builtin_memcpy(of, &p, sizeof p);
  for (int i = 0; i < count; ++i)
    out[i] = static_cast<std::int32_t>(of[4 * i] + of[4 * i + 1] + of[4 * i + 2] + of[4 * i + 3]);
}
template <class W>
inline int total_of(typename W::Pairs p) {
  std::int32_t of[W::kCells];
  store_sums<W>(p, W::kCells, of);
  int sum = 0;
  for (const std::int32_t v : of) sum += v;
  return sum;
}

template <class W, class Sample, class F>
inline typename W::Pairs transform_with(const Sample* a, Index stride, const F& other) {
  typename W::Lanes m[8];
  for (int j = 0; j < kCell; ++j) m[j] = difference_of<Sample>(load<W>(a + j * stride), other(j));
  return transformed<W>(m);
}

template <class W, class Sample>
inline void row_of_cells(const Sample* a, const Sample* b, Index stride, int cells, std::int32_t* out) {
  for (int i = 0; i < cells; i += W::kCells) {
    const Sample* from = b + i * kCell;
    store_sums<W>(transform_with<W>(a + i * kCell, stride, [=](int j) { return load<W>(from + j * stride); }),
                  W::kCells, out + i);
  }
}

template <class Sample>
void satd_of_cells(const Sample* a, const Sample* b, Index stride, int cells, std::int32_t* out) {
#if defined(__AVX512BW__)
  if (cells % 4 == 0) return row_of_cells<Four>(a, b, stride, cells, out);
#endif
#if defined(__AVX2__)
  if (cells % 2 == 0) return row_of_cells<Two>(a, b, stride, cells, out);
#endif
  row_of_cells<One>(a, b, stride, cells, out);
}

template <class Sample>
void satd_of_many(const Sample* a, const Sample* const* b, Index stride, int count, std::int32_t* out) {
  int i = 0;
#if defined(__AVX2__)
  for (; i + 1 < count; i += 2) {
    Lanes16 m[8];
    const Sample *first = b[i], *second = b[i + 1];
    for (int j = 0; j < kCell; ++j) {
      const Lanes8 here = load<One>(a + j * stride);
      const Lanes8 p = difference_of<Sample>(here, load<One>(first + j * stride));
      const Lanes8 q = difference_of<Sample>(here, load<One>(second + j * stride));
      m[j] = __builtin_shufflevector(p, q, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    }
    store_sums<Two>(transformed<Two>(m), 2, out + i);
  }
#endif
  for (; i < count; ++i) row_of_cells<One>(a, b[i], stride, 1, out + i);
}

template <class W, class Sample, class F>
inline int sum_of_cells(const Sample* a, Index stride, int size, const F& other) {
  typename W::Pairs sum = {};
  for (int y = 0; y < size; y += kCell)
    for (int x = 0; x < size; x += kCell * W::kCells)
      sum += transform_with<W>(a + y * stride + x, stride, [&](int j) { return other(W{}, y + j, x); });
  return total_of<W>(sum);
}

template <class Sample, class F>
inline int sum_of_block(const Sample* a, Index stride, int size, const F& other) {
#if defined(__AVX512BW__)
  if (size >= 4 * kCell) return sum_of_cells<Four>(a, stride, size, other);
#endif
#if defined(__AVX2__)
  if (size >= 2 * kCell) return sum_of_cells<Two>(a, stride, size, other);
#endif
  return sum_of_cells<One>(a, stride, size, other);
}

// (a + b + 1) >> 1 within 16 bits
template <class V>
inline V mean_of(V a, V b) {
  return (a | b) - ((a ^ b) >> 1);
}

template <class Sample>
int satd_of_mean(const Sample* a, const Sample* b, const Sample* c, Index stride, int size) {
  return sum_of_block(a, stride, size, [=](auto w, int y, int x) {
    using W = decltype(w);
    return mean_of(load<W>(b + y * stride + x), load<W>(c + y * stride + x));
  });
}

template <class Sample>
int satd_of_plain(const Sample* a, Sample plain, Index stride, int size) {
  return sum_of_block(a, stride, size, [=](auto w, int, int) {
    return typename decltype(w)::Lanes{} + static_cast<std::int16_t>(plain);
  });
}

// --------------------------------------------------------------------------------------------------------- differences

inline int cell_sad(const Byte* a, const Byte* b, Index stride) {
  int sum = 0;
  for (int j = 0; j < kCell; ++j)
    for (int i = 0; i < kCell; ++i) {
      const int d = a[j * stride + i] - b[j * stride + i];
      sum += d < 0 ? -d : d;
    }
  return sum;
}
inline int cell_sad(const Deep* a, const Deep* b, Index stride) {
  int sum = 0;
  for (int j = 0; j < kCell; ++j)
    for (int i = 0; i < kCell; ++i) {
      const int d = a[j * stride + i] - b[j * stride + i];
      sum += d < 0 ? -d : d;
    }
  return sum >> kDeepShift;
}

template <class S>
inline int sad_by_cells(const S* a, const S* b, Index stride, int size) {
  int sum = 0;
  for (int y = 0; y < size; y += kCell)
    for (int x = 0; x < size; x += kCell) sum += cell_sad(a + y * stride + x, b + y * stride + x, stride);
  return sum;
}
template <class S>
inline void sad_of_each_cell(const S* a, const S* b, Index stride, std::uint16_t out[64]) {
  for (int i = 0; i < 64; ++i) {
    const Index at = i / 8 * kCell * stride + i % 8 * kCell;
    out[i] = static_cast<std::uint16_t>(cell_sad(a + at, b + at, stride));
  }
}

#if defined(__AVX2__)
inline __m256i row_sads(const Byte* a, const Byte* b) {
  return _mm256_sad_epu8(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(a)),
                         _mm256_loadu_si256(reinterpret_cast<const __m256i*>(b)));
}
inline __m256i four_cells(const Byte* a, const Byte* b, Index stride) {
  __m256i sum = row_sads(a, b);
  for (int j = 1; j < kCell; ++j) sum = _mm256_add_epi64(sum, row_sads(a + j * stride, b + j * stride));
  return sum;
}
inline int total_of_four(__m256i v) {
  const __m128i s = _mm_add_epi64(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
  return _mm_cvtsi128_si32(s) + _mm_extract_epi32(s, 2);
}

int sad(const Byte* a, const Byte* b, Index stride, int size) {
  if (size >= 32) {
    __m256i sum = _mm256_setzero_si256();
    for (int y = 0; y < size; ++y)
      for (int x = 0; x < size; x += 32) sum = _mm256_add_epi64(sum, row_sads(a + y * stride + x, b + y * stride + x));
    return total_of_four(sum);
  }
  __m128i sum = _mm_setzero_si128();
  for (int y = 0; y < size; ++y) {
    const Byte *p = a + y * stride, *q = b + y * stride;
    sum = _mm_add_epi64(sum, size == 16 ? _mm_sad_epu8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)),
                                                       _mm_loadu_si128(reinterpret_cast<const __m128i*>(q)))
                                        : _mm_sad_epu8(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)),
                                                       _mm_loadl_epi64(reinterpret_cast<const __m128i*>(q))));
  }
  return _mm_cvtsi128_si32(sum) + _mm_extract_epi32(sum, 2);
}

void sad_of_cells(const Byte* a, const Byte* b, Index stride, std::uint16_t out[64]) {
  for (int y = 0; y < kRoot / kCell; ++y)
    for (int x = 0; x < kRoot / kCell; x += 4) {
      const Index at = y * kCell * stride + x * kCell;
      const __m256i sums = four_cells(a + at, b + at, stride);
      std::uint64_t of[4];
      __builtin_memcpy(of, &sums, sizeof of);
      for (int i = 0; i < 4; ++i) out[y * 8 + x + i] = static_cast<std::uint16_t>(of[i]);
    }
}
#else
int sad(const Byte* a, const Byte* b, Index stride, int size) { return sad_by_cells(a, b, stride, size); }
void sad_of_cells(const Byte* a, const Byte* b, Index stride, std::uint16_t out[64]) {
  sad_of_each_cell(a, b, stride, out);
}
#endif

int sad(const Deep* a, const Deep* b, Index stride, int size) { return sad_by_cells(a, b, stride, size); }
void sad_of_cells(const Deep* a, const Deep* b, Index stride, std::uint16_t out[64]) {
  sad_of_each_cell(a, b, stride, out);
}

// ---------------------------------------------------------------------------------------------- blocks of fine samples

// `other(j)` gives a row of the second block. Differences are divided by 8, so that their transform fits into 16 bits.
template <class F>
inline int fine_satd_with(const Deep* a, Index a_stride, const F& other) {
  Lanes8 m[8];
  for (int j = 0; j < kCell; ++j) m[j] = (load<One>(a + j * a_stride) - other(j)) >> 3;
  return 2 * 8 * total_of<One>(transformed<One>(m)) / 5;
}

int fine_sad(const Deep* a, Index a_stride, const Deep* b, Index b_stride) {
  Pairs8 sum = {};
  for (int j = 0; j < kCell; ++j) {
    const auto p = (Pairs8)magnitude(load<One>(a + j * a_stride) - load<One>(b + j * b_stride));
    sum += (p & 0xffff) + (p >> 16);
  }
  return total_of<One>(sum);
}

int fine_satd(const Deep* a, Index a_stride, const Deep* b, Index b_stride) {
  return fine_satd_with(a, a_stride, [=](int j) { return load<One>(b + j * b_stride); });
}

int fine_satd_of_mean(const Deep* a, Index a_stride, const Deep* b, const Deep* c, Index stride) {
  return fine_satd_with(a, a_stride,
                        [=](int j) { return mean_of(load<One>(b + j * stride), load<One>(c + j * stride)); });
}

// ------------------------------------------------------------------------------------------------------- interpolation

// Sums of bytes fit into 16 bits, those of 12 bits do not.
template <int kPhase, class Sum, class Sample>
inline void interpolate_by(const Sample* __restrict__ in, Index step, Sample* __restrict__ out, int n) {
  constexpr int kLeast = sizeof(Sample) == 1 ? 0 : -4096, kMost = sizeof(Sample) == 1 ? 255 : 4095;
  for (int x = 0; x < n; ++x) {
    Sum sum = 32;
    for (int i = 0; i < kMotionTaps; ++i)
      sum = static_cast<Sum>(sum + static_cast<Sum>(motion_tap(kPhase, i)) *
                                       static_cast<Sum>(in[x + (i - kMotionTapsBefore) * step]));
    const Sum v = static_cast<Sum>(sum >> 6);
    out[x] = static_cast<Sample>(v < kLeast ? kLeast : v > kMost ? kMost : v);
  }
}
template <class Sum, class Sample>
void interpolate(const Sample* in, Index step, Sample* const out[3], int n) {
  interpolate_by<2, Sum>(in, step, out[0], n);
  interpolate_by<4, Sum>(in, step, out[1], n);
  interpolate_by<6, Sum>(in, step, out[2], n);
}

}  // namespace

const SadKernels<Byte> kSadKernels8 = {
    sad,
    sad_of_cells,
    satd_of_cells<Byte>,
    satd_of_many<Byte>,
    satd_of_mean<Byte>,
    satd_of_plain<Byte>,
    interpolate<std::int16_t, Byte>,
};
const FineSadKernels kFineSadKernels = {fine_sad, fine_satd, fine_satd_of_mean};
const SadKernels<Deep> kSadKernels16 = {
    sad,
    sad_of_cells,
    satd_of_cells<Deep>,
    satd_of_many<Deep>,
    satd_of_mean<Deep>,
    satd_of_plain<Deep>,
    interpolate<std::int32_t, Deep>,
};

}  // namespace trivelet::TRIVELET_ISA
