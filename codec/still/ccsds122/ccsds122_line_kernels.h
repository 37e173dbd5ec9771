// Wavelet loops over lines; a part of ccsds122_kernels.cpp. Every loop maps a function of ccsds122_lifting.h over a
// row, which the compiler vectorises, so results do not depend on the instruction set.
#pragma once

#include "codec/still/ccsds122/ccsds122_kernels.h"
#include "codec/still/ccsds122/ccsds122_lifting.h"

namespace trivelet::ccsds122::TRIVELET_ISA {
namespace {

#define CCSDS_RESTRICT __restrict

/// Splits x = [e0 o0 e1 o1 ...] into two lines with margins.
template <class T>
inline void split_line(const T* CCSDS_RESTRICT x, int pairs, T* CCSDS_RESTRICT even, T* CCSDS_RESTRICT odd) {
  for (int j = 0; j < pairs; ++j) {
    even[j] = x[2 * j];
    odd[j] = x[2 * j + 1];
  }
}
template <class T>
inline void join_line(const T* CCSDS_RESTRICT even, const T* CCSDS_RESTRICT odd, int pairs, T* CCSDS_RESTRICT x) {
  for (int j = 0; j < pairs; ++j) {
    x[2 * j] = even[j];
    x[2 * j + 1] = odd[j];
  }
}

// ---- integer 9/7M; A is Narrow97M or Wide97M

template <class A>
void forward_row_int(const std::int32_t* x, int pairs, std::int32_t* CCSDS_RESTRICT low,
                     std::int32_t* CCSDS_RESTRICT high, std::int32_t* CCSDS_RESTRICT scratch) {
  std::int32_t* CCSDS_RESTRICT e = scratch + 16;
  std::int32_t* CCSDS_RESTRICT o = scratch + 32 + pairs;
  split_line(x, pairs, e, o);
  e[-1] = e[1];
  e[pairs] = e[pairs - 1];
  e[pairs + 1] = e[pairs - 2];
  for (int j = 0; j < pairs; ++j) high[j] = wrapping_sub(o[j], A::predict(e[j - 1], e[j], e[j + 1], e[j + 2]));
  low[0] = wrapping_sub(e[0], A::update(high[0], high[0]));
  for (int j = 1; j < pairs; ++j) low[j] = wrapping_sub(e[j], A::update(high[j - 1], high[j]));
}

template <class A>
void inverse_row_int(const std::int32_t* CCSDS_RESTRICT low, const std::int32_t* CCSDS_RESTRICT high, int pairs,
                     std::int32_t* CCSDS_RESTRICT x, std::int32_t* CCSDS_RESTRICT scratch) {
  std::int32_t* CCSDS_RESTRICT e = scratch + 16;
  std::int32_t* CCSDS_RESTRICT o = scratch + 32 + pairs;
  e[0] = wrapping_add(low[0], A::update(high[0], high[0]));
  for (int j = 1; j < pairs; ++j) e[j] = wrapping_add(low[j], A::update(high[j - 1], high[j]));
  e[-1] = e[1];
  e[pairs] = e[pairs - 1];
  e[pairs + 1] = e[pairs - 2];
  for (int j = 0; j < pairs; ++j) o[j] = wrapping_add(high[j], A::predict(e[j - 1], e[j], e[j + 1], e[j + 2]));
  join_line(e, o, pairs, x);
}

template <class A>
void forward_high_int(const std::int32_t* const* rows, int count, std::int32_t* CCSDS_RESTRICT high) {
  const std::int32_t *em1 = rows[0], *e0 = rows[2], *o = rows[3], *e1 = rows[4], *e2 = rows[6];
  for (int x = 0; x < count; ++x) high[x] = wrapping_sub(o[x], A::predict(em1[x], e0[x], e1[x], e2[x]));
}
template <class A>
void forward_low_int(const std::int32_t* const* rows, const std::int32_t* const* highs, int count,
                     std::int32_t* CCSDS_RESTRICT low) {
  const std::int32_t *e = rows[4], *dm1 = highs[0], *d = highs[1];
  for (int x = 0; x < count; ++x) low[x] = wrapping_sub(e[x], A::update(dm1[x], d[x]));
}
template <class A>
void inverse_even_int(const std::int32_t* const* lows, const std::int32_t* const* highs, int count,
                      std::int32_t* CCSDS_RESTRICT even) {
  const std::int32_t *c = lows[1], *dm1 = highs[1], *d = highs[2];
  for (int x = 0; x < count; ++x) even[x] = wrapping_add(c[x], A::update(dm1[x], d[x]));
}
template <class A>
void inverse_odd_int(const std::int32_t* const*, const std::int32_t* const* highs, const std::int32_t* const* evens,
                     int count, std::int32_t* CCSDS_RESTRICT odd) {
  const std::int32_t *em1 = evens[0], *e0 = evens[1], *e1 = evens[2], *e2 = evens[3], *d = highs[2];
  for (int x = 0; x < count; ++x) odd[x] = wrapping_add(d[x], A::predict(em1[x], e0[x], e1[x], e2[x]));
}

// ---- float 9/7

void forward_row_real(const float* x, int pairs, float* CCSDS_RESTRICT low, float* CCSDS_RESTRICT high,
                      float* CCSDS_RESTRICT scratch) {
  float* CCSDS_RESTRICT e = scratch + 16;
  float* CCSDS_RESTRICT o = scratch + 32 + pairs;
  split_line(x, pairs, e, o);
  e[-1] = e[1];
  e[-2] = e[2];
  e[pairs] = e[pairs - 1];
  e[pairs + 1] = e[pairs - 2];
  o[-1] = o[0];
  o[-2] = o[1];
  o[pairs] = o[pairs - 2];
  for (int j = 0; j < pairs; ++j)
    low[j] = Float97::low(e[j - 2], o[j - 2], e[j - 1], o[j - 1], e[j], o[j], e[j + 1], o[j + 1], e[j + 2]);
  for (int j = 0; j < pairs; ++j) high[j] = Float97::high(e[j - 1], o[j - 1], e[j], o[j], e[j + 1], o[j + 1], e[j + 2]);
}

void inverse_row_real(const float* low, const float* high, int pairs, float* CCSDS_RESTRICT x,
                      float* CCSDS_RESTRICT scratch) {
  float* CCSDS_RESTRICT c = scratch + 16;
  float* CCSDS_RESTRICT d = scratch + 32 + pairs;
  for (int j = 0; j < pairs; ++j) {
    c[j] = low[j];
    d[j] = high[j];
  }
  c[-1] = c[1];
  c[pairs] = c[pairs - 1];
  c[pairs + 1] = c[pairs - 2];
  d[-1] = d[0];
  d[-2] = d[1];
  d[pairs] = d[pairs - 2];
  d[pairs + 1] = d[pairs - 3];
  for (int j = 0; j < pairs; ++j) {
    x[2 * j] = Float97::even(c[j - 1], c[j], c[j + 1], d[j - 2], d[j - 1], d[j], d[j + 1]);
    x[2 * j + 1] = Float97::odd(c[j - 1], c[j], c[j + 1], c[j + 2], d[j - 2], d[j - 1], d[j], d[j + 1], d[j + 2]);
  }
}

void forward_high_real(const float* const* r, int count, float* CCSDS_RESTRICT high) {
  const float *a = r[0], *b = r[1], *c = r[2], *d = r[3], *e = r[4], *f = r[5], *g = r[6];
  for (int x = 0; x < count; ++x) high[x] = Float97::high(a[x], b[x], c[x], d[x], e[x], f[x], g[x]);
}
void forward_low_real(const float* const* r, const float* const*, int count, float* CCSDS_RESTRICT low) {
  const float *a = r[0], *b = r[1], *c = r[2], *d = r[3], *e = r[4], *f = r[5], *g = r[6], *h = r[7], *i = r[8];
  for (int x = 0; x < count; ++x) low[x] = Float97::low(a[x], b[x], c[x], d[x], e[x], f[x], g[x], h[x], i[x]);
}
void inverse_even_real(const float* const* c, const float* const* d, int count, float* CCSDS_RESTRICT even) {
  const float *c0 = c[0], *c1 = c[1], *c2 = c[2], *d0 = d[0], *d1 = d[1], *d2 = d[2], *d3 = d[3];
  for (int x = 0; x < count; ++x) even[x] = Float97::even(c0[x], c1[x], c2[x], d0[x], d1[x], d2[x], d3[x]);
}
void inverse_odd_real(const float* const* c, const float* const* d, const float* const*, int count,
                      float* CCSDS_RESTRICT odd) {
  const float *c0 = c[0], *c1 = c[1], *c2 = c[2], *c3 = c[3];
  const float *d0 = d[0], *d1 = d[1], *d2 = d[2], *d3 = d[3], *d4 = d[4];
  for (int x = 0; x < count; ++x) odd[x] = Float97::odd(c0[x], c1[x], c2[x], c3[x], d0[x], d1[x], d2[x], d3[x], d4[x]);
}

void round_row(const float* CCSDS_RESTRICT row, int count, std::int32_t* CCSDS_RESTRICT out) {
  for (int x = 0; x < count; ++x) out[x] = round_away(row[x]);
}

// ---- samples; S is the stored type

template <class S, class T>
inline void load_as(const void* samples, int width, T* CCSDS_RESTRICT row) {
  const S* CCSDS_RESTRICT s = static_cast<const S*>(samples);
  for (int x = 0; x < width; ++x) row[x] = static_cast<T>(s[x]);
}
template <class T>
void load_row(const void* samples, int bytes, bool is_signed, int width, int padded, T* row) {
  if (bytes == 1) {
    is_signed ? load_as<std::int8_t>(samples, width, row) : load_as<std::uint8_t>(samples, width, row);
  } else if (bytes == 2) {
    is_signed ? load_as<std::int16_t>(samples, width, row) : load_as<std::uint16_t>(samples, width, row);
  } else {
    load_as<std::int32_t>(samples, width, row);
  }
  for (int x = width; x < padded; ++x) row[x] = row[width - 1];
}

template <class S>
inline void store_as(const std::int32_t* CCSDS_RESTRICT row, std::int32_t low, std::int32_t high, int width,
                     void* samples) {
  S* CCSDS_RESTRICT s = static_cast<S*>(samples);
  for (int x = 0; x < width; ++x) {
    const std::int32_t v = row[x] < low ? low : row[x] > high ? high : row[x];
    s[x] = static_cast<S>(v);
  }
}
template <class S>
inline void store_as(const float* CCSDS_RESTRICT row, std::int32_t low, std::int32_t high, int width, void* samples) {
  S* CCSDS_RESTRICT s = static_cast<S*>(samples);
  const float lowest = static_cast<float>(low), highest = static_cast<float>(high);
  for (int x = 0; x < width; ++x) {
    const float v = row[x] < lowest ? lowest : row[x] > highest ? highest : row[x];
    const std::int32_t r = round_away(v);
    s[x] = static_cast<S>(r < low ? low : r > high ? high : r);
  }
}
template <class T>
void store_row(const T* row, int bytes, std::int64_t low, std::int64_t high, int width, void* samples) {
  const auto lo = static_cast<std::int32_t>(low), hi = static_cast<std::int32_t>(high);
  if (bytes == 1) {
    store_as<std::uint8_t>(row, lo, hi, width, samples);
  } else if (bytes == 2) {
    store_as<std::uint16_t>(row, lo, hi, width, samples);
  } else {
    store_as<std::int32_t>(row, lo, hi, width, samples);
  }
}

template <class S>
inline void range_as(const void* samples, int width, std::int64_t* low, std::int64_t* high) {
  const S* s = static_cast<const S*>(samples);
  S lo = s[0], hi = s[0];
  for (int x = 1; x < width; ++x) {
    lo = s[x] < lo ? s[x] : lo;
    hi = s[x] > hi ? s[x] : hi;
  }
  *low = static_cast<std::int64_t>(lo);
  *high = static_cast<std::int64_t>(hi);
}
void range_row(const void* samples, int bytes, bool is_signed, int width, std::int64_t* low, std::int64_t* high) {
  if (bytes == 1) {
    is_signed ? range_as<std::int8_t>(samples, width, low, high) : range_as<std::uint8_t>(samples, width, low, high);
  } else if (bytes == 2) {
    is_signed ? range_as<std::int16_t>(samples, width, low, high) : range_as<std::uint16_t>(samples, width, low, high);
  } else {
    range_as<std::int32_t>(samples, width, low, high);
  }
}

template <class A>
constexpr LineKernels<std::int32_t> integer_lines() {
  return {forward_row_int<A>,  inverse_row_int<A>, forward_high_int<A>,    forward_low_int<A>,
          inverse_even_int<A>, inverse_odd_int<A>, load_row<std::int32_t>, store_row<std::int32_t>};
}
constexpr LineKernels<float> real_lines() {
  return {forward_row_real,  inverse_row_real, forward_high_real, forward_low_real,
          inverse_even_real, inverse_odd_real, load_row<float>,   store_row<float>};
}

}  // namespace
}  // namespace trivelet::ccsds122::TRIVELET_ISA
