// The arithmetic of the predictive profile (FORMAT.md "Predictive profile"), shared by its coder, its decoder and their
// kernels: neighbours, contexts, tokens, the frequencies of tokens.
//
// A sample is predicted by a weighted sum of its neighbours in the frame and in the two frames before; which weights,
// says a map of tiles. What is left is coded by rANS with frequencies that were counted beforehand, in contexts of how
// large the errors around were. Nothing adapts, so a decoder does a few additions, one look-up and one multiplication
// for each sample, and everything that does not depend on the sample before is done for a whole row at once.
// Sources: MRP (Matsuda et al. 2005) for classes of predictors chosen by tiles, CALIC (Wu, Memon 1997) and JPEG-LS for
// contexts of neighbouring errors, Duda (2013) and Giesen (2014) for rANS.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace trivelet::prediction {

/// A neighbour: so many frames before, so many rows and columns away.
struct Tap {
  int frame = 0;
  int row = 0;
  int column = 0;
};
inline constexpr int kMaxTaps = 28;
/// The two to the left come first: all others are known for a whole row at once.
inline constexpr int kTapsInRow = 2;
inline constexpr std::array<Tap, kMaxTaps> kTaps{{
    {0, 0, -1},  {0, 0, -2},                                       // in the row
    {0, -1, -2}, {0, -1, -1}, {0, -1, 0}, {0, -1, 1}, {0, -1, 2},  // in the frame
    {0, -2, -1}, {0, -2, 0},  {0, -2, 1},                          //
    {1, -1, -1}, {1, -1, 0},  {1, -1, 1}, {1, 0, -1}, {1, 0, 0},   // in the frame before
    {1, 0, 1},   {1, 1, -1},  {1, 1, 0},  {1, 1, 1},               //
    {2, -1, 0},  {2, 0, -1},  {2, 0, 0},  {2, 0, 1},  {2, 1, 0},   // in the one before that
    {1, -2, 0},  {1, 0, -2},  {1, 0, 2},  {1, 2, 0},               // further away
}};
/// How many of them a block uses, by the number in its head. The first frame of a block uses those of the frame.
inline constexpr std::array<int, 4> kTapSets{10, 19, 24, 28};
inline constexpr int kFirstFrameTaps = kTapSets[0];

inline constexpr int kWeightBits = 13;    ///< 2^13 is 1
inline constexpr int kMaxWeight = 32767;  ///< magnitude
inline constexpr int kWeightSum = 65535;  ///< of magnitudes at most: sums stay within 32 bits
inline constexpr int kFractionBits = 4;   ///< of a prediction
inline constexpr int kMaxClasses = 32;
inline constexpr int kMostFrames = 128;  ///< of a GOP
inline constexpr int kMargin = 2;        ///< samples beside a row that neighbours reach

// Contexts ------------------------------------------------------------------------------------------------------------
inline constexpr int kMaxError = 4095;  ///< quarters of a sample
inline constexpr int kLevels = 31;      ///< of errors around
inline constexpr int kFineLevels = 14;  ///< that also look at the fraction of the prediction
inline constexpr int kFlatContexts = 2;
inline constexpr int kContexts = kFlatContexts + 4 * kFineLevels + (kLevels - kFineLevels);
/// Level q begins at this sum of errors, about 4 * (2^(q / 2.2) - 1); from 2048 on multiples of 32.
inline constexpr std::array<int, kLevels> kLevelBegins{
    0,   1,   3,    6,    10,   15,   22,   32,   45,   64,    89,    124,   171,   236,   325,  447,
    614, 843, 1157, 1587, 2176, 2976, 4096, 5600, 7680, 10528, 14432, 19776, 27104, 37120, 50880};
inline constexpr int kSumsLooked = 2048;  ///< below, every sum has its own entry; above, 32 share one
inline constexpr int kMaxSum = 14 * kMaxError;

/// By a sum of errors, at place_of() it: the first context of its level, and 3 if the level looks at fractions, else 0.
struct LevelEntry {
  std::uint8_t context = 0;
  std::uint8_t fractions = 0;
};
inline constexpr std::size_t kLevelEntries = kSumsLooked + (kMaxSum >> 5) + 1;
inline constexpr std::size_t place_of(int sum) {
  return static_cast<std::size_t>(sum < kSumsLooked ? sum : kSumsLooked + (sum >> 5));
}
const std::array<LevelEntry, kLevelEntries>& level_table();

// Known ahead (FORMAT.md "Known ahead"): samples of a row have contexts that do not look at the row itself. -----------
inline constexpr int kStates = 16;  ///< of rANS; sample x of a row is of state x mod 16
inline constexpr int kAheadLevels = 30;
inline constexpr int kAheadContexts = kFlatContexts + kAheadLevels;

// Tokens --------------------------------------------------------------------------------------------------------------
inline constexpr int kPlainTokens = 24;  ///< that stand for one number each
inline constexpr int kTokens = 76;
inline constexpr int kFrequencyBits = 11;
inline constexpr int kFrequencySum = 1 << kFrequencyBits;
inline constexpr int kZeroBits = 16;  ///< of a flat sample: whether it is as predicted
inline constexpr std::uint32_t kZeroSum = 1u << kZeroBits;
inline constexpr std::uint32_t kLowestState = 1u << 16;

/// Bits that follow a token.
inline constexpr int extra_bits(int token) { return token < kPlainTokens ? 0 : 2 + (token - kPlainTokens) / 4; }
/// The least number of a token.
inline constexpr std::uint32_t first_of(int token) {
  if (token < kPlainTokens) return static_cast<std::uint32_t>(token);
  const int t = token - kPlainTokens;
  return (static_cast<std::uint32_t>(4 + t % 4) << (2 + t / 4)) + 8;
}

/// The token of a code.
inline int token_of(std::uint32_t u) {
  if (u < kPlainTokens) return static_cast<int>(u);
  const std::uint32_t m = u - 8;
  const int top = static_cast<int>(std::bit_width(m)) - 1;
  return kPlainTokens + 4 * (top - 4) + static_cast<int>(m >> (top - 2) & 3);
}

using Frequencies = std::array<std::uint16_t, kTokens>;

/// Of a tile that is the whole block.
inline constexpr int kWholeEdge = 16;
inline constexpr int kWholeFrames = 7;

/// Tiles of a block: edge x edge samples of `frames` frames.
struct Tiles {
  int log2_edge = 4;
  int log2_frames = 2;
  int columns = 0;
  int rows = 0;
  int groups = 0;  ///< of frames
  Tiles() = default;
  Tiles(int edge_bits, int frame_bits, int frames, int height, int width)
      : log2_edge(edge_bits),
        log2_frames(frame_bits),
        columns(((width - 1) >> edge_bits) + 1),
        rows(((height - 1) >> edge_bits) + 1),
        groups(((frames - 1) >> frame_bits) + 1) {}
  int of_group() const { return columns * rows; }
  int count() const { return of_group() * groups; }
};

}  // namespace trivelet::prediction
