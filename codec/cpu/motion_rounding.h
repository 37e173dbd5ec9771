// Rounds the coefficients of a GOP with motion (Effort::kSlow): each one not from its own value, but from the value
// that is best beside the errors of all others.
//
// The transform along motion is far from orthogonal. A rounding error in one frame spreads over the frames that depend
// on it, and appears there in other coefficients. Let S be the synthesis, c the coefficients, q their values when they
// are rounded one by one, and e = c - q. If all other coefficients stay as they are, the error is least in a
// coefficient for
//   q + (S^T S e) / d,
// where d is the coefficient's entry on the diagonal of S^T S. All coefficients change at once, so each goes only a
// part of the way (kWay) and is then rounded by its cost (rounding.h). S^T S takes one inverse lifting and one
// transposed one; the spatial transform counts as orthogonal. The diagonal depends on which frames predict which. It is
// estimated from the errors themselves, cell by cell: the errors of other coefficients are uncorrelated with a
// coefficient's own, so they cancel on average.
//
// Source: one Landweber step, as in iterated shrinkage for transforms that are not orthogonal (Daubechies, Defrise, De
// Mol 2004).
#pragma once

#include "codec/base/simd.h"
#include "codec/threads/parallel.h"
#include "trivelet/coefficients.h"

namespace trivelet {

class MotionTransform;
struct StreamHeader;

/// Rounds a lossy GOP with motion as described above. `header`: from StreamHeader::describe_gop(). The first `rounded`
/// frames of the lowest temporal band are left as they are.
void round_along_motion(const StreamHeader& header, const MotionTransform& transform, CoefficientGop& gop, float step,
                        int rounded, ThreadPool& pool, SimdLevel simd);

}  // namespace trivelet
