// What coefficients of a GOP with motion are rounded from where time allows it (Effort::kSlow): not what the transform
// made of the samples alone, but partly what is best for them beside the errors of all others.
//
// The transform along motion is far from orthogonal: what is rounded away in one frame is spread over those that lean
// on it, and comes back there in the coefficients of others. With S the synthesis, c the coefficients, q what they are
// rounded to one by one, and e = c - q, the error is least in a coefficient for
//   q + (S^T S e) / d,
// d being its entry on the diagonal of S^T S, if all others are left as they are. All move at once, so that each goes a
// part of the way (kWay), and is rounded by what it costs (rounding.h) from there. S^T S needs one inverse lifting and
// a transposed one; in space the transform counts as orthogonal. The diagonal depends on what depends on what, and is
// read off the errors themselves, cell by cell: those of others have no part in their correlation on the whole.
//
// Source: the descent of Landweber, one step of it, as iterated shrinkage makes it for transforms that are not
// orthogonal (Daubechies, Defrise, De Mol 2004).
#pragma once

#include "codec/base/simd.h"
#include "codec/threads/parallel.h"
#include "trivelet/coefficients.h"

namespace trivelet {

class MotionTransform;
struct StreamHeader;

/// round_by_cost() of a lossy GOP with motion, so. `header`: as StreamHeader::of_gop() describes it.
void round_along_motion(const StreamHeader& header, const MotionTransform& transform, CoefficientGop& gop, float step,
                        ThreadPool& pool, SimdLevel simd);

}  // namespace trivelet
