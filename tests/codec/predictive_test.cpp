// The predictive profile: exact round trips of blocks and streams, the same bytes for every instruction set and number of
// threads, kernels at their limits, damaged codewords.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <random>
#include <tuple>

#include "codec/predict/prediction_ahead.h"
#include "codec/predict/prediction_block.h"
#include "codec/predict/prediction_kernels.h"
#include "tests/support/predictive_support.h"

namespace trivelet {
namespace {

using prediction::BlockSamples;
using test::block_of;
using test::block_video;
using test::encode_block;
using test::Pattern;

constexpr Pattern kPatterns[] = {Pattern::kSmooth, Pattern::kTexture, Pattern::kNoise, Pattern::kZero,
                                 Pattern::kExtremes};

Gop picture(const VideoInfo& info, int frames, Pattern pattern, std::uint32_t seed) {
  Gop gop(info, frames);
  test::fill(gop, frames, info.format, pattern, seed);
  return gop;
}

std::vector<std::uint8_t> encode_ahead(const Gop& gop, const VideoInfo& info, SimdLevel simd) {
  prediction::AheadEncoder coder(simd);
  std::vector<std::uint8_t> out;
  coder.encode(block_of(gop, info), out);
  return out;
}

Gop decode_ahead(const std::vector<std::uint8_t>& codeword, const VideoInfo& info, int frames, SimdLevel simd) {
  return test::decoded_block(codeword, info, frames,
                             [&](const auto& block, const std::uint8_t* bytes, std::size_t size) {
                               prediction::AheadDecoder(simd).decode(block, bytes, size);
                             });
}

Gop decode(const std::vector<std::uint8_t>& codeword, const VideoInfo& info, int frames, SimdLevel simd) {
  return test::decode_block(codeword, info, frames, simd, false);
}

prediction::Effort effort(int tap_set, int edge, int classes) {
  prediction::Effort e;
  e.tap_set = tap_set;
  e.log2_edge = edge;
  e.classes = classes;
  return e;
}

/// What this machine has of them.
std::vector<SimdLevel> vector_levels() {
  std::vector<SimdLevel> levels;
  for (const SimdLevel l : {SimdLevel::kAvx2, SimdLevel::kAvx512})
    if (l <= detected_simd()) levels.push_back(l);
  return levels;
}

std::vector<SimdLevel> all_levels() {
  std::vector<SimdLevel> levels = vector_levels();
  levels.insert(levels.begin(), SimdLevel::kScalar);
  return levels;
}

TEST(Predictive, BlocksComeBack) {
  const std::tuple<int, int, int> shapes[] = {{1, 1, 1}, {1, 5, 3}, {2, 1, 40}, {3, 9, 17}, {5, 33, 65}, {9, 70, 50}};
  std::uint32_t seed = 1;
  for (const auto& [frames, height, width] : shapes)
    for (const int bits : {1, 2, 8, 9, 13, 16})
      for (const Pattern pattern : kPatterns) {
        const VideoInfo info = block_video(width, height, bits, seed % 3 == 0);
        const Gop gop = picture(info, frames, pattern, ++seed);
        const prediction::Effort e = effort(static_cast<int>(seed % 4), 3 + static_cast<int>(seed % 3), 4);
        const std::vector<std::uint8_t> codeword = encode_block(gop, info, e, SimdLevel::kScalar);
        for (const SimdLevel simd : vector_levels()) EXPECT_EQ(codeword, encode_block(gop, info, e, simd));
        for (const SimdLevel simd : all_levels())
          EXPECT_EQ(test::compare(gop, decode(codeword, info, frames, simd)).largest, 0)
              << frames << "x" << height << "x" << width << ", " << bits << " bits, seed " << seed;
      }
}

// Widths around the sixteen states, too.
TEST(Ahead, BlocksComeBack) {
  const std::tuple<int, int, int> shapes[] = {{1, 1, 1},   {1, 5, 3},   {2, 1, 40},  {3, 9, 15}, {3, 9, 16},
                                              {4, 12, 17}, {5, 33, 65}, {9, 70, 50}, {40, 4, 31}};
  std::uint32_t seed = 1;
  for (const auto& [frames, height, width] : shapes)
    for (const int bits : {1, 2, 8, 9, 13, 16})
      for (const Pattern pattern : kPatterns) {
        const VideoInfo info = block_video(width, height, bits, seed % 3 == 0);
        const Gop gop = picture(info, frames, pattern, ++seed);
        const std::vector<std::uint8_t> codeword = encode_ahead(gop, info, SimdLevel::kScalar);
        for (const SimdLevel simd : vector_levels()) EXPECT_EQ(codeword, encode_ahead(gop, info, simd));
        for (const SimdLevel simd : all_levels())
          EXPECT_EQ(test::compare(gop, decode_ahead(codeword, info, frames, simd)).largest, 0)
              << frames << "x" << height << "x" << width << ", " << bits << " bits, seed " << seed;
      }
}

// One coder and one decoder for blocks of all sizes: what one leaves behind must not matter to the next.
TEST(Ahead, CodersAreUsedAgain) {
  prediction::AheadEncoder encoder(SimdLevel::kBest);
  prediction::AheadDecoder decoder(SimdLevel::kBest);
  std::uint32_t seed = 0;
  for (const auto& [frames, height, width] :
       {std::tuple{5, 40, 70}, std::tuple{2, 7, 9}, std::tuple{1, 3, 33}, std::tuple{7, 20, 64}}) {
    const VideoInfo info = block_video(width, height, 12, false);
    const Gop gop = picture(info, frames, kPatterns[seed % 3], seed);
    ++seed;
    std::vector<std::uint8_t> codeword;
    encoder.encode(block_of(gop, info), codeword);
    EXPECT_EQ(codeword, encode_ahead(gop, info, SimdLevel::kScalar));
    Gop back(info, frames);
    back.set_frames(frames);
    decoder.decode(block_of(back, info), codeword.data(), codeword.size());
    EXPECT_EQ(test::compare(gop, back).largest, 0);
  }
}

TEST(Predictive, EmptyBlocksTakeNothing) {
  const VideoInfo info = block_video(9, 7, 8, true);
  EXPECT_TRUE(encode_ahead(picture(info, 3, Pattern::kZero, 1), info, SimdLevel::kBest).empty());
  EXPECT_TRUE(encode_block(picture(info, 3, Pattern::kZero, 1), info, {}, SimdLevel::kBest).empty());
}

// What is predicted must cost less than the samples, and what is not must cost hardly more.
TEST(Predictive, SizesAreSensible) {
  const VideoInfo info = block_video(120, 100, 12, false);
  const double voxels = 120.0 * 100 * 12;
  const auto bits = [&](Pattern p) {
    return 8.0 * static_cast<double>(encode_block(picture(info, 12, p, 7), info, {}, SimdLevel::kBest).size()) / voxels;
  };
  EXPECT_LT(bits(Pattern::kSmooth), 1.5);
  EXPECT_LT(bits(Pattern::kTexture), 8.5);
  EXPECT_LT(bits(Pattern::kNoise), 12.4);
  const auto ahead = [&](Pattern p) {
    return 8.0 * static_cast<double>(encode_ahead(picture(info, 12, p, 7), info, SimdLevel::kBest).size()) / voxels;
  };
  EXPECT_LT(ahead(Pattern::kSmooth), 1.5);
  EXPECT_LT(ahead(Pattern::kTexture), 9);
  EXPECT_LT(ahead(Pattern::kNoise), 12.4);
}

void kernels_agree(SimdLevel simd) {
  const prediction::Kernels& scalar = prediction::kernels(SimdLevel::kScalar);
  const prediction::Kernels& best = prediction::kernels(simd);
  std::mt19937 random(3);
  const auto number = [&] {
    const auto r = static_cast<std::uint32_t>(random());
    return static_cast<std::int16_t>(r % 4 == 0 ? -32768 : r % 4 == 1 ? 32767 : static_cast<int>(r >> 16) - 32768);
  };
  constexpr std::size_t kRow = 256 + prediction::kKernelPadding;
  std::vector<std::int16_t> rows(28 * kRow);
  for (auto& v : rows) v = number();
  for (const int n : {1, 7, 16, 33, 256}) {
    const auto size = static_cast<std::size_t>(n);
    for (const int count : {1, 2, 8, 17, 26}) {
      std::array<const std::int16_t*, 28> taps{};
      std::vector<std::int16_t> weights;
      for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
        taps[i] = &rows[i * kRow];
        weights.push_back(static_cast<std::int16_t>((random() % 2 ? 1 : -1) * (65535 / std::max(count, 2))));
      }
      std::vector<std::int32_t> a(kRow), b(kRow);
      scalar.weigh(taps.data(), weights.data(), count, n, a.data());
      best.weigh(taps.data(), weights.data(), count, n, b.data());
      EXPECT_TRUE(std::equal(a.begin(), a.begin() + n, b.begin())) << n << " of " << count;
    }
    for (const int shift : {0, 3, 9}) {
      std::vector<std::int16_t> a(kRow), b(kRow);
      scalar.differences(rows.data(), &rows[kRow], shift, n, a.data());
      best.differences(rows.data(), &rows[kRow], shift, n, b.data());
      EXPECT_TRUE(std::equal(a.begin(), a.begin() + n, b.begin())) << n << " >> " << shift;
      EXPECT_LE(*std::max_element(a.begin(), a.begin() + n), 2047);
      EXPECT_GE(*std::min_element(a.begin(), a.begin() + n), -2047);
    }
    if (size % 16 != 0) continue;
    std::vector<std::int16_t> small(20 * kRow);
    for (auto& v : small) v = static_cast<std::int16_t>(random() % 2 ? 2047 : -2047);
    for (const int count : {1, 4, 19}) {
      std::vector<std::int32_t> a(190), b(190);
      scalar.products(small.data(), kRow, count, n, a.data());
      best.products(small.data(), kRow, count, n, b.data());
      EXPECT_EQ(a, b);
    }
  }
}

TEST(Predictive, KernelsAgreeAtTheirLimits) {
  for (const SimdLevel simd : vector_levels()) kernels_agree(simd);
}

void kernels_ahead_agree(SimdLevel simd) {
  const prediction::Kernels& scalar = prediction::kernels(SimdLevel::kScalar);
  const prediction::Kernels& best = prediction::kernels(simd);
  std::mt19937 random(4);
  constexpr std::size_t kRow = 300;
  std::vector<std::int16_t> row(kRow);
  std::vector<std::int32_t> sums(kRow);
  std::vector<std::uint16_t> around(kRow);      // of a first frame, whose sums are of five errors
  std::vector<std::uint16_t> all_around(kRow);  // of another one, of fourteen
  std::vector<std::uint8_t> flat(kRow);
  for (const int bits : {1, 8, 12, 16})
    for (const int n : {1, 15, 16, 17, 33, 256}) {
      const int high = (1 << (bits - 1)) - 1, low = -high - 1;
      for (std::size_t x = 0; x < kRow; ++x) {
        const auto r = static_cast<std::uint32_t>(random());
        row[x] = static_cast<std::int16_t>(r % 3 == 0   ? low
                                           : r % 3 == 1 ? high
                                                        : low + static_cast<int>(r >> 16) % (high - low + 1));
        sums[x] = static_cast<std::int32_t>(random() % 2 ? random() % 2147450880u : 0u - random() % 2147450880u);
        if (random() % 2) sums[x] = row[x] * 8192 + static_cast<int>(random() % 400000) - 200000;
        around[x] = static_cast<std::uint16_t>(random() % 2 ? random() % 64 : random() % (5u * 4095 + 1));
        all_around[x] = static_cast<std::uint16_t>(random() % (prediction::kMaxSum + 1u));
        if (x < prediction::kLevelBegins.size())  // where levels begin
          all_around[x] =
              static_cast<std::uint16_t>(std::max(0, prediction::kLevelBegins[x] - static_cast<int>(r % 2)));
        flat[x] = static_cast<std::uint8_t>(random() % 3);
      }
      std::vector<std::uint8_t> contexts[2] = {std::vector<std::uint8_t>(kRow), std::vector<std::uint8_t>(kRow)};
      std::vector<std::uint16_t> errors[2] = {std::vector<std::uint16_t>(kRow), std::vector<std::uint16_t>(kRow)};
      const auto size = static_cast<std::ptrdiff_t>(n);
      for (const bool first : {false, true}) {
        for (std::size_t k = 0; k < 2; ++k) {
          const prediction::Kernels& kernel = k == 0 ? scalar : best;
          kernel.errors(row.data(), sums.data(), low, high, n, errors[k].data());
          kernel.contexts(first ? around.data() : all_around.data(), flat.data(), first, n, contexts[k].data());
        }
        EXPECT_TRUE(std::equal(errors[0].begin(), errors[0].begin() + size, errors[1].begin())) << n << ", " << bits;
        EXPECT_TRUE(std::equal(contexts[0].begin(), contexts[0].begin() + size, contexts[1].begin())) << n;
      }
    }
}

TEST(Ahead, KernelsAgreeAtTheirLimits) {
  for (const SimdLevel simd : vector_levels()) kernels_ahead_agree(simd);
  // Every code has the token that says it.
  for (std::uint32_t u = 0; u <= 131070; ++u) {
    const int t = prediction::token_of(u);
    ASSERT_TRUE(t < prediction::kTokens && prediction::first_of(t) <= u &&
                u - prediction::first_of(t) < 1u << prediction::extra_bits(t))
        << u;
  }
}

// Rows around the one to code, first frames and others, at the largest errors and with runs of the same number.
TEST(Ahead, ErrorsAround) {
  const prediction::Kernels& scalar = prediction::kernels(SimdLevel::kScalar);
  std::mt19937 random(6);
  constexpr std::size_t kRow = 300;
  std::vector<std::uint16_t> errors(5 * kRow);
  std::vector<std::int16_t> numbers(3 * kRow);
  for (auto& e : errors) e = static_cast<std::uint16_t>(random() % 3 ? prediction::kMaxError : random() % 4096);
  for (auto& v : numbers) v = static_cast<std::int16_t>(random() % 8 ? 7 : 8);
  for (const SimdLevel simd : vector_levels()) {
    const prediction::Kernels& best = prediction::kernels(simd);
    for (const int n : {1, 15, 16, 17, 33, 256})
      for (const bool first : {false, true}) {
        const auto error = [&](std::size_t i) { return &errors[i * kRow + 4]; };
        const auto number = [&](std::size_t i) { return &numbers[i * kRow + 4]; };
        const prediction::ErrorRows e{error(0), error(1), first ? nullptr : error(2), error(3), error(4)};
        const prediction::NumberRows v{number(0), first ? nullptr : number(1), number(2)};
        std::vector<std::uint16_t> around[2] = {std::vector<std::uint16_t>(kRow), std::vector<std::uint16_t>(kRow)};
        std::vector<std::uint8_t> flat[2] = {std::vector<std::uint8_t>(kRow), std::vector<std::uint8_t>(kRow)};
        scalar.around(e, n, around[0].data());
        best.around(e, n, around[1].data());
        scalar.flat(v, n, flat[0].data());
        best.flat(v, n, flat[1].data());
        EXPECT_TRUE(std::equal(around[0].begin(), around[0].begin() + n, around[1].begin())) << n;
        EXPECT_TRUE(std::equal(flat[0].begin(), flat[0].begin() + n, flat[1].begin())) << n;
      }
  }
}

/// A row and the rows around it, of numbers that are anything, nearly alike, or the limits.
struct RowOfSymbols {
  static constexpr std::size_t kRow = 300;
  static constexpr std::ptrdiff_t kBefore = 4;
  std::vector<std::uint16_t> errors = std::vector<std::uint16_t>(5 * kRow);
  std::vector<std::int16_t> numbers = std::vector<std::int16_t>(6 * kRow);
  std::vector<const std::int16_t*> taps;
  std::vector<std::int16_t> weights;
  prediction::KnownRow known;

  RowOfSymbols(int bits, int taps_of_row, bool first, std::mt19937& random) {
    known.high = (1 << (bits - 1)) - 1;
    known.low = -known.high - 1;
    const auto kind = random() % 3;
    for (auto& e : errors)
      e = static_cast<std::uint16_t>(kind == 0 ? random() % 4 : random() % 2 ? random() % 4096 : prediction::kMaxError);
    const auto range = static_cast<std::uint32_t>(known.high - known.low + 1);
    for (auto& v : numbers)
      v = static_cast<std::int16_t>(kind == 0      ? static_cast<int>(random() % 8 == 0) - 1
                                    : kind == 1    ? known.low + static_cast<int>(random() % range)
                                    : random() % 2 ? known.low
                                                   : known.high);
    for (int i = 0; i < taps_of_row; ++i) {
      const bool is_great = kind == 2 && i == 2;
      weights.push_back(static_cast<std::int16_t>(is_great ? -32767 : static_cast<int>(random() % 2400) - 1200));
      if (i >= prediction::kTapsInRow) taps.push_back(number(1 + static_cast<std::size_t>(i) % 5) + i % 3 - 1);
    }
    known.row = number(0);
    known.taps = taps.data();
    known.weights = weights.data();
    known.count = static_cast<int>(taps.size());
    known.numbers = {number(1), first ? nullptr : number(2), first ? nullptr : number(3)};
    known.errors = {error(0), error(1), first ? nullptr : error(2), first ? nullptr : error(3),
                    first ? nullptr : error(4)};
  }
  const std::int16_t* number(std::size_t i) const { return &numbers[i * kRow] + kBefore; }
  const std::uint16_t* error(std::size_t i) const { return &errors[i * kRow] + kBefore; }
};

TEST(Ahead, SymbolsOfRows) {
  std::mt19937 random(8);
  for (const int bits : {1, 8, 12, 16})
    for (const int n : {1, 15, 16, 31, 32, 33, 127, 129, 256})
      for (const int taps : prediction::kTapSets)
        for (const bool first : {false, true}) {
          const RowOfSymbols in(bits, taps, first, random);
          const auto symbols_of = [&](SimdLevel simd) {
            std::vector<std::uint16_t> made(4 * RowOfSymbols::kRow);
            std::vector<std::uint32_t> has_extra(RowOfSymbols::kRow / 32 + 1);
            std::uint16_t* const extra = &made[2 * RowOfSymbols::kRow];
            prediction::kernels(simd).symbols(in.known, n,
                                              {made.data(), &made[RowOfSymbols::kRow], extra, has_extra.data()});
            for (int x = 0; x < n; ++x) {  // what is written beside extra bits does not count
              const bool has = (has_extra[static_cast<std::size_t>(x) / 32] >> x % 32 & 1) != 0;
              EXPECT_EQ(has, made[RowOfSymbols::kRow + static_cast<std::size_t>(x)] % prediction::kTokenSpace >=
                                 prediction::kPlainTokens);
              if (!has) extra[x] = 0;
            }
            made.insert(made.end(), has_extra.begin(), has_extra.end());
            return made;
          };
          const std::vector<std::uint16_t> scalar = symbols_of(SimdLevel::kScalar);
          for (const SimdLevel simd : vector_levels()) {
            const std::vector<std::uint16_t> best = symbols_of(simd);
            for (std::size_t i = 0; i < scalar.size(); ++i)
              if (i >= 3 * RowOfSymbols::kRow || i % RowOfSymbols::kRow < static_cast<std::size_t>(n)) {
                ASSERT_EQ(scalar[i], best[i]) << bits << " bits, " << n << " samples, " << taps << " taps, " << i;
              }
          }
        }
}

// The same of contexts that depend on the row: with few numbers much is flat, with others sums of errors are large.
TEST(Predictive, SymbolsOfRows) {
  std::mt19937 random(9);
  constexpr std::size_t kRow = RowOfSymbols::kRow;
  for (const int bits : {1, 8, 12, 16})
    for (const int n : {1, 15, 16, 17, 31, 32, 33, 129, 256})
      for (const bool first : {false, true}) {
        const RowOfSymbols in(bits, prediction::kFirstFrameTaps, first, random);
        std::vector<std::int32_t> sums(kRow);
        std::vector<std::uint16_t> around(kRow);
        std::vector<std::uint8_t> flat(kRow);
        const auto most = static_cast<std::uint32_t>(first ? 5 * prediction::kMaxError : 11 * prediction::kMaxError);
        for (std::size_t x = 0; x < kRow; ++x) {
          const auto r = static_cast<std::uint32_t>(random());
          sums[x] = r % 4 == 0 ? static_cast<std::int32_t>(random() % 4294901760u - 2147450880u)
                               : in.known.row[static_cast<std::ptrdiff_t>(x % 256)] * 8192 +
                                     static_cast<int>(random() % 400000) - 200000;
          around[x] = static_cast<std::uint16_t>(r % 2 ? random() % 300 : random() % (most + 1));
          flat[x] = static_cast<std::uint8_t>(random() % 3);
        }
        const auto symbols_of = [&](SimdLevel simd) {
          std::vector<std::int32_t> predictions = sums;
          std::vector<std::uint16_t> made(3 * kRow);
          std::vector<std::uint32_t> has_extra(kRow / 32 + 1);
          std::uint16_t* const extra = &made[2 * kRow];
          prediction::kernels(simd).level_symbols(
              {in.known.row, in.known.numbers.above, around.data(), flat.data(), first, in.known.low, in.known.high},
              predictions.data(), n, {&made[2], &made[kRow], extra, has_extra.data()});
          for (std::size_t x = 0; x < static_cast<std::size_t>(n); ++x) {
            const bool has = (has_extra[x / 32] >> x % 32 & 1) != 0;
            EXPECT_EQ(has, made[kRow + x] % prediction::kTokenSpace >= prediction::kPlainTokens);
            if (!has) extra[x] = 0;
          }
          std::vector<std::int32_t> all(predictions.begin(), predictions.begin() + n);
          for (std::size_t i = 0; i < 3; ++i) {
            const auto from = made.begin() + static_cast<std::ptrdiff_t>(i * kRow) + (i == 0 ? 2 : 0);
            all.insert(all.end(), from, from + n);
          }
          return all;
        };
        const std::vector<std::int32_t> scalar = symbols_of(SimdLevel::kScalar);
        for (const SimdLevel simd : vector_levels()) {
          EXPECT_EQ(scalar, symbols_of(simd)) << bits << " bits, " << n << " samples";
        }
      }
}

/// Tables of a kind: one symbol that has all, two of which one is as rare as can be, all the same, or anything.
prediction::Frequencies frequencies(int kind, std::mt19937& random) {
  std::vector<std::uint32_t> counts(prediction::kTokens);
  switch (kind) {
    case 0: counts[random() % counts.size()] = 1; break;
    case 1: counts = std::vector<std::uint32_t>(counts.size(), 0), counts[3] = 1'000'000, counts[70] = 1; break;
    case 2: std::fill(counts.begin(), counts.end(), 5); break;
    default:
      for (auto& c : counts) c = random() % 3 ? static_cast<std::uint32_t>(random()) % (1u << random() % 20) : 0;
      counts[0] += 1;
  }
  return prediction::frequencies_of(counts);
}

// Symbols of several rows put into the states, at the least and the largest frequencies: the same states and words
// for every instruction set, no word outside of the room there is, and what is taken is what was put.
TEST(Ahead, StatesAgreeAtTheirLimits) {
  std::mt19937 random(5);
  const std::vector<SimdLevel> levels = all_levels();
  for (int kind = 0; kind < 40; ++kind)
    for (const int n : {1, 15, 16, 17, 33, 256}) {
      const auto width = static_cast<std::size_t>(n);
      constexpr std::size_t kTable = 128;
      constexpr std::size_t kRows = 5;
      std::vector<prediction::Frequencies> tables;
      std::vector<prediction::PutSymbol> slots(prediction::kAheadContexts * kTable);
      std::vector<std::uint32_t> packed(slots.size());
      std::vector<std::vector<std::uint8_t>> known;  // tokens of every context
      for (std::size_t c = 0; c < prediction::kAheadContexts; ++c) {
        tables.push_back(frequencies(kind, random));
        known.emplace_back();
        std::uint32_t begin = 0;
        for (std::size_t t = 0; t < prediction::kTokens; ++t) {
          const std::uint32_t f = tables.back()[t];
          packed[c * kTable + t] = f << 16 | begin;
          if (f == 0) continue;
          known.back().push_back(static_cast<std::uint8_t>(t));
          slots[c * kTable + t] = {((std::uint64_t{1} << prediction::kInverseBits) + f - 1) / f, f, begin};
          begin += f;
        }
      }
      std::vector<std::uint16_t> symbols(kRows * width);
      for (auto& s : symbols) {
        const std::size_t c = random() % known.size();
        s = static_cast<std::uint16_t>(c * kTable + known[c][random() % known[c].size()]);
      }
      std::vector<std::uint16_t> words[3];
      std::array<std::uint32_t, prediction::kStates> states[3];
      for (std::size_t k = 0; k < levels.size(); ++k) {
        constexpr std::uint16_t kUntouched = 0xa5a5;
        std::vector<std::uint16_t> room(symbols.size() + 2, kUntouched);
        std::uint16_t* word = room.data() + room.size();
        states[k].fill(prediction::kLowestState);
        for (std::size_t row = kRows; row-- > 0;)
          word = prediction::kernels(levels[k]).put(slots.data(), packed.data(), &symbols[row * width], n,
                                                    states[k].data(), word);
        ASSERT_GT(word, room.data() + 1);
        EXPECT_EQ(room[0], kUntouched);
        words[k].assign(word, room.data() + room.size());
        EXPECT_EQ(words[k], words[0]) << n << " with " << to_string(levels[k]);
        EXPECT_EQ(states[k], states[0]) << n << " with " << to_string(levels[k]);
      }
      std::vector<std::uint32_t> lookups;
      prediction::make_lookups(tables, lookups);
      std::vector<std::uint8_t> bytes;  // exactly those that there are
      for (const std::uint16_t w : words[0]) {
        bytes.push_back(static_cast<std::uint8_t>(w));
        bytes.push_back(static_cast<std::uint8_t>(w >> 8));
      }
      for (const SimdLevel level : levels) {
        prediction::StateLanes lanes{states[0], bytes.data(), words[0].size(), 0, false};
        bool right = true;
        for (std::size_t row = 0; row < kRows; ++row) {
          std::vector<std::uint8_t> contexts(width + prediction::kKernelPadding), tokens(contexts.size());
          for (std::size_t x = 0; x < width; ++x)
            contexts[x] = static_cast<std::uint8_t>(symbols[row * width + x] / kTable);
          prediction::kernels(level).take(lookups.data(), contexts.data(), n, lanes, tokens.data());
          for (std::size_t x = 0; x < width; ++x) right &= tokens[x] == symbols[row * width + x] % kTable;
        }
        EXPECT_TRUE(right && prediction::is_used_up(lanes)) << n << " with " << to_string(level);
      }
    }
}

TEST(Ahead, DamagedCodewords) {
  for (const int bits : {3, 8, 16}) {
    const VideoInfo info = block_video(37, 19, bits, false);
    const Gop gop = picture(info, 3, bits == 3 ? Pattern::kSmooth : Pattern::kTexture, 5);
    const std::vector<std::uint8_t> whole = encode_ahead(gop, info, SimdLevel::kBest);
    test::expect_damage_is_found(whole, static_cast<std::uint32_t>(bits), 100,
                                 [&](const std::vector<std::uint8_t>& codeword, SimdLevel simd) {
                                   return decode_ahead(codeword, info, 3, simd);
                                 });
  }
}

TEST(Ahead, EncoderFindsEveryWrongBitInItsCodeword) {
  const VideoInfo info = block_video(19, 17, 10, false);
  for (const Pattern pattern : {Pattern::kTexture, Pattern::kExtremes})
    for (const SimdLevel simd : all_levels()) {
      const Gop gop = picture(info, 3, pattern, 5);
      prediction::AheadEncoder coder(simd);
      std::vector<std::uint8_t> codeword;
      coder.encode(block_of(gop, info), codeword);
      test::expect_wrong_bits_are_found(coder, codeword);
    }
}

TEST(Ahead, EncoderGivesUpWhatTakesMore) {
  const VideoInfo info = block_video(64, 48, 8, false);
  const Gop gop = picture(info, 8, Pattern::kTexture, 5);
  prediction::AheadEncoder coder(SimdLevel::kBest);
  std::vector<std::uint8_t> whole;
  coder.encode(block_of(gop, info), whole);
  std::vector<std::uint8_t> out;
  coder.encode(block_of(gop, info), out, {2, whole.size()});
  EXPECT_EQ(out, whole);
  EXPECT_TRUE(coder.says_what_was_coded(out.data(), out.size()));
  // A quarter of the frames takes about a quarter of the bytes.
  out.clear();
  coder.encode(block_of(gop, info), out, {2, whole.size() / 2});
  EXPECT_EQ(out, whole);
  out.clear();
  coder.encode(block_of(gop, info), out, {2, whole.size() / 8});
  EXPECT_TRUE(out.empty());
}

TEST(Ahead, EncoderReadsRowsOfAnyWidthAgain) {
  for (const int width : {1, 15, 16, 17, 40, 64})
    for (const SimdLevel simd : all_levels()) {
      const VideoInfo info = block_video(width, 23, 8, false);
      for (const Pattern pattern : kPatterns) {
        const Gop gop = picture(info, 4, pattern, 3);
        prediction::AheadEncoder coder(simd);
        std::vector<std::uint8_t> codeword;
        coder.encode(block_of(gop, info), codeword);
        if (codeword.empty()) continue;  // all zeros
        EXPECT_TRUE(coder.says_what_was_coded(codeword.data(), codeword.size())) << width;
      }
    }
}

// Half of the changes are in the head.
TEST(Predictive, DamagedCodewords) {
  for (const int bits : {3, 8, 16}) {
    const VideoInfo info = block_video(21, 19, bits, false);
    const Gop gop = picture(info, 3, bits == 3 ? Pattern::kSmooth : Pattern::kTexture, 5);
    const std::vector<std::uint8_t> whole = encode_block(gop, info, effort(1, 3, 3), SimdLevel::kBest);
    test::expect_damage_is_found(
        whole, static_cast<std::uint32_t>(bits), 60,
        [&](const std::vector<std::uint8_t>& codeword, SimdLevel simd) { return decode(codeword, info, 3, simd); });
  }
}

// ------------------------------------------------------------------------------------------------------------ streams

EncoderParams predictive(int threads = 2) {
  EncoderParams p;
  p.profile = Profile::kPredictive;
  p.lossless = true;
  p.gop_frames = 4;
  p.block_size = 64;
  p.threads = threads;
  p.part_checks = true;
  return p;
}

std::vector<std::byte> stream_of(const VideoInfo& info, const EncoderParams& p, int gops, Pattern pattern) {
  MemorySink sink;
  Encoder encoder(info, p, sink);
  for (int g = 0; g < gops; ++g) {
    Gop gop = encoder.make_gop();
    test::fill(gop, g + 1 < gops ? 4 : 3, info.format, pattern, static_cast<std::uint32_t>(g));
    encoder.push(gop);
  }
  encoder.finish();
  return sink.bytes;
}

TEST(Predictive, EncoderFindsEveryWrongBitInItsCodeword) {
  const VideoInfo info = block_video(19, 17, 10, false);
  for (const Pattern pattern : {Pattern::kTexture, Pattern::kExtremes}) {
    const Gop gop = picture(info, 3, pattern, 5);
    prediction::BlockEncoder coder(SimdLevel::kBest);
    std::vector<std::uint8_t> codeword;
    coder.encode(block_of(gop, info), {}, codeword);
    test::expect_wrong_bits_are_found(coder, codeword);
    const Gop other = picture(info, 3, pattern, 6);
    std::vector<std::uint8_t> other_codeword;
    coder.encode(block_of(other, info), {}, other_codeword);
    EXPECT_FALSE(coder.says_what_was_coded(codeword.data(), codeword.size()));
  }
}

TEST(Predictive, SlowIsNeverLarger) {
  for (const Pattern pattern : kPatterns)
    for (const int frames : {1, 3, 12}) {
      EncoderParams params;
      params.lossless = true;
      params.profile = Profile::kPredictive;
      params.layers = 1;
      params.temporal_levels = params.spatial_levels = 0;
      params.gop_frames = frames;
      params.threads = 1;
      const VideoInfo info = block_video(70, 50, 12, false);
      const Gop gop = picture(info, frames, pattern, 3);
      std::size_t size[2];
      for (int slow = 0; slow < 2; ++slow) {
        params.effort = slow ? Effort::kSlow : Effort::kMedium;
        MemorySink sink;
        Encoder encoder(info, params, sink);
        encoder.push(gop);
        encoder.finish();
        size[slow] = sink.bytes.size();
      }
      EXPECT_LE(size[1], size[0]);
    }
}

/// A page, a part of which becomes another one every `period` frames.
Gop page(const VideoInfo& info, int frames, int width, int height, int period) {
  Gop gop(info, frames);
  gop.set_frames(frames);
  for (int f = 0; f < frames; ++f)
    for (int y = 0; y < info.height; ++y)
      for (int x = 0; x < info.width; ++x) {
        const int line = y + (x < width && y < height ? 40 * (f / period) : 0);
        const auto ink = static_cast<std::uint32_t>((line / 3 * 131 + x / 2 * 71) * 2654435761u >> 28);
        gop.plane(0).row(f, y)[x] = static_cast<std::byte>(ink < 4 ? 20 + ink : 230 + ink % 4);
      }
  return gop;
}

// Least squares go by the part that changes, and would let the rest blur.
TEST(Predictive, WhatStandsStillCostsNearlyNothing) {
  const VideoInfo info = block_video(160, 128, 8, false);
  const auto size = [&](int frames) {
    return encode_block(page(info, frames, 64, 64, 6), info, {}, SimdLevel::kScalar).size();
  };
  EXPECT_LT(size(32), 6 * size(1));
}

TEST(Ahead, WhatStandsStillCostsNearlyNothing) {
  const VideoInfo info = block_video(160, 128, 8, false);
  const auto size = [&](int frames) {
    return encode_ahead(page(info, frames, 48, 32, 2), info, SimdLevel::kScalar).size();
  };
  EXPECT_LT(size(32), 6 * size(1));
}

TEST(Predictive, StreamsOfAllFormats) {
  for (const PixelFormat& format :
       {PixelFormat{ColourModel::kYuv, 8, 1, 1, false, false}, PixelFormat{ColourModel::kYuv, 10, 1, 0, true, false},
        PixelFormat{ColourModel::kRgb, 8, 0, 0, false, false}, PixelFormat{ColourModel::kRgb, 16, 0, 0, true, false},
        PixelFormat{ColourModel::kGrey, 16, 0, 0, false, true}}) {
    VideoInfo info = block_video(150, 70, format.bits, false);
    info.format = format;
    for (const Effort effort : {Effort::kFast, Effort::kMedium}) {
      EncoderParams p = predictive(1);
      p.effort = effort;
      const std::vector<std::byte> one = stream_of(info, p, 2, Pattern::kTexture);
      p.threads = 3;
      EXPECT_EQ(one, stream_of(info, p, 2, Pattern::kTexture));
      MemorySource source(one.data(), one.size());
      Decoder decoder(source, {});
      EXPECT_EQ(decoder.info().profile, Profile::kPredictive);
      Gop gop = decoder.make_gop();
      Gop wanted(info, 4);
      for (std::uint32_t g = 0; decoder.pull(gop); ++g) {
        test::fill(wanted, g == 0 ? 4 : 3, format, Pattern::kTexture, g);
        EXPECT_EQ(test::compare(wanted, gop).largest, 0);
      }
      EXPECT_EQ(decoder.stats().gops, 2u);
    }
  }
}

TEST(Predictive, RegionsNeedTheirBlocksOnly) {
  const VideoInfo info = block_video(300, 200, 12, false);
  const std::vector<std::byte> stream = stream_of(info, predictive(), 1, Pattern::kTexture);
  MemorySource source(stream.data(), stream.size());
  DecoderParams params;
  params.region = {100, 70, 50, 60};
  Decoder decoder(source, params);
  Gop gop = decoder.make_gop();
  ASSERT_TRUE(decoder.pull(gop));
  Gop wanted(info, 4);
  test::fill(wanted, 3, info.format, Pattern::kTexture, 0);
  for (int f = 0; f < 3; ++f)
    for (int y = 70; y < 130; ++y)
      for (int x = 100; x < 150; ++x)
        ASSERT_EQ(test::sample(std::as_const(gop).plane(0), f, y, x),
                  test::sample(std::as_const(wanted).plane(0), f, y, x));
  EXPECT_LT(decoder.stats().stream_bytes, stream.size() / 2);
}

TEST(Predictive, DamageStaysInItsGop) {
  const VideoInfo info = block_video(150, 70, 8, false);
  std::vector<std::byte> stream = stream_of(info, predictive(), 3, Pattern::kTexture);
  MemorySource intact(stream.data(), stream.size());
  const StreamInfo found = probe(intact);
  stream[static_cast<std::size_t>(found.gops[1].offset + found.gops[1].bytes / 2)] ^= std::byte{0x55};
  MemorySource source(stream.data(), stream.size());
  DecoderParams params;
  params.keep_partial = true;
  Decoder decoder(source, params);
  Gop gop = decoder.make_gop();
  Gop wanted(info, 4);
  for (std::uint32_t g = 0; decoder.pull(gop); ++g) {
    test::fill(wanted, gop.frames(), info.format, Pattern::kTexture, g);
    EXPECT_EQ(test::compare(wanted, gop).largest == 0, g != 1);
  }
  EXPECT_EQ(decoder.stats().damaged_gops, 1u);
  MemorySource again(stream.data(), stream.size());
  Decoder strict(again, {});
  EXPECT_THROW(while (strict.pull(gop)){}, Error);
}

TEST(Predictive, RefusesWhatItHasNot) {
  const VideoInfo info = block_video(40, 30, 8, false);
  const auto refused = [&](const std::function<void(EncoderParams&)>& change) {
    EncoderParams p = predictive();
    change(p);
    MemorySink sink;
    EXPECT_THROW(Encoder(info, p, sink), Error);
  };
  refused([](EncoderParams& p) { p.lossless = false; });
  refused([](EncoderParams& p) { p.layers = 2; });
  refused([](EncoderParams& p) { p.spatial_levels = 1; });
  refused([](EncoderParams& p) { p.temporal_levels = 1; });
  refused([](EncoderParams& p) { p.motion = Motion::kOn; });
  const std::vector<std::byte> stream = stream_of(info, predictive(), 1, Pattern::kSmooth);
  const auto undecodable = [&](const std::function<void(DecoderParams&)>& change) {
    DecoderParams p;
    change(p);
    MemorySource source(stream.data(), stream.size());
    EXPECT_THROW(Decoder(source, p), Error);
  };
  undecodable([](DecoderParams& p) { p.reduce = 1; });
  undecodable([](DecoderParams& p) { p.max_planes = 3; });
  undecodable([](DecoderParams& p) { p.max_bytes = 1000; });
  undecodable([](DecoderParams& p) { p.temporal_reduce = 1; });
}

}  // namespace
}  // namespace trivelet
