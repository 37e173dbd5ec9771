// Fuzzes sections of motion. The first bytes choose picture size, frames, levels, components and whether keys are
// predicted; the others are the sections, each after two bytes with its size.
//
// An input is an Error of a bad stream, or motion within its limits. Its round trip through the encoder is the same,
// and lifting followed by its inverse changes nothing.

#include <cstdio>
#include <cstdlib>

#include "codec/motion/motion_field.h"
#include "codec/motion/motion_lift.h"
#include "tests/fuzz/wrong.h"
#include "trivelet/error.h"

using namespace trivelet;

namespace {

using fuzz::wrong;

void check_limits(const GopMotion& m) {
  for (const MotionField& f : m.fields)
    for (const MotionCell& c : f) {
      if (c.log2_cells > 3) wrong("a block's size");
      for (const std::int8_t p : c.plain)
        if (p < -32 || p > 31) wrong("a constant");
      for (const MotionVector& v : c.vector)
        if (std::abs(v.x) > kMotionReach || std::abs(v.y) > kMotionReach) wrong("a vector");
    }
}

int coarsest(const GopMotion& m) { return m.places.levels - (m.predicts_keys ? 0 : 1); }

void check_coding(const GopMotion& m, int components) {
  GopMotion original = m;
  GopMotion again = m;
  for (MotionField& f : again.fields) f.assign(f.size(), {});
  for (int level = coarsest(m); level >= 0; --level) {
    const std::vector<std::uint8_t> bytes = encode_motion(original, level, components);
    decode_motion(bytes.data(), bytes.size(), level, components, again);
  }
  for (std::size_t t = 0; t < m.fields.size(); ++t)
    for (std::size_t i = 0; i < m.fields[t].size(); ++i)
      if (!m.fields[t][i].predicts_as(again.fields[t][i]) || again.fields[t][i].vector != original.fields[t][i].vector)
        wrong("other motion after coding it again");
}

void check_lifting(const GopMotion& m, int width, int height, int shift, std::uint32_t seed) {
  static ThreadPool pool(1);
  const Shape s{m.places.count, (height + (1 << shift) - 1) >> shift, (width + (1 << shift) - 1) >> shift};
  std::vector<std::int32_t> x(s.samples());
  for (std::int32_t& v : x) {
    seed = seed * 1664525 + 1013904223;
    v = static_cast<std::int32_t>(seed) >> (seed & 16);
  }
  const auto field = [&](std::vector<std::int32_t>& v) {
    return Field<std::int32_t>{v.data(), s, s.width, static_cast<std::ptrdiff_t>(s.width) * s.height};
  };
  const MotionComponent c{0, {shift, shift}, seed & 32 ? kMotionFraction : 0, 8};
  // Each key is predicted from the one before as it is, so the last one comes first.
  const auto predict_keys = [&](std::vector<std::int32_t>& v, SimdLevel simd) {
    if (m.places.key == GopKey::kOpen) std::copy_n(x.begin(), s.width * s.height, v.begin());
    std::vector<int> keys = motion_frames(m.places.levels, m.places);
    while (m.predicts_keys && !keys.empty()) {
      predict_key(field(v), m, c, keys.back(), false, pool, simd);
      keys.pop_back();
    }
  };
  // The key frame before is the same at all levels; it comes back as the finest has it.
  const auto frame = static_cast<std::ptrdiff_t>(s.width) * s.height;
  if (m.places.key == GopKey::kLast) std::fill_n(x.begin(), frame, 0);
  const KeyStates before(static_cast<std::size_t>(m.places.levels) + 1, {x.begin(), x.begin() + frame});
  KeyStates left(before.size()), found(before.size());
  std::vector<std::int32_t> y = x;
  const MotionBorders leaving{&before, &left}, finding{&before, &found, nullptr, &before[0]};
  forward_motion(field(y), m, c, leaving, pool, SimdLevel::kScalar);
  predict_keys(y, SimdLevel::kScalar);
  std::vector<std::int32_t> best = x;
  forward_motion(field(best), m, c, leaving, pool, SimdLevel::kBest);
  predict_keys(best, SimdLevel::kBest);
  if (best != y) wrong("instruction sets differ");
  inverse_motion(field(y), m, c, 0, finding, pool, SimdLevel::kBest);
  if (x != y) wrong("the inverse is not exact");
  if (left != found) wrong("another key frame is left");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kHead = 4;
  if (size < kHead) return 0;
  const bool large = data[3] & 128;  // several regions
  const int width = 1 + data[0] * (large ? 3 : 1) / 2;
  const int height = 1 + data[1] % 48;
  const int frames = 1 + data[2] % 7;
  const int which_key = data[2] / 21 % 3;  // where a key may be first or last, the latter as open GOPs have it
  const int levels = 1 + data[2] / 7 % 3;
  const int components = 1 + (data[3] & 3);
  const int shift = data[3] >> 2 & 7;
  const GopKey key = which_key == 0                            ? GopKey::kFirst
                     : which_key == 1 && frames >= 1 << levels ? GopKey::kLast
                                                               : GopKey::kOpen;
  GopMotion m({frames, key, levels}, width, height);
  if (data[3] & 64) m.predict_keys();
  const std::uint8_t* at = data + kHead;
  const std::uint8_t* end = data + size;
  try {
    for (int level = coarsest(m); level >= 0; --level) {
      std::size_t n = 0;
      if (end - at >= 2) {
        n = std::min<std::size_t>(at[0] | at[1] << 8, static_cast<std::size_t>(end - at - 2));
        at += 2;
      }
      decode_motion(at, n, level, components, m);
      at += n;
    }
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::kBadStream) wrong("kind of error");
    check_limits(m);
    return 0;
  }
  check_limits(m);
  check_coding(m, components);
  check_lifting(m, width, height, shift, static_cast<std::uint32_t>(size) * 2654435761u);
  return 0;
}
