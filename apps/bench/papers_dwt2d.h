// The 2D Daubechies 9/7 transform by the methods of "2D-DWT from multicore to GPU" (Galiano, Lopez, Malumbres, Migallon
// 2011), on CPU cores. For comparison only: the codecs have their own transforms (codec/transform/dwt.h,
// ccsds122_dwt.h).
//
// Float, any number of levels, Mallat layout (low quadrant top left), whole-sample symmetric extension; low
// coefficients are those of the lifting steps divided by zeta, high ones multiplied by it. Sides must be divisible by
// 2^levels.
#pragma once

#include <cstddef>
#include <vector>

#include "codec/threads/parallel.h"

namespace trivelet::papers_dwt2d {

enum class Method {
  kConvolution,  ///< both filters by their taps, in place, through a buffer per thread
  kLifting,      ///< predict and update steps, in place, through a buffer per thread
  kMasks,        ///< SMDWT: four masks of 9x9, 9x7, 7x9, 7x7 taps, each coefficient of its own, into a second picture
  kMasksLow,     ///< SMDWT of the low subband alone; the others stay unchanged
};
const char* name_of(Method method);

/// How rows, panels of columns and rows of SMDWT are dealt out to threads, as OpenMP's schedules of these names do.
enum class Schedule {
  kDynamic,  ///< a free thread takes the next piece
  kStatic,   ///< every thread has one run of neighbouring pieces
};

/// Transforms `data` (width x height, contiguous) in place. Throws BadArgument for sides that 2^levels does not divide.
/// Results do not depend on the number of threads and on the schedule.
void transform(Method method, float* data, int width, int height, int levels, ThreadPool& pool,
               Schedule schedule = Schedule::kDynamic);

/// Memory beside the picture in samples: the paper's table 1.
std::size_t extra_samples(Method method, int width, int height, int threads);

/// The same coefficients in binary64, by the definition of the filters on the extended signal.
std::vector<double> reference(const std::vector<double>& data, int width, int height, int levels);

}  // namespace trivelet::papers_dwt2d
