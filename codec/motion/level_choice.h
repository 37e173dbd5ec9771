// How many temporal levels suit a GOP with motion, by an estimate from small pictures: where nothing predicts at the
// distance of a level, its low frames are better coded by themselves. All decisions are integers: they are the same on
// every machine, for any number of threads and instruction set.
#pragma once

#include "codec/base/simd.h"
#include "codec/threads/parallel.h"
#include "trivelet/types.h"

namespace trivelet {

struct LevelChoice {
  int levels = 1;      ///< 1..most
  bool moves = false;  ///< motion predicts most blocks, so that a GOP without motion need not be tried beside it
};

/// `bits`: of samples. `most`: temporal levels at most, at least 1. Levels are counted up to the coarsest whose
/// distance predicts most blocks. Takes about 2 % of the time that encoding the GOP with motion takes.
LevelChoice choose_levels(const Gop& gop, int bits, int most, ThreadPool& pool, SimdLevel simd);

}  // namespace trivelet
