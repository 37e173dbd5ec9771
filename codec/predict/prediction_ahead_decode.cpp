// Decodes a codeword with static contexts to a block of samples. It takes the tokens of a row at once, and then
// computes the numbers of the row. A number depends on the one before it only through a product and a few additions.

#include <algorithm>
#include <string>

#include "codec/base/bad_stream.h"
#include "codec/base/bytes.h"
#include "codec/base/limits.h"
#include "codec/predict/prediction_ahead.h"
#include "codec/predict/prediction_block.h"

namespace trivelet::prediction {

void make_lookups(const std::vector<Frequencies>& tables, std::vector<std::uint32_t>& out) {
  out.resize(tables.size() * kFrequencySum);
  std::uint32_t* to = out.data();
  for (const Frequencies& f : tables) {
    std::uint32_t* const end = to + kFrequencySum;
    for (std::uint32_t t = 0; t < kTokens; ++t)
      for (std::uint32_t i = 0; i < f[t]; ++i) *to++ = t | std::uint32_t{f[t]} << 7 | i << 19;
    to = std::fill_n(to, end - to, kUnknownEntry | 1u << 7);
  }
}

bool any_extra(const std::uint8_t* tokens, int n) {
  if (n < kStates) return std::any_of(tokens, tokens + n, [](std::uint8_t t) { return t >= kPlainTokens; });
  // Tokens are below 128. Adding 128 - 24 sets the highest bit of each byte that is 24 or more, and carries into no
  // other byte.
  constexpr std::uint64_t kRest = 0x0101010101010101u * (128 - kPlainTokens);
  const std::uint64_t a = load_little_endian<std::uint64_t>(tokens) + kRest;
  const std::uint64_t b = load_little_endian<std::uint64_t>(tokens + 8) + kRest;
  return ((a | b) & 0x8080808080808080u) != 0;
}

AheadParts split_ahead(const std::uint8_t* data, std::size_t size) {
  ByteReader r(data, size, "codeword");
  std::uint64_t extra = 0;
  r.varint(extra);
  constexpr std::size_t kStateBytes = 4 * kStates;
  if (extra > r.left() || r.left() - extra < kStateBytes || (r.left() - extra) % 2 != 0)
    bad("a codeword of " + count_of(size, "byte") + " with " + std::to_string(extra) + " of extra bits");
  AheadParts p;
  p.extra = data + (size - r.left());
  p.extra_bytes = static_cast<std::size_t>(extra);
  const std::uint8_t* at = p.extra + p.extra_bytes;
  for (std::uint32_t& s : p.lanes.state) {
    s = load_little_endian<std::uint32_t>(at);
    at += 4;
    if (s < kLowestState) bad("a codeword begins with a state of " + std::to_string(s));
  }
  p.lanes.words = at;
  p.lanes.left = static_cast<std::size_t>(data + size - at) / 2;
  return p;
}

bool is_used_up(const StateLanes& lanes) {
  return !lanes.overrun && lanes.left == 0 &&
         std::all_of(lanes.state.begin(), lanes.state.end(), [](std::uint32_t s) { return s == kLowestState; });
}

namespace {

class ExtraReader {
 public:
  ExtraReader() = default;
  ExtraReader(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}

  /// Takes `bits` bits, at most 15.
  std::uint32_t take(int bits) {
    std::uint64_t window = 0;
    const std::size_t byte = at_ >> 3;
    if (byte + 8 <= size_) {
      window = load_little_endian<std::uint64_t>(data_ + byte);
    } else {
      for (std::size_t i = 0; i < 3 && byte + i < size_; ++i) window |= std::uint64_t{data_[byte + i]} << (8 * i);
    }
    window >>= at_ & 7;
    at_ += static_cast<std::size_t>(bits);
    return static_cast<std::uint32_t>(window) & ((1u << bits) - 1);
  }
  bool overrun() const { return at_ > 8 * size_; }
  bool is_used_up() const {
    return (at_ + 7) / 8 == size_ && (at_ % 8 == 0 || data_[size_ - 1] >> (at_ % 8) == 0);  // padding must be zero
  }

 private:
  const std::uint8_t* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t at_ = 0;  // in bits
};

/// The codes that a token stands for, indexed by the token.
struct TokenEntry {
  std::uint32_t first = 0;
  int bits = 0;
};
constexpr std::array<TokenEntry, 128> kTokenEntries = [] {
  std::array<TokenEntry, 128> t{};
  for (int i = 0; i < kTokens; ++i) t[static_cast<std::size_t>(i)] = {first_of(i), extra_bits(i)};
  return t;
}();

}  // namespace

struct AheadDecoder::State {
  explicit State(SimdLevel simd) : kernel(kernels(simd)), ahead(kernel) {}

  const Kernels& kernel;
  RowAhead ahead;
  History history;
  BlockHead head;
  std::vector<Frequencies> tables;
  std::vector<std::uint32_t> lookups;
  std::vector<std::uint8_t> map{0};
  StateLanes lanes;
  ExtraReader extra;
  std::vector<std::uint8_t> contexts;  // of one row, as the arrays below
  std::vector<std::uint8_t> tokens;
  std::vector<std::uint32_t> codes;
  std::vector<std::int32_t> differences;

  void read_codes(int width);
  void decode_row(int frame, int y, int low, int high);
};

void AheadDecoder::State::read_codes(int width) {
  for (int x = 0; x < width; x += kStates) {
    const int end = std::min(x + kStates, width);
    const std::uint8_t* t = tokens.data();
    if (!any_extra(t + x, end - x)) {
      for (int i = x; i < end; ++i) codes[static_cast<std::size_t>(i)] = t[i];
      continue;
    }
    for (int i = x; i < end; ++i) {
      const TokenEntry& e = kTokenEntries[t[i]];
      codes[static_cast<std::size_t>(i)] = e.first + extra.take(e.bits);
    }
  }
}

void AheadDecoder::State::decode_row(int frame, int y, int low, int high) {
  const int width = history.width();
  history.begin_row(frame, y);
  ahead.prepare(history, frame, y);
  ahead.contexts(frame == 0, width, contexts.data());
  kernel.take(lookups.data(), contexts.data(), width, lanes, tokens.data());
  read_codes(width);
  kernel.differences_of(codes.data(), width, differences.data());

  const Weights& weights = frame == 0 ? head.first : head.classes[0];
  std::int16_t* row = history.row(frame, y);
  std::int32_t* sums = ahead.sums.data();
  const std::int32_t* d = differences.data();
  // Unsigned, because damaged data may produce any number; the damage is detected at the end of the row.
  const auto w0 = static_cast<std::uint32_t>(static_cast<std::int32_t>(weights[0]));
  const auto w1 = static_cast<std::uint32_t>(static_cast<std::int32_t>(weights[1]));
  int left = row[-1];
  std::uint32_t left2_term = w1 * static_cast<std::uint32_t>(static_cast<std::int32_t>(row[-2]));
  int outside = 0;  // negative if a number was out of range
  for (int x = 0; x < width; ++x) {
    const auto known = static_cast<std::uint32_t>(sums[x]) + left2_term;
    const auto l = static_cast<std::uint32_t>(left);
    const std::uint32_t sum = known + w0 * l;
    left2_term = w1 * l;
    sums[x] = static_cast<std::int32_t>(sum);
    const int r = static_cast<std::int32_t>(sum + (1u << (kWeightBits - 1))) >> kWeightBits;
    left = std::min(std::max(r, low), high) + d[x];
    outside |= (left - low) | (high - left);
    row[x] = static_cast<std::int16_t>(left);
  }
  if (outside < 0 || (lanes.seen & kUnknownEntry) != 0 || lanes.overrun || extra.overrun())
    bad("row " + std::to_string(y) + " of frame " + std::to_string(frame) + " of a block contradicts itself");
  kernel.errors(row, sums, low, high, width, history.errors(frame, y));
  history.end_row(frame, y);
}

AheadDecoder::AheadDecoder(SimdLevel simd) : state_(std::make_unique<State>(simd)) {}
AheadDecoder::~AheadDecoder() = default;

void AheadDecoder::decode(const BlockSamples<MutableVolumeView>& b, const std::uint8_t* codeword, std::size_t size,
                          int most_frames) {
  State& s = *state_;
  BitReader bits(codeword, size);
  read_ahead_head(bits, b.frames() == 1, s.head, s.tables);
  if (bits.overrun() || !bits.padding_is_zero()) bad("the head of a codeword is cut or not padded with zeros");
  const AheadParts parts = split_ahead(codeword + bits.bytes(), size - bits.bytes());
  s.lanes = parts.lanes;
  s.extra = ExtraReader(parts.extra, parts.extra_bytes);
  make_lookups(s.tables, s.lookups);
  const std::size_t row = static_cast<std::size_t>(b.width) + kKernelPadding;
  s.contexts.resize(row);
  s.tokens.resize(row);
  s.codes.resize(row);
  s.differences.resize(row);
  s.history.start(std::min(b.frames(), 3), b.height, b.width);
  s.ahead.start(s.head, Tiles(kWholeEdge, kWholeFrames, b.frames(), b.height, b.width), s.map.data(), b.width);
  for (int z = 0; z < std::min(b.frames(), most_frames); ++z)
    for (int y = 0; y < b.height; ++y) {
      s.decode_row(z, y, b.low(), b.high());
      store_row(s.history, z, y, b);
    }
  if (most_frames >= b.frames() && (!is_used_up(s.lanes) || !s.extra.is_used_up()))
    bad("a codeword does not end where its block does");
}

}  // namespace trivelet::prediction
