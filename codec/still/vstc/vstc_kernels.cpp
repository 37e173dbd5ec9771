// The loops of VSTC, compiled once per instruction set (codec/base/simd.h).
#include "codec/still/vstc/vstc_kernels.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace trivelet::vstc::TRIVELET_ISA {
namespace {

using Ints = std::int32_t __attribute__((vector_size(64)));
using Shorts = std::int16_t __attribute__((vector_size(32)));
constexpr int kVector = 16;

inline Ints load(const std::int16_t* p) {
  Shorts s;
  __builtin_memcpy(&s, p, sizeof s);
  return __builtin_convertvector(s, Ints);
}
inline void store(std::int16_t* p, Ints v) {
  const Shorts s = __builtin_convertvector(v, Shorts);
  __builtin_memcpy(p, &s, sizeof s);
}

void transpose(const std::int16_t* in, std::ptrdiff_t in_stride, int w, int h, int blocks, std::int16_t* out,
               std::ptrdiff_t out_stride) {
  for (int b = 0; b < blocks; ++b)
    for (int y0 = 0; y0 < h; y0 += 4)
      for (int x0 = 0; x0 < w; x0 += 4) {
        const std::int16_t* i = in + y0 * in_stride + b * w + x0;
        std::int16_t* o = out + x0 * out_stride + b * h + y0;
        for (int x = 0; x < 4; ++x)
          for (int y = 0; y < 4; ++y) o[x * out_stride + y] = i[y * in_stride + x];
      }
}

void predict_angular(const std::uint16_t* ref, int side, int angle, int w, int h, int bits, bool edges,
                     std::int16_t* out, std::ptrdiff_t stride) {
  // `side` = 1: the main reference is above; -1: it is on the left and the block is transposed.
  std::uint16_t buffer[3 * kMaxSide + 1 + 32];
  std::uint16_t* main = buffer + kMaxSide;  // main[0] is the corner
  for (int i = 0; i <= w + h; ++i) main[i] = ref[side * i];
  if (angle < 0) {
    const int reach = (h * angle) >> 5;
    const int inverse = (8192 + (-angle >> 1)) / -angle;
    for (int i = -1; i >= reach; --i) main[i] = ref[-side * ((-i * inverse + 128) >> 8)];
  }
  for (int y = 0; y < h; ++y) {
    const int at = ((y + 1) * angle) >> 5, f = ((y + 1) * angle) & 31;
    const std::uint16_t* r = main + at + 1;
    std::int16_t* row = out + y * stride;
    if (f == 0)
      for (int x = 0; x < w; ++x) row[x] = static_cast<std::int16_t>(r[x]);
    else
      for (int x = 0; x < w; ++x) row[x] = static_cast<std::int16_t>(((32 - f) * r[x] + f * r[x + 1] + 16) >> 5);
  }
  if (angle == 0 && edges) {
    const int most = (1 << bits) - 1;
    for (int y = 0; y < h; ++y) {
      const int v = main[1] + ((ref[-side * (y + 1)] - ref[0]) >> 1);
      out[y * stride] = static_cast<std::int16_t>(v < 0 ? 0 : v > most ? most : v);
    }
  }
}

void predict(const std::uint16_t* ref, int mode, int log2_w, int log2_h, int bits, bool edges, std::int16_t* out,
             std::ptrdiff_t stride) {
  const int w = 1 << log2_w, h = 1 << log2_h;
  const std::uint16_t* top = ref + 1;
  const auto left = [&](int y) { return static_cast<int>(ref[-1 - y]); };
  if (mode == 0) {
    for (int y = 0; y < h; ++y) {
      const int l = left(y), below = left(h), right = top[w];
      for (int x = 0; x < w; ++x)
        out[y * stride + x] =
            static_cast<std::int16_t>((((w - 1 - x) * l + (x + 1) * right) * h +
                                       ((h - 1 - y) * static_cast<int>(top[x]) + (y + 1) * below) * w + w * h) >>
                                      (log2_w + log2_h + 1));
    }
  } else if (mode == 1) {
    int sum = (w + h) >> 1;
    for (int x = 0; x < w; ++x) sum += top[x];
    for (int y = 0; y < h; ++y) sum += left(y);
    const int dc = sum / (w + h);
    for (int y = 0; y < h; ++y)
      for (int x = 0; x < w; ++x) out[y * stride + x] = static_cast<std::int16_t>(dc);
    if (edges) {
      for (int x = 1; x < w; ++x) out[x] = static_cast<std::int16_t>((top[x] + 3 * dc + 2) >> 2);
      for (int y = 1; y < h; ++y) out[y * stride] = static_cast<std::int16_t>((left(y) + 3 * dc + 2) >> 2);
      out[0] = static_cast<std::int16_t>((left(0) + 2 * dc + top[0] + 2) >> 2);
    }
  } else if (mode >= 18) {
    predict_angular(ref, 1, kAngles[mode], w, h, bits, edges, out, stride);
  } else {
    std::int16_t turned[kMaxSide * kMaxSide];
    predict_angular(ref, -1, kAngles[mode], h, w, bits, edges, turned, h);
    transpose(turned, h, h, w, 1, out, stride);
  }
}

std::int64_t subtract(const std::uint16_t* a, std::ptrdiff_t a_stride, int width, int height, std::int16_t* inout,
                      std::ptrdiff_t stride) {
  std::int64_t sum = 0;
  for (int y = 0; y < height; ++y) {
    std::uint32_t row = 0;  // a sum of 64 squares of 12 bits is below 2^31
    for (int x = 0; x < width; ++x) {
      const int d = static_cast<int>(a[y * a_stride + x]) - inout[y * stride + x];
      inout[y * stride + x] = static_cast<std::int16_t>(d);
      row += static_cast<std::uint32_t>(d * d);
    }
    sum += row;
  }
  return sum;
}

template <int kLog2>
void forward_dct(const std::int16_t* in, std::ptrdiff_t in_stride, int rows, int lanes, const Coefficient* m, int shift,
                 std::int16_t* out, std::ptrdiff_t out_stride) {
  constexpr int n = 1 << kLog2, half = n / 2;
  const Ints round = Ints{} + (shift > 0 ? 1 << (shift - 1) : 0);
  for (int y = 0; y < rows; y += n)
    for (int x = 0; x < lanes; x += kVector) {
      Ints sum[half], difference[half];
      const std::int16_t* i = in + y * in_stride + x;
      for (int k = 0; k < half; ++k) {
        const Ints a = load(i + k * in_stride), b = load(i + (n - 1 - k) * in_stride);
        sum[k] = a + b;
        difference[k] = a - b;
      }
      std::int16_t* o = out + y * out_stride + x;
      for (int k = 0; k < n; k += 2) {
        Ints even = round, odd = round;
        for (int j = 0; j < half; ++j) {
          even += sum[j] * static_cast<std::int32_t>(m[k * n + j]);
          odd += difference[j] * static_cast<std::int32_t>(m[(k + 1) * n + j]);
        }
        store(o + k * out_stride, even >> shift);
        store(o + (k + 1) * out_stride, odd >> shift);
      }
    }
}

template <int kLog2>
void forward_any(const std::int16_t* in, std::ptrdiff_t in_stride, int rows, int lanes, const Coefficient* m, int shift,
                 std::int16_t* out, std::ptrdiff_t out_stride) {
  constexpr int n = 1 << kLog2;
  const Ints round = Ints{} + (shift > 0 ? 1 << (shift - 1) : 0);
  for (int y = 0; y < rows; y += n)
    for (int x = 0; x < lanes; x += kVector) {
      Ints v[n];
      for (int k = 0; k < n; ++k) v[k] = load(in + (y + k) * in_stride + x);
      for (int k = 0; k < n; ++k) {
        Ints a = round;
        for (int j = 0; j < n; ++j) a += v[j] * static_cast<std::int32_t>(m[k * n + j]);
        store(out + (y + k) * out_stride + x, a >> shift);
      }
    }
}

void forward(const std::int16_t* in, std::ptrdiff_t in_stride, int rows, int lanes, const Coefficient* m, int log2_n,
             bool symmetric, int shift, std::int16_t* out, std::ptrdiff_t out_stride) {
  if (log2_n == 0) {
    // A negative shift is a left shift.
    for (int y = 0; y < rows; ++y)
      for (int x = 0; x < lanes; x += kVector) store(out + y * out_stride + x, load(in + y * in_stride + x) << -shift);
    return;
  }
  using Function =
      void (*)(const std::int16_t*, std::ptrdiff_t, int, int, const Coefficient*, int, std::int16_t*, std::ptrdiff_t);
  static constexpr Function kDct[7] = {nullptr,        forward_dct<1>, forward_dct<2>, forward_dct<3>,
                                       forward_dct<4>, forward_dct<5>, forward_dct<6>};
  static constexpr Function kAny[6] = {nullptr,        forward_any<1>, forward_any<2>,
                                       forward_any<3>, forward_any<4>, forward_any<5>};
  (symmetric ? kDct[log2_n] : kAny[log2_n])(in, in_stride, rows, lanes, m, shift, out, out_stride);
}

void add_magnitudes(const std::int16_t* in, std::ptrdiff_t stride, int w, int h, int blocks, std::int32_t* sums) {
  std::int32_t lanes[kModes * kMaxSide];
  for (int i = 0; i < w * blocks; ++i) lanes[i] = 0;
  for (int y = 0; y < h; ++y) {
    const std::int16_t* row = in + y * stride;
    for (int i = 0; i < w * blocks; ++i) lanes[i] += row[i] < 0 ? -row[i] : row[i];
  }
  for (int b = 0; b < blocks; ++b)
    for (int i = 0; i < w; ++i) sums[b] += lanes[b * w + i];
}

void find_large(const std::int16_t* in, std::ptrdiff_t stride, int rows, int words, int threshold, std::uint64_t* out) {
  for (int y = 0; y < rows; ++y)
    for (int k = 0; k < words; ++k) {
      const std::int16_t* p = in + y * stride + 64 * k;
      std::uint64_t word = 0;
#if defined(__AVX512BW__)
      const __m512i t = _mm512_set1_epi16(static_cast<short>(threshold));
      for (int i = 0; i < 2; ++i)
        word |= std::uint64_t{_mm512_cmpge_epi16_mask(_mm512_abs_epi16(_mm512_loadu_si512(p + 32 * i)), t)} << 32 * i;
#elif defined(__AVX2__)
      const __m256i t = _mm256_set1_epi16(static_cast<short>(threshold - 1));
      for (int i = 0; i < 2; ++i) {
        const auto large = [&](int at) {
          return _mm256_cmpgt_epi16(_mm256_abs_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + at))), t);
        };
        const __m256i bytes = _mm256_permute4x64_epi64(_mm256_packs_epi16(large(32 * i), large(32 * i + 16)), 0xD8);
        word |= std::uint64_t{static_cast<std::uint32_t>(_mm256_movemask_epi8(bytes))} << 32 * i;
      }
#else
      for (int i = 0; i < 64; ++i) word |= std::uint64_t{(p[i] < 0 ? -p[i] : p[i]) >= threshold} << i;
#endif
      out[y * words + k] = word;
    }
}

void inverse(const std::int16_t* values, int log2_w, int log2_h, const Coefficient* horizontal,
             const Coefficient* vertical, int bits, std::int16_t* out, std::ptrdiff_t stride) {
  const int w = 1 << log2_w, h = 1 << log2_h;
  std::int32_t sums[kMaxSide * kMaxSide];
  for (int i = 0; i < w * h; ++i) sums[i] = 64;
  for (int i = 0; i < h; ++i) {
    int last = w;
    while (last > 0 && values[i * w + last - 1] == 0) --last;
    if (last == 0) continue;
    for (int j = 0; j < h; ++j) {
      const int c = vertical[i * h + j];
      for (int x = 0; x < last; ++x) sums[j * w + x] += c * values[i * w + x];
    }
  }
  const int shift = 20 - bits;
  for (int y = 0; y < h; ++y) {
    std::int32_t row[kMaxSide];
    for (int x = 0; x < w; ++x) row[x] = 1 << (shift - 1);
    for (int i = 0; i < w; ++i) {
      int v = sums[y * w + i] >> 7;
      v = v < -32768 ? -32768 : v > 32767 ? 32767 : v;
      if (v == 0) continue;
      for (int x = 0; x < w; ++x) row[x] += v * horizontal[i * w + x];
    }
    for (int x = 0; x < w; ++x) {
      const int v = row[x] >> shift;
      out[y * stride + x] = static_cast<std::int16_t>(v < -32768 ? -32768 : v > 32767 ? 32767 : v);
    }
  }
}

}  // namespace

constinit const Kernels kKernels = {predict, subtract, forward, transpose, add_magnitudes, find_large, inverse};

}  // namespace trivelet::vstc::TRIVELET_ISA
