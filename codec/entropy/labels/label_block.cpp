// The decisions of a block in their order are written once, for the coder that writes and the one that reads.
#include "codec/entropy/labels/label_block.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "codec/entropy/dense/dense_model.h"
#include "codec/entropy/labels/label_kernels.h"
#include "codec/entropy/row_coding.h"
#include "codec/predict/prediction_history.h"

namespace trivelet::labels {

namespace {

using prediction::BlockSamples;
using prediction::History;

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

Rows rows_around(History& h, int frame, int y) {
  const std::int16_t* above = h.neighbour(frame, y, 0, -1);
  const auto before = [&](int frames, int rows) { return frame > 0 ? h.neighbour(frame, y, frames, rows) : above; };
  return {above, h.neighbour(frame, y, 0, -2), before(1, 0), before(1, -1), before(1, 1), before(2, 0)};
}

using Around = std::array<std::int16_t, kNeighbours>;
Around around(const Rows& r, const std::int16_t* row, int x) {
  return {row[x - 1],     r.above[x],      r.before[x],           r.above[x - 1],
          r.above[x + 1], r.before[x + 1], r.before_below[x],     row[x - 2],
          r.above2[x],    r.before[x - 1], r.before_above[x],     r.before_below[x + 1],
          r.above[x + 2], r.before2[x],    r.before_below[x - 1], r.before_above[x + 1]};
}

/// Which neighbours have the number, a bit each.
std::uint16_t pattern_of(const Around& around, std::int16_t number) {
  std::uint32_t pattern = 0;
  for (std::size_t k = 0; k < kNeighbours; ++k) pattern |= (around[k] == number ? 1u : 0u) << k;
  return static_cast<std::uint16_t>(pattern);
}

/// How many bytes there are before the first zero.
int length_of(const std::uint8_t* bytes, int most) {
  const void* zero = std::memchr(bytes, 0, static_cast<std::size_t>(most));
  return zero ? static_cast<int>(static_cast<const std::uint8_t*>(zero) - bytes) : most;
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

/// Codes or decodes a block.
template <class Bits>
struct BlockCoder {
  Bits bits;
  Model model;
  History history;
  const Kernels& kernel;
  std::vector<std::uint8_t> alike;
  std::vector<std::uint8_t> as_above;  // if all numbers are known
  std::vector<std::uint16_t> equal;    // neighbours that equal the number that is guessed to be the one to the left
  const std::int16_t* guessed_left = nullptr;  // by column
  int sample_bits = 8;
  int low = 0;

  explicit BlockCoder(SimdLevel simd) : kernel(kernels(simd)) {}

  void start(int bits_of_sample, int width) {
    sample_bits = bits_of_sample;
    low = -(1 << (bits_of_sample - 1));
    model.start(bits_of_sample);
    const auto columns = static_cast<std::size_t>(width);
    alike.resize(columns + 1);
    alike[columns] = 0;  // ends the last stretch
    as_above.resize(columns);
    equal.resize(columns);
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

  std::int16_t code_among(const Rows& rows, const std::int16_t* row, int x) {
    // Nearly always a number that is worth more than all others together.
    const Candidate left{row[x - 1], pattern_of_left(rows, row, x)};
    const std::int16_t number = row[x];
    const bool is_best = 2 * worth_of(left.pattern) > kMostWorth;
    if (is_best && is_first(left, number)) return left.number;
    std::array<Candidate, kMostCandidates> candidates;
    const int count = kernel.candidates(around(rows, row, x).data(), candidates.data());
    if (!is_best && is_first(candidates[0], number)) return candidates[0].number;
    return code_other(candidates, count, number);
  }

  std::uint16_t pattern_of_left(const Rows& rows, const std::int16_t* row, int x) const {
    const std::int16_t left = row[x - 1];
    if (Bits::kReading && left != guessed_left[x]) return pattern_of(around(rows, row, x), left);
    return static_cast<std::uint16_t>(equal[static_cast<std::size_t>(x)] | 1 << kLeft |
                                      (row[x - 2] == left ? 1 << kLeft2 : 0));
  }

  bool is_first(const Candidate& first, std::int16_t number) {
    return decide(model.first[first.pattern], model.first_near[low_bits(first.pattern, kNear)], number == first.number);
  }

  /// A number that is not the first candidate.
  std::int16_t code_other(const std::array<Candidate, kMostCandidates>& candidates, int count, std::int16_t number) {
    const auto [first, first_pattern] = candidates[0];
    if (sample_bits == 1) return code_number(number, first);
    for (int i = 1; i < count; ++i) {
      const auto [candidate, pattern] = candidates[static_cast<std::size_t>(i)];
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
    const Rows rows = rows_around(history, frame, y);
    kernel.alike(rows, width, alike.data());
    if constexpr (!Bits::kReading) kernel.as_above(rows, row, width, as_above.data());
    guessed_left = Bits::kReading ? rows.above : row - 1;
    kernel.equal(rows, guessed_left, width, equal.data());
    int asked = 0;  // samples before this one belong to a stretch that is known not to be alike as a whole
    for (int x = 0; x < width;) {
      const std::int16_t expected = rows.above[x];
      if (!alike[static_cast<std::size_t>(x)] || row[x - 1] != expected || row[x - 2] != expected) {
        row[x] = code_among(rows, row, x);
        ++x;
        continue;
      }
      if (x >= asked) {
        const int end = x + length_of(&alike[static_cast<std::size_t>(x)], width + 1 - x);
        const auto length = static_cast<unsigned>(end - x);
        const auto magnitude = std::min<std::size_t>(std::bit_width(length) - 1, kLengths - 1);
        const bool all = !Bits::kReading && length_of(&as_above[static_cast<std::size_t>(x)], end - x) == end - x;
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

struct LabelEncoder::State : BlockCoder<row_coding::RecordingBits> {
  using BlockCoder::BlockCoder;
};

LabelEncoder::LabelEncoder(SimdLevel simd) : state_(std::make_unique<State>(simd)) {}
LabelEncoder::~LabelEncoder() = default;

std::size_t LabelEncoder::bytes_until(int frames) const {
  return state_->bits.bytes_until[static_cast<std::size_t>(frames - 1)];
}

bool LabelEncoder::says_what_was_coded(const std::uint8_t* codeword, std::size_t size) const {
  return row_coding::says(state_->bits, codeword, size);
}

void LabelEncoder::encode(const BlockSamples<VolumeView>& b, std::vector<std::uint8_t>& out, std::size_t most) {
  State& s = *state_;
  if (!prediction::load(b, s.history)) return;
  s.start(b.bits, b.width);
  // Of a sample at most: a stretch, one decision per candidate and one per bit.
  const std::size_t most_of_row =
      static_cast<std::size_t>(b.width) * static_cast<std::size_t>(2 + kMostCandidates + b.bits);
  row_coding::write(s, b, most_of_row, {}, most, out);
}

struct LabelDecoder::State : BlockCoder<row_coding::ReadingBits> {
  using BlockCoder::BlockCoder;
};

LabelDecoder::LabelDecoder(SimdLevel simd) : state_(std::make_unique<State>(simd)) {}
LabelDecoder::~LabelDecoder() = default;

void LabelDecoder::decode(const BlockSamples<MutableVolumeView>& b, const std::uint8_t* codeword, std::size_t size,
                          int most_frames) {
  State& s = *state_;
  s.history.start(std::min(b.frames(), 3), b.height, b.width);
  s.start(b.bits, b.width);
  row_coding::read(s, b, codeword, size, "a codeword of labels", most_frames);
}

}  // namespace trivelet::labels
