// What every bit plane of a block costs and gains in the fast profile, where the coder itself does not look at
// distortions.
#pragma once

#include "codec/entropy/coded_block.h"

namespace trivelet {

/// Fills `table` for a block that was coded with a part per plane: pass i of a segment is its plane top - 1 - i, and
/// Pass::bytes counts bits here, since planes follow each other without padding. `steps` is null for integers.
template <class T>
void fill_fast_pass_table(const BlockGrid& grid, int by, int bx, const Field<T>& field, const StepTable* steps,
                          int centroid, const ErrorWeights& weights, const LayerPlan& plan, const CodedBlock& block,
                          PassTable& table);

}  // namespace trivelet
