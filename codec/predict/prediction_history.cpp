// Tables of levels, and what a row needs before its first sample: kernels compute it from whole rows of the history.
#include "codec/predict/prediction_history.h"

namespace trivelet::prediction {

namespace {

int level_of(int sum) {
  return static_cast<int>(std::upper_bound(kLevelBegins.begin(), kLevelBegins.end(), sum) - kLevelBegins.begin()) - 1;
}

// The tables are made at run time, when they are first used. A lambda would be constexpr implicitly, and compilers then
// spend a quarter of a minute on evaluating all sums.
std::array<LevelEntry, kLevelEntries> make_level_table() {
  std::array<LevelEntry, kLevelEntries> t;
  for (int sum = 0; sum <= kMaxSum; ++sum) {
    const int level = level_of(sum);
    const bool fine = level < kFineLevels;
    const int context = kFlatContexts + (fine ? 4 * level : 3 * kFineLevels + level);
    t[place_of(sum)] = {static_cast<std::uint8_t>(context), static_cast<std::uint8_t>(fine ? 3 : 0)};
  }
  return t;
}

}  // namespace

const std::array<std::uint8_t, kLevelEntries + 3>& contexts_by_place() {
  static const std::array<std::uint8_t, kLevelEntries + 3> level_by_place = [] {
    std::array<std::uint8_t, kLevelEntries + 3> t{};
    for (int sum = 0; sum <= kMaxSum; ++sum)
      t[place_of(sum)] = static_cast<std::uint8_t>(kFlatContexts + std::min(level_of(sum), kAheadLevels - 1));
    return t;
  }();
  return level_by_place;
}

const std::array<LevelEntry, kLevelEntries>& level_table() {
  static const std::array<LevelEntry, kLevelEntries> table = make_level_table();
  return table;
}

NumberRows number_rows(History& history, int frame, int y) {
  NumberRows numbers{history.neighbour(frame, y, 0, -1)};
  if (frame > 0) {
    numbers.before = history.neighbour(frame, y, 1, 0);
    numbers.before_below = history.neighbour(frame, y, 1, 1);
  }
  return numbers;
}

ErrorRows error_rows(History& history, int frame, int y) {
  ErrorRows errors{y > 0 ? history.errors(frame, y - 1) : history.no_errors(),
                   y > 1 ? history.errors(frame, y - 2) : history.no_errors()};
  if (frame > 0) {
    errors.before = history.errors_before(frame, y);
    errors.before_above = y > 0 ? history.errors_before(frame, y - 1) : history.no_errors();
    errors.before_below = y + 1 < history.height() ? history.errors_before(frame, y + 1) : history.no_errors();
  }
  return errors;
}

void RowAhead::prepare(History& history, int frame, int y, bool known) {
  const int width = history.width();
  const int first = known ? 0 : kTapsInRow;
  TapRows from;
  const int count = from.find(history, frame, y, first,
                              frame == 0 ? kFirstFrameTaps : kTapSets[static_cast<std::size_t>(head_->tap_set)]);
  for_runs(frame, y, width, [&](int begin, int end, const Weights& weights) {
    std::array<const std::int16_t*, kMaxTaps> at;
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) at[i] = from.at[i] + begin;
    kernels_.weigh(at.data(), weights.data() + first, count, end - begin, sums.data() + begin);
  });
  kernels_.around(error_rows(history, frame, y), width, around.data());
  kernels_.flat(number_rows(history, frame, y), width, flat.data());
}

void RowAhead::contexts(bool first_frame, int width, std::uint8_t* out) const {
  kernels_.contexts(around.data(), flat.data(), first_frame, width, out);
}

bool load(const BlockSamples<VolumeView>& b, History& history) {
  history.start(b.frames(), b.height, b.width);
  int any = 0;
  const auto copy = [&](const auto* from, std::int16_t* to) {
    const int offset = b.offset();
    for (int x = 0; x < b.width; ++x) {
      to[x] = static_cast<std::int16_t>(from[x] - offset);
      any |= to[x];
    }
  };
  // Rows of a large frame lie far apart, where the machine does not see what is read next.
  constexpr int kRowsAhead = 8;
  constexpr int kLine = 64;
  for (int z = 0; z < b.frames(); ++z)
    for (int y = 0; y < b.height; ++y) {
      const std::byte* from = b.row(z, y);
      std::int16_t* to = history.row(z, y);
      if (y + kRowsAhead < b.height)
        for (int at = 0; at < b.width * b.plane.bytes_per_sample; at += kLine)
          __builtin_prefetch(b.row(z, y + kRowsAhead) + at);
      if (b.plane.bytes_per_sample == 1)
        b.plane.is_signed ? copy(reinterpret_cast<const std::int8_t*>(from), to)
                          : copy(reinterpret_cast<const std::uint8_t*>(from), to);
      else
        b.plane.is_signed ? copy(reinterpret_cast<const std::int16_t*>(from), to)
                          : copy(reinterpret_cast<const std::uint16_t*>(from), to);
      history.begin_row(z, y);
      history.end_row(z, y);
    }
  return any != 0;
}

void store_row(const History& history, int frame, int y, const BlockSamples<MutableVolumeView>& b) {
  const std::int16_t* from = history.row(frame, y);
  std::byte* to = b.row(frame, y);
  const int offset = b.offset();
  if (b.plane.bytes_per_sample == 1) {
    for (int x = 0; x < b.width; ++x) to[x] = static_cast<std::byte>(from[x] + offset);
  } else {
    auto* wide = reinterpret_cast<std::uint16_t*>(to);
    for (int x = 0; x < b.width; ++x) wide[x] = static_cast<std::uint16_t>(from[x] + offset);
  }
}

}  // namespace trivelet::prediction
