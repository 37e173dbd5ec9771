// Rate and distortion of every bit plane of a block in the fast profile. They are computed apart from the coder, which
// does not compute distortions.
#pragma once

#include "codec/entropy/coded_block.h"

namespace trivelet {

/// Fills `table` for a block that was coded with one part per plane. Pass i of a segment is its plane top - 1 - i.
/// Pass::bytes counts bits, because planes follow each other without padding. `steps` is null for integers.
template <class T>
void fill_fast_pass_table(const BlockGrid& grid, int by, int bx, const Field<T>& field, const StepTable* steps,
                          int centroid, const ErrorWeights& weights, const LayerPlan& plan, const CodedBlock& block,
                          PassTable& table);

}  // namespace trivelet
