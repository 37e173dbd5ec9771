// Loops over coefficients of the dense coder, compiled once per instruction set (codec/base/simd.h).
#include "codec/entropy/dense/coefficient_kernels.h"

#include "codec/transform/quantiser.h"

namespace trivelet::TRIVELET_ISA {
namespace {

constexpr int kLanes = 32;  // LaneSums::kLanes

// Rows are processed in pieces of this many columns by several loops, each simple enough to be vectorised.
constexpr int kColumns = 2 * kLanes;

/// The sign in the highest bit.
inline std::uint32_t sign_of(float c) {
  std::uint32_t bits;
  __builtin_memcpy(&bits, &c, sizeof bits);
  return bits & 0x80000000u;
}
inline std::uint32_t sign_of(std::int32_t c) { return static_cast<std::uint32_t>(c) & 0x80000000u; }

/// `exact` gets the magnitudes before they are rounded down.
template <class T>
std::uint32_t quantise_row(const T* in, int n, float inverse_step, T* exact, std::uint32_t* out,
                           std::uint32_t* joined) {
  std::uint32_t any = 0;
  TRIVELET_VECTOR_LOOP
  for (int x = 0; x < n; ++x) {
    const T limited = limited_magnitude(in[x], inverse_step);
    const auto m = static_cast<std::uint32_t>(static_cast<std::int32_t>(limited));
    exact[x] = limited;
    out[x] = m | sign_of(in[x]);
    joined[x] |= m;
    any |= m;
  }
  return any;
}

/// Adds squares of at most kColumns columns. Two neighbours share a lane, the left one first.
template <class T>
void add_squares(const T* exact, int n, double* lanes) {
  const int pairs = n / 2;
  TRIVELET_VECTOR_LOOP
  for (int i = 0; i < pairs; ++i) {
    const auto left = static_cast<double>(exact[2 * i]);
    const auto right = static_cast<double>(exact[2 * i + 1]);
    lanes[i] = (lanes[i] + left * left) + right * right;
  }
  if (n % 2 != 0) lanes[n / 2] += static_cast<double>(exact[n - 1]) * static_cast<double>(exact[n - 1]);
}

template <class T>
std::uint32_t quantise(const T* upper, const T* lower, int n, float inverse_step, std::uint32_t* upper_out,
                       std::uint32_t* lower_out, std::uint32_t* joined, double* lanes) {
  alignas(64) T exact[kColumns];
  std::uint32_t any = 0;
  for (int x = 0; x < n; x += kColumns) {
    const int columns = n - x < kColumns ? n - x : kColumns;
    any |= quantise_row(upper + x, columns, inverse_step, exact, upper_out + x, joined + x);
    add_squares(exact, columns, lanes);
    if (!lower) continue;
    any |= quantise_row(lower + x, columns, inverse_step, exact, lower_out + x, joined + x);
    add_squares(exact, columns, lanes);
  }
  return any;
}

/// `magnitude` with the sign of `c`, or 0 where `mask` is set. Bit operations, because branches would keep compilers
/// from vectorising the loop.
inline float signed_where(std::int32_t mask, float c, float magnitude) {
  std::int32_t sign;
  std::int32_t bits;
  __builtin_memcpy(&sign, &c, sizeof sign);
  __builtin_memcpy(&bits, &magnitude, sizeof bits);
  bits = (bits | (sign & INT32_MIN)) & mask;
  __builtin_memcpy(&magnitude, &bits, sizeof bits);
  return magnitude;
}
/// b where `mask` is set, else a.
inline std::int32_t select(std::int32_t mask, std::int32_t a, std::int32_t b) { return a ^ ((a ^ b) & mask); }
inline float select(std::int32_t mask, float a, float b) {
  std::int32_t bits[2];
  __builtin_memcpy(&bits[0], &a, sizeof a);
  __builtin_memcpy(&bits[1], &b, sizeof b);
  const std::int32_t chosen = select(mask, bits[0], bits[1]);
  __builtin_memcpy(&a, &chosen, sizeof a);
  return a;
}
inline std::int32_t signed_where(std::int32_t mask, std::int32_t c, std::int32_t magnitude) {
  return ((magnitude ^ (c >> 31)) - (c >> 31)) & mask;
}

template <class T>
void cut_columns(const CutRow<T>& cut, const T* from, T* to, int n) {
  alignas(64) std::int32_t magnitude[kColumns];
  TRIVELET_VECTOR_LOOP
  for (int x = 0; x < n; ++x) magnitude[x] = static_cast<std::int32_t>(limited_magnitude(from[x], cut.inverse_step));
  const std::int32_t older = cut.older;
  const std::int32_t kept[2] = {cut.kept[0], cut.kept[1]};
  const T offset[2] = {cut.offset[0], cut.offset[1]};
  const T step = cut.step;
  TRIVELET_VECTOR_LOOP
  for (int x = 0; x < n; ++x) {
    const std::int32_t is_older = -static_cast<std::int32_t>(magnitude[x] >= older);
    const std::int32_t known = magnitude[x] & select(is_older, kept[0], kept[1]);
    const T v = (static_cast<T>(known) + select(is_older, offset[0], offset[1])) * step;
    to[x] = signed_where(-static_cast<std::int32_t>(known != 0), from[x], v);
  }
}

template <class T>
void cut_row(const CutRow<T>& cut, const T* from, T* to, int n) {
  for (int x = 0; x < n; x += kColumns) cut_columns(cut, from + x, to + x, n - x < kColumns ? n - x : kColumns);
}

}  // namespace

constinit const CoefficientKernels<float> kCoefficientFloat = {quantise<float>, cut_row<float>};
constinit const CoefficientKernels<std::int32_t> kCoefficientInt = {quantise<std::int32_t>, cut_row<std::int32_t>};

}  // namespace trivelet::TRIVELET_ISA
