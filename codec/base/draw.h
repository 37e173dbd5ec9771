// Systematic sampling with unequal probabilities: draws at equal distances of the cumulated probabilities. The draw is
// the same on every machine, and it spreads evenly over items that are alike. The error measurement uses it to decode a
// few units of a GOP instead of all.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace trivelet {

struct Drawn {
  std::size_t which = 0;
  double weight = 0;  ///< the number of items that it represents
};

/// A share `by_value` of the probability is proportional to the values and the rest to the sizes. If no value is
/// positive, all of the probability is proportional to the sizes. An item that is drawn several times is returned once.
inline std::vector<Drawn> draw(const std::vector<double>& values, const std::vector<double>& sizes, double by_value,
                               int draws) {
  double all_values = 0;
  double all_sizes = 0;
  for (const double v : values) all_values += v;
  for (const double s : sizes) all_sizes += s;
  if (!(all_values > 0)) by_value = 0;
  std::vector<Drawn> drawn;
  double done = 0;
  int next = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    double chance = (1 - by_value) * sizes[i] / all_sizes;
    if (by_value > 0) chance += by_value * values[i] / all_values;
    done += draws * chance;
    int hits = 0;
    for (; next < draws && next + 0.5 < done; ++next) ++hits;
    if (hits > 0) drawn.push_back({i, hits / (draws * chance)});
  }
  return drawn;
}

/// Draws units that have samples, a weight and predicted errors, one for each truncation point. A share `by_error` of
/// the probability is proportional to the predicted errors, all truncation points counting alike, the rest to the
/// samples. Sets the weights.
template <class Unit>
std::vector<Unit> draw_units(std::vector<Unit> units, double by_error, int draws) {
  std::vector<double> errors(units.size(), 0);
  std::vector<double> samples;
  for (std::size_t p = 0; p < units[0].predicted.size(); ++p) {
    double all = 0;
    for (const Unit& unit : units) all += unit.predicted[p];
    for (std::size_t i = 0; i < units.size() && all > 0; ++i) errors[i] += units[i].predicted[p] / all;
  }
  for (const Unit& unit : units) samples.push_back(unit.samples);
  std::vector<Unit> drawn;
  for (const Drawn& d : draw(errors, samples, by_error, draws)) {
    drawn.push_back(std::move(units[d.which]));
    drawn.back().weight = d.weight;
  }
  return drawn;
}

}  // namespace trivelet
