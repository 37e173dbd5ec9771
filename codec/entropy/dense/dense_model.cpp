// Start tables of the dense profile: their text form and the tables of dense_tables.h.
#include "codec/entropy/dense/dense_model.h"

#include <iterator>
#include <string>

#include "codec/entropy/dense/dense_tables.h"
#include "trivelet/error.h"

namespace trivelet::dense {

// round(65536 / (1 + exp(-0.45 * (i - 14.5))))
const std::array<std::uint16_t, kStartProbabilityCount> kStartProbabilities = {
    96,    150,   236,   369,   576,   899,   1399,  2168,  3338,  5088,  7642,  11240, 16062, 22110, 29097,
    36439, 43426, 49474, 54296, 57894, 60448, 62198, 63368, 64137, 64637, 64960, 65167, 65300, 65386, 65440};
const std::array<std::uint16_t, kStartWeightCount> kStartWeights = {2, 10, 50};

char table_character(std::size_t number) {
  char c = '!';
  for (std::size_t i = 0;; ++c) {
    if (c == '"' || c == '?' || c == '\\') continue;
    if (i++ == number) return c;
  }
}

StartTables parse_tables(std::string_view text, bool dyadic) {
  std::array<State, 128> of{};
  for (State& s : of) s.seen = 0;
  for (std::size_t p = 0; p < kStartProbabilityCount; ++p)
    for (std::size_t w = 0; w < kStartWeightCount; ++w)
      of[static_cast<unsigned char>(table_character(p * kStartWeightCount + w))] = {kStartProbabilities[p],
                                                                                    kStartWeights[w]};

  std::size_t wanted = 0;
  for (int r = 0; r < kResolutionClasses; ++r)
    for (int o = 0; o < kOrientationClasses; ++o) wanted += class_exists(r, o, dyadic) ? kContexts : 0;
  require(text.size() == wanted, ErrorKind::kBadArgument,
          "start tables hold " + std::to_string(text.size()) + " contexts, not " + std::to_string(wanted));

  StartTables tables(static_cast<std::size_t>(kClasses) * kContexts);
  bool all_known = true;
  auto at = text.begin();
  for (int r = 0; r < kResolutionClasses; ++r)
    for (int o = 0; o < kOrientationClasses; ++o) {
      if (!class_exists(r, o, dyadic)) continue;
      State* const out = tables.data() + static_cast<std::size_t>((r * kOrientationClasses + o) * kContexts);
      for (int i = 0; i < kContexts; ++i) {
        out[i] = of[static_cast<unsigned char>(*at++) & 127];
        all_known = all_known && out[i].seen > 0;
      }
    }
  // One check after the loop: building the message for each of 100,000 contexts took a fifth of coding a small clip.
  require(all_known, ErrorKind::kBadArgument, "start tables hold a character that means nothing");
  return tables;
}

const StartTables& start_tables(TableSet set) {
  static_assert(std::size(kTableText) == kTableSets);
  static const std::array<StartTables, kTableSets> tables = {
      parse_tables(kTableText[kT2dReal], false), parse_tables(kTableText[kT2dInteger], false),
      parse_tables(kTableText[kDyadicReal], true), parse_tables(kTableText[kDyadicInteger], true)};
  return tables[set];
}

}  // namespace trivelet::dense
