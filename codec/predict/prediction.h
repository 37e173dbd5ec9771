// The arithmetic of the predictive profile (FORMAT.md "Predictive profile") that encoder, decoder and their kernels
// share: neighbours, contexts, tokens and the frequencies of tokens.
//
// A sample is predicted by a weighted sum of its neighbours in the frame and in the two frames before. A map of tiles
// chooses the class of weights. rANS codes the residual with frequencies that the encoder counted beforehand; the
// context is the size of the errors around the sample. Nothing adapts. So a decoder needs a few additions, one look-up
// and one multiplication per sample, and computes for a whole row at once whatever does not depend on the sample to the
// left.
//
// Sources: MRP (Matsuda et al. 2005) for classes of predictors chosen by tiles, CALIC (Wu, Memon 1997) and JPEG-LS for
// contexts of neighbouring errors, Duda (2013) and Giesen (2014) for rANS.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace trivelet::prediction {

/// A neighbour, relative to the sample: this number of frames before it, and rows and columns away.
struct Tap {
  int frame = 0;
  int row = 0;
  int column = 0;
};
inline constexpr int kMaxTaps = 28;
/// The taps to the left in the same row come first. All other taps are available for a whole row at once.
inline constexpr int kTapsInRow = 2;
inline constexpr std::array<Tap, kMaxTaps> kTaps{{
    {0, 0, -1},  {0, 0, -2},                                       // in the row
    {0, -1, -2}, {0, -1, -1}, {0, -1, 0}, {0, -1, 1}, {0, -1, 2},  // in the frame
    {0, -2, -1}, {0, -2, 0},  {0, -2, 1},                          //
    {1, -1, -1}, {1, -1, 0},  {1, -1, 1}, {1, 0, -1}, {1, 0, 0},   // in the frame before
    {1, 0, 1},   {1, 1, -1},  {1, 1, 0},  {1, 1, 1},               //
    {2, -1, 0},  {2, 0, -1},  {2, 0, 0},  {2, 0, 1},  {2, 1, 0},   // two frames before
    {1, -2, 0},  {1, 0, -2},  {1, 0, 2},  {1, 2, 0},               // further away
}};
/// The number of taps that a block uses, by the index in its header. The first frame of a block uses set 0, which has
/// the taps inside the frame.
inline constexpr std::array<int, 4> kTapSets{10, 19, 24, 28};
inline constexpr int kFirstFrameTaps = kTapSets[0];

inline constexpr int kWeightBits = 13;    ///< fixed point: 2^13 stands for 1
inline constexpr int kMaxWeight = 32767;  ///< largest magnitude
inline constexpr int kWeightSum = 65535;  ///< largest sum of magnitudes; keeps weighted sums within 32 bits
inline constexpr int kFractionBits = 4;   ///< fractional bits of a prediction
inline constexpr int kMaxClasses = 32;
inline constexpr int kMostFrames = 128;  ///< frames of a GOP, at most
inline constexpr int kMargin = 2;        ///< samples beside a row that taps reach

// Contexts ------------------------------------------------------------------------------------------------------------
inline constexpr int kMaxError = 4095;  ///< in quarters of a sample
inline constexpr int kLevels = 31;      ///< levels of the sum of errors around a sample
inline constexpr int kFineLevels = 14;  ///< levels whose contexts also depend on the fraction of the prediction
inline constexpr int kFlatContexts = 2;
inline constexpr int kContexts = kFlatContexts + 4 * kFineLevels + (kLevels - kFineLevels);
/// The sum of errors at which level q begins: about 4 * (2^(q / 2.2) - 1), and from 2048 on a multiple of 32.
inline constexpr std::array<int, kLevels> kLevelBegins{
    0,   1,   3,    6,    10,   15,   22,   32,   45,   64,    89,    124,   171,   236,   325,  447,
    614, 843, 1157, 1587, 2176, 2976, 4096, 5600, 7680, 10528, 14432, 19776, 27104, 37120, 50880};
inline constexpr int kSumsLooked = 2048;  ///< smaller sums have an entry each; above, 32 sums share one
inline constexpr int kMaxSum = 14 * kMaxError;

/// The entry at place_of(sum): the first context of the sum's level, and a mask for the fraction: 3 if the level
/// depends on it, else 0.
struct LevelEntry {
  std::uint8_t context = 0;
  std::uint8_t fractions = 0;
};
inline constexpr std::size_t kLevelEntries = kSumsLooked + (kMaxSum >> 5) + 1;
inline constexpr std::size_t place_of(int sum) {
  return static_cast<std::size_t>(sum < kSumsLooked ? sum : kSumsLooked + (sum >> 5));
}
const std::array<LevelEntry, kLevelEntries>& level_table();

// Static contexts (FORMAT.md "Known ahead"): no context depends on the row of its sample. -------------------------
inline constexpr int kStates = 16;  ///< rANS states; sample x of a row uses state x mod 16
inline constexpr int kAheadLevels = 30;
inline constexpr int kAheadContexts = kFlatContexts + kAheadLevels;

// Tokens --------------------------------------------------------------------------------------------------------------
inline constexpr int kPlainTokens = 24;  ///< tokens that stand for one number each
inline constexpr int kTokens = 76;
inline constexpr int kFrequencyBits = 11;
inline constexpr int kFrequencySum = 1 << kFrequencyBits;
inline constexpr int kZeroBits = 16;  ///< for the decision whether a flat sample is as predicted
inline constexpr std::uint32_t kZeroSum = 1u << kZeroBits;
inline constexpr std::uint32_t kLowestState = 1u << 16;

/// The number of extra bits that follow a token.
inline constexpr int extra_bits(int token) { return token < kPlainTokens ? 0 : 2 + (token - kPlainTokens) / 4; }
/// The smallest code that a token stands for.
inline constexpr std::uint32_t first_of(int token) {
  if (token < kPlainTokens) return static_cast<std::uint32_t>(token);
  const int t = token - kPlainTokens;
  return (static_cast<std::uint32_t>(4 + t % 4) << (2 + t / 4)) + 8;
}

/// The token of code u (FORMAT.md "Tokens").
inline int token_of(std::uint32_t u) {
  if (u < kPlainTokens) return static_cast<int>(u);
  const std::uint32_t m = u - 8;
  const int top = static_cast<int>(std::bit_width(m)) - 1;
  return kPlainTokens + 4 * (top - 4) + static_cast<int>(m >> (top - 2) & 3);
}

using Frequencies = std::array<std::uint16_t, kTokens>;

/// Log2 of the edge and of the frames of a tile that covers the largest block.
inline constexpr int kWholeEdge = 16;
inline constexpr int kWholeFrames = 7;

/// Tiles of a block: edge x edge samples of `frames` frames.
struct Tiles {
  int log2_edge = 4;
  int log2_frames = 2;
  int columns = 0;
  int rows = 0;
  int groups = 0;  ///< groups of frames
  Tiles() = default;
  Tiles(int edge_bits, int frame_bits, int frames, int height, int width)
      : log2_edge(edge_bits),
        log2_frames(frame_bits),
        columns(((width - 1) >> edge_bits) + 1),
        rows(((height - 1) >> edge_bits) + 1),
        groups(((frames - 1) >> frame_bits) + 1) {}
  int tiles_per_group() const { return columns * rows; }
  int count() const { return tiles_per_group() * groups; }
};

}  // namespace trivelet::prediction
