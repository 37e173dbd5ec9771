// Chooses the temporal levels of a GOP with motion by an estimate from reduced pictures: where nothing predicts well at
// the distance of a level, its low frames are better coded as they are. All arithmetic is on integers, so the result is
// the same on every machine, for any number of threads and instruction set, and on a device.
#pragma once

#include <functional>
#include <vector>

#include "codec/base/simd.h"
#include "codec/threads/parallel.h"
#include "trivelet/types.h"

namespace trivelet {

struct LevelChoice {
  int levels = 1;      ///< 1..most
  bool moves = false;  ///< motion predicts most blocks, so coding without motion need not be tried
  /// Of the levels that were examined: the percentage of the contrast that nothing predicts at this distance.
  std::vector<int> lost;
};

/// `bits`: per sample. `most`: limit of levels, at least 1. Counts the levels up to the coarsest whose distance
/// predicts most blocks. Takes about 1 % of the time of encoding the GOP with motion.
LevelChoice choose_levels(const Gop& gop, int bits, int most, ThreadPool& pool, SimdLevel simd);

/// The same where blocks are compared elsewhere. `lost(level)`: the percentage of the contrast that nothing predicts at
/// the distance of that level; called for level 0, 1, ... until one is dropped.
LevelChoice levels_by_losses(int frames, int most, const std::function<int(int)>& lost);

}  // namespace trivelet
