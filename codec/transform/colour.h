// YCoCg-R, the reversible colour transform of planes G, B, R (Malvar and Sullivan 2003):
//   Co = R - B   t = B + (Co >> 1)   Cg = G - t   Y = t + (Cg >> 1)
// Components after it: 0 = Y (same range as the samples), 1 = Co, 2 = Cg (one bit more, signed).
#pragma once

#include <cstdint>

#include "codec/threads/parallel.h"
#include "codec/transform/dwt.h"
#include "trivelet/types.h"

namespace trivelet {

/// L2 norms of the columns of the inverse, which weight quantisation errors: sqrt(3), sqrt(1/2), sqrt(3/4).
inline constexpr double kColourNorm[3] = {1.7320508075688772, 0.7071067811865476, 0.8660254037844386};

/// Writes the fields Y - offset, Co and Cg of the planes of `gop`.
template <class T>
void forward_colour(const Gop& gop, std::int32_t offset, const Field<T>& y, const Field<T>& co, const Field<T>& cg,
                    ThreadPool& pool);

/// The inverse. It rounds float values half to even and clamps samples to [0, max_sample].
template <class T>
void inverse_colour(const Field<T>& y, const Field<T>& co, const Field<T>& cg, float gain, std::int32_t offset,
                    std::int32_t max_sample, Gop& gop, ThreadPool& pool);

}  // namespace trivelet
