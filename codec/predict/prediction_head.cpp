// Writes and reads the header of a codeword, and turns counts of tokens into frequencies.
#include "codec/predict/prediction_head.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <string>

#include "codec/base/bad_stream.h"
#include "codec/base/limits.h"

namespace trivelet::prediction {

namespace {

constexpr int kRiceBits = 4;

std::uint32_t zigzag(int v) {
  return v > 0 ? 2 * static_cast<std::uint32_t>(v) - 1 : 2 * static_cast<std::uint32_t>(-v);
}
int unzigzag(std::uint32_t u) { return (u & 1) ? static_cast<int>((u + 1) / 2) : -static_cast<int>(u / 2); }

std::uint64_t rice_bits(const std::vector<const Weights*>& all, int k) {
  std::uint64_t bits = 0;
  for (const Weights* weights : all)
    for (const int w : *weights) bits += (zigzag(w) >> k) + 1 + static_cast<unsigned>(k);
  return bits;
}

/// Writes the weights of all classes with the Rice parameter k that makes them shortest.
void write_weights(const BlockHead& head, bool one_frame, BitWriter& out) {
  std::vector<const Weights*> all{&head.first};
  if (!one_frame)
    for (const Weights& w : head.classes) all.push_back(&w);
  int best = 0;
  for (int k = 1; k < 1 << kRiceBits; ++k)
    if (rice_bits(all, k) < rice_bits(all, best)) best = k;
  out.put(static_cast<std::uint32_t>(best), kRiceBits);
  for (const Weights* weights : all)
    for (const int w : *weights) out.put_rice(zigzag(w), best);
}

void read_weights(BitReader& in, int k, int taps, Weights& out) {
  out.clear();
  int sum = 0;
  for (int i = 0; i < taps; ++i) {
    const int w = unzigzag(in.get_rice(k, 2 * kMaxWeight));
    if (in.overrun() || std::abs(w) > kMaxWeight) bad("a weight of a prediction is out of range or missing");
    sum += std::abs(w);
    out.push_back(static_cast<std::int16_t>(w));
  }
  if (sum > kWeightSum)
    bad("weights of a prediction add up to " + std::to_string(sum) + "; the limit is " + std::to_string(kWeightSum));
}

void write_frequencies(const Frequencies& f, BitWriter& out) {
  int last = kTokens - 1;
  while (last >= 0 && f[static_cast<std::size_t>(last)] == 0) --last;
  out.put(last >= 0 ? 1 : 0, 1);
  if (last < 0) return;
  out.put(static_cast<std::uint32_t>(last), 7);
  int before = 0;
  for (int t = 0; t <= last; ++t) {
    const std::uint32_t v = f[static_cast<std::size_t>(t)];
    const int bits = static_cast<int>(std::bit_width(v));
    out.put_unary(zigzag(bits - before));
    if (bits > 1) out.put(v, bits - 1);
    before = bits;
  }
}

void read_frequencies(BitReader& in, int tokens, Frequencies& f) {
  f.fill(0);
  if (in.get(1) == 0) return;
  const int last = static_cast<int>(in.get(7));
  if (last >= tokens) bad("frequencies of " + count_of(last + 1, "token") + "; the limit is " + std::to_string(tokens));
  int bits = 0;
  std::uint32_t sum = 0;
  for (int t = 0; t <= last; ++t) {
    bits += unzigzag(in.get_unary(2 * (kFrequencyBits + 1)));
    if (in.overrun() || bits < 0 || bits > kFrequencyBits + 1) bad("a frequency is out of range or missing");
    std::uint32_t v = bits > 0 ? 1 : 0;
    if (bits > 1) v = v << (bits - 1) | in.get(bits - 1);
    sum += v;
    if (sum > kFrequencySum) break;
    f[static_cast<std::size_t>(t)] = static_cast<std::uint16_t>(v);
  }
  if (in.overrun() || sum != kFrequencySum)
    bad("frequencies add up to " + std::to_string(sum) + ", not " + std::to_string(kFrequencySum));
}

void write_zeros(const std::array<std::uint32_t, kFlatContexts>& zeros, BitWriter& out) {
  for (const std::uint32_t zero : zeros) out.put(zero, kZeroBits + 1);
}

void read_zeros(BitReader& in, std::array<std::uint32_t, kFlatContexts>& zeros) {
  for (std::uint32_t& zero : zeros) {
    zero = in.get(kZeroBits + 1);
    if (zero > kZeroSum)
      bad("a frequency of zeros of " + std::to_string(zero) + "; the limit is " + std::to_string(kZeroSum));
  }
}

constexpr int kCellBits = 2;

void write_motion(const BlockMotion& motion, int frames, const FrequencyTables& tables, BitWriter& out) {
  out.put(tables.first_samples.empty() ? 0 : 1, 1);
  if (!tables.first_samples.empty()) {
    write_zeros(tables.first_zero, out);
    for (const Frequencies& f : tables.first_samples) write_frequencies(f, out);
  }
  out.put(motion.moves.empty() ? 0 : 1, 1);
  if (motion.moves.empty()) return;
  out.put(static_cast<std::uint32_t>(motion.log2_cell - kLeastCell), kCellBits);
  for (int z = 1; z < frames; ++z) out.put(motion.moves_in(z) ? 1 : 0, 1);
  for (const Frequencies& f : tables.vectors) write_frequencies(f, out);
}

void read_motion(BitReader& in, int frames, BlockMotion& motion, FrequencyTables& tables) {
  if (in.get(1) != 0) {
    read_zeros(in, tables.first_zero);
    tables.first_samples.resize(kContexts);
    for (Frequencies& f : tables.first_samples) read_frequencies(in, kTokens, f);
  }
  if (in.get(1) == 0) return;
  motion.log2_cell = kLeastCell + static_cast<int>(in.get(kCellBits));
  motion.moves.assign(static_cast<std::size_t>(frames), 0);
  for (int z = 1; z < frames; ++z) motion.moves[static_cast<std::size_t>(z)] = static_cast<std::uint8_t>(in.get(1));
  tables.vectors.resize(kVectorContexts);
  for (Frequencies& f : tables.vectors) read_frequencies(in, kTokens, f);
}

}  // namespace

std::size_t frequency_bits(const Frequencies& f) {
  BitWriter w;
  write_frequencies(f, w);
  return w.bits();
}

Frequencies frequencies_of(const std::vector<std::uint32_t>& counts) {
  Frequencies f{};
  std::uint64_t all = 0;
  for (const std::uint32_t c : counts) all += c;
  if (all == 0) return f;
  int sum = 0;
  for (std::size_t t = 0; t < counts.size(); ++t) {
    if (counts[t] == 0) continue;
    f[t] = static_cast<std::uint16_t>(
        std::max<std::uint64_t>(1, (counts[t] * std::uint64_t{kFrequencySum} + all / 2) / all));
    sum += f[t];
  }
  // The remainder changes the largest frequencies, where it is the smallest relative change.
  while (sum != kFrequencySum) {
    auto& most = *std::max_element(f.begin(), f.end());
    const int change = std::clamp(kFrequencySum - sum, -(most + 1) / 2, kFrequencySum - sum > 0 ? kFrequencySum : 0);
    most = static_cast<std::uint16_t>(most + change);
    sum += change;
  }
  return f;
}

std::uint32_t zero_frequency(std::uint32_t zeros, std::uint32_t all) {
  if (zeros == all) return kZeroSum;
  if (zeros == 0) return 0;
  const std::uint64_t f = (std::uint64_t{zeros} * kZeroSum + all / 2) / all;
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(f, 1, kZeroSum - 1));
}

void write_head(const BlockHead& head, HeadKind kind, const FrequencyTables& tables, BitWriter& out) {
  out.put(static_cast<std::uint32_t>(head.tap_set), 2);
  out.put(static_cast<std::uint32_t>(head.log2_edge), 4);
  out.put(static_cast<std::uint32_t>(head.log2_frames), 3);
  out.put(static_cast<std::uint32_t>(head.classes.size() - 1), 5);
  write_weights(head, kind.frames == 1, out);
  for (const Frequencies& f : tables.classes) write_frequencies(f, out);
  write_zeros(tables.zero, out);
  for (const Frequencies& f : tables.samples) write_frequencies(f, out);
  if (kind.moved && kind.frames > 1) write_motion(head.motion, kind.frames, tables, out);
}

void read_head(BitReader& in, HeadKind kind, BlockHead& head, FrequencyTables& tables) {
  const bool one_frame = kind.frames == 1;
  head.tap_set = static_cast<int>(in.get(2));
  head.log2_edge = static_cast<int>(in.get(4));
  head.log2_frames = static_cast<int>(in.get(3));
  const auto classes = static_cast<std::size_t>(in.get(5)) + 1;
  const int k = static_cast<int>(in.get(kRiceBits));
  if (head.log2_edge < 3 || head.log2_edge > 8)
    bad("tiles of 2^" + std::to_string(head.log2_edge) + " samples; must be 2^3..2^8");
  if (one_frame && classes > 1) bad("classes of frames that the block does not have");
  read_weights(in, k, kFirstFrameTaps, head.first);
  head.classes.resize(classes);
  if (!one_frame)
    for (Weights& w : head.classes) read_weights(in, k, kTapSets[static_cast<std::size_t>(head.tap_set)], w);
  tables.classes.resize(classes > 1 ? classes : 0);
  for (Frequencies& f : tables.classes) read_frequencies(in, static_cast<int>(classes), f);
  read_zeros(in, tables.zero);
  tables.samples.resize(kContexts);
  for (Frequencies& f : tables.samples) read_frequencies(in, kTokens, f);
  head.motion.moves.clear();
  tables.vectors.clear();
  tables.first_samples.clear();
  if (kind.moved && !one_frame) read_motion(in, kind.frames, head.motion, tables);
}

void write_mixed_head(const BlockHead& head, bool one_frame, BitWriter& out) {
  out.put(static_cast<std::uint32_t>(head.tap_set), 2);
  write_weights(head, one_frame, out);
}

void read_mixed_head(BitReader& in, bool one_frame, BlockHead& head) {
  head.tap_set = static_cast<int>(in.get(2));
  head.log2_edge = kWholeEdge;
  head.log2_frames = kWholeFrames;
  const int k = static_cast<int>(in.get(kRiceBits));
  read_weights(in, k, kFirstFrameTaps, head.first);
  head.classes.resize(1);
  if (!one_frame) read_weights(in, k, kTapSets[static_cast<std::size_t>(head.tap_set)], head.classes[0]);
}

void write_ahead_head(const BlockHead& head, bool one_frame, const std::vector<Frequencies>& tables, BitWriter& out) {
  write_mixed_head(head, one_frame, out);
  for (const Frequencies& f : tables) write_frequencies(f, out);
}

void read_ahead_head(BitReader& in, bool one_frame, BlockHead& head, std::vector<Frequencies>& tables) {
  read_mixed_head(in, one_frame, head);
  tables.resize(kAheadContexts);
  for (Frequencies& f : tables) read_frequencies(in, kTokens, f);
}

}  // namespace trivelet::prediction
