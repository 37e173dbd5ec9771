// Chooses the temporal levels of a GOP with motion by an estimate from reduced pictures: where nothing predicts well at
// the distance of a level, its low frames are better coded as they are. All arithmetic is on integers, so the result is
// the same on every machine, for any number of threads and instruction set.
#pragma once

#include "codec/base/simd.h"
#include "codec/threads/parallel.h"
#include "trivelet/types.h"

namespace trivelet {

struct LevelChoice {
  int levels = 1;      ///< 1..most
  bool moves = false;  ///< motion predicts most blocks, so coding without motion need not be tried
};

/// `bits`: per sample. `most`: limit of levels, at least 1. Counts the levels up to the coarsest whose distance
/// predicts most blocks. Takes about 2 % of the time of encoding the GOP with motion.
LevelChoice choose_levels(const Gop& gop, int bits, int most, ThreadPool& pool, SimdLevel simd);

}  // namespace trivelet
