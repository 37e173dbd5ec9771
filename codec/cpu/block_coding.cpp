// Codes the blocks of a GOP with one task a block (see block_coding.h).
#include "codec/cpu/block_coding.h"

#include <type_traits>
#include <utility>

#include "codec/entropy/fast/fast_pass_table.h"
#include "codec/rate/rate_control.h"

namespace trivelet {

BlockCoding::BlockCoding(CpuContext& context) : context_(context) {
  for (int i = 0; i < context.pool.threads(); ++i) {
    if (context.header.profile == Profile::kDense)
      dense_.push_back(std::make_unique<DenseEncoder>(nullptr, context.simd));
    else
      fast_.push_back(std::make_unique<BlockEncoder>(context.simd));
  }
}

void BlockCoding::begin(int frames, const std::vector<std::uint8_t>& frame_gains,
                        const std::shared_ptr<const GopMotion>& motion, const GopChoices& choices) {
  const StreamHeader& header = context_.header;
  const StreamGeometry& geometry = context_.geometry(frames, motion.get());
  const bool dense = header.profile == Profile::kDense;
  choices_ = &choices;
  steps_.clear();
  weights_.clear();
  coded_.motion = motion;
  coded_.components.resize(static_cast<std::size_t>(context_.components()));
  for (int c = 0; c < context_.components(); ++c) {
    const BlockGrid& grid = geometry.grid(c);
    auto& coded = coded_.components[static_cast<std::size_t>(c)];
    coded.grid = &grid;
    coded.blocks.resize(static_cast<std::size_t>(grid.blocks()));
    steps_.push_back(context_.steps(grid, c, choices.step));
    if (!dense) coded.plan = choices.passes || choices.by_plane ? plane_plan(grid) : layer_plan(header, grid);
    if (dense || choices.passes) {
      coded.passes.resize(coded.blocks.size());
      weights_.push_back(error_weights(context_.headers.of(motion.get()), c, grid.table(), choices.step, frame_gains));
    }
  }
}

template <class T>
void BlockCoding::code(int first, const std::vector<Field<T>>& fields) {
  const StageTimer timer(time_, context_.pool_times());
  std::vector<std::pair<std::size_t, int>> tasks;  // component and block
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const auto c = static_cast<std::size_t>(first) + i;
    for (int block = 0; block < coded_.components[c].grid->blocks(); ++block) tasks.emplace_back(c, block);
  }
  context_.pool.parallel_for(static_cast<int>(tasks.size()), [&](int i, int worker) {
    const auto [c, block] = tasks[static_cast<std::size_t>(i)];
    const int columns = coded_.components[c].grid->columns();
    code_block(c, block / columns, block % columns, fields[c - static_cast<std::size_t>(first)], worker);
  });
}

template <class T>
void BlockCoding::code_block(std::size_t c, int by, int bx, const Field<T>& field, int worker) {
  const StreamHeader& header = context_.header;
  auto& coded = coded_.components[c];
  const auto block = static_cast<std::size_t>(by * coded.grid->columns() + bx);
  CodedBlock& out = coded.blocks[block];
  if (header.profile == Profile::kDense) {
    DenseEncoder& coder = *dense_[static_cast<std::size_t>(worker)];
    coder.spare_last_pass(choices_->spare_last_pass);
    if constexpr (std::is_same_v<T, float>)
      coder.encode(*coded.grid, by, bx, field, steps_[c], header.centroid, &weights_[c], out, coded.passes[block]);
    else
      coder.encode(*coded.grid, by, bx, field, header.centroid, &weights_[c], out, coded.passes[block]);
    return;
  }
  BlockEncoder& coder = *fast_[static_cast<std::size_t>(worker)];
  if constexpr (std::is_same_v<T, float>)
    coder.encode(*coded.grid, by, bx, field, steps_[c], coded.plan, out);
  else
    coder.encode(*coded.grid, by, bx, field, coded.plan, out);
  if (choices_->passes)
    fill_fast_pass_table(*coded.grid, by, bx, field, header.lossless ? nullptr : &steps_[c], header.centroid,
                         weights_[c], coded.plan, out, coded.passes[block]);
}

CodedGop BlockCoding::take() { return std::exchange(coded_, {}); }

template void BlockCoding::code(int, const std::vector<Field<float>>&);
template void BlockCoding::code(int, const std::vector<Field<std::int32_t>>&);

}  // namespace trivelet
