#include "codec/entropy/mixed/mixing.h"

namespace trivelet::mixed {

const std::array<std::int16_t, 4096>& stretch_table() {
  static const std::array<std::int16_t, 4096> table = [] {
    std::array<std::int16_t, 4096> t{};
    t.fill(kLargestStretch);
    std::size_t next = 0;
    for (int x = -kLargestStretch; x <= kLargestStretch; ++x)
      for (; next <= static_cast<std::size_t>(squash(x)); ++next) t[next] = static_cast<std::int16_t>(x);
    return t;
  }();
  return table;
}

const std::array<std::uint16_t, kMostSeen + 1>& rate_table() {
  static const std::array<std::uint16_t, kMostSeen + 1> table = [] {
    std::array<std::uint16_t, kMostSeen + 1> t{};
    for (std::size_t n = 0; n < t.size(); ++n) t[n] = static_cast<std::uint16_t>(131072 / (2 * n + 3));
    return t;
  }();
  return table;
}

}  // namespace trivelet::mixed
