// Decodes a codeword of the predictive profile to a block of samples, one sample after the other.

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>

#include "codec/base/bad_stream.h"
#include "codec/base/bytes.h"
#include "codec/base/limits.h"
#include "codec/predict/prediction_block.h"
#include "codec/predict/prediction_compensation.h"
#include "codec/predict/prediction_head.h"

namespace trivelet::prediction {

namespace {

// Entries of one context, indexed by the lowest bits of the state (see kUnknownEntry).
using Lookup = std::vector<std::uint32_t>;

/// The bytes of a codeword behind its header: the extra bits, and the words of the rANS state.
class Tokens {
 public:
  void start(const std::uint8_t* data, std::size_t size) {
    ByteReader r(data, size, "codeword");
    std::uint64_t extra = 0;
    r.varint(extra);
    const std::size_t at = size - r.left();
    if (extra > size - at || size - at - extra < 4 || (size - at - extra) % 2 != 0)
      bad("a codeword of " + count_of(size, "byte") + " with " + std::to_string(extra) + " of extra bits");
    extra_ = data + at;
    extra_end_ = static_cast<std::size_t>(extra);
    extra_at_ = 0;
    state = load_little_endian<std::uint32_t>(extra_ + extra_end_);
    words_ = extra_ + extra_end_ + 4;
    words_end_ = (size - at - extra_end_ - 4) / 2;
    words_at_ = 0;
    if (state < kLowestState) bad("a codeword begins with a state of " + std::to_string(state));
  }

  std::uint32_t look(const std::uint32_t* lookup) const { return lookup[state & (kFrequencySum - 1)]; }
  void pass(std::uint32_t entry) {
    state = (entry >> 7 & 0xfff) * (state >> kFrequencyBits) + (entry >> 19 & 0x7ff);
    fill();
  }
  /// Decodes whether a flat sample is as predicted.
  bool zero(std::uint32_t frequency) {
    const std::uint32_t slot = state & (kZeroSum - 1);
    const bool is_zero = slot < frequency;
    state = (is_zero ? frequency : kZeroSum - frequency) * (state >> kZeroBits) + slot - (is_zero ? 0 : frequency);
    fill();
    return is_zero;
  }
  /// Takes `bits` extra bits, at most 15.
  std::uint32_t extra(int bits) {
    std::uint32_t window = 0;
    const std::size_t byte = extra_at_ >> 3;
    for (std::size_t i = 0; i < 3; ++i)
      if (byte + i < extra_end_) window |= std::uint32_t{extra_[byte + i]} << (8 * i);
    window >>= extra_at_ & 7;
    extra_at_ += static_cast<std::size_t>(bits);
    return window & ((1u << bits) - 1);
  }
  bool is_used_up() const {
    if (state != kLowestState || words_at_ != words_end_ || (extra_at_ + 7) / 8 != extra_end_) return false;
    return extra_at_ % 8 == 0 || extra_[extra_end_ - 1] >> (extra_at_ % 8) == 0;  // padding must be zero
  }
  /// Whether a read went past the end of the words or of the extra bits.
  bool overrun() const { return words_at_ > words_end_ || extra_at_ > 8 * extra_end_; }

  std::uint32_t state = 0;

 private:
  void fill() {
    if (state >= kLowestState) return;
    std::uint32_t word = 0;
    if (words_at_ < words_end_) word = load_little_endian<std::uint16_t>(words_ + 2 * words_at_);
    ++words_at_;
    state = state << 16 | word;
  }

  const std::uint8_t* extra_ = nullptr;
  std::size_t extra_end_ = 0;
  std::size_t extra_at_ = 0;  // in bits
  const std::uint8_t* words_ = nullptr;
  std::size_t words_end_ = 0;
  std::size_t words_at_ = 0;
};

}  // namespace

struct BlockDecoder::State {
  explicit State(SimdLevel simd)
      : ahead(kernels(simd)), compensator(subpel_kernels(simd)), unknown(kFrequencySum, kUnknownEntry | 1u << 7) {}

  RowAhead ahead;
  Compensator compensator;
  Lookup unknown;
  History history;
  BlockHead head;
  FrequencyTables tables;
  std::vector<Lookup> lookups;
  // The lookup of each context, for the current frame.
  std::vector<const std::uint32_t*> lookup_of;
  std::array<std::uint32_t, kFlatContexts> zero{};
  std::vector<std::uint8_t> map;
  Tokens tokens;

  const std::uint32_t* make_lookup(const Frequencies& f, Lookup& out) {
    if (std::all_of(f.begin(), f.end(), [](std::uint16_t v) { return v == 0; })) return unknown.data();
    out.resize(kFrequencySum);
    std::uint32_t* to = out.data();
    for (std::uint32_t t = 0; t < kTokens; ++t)
      for (std::uint32_t i = 0; i < f[t]; ++i) *to++ = t | std::uint32_t{f[t]} << 7 | i << 19;
    return out.data();
  }

  void read_map(const Tiles& tiles) {
    map.assign(static_cast<std::size_t>(tiles.count()), 0);
    if (tables.classes.empty()) return;
    std::vector<const std::uint32_t*> class_lookups;
    std::vector<Lookup> memory(tables.classes.size());
    for (std::size_t i = 0; i < memory.size(); ++i) class_lookups.push_back(make_lookup(tables.classes[i], memory[i]));
    const auto group = static_cast<std::size_t>(tiles.tiles_per_group());
    std::uint32_t seen = 0;
    for (std::size_t i = 0; i < map.size(); ++i) {
      const std::size_t before = i >= group ? map[i - group] : i > 0 ? map[i - 1] : 0;
      const std::uint32_t entry = tokens.look(class_lookups[before]);
      tokens.pass(entry);
      seen |= entry;
      map[i] = static_cast<std::uint8_t>(entry & 127);
      if (seen & kUnknownEntry) bad("a class that the head has no frequencies of");
    }
  }

  void make_lookups(const std::vector<Frequencies>& samples, const std::array<std::uint32_t, kFlatContexts>& zeros) {
    lookups.resize(kContexts);
    lookup_of.clear();
    for (std::size_t c = 0; c < kContexts; ++c) lookup_of.push_back(make_lookup(samples[c], lookups[c]));
    zero = zeros;
  }

  int read_difference(const std::uint32_t* lookup);
  void read_vectors(int frames, int height, int width);
  template <bool kFirst>
  void decode_row(int frame, int y, int low, int high);
};

int BlockDecoder::State::read_difference(const std::uint32_t* lookup) {
  const std::uint32_t entry = tokens.look(lookup);
  if (entry & kUnknownEntry) bad("a vector that the head has no frequencies of");
  tokens.pass(entry);
  const auto token = static_cast<int>(entry & 127);
  const std::uint32_t u = first_of(token) + (token >= kPlainTokens ? tokens.extra(extra_bits(token)) : 0);
  const auto size = static_cast<int>((u + 1) >> 1);
  return u & 1 ? size : -size;
}

void BlockDecoder::State::read_vectors(int frames, int height, int width) {
  BlockMotion& motion = head.motion;
  if (motion.moves.empty()) return;
  motion.start(frames, height, width);
  std::array<Lookup, kVectorContexts> memory;
  std::array<const std::uint32_t*, kVectorContexts> context_lookups{};
  for (std::size_t c = 0; c < kVectorContexts; ++c) context_lookups[c] = make_lookup(tables.vectors[c], memory[c]);
  for (int z = 1; z < frames; ++z) {
    if (!motion.moves_in(z)) continue;
    MotionVector* v = motion.of(z);
    for (int r = 0; r < motion.rows; ++r)
      for (int c = 0; c < motion.columns; ++c, ++v) {
        const BlockMotion::Guess g = motion.guess(z, r, c);
        const int x = g.vector.x + read_difference(context_lookups[g.context]);
        const int y = g.vector.y + read_difference(context_lookups[g.context + 1]);
        if (std::max(std::abs(x), std::abs(y)) > kMaxVector)
          bad("a vector of " + std::to_string(x) + ", " + std::to_string(y) + " quarters of a sample; the limit is " +
              std::to_string(kMaxVector));
        *v = {static_cast<std::int16_t>(x), static_cast<std::int16_t>(y)};
      }
  }
  if (tokens.overrun()) bad("vectors end behind their codeword");
}

template <bool kFirst>
void BlockDecoder::State::decode_row(int frame, int y, int low, int high) {
  history.begin_row(frame, y);
  ahead.prepare(history, frame, y);
  std::int16_t* row = history.row(frame, y);
  std::uint16_t* errors = history.errors(frame, y);
  const std::int16_t* above = history.neighbour(frame, y, 0, -1);
  const std::int32_t* sums = ahead.sums.data();
  const std::uint16_t* around = ahead.around.data();
  const std::uint8_t* flat = ahead.flat.data();
  const LevelEntry* levels = level_table().data();
  const std::uint32_t* const* context_lookups = lookup_of.data();
  Tokens t = tokens;
  std::uint32_t seen = 0;
  int outside = 0;  // negative if a number was out of range
  int left = row[-1], left2 = row[-2];
  int error = 0, error2 = 0;
  ahead.for_runs(frame, y, history.width(), [&](int begin, int end, const Weights& weights) {
    const int w0 = weights[0], w1 = weights[1];
    for (int x = begin; x < end; ++x) {
      int prediction;
      std::size_t context;
      if (flat[x] != 0 && left == above[x]) {
        context = flat[x] - 1u;
        if (t.zero(zero[context])) {
          error2 = error;
          error = 0;
          left2 = left;
          row[x] = static_cast<std::int16_t>(left);
          errors[x] = 0;
          continue;
        }
        prediction = left * (1 << kFractionBits);
      } else {
        int sum = around[x] + 2 * error + error2;
        if constexpr (kFirst) sum = 7 * sum >> 2;
        prediction = prediction_of(sums[x] + w0 * left + w1 * left2, low, high);
        const int fraction = prediction - (((prediction + 8) >> kFractionBits) << kFractionBits);
        context = context_of(levels[place_of(sum)], fraction);
      }
      const std::uint32_t entry = t.look(context_lookups[context]);
      t.pass(entry);
      seen |= entry;
      const auto token = static_cast<int>(entry & 127);
      std::uint32_t u = static_cast<std::uint32_t>(token);
      if (token >= kPlainTokens) u = first_of(token) + t.extra(extra_bits(token));
      const int rounded = (prediction + 8) >> kFractionBits;
      const bool below = prediction < rounded * (1 << kFractionBits);
      const int size = static_cast<int>((u + 1) >> 1);
      const int number = rounded + (((u & 1) != 0) != below ? size : -size);
      outside |= (number - low) | (high - number);
      error2 = error;
      error = error_of_prediction(static_cast<std::int16_t>(number), prediction);
      left2 = left;
      left = static_cast<std::int16_t>(number);
      row[x] = static_cast<std::int16_t>(number);
      errors[x] = static_cast<std::uint16_t>(error);
    }
  });
  tokens = t;
  if (outside < 0 || (seen & kUnknownEntry) != 0 || t.overrun())
    bad("row " + std::to_string(y) + " of frame " + std::to_string(frame) + " of a block contradicts itself");
  history.end_row(frame, y);
}

BlockDecoder::BlockDecoder(SimdLevel simd) : state_(std::make_unique<State>(simd)) {}
BlockDecoder::~BlockDecoder() = default;

void BlockDecoder::decode(const BlockSamples<MutableVolumeView>& b, const std::uint8_t* codeword, std::size_t size,
                          bool moved, int most_frames) {
  State& s = *state_;
  BitReader bits(codeword, size);
  read_head(bits, {b.frames(), moved}, s.head, s.tables);
  if (bits.overrun() || !bits.padding_is_zero()) bad("the head of a codeword is cut or not padded with zeros");
  s.tokens.start(codeword + bits.bytes(), size - bits.bytes());
  const Tiles tiles(s.head.log2_edge, s.head.log2_frames, b.frames(), b.height, b.width);
  s.read_map(tiles);
  s.read_vectors(b.frames(), b.height, b.width);
  s.history.start(std::min(b.frames(), 3), b.height, b.width);
  const bool differs = !s.tables.first_samples.empty();
  if (differs)
    s.make_lookups(s.tables.first_samples, s.tables.first_zero);
  else
    s.make_lookups(s.tables.samples, s.tables.zero);
  const BlockMotion& motion = s.head.motion;
  const int moved_slot = motion.moves.empty() ? 0 : s.history.add_slot();
  s.ahead.start(s.head, tiles, s.map.data(), b.width);
  for (int z = 0; z < std::min(b.frames(), most_frames); ++z) {
    if (z == 1 && differs) s.make_lookups(s.tables.samples, s.tables.zero);
    if (motion.moves_in(z)) {
      s.compensator.make(s.history, motion, z, {b.low(), b.high()}, moved_slot);
      s.compensator.move_errors(s.history, motion, z);
      s.history.set_before(z, moved_slot);
    }
    for (int y = 0; y < b.height; ++y) {
      z == 0 ? s.decode_row<true>(z, y, b.low(), b.high()) : s.decode_row<false>(z, y, b.low(), b.high());
      store_row(s.history, z, y, b);
    }
  }
  if (most_frames >= b.frames() && !s.tokens.is_used_up()) bad("a codeword does not end where its block does");
}

void BlockDecoder::clear(const BlockSamples<MutableVolumeView>& b) {
  for (int z = 0; z < b.frames(); ++z)
    for (int y = 0; y < b.height; ++y) {
      std::byte* to = b.row(z, y);
      if (b.plane.bytes_per_sample == 1)
        std::fill_n(to, b.width, static_cast<std::byte>(b.offset()));
      else
        std::fill_n(reinterpret_cast<std::uint16_t*>(to), b.width, static_cast<std::uint16_t>(b.offset()));
    }
}

}  // namespace trivelet::prediction
