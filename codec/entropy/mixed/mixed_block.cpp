// The decisions of a block in their order are written once, for the coder that writes and the one that reads.
#include "codec/entropy/mixed/mixed_block.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <string>

#include "codec/base/bad_stream.h"
#include "codec/entropy/mixed/mixed_fit.h"
#include "codec/entropy/mixed/mixing.h"
#include "codec/entropy/row_coding.h"
#include "codec/predict/prediction_head.h"
#include "codec/predict/prediction_history.h"

namespace trivelet::mixed {

namespace {

using prediction::BlockHead;
using prediction::BlockSamples;
using prediction::History;
using prediction::kLevels;
using prediction::kMaxTaps;
using prediction::kTapsInRow;
using prediction::Weights;

constexpr int kTapSet = 1;  ///< that an encoder uses: 19 taps
constexpr std::uint32_t kEven = 32768;

// Nodes of the estimates: first the decisions whether the class is a larger one, then the bits of each class.
constexpr std::size_t kFirstBitNode = 20;
constexpr std::size_t kBitNodesOfClass = 7;
constexpr int kModelledBits = 3;          ///< of a code, behind its highest; the lower ones are even
constexpr std::size_t kFirstBitSet = 18;  ///< of mixing weights; before them one a class
constexpr int kMostClassKept = 15;        ///< of neighbours, in contexts
constexpr int kMostExpected = 255;        ///< of expected numbers, in contexts

// Contexts of each kind.
constexpr std::array<std::size_t, kKinds> kContexts{4 * kLevels, 4 * (kMostExpected + 1), 16 * 16 * 16, 8 * kLevels, 4,
                                                    64 * 8};

/// The level of a sum of errors.
std::size_t level_at(int sum) {
  static const std::array<std::uint8_t, prediction::kLevelEntries> table = [] {
    std::array<std::uint8_t, prediction::kLevelEntries> t{};
    std::uint8_t level = 0;
    for (int s = 0; s <= prediction::kMaxSum; ++s) {
      while (level + 1 < kLevels && prediction::kLevelBegins[level + std::size_t{1}] <= s) ++level;
      t[prediction::place_of(s)] = level;
    }
    return t;
  }();
  return table[prediction::place_of(sum)];
}

/// What a sample is coded against.
struct Expected {
  int prediction = 0;  ///< in sixteenths
  int number = 0;      ///< the nearest number
  int fraction = 0;    ///< of the prediction, -8..7
};

/// Codes or decodes a block.
template <class Bits>
struct BlockCoder {
  Bits bits;
  History history;
  BlockHead head;
  std::array<Contexts, kKinds> contexts;
  Mixer mixer;
  std::vector<std::int32_t> sums;             // of a row, of all taps except those in the row
  std::vector<std::uint8_t> rows_of_classes;  // of the codes of two frames; each row has a 0 before it
  int low = 0;
  int high = 0;
  int most_class = 0;

  // The rows that contexts of a sample look at.
  struct Rows {
    const std::uint16_t* above;
    const std::uint16_t* above2;
    const std::uint16_t* before = nullptr;
    const std::uint16_t* before_above = nullptr;
    const std::uint16_t* before_below = nullptr;
    const std::int16_t* numbers_above = nullptr;
    const std::int16_t* numbers_above2 = nullptr;
  };

  void start(int sample_bits, int height, int width) {
    low = -(1 << (sample_bits - 1));
    high = (1 << (sample_bits - 1)) - 1;
    most_class = sample_bits + 1;
    for (std::size_t i = 0; i < kKinds; ++i) contexts[i].start(kContexts[i]);
    mixer.start();
    sums.resize(static_cast<std::size_t>(width));
    rows_of_classes.assign(2 * static_cast<std::size_t>(height) * (static_cast<std::size_t>(width) + 1), 0);
  }
  std::uint8_t* classes(int frame, int y) {
    const auto row = static_cast<std::size_t>(frame % 2 * history.height() + y);
    return &rows_of_classes[row * (static_cast<std::size_t>(history.width()) + 1) + 1];
  }

  bool decide(const SampleContexts& at, std::size_t node, std::size_t set, bool bit) {
    bit = bits.code(mixer.mix(at, node, set), bit);
    mixer.learn(at, node, set, bit);
    return bit;
  }

  /// Codes the class of a code, the number of its bits, then its bits behind the highest.
  std::uint32_t code_number(const SampleContexts& at, std::uint32_t wanted) {
    const int wanted_class = static_cast<int>(std::bit_width(wanted));
    int size = 0;
    for (bool larger = true; larger && size < most_class; size += larger) {
      const auto node = static_cast<std::size_t>(size);
      larger = decide(at, node, node, size < wanted_class);
    }
    if (size < 2) return static_cast<std::uint32_t>(size);
    std::uint32_t code = 1;
    const std::size_t first = kFirstBitNode + static_cast<std::size_t>(size) * kBitNodesOfClass;
    for (int done = 0; done < size - 1; ++done) {
      const bool bit = (wanted >> (size - 2 - done) & 1) != 0;
      const auto set = kFirstBitSet + static_cast<std::size_t>(done);
      code = 2 * code + (done < kModelledBits ? decide(at, first + code - 1, set, bit) : bits.code(kEven, bit));
    }
    return code;
  }

  void weigh_row(int frame, int y, const Weights& weights) {
    const int width = history.width();
    std::fill(sums.begin(), sums.end(), 0);
    for (std::size_t i = kTapsInRow; i < weights.size(); ++i) {
      const prediction::Tap& t = prediction::kTaps[i];
      const std::int16_t* from = history.neighbour(frame, y, t.frame, t.row) + t.column;
      const int w = weights[i];
      for (int x = 0; x < width; ++x) sums[static_cast<std::size_t>(x)] += w * from[x];
    }
  }

  Rows rows_of(int frame, int y) {
    Rows r{};
    r.above = y > 0 ? history.errors(frame, y - 1) : history.no_errors();
    r.above2 = y > 1 ? history.errors(frame, y - 2) : history.no_errors();
    r.numbers_above = history.neighbour(frame, y, 0, -1);
    r.numbers_above2 = history.neighbour(frame, y, 0, -2);
    if (frame == 0) return r;
    r.before = history.errors(frame - 1, y);
    r.before_above = y > 0 ? history.errors(frame - 1, y - 1) : history.no_errors();
    r.before_below = y + 1 < history.height() ? history.errors(frame - 1, y + 1) : history.no_errors();
    return r;
  }

  Expected expect(const std::int16_t* row, int x, const Weights& weights) const {
    Expected e;
    const std::int32_t sum = sums[static_cast<std::size_t>(x)] + weights[0] * row[x - 1] + weights[1] * row[x - 2];
    e.prediction = prediction::prediction_of(sum, low, high);
    e.number = (e.prediction + 8) >> prediction::kFractionBits;
    e.fraction = e.prediction - (e.number << prediction::kFractionBits);
    return e;
  }

  /// The contexts of sample x. `errors`: of this row; `own`, `above`, `before`: classes of rows, the last may be null.
  SampleContexts contexts_of(const Rows& r, const std::int16_t* row, const std::uint16_t* errors, int x,
                             const Expected& e, std::array<std::size_t, 3> near) {
    const int beside = 2 * errors[x - 1] + errors[x - 2];
    const int over = 2 * r.above[x] + r.above[x - 1] + r.above[x + 1] + r.above2[x];
    int sum = beside + over;
    int other = 2 * r.above[x] + r.above[x + 1];
    if (r.before) {
      other = 2 * r.before[x] + r.before[x - 1] + r.before[x + 1] + r.before_above[x] + r.before_below[x];
      sum += other;
    } else {
      sum = 7 * sum >> 2;
    }
    const std::size_t level = level_at(sum);
    const auto fraction = static_cast<std::size_t>(std::min(std::abs(e.fraction) >> 1, 3));
    const auto expected = static_cast<std::size_t>(std::min(e.number - low, kMostExpected));
    const auto is_over = [&](int number) { return static_cast<std::size_t>(16 * number > e.prediction); };
    const std::int16_t* up = r.numbers_above;
    const std::size_t texture = is_over(row[x - 1]) | is_over(row[x - 2]) << 1 | is_over(up[x - 1]) << 2 |
                                is_over(up[x]) << 3 | is_over(up[x + 1]) << 4 | is_over(r.numbers_above2[x]) << 5;
    return {contexts[0].of(4 * level + fraction),
            contexts[1].of(4 * expected + std::min<std::size_t>(level / 4, 3)),
            contexts[2].of((16 * near[0] + near[1]) * 16 + near[2]),
            contexts[3].of(8 * level_at(other) + level_at(beside) / 4),
            contexts[4].of(fraction),
            contexts[5].of(8 * texture + level / 4)};
  }

  /// Codes or decodes a row.
  void code_row(int frame, int y) {
    history.begin_row(frame, y);
    const Weights& weights = frame == 0 ? head.first : head.classes[0];
    weigh_row(frame, y, weights);
    const Rows rows = rows_of(frame, y);
    std::int16_t* row = history.row(frame, y);
    std::uint16_t* errors = history.errors(frame, y);
    std::uint8_t* own = classes(frame, y);
    const std::uint8_t* above = y > 0 ? classes(frame, y - 1) : nullptr;
    const std::uint8_t* before = frame > 0 ? classes(frame - 1, y) : nullptr;
    for (int x = 0; x < history.width(); ++x) {
      const Expected e = expect(row, x, weights);
      const SampleContexts at =
          contexts_of(rows, row, errors, x, e,
                      {own[x - 1], above ? above[x] : std::size_t{0}, before ? before[x] : std::size_t{0}});
      const bool negated = e.fraction < 0;
      std::uint32_t code = 0;
      if constexpr (!Bits::kReading) {
        const int d = negated ? e.number - row[x] : row[x] - e.number;
        code = d > 0 ? 2 * static_cast<std::uint32_t>(d) - 1 : 2 * static_cast<std::uint32_t>(-d);
      }
      code = code_number(at, code);
      if constexpr (Bits::kReading) {
        const int d = (code & 1) ? static_cast<int>((code + 1) / 2) : -static_cast<int>(code / 2);
        const int number = negated ? e.number - d : e.number + d;
        if (number < low || number > high)
          bad("a number of " + std::to_string(number) + " in a mixed codeword; must be " + std::to_string(low) + ".." +
              std::to_string(high));
        row[x] = static_cast<std::int16_t>(number);
      }
      errors[x] = static_cast<std::uint16_t>(prediction::error_of_prediction(row[x], e.prediction));
      own[x] = static_cast<std::uint8_t>(std::min(static_cast<int>(std::bit_width(code)), kMostClassKept));
    }
    history.end_row(frame, y);
  }
};

}  // namespace

struct MixedEncoder::State : BlockCoder<row_coding::WritingBits> {};

MixedEncoder::MixedEncoder() : state_(std::make_unique<State>()) {}
MixedEncoder::~MixedEncoder() = default;

void MixedEncoder::encode(const BlockSamples<VolumeView>& b, std::vector<std::uint8_t>& out, std::size_t most) {
  State& s = *state_;
  if (!prediction::load(b, s.history)) return;
  const bool one_frame = b.frames() == 1;
  s.head.tap_set = kTapSet;
  s.head.first = fit_weights(s.history, b.frames(), true, prediction::kFirstFrameTaps);
  s.head.classes.resize(1);
  if (!one_frame) s.head.classes[0] = fit_weights(s.history, b.frames(), false, prediction::kTapSets[kTapSet]);
  BitWriter head;
  prediction::write_mixed_head(s.head, one_frame, head);
  const std::vector<std::uint8_t> head_bytes = head.take();
  s.start(b.bits, b.height, b.width);
  // Of a sample at most: a decision a class, and a bit fewer.
  const std::size_t most_of_row = static_cast<std::size_t>(b.width) * static_cast<std::size_t>(2 * s.most_class);
  row_coding::write(s, b, most_of_row, head_bytes, most, out);
}

struct MixedDecoder::State : BlockCoder<row_coding::ReadingBits> {};

MixedDecoder::MixedDecoder() : state_(std::make_unique<State>()) {}
MixedDecoder::~MixedDecoder() = default;

void MixedDecoder::decode(const BlockSamples<MutableVolumeView>& b, const std::uint8_t* codeword, std::size_t size) {
  State& s = *state_;
  BitReader bits(codeword, size);
  prediction::read_mixed_head(bits, b.frames() == 1, s.head);
  if (bits.overrun() || !bits.padding_is_zero()) bad("a mixed codeword has a damaged head");
  s.history.start(std::min(b.frames(), 3), b.height, b.width);
  s.start(b.bits, b.height, b.width);
  row_coding::read(s, b, codeword + bits.bytes(), size - bits.bytes(), "a mixed codeword");
}

}  // namespace trivelet::mixed
