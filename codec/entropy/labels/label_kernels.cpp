// Loops over neighbours in blocks of labels, compiled once per instruction set (codec/base/simd.h).
#include "codec/entropy/labels/label_kernels.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace trivelet::labels::TRIVELET_ISA {

namespace {

void alike(const Rows& r, int n, std::uint8_t* out) {
  const std::int16_t* a = r.above;
  const std::int16_t* a2 = r.above2;
  const std::int16_t* b = r.before;
  const std::int16_t* ba = r.before_above;
  const std::int16_t* bb = r.before_below;
  const std::int16_t* b2 = r.before2;
  TRIVELET_VECTOR_LOOP
  for (int x = 0; x < n; ++x) {
    const int v = a[x];
    const int differs = (b[x] ^ v) | (a[x - 1] ^ v) | (a[x + 1] ^ v) | (b[x + 1] ^ v) | (bb[x] ^ v) | (a2[x] ^ v) |
                        (b[x - 1] ^ v) | (ba[x] ^ v) | (bb[x + 1] ^ v) | (a[x + 2] ^ v) | (b2[x] ^ v) |
                        (bb[x - 1] ^ v) | (ba[x + 1] ^ v);
    out[x] = static_cast<std::int16_t>(differs) == 0 ? 1 : 0;
  }
}

void as_above(const Rows& r, const std::int16_t* row, int n, std::uint8_t* out) {
  const std::int16_t* a = r.above;
  TRIVELET_VECTOR_LOOP
  for (int x = 0; x < n; ++x) out[x] = row[x] == a[x] ? 1 : 0;
}

void equal(const Rows& r, const std::int16_t* numbers, int n, std::uint16_t* out) {
  const std::int16_t* a = r.above;
  const std::int16_t* a2 = r.above2;
  const std::int16_t* b = r.before;
  const std::int16_t* ba = r.before_above;
  const std::int16_t* bb = r.before_below;
  const std::int16_t* b2 = r.before2;
  TRIVELET_VECTOR_LOOP
  for (int x = 0; x < n; ++x) {
    const std::int16_t v = numbers[x];
    const auto bit = [v](std::int16_t neighbour, int place) {
      return static_cast<std::uint16_t>(neighbour == v ? 1 << place : 0);
    };
    out[x] = static_cast<std::uint16_t>(bit(a[x], 1) | bit(b[x], 2) | bit(a[x - 1], 3) | bit(a[x + 1], 4) |
                                        bit(b[x + 1], 5) | bit(bb[x], 6) | bit(a2[x], 8) | bit(b[x - 1], 9) |
                                        bit(ba[x], 10) | bit(bb[x + 1], 11) | bit(a[x + 2], 12) | bit(b2[x], 13) |
                                        bit(bb[x - 1], 14) | bit(ba[x + 1], 15));
  }
}

#if defined(__AVX2__)

/// The least of 16 keys.
inline unsigned least_of(__m256i keys) {
  const __m128i eight = _mm_min_epu16(_mm256_castsi256_si128(keys), _mm256_extracti128_si256(keys, 1));
  return static_cast<unsigned>(_mm_cvtsi128_si32(_mm_minpos_epu16(eight))) & 0xffff;
}

// A lane for each neighbour: what its number is worth and the pattern come from 16 comparisons. A key then has what it
// is worth, the most as the least, above the neighbour's place.
int candidates(const std::int16_t* around, Candidate* out) {
  const __m256i numbers = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(around));
  __m256i worth = _mm256_setzero_si256();
  __m256i pattern = worth;
  for (int k = 0; k < kNeighbours; ++k) {
    const __m256i same = _mm256_cmpeq_epi16(numbers, _mm256_set1_epi16(around[k]));
    worth = _mm256_add_epi16(worth, _mm256_and_si256(same, _mm256_set1_epi16(kWorth[k])));
    pattern = _mm256_or_si256(pattern, _mm256_and_si256(same, _mm256_set1_epi16(static_cast<std::int16_t>(1 << k))));
  }
  alignas(32) std::uint16_t patterns[kNeighbours];
  _mm256_store_si256(reinterpret_cast<__m256i*>(patterns), pattern);
  const __m256i places = _mm256_setr_epi16(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  __m256i keys = _mm256_or_si256(_mm256_slli_epi16(_mm256_sub_epi16(_mm256_set1_epi16(63), worth), 4), places);
  int count = 0;
  for (; count < kMostCandidates; ++count) {
    const unsigned least = least_of(keys);
    if (least == 0xffff) break;
    const unsigned k = least % kNeighbours;
    out[count] = {around[k], patterns[k]};
    keys = _mm256_or_si256(keys, _mm256_cmpeq_epi16(numbers, _mm256_set1_epi16(around[k])));
  }
  return count;
}

#else

/// Which neighbours have the number; four neighbours at a time, without a branch.
unsigned pattern_of(const std::int16_t* around, std::int16_t number) {
  constexpr std::uint64_t kEach = 0x0001000100010001;
  constexpr std::uint64_t kLow = 0x7fff * kEach;
  // Bit 0 of lane i, which is bit 16 * i, goes to bit 48 + i.
  constexpr std::uint64_t kGather = 1ull << 48 | 1ull << 33 | 1ull << 18 | 1ull << 3;
  const std::uint64_t wanted = static_cast<std::uint16_t>(number) * kEach;
  unsigned pattern = 0;
  for (int k = 0; k < kNeighbours; k += 4) {
    std::uint64_t four = 0;
    for (int i = 0; i < 4; ++i) four |= std::uint64_t{static_cast<std::uint16_t>(around[k + i])} << (16 * i);
    const std::uint64_t differs = four ^ wanted;
    const std::uint64_t equal = ~(((differs & kLow) + kLow) | differs) >> 15 & kEach;
    pattern |= static_cast<unsigned>(equal * kGather >> 48 & 15) << k;
  }
  return pattern;
}

int worth_of(unsigned pattern) {
  int worth = 0;
  for (int k = 0; k < kNeighbours; ++k) worth += (pattern >> k & 1) != 0 ? kWorth[k] : 0;
  return worth;
}

int candidates(const std::int16_t* around, Candidate* out) {
  int worth[kMostCandidates];
  int count = 0;
  unsigned seen = 0;
  for (int k = 0; k < kNeighbours; ++k) {
    if ((seen >> k & 1) != 0) continue;
    const unsigned pattern = pattern_of(around, around[k]);
    seen |= pattern;
    const int w = worth_of(pattern);
    int i = count;
    if (count < kMostCandidates)
      ++count;
    else if (w <= worth[--i])
      continue;
    for (; i > 0 && worth[i - 1] < w; --i) {
      worth[i] = worth[i - 1];
      out[i] = out[i - 1];
    }
    worth[i] = w;
    out[i] = {around[k], static_cast<std::uint16_t>(pattern)};
  }
  return count;
}

#endif

}  // namespace

const Kernels kKernels{alike, as_above, equal, candidates};

}  // namespace trivelet::labels::TRIVELET_ISA
