// Encodes a block of samples as a codeword of the predictive profile. Weights and classes are fitted, and samples
// become tokens, which are counted. rANS then codes the tokens backwards, so that a decoder reads them forwards.

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <numeric>

#include "codec/base/bytes.h"
#include "codec/predict/prediction_block.h"
#include "codec/predict/prediction_compensation.h"
#include "codec/predict/prediction_extra_bits.h"
#include "codec/predict/prediction_head.h"
#include "codec/predict/prediction_model.h"
#include "codec/predict/prediction_motion_search.h"

namespace trivelet::prediction {

namespace {

/// A context and a token in one number.
using Symbol = std::uint16_t;
Symbol symbol_of(std::size_t context, int token) {
  return static_cast<Symbol>(context << 7 | static_cast<unsigned>(token));
}

/// A rANS encoder. It takes the symbols in reverse order and writes the words from the last one to the first.
class StateWriter {
 public:
  struct Slot {
    std::uint64_t inverse = 0;  ///< of the frequency, in units of 2^-48, rounded up
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
  /// Codes a symbol. The frequencies of its alphabet add up to 2^bits.
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
  // The quotient is exact: state < 2^32 and frequency <= 2^16, so its error, at most state / 2^48, is below 1 /
  // frequency.
  static std::uint32_t quotient(std::uint32_t state, const Slot& s) {
    const std::uint64_t low = (s.inverse & 0xffffffff) * state;
    const std::uint64_t high = (s.inverse >> 32) * state;
    return static_cast<std::uint32_t>((high + (low >> 32)) >> 16);
  }

  std::vector<std::uint16_t> words_;
  std::uint32_t state_ = kLowestState;
};

using Counts = std::vector<std::uint32_t>;
constexpr std::size_t kLevelSymbols = 2 * kContexts * kTokenSpace;
constexpr int kLevelHistograms =
    2;  // one for each second sample, so that an increment does not wait for the previous one

/// The logarithm to base 2, from additions, products and one quotient only: the same bits on every machine.
double portable_log2(std::uint32_t v) {
  const int whole = static_cast<int>(std::bit_width(v)) - 1;
  constexpr double kRoot = 1.4142135623730951, kPerNatural = 2.8853900817779268;
  const double m = static_cast<double>(v) / static_cast<double>(std::uint64_t{1} << whole);
  const double t = (m - kRoot) / (m + kRoot), t2 = t * t;
  return whole + 0.5 + kPerNatural * t * (1 + t2 * (1.0 / 3 + t2 * (1.0 / 5 + t2 / 7)));
}

/// The number of bits of an ideal code for symbols with these counts.
double entropy_bits(const Counts& counts) {
  double bits = 0;
  std::uint32_t all = 0;
  for (const std::uint32_t n : counts) {
    if (n > 0) bits -= n * portable_log2(n);
    all += n;
  }
  return all > 0 ? bits + all * portable_log2(all) : 0;
}

Counts sum_of(const Counts& a, const Counts& b) {
  Counts sum = a;
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += b[i];
  return sum;
}

std::uint32_t zigzag_residual(int difference) {
  return static_cast<std::uint32_t>(difference > 0 ? 2 * difference - 1 : -2 * difference);
}

}  // namespace

struct BlockEncoder::State {
  explicit State(SimdLevel simd)
      : kernel(kernels(simd)),
        ahead(kernel),
        model(kernel),
        search(subpel_kernels(simd)),
        compensator(subpel_kernels(simd)) {}

  const Kernels& kernel;
  RowAhead ahead;
  Model model;
  MotionSearch search;
  Compensator compensator;
  History history;
  HeadKind kind;
  // The symbols of all samples in order. Contexts of the first frame are kContexts higher if that frame may have
  // frequencies of its own.
  std::vector<Symbol> symbols;
  std::size_t symbols_end = 0;
  std::vector<Symbol> vector_symbols;
  std::vector<Counts> counts;                // by context
  std::vector<std::uint32_t> symbol_counts;  // of all symbols, kLevelHistograms times
  std::vector<std::uint16_t> row_extra;      // of one row, as below
  std::vector<std::uint32_t> has_extra;
  ExtraBits extra;
  StateWriter states;
  std::vector<StateWriter::Slots> slots;
  FrequencyTables tables;

  bool may_differ_first() const { return kind.moved && kind.frames > 1; }
  void move(const Effort& effort, Limits limits);
  void make_vector_symbols();
  void encode_row(int frame, int y, int low, int high);
  void sum_counts();
  bool first_differs() const;
  void make_tables();
  void write(std::vector<std::uint8_t>& out);
  void put_samples();
  std::size_t class_before(std::size_t tile) const;
};

/// Finds the motion, and makes the compensated previous frames of all inter frames.
void BlockEncoder::State::move(const Effort& effort, Limits limits) {
  BlockMotion& motion = model.head.motion;
  if (!effort.same_motion) {
    motion.moves.clear();
    motion.log2_cell = effort.log2_cell;
    if (kind.moved && kind.frames > 1) search.find(history, kind.frames, limits, motion);
  }
  for (int z = 1; z < kind.frames; ++z) {
    if (!motion.moves_in(z)) continue;
    const int slot = history.add_slot();
    compensator.make(history, motion, z, limits, slot);
    history.set_before(z, slot);
  }
}

void BlockEncoder::State::make_vector_symbols() {
  const BlockMotion& motion = model.head.motion;
  vector_symbols.clear();
  const auto put = [&](int difference, std::size_t context) {
    const std::uint32_t u = zigzag_residual(difference);
    const int token = token_of(u);
    if (extra_bits(token) > 0) extra.put(u - first_of(token), extra_bits(token));
    vector_symbols.push_back(symbol_of(context, token));
  };
  for (int z = 1; z < kind.frames; ++z) {
    if (!motion.moves_in(z)) continue;
    const MotionVector* v = motion.of(z);
    for (int r = 0; r < motion.rows; ++r)
      for (int c = 0; c < motion.columns; ++c, ++v) {
        const BlockMotion::Guess g = motion.guess(z, r, c);
        put(v->x - g.vector.x, g.context);
        put(v->y - g.vector.y, g.context + 1);
      }
  }
}

void BlockEncoder::State::encode_row(int frame, int y, int low, int high) {
  history.begin_row(frame, y);
  ahead.prepare(history, frame, y, true);
  const int width = history.width();
  Symbol* const to = &symbols[symbols_end];
  const RowSymbols made{history.errors(frame, y), to, row_extra.data(), has_extra.data()};
  kernel.level_symbols({history.row(frame, y), history.neighbour(frame, y, 0, -1), ahead.around.data(),
                        ahead.flat.data(), frame == 0, low, high},
                       ahead.sums.data(), width, made);
  extra.put(made, width);
  if (frame == 0 && may_differ_first())
    for (int x = 0; x < width; ++x) to[x] = static_cast<Symbol>(to[x] + kContexts * kTokenSpace);
  std::uint32_t* count = symbol_counts.data();
  int x = 0;
  for (; x + kLevelHistograms <= width; x += kLevelHistograms)
    for (int i = 0; i < kLevelHistograms; ++i) ++count[static_cast<std::size_t>(i) * kLevelSymbols + to[x + i]];
  for (; x < width; ++x) ++count[to[x]];
  symbols_end += static_cast<std::size_t>(width);
  history.end_row(frame, y);
}

void BlockEncoder::State::sum_counts() {
  counts.assign(2 * kContexts, Counts(kTokens));
  for (std::size_t c = 0; c < counts.size(); ++c)
    for (std::size_t t = 0; t < kTokens; ++t)
      for (std::size_t i = 0; i < kLevelHistograms; ++i)
        counts[c][t] += symbol_counts[i * kLevelSymbols + c * kTokenSpace + t];
}

std::size_t BlockEncoder::State::class_before(std::size_t tile) const {
  const auto group = static_cast<std::size_t>(model.tiles.tiles_per_group());
  return tile >= group ? model.map[tile - group] : tile > 0 ? model.map[tile - 1] : 0;
}

/// Whether separate frequencies for the first frame save more bits than they take in the header.
bool BlockEncoder::State::first_differs() const {
  if (!may_differ_first()) return false;
  double gain = 0;
  for (std::size_t c = 0; c < kContexts; ++c) {
    const Counts& first = counts[kContexts + c];
    gain += entropy_bits(sum_of(counts[c], first)) - entropy_bits(counts[c]) - entropy_bits(first);
    gain -= static_cast<double>(frequency_bits(frequencies_of(first)));
  }
  return gain > kFlatContexts * (kZeroBits + 1);
}

void BlockEncoder::State::make_tables() {
  tables = {};
  const bool differs = first_differs();
  if (may_differ_first() && !differs)
    for (std::size_t c = 0; c < kContexts; ++c) counts[c] = sum_of(counts[c], counts[kContexts + c]);
  const auto make = [&](std::size_t begin, std::vector<Frequencies>& samples,
                        std::array<std::uint32_t, kFlatContexts>& zero) {
    for (std::size_t c = 0; c < kFlatContexts; ++c) {
      Counts& count = counts[begin + c];
      zero[c] = zero_frequency(count[0], std::accumulate(count.begin(), count.end(), 0u));
      count[0] = 0;
    }
    for (std::size_t c = 0; c < kContexts; ++c) samples.push_back(frequencies_of(counts[begin + c]));
  };
  make(0, tables.samples, tables.zero);
  if (differs) make(kContexts, tables.first_samples, tables.first_zero);
  const std::size_t classes = model.head.classes.size();
  if (classes > 1) {
    std::vector<Counts> class_counts(classes, Counts(kTokens));
    for (std::size_t t = 0; t < model.map.size(); ++t) ++class_counts[class_before(t)][model.map[t]];
    for (const Counts& c : class_counts) tables.classes.push_back(frequencies_of(c));
  }
  if (!model.head.motion.moves.empty()) {
    std::vector<Counts> vector_counts(kVectorContexts, Counts(kTokens));
    for (const Symbol s : vector_symbols) ++vector_counts[s >> 7][s & 127];
    for (const Counts& c : vector_counts) tables.vectors.push_back(frequencies_of(c));
  }
}

void BlockEncoder::State::write(std::vector<std::uint8_t>& out) {
  sum_counts();
  make_tables();
  BitWriter bits;
  write_head(model.head, kind, tables, bits);
  const std::vector<std::uint8_t> head = bits.take();
  ByteWriter size;
  size.varint(extra.size());
  out.insert(out.end(), head.begin(), head.end());
  out.insert(out.end(), size.bytes.begin(), size.bytes.end());
  out.insert(out.end(), extra.data(), extra.data() + extra.size());

  put_samples();
  slots.resize(kVectorContexts);
  for (std::size_t c = 0; c < tables.vectors.size(); ++c) StateWriter::fill(tables.vectors[c], slots[c]);
  for (std::size_t i = vector_symbols.size(); i-- > 0;)
    states.put(slots[vector_symbols[i] >> 7][vector_symbols[i] & 127]);
  const std::size_t classes = model.head.classes.size();
  if (classes > 1) {
    slots.resize(classes);
    for (std::size_t c = 0; c < classes; ++c) StateWriter::fill(tables.classes[c], slots[c]);
    for (std::size_t t = model.map.size(); t-- > 0;) states.put(slots[class_before(t)][model.map[t]]);
  }
  states.finish(out);
}

void BlockEncoder::State::put_samples() {
  const bool differs = !tables.first_samples.empty();
  std::array<std::array<StateWriter::Slot, 2>, 2 * kFlatContexts> flat{};  // as predicted, and not as predicted
  const auto fill_flat = [&flat](std::size_t begin, const std::array<std::uint32_t, kFlatContexts>& zeros) {
    for (std::size_t c = 0; c < kFlatContexts; ++c) {
      const std::uint32_t zero = zeros[c];
      if (zero > 0) flat[begin + c][0] = {StateWriter::inverse_of(zero), zero, 0};
      if (zero < kZeroSum) flat[begin + c][1] = {StateWriter::inverse_of(kZeroSum - zero), kZeroSum - zero, zero};
    }
  };
  fill_flat(0, tables.zero);
  fill_flat(kFlatContexts, differs ? tables.first_zero : tables.zero);
  slots.resize(2 * kContexts);
  for (std::size_t c = 0; c < kContexts; ++c) {
    StateWriter::fill(tables.samples[c], slots[c]);
    if (may_differ_first())
      differs ? StateWriter::fill(tables.first_samples[c], slots[kContexts + c])
              : static_cast<void>(slots[kContexts + c] = slots[c]);
  }
  for (std::size_t i = symbols_end; i-- > 0;) {
    const std::size_t context = symbols[i] >> 7;
    const std::size_t token = symbols[i] & 127;
    const bool is_first = context >= kContexts;
    const std::size_t frame_context = is_first ? context - kContexts : context;
    const bool is_flat = frame_context < kFlatContexts;
    if (!is_flat || token != 0) states.put(slots[context][token]);
    if (is_flat) states.put<kZeroBits>(flat[frame_context + (is_first ? kFlatContexts : 0)][token != 0]);
  }
}

namespace {

/// A rANS decoder for the check: it compares each symbol with the one that was coded.
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

bool BlockEncoder::says_what_was_coded(const std::uint8_t* codeword, std::size_t size) const try {
  const State& s = *state_;
  const Model& model = s.model;
  BlockHead head;
  FrequencyTables tables;
  BitReader bits(codeword, size);
  read_head(bits, s.kind, head, tables);
  if (bits.overrun() || !bits.padding_is_zero() || head.tap_set != model.head.tap_set ||
      head.log2_edge != model.head.log2_edge || head.log2_frames != model.head.log2_frames ||
      head.first != model.head.first || head.classes != model.head.classes || tables.classes != s.tables.classes ||
      tables.samples != s.tables.samples || tables.zero != s.tables.zero || tables.vectors != s.tables.vectors ||
      tables.first_samples != s.tables.first_samples || tables.first_zero != s.tables.first_zero ||
      head.motion.moves != model.head.motion.moves ||
      (!head.motion.moves.empty() && head.motion.log2_cell != model.head.motion.log2_cell))
    return false;
  ByteReader rest(codeword + bits.bytes(), size - bits.bytes(), "codeword");
  std::uint64_t extra = 0;
  rest.varint(extra);
  const std::uint8_t* at = codeword + (size - rest.left());
  if (extra != s.extra.size() || rest.left() < extra + 4 || (rest.left() - extra) % 2 != 0 ||
      !std::equal(at, at + extra, s.extra.data()))
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
  for (const Frequencies& f : tables.vectors) ranges.push_back(ranges_of(f));
  for (const Symbol v : s.vector_symbols) {
    const Range& r = ranges[v >> 7][v & 127];
    reader.expect(r.begin, r.frequency);
  }
  ranges.clear();
  const bool differs = !tables.first_samples.empty();
  for (const Frequencies& f : tables.samples) ranges.push_back(ranges_of(f));
  for (const Frequencies& f : differs ? tables.first_samples : tables.samples) ranges.push_back(ranges_of(f));
  const auto& first_zero = differs ? tables.first_zero : tables.zero;
  for (std::size_t i = 0; i < s.symbols_end; ++i) {
    const std::size_t context = s.symbols[i] >> 7;
    const std::size_t token = s.symbols[i] & 127;
    const std::size_t frame_context = context % kContexts;
    if (frame_context < kFlatContexts) {
      const std::uint32_t zero = context < kContexts ? tables.zero[frame_context] : first_zero[frame_context];
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
  s.kind = {b.frames(), effort.moved};
  s.move(effort, {b.low(), b.high()});
  s.model.fit(s.history, b.frames(), effort);
  s.ahead.start(s.model.head, s.model.tiles, s.model.map.data(), b.width);
  const std::size_t row = static_cast<std::size_t>(b.width) + kKernelPadding;
  s.row_extra.resize(row);
  s.has_extra.resize(row);
  s.symbols.resize(static_cast<std::size_t>(b.frames()) * static_cast<std::size_t>(b.height) *
                   static_cast<std::size_t>(b.width));
  s.symbols_end = 0;
  s.symbol_counts.assign(kLevelHistograms * kLevelSymbols, 0);
  s.extra.start();
  s.make_vector_symbols();
  for (int z = 0; z < b.frames(); ++z) {
    if (s.model.head.motion.moves_in(z)) s.compensator.move_errors(s.history, s.model.head.motion, z);
    for (int y = 0; y < b.height; ++y) s.encode_row(z, y, b.low(), b.high());
  }
  s.write(out);
}

}  // namespace trivelet::prediction
