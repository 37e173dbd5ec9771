// The decisions of a block in their order are written once, for the coder that writes and the one that reads.
#include "codec/entropy/labels/label_block.h"

#include <algorithm>
#include <array>
#include <bit>

#include "codec/entropy/dense/dense_model.h"
#include "codec/entropy/row_coding.h"
#include "codec/predict/prediction_history.h"

namespace trivelet::labels {

namespace {

using prediction::BlockSamples;
using prediction::History;

/// Neighbours, relative to the sample: frames before it, rows and columns away. In the order of the text.
constexpr int kNeighbours = 16;
/// What equality with a neighbour is worth to a candidate.
constexpr std::array<std::uint8_t, kNeighbours> kWorth{6, 6, 6, 2, 2, 3, 3, 1, 1, 1, 1, 1, 1, 1, 0, 0};
constexpr int kMostCandidates = 4;
constexpr int kNear = 7;  ///< neighbours that the contexts of later candidates look at
constexpr int kNearest = 3;
constexpr int kLengths = 8;  ///< classes of the length of a stretch
/// Decisions after which the context of all neighbours is trusted; before that, one of fewer neighbours is.
constexpr int kTrusted = 4;

constexpr std::uint32_t low_bits(std::uint32_t pattern, int n) { return pattern & ((1u << n) - 1); }

/// Contexts of one kind, those of many neighbours and those of few.
struct Model {
  std::array<dense::State, kLengths> run;
  dense::State flat;
  std::vector<dense::State> first;       ///< by which neighbours equal the first candidate
  std::vector<dense::State> first_near;  ///< by which near neighbours equal it
  std::vector<dense::State> later;       ///< by candidate, and which near neighbours equal it and the first one
  std::vector<dense::State> later_near;  ///< by candidate, and which nearest neighbours equal it and the first one
  std::vector<dense::State> tree;        ///< of the bits of a number

  void start(int bits) {
    run.fill({});
    flat = {};
    first.assign(std::size_t{1} << kNeighbours, {});
    first_near.assign(std::size_t{1} << kNear, {});
    later.assign(std::size_t{kMostCandidates - 1} << (2 * kNear), {});
    later_near.assign(std::size_t{kMostCandidates - 1} << (2 * kNearest), {});
    tree.assign(std::size_t{1} << bits, {});
  }
};

/// Rows around the one that is coded.
struct Rows {
  const std::int16_t* above;
  const std::int16_t* above2;
  const std::int16_t* before;
  const std::int16_t* before_above;
  const std::int16_t* before_below;
  const std::int16_t* before2;

  Rows(History& h, int frame, int y)
      : above(h.neighbour(frame, y, 0, -1)),
        above2(h.neighbour(frame, y, 0, -2)),
        before(frame > 0 ? h.neighbour(frame, y, 1, 0) : above),
        before_above(frame > 0 ? h.neighbour(frame, y, 1, -1) : above),
        before_below(frame > 0 ? h.neighbour(frame, y, 1, 1) : above),
        before2(frame > 0 ? h.neighbour(frame, y, 2, 0) : above) {}
  std::array<std::int16_t, kNeighbours> around(const std::int16_t* row, int x) const {
    return {row[x - 1],      above[x],   before[x],           above[x - 1],       above[x + 1],    before[x + 1],
            before_below[x], row[x - 2], above2[x],           before[x - 1],      before_above[x], before_below[x + 1],
            above[x + 2],    before2[x], before_below[x - 1], before_above[x + 1]};
  }
  /// Whether all neighbours but those in the row are the same number, for all samples of the row.
  void find_alike(int width, std::uint8_t* alike) const {
    constexpr int kAtOnce = 16;
    const auto difference = [this](int x) {
      const int n = above[x];
      return static_cast<std::int16_t>((before[x] ^ n) | (above[x - 1] ^ n) | (above[x + 1] ^ n) | (before[x + 1] ^ n) |
                                       (before_below[x] ^ n) | (above2[x] ^ n) | (before[x - 1] ^ n) |
                                       (before_above[x] ^ n) | (before_below[x + 1] ^ n) | (above[x + 2] ^ n) |
                                       (before2[x] ^ n) | (before_below[x - 1] ^ n) | (before_above[x + 1] ^ n));
    };
    int x = 0;
    for (; x + kAtOnce <= width; x += kAtOnce) {
      std::int16_t differs[kAtOnce];  // its own memory, so that the loop is vectorised
      for (int i = 0; i < kAtOnce; ++i) differs[i] = difference(x + i);
      for (int i = 0; i < kAtOnce; ++i) alike[x + i] = differs[i] == 0 ? 1 : 0;
    }
    for (; x < width; ++x) alike[x] = difference(x) == 0 ? 1 : 0;
  }
};

/// Which neighbours have the number, a bit each; four neighbours at a time, without a branch.
std::uint32_t pattern_of(const std::array<std::int16_t, kNeighbours>& around, std::int16_t number) {
  static_assert(kNeighbours == 16);
  constexpr std::uint64_t kEach = 0x0001000100010001;
  constexpr std::uint64_t kLow = 0x7fff * kEach;
  // Bit 0 of lane i, which is bit 16 * i, goes to bit 48 + i.
  constexpr std::uint64_t kGather = 1ull << 48 | 1ull << 33 | 1ull << 18 | 1ull << 3;
  const std::uint64_t wanted = static_cast<std::uint16_t>(number) * kEach;
  std::uint32_t pattern = 0;
  for (std::size_t k = 0; k < kNeighbours; k += 4) {
    std::uint64_t four = 0;
    for (std::size_t i = 0; i < 4; ++i) four |= std::uint64_t{static_cast<std::uint16_t>(around[k + i])} << (16 * i);
    const std::uint64_t differs = four ^ wanted;
    const std::uint64_t equal = ~(((differs & kLow) + kLow) | differs) >> 15 & kEach;
    pattern |= static_cast<std::uint32_t>(equal * kGather >> 48 & 15) << k;
  }
  return pattern;
}

/// What a pattern of eight neighbours is worth, for either half of them.
constexpr auto kWorthOfByte = [] {
  std::array<std::array<std::uint8_t, 256>, 2> table{};
  for (std::size_t half = 0; half < 2; ++half)
    for (std::size_t p = 0; p < 256; ++p)
      for (std::size_t k = 0; k < 8; ++k)
        if (p >> k & 1) table[half][p] = static_cast<std::uint8_t>(table[half][p] + kWorth[8 * half + k]);
  return table;
}();
constexpr int worth_of(std::uint32_t pattern) { return kWorthOfByte[0][pattern & 255] + kWorthOfByte[1][pattern >> 8]; }
constexpr int kMostWorth = worth_of((1u << kNeighbours) - 1);

struct Candidate {
  std::int16_t number = 0;
  std::uint32_t pattern = 0;
};

/// The numbers of the neighbours, those worth most first; among equals in their order.
struct Candidates {
  std::array<Candidate, kNeighbours> all;
  int count = 0;

  explicit Candidates(const std::array<std::int16_t, kNeighbours>& around) {
    std::array<int, kNeighbours> worth;
    for (std::uint32_t left = (1u << kNeighbours) - 1; left != 0;) {
      const std::int16_t number = around[static_cast<std::size_t>(std::countr_zero(left))];
      const Candidate c{number, pattern_of(around, number)};
      left &= ~c.pattern;
      const int w = worth_of(c.pattern);
      if (count >= kMostCandidates && w <= worth[kMostCandidates - 1]) continue;
      auto i = static_cast<std::size_t>(count++);
      for (; i > 0 && worth[i - 1] < w; --i) {
        worth[i] = worth[i - 1];
        all[i] = all[i - 1];
      }
      worth[i] = w;
      all[i] = c;
      // No other number can be worth more than the last candidate.
      if (count >= kMostCandidates && worth_of(left) <= worth[kMostCandidates - 1]) break;
    }
    count = std::min(count, kMostCandidates);
  }
};

/// Codes or decodes a block.
template <class Bits>
struct BlockCoder {
  Bits bits;
  Model model;
  History history;
  std::vector<std::uint8_t> alike;
  int sample_bits = 8;
  int low = 0;

  void start(int bits_of_sample, int width) {
    sample_bits = bits_of_sample;
    low = -(1 << (bits_of_sample - 1));
    model.start(bits_of_sample);
    alike.resize(static_cast<std::size_t>(width) + 1);
    alike[static_cast<std::size_t>(width)] = 0;  // ends the last stretch
  }

  bool decide(dense::State& state, bool bit) {
    bit = bits.code(dense::probability(state), bit);
    dense::update(state, bit);
    return bit;
  }
  /// With a context of many neighbours, and one of fewer for as long as the first one has seen little.
  bool decide(dense::State& state, dense::State& other, bool bit) {
    bit = bits.code(dense::probability(state.seen >= kTrusted ? state : other), bit);
    dense::update(state, bit);
    dense::update(other, bit);
    return bit;
  }

  std::int16_t code_number(std::int16_t number, std::int16_t refused) {
    if (sample_bits == 1) return static_cast<std::int16_t>(2 * low + 1 - refused);
    const int wanted = number - low;
    std::size_t node = 1;
    for (int b = sample_bits - 1; b >= 0; --b) node = 2 * node + decide(model.tree[node], (wanted >> b & 1) != 0);
    return static_cast<std::int16_t>(static_cast<int>(node) - (1 << sample_bits) + low);
  }

  std::int16_t code_among(const std::array<std::int16_t, kNeighbours>& around, std::int16_t number) {
    // Nearly always a number that is worth more than all others together.
    const Candidate left{around[0], pattern_of(around, around[0])};
    if (2 * worth_of(left.pattern) > kMostWorth) {
      if (is_first(left, number)) return left.number;
      return code_other(Candidates(around), number);
    }
    const Candidates candidates(around);
    if (is_first(candidates.all[0], number)) return candidates.all[0].number;
    return code_other(candidates, number);
  }

  bool is_first(const Candidate& first, std::int16_t number) {
    return decide(model.first[first.pattern], model.first_near[low_bits(first.pattern, kNear)], number == first.number);
  }

  /// A number that is not the first candidate.
  std::int16_t code_other(const Candidates& candidates, std::int16_t number) {
    const auto [first, first_pattern] = candidates.all[0];
    if (sample_bits == 1) return code_number(number, first);
    for (int i = 1; i < candidates.count; ++i) {
      const auto [candidate, pattern] = candidates.all[static_cast<std::size_t>(i)];
      const auto of = static_cast<std::uint32_t>(i - 1);
      const std::uint32_t many = (of << kNear | low_bits(pattern, kNear)) << kNear | low_bits(first_pattern, kNear);
      const std::uint32_t few =
          (of << kNearest | low_bits(pattern, kNearest)) << kNearest | low_bits(first_pattern, kNearest);
      if (decide(model.later[many], model.later_near[few], number == candidate)) return candidate;
    }
    return code_number(number, first);
  }

  void code_row(int frame, int y) {
    history.begin_row(frame, y);
    const int width = history.width();
    std::int16_t* row = history.row(frame, y);
    const Rows rows(history, frame, y);
    rows.find_alike(width, alike.data());
    int asked = 0;  // samples before this one belong to a stretch that is known not to be alike as a whole
    for (int x = 0; x < width;) {
      const std::int16_t expected = rows.above[x];
      if (!alike[static_cast<std::size_t>(x)] || row[x - 1] != expected || row[x - 2] != expected) {
        row[x] = code_among(rows.around(row, x), row[x]);
        ++x;
        continue;
      }
      if (x >= asked) {
        int end = x + 1;
        while (alike[static_cast<std::size_t>(end)]) ++end;
        const auto length = static_cast<unsigned>(end - x);
        const auto magnitude = std::min<std::size_t>(std::bit_width(length) - 1, kLengths - 1);
        const bool all = !Bits::kReading && std::all_of(row + x, row + end, [&](auto v) { return v == expected; });
        if (decide(model.run[magnitude], all)) {
          if constexpr (Bits::kReading) std::fill(row + x, row + end, expected);
          x = end;
          continue;
        }
        asked = end;
      }
      if (decide(model.flat, row[x] == expected)) {
        row[x] = expected;
      } else {
        row[x] = code_number(row[x], expected);
        asked = 0;
      }
      ++x;
    }
    history.end_row(frame, y);
  }
};

}  // namespace

struct LabelEncoder::State : BlockCoder<row_coding::WritingBits> {};

LabelEncoder::LabelEncoder() : state_(std::make_unique<State>()) {}
LabelEncoder::~LabelEncoder() = default;

void LabelEncoder::encode(const BlockSamples<VolumeView>& b, std::vector<std::uint8_t>& out, std::size_t most) {
  State& s = *state_;
  if (!prediction::load(b, s.history)) return;
  s.start(b.bits, b.width);
  // Of a sample at most: a stretch, one decision per candidate and one per bit.
  const std::size_t most_of_row =
      static_cast<std::size_t>(b.width) * static_cast<std::size_t>(2 + kMostCandidates + b.bits);
  row_coding::write(s, b, most_of_row, {}, most, out);
}

struct LabelDecoder::State : BlockCoder<row_coding::ReadingBits> {};

LabelDecoder::LabelDecoder() : state_(std::make_unique<State>()) {}
LabelDecoder::~LabelDecoder() = default;

void LabelDecoder::decode(const BlockSamples<MutableVolumeView>& b, const std::uint8_t* codeword, std::size_t size) {
  State& s = *state_;
  s.history.start(std::min(b.frames(), 3), b.height, b.width);
  s.start(b.bits, b.width);
  row_coding::read(s, b, codeword, size, "a codeword of labels");
}

}  // namespace trivelet::labels
