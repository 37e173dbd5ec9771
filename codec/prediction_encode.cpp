// A block of samples -> a codeword of the predictive profile: weights and classes are fitted, samples become tokens,
// which are counted and then coded backwards, so that a decoder goes forwards.

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <numeric>

#include "codec/bytes.h"
#include "codec/prediction_block.h"
#include "codec/prediction_head.h"
#include "codec/prediction_model.h"

namespace trivelet::prediction {

namespace {

/// A token of a context.
using Symbol = std::uint16_t;
Symbol symbol_of(std::size_t context, int token) {
  return static_cast<Symbol>(context << 7 | static_cast<unsigned>(token));
}

/// rANS: symbols in reverse, words from the last to the first.
class StateWriter {
 public:
  struct Slot {
    std::uint64_t inverse = 0;  ///< of the frequency, rounded up to 2^-48
    std::uint32_t frequency = 0;
    std::uint32_t begin = 0;
  };
  using Slots = std::array<Slot, kTokens>;

  static void fill(const Frequencies& f, Slots& slots) {
    std::uint32_t begin = 0;
    for (std::size_t t = 0; t < kTokens; ++t) {
      slots[t].frequency = f[t];
      slots[t].begin = begin;
      if (f[t] > 0) slots[t].inverse = inverse_of(f[t]);
      begin += f[t];
    }
  }
  static std::uint64_t inverse_of(std::uint32_t frequency) { return (std::uint64_t{1} << 48) / frequency + 1; }
  /// `bits`: frequencies add up to 2^bits.
  template <int bits = kFrequencyBits>
  void put(const Slot& s) {
    if (std::uint64_t{state_} >= std::uint64_t{s.frequency} << (32 - bits)) {
      words_.push_back(static_cast<std::uint16_t>(state_));
      state_ >>= 16;
    }
    const std::uint32_t whole = quotient(state_, s);
    state_ += whole * ((1u << bits) - s.frequency) + s.begin;
  }
  void finish(std::vector<std::uint8_t>& out) {
    ByteWriter w;
    w.fixed(state_);
    out.insert(out.end(), w.bytes.begin(), w.bytes.end());
    const std::size_t at = out.size();
    out.resize(at + 2 * words_.size());
    for (std::size_t i = 0; i < words_.size(); ++i)
      store_little_endian(words_[words_.size() - 1 - i], &out[at + 2 * i]);
    words_.clear();
    state_ = kLowestState;
  }

 private:
  // Exact: state < 2^32 and frequency <= 2^16, so the error, state / 2^48 at most, is less than 1 / frequency.
  static std::uint32_t quotient(std::uint32_t state, const Slot& s) {
    const std::uint64_t low = (s.inverse & 0xffffffff) * state;
    const std::uint64_t high = (s.inverse >> 32) * state;
    return static_cast<std::uint32_t>((high + (low >> 32)) >> 16);
  }

  std::vector<std::uint16_t> words_;
  std::uint32_t state_ = kLowestState;
};

}  // namespace

struct BlockEncoder::State {
  explicit State(SimdLevel simd) : ahead(kernels(simd)), model(kernels(simd)) {}

  RowAhead ahead;
  Model model;
  History history;
  std::vector<Symbol> symbols;
  std::size_t symbols_end = 0;
  std::vector<std::vector<std::uint32_t>> counts;  // by context
  std::vector<int> predictions;
  StateWriter states;
  std::vector<StateWriter::Slots> slots;
  FrequencyTables tables;
  std::vector<std::uint8_t> extra_bytes;

  void encode_row(int frame, int y, int low, int high, BitWriter& extra);
  void write(bool one_frame, BitWriter& extra, std::vector<std::uint8_t>& out);
  std::size_t class_before(std::size_t tile) const;
};

void BlockEncoder::State::encode_row(int frame, int y, int low, int high, BitWriter& extra) {
  history.begin_row(frame, y);
  ahead.prepare(history, frame, y);
  const std::int16_t* row = history.row(frame, y);
  const std::int16_t* above = history.neighbour(frame, y, 0, -1);
  std::uint16_t* errors = history.errors(frame, y);
  const int width = history.width();
  int* p = predictions.data();
  ahead.for_runs(frame, y, width, [&](int begin, int end, const Weights& weights) {
    const int w0 = weights[0], w1 = weights[1];
    for (int x = begin; x < end; ++x)
      p[x] = prediction_of(ahead.sums[static_cast<std::size_t>(x)] + w0 * row[x - 1] + w1 * row[x - 2], low, high);
  });
  for (int x = 0; x < width; ++x) {
    const bool same = ahead.flat[static_cast<std::size_t>(x)] != 0 && row[x - 1] == above[x];
    p[x] = same ? row[x - 1] * (1 << kFractionBits) : p[x];
    errors[x] = static_cast<std::uint16_t>(error_of_prediction(row[x], p[x]));
  }
  const LevelEntry* levels = level_table().data();
  Symbol* to = &symbols[symbols_end];
  for (int x = 0; x < width; ++x) {
    const int rounded = (p[x] + 8) >> kFractionBits;
    const int fraction = p[x] - rounded * (1 << kFractionBits);
    std::size_t context;
    if (const int flat = ahead.flat[static_cast<std::size_t>(x)]; flat != 0 && row[x - 1] == above[x]) {
      context = static_cast<std::size_t>(flat - 1);
    } else {
      int sum = ahead.around[static_cast<std::size_t>(x)] + 2 * errors[x - 1] + errors[x - 2];
      if (frame == 0) sum = 7 * sum >> 2;
      context = context_of(levels[place_of(sum)], fraction);
    }
    const int d = fraction < 0 ? rounded - row[x] : row[x] - rounded;
    const auto u = static_cast<std::uint32_t>(d > 0 ? 2 * d - 1 : -2 * d);
    int token = static_cast<int>(u);
    if (u >= kPlainTokens) {
      token = token_of(u);
      extra.put(u - first_of(token), extra_bits(token));
    }
    ++counts[context][static_cast<std::size_t>(token)];
    to[x] = symbol_of(context, token);
  }
  symbols_end += static_cast<std::size_t>(width);
  history.end_row(frame, y);
}

std::size_t BlockEncoder::State::class_before(std::size_t tile) const {
  const auto group = static_cast<std::size_t>(model.tiles.of_group());
  return tile >= group ? model.map[tile - group] : tile > 0 ? model.map[tile - 1] : 0;
}

void BlockEncoder::State::write(bool one_frame, BitWriter& extra, std::vector<std::uint8_t>& out) {
  tables = {};
  std::array<std::array<StateWriter::Slot, 2>, kFlatContexts> flat{};  // as predicted; not
  for (std::size_t c = 0; c < kFlatContexts; ++c) {
    const std::uint32_t zero = zero_frequency(counts[c][0], std::accumulate(counts[c].begin(), counts[c].end(), 0u));
    counts[c][0] = 0;
    tables.zero[c] = zero;
    if (zero > 0) flat[c][0] = {StateWriter::inverse_of(zero), zero, 0};
    if (zero < kZeroSum) flat[c][1] = {StateWriter::inverse_of(kZeroSum - zero), kZeroSum - zero, zero};
  }
  for (const auto& c : counts) tables.samples.push_back(frequencies_of(c));
  const std::size_t classes = model.head.classes.size();
  if (classes > 1) {
    std::vector<std::vector<std::uint32_t>> of_class(classes, std::vector<std::uint32_t>(kTokens));
    for (std::size_t t = 0; t < model.map.size(); ++t) ++of_class[class_before(t)][model.map[t]];
    for (const auto& c : of_class) tables.classes.push_back(frequencies_of(c));
  }
  BitWriter bits;
  write_head(model.head, one_frame, tables, bits);
  const std::vector<std::uint8_t> head = bits.take();
  extra_bytes = extra.take();
  ByteWriter size;
  size.varint(extra_bytes.size());
  out.insert(out.end(), head.begin(), head.end());
  out.insert(out.end(), size.bytes.begin(), size.bytes.end());
  out.insert(out.end(), extra_bytes.begin(), extra_bytes.end());

  slots.resize(kContexts);
  for (std::size_t c = 0; c < kContexts; ++c) StateWriter::fill(tables.samples[c], slots[c]);
  for (std::size_t i = symbols_end; i-- > 0;) {
    const std::size_t context = symbols[i] >> 7;
    const std::size_t token = symbols[i] & 127;
    if (context >= kFlatContexts || token != 0) states.put(slots[context][token]);
    if (context < kFlatContexts) states.put<kZeroBits>(flat[context][token != 0]);
  }
  if (classes > 1) {
    std::vector<StateWriter::Slots> of_class(classes);
    for (std::size_t c = 0; c < classes; ++c) StateWriter::fill(tables.classes[c], of_class[c]);
    for (std::size_t t = model.map.size(); t-- > 0;) states.put(of_class[class_before(t)][model.map[t]]);
  }
  states.finish(out);
}

namespace {

/// The state as a decoder sees it, of which the next symbol is known.
struct StateReader {
  const std::uint8_t* words = nullptr;
  std::size_t left = 0;
  std::uint32_t state = 0;
  bool right = true;

  template <int bits = kFrequencyBits>
  void expect(std::uint32_t begin, std::uint32_t frequency) {
    const std::uint32_t place = (state & ((1u << bits) - 1)) - begin;
    right &= place < frequency;
    state = frequency * (state >> bits) + place;
    if (state >= kLowestState) return;
    right &= left > 0;
    if (left == 0) return;
    state = state << 16 | load_little_endian<std::uint16_t>(words);
    words += 2;
    --left;
  }
};

}  // namespace

bool BlockEncoder::says_what_was_coded(const std::uint8_t* codeword, std::size_t size, bool one_frame) const try {
  const State& s = *state_;
  const Model& model = s.model;
  BlockHead head;
  FrequencyTables tables;
  BitReader bits(codeword, size);
  read_head(bits, one_frame, head, tables);
  if (bits.overrun() || !bits.padding_is_zero() || head.tap_set != model.head.tap_set ||
      head.log2_edge != model.head.log2_edge || head.log2_frames != model.head.log2_frames ||
      head.first != model.head.first || head.classes != model.head.classes || tables.classes != s.tables.classes ||
      tables.samples != s.tables.samples || tables.zero != s.tables.zero)
    return false;
  ByteReader rest(codeword + bits.bytes(), size - bits.bytes(), "codeword");
  std::uint64_t extra = 0;
  rest.varint(extra);
  const std::uint8_t* at = codeword + (size - rest.left());
  if (extra != s.extra_bytes.size() || rest.left() < extra + 4 || (rest.left() - extra) % 2 != 0 ||
      !std::equal(s.extra_bytes.begin(), s.extra_bytes.end(), at))
    return false;
  StateReader reader{at + extra + 4, (rest.left() - static_cast<std::size_t>(extra) - 4) / 2,
                     load_little_endian<std::uint32_t>(at + extra)};
  if (reader.state < kLowestState) return false;
  struct Range {
    std::uint16_t begin = 0;
    std::uint16_t frequency = 0;
  };
  using Ranges = std::array<Range, kTokens>;
  const auto ranges_of = [](const Frequencies& f) {
    Ranges r;
    std::uint16_t begin = 0;
    for (std::size_t t = 0; t < kTokens; ++t) {
      r[t] = {begin, f[t]};
      begin = static_cast<std::uint16_t>(begin + f[t]);
    }
    return r;
  };
  std::vector<Ranges> ranges;
  for (const Frequencies& f : tables.classes) ranges.push_back(ranges_of(f));
  for (std::size_t t = 0; !ranges.empty() && t < model.map.size(); ++t) {
    const Range& r = ranges[s.class_before(t)][model.map[t]];
    reader.expect(r.begin, r.frequency);
  }
  ranges.clear();
  for (const Frequencies& f : tables.samples) ranges.push_back(ranges_of(f));
  for (std::size_t i = 0; i < s.symbols_end; ++i) {
    const std::size_t context = s.symbols[i] >> 7;
    const std::size_t token = s.symbols[i] & 127;
    if (context < kFlatContexts) {
      const std::uint32_t zero = tables.zero[context];
      token == 0 ? reader.expect<kZeroBits>(0, zero) : reader.expect<kZeroBits>(zero, kZeroSum - zero);
      if (token == 0) continue;
    }
    const Range& r = ranges[context][token];
    reader.expect(r.begin, r.frequency);
  }
  return reader.right && reader.left == 0 && reader.state == kLowestState;
} catch (const Error& e) {
  if (e.kind() != ErrorKind::kBadStream) throw;
  return false;
}

BlockEncoder::BlockEncoder(SimdLevel simd) : state_(std::make_unique<State>(simd)) {}
BlockEncoder::~BlockEncoder() = default;

void BlockEncoder::encode(const BlockSamples<VolumeView>& b, const Effort& effort, std::vector<std::uint8_t>& out) {
  State& s = *state_;
  if (!load(b, s.history)) return;
  s.model.fit(s.history, b.frames(), effort);
  s.ahead.start(s.model.head, s.model.tiles, s.model.map.data(), b.width);
  s.predictions.resize(static_cast<std::size_t>(b.width));
  s.symbols.resize(static_cast<std::size_t>(b.frames()) * static_cast<std::size_t>(b.height) *
                   static_cast<std::size_t>(b.width));
  s.symbols_end = 0;
  s.counts.assign(kContexts, std::vector<std::uint32_t>(kTokens));
  BitWriter extra;
  for (int z = 0; z < b.frames(); ++z)
    for (int y = 0; y < b.height; ++y) s.encode_row(z, y, b.low(), b.high(), extra);
  s.write(b.frames() == 1, extra, out);
}

}  // namespace trivelet::prediction
