// Coding of block trees region by region (motion_field.h); motion_syntax.h has the decisions.
#include "codec/motion/motion_field.h"

#include <string>
#include <utility>

#include "codec/base/bytes.h"
#include "codec/base/limits.h"
#include "codec/entropy/dense/range_coder.h"
#include "codec/motion/motion_syntax.h"

namespace trivelet {

namespace {

// Statistics of vectors change along a region, so an estimate stands for at most this number of decisions.
constexpr std::uint16_t kSeenLimit = 40;

void learn(dense::State& s, bool bit) {
  dense::update(s, bit);
  s.seen = std::min(s.seen, kSeenLimit);
}

constexpr std::uint32_t kHalf = 32768;

struct Writer {
  static constexpr bool kReading = false;
  dense::RangeEncoder range;
  bool bit(dense::State& s, bool b) {
    range.put(b, dense::probability(s));
    learn(s, b);
    return b;
  }
  bool flat(bool b) {
    range.put(b, kHalf);
    return b;
  }
};

struct Reader {
  static constexpr bool kReading = true;
  dense::RangeDecoder range;
  bool bit(dense::State& s, bool) {
    const bool b = range.get(dense::probability(s));
    learn(s, b);
    return b;
  }
  bool flat(bool) { return range.get(kHalf); }
};

// Limit of decisions of a block: its divisions, merge, guess, mode, and constants or two vectors.
constexpr std::size_t kDecisionsOfBlock = 3 + 1 + 5 + 3 + 24 + 4 * 40;

template <class Coder>
void code_tree(Coder& coder, MotionContexts& m, MotionRegion& r, int y, int x, int log2) {
  if (y >= r.y1 || x >= r.x1) return;
  bool split = must_split(r, y, x, log2);
  if (!split && log2 > 0) split = coder.bit(split_context(m, r, y, x, log2), r.at(y, x).log2_cells < log2);
  if (split) {
    const int half = 1 << (log2 - 1);
    for (int k = 0; k < 4; ++k) code_tree(coder, m, r, y + (k >> 1) * half, x + (k & 1) * half, log2 - 1);
    return;
  }
  const MotionGuesses guesses(r, y, x, log2);
  MotionCell c;  // a reader's memory may hold the motion of an earlier GOP
  int guess = -1;
  if constexpr (!Coder::kReading) {
    c = r.at(y, x);
    coder.range.reserve(kDecisionsOfBlock);
    for (int i = guesses.count - 1; i >= 0; --i)
      if (guesses.cell[static_cast<std::size_t>(i)].predicts_as(c)) guess = i;
  }
  code_motion_block(coder, m, r, y, x, log2, guesses, guess, c);
  c.log2_cells = static_cast<std::uint8_t>(log2);
  r.set(y, x, log2, c);
}

// All frames of a level in a region, one after the other.
template <class Coder>
void code_region(Coder& coder, GopMotion& motion, int level, int region, int components) {
  MotionContexts contexts;
  for (const int t : motion_frames(level, motion.places)) {
    MotionRegion r(motion, t, level, region, components);
    for (int y = r.y0; y < r.y1; y += kMotionRoot)
      for (int x = r.x0; x < r.x1; x += kMotionRoot) code_tree(coder, contexts, r, y, x, 3);
  }
}

}  // namespace

std::vector<std::uint8_t> encode_motion(GopMotion& motion, int level, int components, ThreadPool* pool) {
  if (motion_frames(level, motion.places).empty()) return {};
  std::vector<std::vector<std::uint8_t>> codewords(static_cast<std::size_t>(motion.grid.regions()));
  const auto encode = [&](int region) {
    Writer writer;
    writer.range.start();
    code_region(writer, motion, level, region, components);
    writer.range.finish();
    codewords[static_cast<std::size_t>(region)].assign(writer.range.data(), writer.range.data() + writer.range.size());
  };
  if (pool)
    pool->parallel_for(motion.grid.regions(), [&](int region, int) { encode(region); });
  else
    for (int region = 0; region < motion.grid.regions(); ++region) encode(region);
  ByteWriter section;
  for (const auto& word : codewords) section.varint(word.size());
  for (const auto& word : codewords) section.bytes.insert(section.bytes.end(), word.begin(), word.end());
  return std::move(section.bytes);
}

void decode_motion(const std::uint8_t* data, std::size_t size, int level, int components, GopMotion& motion,
                   ThreadPool* pool) {
  ByteReader r(data, size, "motion");
  if (motion_frames(level, motion.places).empty()) return r.expect_end();
  std::vector<std::uint64_t> sizes(static_cast<std::size_t>(motion.grid.regions()));
  for (std::uint64_t& n : sizes) r.varint(n);
  std::size_t at = size - r.left();
  std::vector<std::size_t> begin;
  for (const std::uint64_t n : sizes) {
    if (n > size - at)
      bad("motion: a region of " + count_of(n, "byte") + ", of which " + std::to_string(size - at) + " are there");
    begin.push_back(at);
    at += static_cast<std::size_t>(n);
  }
  if (at != size) bad("motion: " + count_of(size - at, "byte") + " too many");
  // The error of the first damaged region is thrown, independent of threads.
  std::vector<std::string> wrong(sizes.size());
  const auto decode = [&](int region) {
    const auto i = static_cast<std::size_t>(region);
    Reader reader;
    reader.range.start(data + begin[i], static_cast<std::size_t>(sizes[i]));
    try {
      code_region(reader, motion, level, region, components);
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::kBadStream) throw;
      wrong[i] = e.what();
    }
  };
  if (pool)
    pool->parallel_for(motion.grid.regions(), [&](int region, int) { decode(region); });
  else
    for (int region = 0; region < motion.grid.regions(); ++region) decode(region);
  for (const std::string& what : wrong)
    if (!what.empty()) bad(what);
}

}  // namespace trivelet
