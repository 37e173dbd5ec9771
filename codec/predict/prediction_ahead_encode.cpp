// Encodes a block of samples as a codeword with static contexts. Predictions, contexts and tokens of a row are made in
// loops of their own, which are vectorised. rANS then codes backwards, with sixteen states in turn.

#include <algorithm>
#include <cmath>
#include <cstring>

#include "codec/base/bytes.h"
#include "codec/predict/prediction_ahead.h"
#include "codec/predict/prediction_extra_bits.h"
#include "codec/predict/prediction_model.h"
#include "trivelet/large_memory.h"

namespace trivelet::prediction {

namespace {

constexpr std::size_t kSymbols = kAheadContexts * kTokenSpace;
constexpr int kHistograms = 4;  // one for each fourth sample, so that an increment does not wait for the previous one

/// Weights are fitted to a sixteenth of the frames, which is enough for one class.
Effort effort_ahead() {
  Effort e;
  e.classes = 1;
  e.rounds = 0;
  e.log2_frames = 5;
  e.frame_step = 16;
  e.row_step = 2;
  return e;
}

}  // namespace

struct AheadEncoder::State {
  explicit State(SimdLevel simd) : kernel(kernels(simd)), ahead(kernel), model(kernel) {}

  const Kernels& kernel;
  RowAhead ahead;
  Model model;
  History history;
  int width = 0;
  bool one_frame = false;
  LargeVector<std::uint16_t> symbols;  // context and token
  std::size_t symbols_end = 0;
  std::vector<std::uint32_t> counts;
  std::vector<std::uint16_t> row_extra;  // of one row, as below
  std::vector<std::uint32_t> has_extra;
  ExtraBits extra;
  std::vector<Frequencies> tables;
  std::vector<PutSymbol> slots;
  std::vector<std::uint32_t> packed;  // the frequency and begin of slots, packed for Kernels::put
  LargeVector<std::uint16_t> words;   // filled from the end; most of it is never touched

  void start(const BlockSamples<VolumeView>& b);
  void encode_row(int frame, int y, int low, int high);
  std::uint32_t count_of_symbol(std::size_t symbol) const;
  double entropy_bits() const;
  void count_tables();
  void write(std::vector<std::uint8_t>& out);
  void write_states(std::vector<std::uint8_t>& out);
};

void AheadEncoder::State::start(const BlockSamples<VolumeView>& b) {
  model.fit(history, b.frames(), effort_ahead());
  model.head.log2_edge = kWholeEdge;
  model.head.log2_frames = kWholeFrames;
  model.map.assign(1, 0);
  ahead.start(model.head, Tiles(kWholeEdge, kWholeFrames, b.frames(), b.height, b.width), model.map.data(), b.width);
  width = b.width;
  one_frame = b.frames() == 1;
  const std::size_t row = static_cast<std::size_t>(b.width) + kKernelPadding;
  row_extra.resize(row);
  has_extra.resize(row);
  symbols.resize(static_cast<std::size_t>(b.frames()) * static_cast<std::size_t>(b.height) *
                 static_cast<std::size_t>(b.width));
  symbols_end = 0;
  counts.assign(kHistograms * kSymbols, 0);
  extra.start();
}

void AheadEncoder::State::encode_row(int frame, int y, int low, int high) {
  history.begin_row(frame, y);
  const Weights& weights = frame == 0 ? model.head.first : model.head.classes[0];
  TapRows taps;
  const int in_taps = taps.find(history, frame, y, kTapsInRow, static_cast<int>(weights.size()));
  std::uint16_t* const to = &symbols[symbols_end];
  const KnownRow known{history.row(frame, y),
                       taps.at.data(),
                       weights.data(),
                       in_taps,
                       number_rows(history, frame, y),
                       error_rows(history, frame, y),
                       low,
                       high};
  const RowSymbols made{history.errors(frame, y), to, row_extra.data(), has_extra.data()};
  kernel.symbols(known, width, made);
  extra.put(made, width);
  std::uint32_t* count = counts.data();
  const int n = width;  // a local copy, because a store to a count might alias it
  int x = 0;
  for (; x + kHistograms <= n; x += kHistograms)
    for (std::size_t i = 0; i < kHistograms; ++i) ++count[i * kSymbols + to[static_cast<std::size_t>(x) + i]];
  for (; x < n; ++x) ++count[to[x]];
  symbols_end += static_cast<std::size_t>(width);
  history.end_row(frame, y);
}

/// Of the rows so far, without the tables.
double AheadEncoder::State::entropy_bits() const {
  double bits = 8.0 * static_cast<double>(extra.size());
  for (std::size_t c = 0; c < kAheadContexts; ++c) {
    double all = 0;
    for (std::size_t t = 0; t < kTokens; ++t) {
      const double n = count_of_symbol(c * kTokenSpace + t);
      all += n;
      if (n > 0) bits -= n * std::log2(n);
    }
    if (all > 0) bits += all * std::log2(all);
  }
  return bits;
}

std::uint32_t AheadEncoder::State::count_of_symbol(std::size_t symbol) const {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < kHistograms; ++i) sum += counts[i * kSymbols + symbol];
  return sum;
}

void AheadEncoder::State::count_tables() {
  tables.clear();
  slots.assign(kSymbols, {});
  packed.assign(kSymbols, 0);
  std::vector<std::uint32_t> sum(kTokens);
  for (std::size_t c = 0; c < kAheadContexts; ++c) {
    for (std::size_t t = 0; t < kTokens; ++t) sum[t] = count_of_symbol(c * kTokenSpace + t);
    tables.push_back(frequencies_of(sum));
    std::uint32_t begin = 0;
    for (std::size_t t = 0; t < kTokens; ++t) {
      const std::uint32_t f = tables.back()[t];
      if (f > 0) slots[c * kTokenSpace + t] = {((std::uint64_t{1} << kInverseBits) + f - 1) / f, f, begin};
      packed[c * kTokenSpace + t] = f << 16 | begin;
      begin += f;
    }
  }
}

void AheadEncoder::State::write_states(std::vector<std::uint8_t>& out) {
  // At most one word for each symbol, and one that is written but not kept.
  if (words.size() < symbols_end + 1) words = LargeVector<std::uint16_t>(symbols_end + 1);
  std::uint16_t* const words_end = words.data() + words.size();
  std::uint16_t* word = words_end;
  std::array<std::uint32_t, kStates> states;
  states.fill(kLowestState);
  for (std::size_t row = symbols_end; row > 0;) {
    row -= static_cast<std::size_t>(width);
    word = kernel.put(slots.data(), packed.data(), &symbols[row], width, states.data(), word);
  }
  std::size_t at = out.size();
  out.resize(at + 4 * kStates + 2 * static_cast<std::size_t>(words_end - word));
  for (const std::uint32_t s : states) {
    store_little_endian(s, &out[at]);
    at += 4;
  }
  for (; word < words_end; ++word, at += 2) store_little_endian(*word, &out[at]);
}

void AheadEncoder::State::write(std::vector<std::uint8_t>& out) {
  count_tables();
  BitWriter bits;
  write_ahead_head(model.head, one_frame, tables, bits);
  const std::vector<std::uint8_t> head = bits.take();
  ByteWriter size;
  size.varint(extra.size());
  out.insert(out.end(), head.begin(), head.end());
  out.insert(out.end(), size.bytes.begin(), size.bytes.end());
  out.insert(out.end(), extra.data(), extra.data() + extra.size());
  write_states(out);
}

bool AheadEncoder::says_what_was_coded(const std::uint8_t* codeword, std::size_t size) const try {
  const State& s = *state_;
  BlockHead head;
  std::vector<Frequencies> tables;
  BitReader bits(codeword, size);
  read_ahead_head(bits, s.one_frame, head, tables);
  if (bits.overrun() || !bits.padding_is_zero() || head.tap_set != s.model.head.tap_set ||
      head.first != s.model.head.first || (!s.one_frame && head.classes != s.model.head.classes) || tables != s.tables)
    return false;
  AheadParts parts = split_ahead(codeword + bits.bytes(), size - bits.bytes());
  if (parts.extra_bytes != s.extra.size() || !std::equal(parts.extra, parts.extra + parts.extra_bytes, s.extra.data()))
    return false;
  bool right = true;
  for (std::size_t row = 0; row < s.symbols_end; row += static_cast<std::size_t>(s.width))
    right &= s.kernel.expect(s.packed.data(), &s.symbols[row], s.width, parts.lanes);
  return right && is_used_up(parts.lanes);
} catch (const Error& e) {
  if (e.kind() != ErrorKind::kBadStream) throw;
  return false;
}

AheadEncoder::AheadEncoder(SimdLevel simd) : state_(std::make_unique<State>(simd)) {}
AheadEncoder::~AheadEncoder() = default;

void AheadEncoder::encode(const BlockSamples<VolumeView>& b, std::vector<std::uint8_t>& out, const Most& most) {
  State& s = *state_;
  if (!load(b, s.history)) return;
  s.start(b);
  for (int z = 0; z < b.frames(); ++z) {
    if (z == most.frames && s.entropy_bits() > 8.0 * static_cast<double>(most.bytes)) return;
    for (int y = 0; y < b.height; ++y) s.encode_row(z, y, b.low(), b.high());
  }
  s.write(out);
}

}  // namespace trivelet::prediction
