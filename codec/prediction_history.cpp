#include "codec/prediction_history.h"

namespace trivelet::prediction {

const std::array<LevelEntry, kLevelEntries>& level_table() {
  static const std::array<LevelEntry, kLevelEntries> table = [] {
    std::array<LevelEntry, kLevelEntries> t;
    for (int sum = 0; sum <= kMaxSum; ++sum) {
      const auto level =
          static_cast<int>(std::upper_bound(kLevelBegins.begin(), kLevelBegins.end(), sum) - kLevelBegins.begin()) - 1;
      const bool fine = level < kFineLevels;
      const int context = kFlatContexts + (fine ? 4 * level : 3 * kFineLevels + level);
      t[place_of(sum)] = {static_cast<std::uint8_t>(context), static_cast<std::uint8_t>(fine ? 3 : 0)};
    }
    return t;
  }();
  return table;
}

void RowAhead::prepare(History& history, int frame, int y) {
  const int width = history.width();
  const int taps = frame == 0 ? kFirstFrameTaps : kTapSets[static_cast<std::size_t>(head_->tap_set)];
  std::array<const std::int16_t*, kMaxTaps> from{};
  for (int i = kTapsInRow; i < taps; ++i) {
    const Tap& t = kTaps[static_cast<std::size_t>(i)];
    from[static_cast<std::size_t>(i)] = history.neighbour(frame, y, t.frame, t.row) + t.column;
  }
  for_runs(frame, y, width, [&](int begin, int end, const Weights& weights) {
    std::array<const std::int16_t*, kMaxTaps> at{};
    for (int i = kTapsInRow; i < taps; ++i) at[static_cast<std::size_t>(i)] = from[static_cast<std::size_t>(i)] + begin;
    kernels_.weigh(at.data() + kTapsInRow, weights.data() + kTapsInRow, taps - kTapsInRow, end - begin,
                   sums.data() + begin);
  });

  const std::int16_t* n = history.neighbour(frame, y, 0, -1);
  const std::uint16_t* en = y > 0 ? history.errors(frame, y - 1) : history.no_errors();
  const std::uint16_t* enn = y > 1 ? history.errors(frame, y - 2) : history.no_errors();
  if (frame == 0) {
    for (int x = 0; x < width; ++x) {
      around[static_cast<std::size_t>(x)] = static_cast<std::uint16_t>(2 * en[x] + en[x - 1] + en[x + 1] + enn[x]);
      flat[static_cast<std::size_t>(x)] = n[x] == n[x - 1] && n[x] == n[x + 1] ? 2 : 0;
    }
    return;
  }
  const std::int16_t* z = history.row(frame - 1, y);
  const std::int16_t* zs = history.neighbour(frame, y, 1, 1);
  const std::uint16_t* ez = history.errors(frame - 1, y);
  const std::uint16_t* ezn = y > 0 ? history.errors(frame - 1, y - 1) : history.no_errors();
  const std::uint16_t* ezs = y + 1 < history.height() ? history.errors(frame - 1, y + 1) : history.no_errors();
  for (int x = 0; x < width; ++x) {
    around[static_cast<std::size_t>(x)] = static_cast<std::uint16_t>(
        2 * en[x] + en[x - 1] + en[x + 1] + enn[x] + 2 * ez[x] + ez[x - 1] + ez[x + 1] + ezn[x] + ezs[x]);
    const int same = (n[x] == n[x - 1]) & (n[x] == n[x + 1]) & (n[x] == z[x]);
    const int beyond = (n[x] == z[x + 1]) & (n[x] == zs[x]);
    flat[static_cast<std::size_t>(x)] = static_cast<std::uint8_t>(same * (2 - beyond));
  }
}

}  // namespace trivelet::prediction
