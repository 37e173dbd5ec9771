#include "codec/dense_model.h"

#include <algorithm>

namespace trivelet::dense {

namespace {

Rates make_rates() {
  Rates r;
  for (std::size_t n = 0; n <= kSeenLimit; ++n) {
    const auto rate = static_cast<std::uint32_t>(2 * 65536 / (2 * n + 3));
    r.fast[n] = static_cast<std::uint16_t>(std::max(rate, 65536u / 32));
    r.slow[n] = static_cast<std::uint16_t>(std::max(rate, 65536u / 256));
  }
  return r;
}

}  // namespace

Rates kRates = make_rates();

const StartTables& start_tables(TableSet) {
  static const StartTables tables;
  return tables;
}

}  // namespace trivelet::dense
